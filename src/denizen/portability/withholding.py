"""Filters the export of an agent for a person who may not read all of it. Pure, apart from finding out what that is.

Rows that come from private spaces stay in their places, so that the file can be imported, with a placeholder for their
text. Goals, notes, plans, memories and states of mind from there are left out, and so are the digests of groups with
such a cycle: missing digests are made anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from denizen.consciousness import privacy
from denizen.consciousness.log import Entry
from denizen.consciousness.privacy import ELSEWHERE, Reader, stand_in, stand_in_message
from denizen.consciousness.system_prompt import Era
from denizen.ids import AgentId, CycleId, EntityId
from denizen.inbox import sources
from denizen.models import codec
from denizen.portability.lines import (
    CycleLine,
    CycleSpaceLine,
    EffectLine,
    EntryLine,
    EventLine,
    GoalLine,
    LayerLine,
    Line,
    LongTextLine,
    NoteLine,
    PassageLine,
    PlanLine,
    SelfLine,
)
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycle_spaces, cycles, log

_hidden = statement(
    select(cycles.c.number, func.count(log.c.seq))
    .select_from(
        cycle_spaces.join(cycles, cycles.c.id == cycle_spaces.c.cycle_id).join(
            log, (log.c.agent_id == cycles.c.agent_id) & (log.c.cycle_id == cycles.c.id)
        )
    )
    .where(
        cycle_spaces.c.agent_id == bindparam("agent_id"),
        cycle_spaces.c.space_id == bindparam("space_id"),
        cycles.c.number.is_not(None),
    )
    .group_by(cycles.c.number)
)


@dataclass(frozen=True, slots=True)
class UnreadableParts:
    """What one person may not read of one agent."""

    closed: frozenset[str]
    cycles: Mapping[int, int]
    """How many entries of each cycle may not be read, by its number."""
    facts: frozenset[str]

    def line(self, reader: Reader, line: Line) -> Line | None:
        """Returns the line as it goes into the file; None if it is left out."""
        match line:
            case CycleLine():
                return self._cycle(line)
            case EntryLine():
                return self._entry(reader, line)
            case EffectLine():
                told = {"result": None if line.result is None else stand_in(1), "outside": _unnamed(line.outside)}
                return line.model_copy(update=told) if line.cycle in self.cycles else line
            case LongTextLine():
                return line.model_copy(update={"text": stand_in(1)}) if line.cycle in self.cycles else line
            case EventLine():
                return self._event(line)
            case PassageLine():
                return self._passage(line)
            case SelfLine():
                era = Era(line.era, line.text, line.layers, outside=bool(line.outside))
                return line.model_copy(update={"text": reader.self_of(era), "layers": reader.layers_of(era)})
            case CycleSpaceLine():
                return line.model_copy(update={"space_id": ELSEWHERE}) if line.space_id in self.closed else line
            case _:
                return None if self._left_out(line) else line

    def _left_out(self, line: Line) -> bool:
        match line:
            case LayerLine():
                last = line.first + 10**line.level - 1
                return any(line.first <= number <= last for number in self.cycles)
            case GoalLine():
                return f"goal:{line.number}" in self.facts
            case NoteLine():
                return f"note:{line.key}" in self.facts
            case PlanLine():
                return f"plan:{line.id}" in self.facts
            case _:
                return getattr(line, "space_id", None) in self.closed

    def _cycle(self, line: CycleLine) -> CycleLine:
        # The cycle's surroundings name every space.
        changed: dict[str, object] = {"told": None}
        if line.active_space_id in self.closed:
            changed["active_space_id"] = None
        if line.number in self.cycles:
            changed["summary"] = stand_in(self.cycles[line.number])
        return line.model_copy(update=changed)

    def _entry(self, reader: Reader, line: EntryLine) -> EntryLine:
        response = line.kind == "response"
        made_of = None if line.request is None else json.loads(line.request)
        if isinstance(made_of, dict) and "preview" in made_of:
            made_of["preview"] = stand_in(1)
        changed: dict[str, object] = {"request": None if made_of is None else json.dumps(made_of, ensure_ascii=False)}
        if line.cycle in self.cycles:
            changed["message"] = codec.dump(stand_in_message(1, response=response))
            changed["outside"] = _unnamed(line.outside)
            if not response:
                changed["request"] = None
        elif line.kind == "inbox":
            read = Entry(line.seq, CycleId(""), line.kind, codec.load(line.message), line.tokens, line.message)
            changed["message"] = reader.entry(read).encoded
        return line.model_copy(update=changed)

    def _event(self, line: EventLine) -> EventLine:
        if line.cycle not in self.cycles:
            return line
        said = line.said
        if said is not None:
            said = said.model_copy(update={"text": stand_in(1), "space": stand_in(1), "sender": stand_in(1)})
        payload = None if line.payload is None else {"text": stand_in(1)}
        space = None if line.space_id in self.closed else line.space_id
        return line.model_copy(update={"said": said, "payload": payload, "space_id": space})

    def _passage(self, line: PassageLine) -> PassageLine:
        if line.cycle not in self.cycles and line.space_id not in self.closed:
            return line
        gone = {"speaker_id": None, "speaker": None, "message_id": None, "event_id": None}
        # Like what belongs to several private spaces: no space may see it.
        return line.model_copy(update={"text": stand_in(1), "space_id": ELSEWHERE, **gone})


def _unnamed(outside: str | None) -> str | None:
    """Keeps that there is text from outside, without its source."""
    return None if outside is None else sources.dump(())


def withheld(tx: Tx, agent_id: AgentId, person: EntityId | None) -> UnreadableParts | None:
    """Returns what this person may not read of the agent; None if they may read everything."""
    reader = privacy.reader(tx, agent_id, person)
    if not reader.closed:
        return None
    found = dict(pair for each in reader.closed for pair in tx.all(_hidden, agent_id=agent_id, space_id=each))
    return UnreadableParts(reader.closed, found, reader.hidden_facts())


def readable_lines(
    tx: Tx, agent_id: AgentId, person: EntityId | None, kept_back: UnreadableParts | None, lines: list[Line]
) -> list[Line]:
    """Returns the lines as far as this person may read them."""
    if kept_back is None:
        return lines
    reader = privacy.reader(tx, agent_id, person)
    found = (kept_back.line(reader, each) for each in lines)
    return [each for each in found if each is not None]
