"""The stream of a person: the messages of all their spaces, each once, those of a space in order.

The reader's position is all in the cursor that it sends: the number of the last message in each space. The person may
join and leave spaces meanwhile; the stream follows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import bindparam, select

from denizen.agents import registry, space_statuses
from denizen.agents.registry import Presence
from denizen.agents.space_statuses import ShownStatus
from denizen.bus.streams import (
    SPACES,
    WANTED,
    CallChanged,
    CycleChanged,
    MembershipChanged,
    MessageCreated,
    MessageDeleted,
    MessageEdited,
    MetadataUpdated,
    PanelChanged,
    PanelDelta,
    PersonNotice,
    ReplyChanged,
    RoundChanged,
    StanceChanged,
    StatusChanged,
    StreamFrame,
    StreamStarted,
    TypingElsewhere,
    agent_topic,
    entity_topic,
    space_topic,
    wanted_payload,
)
from denizen.bus.streams import SpaceChanged as SpaceChangedFrame
from denizen.bus.streams import SpaceRead as SpaceReadFrame
from denizen.errors import NotAMember
from denizen.ids import CallId, MessageId, SpaceId
from denizen.reflection.stance_store import AGENTS
from denizen.server.auth import Caller
from denizen.server.context import Context
from denizen.server.live import Live, LiveFrame
from denizen.server.metadata import metadata_update
from denizen.server.shapes.filling import filled
from denizen.server.shapes.stances import stance_out
from denizen.server.sse import ResumableEvent, Say, may, require_good
from denizen.server.streams import cursor
from denizen.server.streams.audience import SpaceReader
from denizen.server.streams.cursor import Ending
from denizen.server.streams.events import (
    StreamReady,
    call_event,
    change_event,
    live_event,
    message_json,
    typed_event,
    typing_event,
)
from denizen.server.streams.panel_events import Advising
from denizen.server.streams.space import PAGE
from denizen.server.streams.statuses import StatusFeed
from denizen.server.streams.told_calls import ToldCalls, in_order, split_at
from denizen.shapes.events import AgentStance, Notice, SpaceChanged, SpaceJoined, SpaceLeft, SpaceRead
from denizen.spaces import directory, posting
from denizen.spaces.directory import SpaceKind
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memberships, spaces
from denizen.tools import calls
from denizen.tools.calls import Call

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _FollowedSpace:
    id: SpaceId
    kind: SpaceKind
    name: str
    private: bool
    last_seq: int
    read_seq: int


@dataclass(frozen=True, slots=True)
class _Surroundings:
    places: dict[SpaceId, _FollowedSpace]
    agents: list[Presence]
    statuses: Mapping[SpaceId, list[ShownStatus]]


_places = statement(
    select(spaces.c.id, spaces.c.kind, spaces.c.name, spaces.c.private, spaces.c.last_seq, memberships.c.read_seq)
    .join(memberships, memberships.c.space_id == spaces.c.id)
    .where(memberships.c.entity_id == bindparam("entity_id"))
    .order_by(spaces.c.id)
)


def _look_around(tx: Tx, reader: SpaceReader) -> _Surroundings:
    require_good(tx, reader.token_id)
    found = {
        id: _FollowedSpace(id, kind, name, bool(private), last_seq, read_seq)
        for id, kind, name, private, last_seq, read_seq in tx.all(_places, entity_id=reader.entity_id)
    }
    agents = registry.around(tx, reader.entity_id)
    return _Surroundings(found, agents, space_statuses.in_spaces_of(tx, reader.entity_id, agents))


@dataclass(frozen=True, slots=True)
class _NewMessages:
    """The messages of a space after some number: the same for all readers."""

    messages: list[Message]
    events: dict[MessageId, ResumableEvent]
    statuses: list[ShownStatus] | None
    """What the space shows of its agents, if a person has said something: an agent that is busy elsewhere takes it up
    later.
    """


def _new_messages(tx: Tx, space_id: SpaceId, after: int) -> _NewMessages:
    found = posting.messages_after(tx, space_id, after, limit=PAGE)
    asked = any(each.author_kind == "human" for each in found)
    return _NewMessages(
        found,
        {each.id: ResumableEvent("message", message_json(each)) for each in found},
        space_statuses.in_space(tx, space_id) if asked else None,
    )


def _changed_message(tx: Tx, message_id: MessageId) -> bytes:
    return change_event(posting.get_message(tx, message_id))


def _nothing(tx: Tx) -> None:
    """Only whether the reader may read the space."""
    del tx


def _require(tx: Tx, reader: SpaceReader, space_id: SpaceId) -> None:
    """Raises unless the reader may read this space. Lost access is noticed in the next look around."""
    require_good(tx, reader.token_id)
    if not directory.is_member(tx, space_id, reader.entity_id):
        raise NotAMember("The reader has left the space.")


def _calls_since(
    tx: Tx, positions: Mapping[SpaceId, int], told: Mapping[SpaceId, ToldCalls]
) -> dict[SpaceId, list[Call]]:
    return {each: calls.since(tx, each, seq, known=told[each].waiting) for each, seq in positions.items()}


def _calls_waiting(tx: Tx, reader: SpaceReader, known: Sequence[CallId]) -> dict[SpaceId, list[Call]]:
    found: dict[SpaceId, list[Call]] = {}
    for each in calls.waiting_around(tx, reader.entity_id, known=known):
        assert each.space_id is not None
        found.setdefault(each.space_id, []).append(each)
    return found


class PersonFeed:
    """What one person is sent. `given` is the cursor of an earlier connection."""

    def __init__(self, context: Context, caller: Caller, given: Mapping[Ending, int], say: Say) -> None:
        self._runtime = context.runtime
        self._reads = context.shared_reads
        self._reader = SpaceReader(caller.entity.id, caller.token.id)
        self._given = dict(given)
        self._say = say
        self._live = Live()
        self._advising = Advising(self._runtime.db, self._read_in)
        self._statuses = StatusFeed()
        self._positions: dict[SpaceId, int] = {}
        self._calls: dict[SpaceId, ToldCalls] = {}
        self._read: dict[SpaceId, int] = {}
        """How far the person has read, as last sent."""
        self._by_topic: dict[str, SpaceId] = {}
        self.topics: frozenset[str] = frozenset()
        self._agents: list[Presence] = []
        self._panels: list[SpaceId] = []

    async def approach(self) -> None:
        self._follow(await self._runtime.db.read(_look_around, self._reader))

    def _follow(self, around: _Surroundings) -> None:
        self._agents = around.agents
        self._by_topic = {space_topic(each): each for each in around.places}
        agents = (agent_topic(each.agent_id) for each in around.agents)
        self.topics = frozenset({entity_topic(self._reader.entity_id), *self._by_topic, *agents})

    async def begin(self) -> None:
        around = await self._runtime.db.read(_look_around, self._reader)
        new = self._settle_in(around)
        told = [typed_event(_joined(each)) for each in new]
        self._read = {each.id: each.read_seq for each in around.places.values()}
        ready = StreamReady(spaces=[*around.places], read={**self._read})
        await self._say(b"".join([*told, typed_event(ready, self._cursor)]))
        await self._tell(around, await self._calls_since())
        await self._say_rounds()
        if any(each.status == "alive" for each in self._agents):
            # It may be writing: then the reader is sent the text from its beginning.
            self._want(self._positions)

    async def look(self) -> None:
        await self._look_around(await self._calls_waiting())
        await self._say_rounds()

    async def _look_around(self, found: Mapping[SpaceId, Sequence[Call]]) -> None:
        """Sends what is new in all spaces, and these calls."""
        around = await self._runtime.db.read(_look_around, self._reader)
        for gone in self._positions.keys() - around.places.keys():
            self._leave(gone)
            await self._say(typed_event(SpaceLeft(space=gone), self._cursor))
        for new in self._settle_in(around):
            await self._say(typed_event(_joined(new), self._cursor))
        await self._tell(around, {each: calls for each, calls in found.items() if each in self._calls})

    async def lose(self) -> None:
        await self._say_live(self._live.lost())
        await self._look_around(await self._calls_since())
        await self._say_rounds()
        self._want(self._positions)

    async def hear(self, topic: str, frame: StreamFrame) -> None:
        if isinstance(frame, CycleChanged) and not self._statuses.moved_by(frame):
            return  # Most frames of an agent: only the stream of the agent tells of its cycles.
        space_id = self._by_topic.get(topic)
        if space_id is None and topic.startswith(SPACES):
            return  # Of a space that the person has left.
        try:
            await self._hear(frame, space_id)
        except NotAMember:
            await self._look_around({})

    async def _hear(self, frame: StreamFrame, space_id: SpaceId | None) -> None:
        for each in self._statuses.moved_by(frame):
            await self._say_statuses(each)
        match frame:
            case MembershipChanged():
                await self._look_around({})
            case SpaceChangedFrame():
                await self._say_space(frame.space)
            case SpaceReadFrame():
                # The missed messages of the space come before how far it is read.
                await self._look_around({})
            case MessageCreated():
                if space_id is not None and frame.seq > self._positions[space_id]:
                    await self._catch_up(space_id)
            case MessageEdited() | MessageDeleted():
                # A message that the reader does not have yet comes as it is now.
                if space_id is not None and frame.seq <= self._positions[space_id]:
                    await self._say_changed(space_id, frame.id)
            case CallChanged():
                # It is announced by the space and by its agent.
                if space_id is not None:
                    await self._say_call(space_id, frame.id)
            case StatusChanged():
                if space_id is not None:
                    await self._say_statuses(space_id)
            case MetadataUpdated():
                if space_id is not None:
                    told = await self._read_shared(
                        space_id, ("metadata", repr(frame)), partial(_metadata_now, frame=frame)
                    )
                    await self._say(told)
            case TypingElsewhere():
                if space_id is not None:
                    await self._read_shared(space_id, "access", _nothing)
                    await self._say(typing_event(frame))
            case PersonNotice():
                await self._say(typed_event(Notice(kind=frame.kind, text=frame.text)))
            case StanceChanged():
                await self._say_stance(frame)
            case StreamStarted():
                # A person who left the space since the last message must not see the next one as it is written.
                if space_id is not None:
                    await self._read_shared(space_id, "access", _nothing)
                    await self._say_live(self._live.hear(frame, space_id))
            case PanelChanged() | RoundChanged() | ReplyChanged() | PanelDelta():
                if space_id is not None and (told := await self._advising.hear(frame)):
                    await self._say(told)
                if wanted := self._advising.wants:
                    self._want(wanted)
            case _:
                await self._say_live(self._live.hear(frame, space_id))
                if wanted := self._live.wanted():
                    self._want(wanted)

    async def _read_shared(self, space_id: SpaceId, what: Hashable, fn: Callable[[Tx], T]) -> T:
        """Reads something of a space that is the same for all its readers, if the person may read it."""
        return await self._reads.read(self._runtime.db, space_id, self._reader, what, fn)

    async def _read_in(
        self, space_id: SpaceId, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Reads something of a space if the person may read it."""

        def read(tx: Tx) -> T:
            _require(tx, self._reader, space_id)
            return fn(tx, *args, **kwargs)

        return await self._runtime.db.read(read)

    async def _say_rounds(self) -> None:
        """Sends the rounds in progress and those that have ended unnoticed; requests live text from its beginning."""
        if self._panels and (told := await self._advising.look(self._panels)):
            await self._say(told)
            self._want(self._panels)

    @property
    def _cursor(self) -> str:
        return cursor.encode(self._positions)

    def _settle_in(self, around: _Surroundings) -> list[_FollowedSpace]:
        """Gives every space a position; returns those that are new to the reader."""
        self._follow(around)
        self._panels = [each.id for each in around.places.values() if each.kind == "panel"]
        new: list[_FollowedSpace] = []
        for place in around.places.values():
            if place.id in self._positions:
                continue
            known = self._given.pop(cursor.ending(place.id), None)
            # A number that does not exist, as after a restored backup, would block the reader until it does.
            self._positions[place.id] = place.last_seq if known is None else min(known, place.last_seq)
            self._calls[place.id] = ToldCalls()
            new += [place] if known is None else []
        return new

    async def _calls_since(self) -> dict[SpaceId, list[Call]]:
        """Returns the calls that the reader may not have, by space."""
        return await self._runtime.db.read(_calls_since, dict(self._positions), dict(self._calls))

    async def _calls_waiting(self) -> dict[SpaceId, list[Call]]:
        """Returns the calls that wait for an answer, or that the reader has as waiting, by space."""
        known = [id for told in self._calls.values() for id in told.waiting]
        return await self._runtime.db.read(_calls_waiting, self._reader, known)

    def _leave(self, space_id: SpaceId) -> None:
        del self._positions[space_id]
        del self._calls[space_id]
        self._read.pop(space_id, None)
        self._statuses.leave(space_id)
        self._live.left(space_id)

    async def _tell(self, around: _Surroundings, found: Mapping[SpaceId, Sequence[Call]]) -> None:
        for place in around.places.values():
            since = found.get(place.id, ())
            if since or place.last_seq > self._positions[place.id]:
                try:
                    await self._catch_up(place.id, since)
                except NotAMember:
                    continue  # Since the look around; the next one sends it.
        await self._say_read(around)
        await self._say_live(self._live.seen(around.agents))
        told = [self._statuses.news(each, around.statuses.get(each, ())) for each in around.places]
        if any(told):
            await self._say(b"".join(told))

    async def _say_statuses(self, space_id: SpaceId) -> None:
        """Sends the statuses that the space shows of its agents."""
        in_space = partial(space_statuses.in_space, space_id=space_id)
        now = await self._read_shared(space_id, "statuses", in_space)
        if told := self._statuses.news(space_id, now):
            await self._say(told)

    async def _say_read(self, around: _Surroundings) -> None:
        """Sends how far the person has read in each space."""
        for place in around.places.values():
            if place.last_seq < self._positions[place.id]:
                continue  # There are newer messages since the look around: the next one sends it.
            # A new member has read what was posted before.
            if place.read_seq != self._read.get(place.id, place.last_seq):
                unread = max(place.last_seq - place.read_seq, 0)
                told = SpaceRead(space=place.id, read_seq=place.read_seq, last_seq=place.last_seq, unread=unread)
                await self._say(typed_event(told))
            self._read[place.id] = place.read_seq

    async def _catch_up(self, space_id: SpaceId, found: Sequence[Call] = ()) -> None:
        """Sends the missing messages of this space, and these calls, each after its message."""
        statuses: Sequence[ShownStatus] | None = None
        while True:
            after = self._positions[space_id]
            new = await self._read_shared(space_id, after, partial(_new_messages, space_id=space_id, after=after))
            messages, statuses = new.messages, new.statuses if new.statuses is not None else statuses
            if messages:
                self._calls[space_id].message_told()
            is_last = len(messages) < PAGE
            now, found = (found, ()) if is_last else split_at(found, messages[-1].seq)
            told: list[bytes] = []
            for each in in_order(messages, self._calls[space_id].new(now)):
                if isinstance(each, Call):
                    told.append(call_event(each))
                    continue
                self._live.said(each.id)
                self._positions[space_id] = each.seq
                if each.author_id == self._reader.entity_id:
                    # An author has read up to their own message: the message says that, too.
                    self._read[space_id] = each.seq
                told.append(new.events[each.id].with_id(self._cursor))
            if told:
                await self._say(b"".join(told))
            if is_last:
                break
        if statuses is not None and (news := self._statuses.news(space_id, statuses)):
            await self._say(news)

    async def _say_space(self, space_id: SpaceId) -> None:
        """Sends the space as it is now; its agents may have changed as well."""
        around = await self._runtime.db.read(_look_around, self._reader)
        place = around.places.get(space_id)
        if place is None:
            raise NotAMember("The reader has left the space.")
        self._follow(around)
        await self._say(typed_event(filled(SpaceChanged, place, space=space_id)))
        await self._say_live(self._live.seen(around.agents))

    async def _say_changed(self, space_id: SpaceId, message_id: MessageId) -> None:
        """Sends the message as it is now: a frame may be older than the change it announces."""
        changed = partial(_changed_message, message_id=message_id)
        await self._say(await self._read_shared(space_id, ("changed", message_id), changed))

    async def _say_call(self, space_id: SpaceId, call_id: CallId) -> None:
        """Sends the call as it is now: a frame may be older than the change it announces."""
        call = await self._read_shared(space_id, ("call", call_id), partial(calls.find, id=call_id))
        if call is not None and self._calls[space_id].new([call]):
            await self._say(call_event(call))

    async def _say_stance(self, frame: StanceChanged) -> None:
        """Sends admins the agent's state of mind in a space that they are in: it is part of its mind."""
        if frame.space not in self._positions:
            return
        told = await self._runtime.db.read(_stance_now, self._reader, frame)
        if told is not None:
            await self._say(typed_event(told))

    async def _say_live(self, frames: Iterable[LiveFrame]) -> None:
        for each in frames:
            await self._say(live_event(each))

    def _want(self, where: Iterable[SpaceId]) -> None:
        self._runtime.bus.publish(WANTED, wanted_payload(where))


def _metadata_now(tx: Tx, frame: MetadataUpdated) -> bytes:
    return typed_event(metadata_update(tx, frame))


def _stance_now(tx: Tx, reader: SpaceReader, frame: StanceChanged) -> AgentStance | None:
    _require(tx, reader, frame.space)
    if not may(tx, reader.entity_id, reader.token_id, "admin"):
        return None
    return AgentStance(agent=frame.agent, stance=stance_out(AGENTS.stance(tx, frame.agent, frame.space)))


def _joined(place: _FollowedSpace) -> SpaceJoined:
    return filled(SpaceJoined, place, space=place.id)
