"""Posts messages: the message and an event in every inbox that attends to the space, in one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.bus.streams import MessageCreated, space_topic
from denizen.errors import IdempotencyKeyReused, InvalidInput, NotAMember, NotFound
from denizen.files import attaching
from denizen.files.attaching import Attachment, attachments_from
from denizen.ids import ChannelId, EntityId, MessageId, SpaceId, new_id
from denizen.inbox import delivery, statuses, stop_requests
from denizen.inbox.delivery import Delivery
from denizen.inbox.urgency import rule_from, says_only_stop
from denizen.spaces import floor, outbox
from denizen.spaces.directory import Floor, is_member
from denizen.spaces.fan_out import MessageToDeliver, decide_deliveries, prefetch_listeners
from denizen.spaces.markdown import Rendered, render
from denizen.storage import chains
from denizen.storage.database import (
    Tx,
    columns,
    equal,
    insert_into,
    select_where,
    statement,
    storable,
    update_where,
    value,
)
from denizen.storage.schema import agents, entities, memberships, messages, spaces

MESSAGE_CHARACTERS: Final = 100_000
_SHORT_CHARACTERS: Final = 2_000
"""A text up to this length is rendered on the event loop."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that can be posted: checked, and rendered once, outside any transaction."""

    text: str
    rendered: Rendered


@dataclass(frozen=True, slots=True)
class Posted:
    """The position of a posted message."""

    id: MessageId
    seq: int
    space_kind: str


def draft(text: str, *, with_files: bool = False) -> Draft:
    """Check and render a text for posting; characters that databases cannot store (NUL, surrogates) become U+FFFD.

    A message with files needs no text.
    """
    text = storable(text)
    if not text.strip() and not with_files:
        raise InvalidInput("A message needs some text.")
    if len(text) > MESSAGE_CHARACTERS:
        raise InvalidInput(
            f"A message may have {MESSAGE_CHARACTERS:,} characters, this one has {len(text):,}. Send it in parts."
        )
    return Draft(text, render(text))


async def draft_off_loop(text: str, *, with_files: bool = False) -> Draft:
    """The same for callers on the event loop: a long text is rendered in a thread, because that takes up to half a
    second.
    """
    if len(text) <= _SHORT_CHARACTERS:
        return draft(text, with_files=with_files)
    return await asyncio.to_thread(draft, text, with_files=with_files)


_lock = statement(
    select(*columns(spaces, "last_seq, head, kind, bridged, floor, agent_run, agent_run_limit"))
    .where(spaces.c.id == bindparam("id"))
    .with_for_update(key_share=True)
)
_advance = update_where(spaces, "id", set_="last_seq, head")
_author = statement(
    select(
        entities.c.kind,
        entities.c.handle,
        entities.c.role,
        statuses.is_shown(entities.c.id),
        select(messages.c.id).where(messages.c.id == bindparam("message_id")).exists(),
    )
    .join(memberships, memberships.c.entity_id == entities.c.id)
    .where(memberships.c.space_id == bindparam("space_id"), entities.c.id == bindparam("author_id"))
)
_seq_of = select_where(messages, "seq, space_id", "id")
_posted = select_where(messages, "seq, space_id, author_id, text, reply_to, metadata, files", "id")
_is_in_space = select_where(messages, "id", "id, space_id")
_add = insert_into(
    messages,
    "id, space_id, seq, author_id, text, plain, mentions, reply_to, metadata, hop, cycle_id, outside, "
    "created_at, salt, digest",
)
_set_files = update_where(messages, "id", set_="files")
_read_own = update_where(memberships, "space_id, entity_id", set_="read_seq")


def prefetch_post(tx: Tx, space_id: SpaceId, author_id: EntityId, id: MessageId | None = None) -> None:
    """Announce a `post`, which locks the space's row."""
    tx.prefetch(_lock, id=space_id)
    tx.prefetch(_author, space_id=space_id, author_id=author_id, message_id=id)
    prefetch_listeners(tx, space_id, author_id)


