"""Export and import of an agent's states of mind in its conversations.

Each belongs to a space. If that is not here, a placeholder is made: a space without members, until a file brings it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel
from sqlalchemy import Table, Text, bindparam, cast, exists, select

from denizen.agents.stance_changes import check_settings
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId, new_id
from denizen.portability.lines import (
    EntityLine,
    FeelingLine,
    KeptOutLine,
    Line,
    MemoryLine,
    OfMemory,
    OfStanding,
    PlaceLine,
    ReflectionLine,
    SignalLine,
    StanceLine,
    State,
)
from denizen.portability.reading import Fault, LineChecks
from denizen.portability.rows import Readers, Rows, columns, into, line_of, values
from denizen.reflection.settings import ReflectionSettings
from denizen.reflection.signals import Counters
from denizen.spaces import directory
from denizen.spaces.handles import check_handle, check_name
from denizen.storage.database import Statement, Tx, insert_ignore, select_where, statement
from denizen.storage.schema import (
    agents,
    cycles,
    entities,
    events,
    feelings,
    memberships,
    panels,
    passages,
    reflections,
    signals,
    spaces,
    stances,
)

# Export

_id = cast(bindparam("id"), Text)


def _kept(line: type[BaseModel], table: Table, *order: Any) -> Statement:
    return statement(select(*columns(line, table)).where(table.c.agent_id == _id).order_by(*order))


_KEPT: Final[tuple[tuple[type[OfStanding], Statement, Readers], ...]] = (
    (StanceLine, _kept(StanceLine, stances, stances.c.space_id), {"imprints": json.loads, "overrides": json.loads}),
    (FeelingLine, _kept(FeelingLine, feelings, feelings.c.space_id, feelings.c.person_id), {"counters": json.loads}),
    (SignalLine, _kept(SignalLine, signals, signals.c.number), {}),
    (ReflectionLine, _kept(ReflectionLine, reflections, reflections.c.number), {"state": State.model_validate_json}),
)
_place = statement(select(*columns(PlaceLine, spaces)).where(spaces.c.id == _id))
_who = statement(select(entities.c.id, entities.c.kind, entities.c.handle, entities.c.name).where(entities.c.id == _id))


def of_agent(tx: Tx, agent_id: AgentId) -> list[OfStanding]:
    """Returns the agent's stances, its counters of people's sentiment, and their history."""
    return [line_of(kind, row, read) for kind, query, read in _KEPT for row in tx.all(query, id=agent_id)]


def named(tx: Tx, lines: Iterable[Line]) -> Iterator[EntityLine | PlaceLine]:
    """Yields the people and spaces that the lines refer to."""
    kept = list(lines)
    for old in _ids(kept, "user_id", "person_id", "by_id"):
        row = tx.one(_who, id=old)
        if row is not None:
            yield line_of(EntityLine, (*row, None, "all", 0))
    for old in _ids(kept, "space_id"):
        row = tx.one(_place, id=old)
        if row is not None:
            yield line_of(PlaceLine, row)


def _ids(lines: Collection[Line], *fields: str) -> list[str]:
    found = {getattr(line, field, None) for line in lines for field in fields}
    return sorted(each for each in found if each)


# Import

COUNTERS: Final = "its counters cannot be read"


def check_counters(kept: Mapping[str, Any]) -> None:
    """Raises `ValueError`, `KeyError` or `TypeError` if these are not counters, or impossible ones."""
    found = Counters.from_json(json.dumps(kept))
    in_a_row = (found.frustration, found.confusion, found.satisfaction, found.neutral)
    numbers = (found.turns, *in_a_row, *found.lengths)
    if any(type(each) is not int or each < 0 for each in numbers) or max(in_a_row) > found.turns:
        raise ValueError("numbers")
    looked_at = len(found.scores)
    if looked_at != len(found.lengths) or looked_at > found.turns or (found.turns and not looked_at):
        raise ValueError("scores")
    if not all(-1 <= each <= 1 for each in found.scores):
        raise ValueError("scores")


class Conversations:
    """The conversations read from a file so far: later lines must not contradict them."""

    def __init__(self, fault: Fault) -> None:
        self._checks = LineChecks(fault)
        self.reflection = ReflectionSettings()
        """The agent's own."""
        self.cycles = 0
        """How many cycles the agent has had."""
        self._people: set[str] = set()
        self._places: set[str] = set()

    def check(self, number: int, line: EntityLine | PlaceLine | OfStanding | OfMemory) -> None:
        match line:
            case EntityLine():
                self._people.add(line.id)
                self._checks.require_valid(number, lambda: check_handle(line.handle))
            case PlaceLine():
                self._places.add(line.id)
                self._checks.require_unique(number, line.row, line.id)
                self._checks.require_valid(number, lambda: check_name(line.name))
            case MemoryLine():
                self._checks.require_unique(number, line.row, line.id)
                known = line.scope == "persona" and line.user_id in self._people
                self._checks.require(number, known, "it is of nobody of whom the file speaks")
            case KeptOutLine():
                self._checks.require(number, line.user_id is not None, "it is of nobody")
            case StanceLine():
                self._checks.require_unique(number, line.row, line.space_id)
                so_many = line.reflected_turns <= self.cycles
                self._checks.require(number, so_many, "it has reflected on turns that there were not")
                self._checks.require_valid(number, lambda: check_settings(line.overrides or {}, self.reflection))
            case FeelingLine():
                self._checks.require_unique(number, line.row, line.space_id, line.person_id)
                self._checks.require(number, line.person_id in self._people, "it is of nobody of whom the file speaks")
                self._checks.require_valid(number, lambda: check_counters(line.counters), COUNTERS)
            case SignalLine() | ReflectionLine():
                lived = line.cycle is None or line.cycle <= self.cycles
                self._checks.require(number, lived, f"there was no cycle {line.cycle or 0:,}")
        if not isinstance(line, EntityLine | PlaceLine | KeptOutLine):
            self._checks.require(number, line.space_id in self._places, f"the file speaks of no space {line.space_id}")


