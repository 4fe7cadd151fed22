"""The tools every agent has. Each checks its arguments exactly, and membership before anything is read or said."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import Field, JsonValue

from denizen.amounts import human_size
from denizen.consciousness import log, privacy
from denizen.errors import InvalidInput, NotFound
from denizen.files import attaching, extracting, storing
from denizen.files.reading import kind_of
from denizen.files.storing import File
from denizen.ids import AgentId, CycleId, MessageId, SpaceId
from denizen.inbox import delivery, picture_lines, stop_requests
from denizen.inbox.events import AGAIN, Event
from denizen.inbox.format import entry_text, quoted_name
from denizen.inbox.sources import Source, distinct, source_of_author, sources_of_events
from denizen.inbox.stop_requests import STOPPED
from denizen.spaces import ask_again, directory, floor, posting
from denizen.spaces.markdown import unfenced
from denizen.spaces.posting import Draft, Message
from denizen.spaces.transcript import format_transcript
from denizen.storage.database import Database, Tx
from denizen.tools import planning, privacy_guard, private_word_search, self_view, skills
from denizen.tools.hops import hop_of_send
from denizen.tools.planning import PLANNING, SET_TIMER
from denizen.tools.privacy_guard import CheckedAhead
from denizen.tools.recalling import RECALLING, Recall
from denizen.tools.tool import SEND_MESSAGE, Arguments, Done, Hand, OwnTool

SKIP: Final = "skip"
ENTER_SPACE: Final = "enter_space"

INBOX: Final = "inbox"
"""The pointer with which `read_entry` shows what waits."""
_NEWEST: Final = 2**62
_OWN_MESSAGES: Final = 20
"""How many of its own messages are read to find one that it repeats."""
MERGED: Final = {
    "set_plans": "set_timer",
    "get_plans": 'read_entry("plans")',
    "delete_plans": "set_timer with an empty reason",
    "get_memories": 'read_entry("memories")',
    "delete_memories": "set_memories with an empty text",
    "delete_goals": "set_goals with an empty text",
    "get_my_cycles": 'read_entry("cycles")',
    "peek_inbox": 'read_entry("inbox")',
}
"""The successors of tools of earlier versions, which agents see in their past and call again."""


class EnterSpace(Arguments):
    space_id: str


class SendMessage(Arguments):
    # Before the text, so that a model that writes in this order names the space first: then the text can stream there.
    space_id: str | None = None
    text: str = Field(description="Markdown; @handle mentions someone.")
    # Not shown in the definition, which every request pays for: the model is told of it where it has a file to send.
    files: list[str] | None = None


class ReadMessages(Arguments):
    space_id: str | None = None
    before: int | None = Field(default=None, ge=1)
    after: int | None = Field(default=None, ge=0)
    limit: int = Field(default=20, ge=1, le=100)


class ReadEntry(Arguments):
    entry: str
    offset: int = Field(default=0, ge=0)


class Skip(Arguments):
    reason: str = Field(default="")


def enter_space(tx: Tx, hand: Hand, arguments: EnterSpace) -> Done:
    """Make the space active: messages go there from now on."""
    space = directory.require_member(tx, SpaceId(arguments.space_id), hand.agent_id)
    return Done(_told(success=True, spaceName=space.name), entered=space.id)


@dataclass(frozen=True, slots=True)
class AheadOfSend:
    """A message that is about to be sent, and which of its words are private."""

    what: Draft
    checked: CheckedAhead | None


def prepare_send(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, to_space_id: SpaceId, arguments: SendMessage, events: Sequence[Event]
) -> AheadOfSend:
    """Prepare a message that may carry private words elsewhere. Only reads."""
    what = draft_of(arguments)
    forms = private_word_search.forms_of_message(what)
    return AheadOfSend(what, privacy_guard.check_ahead(tx, agent_id, cycle_id, to_space_id, forms, events))


def draft_of(arguments: SendMessage) -> Draft:
    return posting.draft(unfenced(arguments.text), with_files=bool(arguments.files))


def send_message(tx: Tx, hand: Hand, arguments: SendMessage) -> Done:
    """Post the message to the active space, or to the one it names, unless it would carry private words there."""
    files = [each.removeprefix("file:") for each in arguments.files or ()]
    ahead = cast("AheadOfSend | None", hand.prepared)
    what = draft_of(arguments) if ahead is None else ahead.what
    space_id = SpaceId(arguments.space_id) if arguments.space_id else _active(tx, hand)
    space = directory.require_member(tx, space_id, hand.agent_id)
    if hand.cut_by is None and (request := hand.stopped.get(space.id)) is not None:
        raise InvalidInput(stop_requests.refusal(request))
    attached = attaching.attachable(tx, hand.agent_id, files)
    if _just_said(tx, hand, space.id, what.text, {each.digest for each in attached}):
        raise InvalidInput("You have just said this here, and nobody has spoken since: it was not sent again.")
    stopped = privacy_guard.stopped_message(
        tx,
        hand.agent_id,
        hand.cycle_id,
        space.id,
        what,
        hand.events,
        hand.remembered,
        None if ahead is None else ahead.checked,
    )
    if stopped is None:
        stopped = privacy_guard.stopped_files(tx, hand.agent_id, hand.cycle_id, space.id, attached, hand.events)
    if stopped is not None:
        return Done(stopped.told)
    posting.prefetch_post(tx, space.id, hand.agent_id, hand.message_id)
    posted = posting.post(
        tx,
        space.id,
        hand.agent_id,
        what,
        id=hand.message_id,
        hop=hop_of_send(tx, hand.agent_id, space.id, hand.events, hand.shown),
        cycle_id=hand.cycle_id,
        answers=floor.asked_by(hand.events, space.id),
        outside=hand.outside,
        metadata=_metadata(tx, hand, space.id),
        files=files,
    )
    told = _told(success=True, messageId=posted.id)
    if hand.cut_by is not None:
        told = _told(success=True, messageId=posted.id, stopped=stop_requests.told_to_agent(hand.cut_by))
    return Done(told, changes=True, sent_to=space.name, sources=frozenset((space.id,)))


def _metadata(tx: Tx, hand: Hand, space_id: SpaceId) -> dict[str, JsonValue]:
    """What is to be known of the message: that a person stopped it, or which earlier answer it is another one to."""
    metadata: dict[str, JsonValue] = {}
    if hand.cut_by is not None:
        metadata[STOPPED] = {"by": hand.cut_by.by_id}
    earlier = ask_again.again_of(tx, hand.events, space_id, hand.agent_id, hand.cycle_id)
    if earlier is not None:
        metadata[AGAIN] = earlier
    return metadata


def _just_said(tx: Tx, hand: Hand, space_id: SpaceId, text: str, digests: AbstractSet[str | None]) -> bool:
    """Whether this cycle has said the same there, with the same files, and nobody anything since."""
    if hand.is_first:
        return False
    # The newest alone decides nearly always.
    newest = posting.messages_before(tx, space_id, posting.END, limit=1)
    if not newest or newest[0].cycle_id != hand.cycle_id:
        return False
    for message in posting.messages_before(tx, space_id, posting.END, limit=_OWN_MESSAGES)[::-1]:
        if message.cycle_id != hand.cycle_id:
            return False
        if message.text == text and {each.digest for each in message.files} == digests:
            return True
    return False


def read_messages(tx: Tx, hand: Hand, arguments: ReadMessages) -> Done:
    """A page of a space's messages."""
    space_id = SpaceId(arguments.space_id) if arguments.space_id else _active(tx, hand)
    space = directory.require_member(tx, space_id, hand.agent_id)
    # Models write numbers that are too large for a database.
    if arguments.after is not None:
        page = posting.messages_after(tx, space.id, min(arguments.after, posting.END), limit=arguments.limit)
    else:
        before = min(arguments.before or posting.END, posting.END)
        page = posting.messages_before(tx, space.id, before, limit=arguments.limit)
    shown = format_transcript(space, page, reader=hand.agent_id)
    return Done(
        shown, sources=frozenset((space.id,)), outside=distinct(_outside_of(each) for each in page if each.outside)
    )


