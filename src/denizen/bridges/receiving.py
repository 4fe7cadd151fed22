"""Turns events of other services into messages, each once: its id there is stored with the message.

The cursor of the room is stored in the same transaction. An event that cannot become anything (it changes a message
that nobody carried, its writer was removed) is noted and holds up nothing. Where a room holds many conversations, each
becomes a space of its own, with the agents of the space that the room is connected with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from pydantic import JsonValue
from sqlalchemy import bindparam, func, select

from denizen import failpoints
from denizen.access.requesters import THIS_PROCESS
from denizen.agents import messaging
from denizen.bridges import addresses, registry
from denizen.bridges.addresses import displayable
from denizen.bridges.port import (
    BridgeSettings,
    Incoming,
    IncomingDeletion,
    IncomingEdit,
    IncomingFile,
    IncomingMessage,
    IncomingReaction,
    Thread,
    Writer,
)
from denizen.bridges.registry import Bridge, BridgeLease, Channel
from denizen.clock import LATEST, SECOND, Instant, moment
from denizen.errors import InvalidInput, LeaseLost, NotAllowed, NotAMember, NotFound
from denizen.forgetting import changing
from denizen.ids import AgentId, BridgeId, ChannelId, EntityId, FileId, MessageId, new_id
from denizen.spaces import directory, posting, reactions_and_pins
from denizen.spaces.posting import MESSAGE_CHARACTERS, Draft
from denizen.storage.database import (
    Database,
    Tx,
    insert_into,
    select_where,
    statement,
    storable,
    update_where,
    value,
    values,
)
from denizen.storage.schema import carried, channels, memberships, messages, spaces
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

OUTSIDE_ID_CHARACTERS: Final = 500
RECEIVED: Final = failpoints.declare("bridge.received")
"""Between reading an event elsewhere and storing it."""
BRIDGE: Final = "bridge"
"""Metadata key of a message that came from elsewhere."""
READERS: Final = "readers"
TITLE: Final = "title"
LOOP_MESSAGES: Final = 30
"""After so many messages of a conversation, or conversations of a writer, within an hour, the next ones wake nobody:
programs answer each other."""

_KEYS: Final = UUID("5b7e36ab-0f0e-4b58-9f4e-0c6a5f9d2c11")
"""Under which the id of an event and the position of a file become the id of the file."""
_CUT: Final = "\n\n[The rest was cut off: the message was too long.]"

StoreFile = Callable[[EntityId, IncomingFile, FileId], Awaitable[object]]
"""Uploads a file in the name of its writer, under this id; once, however often it is called."""

_lock_space = select_where(spaces, "id", "id", for_update=True)
_known = select_where(carried, "message_id, emoji, direction, reactor_id", "channel_id, outside_id")
_note = insert_into(carried, "channel_id", "outside_id", "message_id", "emoji", "direction", "created_at", "reactor_id")
_set_cursor = update_where(channels, "id", set_="cursor")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an event came from: the room, how far it is read with the event, and the lease of its reader."""

    bridge_id: BridgeId
    room: str
    cursor: str | None = None
    lease: BridgeLease | None = None
    """None: the service has sent it itself, and nobody needs a lease."""


class Receiver:
    """Takes events from elsewhere into spaces."""

    def __init__(self, db: Database, store: StoreFile) -> None:
        self._db = db
        self._store = store

    async def receive(self, origin: Origin, event: Incoming) -> None:
        """Let the event become what it is here, once. Raises `NotFound` if the room is not bound to a space, and
        `LeaseLost`.
        """
        try:
            what, files, missing = None, (), ()
            _checked(event.writer.account)
            if isinstance(event, IncomingMessage) and event.files:
                files, missing = await self._upload(origin, event)
            if isinstance(event, IncomingMessage | IncomingEdit):
                what = await posting.draft_off_loop(shortened(event.text, missing), with_files=True)
            failpoints.reach(RECEIVED)
            await self._db.write(take_in, origin, event, what, files)
        except (InvalidInput, NotAllowed, NotAMember, NotFound) as error:
            # This event cannot become anything here; the next ones can.
            log_line.info("event from elsewhere left out", bridge=origin.bridge_id, error=error.code)
            await self._db.write(leave_out, origin, event.id)

    async def _upload(self, origin: Origin, event: IncomingMessage) -> tuple[tuple[FileId, ...], tuple[str, ...]]:
        """Returns the files, and why others could not be stored: the message is there without them."""
        author = await self._db.write(admit, origin, event)
        stored: list[FileId] = []
        missing: list[str] = []
        for at, file in enumerate(event.files):
            file_id = FileId(str(uuid5(_KEYS, f"{origin.bridge_id} {origin.room} {event.id} {at}")))
            try:
                if file.problem is not None:
                    raise InvalidInput(file.problem)
                await self._store(author, file, file_id)
                stored.append(file_id)
            except InvalidInput as error:
                missing.append(f"[A file is missing: {storable(str(error))}]")
        return tuple(stored), tuple(missing)