_ADD: Final[Mapping[type[OfStanding], Statement]] = {
    StanceLine: into(stances, StanceLine, "agent_id"),
    # Two people of the file may be the same here.
    FeelingLine: insert_ignore(feelings),
    SignalLine: into(signals, SignalLine, "agent_id"),
    ReflectionLine: into(reflections, ReflectionLine, "agent_id"),
}
_home_of = select_where(spaces, "organization_id, private", "id")
_NAMED_BY_OTHERS: Final = tuple(
    statement(
        select(agents.c.id)
        .join(table, table.c.agent_id == agents.c.id)
        .where(column == bindparam("id"), agents.c.organization_id != bindparam("home"))
        .limit(1)
    )
    for table, column in (
        (events, events.c.space_id),
        (cycles, cycles.c.active_space_id),
        (passages, passages.c.space_id),
    )
)
_nobody_is_in = (
    spaces.c.last_seq == 0,
    ~exists().where(memberships.c.space_id == spaces.c.id),
    ~exists().where(panels.c.space_id == spaces.c.id),
)
_kept_place = select_where(spaces, "id", "id, organization_id", *_nobody_is_in)


@dataclass(frozen=True, slots=True)
class Importer:
    """The person who imports, and the organization. The import can link to spaces of that organization, of the private
    ones only to those the person is in.
    """

    organization_id: OrganizationId
    entity_id: EntityId | None
    """None: the operator, on the server's own machine."""

    def can_link_to(self, tx: Tx, space_id: str) -> bool:
        home, private = tx.one(_home_of, id=space_id) or (None, None)
        if home != self.organization_id:
            return False
        is_open = not private or self.entity_id is None or directory.is_member(tx, SpaceId(space_id), self.entity_id)
        return is_open or is_kept_place(tx, self.organization_id, space_id)

    def is_closed(self, tx: Tx, space_id: str) -> bool:
        """Whether the space exists, and the importer cannot link to it."""
        return tx.one(_home_of, id=space_id) is not None and not self.can_link_to(tx, space_id)


def find_place(tx: Tx, importer: Importer, line: PlaceLine) -> SpaceId:
    """Returns the space if the importer can link to it; otherwise a placeholder without members."""
    if importer.can_link_to(tx, line.id):
        return SpaceId(line.id)
    home = importer.organization_id
    id = free_id(tx, home, line.id)
    return directory.create_space(tx, home, name=line.name, kind=line.kind, private=bool(line.private), id=id).id


def free_id(tx: Tx, home: OrganizationId, old: str) -> SpaceId:
    """Returns the id for an imported space: its old one, unless a space with that id exists, or agents of another
    organization refer to it. They would be shown its name.
    """
    taken = tx.one(_home_of, id=old) is not None
    named_by_others = any(tx.one(each, id=old, home=home) is not None for each in _NAMED_BY_OTHERS)
    return SpaceId(new_id() if taken or named_by_others else old)


def is_kept_place(tx: Tx, home: OrganizationId, space_id: str) -> bool:
    """Whether it is a placeholder: a space without members and messages."""
    return tx.one(_kept_place, id=space_id, organization_id=home) is not None


def add(
    rows: Rows,
    agent_id: AgentId,
    line: OfStanding,
    places: Mapping[str, SpaceId],
    person: Callable[[str | None], EntityId | None],
) -> None:
    """Adds the line to the agent, with the ids that its space and its people have here."""
    row: dict[str, Any] = values(line) | {"agent_id": agent_id, "space_id": places[line.space_id]}
    for name in ("person_id", "by_id"):
        if name in row:
            row[name] = person(getattr(line, name))
    rows.add(_ADD[type(line)], row)