def _outside_of(message: Message) -> Source:
    return source_of_author(message.author_kind, message.author_id)


def read_entry(tx: Tx, hand: Hand, arguments: ReadEntry) -> Done:
    """A piece of a text that was cut, or of one of the agent's own lists, from the given character on."""
    whole = _whole_text(tx, hand, arguments.entry.strip())
    text = whole.content
    if whole.picture:
        return whole
    if arguments.offset >= len(text) > 0:
        raise InvalidInput(f"{arguments.entry} has {len(text):,} characters; there is nothing at {arguments.offset:,}.")
    room = max(hand.characters - 200, 200)
    end = min(arguments.offset + room, len(text))
    header = f"[{arguments.entry}: characters {arguments.offset:,} to {end:,} of {len(text):,}]\n"
    more = f'\n… [read_entry("{arguments.entry}", offset={end}) shows more]' if end < len(text) else ""
    return Done(header + text[arguments.offset : end] + more, sources=whole.sources, outside=whole.outside)


def _whole_text(tx: Tx, hand: Hand, pointer: str) -> Done:
    """The text, the spaces that it comes from, and its sources if it is from outside."""
    kind, _, id = pointer.partition(":")
    text: str | None = None
    sources: frozenset[str] = frozenset()
    outside: tuple[Source, ...] = ()
    # A result of the agent's own past adds nothing: the agent's mind is marked for it already.
    if kind == "result":
        text, cycle_id = log.long_text(tx, hand.agent_id, id)
        sources = privacy.sources_of(tx, cycle_id)
    elif kind == "log":
        text, sources = _logged(tx, hand, id)
    elif kind == "message":
        message = posting.get_readable(tx, MessageId(id), hand.agent_id)
        text, sources = message.text, frozenset((message.space_id,))
        outside = (_outside_of(message),) if message.outside else ()
    elif kind == "file":
        return _read_file(tx, hand, id)
    elif kind == "skill":
        return skills.read_skill(tx, hand, id)
    elif kind == "event":
        event = delivery.find(tx, hand.agent_id, id)
        if event is not None:
            text, sources = entry_text(event), privacy.sources_of_event(event)
            outside = sources_of_events([event])
    elif kind == "cycles" and (before := _NEWEST if not id else _number(id)) is not None:
        return self_view.read_cycles(tx, hand, before)
    elif pointer in _LISTS:
        return _LISTS[pointer](tx, hand)
    if text is None:
        raise NotFound("entry", pointer)
    return Done(text, sources=sources, outside=outside)


