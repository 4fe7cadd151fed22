"""Imports an agent from a file, with its history, its plans and notes, and its states of mind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from itertools import product
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from pydantic import JsonValue, ValidationError
from sqlalchemy import bindparam, select

from denizen.access import audit
from denizen.access.operators import is_operator
from denizen.access.requesters import Requester
from denizen.agents import registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.restrictions import DefinitionPolicy, dangerous_parts
from denizen.consciousness import eras
from denizen.consciousness import layers as layering
from denizen.consciousness import lease as leases
from denizen.consciousness.privacy import ELSEWHERE
from denizen.consciousness.recall.passages import RECALLABLE
from denizen.consciousness.recall.terms import VERSION
from denizen.errors import HandleTaken, InvalidInput
from denizen.files.attaching import attachments_in
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId, new_id
from denizen.inbox import sources
from denizen.inbox.events import FILES
from denizen.memory.audience import Owner
from denizen.models import codec
from denizen.plans import agenda, schedule
from denizen.portability import entity_mapping, stance_lines
from denizen.portability.entity_mapping import EntityMapping
from denizen.portability.exporting import MESSAGE_EVENTS, SAID
from denizen.portability.file_lines import Attaching, Contents, FilesInSource, is_taken
from denizen.portability.imported import Imported
from denizen.portability.lines import (
    AgentLine,
    ChunkLine,
    CycleLine,
    CycleSpaceLine,
    EffectLine,
    EntityLine,
    EntryLine,
    EventLine,
    FeelingLine,
    FileLine,
    FilePageLine,
    GoalLine,
    KeptOutLine,
    LayerLine,
    Line,
    LongTextLine,
    MemoryLine,
    NoteLine,
    OfMemory,
    PassageLine,
    PlaceLine,
    PlanLine,
    ReflectionLine,
    SelfLine,
    SignalLine,
    StanceLine,
    ToolsetLine,
)
from denizen.portability.memories import MemoryImport
from denizen.portability.reading import ExportFile, Fault, LineChecks, first_line
from denizen.portability.rows import Rows, into, values
from denizen.portability.stance_lines import Conversations, Importer
from denizen.reflection import records
from denizen.spaces import directory
from denizen.spaces.handles import check_handle, check_name
from denizen.storage.database import (
    Params,
    Tx,
    insert_ignore,
    insert_into,
    long_running,
    select_where,
    statement,
    update_where,
    value,
)
from denizen.storage.schema import (
    agents,
    cycle_spaces,
    cycles,
    effects,
    entities,
    events,
    fact_spaces,
    files,
    goals,
    layers,
    log,
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
from denizen.tools.tool import digest_of

# Checking


def check_agent(source: ExportFile) -> frozenset[str]:
    """Checks the file; returns the digests of the tools in it. Raises `ImportInvalid` for a line that cannot be
    imported.
    """
    source.check("agent")
    first, life = first_line(source, AgentLine), _Life(source.fault)
    for number, line in source.lines():
        life.check(number, line)
    life.end(first)
    return frozenset(life.toolsets)


def _checked_definition(line: AgentLine, fault: Fault) -> AgentDefinition:
    try:
        check_name(line.name)
        check_handle(line.handle)
        return registry.define(**line.definition)
    except InvalidInput as error:
        raise fault(2, str(error).rstrip(".")) from error


class _Life:
    """The history read from a file so far: later lines must not contradict it."""

    def __init__(self, fault: Fault) -> None:
        self._checks = LineChecks(fault)
        self._cycles: list[int] = []
        """The number of the first log entry of each cycle."""
        self._woken: set[int] = set()
        self._entries = 0
        self._in_cycle = 0
        self._passages = 0
        self._eras: set[int] = set()
        self._conversations = Conversations(fault)
        self._files = FilesInSource(fault)
        self.toolsets: set[str] = set()

    def check(self, number: int, line: Line) -> None:
        match line:
            case AgentLine():
                self._checks.require(number, number == 2, "there is one agent in a file, and it comes first")
                self._conversations.reflection = _checked_definition(line, self._checks.fault).reflection
                self._conversations.cycles = line.cycles
            case CycleLine():
                self._check_cycle(number, line)
            case EntryLine():
                self._check_entry(number, line)
            case EffectLine() | LongTextLine() | EventLine() | CycleSpaceLine():
                self._checks.require(number, 1 <= line.cycle <= len(self._cycles), f"there is no cycle {line.cycle:,}")
                self._check_detail(number, line)
            case PassageLine():
                self._passages += 1
                self._checks.require(
                    number, line.number == self._passages, f"this should be passage {self._passages:,}"
                )
                self._checks.require(number, line.cycle <= len(self._cycles), f"there is no cycle {line.cycle:,}")
            case SelfLine():
                self._eras.add(line.era)
                self._checks.require_unique(number, "self", line.era)
                otherwise = "what it was shortened to cannot be read"
                self._checks.require_valid(number, lambda: _check_shortened(line.shortened), otherwise)
            case LayerLine():
                self._checks.require_unique(number, "layer", line.level, line.first)
                self._checks.require_valid(number, lambda: layering.load(line.digest), "its digest cannot be read")
            case GoalLine():
                self._checks.require_unique(number, "goal", line.number)
            case NoteLine():
                self._checks.require_unique(number, "note", line.key)
            case PlanLine():
                self._check_plan(number, line)
            case EntityLine() | PlaceLine() | StanceLine() | FeelingLine() | SignalLine() | ReflectionLine():
                self._conversations.check(number, line)
            case MemoryLine() | KeptOutLine():
                self._conversations.check(number, line)
            case ToolsetLine():
                # Toolsets are stored once for the whole server: nobody may store other tools under the digest of
                # somebody's.
                known = digest_of(line.tools) == line.digest
                self._checks.require(number, known, "its digest is not that of its tools")
                self.toolsets.add(line.digest)
            case FileLine() | FilePageLine() | ChunkLine():
                own = not isinstance(line, FileLine) or line.message_id is None
                self._checks.require(number, own, "it is a file of a message")
                self._files.check(number, line)
            case _:
                raise self._checks.fault(number, f"a line {line.row!r} does not belong here")

    def end(self, agent: AgentLine) -> None:
        self._files.end()
        lived = len(self._cycles)
        self._checks.require(2, agent.cycles == lived, f"it speaks of {agent.cycles:,} cycles, and there are {lived:,}")
        self._checks.require(2, 1 <= agent.window_from <= self._entries + 1, "its window begins where there is nothing")
        self._checks.require(2, agent.era == 0 or agent.era in self._eras, f"there is no self of era {agent.era:,}")
        asleep = next((at for at in range(1, lived + 1) if at not in self._woken), None)
        self._checks.require(2, asleep is None, f"nothing has woken cycle {asleep}")

    def _check_cycle(self, number: int, line: CycleLine) -> None:
        self._cycles.append(line.first_seq)
        self._checks.require(number, line.number == len(self._cycles), f"this should be cycle {len(self._cycles):,}")
        later = len(self._cycles) == 1 or line.first_seq > self._cycles[-2]
        self._checks.require(number, later, "it begins before the cycle before it")

    def _check_entry(self, number: int, line: EntryLine) -> None:
        self._entries += 1
        self._checks.require(number, line.seq == self._entries, f"this should be entry {self._entries:,}")
        begins = self._in_cycle < len(self._cycles) and self._cycles[self._in_cycle] == line.seq
        self._in_cycle += begins
        self._checks.require(number, line.cycle == self._in_cycle, "it stands in another cycle than it says")
        try:
            codec.load(line.message)
            made_of = json.loads(line.request or "{}")
        except ValueError as error:
            raise self._checks.fault(number, "its message cannot be read") from error
        self._check_sources(number, line.outside)
        if line.kind == "response":
            # Without these, a request cannot be rebuilt, nor the agent be forked.
            known = isinstance(made_of, dict) and {"era", "from", "tools", "settings", "model"} <= made_of.keys()
            known = known and isinstance(made_of["tools"], str)
            self._checks.require(number, known, "it does not say what its request was made of")

    def _check_detail(self, number: int, line: EffectLine | LongTextLine | EventLine | CycleSpaceLine) -> None:
        match line:
            case CycleSpaceLine():
                self._checks.require_unique(number, "cycle_space", line.cycle, line.space_id)
            case EventLine():
                self._woken.add(line.cycle)
                self._checks.require_unique(number, "event", line.id, line.type in MESSAGE_EVENTS)
                is_message = line.type in MESSAGE_EVENTS
                self._checks.require(number, is_message == (line.said is not None), "only a message says something")
            case EffectLine():
                self._checks.require_unique(number, "effect", line.cycle, line.step, line.position)
                self._check_sources(number, line.outside)
            case LongTextLine():
                self._checks.require_unique(number, "long_text", line.id)

    def _check_sources(self, number: int, outside: str | None) -> None:
        otherwise = "where its text from outside came from cannot be read"
        self._checks.require_valid(number, lambda: sources.checked(outside), otherwise)

    def _check_plan(self, number: int, line: PlanLine) -> None:
        self._checks.require_unique(number, "plan id", line.id)
        self._checks.require_unique(number, "plan", line.name if line.kind == "plan" else line.id, line.kind)
        try:
            when = schedule.load(line.schedule)
            if line.state != "failed":
                schedule.checked(when)
        except ValidationError as error:
            raise self._checks.fault(number, "its schedule cannot be read") from error
        except InvalidInput as error:
            raise self._checks.fault(number, str(error).rstrip(".")) from error


def _check_shortened(encoded: str | None) -> None:
    if not all(type(each) is int for each in eras.shortened_of(encoded).values()):
        raise TypeError("characters")


# Writing


_add_cycle = into(cycles, CycleLine, "id", "agent_id")
_add_entry = into(log, EntryLine, "agent_id", "cycle_id")
_add_effect = into(effects, EffectLine, "cycle_id")
_add_long_text = into(overflow, LongTextLine, "agent_id", "cycle_id")
_add_event = into(events, EventLine, "agent_id", "cycle_id", "message_id", "state")
_add_self = into(selves, SelfLine, "agent_id")
_add_layer = into(layers, LayerLine, "agent_id")
_add_goal = into(goals, GoalLine, "agent_id")
_add_note = into(notes, NoteLine, "agent_id")
_add_plan = into(plans, PlanLine, "agent_id")
_add_passage = into(passages, PassageLine, "agent_id")
_add_index = insert_into(recalls, "agent_id", "passages", "forgotten", "terms")
_add_cycle_space = insert_ignore(cycle_spaces, ("cycle_id", "space_id", "agent_id"))
_add_fact_space = insert_ignore(fact_spaces, ("agent_id", "fact", "space_id"))
_space = select_where(spaces, "organization_id, private", "id")
_add_toolset = insert_ignore(toolsets, ("digest", "tools"))

_message = select_where(messages, "space_id", "id")
_home_of_file = select_where(files, "organization_id", "id")
_plan = select_where(plans, "id", "id")
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
_revive = update_where(agents, "id", status="suspended")


@long_running
def import_agent(
    tx: Tx,
    by: Requester,
    policy: DefinitionPolicy,
    organization_id: OrganizationId,
    source: ExportFile,
    toolsets: Collection[str],
    contents: Contents,
    *,
    handle: str | None = None,
    name: str | None = None,
) -> Imported:
    """Imports the agent of a checked file with its whole history: suspended, and in no space. For owners.

    `toolsets` are the digests of the tools in the file, `contents` the ids of its files' contents. Raises `NotAllowed`
    if the policy refuses its definition.
    """
    by.require("owner")
    by.require_organization(organization_id)
    first = first_line(source, AgentLine)
    agent_id = _admit(tx, policy.for_requester(tx, by), organization_id, first, handle, name, source.fault)
    importer, trusted = Importer(organization_id, by.actor.entity_id), is_operator(tx, by.actor)
    arriving = _HistoryWriter(tx, importer, first.id, agent_id, toolsets, contents, trusted)
    for _, line in source.lines():
        arriving.add(line)
    counts = arriving.finish()
    eras.take_over(
        tx,
        agent_id,
        cycles=first.cycles,
        ended_at=first.last_cycle_at,
        window_from=first.window_from,
        era=first.era,
        outside=bool(first.outside) or not trusted,
    )
    made = registry.get(tx, agent_id)
    records.keep_reflecting(tx, agent_id, on=made.definition.reflection.is_on)
    records.leave_past(tx, agent_id)
    # Another server has run it before: the next holder of its lease is not the first.
    leases.seize(tx, agent_id)
    audit.record(tx, organization_id, by.actor, "import_file", agent_id, kind="agent", cycles=first.cycles)
    return Imported(
        "agent",
        agent_id,
        made.name,
        made.entity.handle,
        counts,
        secrets=first.secrets,
        dangers=tuple(dangerous_parts(made.definition)),
        people=tuple(arriving.mapping.people),
    )


def _admit(
    tx: Tx,
    policy: DefinitionPolicy,
    home: OrganizationId,
    line: AgentLine,
    handle: str | None,
    name: str | None,
    fault: Fault,
) -> AgentId:
    """Creates an agent of that definition without a history, or takes the placeholder that an earlier import of a space
    made.
    """
    definition, called = _checked_definition(line, fault), name or line.name
    policy.check(tx, home, None, definition)
    shell = tx.one(_shell, id=line.id, organization_id=home)
    if shell is not None and handle in (None, shell[0]):
        agent_id = AgentId(line.id)
        tx.run(_revive, id=agent_id)
        directory.rename(tx, agent_id, called)
        registry.edit(tx, policy, agent_id, definition)
    else:
        free = tx.one(entity_mapping.entity, id=line.id) is None
        wanted, chosen = handle or line.handle, AgentId(line.id) if free else None
        try:
            agent_id = registry.create(
                tx, policy, home, name=called, handle=wanted, definition=definition, id=chosen
            ).id
        except HandleTaken as error:
            raise HandleTaken(f"{error} Give the agent another one with --handle.") from error
        registry.suspend(tx, agent_id)
    # Its plans are those of the file, the heartbeat among them.
    agenda.clear(tx, agent_id)
    return agent_id


class _HistoryWriter:
    """Writes an imported history, under the id that the agent has here."""

    def __init__(
        self,
        tx: Tx,
        importer: Importer,
        old: str,
        agent_id: AgentId,
        toolsets: Collection[str],
        contents: Contents,
        trusted: bool,
    ) -> None:
        """`trusted`: keeps the file's marks of text from outside; otherwise everything is marked."""
        self._tx = tx
        self._importer = importer
        self._home = home = importer.organization_id
        self._old = old
        self._agent_id = agent_id
        self._toolsets = toolsets
        self._space_ids: dict[str, str] = {}
        self._rows = Rows(tx)
        self._counts: Counter[str] = Counter()
        self._forgotten = 0
        self.mapping = EntityMapping(tx, home)
        self._places: dict[str, SpaceId] = {}
        self._event_spaces: set[tuple[int, str | None]] = set()
        self._private: set[str] = set()
        """The private spaces that anything in this history comes from."""
        self._facts: list[str] = []
        """Its goals, notes and plans, which do not say which cycle made them."""
        self._trusted = trusted
        self._memories = MemoryImport(tx, agent_id, self._between, trusted)
        self._files = Attaching(tx, home, contents)
        self._file_ids: dict[str, str] = {}

    def add(self, line: Line) -> None:
        self._counts[line.row] += 1
        me = {"agent_id": self._agent_id}
        mine = me if self._trusted else me | {"outside": 1}
        match line:
            case AgentLine() | ToolsetLine() | CycleLine() | EntryLine() | EffectLine() | LongTextLine():
                self._add_lived(line)
            case EventLine():
                self._rows.add(_add_event, self._event(line))
                self._event_spaces.add((line.cycle, line.space_id))
            case CycleSpaceLine():
                self._add_source(line.cycle, line.space_id, private=bool(line.private))
            case PassageLine():
                self._forgotten += line.kind == "forgotten"
                self._rows.add(_add_passage, self._passage(line))
            case SelfLine():
                self._rows.add(_add_self, values(line) | mine)
            case LayerLine():
                self._rows.add(_add_layer, values(line) | me)
            case GoalLine():
                self._rows.add(_add_goal, values(line) | mine)
                self._facts.append(f"goal:{line.number}")
            case NoteLine():
                self._rows.add(_add_note, values(line) | mine)
                self._facts.append(f"note:{line.key}")
            case PlanLine():
                plan_id = line.id if self._tx.one(_plan, id=line.id) is None else new_id()
                self._rows.add(_add_plan, values(line) | mine | {"id": plan_id})
                if line.kind != "heartbeat":
                    self._facts.append(f"plan:{plan_id}")
            case EntityLine():
                self.mapping.receive(line)
            case PlaceLine():
                self._places[line.id] = stance_lines.find_place(self._tx, self._importer, line)
            case StanceLine() | FeelingLine() | SignalLine() | ReflectionLine():
                stance_lines.add(self._rows, self._agent_id, line, self._places, self.mapping.get)
            case MemoryLine():
                self._memories.add(line, self._places[line.space_id], self._source)
            case KeptOutLine():
                self._memories.add(line, None, self._source)
            case FileLine():
                taken = is_taken(self._tx, line.id)
                self._file_ids[line.id] = new_id() if taken else line.id
                self._files.add(line, self._file_ids[line.id], agent_id=self._agent_id)
            case FilePageLine() | ChunkLine():
                self._files.add(line)
            case _:
                raise AssertionError(f"{line.row} was not checked")

    def finish(self) -> dict[str, int]:
        if not self._counts["cycle_space"]:
            # A file of an older version: its events name its spaces.
            for cycle, space_id in self._event_spaces:
                self._add_source(cycle, space_id, private=False)
        for fact, space_id in product(self._facts, self._private):
            self._rows.add(_add_fact_space, {"agent_id": self._agent_id, "fact": fact, "space_id": space_id})
        self._rows.write()
        self._files.finish()
        if self._counts["passage"]:
            counts = {"passages": self._counts["passage"], "forgotten": self._forgotten}
            self._tx.run(_add_index, agent_id=self._agent_id, **counts, terms=VERSION)
            self._tx.announce(RECALLABLE, {"agent": self._agent_id})
        return dict(self._counts)

    def _add_source(self, cycle: int, space_id: str | None, *, private: bool) -> None:
        """Records that the text of the cycle comes from this space; as `ELSEWHERE` for a private one that is not here,
        or that the importer is not in.
        """
        row = None if space_id is None else self._tx.one(_space, id=space_id)
        home, is_private = row or (None, 0)
        private = private or (home == self._home and bool(is_private))
        here = space_id is not None and self._importer.can_link_to(self._tx, space_id)
        if space_id is None or (row is not None and not here and not private):
            return
        kept = ELSEWHERE if private and not here else space_id
        if private:
            self._private.add(kept)
        self._rows.add(_add_cycle_space, {"cycle_id": self._cycle(cycle), "space_id": kept, "agent_id": self._agent_id})

    def _add_lived(self, line: Line) -> None:
        me = {"agent_id": self._agent_id}
        match line:
            case ToolsetLine():
                self._rows.add(_add_toolset, values(line))
            case CycleLine():
                marked = line.first_seq if line.outside_from is None and not self._trusted else line.outside_from
                own = {"id": self._cycle(line.number), "active_space_id": self._space(line.active_space_id)}
                own |= {"outside_from": marked}
                self._rows.add(_add_cycle, values(line) | me | own)
            case EntryLine():
                own = {"request": self._request(line)}
                self._rows.add(_add_entry, _of_cycle(line, self._cycle(line.cycle)) | me | own)
            case EffectLine():
                self._rows.add(_add_effect, _of_cycle(line, self._cycle(line.cycle)))
            case LongTextLine():
                # A pointer in the log has the id that the text had: it is looked up with the agent's id before it.
                own = {"id": f"{self._agent_id}:{line.id}"}
                self._rows.add(_add_long_text, _of_cycle(line, self._cycle(line.cycle)) | me | own)
            case _:
                pass

    def _cycle(self, number: int) -> str:
        """Returns an id as a fork has it: it shows that another agent has said, and paid for, what was said then."""
        return f"{self._agent_id}-{number}"

    def _space(self, old: str | None) -> str | None:
        """Returns the id of the space here. A space of another organization, or a private one that the importer is not
        in, becomes an unknown id. One that does not exist yet keeps its id: this organization may import it later, and
        no other can use the id.
        """
        if not old:
            return old
        if old in self._places:
            return self._places[old]
        if old not in self._space_ids:
            closed = self._importer.is_closed(self._tx, old)
            self._space_ids[old] = str(uuid5(NAMESPACE_OID, f"{self._agent_id} {old}")) if closed else old
        return self._space_ids[old]

    def _request(self, line: EntryLine) -> str | None:
        """Returns the parts of a request, without tools that are not in the file: others may have tools with that
        digest.
        """
        if line.request is None or line.kind != "response":
            return line.request
        made_of: dict[str, Any] = json.loads(line.request)
        return line.request if made_of["tools"] in self._toolsets else json.dumps(made_of | {"tools": ""})

    def _between(self, line: OfMemory) -> tuple[Owner, Owner]:
        """Returns the owner of the memory here, and its owner there."""
        known = self.mapping.get(line.user_id)
        here = Owner("persona", self._home, user_id=known, agent_id=self._agent_id)
        return here, Owner("persona", self._home, user_id=EntityId(line.user_id or ""), agent_id=AgentId(self._old))

    def _source(self, message_id: str) -> str | None:
        """Returns the message, unless it is in a space that the importer cannot link to."""
        space_id = value(self._tx, _message, id=message_id)
        return message_id if space_id is None or self._importer.can_link_to(self._tx, space_id) else None

    def _is_here(self, message_id: str) -> bool:
        space_id = value(self._tx, _message, id=message_id)
        return space_id is not None and self._importer.can_link_to(self._tx, space_id)

    def _event(self, line: EventLine) -> dict[str, Params]:
        payload, said = dict(line.payload or {}), line.said
        here = said is not None and self._is_here(said.id)
        if said is not None and not here:
            # Its message is on another server: the text is stored here, with the event.
            payload |= {"text": said.text, SAID: said.model_dump()}
        if FILES in payload:
            payload[FILES] = self._own_files(payload[FILES])
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
            "space_id": self._space(line.space_id),
            "message_id": said.id if said is not None and here else None,
            "payload": json.dumps(payload) if payload else None,
            "created_at": line.created_at,
        }

    def _file(self, file_id: str) -> str | None:
        """The id of a file that is here, or was in the export."""
        is_here = value(self._tx, _home_of_file, id=file_id) == self._home
        return file_id if is_here else self._file_ids.get(file_id)

    def _own_files(self, stored: JsonValue) -> JsonValue:
        """The files of an event under the ids that they have here; without those that are not in the export."""
        found = attachments_in(stored)
        return [asdict(each) | {"id": self._file_ids[each.id]} for each in found if each.id in self._file_ids]

    def _passage(self, line: PassageLine) -> dict[str, Params]:
        here = line.message_id is not None and self._is_here(line.message_id)
        speaker = self._agent_id if line.speaker_id == self._old else self._entity(line.speaker_id)
        return values(line) | {
            "agent_id": self._agent_id,
            "space_id": self._space(line.space_id),
            "speaker_id": speaker,
            "speaker": None if speaker else line.speaker,
            "message_id": line.message_id if here else None,
            "text": None if here else line.text,
            "file_id": None if line.file_id is None else self._file(line.file_id),
        }

    def _entity(self, entity_id: str | None) -> str | None:
        if entity_id is None:
            return None
        home, _, _ = self._tx.one(entity_mapping.entity, id=entity_id) or (None, None, None)
        return entity_id if home == self._home else None


def _of_cycle(line: Line, cycle_id: str) -> dict[str, Any]:
    return values(line, "cycle") | {"cycle_id": cycle_id}
