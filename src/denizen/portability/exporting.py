"""Writes an agent with its whole history, or a space with its messages, as the lines of a file.

Finished data does not change, so it is read a page at a time without locks; what may change is read at once. Only
forgetting rewrites the past: if something was forgotten meanwhile, the file might still hold it, and the export fails.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, Table, Text, bindparam, case, cast, func, literal, or_, select

from denizen.agents import registry
from denizen.consciousness.privacy import ELSEWHERE
from denizen.consciousness.recall.fetching import said
from denizen.errors import InvalidInput, existing
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.portability import file_lines, memories, panels, rows, stance_lines, withholding
from denizen.portability.hiding import DefinitionWithoutSecrets
from denizen.portability.lines import (
    AdvisorLine,
    AgentLine,
    CycleLine,
    CycleSpaceLine,
    EffectLine,
    EndLine,
    EntityLine,
    EntryLine,
    EventLine,
    FileLine,
    GoalLine,
    Header,
    Kind,
    LayerLine,
    Line,
    LongTextLine,
    MessageLine,
    NoteLine,
    OfFile,
    PanelLine,
    PassageLine,
    PlanLine,
    PolicyLine,
    RollingLine,
    RoundLine,
    SelfLine,
    SpaceLine,
    ToolsetLine,
    WakingMessage,
    encode,
)
from denizen.portability.withholding import UnreadableParts
from denizen.storage.database import Database, Statement, Tx, select_where, statement, value
from denizen.storage.schema import (
    contents,
    cycle_spaces,
    cycles,
    effects,
    entities,
    events,
    files,
    goals,
    layers,
    log,
    memberships,
    memory_policies,
    messages,
    minds,
    notes,
    overflow,
    passages,
    plans,
    redactions,
    rollings,
    rounds,
    selves,
    spaces,
    toolsets,
    voice_feelings,
    voice_reflections,
    voice_signals,
)


async def agent_lines(db: Database, agent_id: AgentId, person: EntityId | None = None) -> AsyncGenerator[str]:
    """Yields the lines of a file with the agent: its definition, its history, its plans.

    As far as this person may read it (`withholding`); None: the operator, everything.
    """
    kept_back = await db.read(withholding.withheld, agent_id, person)
    begun = await db.read(_begin_agent, agent_id, person, kept_back)
    whose = {"id": agent_id, "last": begun.last}
    written = _LineCounter("agent")
    yield written.header
    for each in begun.lines:
        yield written.line(each)
    if kept_back is None:
        # A tool may have made a file of what was said in a private space: who may not read that gets no files.
        async for each in _files(db, _FILES_OF_AGENT, {"id": agent_id}, begun):
            yield written.line(each)
    tools: set[str] = set()
    for section in _LIFE:
        async for each in _pages(db, section, whose, person, kept_back):
            if isinstance(each, EntryLine) and each.request is not None and each.kind == "response":
                tools.add(json.loads(each.request)["tools"])
            yield written.line(each)
    for each in await db.read(_tools_named, tools):
        yield written.line(each)
    yield await written.end(db, begun)


async def space_lines(db: Database, space_id: SpaceId) -> AsyncGenerator[str]:
    """Yields the lines of a file with the space: its members and authors, and its messages."""
    begun = await db.read(_begin_space, space_id)
    written = _LineCounter("space")
    yield written.header
    for each in begun.lines:
        yield written.line(each)
    async for each in _pages(db, _SAID, {"id": space_id, "last": begun.last}):
        yield written.line(each)
    async for each in _files(db, _FILES_OF_SPACE, {"id": space_id, "first": 0, "last": begun.last}, begun):
        yield written.line(each)
    async for each in _rounds(db, space_id, begun.lines):
        yield written.line(each)
    yield await written.end(db, begun)


async def archive_lines(db: Database, space_id: SpaceId, first: int, last: int) -> AsyncGenerator[str]:
    """Yields the lines of a file with some messages of the space, from the number `first` to `last`: who is there, the
    messages, their files, and what advisors answered to them.
    """
    begun = await db.read(_begin_space, space_id)
    written = _LineCounter("space")
    yield written.header
    for each in begun.lines:
        if isinstance(each, SpaceLine | EntityLine | PanelLine | AdvisorLine):
            yield written.line(each)
    said: set[str] = set()
    async for each in _pages(db, _SAID, {"id": space_id, "last": last}, after=first - 1):
        assert isinstance(each, MessageLine)
        said.add(each.id)
        yield written.line(each)
    async for each in _files(db, _FILES_OF_SPACE, {"id": space_id, "first": first, "last": last}, begun):
        yield written.line(each)
    async for each in _rounds(db, space_id, begun.lines):
        if isinstance(each, RoundLine) and each.message_id in said:
            yield written.line(each)
    yield await written.end(db, begun)


@dataclass(frozen=True, slots=True)
class _ExportStart:
    """The first lines, and the limits of everything after them."""

    organization_id: OrganizationId
    forgotten: int
    """How often something was forgotten in the organization."""
    last: int
    """The number of the last cycle, or of the last message."""
    lines: tuple[Line, ...]


class _LineCounter:
    """Counts the lines of a file."""

    def __init__(self, kind: Kind) -> None:
        self.header = encode(Header(kind=kind))
        self._count = 1

    def line(self, line: Line) -> str:
        self._count += 1
        return encode(line)

    async def end(self, db: Database, begun: _ExportStart) -> str:
        if await db.read(_times_forgotten, begun.organization_id) != begun.forgotten:
            raise InvalidInput(
                "Something was forgotten during the export, and the file may still contain it. Export again."
            )
        return encode(EndLine(lines=self._count + 1))


_forgotten = statement(
    select(func.count()).select_from(redactions).where(redactions.c.organization_id == bindparam("organization_id"))
)


def _times_forgotten(tx: Tx, organization_id: OrganizationId) -> int:
    return value(tx, _forgotten, organization_id=organization_id) or 0


# Rows by their number, a page at a time


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of a file with lines of one kind."""

    page: Statement
    most: Statement
    """Selects the largest number."""
    span: int
    """How many numbers a page covers."""
    line: Callable[..., Line]