def shortened(text: str, more: Sequence[str] = ()) -> str:
    """The text with these lines after it, cut to the length of a message. Pure."""
    text = storable(text)
    after = "".join(f"\n\n{each}" for each in more)
    if len(text) + len(after) > MESSAGE_CHARACTERS:
        text = text[: MESSAGE_CHARACTERS - len(_CUT) - len(after)] + _CUT
    return (text + after).strip() if more else text


def is_history(sent_at: Instant | None, now: int, settings: BridgeSettings) -> bool:
    """Whether a message is so old that it is read as history. Pure."""
    return sent_at is not None and now - sent_at > settings.history_minutes * 60 * SECOND


def admit(tx: Tx, origin: Origin, event: IncomingMessage) -> EntityId:
    """The author of the message, who is in the space then. Raises `InvalidInput` if they were removed."""
    bridge, channel = _channel(tx, origin)
    return _admit(tx, bridge, _place(tx, bridge, channel, event), event.writer)


def take_in(tx: Tx, origin: Origin, event: Incoming, what: Draft | None, files: Sequence[FileId]) -> None:
    """Let the event become what it is in the space of its room, unless it has before; and store the cursor."""
    bridge, channel = _channel(tx, origin)
    outside_id = _checked(event.id)
    if tx.one(_known, channel_id=channel.id, outside_id=outside_id) is None:
        place = _place(tx, bridge, channel, event) if isinstance(event, IncomingMessage) else channel
        result = _apply(tx, bridge, place, event, what, files)
        for each in {channel.id, place.id}:  # In the room, too: there it is looked for.
            _note_carried(tx, each, outside_id, result)
    _advance(tx, channel, origin)
    registry.note_received(tx, origin.bridge_id)


def leave_out(tx: Tx, origin: Origin, outside_id: str) -> None:
    """Note that the event came and became nothing."""
    _, channel = _channel(tx, origin)
    outside_id = storable(outside_id)[:OUTSIDE_ID_CHARACTERS]
    if tx.one(_known, channel_id=channel.id, outside_id=outside_id) is None:
        _note_carried(tx, channel.id, outside_id, _Result())
    _advance(tx, channel, origin)


def give_up(tx: Tx, origin: Origin, outside_id: str) -> None:
    """The same, for an event that ended in a defect again and again: the space of its room is told, once."""
    bridge, channel = _channel(tx, origin)
    is_known = tx.one(_known, channel_id=channel.id, outside_id=storable(outside_id)[:OUTSIDE_ID_CHARACTERS])
    leave_out(tx, origin, outside_id)
    if is_known is not None:
        return
    said = (
        f"{bridge.name} could not receive something that was written there. Read it there; the server's log says why."
    )
    posting.post_notice(tx, channel.space_id, bridge.entity_id, posting.draft(said), {"bridge": bridge.id})


def move_on(tx: Tx, origin: Origin) -> None:
    """Store how far the room was read, where nothing was written in it."""
    _, channel = _channel(tx, origin)
    _advance(tx, channel, origin)
    registry.note_received(tx, origin.bridge_id)


