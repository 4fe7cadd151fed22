"""Inspects an agent, for admins: its inbox, cycles, window, log and recall. Private text is for members only."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Final

from fastapi import Path, Query

from denizen.access.requesters import find_agent
from denizen.access.roles import reaches
from denizen.agents import managing, registry
from denizen.agents.inspection import inspect, readable_event, readable_record
from denizen.consciousness import compaction, log, privacy, replay
from denizen.consciousness.log import DatedEntry, Entry
from denizen.consciousness.privacy import Reader, Run, stand_in
from denizen.cycles import records
from denizen.cycles.records import CycleRecord
from denizen.cycles.skipped_cycles import SkippedCycle, unkept
from denizen.cycles.usage import answers_of_cycles
from denizen.errors import InvalidInput, NotAllowed, NotFound
from denizen.ids import AgentId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.delivery import OpenState
from denizen.inbox.events import Lane
from denizen.server.auth import Admin, Caller
from denizen.server.router import new_router
from denizen.server.shapes.minds import (
    Rethink,
    answer_again_out,
    crossing_out,
    cycle_detail_out,
    cycle_out,
    inbox_event_out,
    log_entry_out,
    mind_out,
    open_cycle_out,
    private_log_entry_out,
    recalled_out,
    request_out,
    unkept_cycle_out,
)
from denizen.shapes.minds import (
    AnswersAgain,
    CrossingPage,
    CycleDetail,
    CycleOut,
    CyclePage,
    InboxPage,
    LogEntry,
    LogPage,
    MindOut,
    RecallOut,
    RequestOut,
)
from denizen.spaces import directory
from denizen.spaces.source_names import named
from denizen.storage.database import Tx, storable
from denizen.tools import privacy_guard
from denizen.tools.privacy_guard import Crossing
from denizen.tools.recalling import QUERY_CHARACTERS

router = new_router()

_LAST: Final = 2**62
_CURSOR: Final = re.compile(r"(urgent|normal)-(\d{1,18})")

Number = Annotated[int | None, Query(ge=0, le=_LAST)]
Limit = Annotated[int, Query(ge=1, le=200)]
CycleNumber = Annotated[int, Path(ge=0, le=_LAST)]
Short = Annotated[str | None, Query(max_length=200)]


@router.get("/api/agents/{agent_id}/mind", summary="Get the state of an agent's mind")
async def get_mind(caller: Admin, agent_id: str) -> MindOut:
    """Its window, inbox, goals, plans, budget and last cycles, all at one moment."""
    return await caller.runtime.db.read(_mind, agent_id, caller)


def _mind(tx: Tx, agent_id: str, caller: Caller) -> MindOut:
    return mind_out(inspect(tx, _past(tx, agent_id, caller), caller.entity.id))


def _past(tx: Tx, agent_id: str, caller: Caller) -> AgentId:
    """The agent, also one that was deleted: its past stays."""
    return find_agent(tx, caller.requester, agent_id, also_dead=True)


# The inbox


@router.get("/api/agents/{agent_id}/inbox", summary="List the inbox of an agent")
async def list_inbox(
    caller: Admin,
    agent_id: str,
    state: OpenState = "pending",
    after: Annotated[str | None, Query(max_length=40, description="What `next` of the page before said.")] = None,
    limit: Limit = 50,
) -> InboxPage:
    """Events that are `pending`, `taken` by the running cycle, or `dead`, in the order in which they are taken."""
    lane, number = _cursor(after)
    return await caller.runtime.db.read(_inbox, agent_id, caller, state, lane, number, limit)


def _cursor(given: str | None) -> tuple[Lane, int]:
    if given is None:
        return "urgent", 0
    found = _CURSOR.fullmatch(given)
    if found is None:
        raise InvalidInput("after: use the value of `next` from the previous page.")
    return "urgent" if found[1] == "urgent" else "normal", int(found[2])


def _inbox(tx: Tx, agent_id: str, caller: Caller, state: OpenState, lane: Lane, number: int, limit: int) -> InboxPage:
    agent = _past(tx, agent_id, caller)
    reader = privacy.reader(tx, agent, caller.entity.id)
    found = delivery.listed(tx, agent, state, lane=lane, after=number, limit=limit + 1)
    page = [replace(each, event=readable_event(each.event, reader)) for each in found[:limit]]
    last = page[-1].event if len(found) > limit else None
    return InboxPage(
        events=[inbox_event_out(each) for each in page],
        next=None if last is None else f"{last.lane}-{last.number}",
    )


@router.post("/api/agents/{agent_id}/inbox/{event_id}/requeue", status_code=204, summary="Retry a dead event")
async def requeue_event(caller: Admin, agent_id: str, event_id: str) -> None:
    """The event waits as if it were new, and wakes the agent."""
    await caller.write(managing.requeue, agent_id, event_id)


@router.post("/api/agents/{agent_id}/inbox/{event_id}/urgent", status_code=204, summary="Make an event urgent")
async def mark_event_urgent(caller: Admin, agent_id: str, event_id: str) -> None:
    """The agent sees it at its next step instead of after its cycle."""
    await caller.write(managing.mark_urgent, agent_id, event_id)


# Cycles


@router.get("/api/agents/{agent_id}/cycles", summary="List the cycles of an agent")
async def list_cycles(caller: Admin, agent_id: str, before: Number = None, limit: Limit = 50) -> CyclePage:
    """The last ones before a number, newest first; without a number, the running one and the newest.

    The list includes cycles without a record in the agent's history: `skipped` and `undone`.
    """
    return await caller.runtime.db.read(_cycles, agent_id, caller, before, limit)


def _cycles(tx: Tx, agent_id: str, caller: Caller, before: int | None, limit: int) -> CyclePage:
    agent = _past(tx, agent_id, caller)
    found = records.cycles_before(tx, agent, _LAST if before is None else before, limit=limit + 1)
    kept, more = found[:limit], len(found) > limit
    # The page reaches from the end of its oldest cycle to that of the cycle it comes before.
    since = kept[-1].ended_at if more else registry.life(tx, agent).created_at
    came_to_nothing, complete = unkept(tx, agent, since, _until(tx, agent, before))
    reader = privacy.reader(tx, agent, caller.entity.id)
    lived = _lived(tx, caller, agent, kept, reader)
    told = [*(unkept_cycle_out(_readable_unkept(each, reader)) for each in came_to_nothing), *lived]
    # Of those that ended in the same instant the kept one came first: what is undone is tried again later.
    told.sort(key=lambda each: each.ended_at.timestamp() if each.ended_at else 0.0, reverse=True)
    under_way = records.open_record(tx, agent) if before is None else None
    if under_way is not None:
        told.insert(0, open_cycle_out(under_way))
    return CyclePage(cycles=told, next=kept[-1].number if more else None, complete=complete)


def _readable_unkept(each: SkippedCycle, reader: Reader) -> SkippedCycle:
    return replace(each, reason=stand_in(1)) if each.reason and reader.hides_cycle(each.cycle_id) else each


def _to_open(caller: Caller, reader: Reader, cycle_id: str) -> list[str]:
    """Which spaces the caller could open to read the cycle."""
    return reader.closed_sources(cycle_id) if reaches(caller.role, "owner") else []


def _lived(tx: Tx, caller: Caller, agent_id: AgentId, kept: list[CycleRecord], reader: Reader) -> list[CycleOut]:
    if not kept:
        return []
    first, last = kept[-1].number, kept[0].number
    answers = answers_of_cycles(tx, agent_id, first, last)
    told = {each.number: each for each in compaction.lived(tx, agent_id, first, last)}
    return [
        cycle_out(shown, answers.get(each.number), told.get(each.number), private, _to_open(caller, reader, each.id))
        for each in kept
        for shown, private in [readable_record(tx, each, reader)]
    ]


def _until(tx: Tx, agent_id: AgentId, before: int | None) -> int:
    if before is None:
        return _LAST
    try:
        return records.get_cycle(tx, agent_id, before).ended_at
    except NotFound:
        return _LAST if before > registry.life(tx, agent_id).cycles else 0


@router.get("/api/agents/{agent_id}/cycles/{number}", summary="Get a cycle, step by step")
async def get_cycle(caller: Admin, agent_id: str, number: CycleNumber) -> CycleDetail:
    """What the agent was shown, what its model answered and called, and the results."""
    return await caller.runtime.db.read(_cycle, agent_id, caller, number)


def _cycle(tx: Tx, agent_id: str, caller: Caller, number: int) -> CycleDetail:
    agent = _past(tx, agent_id, caller)
    reader = privacy.reader(tx, agent, caller.entity.id)
    kept = _entries_of_cycle(tx, agent, number)
    record, private = readable_record(tx, records.get_cycle(tx, agent, number), reader)
    answers = answers_of_cycles(tx, agent, number, number).get(number)
    told = next(iter(compaction.lived(tx, agent, number, number)), None)
    entries = [] if private else reader.entries(kept)
    entries = [_with_names(tx, agent, each) for each in entries]
    return cycle_detail_out(record, entries, answers, told, private, _to_open(caller, reader, record.id))


@router.get("/api/agents/{agent_id}/cycles/{number}/steps/{step}", summary="Get the exact request of a step")
async def get_step(
    caller: Admin,
    agent_id: str,
    number: CycleNumber,
    step: Annotated[int, Path(ge=0, le=1_000_000)],
) -> RequestOut:
    """What was sent to the model, word for word, with tools and settings, and its response. Steps begin at 0."""
    return await caller.runtime.db.read(_step, agent_id, caller, number, step)


def _step(tx: Tx, agent_id: str, caller: Caller, number: int, step: int) -> RequestOut:
    agent = _past(tx, agent_id, caller)
    _require_step(tx, agent, number, step)
    return request_out(replay.request(tx, agent, number, step, caller.entity.id))


def _require_step(tx: Tx, agent_id: AgentId, number: int, step: int) -> None:
    steps = sum(each.kind == "response" for each in _entries_of_cycle(tx, agent_id, number))
    if step >= steps:
        raise NotFound("step", str(step), replay.no_such_step(number, step, steps))


def _entries_of_cycle(tx: Tx, agent_id: AgentId, number: int) -> list[Entry]:
    try:
        return replay.entries_of_cycle(tx, agent_id, number)
    except InvalidInput as error:
        raise NotFound("cycle", str(number), str(error)) from error


@router.post("/api/agents/{agent_id}/cycles/{number}/rethink", summary="Ask another model the same requests")
async def rethink(caller: Admin, agent_id: str, number: CycleNumber, wanted: Rethink) -> AnswersAgain:
    """No tool runs and nothing is stored; the model calls cost money as usual.

    Content from private spaces that you are not a member of is left out. A cycle that was in such a space cannot be
    asked again.
    """
    runtime = caller.runtime
    agent = await runtime.db.read(_thought, agent_id, caller, number, wanted.step or 0)
    again = await runtime.minds.rethink(agent, number, model=wanted.model, step=wanted.step, reader=caller.entity)
    return AnswersAgain(answers=[answer_again_out(each) for each in again])


def _thought(tx: Tx, agent_id: str, caller: Caller, number: int, step: int) -> AgentId:
    agent = _past(tx, agent_id, caller)
    _require_step(tx, agent, number, step)
    if privacy.reader(tx, agent, caller.entity.id).hides_cycle(records.get_cycle(tx, agent, number).id):
        raise NotAllowed("This cycle comes from a private space that you are not in: only its members can read it.")
    return agent


# The log, and what is in it


@router.get("/api/agents/{agent_id}/log", summary="List the log of an agent")
async def read_log(
    caller: Admin, agent_id: str, after: Number = None, before: Number = None, limit: Limit = 50
) -> LogPage:
    """Entries `after` a number, or the last ones `before` one; with neither, from the beginning. Oldest first."""
    if after is not None and before is not None:
        raise InvalidInput("Ask for entries after a number or before one, not both.")
    return await caller.runtime.db.read(_log, agent_id, caller, after or 0, before, limit)


def _log(tx: Tx, agent_id: str, caller: Caller, after: int, before: int | None, limit: int) -> LogPage:
    agent = _past(tx, agent_id, caller)
    if before is None:
        found = log.entries_after(tx, agent, after, limit=limit + 1)
        page, following = found[:limit], limit - 1
    else:
        found = log.entries_before(tx, agent, before, limit=limit + 1)
        page, following = found[-limit:], 0
    reader, by_seq = privacy.reader(tx, agent, caller.entity.id), {each.entry.seq: each for each in page}
    runs = reader.runs(each.entry for each in page)
    return LogPage(
        entries=[_log_entry(by_seq[run.entries[0].seq], run, reader) for run in runs],
        next=page[following].entry.seq if len(found) > limit else None,
    )


def _log_entry(first: DatedEntry, run: Run, reader: Reader) -> LogEntry:
    if run.hidden:
        return private_log_entry_out(first, run)
    return log_entry_out(replace(first, entry=_with_names(reader.tx, reader.agent_id, reader.entry(first.entry))))


def _with_names(tx: Tx, agent_id: AgentId, entry: Entry) -> Entry:
    """The entry, with handles in the place of ids where it says what its text from outside came from."""
    return replace(entry, outside=named(tx, agent_id, entry.outside)) if entry.outside else entry


@router.get("/api/agents/{agent_id}/recall", summary="Search what an agent remembers")
async def recall(
    caller: Admin,
    agent_id: str,
    q: Annotated[str, Query(min_length=1, max_length=QUERY_CHARACTERS, description="What is looked for.")],
    when: Annotated[Short, Query(description="Only from then: `2026-03-05`, `May 2025`, `last week`.")] = None,
    who: Annotated[Short, Query(description="Only what they said: a name or `@handle`; `me` is the agent.")] = None,
    space: Annotated[Short, Query(description="Only from this space of the agent: its id or name.")] = None,
    limit: Annotated[int, Query(ge=1, le=80)] = 20,
) -> RecallOut:
    """The same results that the agent would find, best first. Passages from a private space are found only if you
    name that space.
    """
    runtime = caller.runtime
    agent, where = await runtime.db.read(_recaller, agent_id, caller, space)
    words = [None if each is None else storable(each) for each in (when, who)]
    found = await runtime.minds.recall(
        agent, storable(q), when=words[0], who=words[1], space=where, reader=caller.entity
    )
    return RecallOut(found=[recalled_out(each) for each in found[:limit]])


def _recaller(tx: Tx, agent_id: str, caller: Caller, space: str | None) -> tuple[AgentId, SpaceId | None]:
    agent = _past(tx, agent_id, caller)
    if space is None:
        return agent, None
    reader = privacy.reader(tx, agent, caller.entity.id)
    for each in directory.spaces_of(tx, agent):
        if space in (each.id, each.name) and not reader.hides_space(each.id):
            return agent, each.id
    raise NotFound("space", space)


@router.get("/api/agents/{agent_id}/crossings", summary="List messages that the privacy guard stopped")
async def list_crossings(caller: Admin, agent_id: str, before: Number = None, limit: Limit = 50) -> CrossingPage:
    """Messages of the agent that would have carried private words to another space, newest first."""
    return await caller.runtime.db.read(_crossings, agent_id, caller, before, limit)


def _crossings(tx: Tx, agent_id: str, caller: Caller, before: int | None, limit: int) -> CrossingPage:
    agent = _past(tx, agent_id, caller)
    found = privacy_guard.crossings_before(tx, agent, _LAST if before is None else before, limit=limit + 1)
    page, reader = found[:limit], privacy.reader(tx, agent, caller.entity.id)
    return CrossingPage(
        crossings=[crossing_out(_readable_crossing(each, reader)) for _, each in page],
        next=page[-1][0] if len(found) > limit else None,
    )


def _readable_crossing(each: Crossing, reader: Reader) -> Crossing:
    """Where it came from and where it would have gone, as far as the reader may know of these spaces."""
    nowhere = SpaceId("")
    if reader.hides_space(each.from_space_id):
        each = replace(each, from_space=stand_in(1), from_space_id=nowhere)
    return replace(each, to_space_id=nowhere) if reader.hides_space(each.to_space_id) else each