def _section(
    line: type[Line],
    table: Table,
    number: ColumnElement[int],
    *where: ColumnElement[bool],
    span: int,
    source: FromClause | None = None,
    order: tuple[Any, ...] = (),
    make: Callable[..., Line] | None = None,
    columns: tuple[Any, ...] = (),
    read: rows.Readers | None = None,
    **other: Any,
) -> _Section:
    """Builds a section of lines with a field for each column of the same name, except the `other` ones; or what `make`
    returns.

    `source` is the table with its joins.
    """
    chosen = columns or rows.columns(line, table, other)
    there = table if source is None else source
    within = (number > bindparam("after"), number <= bindparam("until"))
    return _Section(
        statement(select(*chosen).select_from(there).where(*where, *within).order_by(number, *order)),
        statement(select(func.coalesce(func.max(number), 0)).select_from(there).where(*where)),
        span,
        make or partial(_line, line, read=read),
    )


def _line(kind: type[Line], *row: Any, read: rows.Readers | None = None) -> Line:
    return rows.line_of(kind, row, read)


def _read_page(
    tx: Tx,
    section: _Section,
    whose: dict[str, Any],
    after: int,
    until: int,
    person: EntityId | None,
    kept_back: UnreadableParts | None,
) -> list[Line]:
    found = [section.line(*row) for row in tx.all(section.page, **whose, after=after, until=until)]
    return withholding.readable_lines(tx, whose["id"], person, kept_back, found)


def _largest(tx: Tx, section: _Section, whose: dict[str, Any]) -> int:
    return value(tx, section.most, **whose) or 0


async def _pages(
    db: Database,
    section: _Section,
    whose: dict[str, Any],
    person: EntityId | None = None,
    kept_back: UnreadableParts | None = None,
    *,
    after: int = -1,
) -> AsyncGenerator[Line]:
    """Yields the lines of the rows after that number; numbers may begin with 0."""
    for begin in range(after, await db.read(_largest, section, whose), section.span):
        for line in await db.read(_read_page, section, whose, begin, begin + section.span, person, kept_back):
            yield line


