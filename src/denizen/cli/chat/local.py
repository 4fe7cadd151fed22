"""The same conversation without a server: the runtime and the agents live in this process, on the same database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from denizen.agents import fitness, registry, space_statuses
from denizen.agents.registry import Presence
from denizen.agents.space_statuses import ShownStatus
from denizen.app import Runtime
from denizen.bus.port import Gap, Subscription
from denizen.bus.streams import (
    WANTED,
    CallChanged,
    CycleChanged,
    MessageCreated,
    StatusChanged,
    agent_topic,
    from_payload,
    space_topic,
    wanted_payload,
)
from denizen.cli.desk.telling import call_from, message_from, spaces_from, statuses_from, told
from denizen.client import (
    Agent,
    Call,
    Connected,
    Lost,
    Me,
    Message,
    Space,
    SpaceStatus,
    SpaceStatuses,
    StreamEvent,
    frame_from,
)
from denizen.errors import StorageError, SubscriberTooSlow
from denizen.ids import AgentId, CallId, EntityId, MessageId, SpaceId
from denizen.server.live import Live, Payload
from denizen.server.schemas import AgentOut
from denizen.server.streams.told_calls import ToldCalls, in_order, split_at
from denizen.spaces import directory, posting
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from denizen.tools import calls

LOOK_SECONDS: Final = 2.0
"""How often a quiet space is looked at: another process may write to the same database."""
PAGE: Final = 200


class Local:
    """One person's way to the spaces of a runtime that is open in this process."""

    def __init__(self, runtime: Runtime, person: Entity) -> None:
        self._runtime = runtime
        self._person = person

    async def me(self) -> Me:
        return Me(id=self._person.id, handle=self._person.handle, name=self._person.name)

    async def spaces(self) -> list[Space]:
        return await self._runtime.db.read(spaces_from, self._person.id)

    async def agents(self) -> list[Agent]:
        found = await self._runtime.db.read(registry.living_agents, self._person.organization_id)
        unable = await self._runtime.db.read(fitness.unable_of_organization, self._person.organization_id)
        return [told(Agent, AgentOut.of(agent, status, unable.get(agent.id))) for agent, status in found]

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        return await self._runtime.db.read(_messages, SpaceId(space_id), self._person.id, after, before, limit)

    async def post(self, space_id: str, text: str, *, key: str) -> Message:
        await self._runtime.db.read(directory.require_member, SpaceId(space_id), self._person.id)
        posted = await self._runtime.post(SpaceId(space_id), self._person, text, id=MessageId(key))
        return message_from(await self._runtime.db.read(posting.get_message, posted.id))

    async def mark_read(self, space_id: str, seq: int) -> None:
        await self._runtime.mark_read(SpaceId(space_id), self._person, seq)

    async def calls(self) -> list[Call]:
        return [call_from(each) for each in await self._runtime.waiting_calls(self._person)]

    async def call(self, call_id: str) -> Call:
        return call_from(await self._runtime.db.read(calls.require_visible, call_id, self._person.id))

    async def answer(self, call_id: str, result: JsonValue) -> Call:
        return call_from(await self._runtime.answer(call_id, result, by=self._person))

    async def try_again(self, agent: str, *, space: str | None = None) -> None:
        await self._runtime.try_again(AgentId(agent), None if space is None else SpaceId(space))

    async def ask_for_answer(self, space_id: str, agent: str) -> None:
        await self._runtime.ask_for_answer(SpaceId(space_id), AgentId(agent), self._person)

    async def stream(self, space_id: str, *, after: int) -> AsyncGenerator[StreamEvent]:
        reader = _Reader(self._runtime, SpaceId(space_id), self._person.id, after)
        connected = False
        while not reader.over:
            try:
                async with self._runtime.bus.subscribe(*reader.topics()) as frames:
                    # Listening begins before the first look: what happens in between is heard, and looked for again.
                    events = await reader.look()
                    if not connected:
                        connected = True
                        yield Connected()
                    while events or not reader.must_listen_anew():
                        for event in events:
                            yield event
                        events = [] if reader.must_listen_anew() else await reader.hear(frames)
            except SubscriberTooSlow:
                for event in reader.lost():
                    yield event
            except StorageError as error:
                connected = False
                reader.lost()
                reader.forget_statuses()
                yield Lost(str(error))
                await self._runtime.clock.sleep(LOOK_SECONDS)


