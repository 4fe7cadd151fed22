"""The stream of an agent: every cycle once and in order, and the progress of the open one.

What is sent comes from the database; the frames of the bus only say when to look. Only admins see the agent's mind:
others are sent its status and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from denizen.access import roles
from denizen.agents import registry
from denizen.agents.inspection import readable_record
from denizen.agents.registry import Presence
from denizen.bus.streams import (
    WANTED,
    AgentAlert,
    AgentBudget,
    AgentStatus,
    CycleChanged,
    MembershipChanged,
    MessageCreated,
    StanceChanged,
    StreamAborted,
    StreamDelta,
    StreamFrame,
    StreamStarted,
    agent_topic,
    entity_topic,
    space_topic,
    wanted_payload,
)
from denizen.clock import moment
from denizen.consciousness import log, privacy
from denizen.consciousness.log import Entry
from denizen.consciousness.privacy import stand_in
from denizen.cycles import ledger, records
from denizen.cycles.records import CycleRecord, OpenCycleView, calls_of
from denizen.cycles.routing import model_of
from denizen.errors import NotFound
from denizen.ids import AgentId, CycleId, EntityId, MessageId, SpaceId
from denizen.inbox import delivery
from denizen.models.prices import usage_of
from denizen.reflection.stance_store import AGENTS
from denizen.server.auth import Caller
from denizen.server.context import Context
from denizen.server.live import Live, LiveFrame
from denizen.server.shapes.filling import filled
from denizen.server.shapes.stances import stance_out
from denizen.server.sse import Say, may
from denizen.server.streams.events import live_event, message_event, payload_event, typed_event
from denizen.shapes.events import AgentStance, CycleEnded, CycleFailed, CycleOpened, CycleSkipped, Step, Tool
from denizen.spaces import directory, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx
from denizen.tools import effects
from denizen.tools.effects import EffectRecord

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class _Reader:
    agent_id: AgentId
    entity_id: EntityId
    token_id: str
    admin: bool


@dataclass(slots=True)
class _CycleProgress:
    """How much of the open cycle the reader has."""

    cycle: CycleId
    next_seq: int
    steps: int = 0
    tools: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    paused: bool = False


@dataclass(frozen=True, slots=True)
class _Life:
    presence: Presence
    spaces: list[SpaceId]
    cycles: list[CycleRecord]
    open: OpenCycleView | None = None
    events: int = 0
    entries: Sequence[Entry] = ()
    """Entries of the open cycle after the reader's position."""
    effects: Sequence[EffectRecord] = ()


def _require(tx: Tx, reader: _Reader) -> None:
    """Raises unless the reader still has access."""
    if not may(tx, reader.entity_id, reader.token_id, "admin" if reader.admin else "member"):
        raise NotFound("agent", reader.agent_id)


def _stance(tx: Tx, reader: _Reader, space_id: SpaceId) -> AgentStance | None:
    _require(tx, reader)
    if privacy.reader(tx, reader.agent_id, reader.entity_id).hides_space(space_id):
        return None
    return AgentStance(agent=reader.agent_id, stance=stance_out(AGENTS.stance(tx, reader.agent_id, space_id)))


def _readable_spaces(tx: Tx, reader: _Reader) -> list[SpaceId]:
    """Returns the agent's spaces that the reader may know of."""
    may_read = privacy.reader(tx, reader.agent_id, reader.entity_id)
    return [each.id for each in directory.spaces_of(tx, reader.agent_id) if not may_read.hides_space(each.id)]


def _message(tx: Tx, reader: _Reader, message_id: MessageId) -> Message | None:
    """Returns the message, unless the reader may not read its space: a space can become private at any time."""
    message = posting.get_message(tx, message_id)
    hidden = privacy.reader(tx, reader.agent_id, reader.entity_id).hides_space(message.space_id)
    return None if hidden else message


def _why(tx: Tx, reader: _Reader, cycle_id: CycleId) -> str:
    """Returns why a cycle failed or was skipped, as far as the reader may know."""
    end = ledger.end_of(tx, reader.agent_id, cycle_id)
    if end is None:
        return ""
    hidden = privacy.reader(tx, reader.agent_id, reader.entity_id).hides_cycle(cycle_id)
    return stand_in(1) if end.why and hidden else end.why


def _look(tx: Tx, reader: _Reader, after: int, told: _CycleProgress | None) -> _Life:
    _require(tx, reader)
    presence = registry.presence(tx, reader.agent_id)
    if not reader.admin:
        return _Life(presence, [], [])
    may_read = privacy.reader(tx, reader.agent_id, reader.entity_id)
    spaces = _readable_spaces(tx, reader)
    found = records.cycles_after(tx, reader.agent_id, after, limit=PAGE)
    lived = [readable_record(tx, each, may_read)[0] for each in found]
    now = records.glance(tx, reader.agent_id)
    if now is None:
        return _Life(presence, spaces, lived)
    first = told.next_seq if told is not None and told.cycle == now.id else now.first_seq
    return _Life(
        presence,
        spaces,
        lived,
        now,
        len(delivery.taken(tx, reader.agent_id, now.id)),
        log.entries(tx, reader.agent_id, first),
        effects.of_cycle(tx, now.id),
    )