def _channel(tx: Tx, origin: Origin) -> tuple[Bridge, Channel]:
    """The bridge and the channel, both locked with the space: one event of a room is taken at a time."""
    registry.lock(tx, origin.bridge_id, origin.lease)
    channel = registry.find_channel(tx, origin.bridge_id, origin.room)
    if channel is None or not channel.joined:
        if origin.lease is not None:
            raise LeaseLost  # The channel was removed while it was read.
        raise NotFound("space that this room is connected with", origin.room)
    tx.one(_lock_space, id=channel.space_id)
    return registry.get(tx, origin.bridge_id), channel


def _advance(tx: Tx, channel: Channel, origin: Origin) -> None:
    if origin.cursor is not None and origin.cursor != channel.cursor:
        tx.run(_set_cursor, id=channel.id, cursor=origin.cursor)


@dataclass(frozen=True, slots=True)
class _Result:
    """What an event became: a message, or somebody's reaction to one; or it changed something that was there."""

    message_id: MessageId | None = None
    emoji: str | None = None
    reactor_id: EntityId | None = None


def _note_carried(tx: Tx, channel_id: ChannelId, outside_id: str, result: _Result) -> None:
    tx.run(
        _note,
        channel_id=channel_id,
        outside_id=outside_id,
        message_id=result.message_id,
        emoji=result.emoji,
        direction="in",
        created_at=tx.now,
        reactor_id=result.reactor_id,
    )


def _admit(tx: Tx, bridge: Bridge, channel: Channel, writer: Writer) -> EntityId:
    author = addresses.author(tx, addresses.meet(tx, bridge, writer), writer, channel.space_id)
    if not directory.is_member(tx, channel.space_id, author):
        directory.join(tx, channel.space_id, author)
    return author


def _apply(
    tx: Tx, bridge: Bridge, channel: Channel, event: Incoming, what: Draft | None, files: Sequence[FileId]
) -> _Result:
    match event:
        case IncomingMessage():
            assert what is not None
            return _Result(_post(tx, bridge, channel, event, what, files))
        case IncomingEdit():
            message_id, author = _changed(tx, bridge, channel, event.of, event.writer)
            assert what is not None
            changing.edit_message(tx, message_id, author, what, via=channel.id)
            return _Result()
        case IncomingDeletion():
            _delete(tx, bridge, channel, event)
            return _Result()
        case IncomingReaction():
            message_id, _ = _carried_message(tx, channel, event.of)
            author = _admit(tx, bridge, channel, event.writer)
            act = reactions_and_pins.take_reaction_back if event.removed else reactions_and_pins.react
            act(tx, message_id, author, event.emoji, via=channel.id)
            return _Result(message_id, storable(event.emoji), author)


def _post(
    tx: Tx, bridge: Bridge, channel: Channel, event: IncomingMessage, what: Draft, files: Sequence[FileId]
) -> MessageId:
    if not what.text.strip() and not files:
        raise InvalidInput("A message needs some text.")
    author, space_id = _admit(tx, bridge, channel, event.writer), channel.space_id
    settings = BridgeSettings.model_validate(_common(bridge))
    # A service may pass on any number that a writer has sent.
    sent_at = event.sent_at if event.sent_at is not None and 0 < event.sent_at <= LATEST else None
    old = is_history(sent_at, tx.now, settings)
    came: dict[str, JsonValue] = {"id": bridge.id, "name": bridge.name, "verified": event.writer.verified}
    came |= event.provenance
    if event.thread is not None:
        came |= {TITLE: event.thread.title, READERS: list(_readers(tx, channel, event))}
        old = old or _is_loop(tx, channel, author)
    if sent_at is not None:
        came["sent_at"] = moment(sent_at).isoformat()
    hop = 0
    if event.writer.bot:
        # It may have read everything here, so it is one more agent in a row.
        newest = posting.newest_of_others(tx, space_id, author, up_to=posting.END)
        hop = 1 + (0 if newest is None else newest.hop)
    replied = None if event.reply_to is None else _find_carried(tx, channel, event.reply_to)
    posted = messaging.post_message(
        tx,
        THIS_PROCESS.acting_as(author),
        space_id,
        what,
        reply_to=replied,
        metadata={BRIDGE: came},
        asked=_only_agent(tx, channel) if event.addressed and not event.writer.bot else None,
        files=files,
        hop=hop,
        via=channel.id,
        history_from=sent_at or tx.now if old or event.automatic else None,
    )
    return posted.id