def post(
    tx: Tx,
    space_id: SpaceId,
    author_id: EntityId,
    what: Draft,
    *,
    id: MessageId | None = None,
    reply_to: MessageId | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    urgent: bool = False,
    hop: int = 0,
    cycle_id: str | None = None,
    asked: EntityId | None = None,
    request: Mapping[str, JsonValue] | None = None,
    answers: Collection[str] = (),
    outside: bool = False,
    files: Sequence[str] = (),
    via: ChannelId | None = None,
    history_from: int | None = None,
    scope: str | None = None,
) -> Posted:
    """Post the message to the space, and to the inbox of every agent that attends to it. Every message is posted here.

    Raises `NotAMember` unless the author is in the space, and `IdempotencyKeyReused` if another message has the `id`.
    The same message with the same `id` is posted once.

    What a guest or a service writes is text from outside; so is what is posted with `outside`: by an agent that has
    read such text, or in the name of someone whom this server does not know.

    The floor of the space decides who is woken, and whose answer a person waits for. The message addresses the agents
    that it mentions, the agent `asked`, the author of what it replies to, and those whom it `answers`. `request` is
    what a program says that waits for the answer of the agent `asked`: it becomes part of that agent's event. `files`
    are ids of finished uploads.

    A message from elsewhere came `via` a channel, and is not sent back there. With `history_from`, when it was written,
    it is old: agents read it when they wake next, and nobody waits for an answer. A service's message with a `hop` is
    another server's agent's. `scope` is the role of the token it is posted with: agents are told no higher one.
    """
    # First, because it locks the space's row: numbers and members stay the same until the commit.
    end, setting, run, limit = _lock_end(tx, space_id)
    author = tx.one(_author, space_id=space_id, author_id=author_id, message_id=id)
    is_there = author is None or author[-1]
    if id is not None and is_there and (posted := tx.one(_posted, id=id)) is not None:
        number, *same, stored, with_files = posted
        known: object = json.loads(stored) if stored else {}
        if (*same, known) != (space_id, author_id, what.text, reply_to, dict(metadata or {})):
            raise IdempotencyKeyReused
        if not attaching.are_the_same(tx, author_id, attachments_from(with_files), files):
            raise IdempotencyKeyReused
        return Posted(id, number, end.kind)
    if author is None:
        raise NotAMember("Only members of a space can post in it. Join it first.")
    attached = attaching.attachable(tx, author_id, files) if files else ()
    kind, handle, role, has_status, _ = author
    posted_id, seq = id or MessageId(new_id()), end.last_seq + 1
    mentions = what.rendered.mentions
    _store(
        tx,
        end,
        posted_id,
        author_id,
        what,
        mentions=json.dumps(mentions) if mentions else None,
        reply_to=reply_to,
        metadata=json.dumps(metadata) if metadata else None,
        hop=hop,
        cycle_id=cycle_id,
        outside=int(outside or is_outside_author(kind, role)),
    )
    if attached:
        tx.run(_set_files, id=posted_id, files=attaching.attach(tx, posted_id, author_id, attached))
    if cycle_id is None:
        # A person who posts has seen what came before. What an agent has seen is in its log.
        tx.send(_read_own, space_id=space_id, entity_id=author_id, read_seq=seq)
    if end.bridged:
        outbox.note(tx, space_id, posted_id, "post", via=via)
    if history_from is not None:
        # As a notice: a service's message shows no status, and is awaited by nobody.
        said = MessageToDeliver(posted_id, space_id, author_id, "service", handle, what, reply_to, hop, urgent=False)
        _deliver_quietly(tx, said, at=history_from)
        tx.announce(space_topic(space_id), MessageCreated(space_id, seq, posted_id, author_id).to_payload())
        return Posted(posted_id, seq, end.kind)
    said_as = scope if scope not in (None, role) else None
    said = MessageToDeliver(
        posted_id, space_id, author_id, kind, handle, what, reply_to, hop, urgent, asked, answers, request, said_as
    )
    addressed_to = decide_deliveries(tx, said, setting)
    if kind == "agent" or hop:
        if kind == "agent" and has_status:
            statuses.clear_in_space(tx, author_id, space_id, thinking=cycle_id is not None)
        if any(each.wakes for each in addressed_to) and not floor.may_wake(tx, space_id, run, limit):
            addressed_to = [replace(each, wakes=False) for each in addressed_to]
    elif kind == "human":
        floor.begin_anew(tx, space_id, run, limit)
        if end.kind == "conversation" and says_only_stop(what.rendered.plain):
            addressed_to = _stop_writing(tx, said, seq, addressed_to)
    delivery.deliver(tx, addressed_to)
    tx.announce(space_topic(space_id), MessageCreated(space_id, seq, posted_id, author_id).to_payload())
    return Posted(posted_id, seq, end.kind)


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a space's messages, while its row is locked."""

    space_id: SpaceId
    kind: str
    last_seq: int
    head: bytes
    """The head of the chain of digests."""
    bridged: bool
    """Whether it may be bound to rooms elsewhere."""


