"""Shows in rooms elsewhere that agents think and what they are writing; and here, who types there. For one bridge.

All of it is provisional: what agents say is sent by the outbox, whole and once, whatever became of this. A draft that
is kept there is noted in the database before it is shown, so that it is replaced or withdrawn whatever happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import bindparam, select

from denizen import failpoints
from denizen.bridges import addresses, drafts, registry
from denizen.bridges.port import Author, LiveAdapter, Outgoing, Writer
from denizen.bridges.registry import BridgeLease, Channel
from denizen.bus.port import Bus, Frame, Subscription
from denizen.bus.streams import (
    WANTED,
    CycleChanged,
    MessageCreated,
    StreamAborted,
    StreamDelta,
    StreamStarted,
    TypingElsewhere,
    agent_topic,
    from_payload,
    space_topic,
    wanted_payload,
)
from denizen.clock import SECOND, Clock
from denizen.errors import SubscriberTooSlow
from denizen.ids import AgentId, BridgeId, ChannelId, MessageId, SpaceId
from denizen.spaces import directory
from denizen.storage.database import Database, Tx, statement, storable, values
from denizen.storage.schema import events

DRAFT_SHOWN: Final = failpoints.declare("bridge.draft_shown")
"""Between showing a draft and storing under which id it is there."""
LOOK_SECONDS: Final = 30.0
"""New rooms and agents are noticed so soon."""
TYPING_SECONDS: Final = 4.5
"""Services show somebody as typing for five seconds or longer."""
HEARD_SECONDS: Final = 5.0
"""That somebody types there is told here at most so often."""
MOST_HEARD: Final = 100
"""So many accounts are heard typing at a time. Further ones are not looked up."""
DRAFT_SECONDS: Final = 1.5
"""A draft is changed at most so often."""
STALE_SECONDS: Final = 300.0
"""Text that has not grown for so long is withdrawn: its writer is gone."""

_at_work_in = statement(
    select(events.c.space_id).where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.state == "taken",
    )
)


@dataclass(eq=False)
class _Draft:
    """A message that an agent is writing."""

    id: MessageId
    agent_id: AgentId
    epoch: int
    author: Author
    rooms: list[Channel]
    heard_at: int
    text: str = ""
    shown: str = ""
    shown_at: int = 0
    there: dict[ChannelId, str | None] = field(default_factory=dict[ChannelId, "str | None"])
    """The ids of the drafts, by channel, once they may be there."""
    over: bool = False
    showing: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class _Around:
    """The rooms of the bridge, and the agents in their spaces."""

    channels: list[Channel]
    agents: dict[AgentId, Author]


def _look_around(tx: Tx, held: BridgeLease) -> _Around:
    channels = [each for each in registry.channels_of(tx, held.bridge_id) if each.joined]
    members = [each.entity for space in {each.space_id for each in channels} for each in directory.members(tx, space)]
    agents = {each.id: Author(each.name, each.handle or "", each.kind) for each in members if each.kind == "agent"}
    return _Around(channels, agents)


def _at_work(tx: Tx, agent_id: AgentId) -> set[SpaceId]:
    """The spaces whose messages the agent is thinking about."""
    return set(values(tx, _at_work_in, agent_id=agent_id))


def _known_typists(tx: Tx, bridge_id: BridgeId, typists: Iterable[tuple[SpaceId, Writer]]) -> list[TypingElsewhere]:
    """Those who are known by their accounts and are in the space."""
    found: list[TypingElsewhere] = []
    for space_id, who in typists:
        address = addresses.find(tx, bridge_id, storable(who.account))
        author = None if address is None else addresses.author(tx, address, who, space_id)
        if author is not None and directory.is_member(tx, space_id, author):
            found.append(TypingElsewhere(space_id, directory.get_entity(tx, author).name, who.account))
    return found


class LiveRooms:
    """Runs as long as this process carries the bridge's messages."""

    def __init__(
        self,
        db: Database,
        bus: Bus,
        clock: Clock,
        lease: BridgeLease,
        adapter: LiveAdapter,
        hint_sending: Callable[[], None],
    ) -> None:
        self._db, self._bus, self._clock = db, bus, clock
        self._lease, self._adapter, self._hint_sending = lease, adapter, hint_sending
        self._around = _Around([], {})
        self._drafts: dict[MessageId, _Draft] = {}
        self._typing: dict[tuple[str, AgentId], int] = {}
        """When to show again that an agent types in a room."""
        self._stopped: list[tuple[str, AgentId]] = []
        self._heard: dict[tuple[str, str], int] = {}
        """When it was last heard that an account types in a room."""
        self._typists: list[tuple[str, Writer]] = []
        """Who is to be told of."""
        self._changed = asyncio.Event()
        self._look_at = 0
        self._frames: Subscription | None = None

    @property
    def has_drafts(self) -> bool:
        return bool(self._drafts)

    async def run(self) -> None:
        """Show what happens, until cancelled."""
        # Those of the process that carried the bridge before. If a message comes after all, it is sent as a new one.
        await self._db.write(drafts.abandon, self._lease)
        self._hint_sending()
        self._around = await self._db.read(_look_around, self._lease)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_showing(), name="showing what happens")
            while True:
                async with self._bus.subscribe(*self._topics(), limit=10_000) as self._frames:
                    if self._adapter.drafts != "none":
                        # What is being written already is told from its beginning.
                        self._bus.publish(WANTED, wanted_payload({each.space_id for each in self._around.channels}))
                    try:
                        async for item in self._frames:
                            if isinstance(item, Frame):
                                await self._hear(item.payload)
                        return
                    except SubscriberTooSlow:
                        continue

    def _topics(self) -> Iterable[str]:
        spaces = self._around.channels if self._adapter.drafts != "none" else []
        return {*(space_topic(each.space_id) for each in spaces), *(agent_topic(each) for each in self._around.agents)}

    # What happens here

    async def _hear(self, payload: dict[str, Any]) -> None:
        match frame := from_payload(payload):
            case CycleChanged():
                await self._hear_cycle(frame)
            case StreamStarted():
                self._begin(frame)
            case StreamDelta():
                self._extend(frame)
            case StreamAborted():
                gone = [
                    each.id
                    for each in self._drafts.values()
                    if each.agent_id == frame.agent
                    and (each.id == frame.id or (frame.id is None and each.epoch < frame.epoch))
                ]
                for each in gone:
                    await self._abandon(each)
            case MessageCreated():
                await self.finish(frame.id)
            case _:
                pass

    async def _hear_cycle(self, frame: CycleChanged) -> None:
        if frame.what == "step":
            return
        self._stop_typing([each for each in self._typing if each[1] == frame.agent])
        if frame.what in ("opened", "resumed"):
            spaces = await self._db.read(_at_work, frame.agent)
            rooms = [each.room for each in self._around.channels if each.space_id in spaces]
            self._typing |= {(room, frame.agent): 0 for room in rooms}
        self._changed.set()

    def _stop_typing(self, whom: Iterable[tuple[str, AgentId]]) -> None:
        for each in whom:
            del self._typing[each]
            self._stopped.append(each)

    def _begin(self, frame: StreamStarted) -> None:
        author = self._around.agents.get(frame.agent)
        rooms = [each for each in self._around.channels if each.space_id == frame.space]
        if author is None or not rooms or frame.id in self._drafts:
            return
        now = self._clock.now()
        self._drafts[frame.id] = _Draft(frame.id, frame.agent, frame.epoch, author, rooms, heard_at=now)

    def _extend(self, frame: StreamDelta) -> None:
        draft = self._drafts.get(frame.id)
        if draft is not None and frame.offset <= len(draft.text):
            draft.text = draft.text[: frame.offset] + frame.text
            draft.heard_at = self._clock.now()
            self._changed.set()

    async def finish(self, message_id: str) -> None:
        """Stop showing this text: after this returns, nothing is written over the message."""
        draft = self._drafts.get(MessageId(message_id))
        if draft is not None:
            draft.over = True
            # Forgotten only then: whoever else wants to finish it has to wait for what is being shown, too.
            async with draft.showing:
                self._drafts.pop(draft.id, None)

    async def _abandon(self, message_id: MessageId) -> None:
        await self.finish(message_id)
        await self._db.write(drafts.abandon, self._lease, message_id)
        self._hint_sending()

    def note_spoken(self, room: str, handle: str) -> None:
        """Somebody's message is sent to the room: they no longer type there, until they think again."""
        agents = self._around.agents
        self._stop_typing([each for each in self._typing if each[0] == room and agents[each[1]].handle == handle])

    # What happens there

    def hear_typing(self, room: str, who: Writer) -> None:
        """Have the people here told that somebody types there, if it is one of them and they were not told just now."""
        now, key = self._clock.now(), (room, who.account)
        self._heard = {each: at for each, at in self._heard.items() if 0 <= now - at < HEARD_SECONDS * SECOND}
        if key not in self._heard and len(self._heard) < MOST_HEARD:
            self._heard[key] = now
            self._typists.append((room, who))
            self._changed.set()

    async def _tell_who_types(self) -> None:
        typists, self._typists = self._typists, []
        spaces = {each.room: each.space_id for each in self._around.channels}
        known = [(spaces[room], who) for room, who in typists if room in spaces]
        for frame in await self._db.read(_known_typists, self._lease.bridge_id, known) if known else ():
            self._bus.publish(space_topic(frame.space), frame.to_payload())

    # Showing

    async def _keep_showing(self) -> None:
        while True:
            self._changed.clear()
            await self._clock.wait(self._changed, await self._show())

    async def _show(self) -> float:
        """Show what is to be shown now. Returns in how many seconds there may be more."""
        await self._tell_who_types()
        now = self._clock.now()
        if now >= self._look_at:
            self._look_at = now + int(LOOK_SECONDS * SECOND)
            self._around = await self._db.read(_look_around, self._lease)
            if self._frames is not None:
                await self._frames.follow(*self._topics())
        for each in [each for each in self._drafts.values() if now - each.heard_at > STALE_SECONDS * SECOND]:
            await self._abandon(each.id)
        stopped, self._stopped = self._stopped, []
        due = [each for each, at in self._typing.items() if at <= now]
        self._typing |= dict.fromkeys(due, now + int(TYPING_SECONDS * SECOND))
        grown = [each for each in self._drafts.values() if each.text != each.shown and not each.over]
        ready = [each for each in grown if now - each.shown_at >= DRAFT_SECONDS * SECOND]
        await asyncio.gather(
            *[self._show_typing(*each, typing=False) for each in stopped if each not in self._typing],
            *[self._show_typing(*each, typing=True) for each in due],
            *[self._show_draft(each) for each in ready],
        )
        waiting = [each.shown_at + int(DRAFT_SECONDS * SECOND) for each in grown if each not in ready]
        return max((min([self._look_at, *self._typing.values(), *waiting]) - now) / SECOND, 0.0)

    async def _show_typing(self, room: str, agent_id: AgentId, *, typing: bool) -> None:
        author = self._around.agents.get(agent_id)
        if author is not None:
            await self._adapter.show_typing(room, author, typing=typing)

    async def _show_draft(self, draft: _Draft) -> None:
        draft.shown, draft.shown_at = draft.text, self._clock.now()
        async with draft.showing:
            for channel in draft.rooms:
                if not draft.over:
                    await self._show_in(channel, draft)

    async def _show_in(self, channel: Channel, draft: _Draft) -> None:
        is_kept, is_first = self._adapter.drafts == "kept", channel.id not in draft.there
        if is_kept and is_first and not await self._db.write(drafts.begin_draft, self._lease, channel, draft.id):
            draft.over = True
            return
        before = draft.there.get(channel.id)
        if is_kept and not is_first and before is None:
            return  # It is not known whether it is there: a second one would be worse.
        author = draft.author
        what = Outgoing(
            drafts.draft_id(draft.id, channel.id),
            "post",
            channel.room,
            text=draft.shown,
            author=author.name,
            author_handle=author.handle,
            author_kind=author.kind,
            of=before,
        )
        shown = await self._adapter.show_draft(what)
        failpoints.reach(DRAFT_SHOWN)
        if is_first:
            draft.there[channel.id] = shown
            if is_kept and shown is not None:
                await self._db.write(drafts.note_draft, self._lease, channel, draft.id, shown)
