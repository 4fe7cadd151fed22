"""Taking in an agent with its whole life, or a space with its messages, from a file: all of it or nothing.

The file is read twice. The first time every line is checked, outside any transaction; the second time one transaction
writes it. Identifiers stay as they are where nobody has them, so that an agent and its spaces, each from its own file,
find each other again; else new ones are made.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import NAMESPACE_OID, uuid5

from pydantic import ValidationError
from sqlalchemy import Table, bindparam, select, update

from denizen.agents import registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.reserved import new_dangers
from denizen.consciousness import lease as leases
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.passages import RECALLABLE
from denizen.errors import DenizenError, HandleTaken, ImportInvalid, InvalidInput
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId, new_id
from denizen.models import codec
from denizen.plans import agenda, schedule
from denizen.portability.exporting import MESSAGE_EVENTS, SAID
from denizen.portability.lines import (
    AgentLine,
    CycleLine,
    EffectLine,
    EntityLine,
    EntryLine,
    EventLine,
    GoalLine,
    Kind,
    LayerLine,
    Line,
    LongTextLine,
    MessageLine,
    NoteLine,
    PassageLine,
    PlanLine,
    SelfLine,
    SpaceLine,
    ToolsetLine,
)
from denizen.portability.reading import Source
from denizen.reflection import records
from denizen.spaces import directory
from denizen.spaces.handles import check_handle, check_name
from denizen.storage.database import Database, Params, Statement, Tx, insert_ignore, insert_into, statement
from denizen.storage.schema import (
    agents,
    cycles,
    effects,
    entities,
    events,
    goals,
    layers,
    log,
    memberships,
    messages,
    minds,
    notes,
    overflow,
    passages,
    plans,
    recalls,
    selves,
    spaces,
    toolsets,
)

_ROWS_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Imported:
    """What came in."""

    kind: Kind
    id: str
    name: str
    handle: str
    """Of an agent; empty of a space."""
    counts: Mapping[str, int]
    """Lines by their kinds."""
    secrets: tuple[str, ...] = ()
    """The names of secrets that an agent uses: they are to be kept here as well."""
    dangers: tuple[str, ...] = ()
    """Parts of an agent's definition that start programs or reach private addresses: to be looked at first."""
    people: tuple[str, ...] = ()
    """Handles of people and services that were not here before."""
    absent: tuple[str, ...] = ()
    """Handles of agents that were in a space and are not here: their words are, under their names."""


async def take_in(
    db: Database, organization_id: OrganizationId, path: Path, *, handle: str | None = None, name: str | None = None
) -> Imported:
    """What the file holds is here, all of it or, with an error, nothing."""
    source = Source(path)
    header = await asyncio.to_thread(source.header)
    if header.kind == "space":
        if handle is not None:
            raise InvalidInput("A space has no handle: this file holds a space.")
        await asyncio.to_thread(check_space, source)
        return await db.write(import_space, organization_id, source, name=name)
    await asyncio.to_thread(check_agent, source)
    made = await db.write(import_agent, organization_id, source, handle=handle, name=name)
    # What it can recall is found without much searching; lives in the house would see to it as well.
    await settling.settle(db, AgentId(made.id))
    return made


# Checking

_First = TypeVar("_First", AgentLine, SpaceLine)
Fault = Callable[[int, str], ImportInvalid]


def check_agent(source: Source) -> AgentLine:
    """The agent of the file, every line of which can be taken in. Raises `ImportInvalid` where one cannot."""
    source.check("agent")
    first, life = _first(source, AgentLine), _Life(source.fault)
    for number, line in source.lines():
        life.check(number, line)
    life.end(first)
    _checked_definition(first, source.fault)
    return first


