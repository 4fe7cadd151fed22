"""The tools every agent has. Each checks its arguments exactly, and membership before anything is read or said."""

from __future__ import annotations

import json
from typing import Final

from pydantic import Field

from denizen.consciousness import log, privacy
from denizen.errors import InvalidInput, NotFound
from denizen.ids import MessageId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.format import entry_text
from denizen.inbox.sources import Source, distinct, source_of_author, sources_of_events
from denizen.spaces import directory, floor, posting
from denizen.spaces.posting import Message
from denizen.spaces.transcript import format_transcript
from denizen.storage.database import Tx
from denizen.tools import guard
from denizen.tools.hops import hop_of_send
from denizen.tools.looking import LOOKING
from denizen.tools.planning import PLANNING
from denizen.tools.recalling import RECALLING
from denizen.tools.tool import Arguments, Done, Hand, OwnTool

SKIP: Final = "skip"
SEND_MESSAGE: Final = "send_message"
ENTER_SPACE: Final = "enter_space"


class EnterSpace(Arguments):
    space_id: str = Field(description="The id of the space, as it stands in the inbox or in your list of spaces.")


class SendMessage(Arguments):
    space_id: str | None = Field(
        default=None, description="Another of your spaces to say it in, before the text; by default the one you are in."
    )
    text: str = Field(description="What you want to say, in Markdown. @handle mentions someone.")


class ReadMessages(Arguments):
    space_id: str | None = Field(default=None, description="The space to read; by default the one you are in.")
    before: int | None = Field(default=None, ge=1, description="Only messages before this number.")
    after: int | None = Field(default=None, ge=0, description="Only messages after this number.")
    limit: int = Field(default=20, ge=1, le=100, description="How many messages at most.")


class ReadEntry(Arguments):
    entry: str = Field(description="The pointer of a text that was cut, as it was shown.")
    offset: int = Field(default=0, ge=0, description="From which character on.")


class Skip(Arguments):
    reason: str = Field(default="", description="Why, in a few words; for the internal record, shown to nobody.")


def enter_space(tx: Tx, hand: Hand, arguments: EnterSpace) -> Done:
    """The space is active: what is sent from now on goes there."""
    space = directory.require_member(tx, SpaceId(arguments.space_id), hand.agent_id)
    return Done(_told(success=True, spaceName=space.name), entered=space.id)


def send_message(tx: Tx, hand: Hand, arguments: SendMessage) -> Done:
    """The message stands in the active space, or in the one it names, unless it would carry private words there."""
    what = posting.draft(arguments.text)
    space_id = SpaceId(arguments.space_id) if arguments.space_id else _active(tx, hand)
    space = directory.require_member(tx, space_id, hand.agent_id)
    stopped = guard.crossing(tx, hand.agent_id, hand.cycle_id, space.id, what, hand.events, hand.remembered)
    if stopped is not None:
        return Done(stopped.told)
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
    )
    told = _told(success=True, messageId=posted.id)
    return Done(told, changes=True, sent_to=space.name, sources=frozenset((space.id,)))


def read_messages(tx: Tx, hand: Hand, arguments: ReadMessages) -> Done:
    """A page of what was said in a space."""
    space_id = SpaceId(arguments.space_id) if arguments.space_id else _active(tx, hand)
    space = directory.require_member(tx, space_id, hand.agent_id)
    # Models write numbers that no database takes.
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
    """A piece of a text that was cut, from the given character on."""
    text, sources, outside = _whole_text(tx, hand, arguments.entry)
    if arguments.offset >= len(text) > 0:
        raise InvalidInput(f"{arguments.entry} has {len(text):,} characters; there is nothing at {arguments.offset:,}.")
    room = max(hand.characters - 200, 200)
    end = min(arguments.offset + room, len(text))
    header = f"[{arguments.entry}: characters {arguments.offset:,} to {end:,} of {len(text):,}]\n"
    more = f'\n… [read_entry("{arguments.entry}", offset={end}) shows more]' if end < len(text) else ""
    return Done(header + text[arguments.offset : end] + more, sources=sources, outside=outside)


def _whole_text(tx: Tx, hand: Hand, pointer: str) -> tuple[str, frozenset[str], tuple[Source, ...]]:
    """The text, the spaces that it comes from, and where it comes from if it is from outside."""
    kind, _, id = pointer.partition(":")
    text: str | None = None
    sources: frozenset[str] = frozenset()
    outside: tuple[Source, ...] = ()
    # A result of the agent's own past adds nothing: whatever that held, its mind has held ever since.
    if kind == "result":
        text, cycle_id = log.long_text(tx, hand.agent_id, id)
        sources = privacy.sources_of(tx, cycle_id)
    elif kind == "log":
        text, sources = _logged(tx, hand, id)
    elif kind == "message":
        message = posting.get_readable(tx, MessageId(id), hand.agent_id)
        text, sources = message.text, frozenset((message.space_id,))
        outside = (_outside_of(message),) if message.outside else ()
    elif kind == "event":
        event = delivery.find(tx, hand.agent_id, id)
        if event is not None:
            text, sources = entry_text(event), privacy.sources_of_event(event)
            outside = sources_of_events([event])
    if text is None:
        raise NotFound("entry", pointer)
    return text, sources, outside


def _logged(tx: Tx, hand: Hand, id: str) -> tuple[str | None, frozenset[str]]:
    """A tool result that the window shows shortened, by the number of its entry and its position there."""
    seq, _, position = id.partition(":")
    # Longer numbers are no numbers of entries, and more than a database takes.
    if not all(each.isascii() and each.isdigit() and len(each) < 16 for each in (seq, position)):
        return None, frozenset()
    text, cycle_id = log.result_text(tx, hand.agent_id, int(seq), int(position))
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
    raise InvalidInput(f"No space is active: {why}. Call enter_space first, or name one of your spaces in space_id.")


def _told(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


PREBUILT: Final = (
    OwnTool(ENTER_SPACE, "Go to one of your spaces. What you send from now on goes there.", EnterSpace, enter_space),
    OwnTool(
        SEND_MESSAGE,
        "Say something in the space you are in, or in another of yours. This is how you speak to others.",
        SendMessage,
        send_message,
    ),
    OwnTool(
        "read_messages",
        "Read what was said in one of your spaces, newest page first; page back with `before`, on with `after`.",
        ReadMessages,
        read_messages,
    ),
    OwnTool("read_entry", "Read the rest of a text that was cut, by its pointer.", ReadEntry, read_entry),
    *LOOKING,
    *RECALLING,
    *PLANNING,
    OwnTool(
        SKIP,
        "Call this, alone and at once, when the inbox events are not for you and someone else will handle them. "
        "The cycle ends without a trace: nothing is sent and nothing is remembered of it. Where a person waits for "
        "your answer it is remembered, and the person is shown that you did not reply.",
        Skip,
        skip,
    ),
)