def _common(bridge: Bridge) -> dict[str, object]:
    return {name: value for name, value in bridge.settings.items() if name in BridgeSettings.model_fields}


def _only_agent(tx: Tx, channel: Channel) -> AgentId | None:
    """The agent of the space, if there is one: it is meant by what is said to the bridge."""
    agents = [each.entity.id for each in directory.members(tx, channel.space_id) if each.entity.kind == "agent"]
    return agents[0] if len(agents) == 1 else None


# Conversations

_message_of = select_where(carried, "message_id", "channel_id, outside_id")
_newest_in = statement(
    select(carried.c.message_id)
    .join(messages, messages.c.id == carried.c.message_id)
    .where(carried.c.channel_id == bindparam("channel_id"), carried.c.direction == "in")
    .order_by(messages.c.seq.desc())
    .limit(20)
)
_came_since = select_where(
    carried, [func.count()], "channel_id", carried.c.direction == "in", carried.c.created_at > bindparam("since")
)
_begun_since = statement(
    select(func.count())
    .select_from(channels.join(memberships, memberships.c.space_id == channels.c.space_id))
    .where(
        memberships.c.entity_id == bindparam("entity_id"),
        channels.c.parent_id == bindparam("parent_id"),
        channels.c.created_at > bindparam("since"),
    )
)
_add_conversation = insert_into(channels, "id", "bridge_id", "space_id", "room", "parent_id", "created_at")


def conversation(tx: Tx, channel_id: ChannelId) -> Thread | None:
    """What the newest message from elsewhere tells of the conversation; None if there is none."""
    return next(_told(tx, channel_id), None)


def _told(tx: Tx, channel_id: ChannelId) -> Iterator[Thread]:
    """What the messages from elsewhere tell of the conversation, newest first."""
    for message_id in values(tx, _newest_in, channel_id=channel_id):
        found = posting.find_message(tx, message_id)
        came = {} if found is None else found.metadata.get(BRIDGE)
        if isinstance(came, dict) and isinstance(readers := came.get(READERS), list):
            yield Thread(str(came.get(TITLE) or ""), readers=tuple(str(each) for each in readers))


def _place(tx: Tx, bridge: Bridge, channel: Channel, event: IncomingMessage) -> Channel:
    """The channel of the message: that of its conversation, which begins now if it is new."""
    if event.thread is None:
        return channel
    for each in event.thread.refers_to:
        found = _conversation_of(tx, bridge, channel, each)
        # Only who has read of it goes on with it: others have the id of a message that was passed on to them.
        account = event.writer.account
        if found is not None and (event.automatic or any(account in each.readers for each in _told(tx, found.id))):
            return found
    if event.automatic:
        raise InvalidInput("A program has sent this, and nobody waits for an answer.")
    room = _checked(event.id)
    return registry.find_channel(tx, bridge.id, room) or _begin(tx, bridge, channel, event, room)


def _conversation_of(tx: Tx, bridge: Bridge, channel: Channel, outside_id: str) -> Channel | None:
    message_id = value(tx, _message_of, channel_id=channel.id, outside_id=storable(outside_id))
    message = None if message_id is None else posting.find_message(tx, message_id)
    if message is None:
        return None
    found = registry.channels_in(tx, bridge.id, message.space_id)
    return next((each for each in found if each.parent_id == channel.id and each.joined), None)