def check_space(source: Source) -> SpaceLine:
    """The space of the file, every line of which can be taken in. Raises `ImportInvalid` where one cannot."""
    source.check("space")
    first = _first(source, SpaceLine)
    known, seen, said = set[str](), set[str](), 0
    for number, line in source.lines():
        match line:
            case SpaceLine() if number == 2:
                _told(source.fault, number, check_name, line.name)
            case EntityLine() if not said:
                _told(source.fault, number, check_handle, line.handle)
                known.add(line.id)
            case MessageLine():
                said += 1
                _require(source.fault, number, line.seq == said, f"this should be message {said:,}")
                _require(source.fault, number, line.author_id in known, "nobody of the file has said this")
                _require(source.fault, number, line.id not in seen, "there was a message of this id before")
                seen.add(line.id)
            case _:
                raise source.fault(number, f"a line {line.row!r} does not belong here")
    if said != first.messages:
        raise source.fault(2, f"it speaks of {first.messages:,} messages, and there are {said:,}")
    return first


def _first(source: Source, kind: type[_First]) -> _First:
    for number, line in source.lines():
        if not isinstance(line, kind):
            raise source.fault(number, f"it should begin with a line {kind.model_fields['row'].default!r}")
        return line
    raise source.fault(2, "there is nothing in it")