# An agent

MESSAGE_EVENTS: Final = ("space_message", "mention")
SAID: Final = "said"
"""The key in an event's payload under which the message is stored if it is on another server."""

_id = cast(bindparam("id"), Text)
_lived = (cycles.c.agent_id == _id, cycles.c.number.is_not(None), cycles.c.number <= bindparam("last"))


def _of_cycles(table: Table) -> FromClause:
    """Joins the table with the cycles of its rows."""
    return table.join(cycles, cycles.c.id == table.c.cycle_id)


def _event(*row: Any) -> EventLine:
    cycle, id, kind, lane, wakes, hop, attempts, space_id, created_at, payload, *message = row
    told: dict[str, Any] | None = json.loads(payload) if payload else None
    heard = None
    if message[0] is not None:
        names = ("id", "text", "sender_id", "sender", "sender_kind", "space")
        heard = WakingMessage.model_construct(**dict(zip(names, message, strict=True)))
    elif told is not None and kind in MESSAGE_EVENTS and SAID in told:
        heard = WakingMessage.model_construct(**told.pop(SAID))
        del told["text"]
    return EventLine.model_construct(
        cycle=cycle,
        id=id,
        type=kind,
        lane=lane,
        wakes=wakes,
        hop=hop,
        attempts=attempts,
        space_id=space_id,
        said=heard,
        payload=told or None,
        created_at=created_at,
    )


_LIFE: Final = (
    _section(SelfLine, selves, selves.c.era, selves.c.agent_id == _id, span=100),
    _section(CycleLine, cycles, cycles.c.number, *_lived, span=500),
    _section(
        CycleSpaceLine,
        cycle_spaces,
        cycles.c.number,
        *_lived,
        source=_of_cycles(cycle_spaces).outerjoin(spaces, spaces.c.id == cycle_spaces.c.space_id),
        span=500,
        order=(cycle_spaces.c.space_id,),
        cycle=cycles.c.number,
        private=case((cycle_spaces.c.space_id == ELSEWHERE, 1), else_=func.coalesce(spaces.c.private, 0)),
    ),
    _section(
        EntryLine,
        log,
        log.c.seq,
        *_lived,
        log.c.agent_id == _id,
        source=_of_cycles(log),
        span=500,
        cycle=cycles.c.number,
    ),
    _section(
        EffectLine,
        effects,
        cycles.c.number,
        *_lived,
        source=_of_cycles(effects),
        span=200,
        order=(effects.c.step, effects.c.position),
        cycle=cycles.c.number,
    ),
    _section(
        LongTextLine,
        overflow,
        cycles.c.number,
        *_lived,
        source=_of_cycles(overflow),
        span=200,
        order=(overflow.c.created_at, overflow.c.id),
        cycle=cycles.c.number,
        # As pointers in the log name it: a text from another agent's history has that agent's id before it.
        id=func.replace(overflow.c.id, _id + ":", ""),
    ),
    _section(
        EventLine,
        events,
        events.c.number,
        *_lived,
        events.c.agent_id == _id,
        source=_of_cycles(events)
        .outerjoin(messages, messages.c.id == events.c.message_id)
        .outerjoin(entities, entities.c.id == messages.c.author_id)
        .outerjoin(spaces, spaces.c.id == messages.c.space_id),
        span=5_000,
        make=_event,
        columns=(
            cycles.c.number, events.c.id, events.c.type, events.c.lane, events.c.wakes, events.c.hop,
            events.c.attempts, events.c.space_id, events.c.created_at, events.c.payload, messages.c.id,
            messages.c.text, entities.c.id, entities.c.name, entities.c.kind, spaces.c.name,
        ),
    ),
    _section(
        LayerLine,
        layers,
        layers.c.first,
        layers.c.agent_id == _id,
        layers.c.first <= bindparam("last"),
        layers.c.level > 0,  # chapters are written anew where the file is read
        span=1_000,
        order=(layers.c.level,),
    ),
    _section(
        PassageLine,
        passages,
        passages.c.number,
        passages.c.agent_id == _id,
        passages.c.cycle <= bindparam("last"),
        source=passages.outerjoin(messages, messages.c.id == passages.c.message_id).outerjoin(
            entities, entities.c.id == passages.c.speaker_id
        ),
        span=500,
        speaker=func.coalesce(entities.c.name, passages.c.speaker),
        text=func.coalesce(said, ""),
    ),
)  # fmt: skip