def _read_file(tx: Tx, hand: Hand, pointer: str) -> Done:
    """The text of a file, or of some of its pages (`id:3`, `id:3-5`).

    Somebody other than its sender may have written it: it is text from outside.
    """
    id, _, wanted = pointer.partition(":")
    file = attaching.readable(tx, id, hand.agent_id)
    spaces = frozenset(() if file.message_id is None else (posting.get_message(tx, file.message_id).space_id,))
    pages = storing.pages_of(tx, file)
    if not pages:
        picture = picture_lines.picture_of(tx, file) if hand.sees else None
        if picture is None:
            return Done(f"{_why_unread(tx, file)}\n{_how_to_send(file)}", sources=spaces)
        told = f"{picture.line()}\nThe picture is shown below.\n{_how_to_send(file)}"
        return Done(told, sources=spaces, outside=(Source("file", file.name),), picture=True)
    first, last = _page_range(wanted, len(pages))
    shown = pages[first - 1 : last]
    if kind_of(file.name, file.media_type) in _PAGED:
        shown = [f"[page {number} of {len(pages)}]\n{text}\n\n" for number, text in enumerate(shown, start=first)]
    text = f"{_how_to_send(file)}\n{''.join(shown)}"
    return Done(text, sources=spaces, outside=(Source("file", file.name),))


_PAGED: Final = frozenset({"pdf", "slides", "sheets"})
"""Kinds of files that have pages of their own: their numbers are shown."""


def _page_range(wanted: str, pages: int) -> tuple[int, int]:
    """The first and the last page that is asked for."""
    if not wanted:
        return 1, pages
    start, dash, end = wanted.partition("-")
    first = _number(start.strip())
    last = _number(end.strip()) if dash else first
    if first is None or last is None or not 1 <= first <= last or first > pages:
        raise InvalidInput(f'The file has pages 1 to {pages}. Read them as "file:…:1" or "file:…:1-{pages}".')
    return first, min(last, pages)