def _require(fault: Fault, number: int, is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise fault(number, otherwise)


def _told(fault: Fault, number: int, check: Callable[[str], object], value: str) -> None:
    try:
        check(value)
    except (DenizenError, ValueError) as error:
        raise fault(number, str(error).rstrip(".")) from error


def _checked_definition(line: AgentLine, fault: Fault) -> AgentDefinition:
    try:
        check_name(line.name)
        check_handle(line.handle)
        return registry.define(**line.definition)
    except InvalidInput as error:
        raise fault(2, str(error).rstrip(".")) from error


class _Life:
    """What a file has told of a life up to a line: nothing may contradict it."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._cycles: list[int] = []
        """The first number of the log of each."""
        self._woken: set[int] = set()
        self._entries = 0
        self._in_cycle = 0
        self._passages = 0
        self._eras: set[int] = set()
        self._keys: set[tuple[Any, ...]] = set()

    def check(self, number: int, line: Line) -> None:
        match line:
            case AgentLine():
                self._require(number, number == 2, "there is one agent in a file, and it comes first")
            case CycleLine():
                self._check_cycle(number, line)
            case EntryLine():
                self._check_entry(number, line)
            case EffectLine() | LongTextLine() | EventLine():
                self._require(number, 1 <= line.cycle <= len(self._cycles), f"there is no cycle {line.cycle:,}")
                self._check_detail(number, line)
            case PassageLine():
                self._passages += 1
                self._require(number, line.number == self._passages, f"this should be passage {self._passages:,}")
                self._require(number, line.cycle <= len(self._cycles), f"there is no cycle {line.cycle:,}")
            case SelfLine():
                self._eras.add(line.era)
                self._unique(number, "self", line.era)
            case LayerLine():
                self._unique(number, "layer", line.level, line.first)
            case GoalLine():
                self._unique(number, "goal", line.number)
            case NoteLine():
                self._unique(number, "note", line.key)
            case PlanLine():
                self._check_plan(number, line)
            case ToolsetLine():
                pass
            case _:
                raise self._fault(number, f"a line {line.row!r} does not belong here")

    def end(self, agent: AgentLine) -> None:
        lived = len(self._cycles)
        self._require(2, agent.cycles == lived, f"it speaks of {agent.cycles:,} cycles, and there are {lived:,}")
        self._require(2, 1 <= agent.window_from <= self._entries + 1, "its window begins where there is nothing")
        self._require(2, agent.era == 0 or agent.era in self._eras, f"there is no self of era {agent.era:,}")
        asleep = next((at for at in range(1, lived + 1) if at not in self._woken), None)
        self._require(2, asleep is None, f"nothing has woken cycle {asleep}")

    def _require(self, number: int, is_so: bool, otherwise: str) -> None:
        _require(self._fault, number, is_so, otherwise)

    def _unique(self, number: int, *key: Any) -> None:
        self._require(number, key not in self._keys, "there was one of these before")
        self._keys.add(key)

    def _check_cycle(self, number: int, line: CycleLine) -> None:
        self._cycles.append(line.first_seq)
        self._require(number, line.number == len(self._cycles), f"this should be cycle {len(self._cycles):,}")
        later = len(self._cycles) == 1 or line.first_seq > self._cycles[-2]
        self._require(number, later, "it begins before the cycle before it")

    def _check_entry(self, number: int, line: EntryLine) -> None:
        self._entries += 1
        self._require(number, line.seq == self._entries, f"this should be entry {self._entries:,}")
        begins = self._in_cycle < len(self._cycles) and self._cycles[self._in_cycle] == line.seq
        self._in_cycle += begins
        self._require(number, line.cycle == self._in_cycle, "it stands in another cycle than it says")
        try:
            codec.load(line.message)
            made_of = json.loads(line.request or "{}")
        except ValueError as error:
            raise self._fault(number, "its message cannot be read") from error
        if line.kind == "response":
            # Without these a request cannot be built again, nor the life copied.
            known = isinstance(made_of, dict) and {"era", "from", "tools", "settings", "model"} <= made_of.keys()
            self._require(number, known, "it does not say what its request was made of")

    def _check_detail(self, number: int, line: EffectLine | LongTextLine | EventLine) -> None:
        match line:
            case EventLine():
                self._woken.add(line.cycle)
                self._unique(number, "event", line.id, line.type in MESSAGE_EVENTS)
                is_message = line.type in MESSAGE_EVENTS
                self._require(number, is_message == (line.said is not None), "only a message says something")
            case EffectLine():
                self._unique(number, "effect", line.cycle, line.step, line.position)
            case LongTextLine():
                self._unique(number, "long_text", line.id)

    def _check_plan(self, number: int, line: PlanLine) -> None:
        self._unique(number, "plan", line.name if line.kind == "plan" else line.id, line.kind)
        try:
            schedule.load(line.schedule)
        except ValidationError as error:
            raise self._fault(number, "its schedule cannot be read") from error


# Writing


class _Rows:
    """Rows on their way into tables: many at once, and in the order in which they came within a table."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._waiting: dict[Statement, list[Mapping[str, Params]]] = {}

    def add(self, into: Statement, row: Mapping[str, Params]) -> None:
        rows = self._waiting.setdefault(into, [])
        rows.append(row)
        if len(rows) >= _ROWS_AT_ONCE:
            self._tx.many(into, rows)
            self._waiting[into] = []

    def write(self) -> None:
        for into, rows in self._waiting.items():
            if rows:
                self._tx.many(into, rows)
        self._waiting = {}


def _into(table: Table, line: type[Line], *other: str, without: tuple[str, ...] = ()) -> Statement:
    names = [name for name in line.model_fields if name in table.c and name not in without]
    return insert_into(table, *dict.fromkeys([*names, *other]))


_add_cycle = _into(cycles, CycleLine, "id", "agent_id")
_add_entry = _into(log, EntryLine, "agent_id", "cycle_id")
_add_effect = _into(effects, EffectLine, "cycle_id")
_add_long_text = _into(overflow, LongTextLine, "agent_id", "cycle_id")
_add_event = _into(events, EventLine, "agent_id", "cycle_id", "message_id", "state")
_add_self = _into(selves, SelfLine, "agent_id")
_add_layer = _into(layers, LayerLine, "agent_id")
_add_goal = _into(goals, GoalLine, "agent_id")
_add_note = _into(notes, NoteLine, "agent_id")
_add_plan = _into(plans, PlanLine, "agent_id")
_add_passage = _into(passages, PassageLine, "agent_id")
_add_index = insert_into(recalls, "agent_id", "passages", "forgotten")
_add_toolset = insert_ignore(toolsets, ("digest", "tools"))

_entity = statement(
    select(entities.c.organization_id, entities.c.kind, entities.c.left_at).where(entities.c.id == bindparam("id"))
)
_of_handle = statement(
    select(entities.c.id, entities.c.kind).where(
        entities.c.organization_id == bindparam("organization_id"), entities.c.handle == bindparam("handle")
    )
)
_space = statement(select(spaces.c.organization_id).where(spaces.c.id == bindparam("id")))
_message = statement(
    select(spaces.c.organization_id, messages.c.author_id)
    .join(spaces, spaces.c.id == messages.c.space_id)
    .where(messages.c.id == bindparam("id"))
)
_plan = statement(select(plans.c.id).where(plans.c.id == bindparam("id")))
_shell = statement(
    select(entities.c.handle)
    .join(agents, agents.c.id == entities.c.id)
    .join(minds, minds.c.agent_id == agents.c.id)
    .where(
        entities.c.id == bindparam("id"),
        entities.c.organization_id == bindparam("organization_id"),
        agents.c.status == "dead",
        minds.c.cycle_count == 0,
    )
)
_revive = statement(update(agents).where(agents.c.id == bindparam("agent")).values(status="suspended"))
_set_mind = statement(
    update(minds)
    .where(minds.c.agent_id == bindparam("agent"))
    .values(
        cycle_count=bindparam("cycles"),
        last_cycle_at=bindparam("ended_at"),
        window_from=bindparam("first"),
        era=bindparam("new_era"),
        # An era of its own begins with its next cycle: it is somewhere else now.
        era_version=0,
    )
)


def import_agent(
    tx: Tx, organization_id: OrganizationId, source: Source, *, handle: str | None = None, name: str | None = None
) -> Imported:
    """The agent of the file, which has been checked, is here with its whole life: suspended, and in no space."""
    first = _first(source, AgentLine)
    agent_id = _admit(tx, organization_id, first, handle, name, source.fault)
    arriving = _Arriving(tx, organization_id, first.id, agent_id)
    for _, line in source.lines():
        arriving.add(line)
    counts = arriving.finish()
    tx.run(
        _set_mind,
        agent=agent_id,
        cycles=first.cycles,
        ended_at=first.last_cycle_at,
        first=first.window_from,
        new_era=first.era,
    )
    records.leave_past(tx, agent_id)
    # Somebody has thought for it, if elsewhere: the next holder is not the first.
    leases.seize(tx, agent_id)
    made = registry.get(tx, agent_id)
    dangers = tuple(new_dangers(None, made.definition))
    who = made.entity
    return Imported("agent", agent_id, who.name, who.handle, counts, secrets=first.secrets, dangers=dangers)


def _admit(
    tx: Tx, home: OrganizationId, line: AgentLine, handle: str | None, name: str | None, fault: Fault
) -> AgentId:
    """An agent of that definition that thinks nothing yet; where a space came before it, the one in whose name it is
    kept there."""
    definition, called = _checked_definition(line, fault), name or line.name
    shell = tx.one(_shell, id=line.id, organization_id=home)
    if shell is not None and handle in (None, shell[0]):
        agent_id = AgentId(line.id)
        tx.run(_revive, agent=agent_id)
        directory.rename(tx, agent_id, called)
        registry.edit(tx, agent_id, definition)
    else:
        free = tx.one(_entity, id=line.id) is None
        wanted, chosen = handle or line.handle, AgentId(line.id) if free else None
        try:
            agent_id = registry.create(tx, home, name=called, handle=wanted, definition=definition, id=chosen).id
        except HandleTaken as error:
            raise HandleTaken(f"{error} Give the agent another one with --handle.") from error
        registry.suspend(tx, agent_id)
    # Its plans are those of the file, the heartbeat among them.
    agenda.clear(tx, agent_id)
    return agent_id


class _Arriving:
    """A life on its way into the tables, under the id that it has here."""

    def __init__(self, tx: Tx, home: OrganizationId, old: str, agent_id: AgentId) -> None:
        self._tx = tx
        self._home = home
        self._old = old
        self._agent_id = agent_id
        self._rows = _Rows(tx)
        self._counts: Counter[str] = Counter()
        self._forgotten = 0

    def add(self, line: Line) -> None:
        self._counts[line.row] += 1
        me = {"agent_id": self._agent_id}
        match line:
            case AgentLine() | ToolsetLine() | CycleLine() | EntryLine() | EffectLine() | LongTextLine():
                self._add_lived(line)
            case EventLine():
                self._rows.add(_add_event, self._event(line))
            case PassageLine():
                self._forgotten += line.kind == "forgotten"
                self._rows.add(_add_passage, self._passage(line))
            case SelfLine():
                self._rows.add(_add_self, _values(line) | me)
            case LayerLine():
                self._rows.add(_add_layer, _values(line) | me)
            case GoalLine():
                self._rows.add(_add_goal, _values(line) | me)
            case NoteLine():
                self._rows.add(_add_note, _values(line) | me)
            case PlanLine():
                taken = self._tx.one(_plan, id=line.id) is not None
                self._rows.add(_add_plan, _values(line) | me | ({"id": new_id()} if taken else {}))
            case _:
                raise AssertionError(f"{line.row} was not checked")

    def finish(self) -> dict[str, int]:
        self._rows.write()
        if self._counts["passage"]:
            self._tx.run(
                _add_index, agent_id=self._agent_id, passages=self._counts["passage"], forgotten=self._forgotten
            )
            self._tx.announce(RECALLABLE, {"agent": self._agent_id})
        return dict(self._counts)

    def _add_lived(self, line: Line) -> None:
        me = {"agent_id": self._agent_id}
        match line:
            case ToolsetLine():
                self._rows.add(_add_toolset, _values(line))
            case CycleLine():
                self._rows.add(_add_cycle, _values(line) | me | {"id": self._cycle(line.number)})
            case EntryLine():
                self._rows.add(_add_entry, _of_cycle(line, self._cycle(line.cycle)) | me)
            case EffectLine():
                self._rows.add(_add_effect, _of_cycle(line, self._cycle(line.cycle)))
            case LongTextLine():
                # A pointer in the log names the id that the text had: it is looked for with the agent before it.
                own = {"id": f"{self._agent_id}:{line.id}"}
                self._rows.add(_add_long_text, _of_cycle(line, self._cycle(line.cycle)) | me | own)
            case _:
                pass

    def _cycle(self, number: int) -> str:
        """As a fork has it: so it is known that another has said and paid for what was said then."""
        return f"{self._agent_id}-{number}"

    def _is_here(self, message_id: str) -> bool:
        row = self._tx.one(_message, id=message_id)
        return row is not None and row[0] == self._home

    def _event(self, line: EventLine) -> dict[str, Params]:
        payload, said = dict(line.payload or {}), line.said
        here = said is not None and self._is_here(said.id)
        if said is not None and not here:
            # Its message is in another house: its words are kept here, with it.
            payload |= {"text": said.text, SAID: said.model_dump()}
        return {
            "agent_id": self._agent_id,
            "cycle_id": self._cycle(line.cycle),
            "id": line.id,
            "type": line.type,
            "lane": line.lane,
            "state": "done",
            "wakes": line.wakes,
            "hop": line.hop,
            "attempts": line.attempts,
            "space_id": line.space_id,
            "message_id": said.id if said is not None and here else None,
            "payload": json.dumps(payload) if payload else None,
            "created_at": line.created_at,
        }

    def _passage(self, line: PassageLine) -> dict[str, Params]:
        here = line.message_id is not None and self._is_here(line.message_id)
        speaker = self._agent_id if line.speaker_id == self._old else self._entity(line.speaker_id)
        return _values(line) | {
            "agent_id": self._agent_id,
            "speaker_id": speaker,
            "speaker": None if speaker else line.speaker,
            "message_id": line.message_id if here else None,
            "text": None if here else line.text,
        }

    def _entity(self, entity_id: str | None) -> str | None:
        row = None if entity_id is None else self._tx.one(_entity, id=entity_id)
        return entity_id if row is not None and row[0] == self._home else None


def _values(line: Line) -> dict[str, Any]:
    return {name: value for name, value in line if name != "row"}


def _of_cycle(line: Line, cycle_id: str) -> dict[str, Any]:
    return {name: value for name, value in _values(line).items() if name != "cycle"} | {"cycle_id": cycle_id}


# A space

_add_message = _into(messages, MessageLine, "space_id")
_set_last = statement(update(spaces).where(spaces.c.id == bindparam("space")).values(last_seq=bindparam("last")))
_join = insert_into(memberships, "space_id", "entity_id", "role", "attention", "read_seq", "joined_at")
_newest = statement(
    select(messages.c.created_at)
    .where(messages.c.space_id == bindparam("space_id"))
    .order_by(messages.c.created_at.desc())
    .limit(1)
)


def import_space(tx: Tx, organization_id: OrganizationId, source: Source, *, name: str | None = None) -> Imported:
    """The space of the file, which has been checked, is here with everything that was said in it and who was there.

    People, services and agents are those of the same id, else those of the same handle. Who is not here is made: a
    person or service without any way to sign in, an agent that is dead.
    """
    first = _first(source, SpaceLine)
    chosen = SpaceId(new_id() if tx.one(_space, id=first.id) is not None else first.id)
    space = directory.create_space(
        tx, organization_id, name=name or first.name, kind=first.kind, private=bool(first.private), id=chosen
    )
    coming = _Company(tx, organization_id)
    counts: Counter[str] = Counter()
    rows = _Rows(tx)
    for _, line in source.lines():
        counts[line.row] += 1
        match line:
            case EntityLine():
                coming.receive(line)
            case MessageLine():
                rows.add(_add_message, _message_row(tx, line, first.id, space.id, coming))
            case _:
                pass
    rows.write()
    tx.run(_set_last, space=space.id, last=first.messages)
    newest = tx.one(_newest, space_id=space.id)
    # After all that was said there: nobody has it in the inbox, and nobody is to be woken by it.
    since = max(tx.now, 0 if newest is None else newest[0])
    for at, (line, entity_id) in enumerate(coming.members()):
        read = min(line.read_seq, first.messages)
        membership = {"role": line.role, "attention": line.attention, "read_seq": read, "joined_at": since + at}
        tx.run(_join, space_id=space.id, entity_id=entity_id, **membership)
    return Imported(
        "space",
        space.id,
        space.name,
        "",
        dict(counts),
        people=tuple(coming.people),
        absent=tuple(coming.absent),
    )


class _Company:
    """Those of a file, as they are known here."""

    def __init__(self, tx: Tx, home: OrganizationId) -> None:
        self._tx = tx
        self._home = home
        self._known: dict[str, tuple[EntityLine, EntityId]] = {}
        self.people: list[str] = []
        self.absent: list[str] = []

    def __getitem__(self, old: str) -> EntityId:
        return self._known[old][1]

    def members(self) -> Iterator[tuple[EntityLine, EntityId]]:
        """Those who are in the space, each once; not those who have left the organization."""
        seen: set[EntityId] = set()
        for line, entity_id in self._known.values():
            row = self._tx.one(_entity, id=entity_id)
            if line.role is not None and entity_id not in seen and row is not None and row[2] is None:
                seen.add(entity_id)
                yield line, entity_id

    def receive(self, line: EntityLine) -> None:
        self._known[line.id] = (line, self._find(line) or self._make(line))

    def _find(self, line: EntityLine) -> EntityId | None:
        row = self._tx.one(_entity, id=line.id)
        if row is not None and (row[0], row[1]) == (self._home, line.kind):
            return EntityId(line.id)
        named = self._tx.one(_of_handle, organization_id=self._home, handle=line.handle)
        return EntityId(named[0]) if named is not None and named[1] == line.kind else None

    def _make(self, line: EntityLine) -> EntityId:
        taken = self._tx.one(_of_handle, organization_id=self._home, handle=line.handle) is not None
        handle = directory.free_handle(self._tx, self._home, line.handle) if taken else line.handle
        id = EntityId(line.id) if self._tx.one(_entity, id=line.id) is None else None
        if line.kind != "agent":
            self.people.append(handle)
            return directory.create_entity(self._tx, self._home, line.kind, name=line.name, handle=handle, id=id).id
        self.absent.append(handle)
        definition = AgentDefinition()
        made = registry.create(self._tx, self._home, name=line.name, handle=handle, definition=definition, id=id)
        registry.delete(self._tx, made.id)
        return made.id


def _message_row(tx: Tx, line: MessageLine, old: str, space_id: SpaceId, company: _Company) -> dict[str, Params]:
    def own(message_id: str) -> str:
        # The same space again: its messages have ids of their own, which answers know.
        return message_id if space_id == old else str(uuid5(NAMESPACE_OID, f"{space_id} {message_id}"))

    id = own(line.id)
    if tx.one(_message, id=id) is not None:
        id = new_id()
    return _values(line) | {
        "id": id,
        "space_id": space_id,
        "author_id": company[line.author_id],
        "mentions": json.dumps(line.mentions) if line.mentions else None,
        "reply_to": None if line.reply_to is None else own(line.reply_to),
        "metadata": json.dumps(line.metadata) if line.metadata else None,
    }