_mind = statement(
    select(minds.c.cycle_count, minds.c.last_cycle_at, minds.c.window_from, minds.c.era, minds.c.outside).where(
        minds.c.agent_id == _id
    )
)


def _kept(line: type[Line], table: Table, order: Any, **other: Any) -> tuple[type[Line], Statement]:
    return line, statement(select(*rows.columns(line, table, other)).where(table.c.agent_id == _id).order_by(order))


_KEPT: Final = (
    _kept(GoalLine, goals, goals.c.number),
    _kept(NoteLine, notes, notes.c.key),
    # The importer decides when it resumes.
    _kept(PlanLine, plans, plans.c.id, state=case((plans.c.state == "failed", "failed"), else_=literal("held"))),
)


def _begin_agent(tx: Tx, agent_id: AgentId, person: EntityId | None, kept_back: UnreadableParts | None) -> _ExportStart:
    agent = registry.get(tx, agent_id)
    mind = tx.one(_mind, id=agent_id)
    assert mind is not None  # Every agent has one.
    count, last_cycle_at, window_from, era, outside = mind
    hidden = DefinitionWithoutSecrets(agent.definition)
    line = AgentLine(
        id=agent.id,
        handle=agent.entity.handle,
        name=agent.name,
        definition=hidden.definition,
        secrets=hidden.names,
        cycles=count,
        last_cycle_at=last_cycle_at,
        window_from=window_from,
        era=era,
        outside=outside,
    )
    kept: list[Line] = [_line(kind, *row) for kind, query in _KEPT for row in tx.all(query, id=agent_id)]
    kept = withholding.readable_lines(tx, agent_id, person, kept_back, kept)
    made: list[Line] = [*stance_lines.of_agent(tx, agent_id), *memories.of_agent(tx, agent_id)]
    made = withholding.readable_lines(tx, agent_id, person, kept_back, made)
    home = agent.entity.organization_id
    return _ExportStart(home, _times_forgotten(tx, home), count, (line, *kept, *stance_lines.named(tx, made), *made))


_toolset = select_where(toolsets, "digest, tools", "digest")


def _tools_named(tx: Tx, digests: set[str]) -> list[ToolsetLine]:
    found = [tx.one(_toolset, digest=digest) for digest in sorted(digests)]
    return [ToolsetLine(digest=digest, tools=told) for digest, told in filter(None, found)]


# A space

_space = statement(
    select(
        spaces.c.organization_id,
        spaces.c.last_seq,
        spaces.c.kind,
        spaces.c.name,
        spaces.c.private,
        spaces.c.floor,
        spaces.c.agent_run_limit,
    ).where(spaces.c.id == _id)
)
_who = (entities.c.id, entities.c.kind, entities.c.handle, entities.c.name)
_members = statement(
    select(*_who, memberships.c.role, memberships.c.attention, memberships.c.read_seq)
    .join(memberships, memberships.c.entity_id == entities.c.id)
    .where(memberships.c.space_id == _id)
    .order_by(memberships.c.joined_at, entities.c.id)
)
_gone = statement(
    select(*_who)
    .where(
        or_(
            entities.c.id.in_(select(messages.c.author_id).where(messages.c.space_id == _id)),
            entities.c.id.in_(select(rounds.c.asked_by).where(rounds.c.space_id == _id)),
            entities.c.id.in_(select(voice_feelings.c.person_id).where(voice_feelings.c.space_id == _id)),
            entities.c.id.in_(select(voice_signals.c.person_id).where(voice_signals.c.space_id == _id)),
            entities.c.id.in_(select(voice_reflections.c.by_id).where(voice_reflections.c.space_id == _id)),
        ),
        entities.c.id.not_in(select(memberships.c.entity_id).where(memberships.c.space_id == _id)),
    )
    .order_by(entities.c.id)
)