class AgentFeed:
    """What one reader is sent of an agent, from the cycle after `after` on."""

    def __init__(self, context: Context, caller: Caller, agent_id: AgentId, after: int, say: Say) -> None:
        self._runtime = context.runtime
        self._agent_id = agent_id
        admin = roles.reaches(caller.role, "admin")
        self._reader = _Reader(agent_id, caller.entity.id, caller.token.id, admin)
        self._after = after
        self._say = say
        self._live = Live()
        self._by_topic: dict[str, SpaceId] = {}
        self._told: _CycleProgress | None = None

    @property
    def topics(self) -> frozenset[str]:
        if not self._reader.admin:
            return frozenset({agent_topic(self._agent_id)})
        return frozenset({agent_topic(self._agent_id), entity_topic(self._agent_id), *self._by_topic})

    async def approach(self) -> None:
        spaces = await self._runtime.db.read(_readable_spaces, self._reader)
        self._by_topic = {space_topic(each): each for each in spaces}

    async def begin(self) -> None:
        life = await self._look()
        if self._reader.admin and life.presence.status == "alive":
            # It may be writing: then the reader is sent the text from its beginning.
            self._want(self._by_topic.values())

    async def look(self) -> None:
        await self._look()

    async def _look(self) -> _Life:
        while True:
            life = await self._runtime.db.read(_look, self._reader, self._after, self._told)
            self._by_topic = {space_topic(each): each for each in life.spaces}
            await self._say_all(
                [
                    *self._lived(life.cycles),
                    *(live_event(each) for each in self._live.seen([life.presence])),
                    *self._open(life),
                ]
            )
            if len(life.cycles) < PAGE:
                return life

    async def lose(self) -> None:
        await self._say_live(self._live.lost())
        await self.look()
        if self._reader.admin:
            self._want(self._by_topic.values())

    async def hear(self, topic: str, frame: StreamFrame) -> None:
        if isinstance(frame, AgentStatus):
            await self._say_live(self._live.hear(frame))
        elif self._reader.admin:
            await self._hear_of_life(frame, self._by_topic.get(topic))

    async def _hear_of_life(self, frame: StreamFrame, where: SpaceId | None) -> None:
        match frame:
            case CycleChanged():
                await self.look()
                await self._say_what_became(frame)
            case MembershipChanged():
                await self.look()
            case AgentBudget() | AgentAlert():
                await self._say(payload_event(frame.to_payload()))
            case StanceChanged():
                stance = await self._runtime.db.read(_stance, self._reader, frame.space)
                if stance is not None:
                    await self._say(typed_event(stance))
            case MessageCreated():
                if frame.author == self._agent_id and where is not None:
                    self._live.said(frame.id)
                    message = await self._runtime.db.read(_message, self._reader, frame.id)
                    if message is not None:
                        await self._say(message_event(message))
            case StreamStarted() | StreamDelta() | StreamAborted():
                if frame.agent == self._agent_id and (where is not None or isinstance(frame, StreamAborted)):
                    await self._say_live(self._live.hear(frame, where))
                    if wanted := self._live.wanted():
                        self._want(wanted)
            case _:
                pass

    def _lived(self, cycles: Sequence[CycleRecord]) -> Iterable[bytes]:
        for each in cycles:
            self._after = each.number
            yield typed_event(_ended(self._agent_id, each), each.number)

    def _open(self, life: _Life) -> Iterable[bytes]:
        """Yields what is new about the open cycle."""
        now = life.open
        if now is None:
            self._told = None
            return
        told = self._told
        if told is None or told.cycle != now.id or told.paused != now.paused:
            if told is None or told.cycle != now.id:
                told = self._told = _CycleProgress(now.id, now.first_seq)
            told.paused = now.paused
            yield typed_event(self._opened(now, life.events))
        for entry in life.entries:
            told.next_seq = entry.seq + 1
            if entry.message.kind == "response":
                yield typed_event(self._step(now.id, told.steps, entry, entry.message))
                told.steps += 1
        for effect in life.effects:
            key = (effect.step, effect.position)
            if told.tools.get(key) != effect.state:
                told.tools[key] = effect.state
                yield typed_event(self._tool(now.id, effect))

    def _opened(self, now: OpenCycleView, events: int) -> CycleOpened:
        return CycleOpened(
            agent=self._agent_id,
            cycle=now.id,
            state="paused" if now.paused else "open",
            started_at=moment(now.started_at),
            events=events,
            attempts=now.attempts,
        )

    def _step(self, cycle: CycleId, number: int, entry: Entry, response: ModelResponse) -> Step:
        used = usage_of(response)
        return Step(
            agent=self._agent_id,
            cycle=cycle,
            step=number,
            model=model_of(entry),
            tools=[call.tool_name for call in calls_of(response)],
            input_tokens=used.input,
            output_tokens=used.output,
        )

    def _tool(self, cycle: CycleId, effect: EffectRecord) -> Tool:
        return filled(Tool, effect, agent=self._agent_id, cycle=cycle)

    async def _say_what_became(self, frame: CycleChanged) -> None:
        """Sends the end of a skipped or failed cycle, which only the ledger has."""
        if frame.what not in ("skipped", "undone", "postponed"):
            return
        why = await self._runtime.db.read(_why, self._reader, frame.cycle)
        if frame.what == "skipped":
            skipped = CycleSkipped(agent=self._agent_id, cycle=frame.cycle, reason=why)
            await self._say(typed_event(skipped))
            return
        undone = frame.what == "undone"
        failed = CycleFailed(agent=self._agent_id, cycle=frame.cycle, undone=undone, error=why)
        await self._say(typed_event(failed))

    async def _say_live(self, frames: Iterable[LiveFrame]) -> None:
        await self._say_all([live_event(each) for each in frames])

    async def _say_all(self, events: Sequence[bytes]) -> None:
        if events:
            await self._say(b"".join(events))

    def _want(self, where: Iterable[SpaceId]) -> None:
        self._runtime.bus.publish(WANTED, wanted_payload(where))


def _ended(agent_id: AgentId, cycle: CycleRecord) -> CycleEnded:
    return filled(CycleEnded, cycle, agent=agent_id, cycle=cycle.id)