def _lock_end(tx: Tx, space_id: SpaceId) -> tuple[_End, Floor, int, int]:
    """Lock the space's row; returns where the next message goes, the floor, the run of agents and its limit."""
    row = tx.one(_lock, id=space_id)
    if row is None:
        raise NotFound("space", space_id)
    last_seq, head, kind, bridged, setting, run, limit = row
    return _End(space_id, kind, last_seq, head or chains.BEGINNING, bool(bridged)), setting, run, limit


def _store(
    tx: Tx,
    end: _End,
    id: MessageId,
    author_id: EntityId,
    what: Draft,
    *,
    mentions: str | None,
    reply_to: str | None,
    metadata: str | None,
    hop: int,
    cycle_id: str | None,
    outside: int,
) -> None:
    """Store the message as the next one of the space, and advance the space's number and chain."""
    seq, plain, salt = end.last_seq + 1, what.rendered.plain, chains.new_salt()
    digest = chains.message_digest(
        salt, end.head, end.space_id, seq, id, author_id, what.text, reply_to, cycle_id, tx.now
    )
    tx.send(_advance, id=end.space_id, last_seq=seq, head=digest)
    tx.note_head("space", end.space_id, seq, digest)
    tx.send(
        _add,
        id=id,
        space_id=end.space_id,
        seq=seq,
        author_id=author_id,
        text=what.text,
        plain=None if plain == what.text else plain,
        mentions=mentions,
        reply_to=reply_to,
        metadata=metadata,
        hop=hop,
        cycle_id=cycle_id,
        outside=outside,
        created_at=tx.now,
        salt=salt,
        digest=digest,
    )


_rules = statement(
    select(agents.c.id, agents.c.urgent)
    .join(memberships, memberships.c.entity_id == agents.c.id)
    .where(memberships.c.space_id == bindparam("space_id"))
)