_SAID: Final = _section(
    MessageLine,
    messages,
    messages.c.seq,
    messages.c.space_id == _id,
    messages.c.seq <= bindparam("last"),
    span=500,
    mentions=func.coalesce(messages.c.mentions, "[]"),
    read={"mentions": lambda told: tuple(json.loads(told)), "metadata": json.loads, "reactions": json.loads},
)


_file_columns = rows.columns(FileLine, files, {"size": contents.c.size, "digest": contents.c.digest})
_files_with_contents = files.join(contents, contents.c.id == files.c.content_id)
_FILES_OF_SPACE: Final = statement(
    select(*_file_columns)
    .select_from(_files_with_contents.join(messages, messages.c.id == files.c.message_id))
    .where(
        messages.c.space_id == _id,
        messages.c.seq >= bindparam("first"),
        messages.c.seq <= bindparam("last"),
        contents.c.digest.is_not(None),
    )
    .order_by(messages.c.seq, files.c.id)
)
_FILES_OF_AGENT: Final = statement(
    select(*_file_columns)
    .select_from(_files_with_contents)
    .where(files.c.agent_id == _id, contents.c.digest.is_not(None))
    .order_by(files.c.id)
)


async def _files(db: Database, query: Statement, whose: dict[str, Any], begun: _ExportStart) -> AsyncGenerator[OfFile]:
    """Yields the files with their contents."""

    async def lines() -> AsyncGenerator[FileLine]:
        for row in await db.read(lambda tx: tx.all(query, **whose)):
            yield rows.line_of(FileLine, row)

    async for each in file_lines.with_contents(db, begun.organization_id, lines(), set()):
        yield each


def _begin_space(tx: Tx, space_id: SpaceId) -> _ExportStart:
    home, last, kind, name, private, floor, limit = existing(tx.one(_space, id=space_id), "space", space_id)
    line = SpaceLine(
        id=space_id, kind=kind, name=name, private=private, messages=last, floor=floor, agent_run_limit=limit
    )
    here = [_line(EntityLine, *each) for each in tx.all(_members, id=space_id)]
    gone = [_line(EntityLine, *each, None, "all", 0) for each in tx.all(_gone, id=space_id)]
    made = [*panels.of_space(tx, space_id), *_remembered(tx, space_id), *memories.of_space(tx, space_id)]
    return _ExportStart(home, _times_forgotten(tx, home), last, (line, *here, *gone, *made))


_policy = statement(select(*rows.columns(PolicyLine, memory_policies)).where(memory_policies.c.space_id == _id))
_rolled = statement(
    select(*rows.columns(RollingLine, rollings))
    .where(rollings.c.space_id == _id, rollings.c.upto > 0)
    .order_by(rollings.c.reader_id)
)


def _remembered(tx: Tx, space_id: SpaceId) -> Iterator[Line]:
    """Yields the conversation's memory policy and its summaries."""
    for row in tx.all(_policy, id=space_id):
        yield rows.line_of(PolicyLine, row, {"policy": json.loads})
    for row in tx.all(_rolled, id=space_id):
        yield rows.line_of(RollingLine, row, {"memory": json.loads})


_TURNS_AT_ONCE: Final = 50


async def _rounds(db: Database, space_id: SpaceId, begun: tuple[Line, ...]) -> AsyncGenerator[Line]:
    """Yields the rounds of the turns so far, each with its replies read in one transaction."""
    turns = next((each.turns for each in begun if isinstance(each, PanelLine)), 0)
    known = {each.id for each in begun if isinstance(each, AdvisorLine | EntityLine)}
    for after in range(0, turns, _TURNS_AT_ONCE):
        until = min(after + _TURNS_AT_ONCE, turns)
        for line in await db.read(panels.rounds_of, space_id, after, until, known):
            yield line