def _why_unread(tx: Tx, file: File) -> str:
    """What an agent is told of a file without text."""
    about = f"{quoted_name(file.name)} ({file.media_type}, {human_size(file.size)})"
    read = storing.reading_of(tx, file)
    match read.state:
        case "waiting":
            return f"{about} is still being read. Try again later."
        case "unreadable":
            return f"{about} is unreadable: {read.trouble}."
        case "done" if read.width is not None:
            return f"{about} is a picture, and your model does not see pictures. Ask somebody what it shows."
        case _:
            return f"{about} has no text that can be read."


def _how_to_send(file: File) -> str:
    return f'[send_message with files=["{file.id}"] sends it to people]'


_LISTS: Final[Mapping[str, Callable[[Tx, Hand], Done]]] = {
    INBOX: self_view.read_inbox,
    "memories": planning.read_memories,
    "plans": planning.read_plans,
}
"""The lists that can be read by name."""


def _number(text: str) -> int | None:
    """The number; None if it is not one, or too large for a database."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _logged(tx: Tx, hand: Hand, id: str) -> tuple[str | None, frozenset[str]]:
    """A tool result that the window shows shortened, by the number of its entry and its position there."""
    seq, position = (_number(each) for each in id.partition(":")[::2])
    if seq is None or position is None:
        return None, frozenset()
    text, cycle_id = log.result_text(tx, hand.agent_id, seq, position)
    return text, privacy.sources_of(tx, cycle_id)


def skip(_tx: Tx, _hand: Hand, _arguments: Skip) -> Done:
    """Never runs: the step loop ends the cycle before any call of that response does."""
    raise InvalidInput("skip ends a cycle; it cannot be carried out.")


def _active(tx: Tx, hand: Hand) -> SpaceId:
    if hand.active_space_id is not None:
        return hand.active_space_id
    if directory.count_spaces(tx, hand.agent_id) == 0:
        raise InvalidInput(
            "You are not a member of any space, so you cannot send or read messages. Somebody has to add you to one."
        )
    match len({event.space_id for event in hand.events if event.space_id is not None}):
        case 0:
            why = "the events come from no space"
        case 1:
            why = "you are no longer a member of the space that the events come from"
        case _:
            why = "the events come from several spaces"
    raise InvalidInput(f"No space is active: {why}. Name one of your spaces in space_id.")


def _told(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


SEND: Final = OwnTool(
    SEND_MESSAGE,
    "Say something, in the current space or another.",
    SendMessage,
    send_message,
    shown=("space_id", "text"),
)
READ_ENTRY: Final = OwnTool(
    "read_entry",
    'Show a cut text by its pointer, or "inbox", "plans", "memories", "cycles".',
    ReadEntry,
    read_entry,
    reads=True,
)
SKIP_TOOL: Final = OwnTool(SKIP, "No event is meant for you: end without a trace. Call it first and alone.", Skip, skip)


def read_entry_tool(db: Database) -> OwnTool[ReadEntry]:
    """The tool that waits a little for a file that is just being read."""

    async def prepare(agent_id: AgentId, arguments: ReadEntry, _audience: frozenset[str]) -> None:
        kind, _, id = arguments.entry.strip().partition(":")
        if kind == "file":
            with suppress(NotFound):  # the model is told when the call is carried out
                file = await db.read(attaching.readable, id.partition(":")[0], agent_id)
                await extracting.wait_until_read(db, [file.content_id])

    return replace(READ_ENTRY, prepare=prepare)


def small_tools(reading: OwnTool[ReadEntry], recalling: OwnTool[Recall]) -> tuple[OwnTool[Any], ...]:
    """The tools of the small profile, with the arguments that a small model needs."""
    return (
        # A space id is two thirds of a short answer, and a small model copies one wherever it can. It can still name a
        # space, and is told to where that is needed.
        replace(SEND, description="Say something in the current space.", shown=("text",)),
        replace(reading, description="Show a cut text by its pointer."),
        replace(recalling, shown=("query",)),
        replace(SET_TIMER, description="Be woken later, once.", shown=("reason", "after")),
        replace(SKIP_TOOL, shown=()),
    )


PREBUILT: Final = (
    OwnTool(ENTER_SPACE, "Make a space the current one.", EnterSpace, enter_space),
    SEND,
    OwnTool(
        "read_messages",
        "Read a space: its newest messages, or those before or after a number.",
        ReadMessages,
        read_messages,
        reads=True,
    ),
    READ_ENTRY,
    *RECALLING,
    *PLANNING,
    SKIP_TOOL,
)