def _begin(tx: Tx, bridge: Bridge, channel: Channel, event: IncomingMessage, room: str) -> Channel:
    """A space for a new conversation: the writer's and of the agents of the connected space, as private as that."""
    assert event.thread is not None
    address = addresses.meet(tx, bridge, event.writer)
    if directory.has_left(tx, address.guest_id):
        raise InvalidInput("Its writer was removed from the organization.")
    name = displayable(event.thread.title) or displayable(event.writer.name) or displayable(event.writer.account)
    space = directory.create_space(tx, bridge.organization_id, name=name, private=channel.private)
    everybody = bool(bridge.settings.get("with_people"))
    for member in directory.members(tx, channel.space_id):
        if member.entity.kind == "agent" or (everybody and member.entity.kind == "human"):
            directory.join(tx, space.id, member.entity.id, role=member.role)
    directory.join(tx, space.id, bridge.entity_id)
    person = address.person_id
    if person is not None and event.writer.verified and not directory.has_left(tx, person):
        directory.join(tx, space.id, person, role="owner")  # They began it: nothing was said before.
    channel_id = ChannelId(new_id())
    tx.run(
        _add_conversation,
        id=channel_id,
        bridge_id=bridge.id,
        space_id=space.id,
        room=room,
        parent_id=channel.id,
        created_at=tx.now,
    )
    registry.mark_bridged(tx, space.id)
    return registry.get_channel(tx, channel_id)


def _readers(tx: Tx, channel: Channel, event: IncomingMessage) -> tuple[str, ...]:
    """Who reads the conversation from now on. A possible impostor adds nobody."""
    assert event.thread is not None
    if event.writer.verified and not event.automatic:
        return event.thread.readers
    before = conversation(tx, channel.id)
    return (event.writer.account,) if before is None else before.readers


def _is_loop(tx: Tx, channel: Channel, author: EntityId) -> bool:
    """Whether programs seem to answer each other: in this conversation, or by beginning ever new ones."""
    since = tx.now - 3600 * SECOND
    came = value(tx, _came_since, channel_id=channel.id, since=since) or 0
    begun = value(tx, _begun_since, parent_id=channel.parent_id, entity_id=author, since=since) or 0
    return came >= LOOP_MESSAGES or begun > LOOP_MESSAGES


def _changed(tx: Tx, bridge: Bridge, channel: Channel, of: str, writer: Writer) -> tuple[MessageId, EntityId]:
    """The message that this writer wrote before, and who it is by here."""
    message_id, direction = _carried_message(tx, channel, of)
    address = addresses.find(tx, bridge.id, writer.account)
    author = posting.get_message(tx, message_id).author_id
    if direction != "in" or address is None or not addresses.is_theirs(address, author):
        raise NotAllowed("Only its author may change a message.")
    return message_id, author


def _delete(tx: Tx, bridge: Bridge, channel: Channel, event: IncomingDeletion) -> None:
    """Delete what was written there, or take a reaction back. The service decides who may delete what there."""
    row = tx.one(_known, channel_id=channel.id, outside_id=storable(event.of))
    message_id, emoji, direction, reactor_id = row or (None, None, "in", None)
    if message_id is None or direction != "in":
        raise NotFound("message from this room", event.of)
    if emoji is not None:
        author = reactor_id or _admit(tx, bridge, channel, event.writer)
        reactions_and_pins.take_reaction_back(tx, message_id, author, emoji, via=channel.id)
        return
    author = posting.get_message(tx, message_id).author_id
    changing.delete_message(tx, message_id, author, via=channel.id)


def _carried_message(tx: Tx, channel: Channel, outside_id: str) -> tuple[MessageId, str]:
    row = tx.one(_known, channel_id=channel.id, outside_id=storable(outside_id))
    message_id, emoji, direction, _ = row or (None, None, "", None)
    if message_id is None or emoji is not None:
        raise NotFound("message from this room", outside_id)
    return message_id, direction


def _find_carried(tx: Tx, channel: Channel, outside_id: str) -> MessageId | None:
    """The message, if it was carried; a reply to one from before is a message of its own."""
    try:
        return _carried_message(tx, channel, outside_id)[0]
    except NotFound:
        return None


def _checked(outside_id: str) -> str:
    """The id of an event or account elsewhere, if it can be stored."""
    if not outside_id or len(outside_id) > OUTSIDE_ID_CHARACTERS or storable(outside_id) != outside_id:
        raise InvalidInput(f"An id from elsewhere has 1 to {OUTSIDE_ID_CHARACTERS} characters.")
    return outside_id
