"""An agent's cycles as stored: the open one, and those that have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import bindparam, select

from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.errors import existing
from denizen.ids import AgentId, CallId, CycleId, SpaceId
from denizen.inbox import delivery, parking, stop_requests
from denizen.inbox.events import Event
from denizen.inbox.stop_requests import StopRequest
from denizen.spaces import directory, posting
from denizen.storage.database import Tx, columns, select_where, statement, value
from denizen.storage.schema import cycles
from denizen.tools import calls, effects, privacy_guard
from denizen.tools.effects import EffectRecord
from denizen.tools.prebuilt import SEND_MESSAGE
from denizen.tools.privacy_guard import Caution
from denizen.tools.tool import spaces_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart


@dataclass(frozen=True, slots=True)
class OpenCycle:
    """A cycle that has begun and not ended."""

    id: CycleId
    first_seq: int
    started_at: int
    active_space_id: SpaceId | None
    """The space that messages go to, until another space is entered."""
    events: tuple[Event, ...]
    """The events that woke it."""
    entries: tuple[Entry, ...]
    effects: tuple[EffectRecord, ...] = ()
    attempts: int = 0
    """Failures since its last progress."""
    interruptions: int = 0
    """How often a process crashed in it since its last progress: not its fault, so not part of `attempts`."""
    sent_to: tuple[str, ...] = ()
    """The names of the spaces to which it has sent messages, in order."""
    caution: Caution | None = None
    """Where its messages must be checked before they are shown, because it knows private things."""
    waited: int = 0
    """For how many microseconds it was paused because people were asked."""
    remembered: frozenset[str] = frozenset()
    """The ids of the memories that the agent was shown, in this cycle or in one that it still sees."""
    call_ids: Mapping[tuple[int, int], CallId] = field(default_factory=dict[tuple[int, int], CallId])
    """The outside ids of its calls, by step and position, as it was resumed."""
    troubled: bool = False
    """Whether a space shows a status of the agent that the end of this cycle clears."""
    outside_from: int | None = None
    """The number in the log from which its responses answer requests with text from outside; None: none do."""
    stopped: Mapping[SpaceId, StopRequest] = field(default_factory=dict[SpaceId, StopRequest])
    """Where a person has stopped it, as far as it has heard."""

    @property
    def steps(self) -> int:
        """How often the model has answered."""
        return sum(entry.kind == "response" for entry in self.entries)

    @property
    def open_events(self) -> tuple[Event, ...]:
        """Its events, without those of spaces where a person has stopped it."""
        return tuple(event for event in self.events if event.space_id not in self.stopped)

    @property
    def responses(self) -> list[ModelResponse]:
        """The model's responses."""
        return [entry.message for entry in self.entries if entry.message.kind == "response"]


def calls_of(message: ModelMessage) -> tuple[ToolCallPart, ...]:
    """The tool calls of a response, in their order; none for anything else."""
    if message.kind != "response":
        return ()
    return tuple(part for part in message.parts if part.part_kind == "tool-call")


_open = select_where(
    cycles,
    "id, first_seq, started_at, active_space_id, attempts, interruptions, "
    "not_before, handed_back, outcome, outside_from",
    "agent_id",
    cycles.c.number.is_(None),
)


@dataclass(frozen=True, slots=True)
class ResumableCycle:
    """An open cycle, and what must be known to resume it."""

    cycle: OpenCycle
    not_before: int
    handed_back: bool
    """A shutdown interrupted it: resuming it does not count as an attempt."""
    paused: bool


def find_open(tx: Tx, agent_id: AgentId) -> ResumableCycle | None:
    """The open cycle of this agent."""
    row = tx.one(_open, agent_id=agent_id)
    if row is None:
        return None
    id, first_seq, started_at, active, attempts, interruptions, not_before, handed_back, outcome, outside_from = row
    done = tuple(effects.of_cycle(tx, id))
    events = tuple(delivery.taken(tx, agent_id, id))
    made = calls.of_cycle(tx, id)
    cycle = OpenCycle(
        id=id,
        first_seq=first_seq,
        started_at=started_at,
        active_space_id=active,
        events=events,
        entries=tuple(log.entries(tx, agent_id, first_seq)),
        effects=done,
        attempts=attempts,
        interruptions=interruptions,
        sent_to=tuple(_target(tx, each) for each in done if each.tool == SEND_MESSAGE and each.changes),
        caution=privacy_guard.caution(tx, agent_id, spaces_of(events, active)),
        waited=calls.waited(made),
        call_ids={(each.step, each.position): each.id for each in made},
        troubled=parking.has_trouble(tx, agent_id),
        outside_from=outside_from,
        stopped=stop_requests.of_cycle(tx, agent_id, id, events),
    )
    return ResumableCycle(cycle, not_before, bool(handed_back), outcome == "paused")