def _stop_writing(tx: Tx, said: MessageToDeliver, seq: int, deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Stop the agents that work for the author and are writing in the space; if it mentions some, only those.

    They have done what the message says, so they read it when they wake next, and nobody waits for an answer to it.
    """
    handle, kind = said.author_handle, said.author_kind
    mentioned = [each.agent_id for each in deliveries if each.type == "mention"]
    rules = tx.all(_rules, space_id=said.space_id)
    own = [id for id, rule in rules if rule_from(rule).is_for(handle=handle, kind=kind)]
    meant = [id for id in own if id in mentioned or not said.what.rendered.mentions]
    stopped = stop_requests.ask(tx, said.space_id, said.author_id, seq, meant)
    return [replace(each, wakes=False, waits=False) if each.agent_id in stopped else each for each in deliveries]


def is_outside_author(kind: str, role: str) -> bool:
    """Whether the author's messages are text from outside: a service, or a person who is only a guest."""
    return kind == "service" or role == "guest"


_who = select_where(entities, "kind, role", "id")


def is_trusted_person(tx: Tx, entity_id: str) -> bool:
    """Whether this is a person of this server, and not only a guest."""
    kind, role = tx.one(_who, id=entity_id) or ("", "")
    return kind == "human" and not is_outside_author(kind, role)


_outsider = select_where(entities, "handle", "id")
NOTICE: Final = "notice"
"""Metadata key of a message: it is a notice, and about what. A notice cannot be edited or deleted."""


def post_notice(tx: Tx, space_id: SpaceId, author_id: EntityId, what: Draft, about: Mapping[str, JsonValue]) -> Posted:
    """Post a notice for everyone in the space; its author need not be a member. Agents read it when they wake next:
    nobody is woken, and nobody waits."""
    end, *_ = _lock_end(tx, space_id)
    handle = value(tx, _outsider, id=author_id)
    if handle is None:
        raise NotFound("entity", author_id)
    id, seq = MessageId(new_id()), end.last_seq + 1
    _store(
        tx,
        end,
        id,
        author_id,
        what,
        mentions=None,
        reply_to=None,
        metadata=json.dumps({NOTICE: dict(about)}),
        hop=0,
        cycle_id=None,
        outside=0,
    )
    said = MessageToDeliver(id, space_id, author_id, "service", handle, what, None, 0, urgent=False)
    _deliver_quietly(tx, said, at=tx.now)
    tx.announce(space_topic(space_id), MessageCreated(space_id, seq, id, author_id).to_payload())
    return Posted(id, seq, end.kind)


def _deliver_quietly(tx: Tx, said: MessageToDeliver, *, at: int) -> None:
    """Deliver the message as one of that time that agents read when they wake next: it wakes nobody."""
    found = decide_deliveries(tx, said)
    delivery.deliver(tx, [replace(each, wakes=False, waits=False, urgent=False, created_at=at) for each in found])


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a space, in its current version."""

    id: MessageId
    space_id: SpaceId
    seq: int
    author_id: EntityId
    author_name: str
    author_kind: str
    text: str
    plain: str
    mentions: tuple[str, ...]
    reply_to: MessageId | None
    metadata: Mapping[str, JsonValue]
    hop: int
    cycle_id: str | None
    created_at: int
    edited_at: int | None = None
    author_handle: str | None = None
    deleted_at: int | None = None
    """When its text was deleted or forgotten; its place stays."""
    outside: bool = False
    """Whether it is text from outside, or an agent wrote it after reading such text."""
    author_role: str | None = None
    files: tuple[Attachment, ...] = ()
    reactions: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """The ids of those who reacted, by emoji."""
    pinned_at: int | None = None
    marked_at: int | None = None
    """When a reaction or the pin last changed."""


_message = (
    *columns(messages, "id, space_id, seq, author_id"),
    entities.c.name,
    entities.c.kind,
    *columns(messages, "text, plain, mentions, reply_to, metadata, hop, cycle_id, created_at, edited_at, deleted_at"),
    entities.c.handle,
    messages.c.outside,
    entities.c.role,
    *columns(messages, "files, reactions, pinned_at, marked_at"),
)
_after = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.seq > bindparam("after"))
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
_before = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.seq < bindparam("before"))
    .order_by(messages.c.seq.desc())
    .limit(bindparam("limit"))
)
_get = statement(
    select(*_message).join(entities, entities.c.id == messages.c.author_id).where(messages.c.id == bindparam("id"))
)
_of_cycle = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq > bindparam("after"),
        *equal(messages, "author_id, cycle_id"),
    )
    .order_by(messages.c.seq)
    .limit(bindparam("limit"))
)
_newest_of_others = select_where(
    messages,
    "seq, hop",
    "space_id",
    messages.c.seq <= bindparam("up_to"),
    messages.c.author_id != bindparam("reader_id"),
    order_by="seq desc",
    limit=1,
)
_last_seq = select_where(spaces, "last_seq", "id")
END: Final = 2**62
"""Greater than the number of any message."""


_pinned = statement(
    select(*_message)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(messages.c.space_id == bindparam("space_id"), messages.c.pinned_at.is_not(None))
    .order_by(messages.c.seq)
)


def pinned_messages(tx: Tx, space_id: SpaceId) -> list[Message]:
    """The pinned messages of the space, oldest first."""
    return [_as_message(row) for row in tx.all(_pinned, space_id=space_id)]


def messages_after(tx: Tx, space_id: SpaceId, after: int = 0, *, limit: int = 100) -> list[Message]:
    """The messages of the space after that sequence number, oldest first."""
    return [_as_message(row) for row in tx.all(_after, space_id=space_id, after=after, limit=limit)]


def prefetch_newest(tx: Tx, space_id: SpaceId) -> None:
    """Announce `messages_before` for the newest message alone."""
    tx.prefetch(_before, space_id=space_id, before=END, limit=1)


def messages_before(tx: Tx, space_id: SpaceId, before: int = END, *, limit: int = 100) -> list[Message]:
    """The last messages of the space before that sequence number, oldest first."""
    return [_as_message(row) for row in reversed(tx.all(_before, space_id=space_id, before=before, limit=limit))]


def said_by(
    tx: Tx, space_id: SpaceId, author_id: EntityId, cycle_id: str, *, after: int = 0, limit: int = 100
) -> list[Message]:
    """An agent's messages in the space from one of its cycles after that sequence number, oldest first."""
    rows = tx.all(_of_cycle, space_id=space_id, author_id=author_id, cycle_id=cycle_id, after=after, limit=limit)
    return [_as_message(row) for row in rows]


def last_seq(tx: Tx, space_id: SpaceId) -> int:
    """The sequence number of the last message in the space; 0 if there is none."""
    seq = value(tx, _last_seq, id=space_id)
    if seq is None:
        raise NotFound("space", space_id)
    return seq


@dataclass(frozen=True, slots=True)
class MessagePosition:
    """The position of a message in its space, and how many agents in a row led to it."""

    seq: int
    hop: int


def newest_of_others(tx: Tx, space_id: SpaceId, reader_id: EntityId, *, up_to: int) -> MessagePosition | None:
    """The newest message of the space up to that sequence number that the reader has not written itself."""
    row = tx.one(_newest_of_others, space_id=space_id, reader_id=reader_id, up_to=up_to)
    return None if row is None else MessagePosition(*row)


def seq_of(tx: Tx, message_id: str) -> int | None:
    """The sequence number of the message; None if there is no such message."""
    return value(tx, _seq_of, id=message_id)


def is_in_space(tx: Tx, message_id: MessageId, space_id: SpaceId) -> bool:
    """Whether the message is one of this space."""
    return tx.one(_is_in_space, id=message_id, space_id=space_id) is not None


def get_message(tx: Tx, message_id: MessageId) -> Message:
    message = find_message(tx, message_id)
    if message is None:
        raise NotFound("message", message_id)
    return message


def find_message(tx: Tx, message_id: MessageId) -> Message | None:
    """The message, if there is one with this id."""
    row = tx.one(_get, id=message_id)
    return None if row is None else _as_message(row)


def get_readable(tx: Tx, message_id: MessageId, reader: EntityId) -> Message:
    """The message, if the reader is in its space. Raises the same `NotFound` if not, or if it does not exist."""
    message = get_message(tx, message_id)
    if not is_member(tx, message.space_id, reader):
        raise NotFound("message", message_id)
    return message


def _as_message(row: tuple[Any, ...]) -> Message:
    """Decode a row with the columns of `_message`."""
    (
        id, space_id, seq, author_id, name, kind, text, plain, mentions, reply_to, metadata, hop, cycle_id, created_at,
        edited_at, deleted_at, handle, outside, role, files, reactions, pinned_at, marked_at,
    ) = row  # fmt: skip
    return Message(
        id,
        space_id,
        seq,
        author_id,
        name,
        kind,
        text,
        plain=text if plain is None else plain,
        mentions=tuple(json.loads(mentions)) if mentions else (),
        reply_to=reply_to,
        metadata=json.loads(metadata) if metadata else {},
        hop=hop,
        cycle_id=cycle_id,
        created_at=created_at,
        edited_at=edited_at,
        deleted_at=deleted_at,
        author_handle=handle,
        outside=bool(outside),
        author_role=role,
        files=attachments_from(files),
        reactions=json.loads(reactions) if reactions else {},
        pinned_at=pinned_at,
        marked_at=marked_at,
    )
