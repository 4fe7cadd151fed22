"""Posts, reads, edits and deletes messages; reactions, pins, and the stream of a space."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from denizen.access import openings
from denizen.access.requesters import Requester, find_space
from denizen.app import Runtime
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId, FileId, MessageId, SpaceId
from denizen.memory import stored_policies
from denizen.server.auth import Authenticated, Person
from denizen.server.context import context_of
from denizen.server.idempotency import IdempotencyKey
from denizen.server.router import new_router
from denizen.server.shapes.spaces import EditMessage, PostMessage, message_out
from denizen.server.sse import EventStream
from denizen.server.streams.audience import SpaceReader
from denizen.server.streams.sharing import read_space
from denizen.shapes.examples import ADA, THING, event_stream, text_answer
from denizen.shapes.spaces import MessageOut, MessagePage, PinnedMessages
from denizen.spaces import document, posting
from denizen.spaces.directory import Space
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, storable

router = new_router()

LONGEST_PAGE: Final = 200
_LAST: Final = 2**62
_KEYS: Final = UUID("5f1c7f5e-94a3-4a37-8d4b-6f2c1f7f0d11")
"""Under which idempotency keys become the ids of messages."""
Number = Annotated[int | None, Query(ge=0, le=_LAST)]


@router.post("/api/spaces/{space_id}/messages", status_code=201, summary="Post a message")
async def post_message(
    request: Request, caller: Authenticated, space_id: str, said: PostMessage, key: IdempotencyKey = None
) -> MessageOut:
    """When this returns, the message is in the space and in the inbox of every agent there that attends to it."""
    runtime = context_of(request).runtime
    chosen = None if key is None else MessageId(str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    metadata = stored_policies.asserting(said.metadata, said.organization_id, caller.entity.organization_id)
    posted = await runtime.spaces.post(
        SpaceId(space_id),
        caller.requester,
        said.text,
        id=chosen,
        reply_to=None if said.reply_to is None else MessageId(said.reply_to),
        urgent=said.urgent,
        metadata=metadata,
        files=[FileId(each) for each in said.files],
    )
    return message_out(await runtime.db.read(posting.get_message, posted.id))


_CHANGE_MESSAGE: Final = {"x-who": "its author; owners and admins of the space"}


@router.patch("/api/spaces/{space_id}/messages/{message_id}", summary="Edit a message", openapi_extra=_CHANGE_MESSAGE)
async def edit_message(
    request: Request, caller: Authenticated, space_id: str, message_id: str, said: EditMessage
) -> MessageOut:
    """Agents that have read the message are told. For its author, and for owners and admins of the space."""
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    changed = await runtime.spaces.edit_message(chosen, said.text, by=caller.entity.id, ask_again=said.ask_again)
    return message_out(changed)


@router.delete(
    "/api/spaces/{space_id}/messages/{message_id}", summary="Delete a message", openapi_extra=_CHANGE_MESSAGE
)
async def delete_message(request: Request, caller: Authenticated, space_id: str, message_id: str) -> MessageOut:
    """Removes the text of the message and keeps its place. Agents that have read it are told."""
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    return message_out(await runtime.spaces.delete_message(chosen, by=caller.entity.id))


@router.post(
    "/api/spaces/{space_id}/messages/{message_id}/try-again", status_code=204, summary="Ask for another answer"
)
async def try_answer_again(request: Request, caller: Person, space_id: str, message_id: str) -> None:
    """The agent that wrote this message is woken and asked to answer the same message again. The earlier answer stays;
    the metadata of the new one has `again`, the id of the earlier one."""
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    await runtime.spaces.try_again(chosen, caller.entity.id)


@router.put("/api/spaces/{space_id}/messages/{message_id}/reactions/{emoji}", summary="React to a message")
async def add_reaction(
    request: Request, caller: Authenticated, space_id: str, message_id: str, emoji: str
) -> MessageOut:
    """Wakes nobody. If an agent wrote the message, it reads of the reaction with its next inbox message."""
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    return message_out(await runtime.spaces.react(chosen, storable(emoji), by=caller.entity.id))


@router.delete("/api/spaces/{space_id}/messages/{message_id}/reactions/{emoji}", summary="Remove your reaction")
async def remove_reaction(
    request: Request, caller: Authenticated, space_id: str, message_id: str, emoji: str
) -> MessageOut:
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    return message_out(await runtime.spaces.react(chosen, storable(emoji), by=caller.entity.id, remove=True))


@router.put("/api/spaces/{space_id}/messages/{message_id}/pin", summary="Pin a message")
async def pin_message(request: Request, caller: Authenticated, space_id: str, message_id: str) -> MessageOut:
    """For everyone in the space."""
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    return message_out(await runtime.spaces.pin(chosen, by=caller.entity.id))


@router.delete("/api/spaces/{space_id}/messages/{message_id}/pin", summary="Unpin a message")
async def unpin_message(request: Request, caller: Authenticated, space_id: str, message_id: str) -> MessageOut:
    runtime = context_of(request).runtime
    chosen = await runtime.db.read(_in_space, space_id, message_id, caller.requester)
    return message_out(await runtime.spaces.pin(chosen, by=caller.entity.id, pinned=False))


@router.get("/api/spaces/{space_id}/pins", summary="The pinned messages of a space")
async def list_pins(request: Request, caller: Authenticated, space_id: str) -> PinnedMessages:
    found = await context_of(request).runtime.spaces.pins(SpaceId(storable(space_id)), caller.entity.id)
    return PinnedMessages(messages=[message_out(each) for each in found])


def _in_space(tx: Tx, space_id: str, message_id: str, by: Requester) -> MessageId:
    space = find_space(tx, by, space_id)
    message = posting.get_readable(tx, MessageId(storable(message_id)), by.entity_id)
    if message.space_id != space.id:
        raise NotFound("message", message_id)
    return message.id


@router.get("/api/spaces/{space_id}/messages", summary="List messages")
async def read_messages(
    request: Request,
    caller: Authenticated,
    space_id: str,
    after: Number = None,
    before: Number = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 50,
) -> MessagePage:
    """The messages `after` a sequence number, or the last ones `before` one; with neither, the newest. Oldest first.

    `next` continues in the same direction: forwards as `after`, otherwise backwards as `before`.
    """
    if after is not None and before is not None:
        raise InvalidInput("Ask for messages after a number or before one, not both.")
    return await context_of(request).runtime.db.read(_page, space_id, caller.entity.id, after, before, limit)


def _page(tx: Tx, space_id: str, reader: EntityId, after: int | None, before: int | None, limit: int) -> MessagePage:
    space = openings.require_reader(tx, SpaceId(storable(space_id)), reader)
    # One more than asked for shows whether there are more.
    if after is not None:
        found = posting.messages_after(tx, space.id, after, limit=limit + 1)
        shown = found[:limit]
        return _as_page(shown, shown[-1].seq if len(found) > limit else None)
    found = posting.messages_before(tx, space.id, _LAST if before is None else before, limit=limit + 1)
    shown = found[-limit:]
    return _as_page(shown, shown[0].seq if len(found) > limit else None)


def _as_page(messages: list[Message], following: int | None) -> MessagePage:
    return MessagePage(messages=[message_out(each) for each in messages], next=following)


@router.get(
    "/api/spaces/{space_id}/transcript",
    summary="Get the transcript of a space",
    response_class=Response,
    responses=text_answer("text/markdown", "Markdown.", "# Hall\n\n**Noor**, 2026-01-02 09:30 UTC\n\nHello.\n"),
)
async def get_space_transcript(request: Request, caller: Authenticated, space_id: str) -> Response:
    """Every message up to now, oldest first."""
    runtime = context_of(request).runtime
    space, last = await runtime.db.read(_end_of, space_id, caller.entity.id)
    return StreamingResponse(
        _transcript(runtime, space, last, caller.entity.id), media_type="text/markdown; charset=utf-8"
    )


async def _transcript(runtime: Runtime, space: Space, last: int, reader: EntityId) -> AsyncGenerator[str]:
    yield document.title(space.name)
    after: int | None = 0
    while after is not None:
        found, after = await runtime.db.read(_transcript_page, space.id, reader, after, last)
        yield "".join(map(document.markdown, found))


def _end_of(tx: Tx, space_id: str, reader: EntityId) -> tuple[Space, int]:
    space = openings.require_reader(tx, SpaceId(storable(space_id)), reader)
    return space, posting.last_seq(tx, space.id)


def _transcript_page(
    tx: Tx, space_id: SpaceId, reader: EntityId, after: int, last: int
) -> tuple[list[Message], int | None]:
    """The next messages, and where to continue. A download does not go on for somebody who was removed meanwhile."""
    openings.require_reader(tx, space_id, reader)
    found = posting.messages_after(tx, space_id, after, limit=LONGEST_PAGE)
    more = len(found) == LONGEST_PAGE and found[-1].seq < last
    return [each for each in found if each.seq <= last], found[-1].seq if more else None


@router.get(
    "/api/spaces/{space_id}/stream",
    summary="Stream the messages of a space",
    response_class=Response,
    responses=event_stream(
        "space",
        f'event: stream.delta\ndata: {{"type":"stream.delta","id":"{THING}","agent":"{ADA}","epoch":3,"offset":0,'
        '"text":"Good mor"}\n\n',
    ),
)
async def stream(
    request: Request,
    caller: Authenticated,
    space_id: str,
    after: Number = None,
    last_event_id: Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=_LAST)] = None,
) -> Response:
    """Every message after a sequence number, from the database and then live; without a number, new messages only.

    `message` events have the sequence number as their id, so that a browser resumes by itself. `stream.started`,
    `stream.delta`, `stream.aborted` and `agent.status` come in between and have no id.
    """
    context = context_of(request)
    last = await context.runtime.db.read(_last_seq, space_id, caller.requester)
    # A browser that comes back asks for the same address again, but its header is newer.
    wanted = after if last_event_id is None else last_event_id
    # A number that was never given, as after a restored backup, would leave the reader deaf until it is.
    start = last if wanted is None else min(wanted, last)
    reader = SpaceReader(caller.entity.id, caller.token.id)
    return EventStream(context, partial(read_space, context, reader, SpaceId(space_id), start))


def _last_seq(tx: Tx, space_id: str, by: Requester) -> int:
    return posting.last_seq(tx, find_space(tx, by, space_id).id)