def _target(tx: Tx, sent: EffectRecord) -> str:
    """The name of the space that a message went to, by the id in the result."""
    message_id = effects.message_in(sent.result)
    assert message_id is not None
    return directory.get_space(tx, posting.get_message(tx, message_id).space_id).name


_open_id = select_where(cycles, "id", "agent_id", cycles.c.number.is_(None))


def open_cycle_id(tx: Tx, agent_id: AgentId) -> CycleId | None:
    return value(tx, _open_id, agent_id=agent_id)


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """A short record of an open cycle."""

    id: CycleId
    outcome: Literal["open", "paused"]
    started_at: int


_open_record = select_where(cycles, "id, outcome, started_at", "agent_id", cycles.c.number.is_(None))


def open_record(tx: Tx, agent_id: AgentId) -> OpenRecord | None:
    row = tx.one(_open_record, agent_id=agent_id)
    return None if row is None else OpenRecord(*row)


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One ended cycle."""

    id: CycleId
    number: int
    outcome: str
    stop_reason: str
    summary: str
    steps: int
    started_at: int
    ended_at: int
    input_tokens: int
    output_tokens: int
    cost_micros: int
    outside: bool = False
    """Whether one of its requests held text from outside."""


_record = select(
    *columns(
        cycles,
        "id, number, outcome, stop_reason, summary, steps, started_at, ended_at, input_tokens, "
        "output_tokens, cost_micros, outside_from",
    )
)
_ended = _record.where(cycles.c.agent_id == bindparam("agent_id"), cycles.c.number.is_not(None))
_newest_first = _ended.order_by(cycles.c.number.desc()).limit(bindparam("limit"))
_last = statement(_newest_first)
_before = statement(_newest_first.where(cycles.c.number < bindparam("before")))
_after = statement(
    _ended.where(cycles.c.number > bindparam("after")).order_by(cycles.c.number).limit(bindparam("limit"))
)
_of_number = statement(_ended.where(cycles.c.number == bindparam("number")))
_by_id = statement(_record.where(cycles.c.id == bindparam("id"), cycles.c.number.is_not(None)))


def _as_record(row: tuple[Any, ...]) -> CycleRecord:
    *columns, outside_from = row
    return CycleRecord(*columns, outside=outside_from is not None)


def cycles_of(tx: Tx, agent_id: AgentId, *, limit: int = 100) -> list[CycleRecord]:
    """The last ended cycles, oldest first."""
    return [_as_record(row) for row in reversed(tx.all(_last, agent_id=agent_id, limit=limit))]


def cycles_before(tx: Tx, agent_id: AgentId, before: int, *, limit: int) -> list[CycleRecord]:
    """The last ended cycles before that number, newest first."""
    return [_as_record(row) for row in tx.all(_before, agent_id=agent_id, before=before, limit=limit)]


def get_cycle(tx: Tx, agent_id: AgentId, number: int) -> CycleRecord:
    return _as_record(existing(tx.one(_of_number, agent_id=agent_id, number=number), "cycle", str(number)))


def cycles_after(tx: Tx, agent_id: AgentId, after: int, *, limit: int = 100) -> list[CycleRecord]:
    """The ended cycles after that number, oldest first."""
    return [_as_record(row) for row in tx.all(_after, agent_id=agent_id, after=after, limit=limit)]


def ended(tx: Tx, cycle_id: CycleId) -> CycleRecord | None:
    """The cycle, if it has ended."""
    row = tx.one(_by_id, id=cycle_id)
    return None if row is None else _as_record(row)


@dataclass(frozen=True, slots=True)
class OpenCycleView:
    """A short view of an agent's open cycle."""

    id: CycleId
    first_seq: int
    started_at: int
    attempts: int
    """Failures and crashes since its last progress."""
    paused: bool


def glance(tx: Tx, agent_id: AgentId) -> OpenCycleView | None:
    """The open cycle of this agent, without its content."""
    row = tx.one(_open, agent_id=agent_id)
    if row is None:
        return None
    id, first_seq, started_at, _, attempts, interruptions, _, _, outcome, _ = row
    return OpenCycleView(id, first_seq, started_at, attempts + interruptions, paused=outcome == "paused")