class _Reader:
    """How far one reader of a space has come, and what that reader was told of texts that are being written."""

    def __init__(self, runtime: Runtime, space_id: SpaceId, person_id: EntityId, after: int) -> None:
        self.over = False
        """The runtime is closing."""
        self._runtime = runtime
        self._space_id = space_id
        self._person_id = person_id
        self._after = after
        self._live = Live(space_id)
        self._calls = ToldCalls()
        self._statuses: tuple[SpaceStatus, ...] = ()
        """What the reader was told that the space shows of its agents."""
        self._agents: frozenset[EntityId] = frozenset()
        self._listening_to = self._agents

    def topics(self) -> list[str]:
        """Where one hears what happens in the space."""
        self._listening_to = self._agents
        return [space_topic(self._space_id), *(agent_topic(each) for each in sorted(self._agents))]

    def must_listen_anew(self) -> bool:
        """Whether there are other agents in the space than those that are listened to, or nothing more to hear."""
        return self.over or self._agents != self._listening_to

    async def look(self) -> list[StreamEvent]:
        """Everything the reader was not told yet."""
        events: list[StreamEvent] = []
        while True:
            waiting = self._calls.waiting
            view = await self._runtime.db.read(_look, self._space_id, self._person_id, self._after, waiting)
            if view.messages:
                self._calls.message_told()
            for message in view.messages:
                self._live.said(message.id)
                self._after = message.seq
            events += [_event(each) for each in in_order(view.messages, self._calls.new(view.calls))]
            events += _frames(self._live.seen(view.agents))
            if len(view.messages) < PAGE:
                events += self._tell_statuses(view.statuses)
                self._agents = frozenset(each.agent_id for each in view.agents)
                return events

    async def hear(self, frames: Subscription) -> list[StreamEvent]:
        """What the next frame means to the reader; after a quiet while, what a look finds."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                item = await anext(frames)
        except TimeoutError:
            return await self.look()
        except StopAsyncIteration:
            self.over = True
            return []
        if isinstance(item, Gap):
            return [*self.lost(), *await self.look()]
        frame = from_payload(item.payload)
        if frame is None:
            return []
        if isinstance(frame, MessageCreated):
            return await self.look() if frame.seq > self._after else []
        if isinstance(frame, StatusChanged) or (isinstance(frame, CycleChanged) and self._statuses):
            return await self.look()
        if isinstance(frame, CallChanged):
            return await self._hear_of_call(frame)
        told = _frames(self._live.hear(frame))
        if spaces := self._live.wanted():
            self._runtime.bus.publish(WANTED, wanted_payload(spaces))
        return told

    async def _hear_of_call(self, frame: CallChanged) -> list[StreamEvent]:
        # The frames of an agent are of its calls in other spaces too.
        if frame.space != self._space_id:
            return []
        call = await self._runtime.db.read(calls.require_visible, frame.id, self._person_id)
        return [_event(each) for each in self._calls.new([call])]

    def _tell_statuses(self, found: Iterable[ShownStatus]) -> Iterator[StreamEvent]:
        now = statuses_from(found)
        if now != self._statuses:
            self._statuses = now
            yield SpaceStatuses(self._space_id, now)

    def forget_statuses(self) -> None:
        """What the space shows is told again, as it is to every reader who connects."""
        self._statuses = ()

    def lost(self) -> list[StreamEvent]:
        """Frames were lost: what was being written is not followed any further."""
        return _frames(self._live.lost())


@dataclass(frozen=True, slots=True)
class _View:
    messages: list[posting.Message]
    agents: list[Presence]
    calls: list[calls.Call]
    """Those that the reader may not know as they stand."""
    statuses: list[ShownStatus]


def _look(tx: Tx, space_id: SpaceId, person_id: EntityId, after: int, waiting: Sequence[CallId]) -> _View:
    directory.require_member(tx, space_id, person_id)
    messages = posting.messages_after(tx, space_id, after, limit=PAGE)
    found = calls.since(tx, space_id, after, known=waiting)
    if len(messages) == PAGE:
        found, _ = split_at(found, messages[-1].seq)
    agents = registry.present(tx, space_id)
    return _View(messages, agents, found, space_statuses.in_space(tx, space_id, agents))


def _event(told: posting.Message | calls.Call) -> StreamEvent:
    return call_from(told) if isinstance(told, calls.Call) else message_from(told)


def _frames(payloads: Iterable[Payload]) -> list[StreamEvent]:
    return [frame for each in payloads if (frame := frame_from(each)) is not None]


def _messages(
    tx: Tx, space_id: SpaceId, person_id: EntityId, after: int | None, before: int | None, limit: int
) -> list[Message]:
    directory.require_member(tx, space_id, person_id)
    if after is not None:
        found = posting.messages_after(tx, space_id, after, limit=limit)
    elif before is not None:
        found = posting.messages_before(tx, space_id, before, limit=limit)
    else:
        found = posting.messages_before(tx, space_id, limit=limit)
    return [message_from(each) for each in found]
