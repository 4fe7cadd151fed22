"""Makes cycles recallable in the background: writes missing passages from the log, and indexes their terms.

A cycle writes its passages itself when it ends. Cycles older than this feature, or without passages for another reason,
are caught up here: in order, a few at a time, from where the passages end. So the work can stop at any time and
continues where it was. What a cycle delivered in the agent's name is recalled as its summary, which says the same.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import bindparam, func, select

from denizen.clock import Clock
from denizen.consciousness import log
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.file_passages import hear_missing
from denizen.consciousness.recall.passages import Piece, newest_cycle, remember
from denizen.cycles.remembering import own_words_of, pieces_of
from denizen.ids import AgentId
from denizen.inbox import delivery
from denizen.storage.database import Database, Tx, columns, select_where, statement
from denizen.storage.schema import cycles, events, minds, passages
from denizen.telemetry.logs import get_logger
from denizen.tools import privacy_guard, quotation_index
from denizen.tools.quotation_index import MissingHashes

log_line = get_logger(__name__)

_CYCLES_AT_ONCE: Final = 20
_EVENTS_AT_ONCE: Final = 5_000
_AGENTS_AT_ONCE: Final = 500
_TOLD_EVERY: Final = 1_000
_RETRY_SECONDS: Final = 60

EventsOf = Mapping[str, Sequence[int]]
"""The numbers of the events that woke each cycle."""


@dataclass(frozen=True, slots=True)
class CycleRange:
    """Consecutive cycles, and what is to be remembered of each."""

    after: int
    """The newest cycle that could be recalled when they were read."""
    forgotten: int
    """How many passages of the agent were forgotten."""
    pieces: tuple[tuple[int, Sequence[Piece]], ...]
    """By number of the cycle."""


_cycles = statement(
    select(*columns(cycles, "id, number, first_seq, active_space_id, summary, ended_at"))
    .where(cycles.c.agent_id == bindparam("agent_id"), cycles.c.number > bindparam("after"))
    .order_by(cycles.c.number)
    .limit(_CYCLES_AT_ONCE + 1)
)


def read_lived(tx: Tx, agent_id: AgentId, after: int, events_of: EventsOf) -> CycleRange | None:
    """The next cycles after this one that cannot be recalled yet; None if there are no more."""
    newest = newest_cycle(tx, agent_id)
    rows = tx.all(_cycles, agent_id=agent_id, after=max(after, newest))
    found: list[tuple[int, Sequence[Piece]]] = []
    ends: list[int | None] = [*(row[2] for row in rows[1:]), None]
    for row, end in zip(rows[:_CYCLES_AT_ONCE], ends, strict=False):
        cycle_id, number, first_seq, active, summary, ended_at = row
        written = log.entries(tx, agent_id, first_seq) if end is None else log.entries(tx, agent_id, first_seq, end)
        entries = [entry for entry in written if entry.cycle_id == cycle_id]
        woken_by = [event for at in events_of.get(cycle_id, ()) if (event := delivery.at(tx, at)) is not None]
        words = own_words_of(entries, summary or "")
        found.append((number, pieces_of(tx, agent_id, woken_by, entries, active, words, at=ended_at)))
    return CycleRange(newest, settling.extent(tx, agent_id).forgotten, tuple(found)) if found else None


def keep_lived(tx: Tx, agent_id: AgentId, lived: CycleRange) -> bool:
    """Make the cycles recallable; False if someone else was faster or something was forgotten meanwhile."""
    if settling.hold(tx, agent_id).forgotten != lived.forgotten or newest_cycle(tx, agent_id) != lived.after:
        return False
    for number, pieces in lived.pieces:
        remember(tx, agent_id, number, pieces)
    return True


_woken_by = select_where(
    events,
    "cycle_id, number",
    "agent_id",
    events.c.cycle_id.is_not(None),
    events.c.number > bindparam("after"),
    events.c.number <= bindparam("last"),
    order_by="number",
)
_last_event = statement(select(func.coalesce(func.max(events.c.number), 0)))


def _read_woken(tx: Tx, agent_id: AgentId, after: int) -> tuple[list[tuple[str, int]], int]:
    """Cycles and events of this agent among the next events of all agents, and the number of the newest of them."""
    newest = tx.one(_last_event)
    rows = tx.all(_woken_by, agent_id=agent_id, after=after, last=after + _EVENTS_AT_ONCE)
    return [(cycle_id, number) for cycle_id, number in rows], newest[0] if newest else 0


async def _events_of(db: Database, agent_id: AgentId) -> EventsOf:
    # There is no index from a cycle to its events, because only this needs it: all events are read.
    found: defaultdict[str, list[int]] = defaultdict(list)
    after, newest = 0, 1
    while after < newest:
        woken, newest = await db.read(_read_woken, agent_id, after)
        for cycle_id, number in woken:
            found[cycle_id].append(number)
        after += _EVENTS_AT_ONCE
    return found


async def catch_up(db: Database, agent_id: AgentId) -> None:
    """Make every cycle of the agent recallable, with its words indexed."""
    due = await db.read(_next_work, agent_id, with_cycles=True)
    while due is not None:
        match due:
            case "cycles":
                await _catch_up_cycles(db, agent_id, await _events_of(db, agent_id))
                await db.write(hear_missing, agent_id)
            case MissingHashes():
                await db.write(quotation_index.keep_batch, agent_id, due)
            case _:
                await settling.work(db, agent_id, due)
        # Cycles once: those that left nothing to recall would be found again and again.
        due = await db.read(_next_work, agent_id)


def _next_work(
    tx: Tx, agent_id: AgentId, *, with_cycles: bool = False
) -> Literal["cycles"] | settling.Work | MissingHashes | None:
    """Whatever is to be done next, in one read: each is a hand-over to another thread."""
    if with_cycles and read_lived(tx, agent_id, 0, {}) is not None:
        return "cycles"
    return settling.next_work(tx, agent_id) or privacy_guard.next_batch(tx, agent_id)


async def _catch_up_cycles(db: Database, agent_id: AgentId, events_of: EventsOf) -> None:
    after = done = 0
    while (lived := await db.read(read_lived, agent_id, after, events_of)) is not None:
        if await db.write(keep_lived, agent_id, lived):
            # The last one may have left nothing to recall: then only this says that it was looked at.
            after = lived.pieces[-1][0]
            before, done = done, done + len(lived.pieces)
            if before // _TOLD_EVERY < done // _TOLD_EVERY:
                log_line.info("older cycles become recallable", agent=agent_id, cycle=after, done=done)


_recallable_to = (
    select(func.coalesce(func.max(passages.c.cycle), 0))
    .where(passages.c.agent_id == minds.c.agent_id, passages.c.file_id.is_(None))
    .correlate(minds)
    .scalar_subquery()
)
_minds = statement(
    select(minds.c.agent_id, minds.c.cycle_count, _recallable_to)
    .where(minds.c.agent_id > bindparam("after"))
    .order_by(minds.c.agent_id)
    .limit(_AGENTS_AT_ONCE)
)


def _read_minds(tx: Tx, after: str) -> list[tuple[AgentId, int, int]]:
    """The next agents, each with the number of its cycles and the last one that it can recall."""
    return [(agent_id, lived, recallable) for agent_id, lived, recallable in tx.all(_minds, after=after)]


async def lagging(db: Database) -> list[AgentId]:
    """The agents with cycles that cannot be recalled, or passages that are not settled."""
    found = list(await db.read(settling.behind))
    after = ""
    while some := await db.read(_read_minds, after):
        found += [agent_id for agent_id, lived, recallable in some if lived > recallable]
        after = some[-1][0]
    return list(dict.fromkeys(found))


@asynccontextmanager
async def following(db: Database, clock: Clock) -> AsyncGenerator[Callable[[AgentId], None]]:
    """While entered, makes new cycles recallable; yields a function to call for an agent with new cycles."""
    waiting: dict[AgentId, None] = {}
    something = asyncio.Event()

    def hint(agent_id: AgentId) -> None:
        waiting[agent_id] = None
        something.set()

    async def follow() -> None:
        for agent_id in await lagging(db):
            hint(agent_id)
        while True:
            await something.wait()
            something.clear()
            while waiting:
                agent_id = next(iter(waiting))
                del waiting[agent_id]
                await catch_up(db, agent_id)

    async def keep_following() -> None:
        while True:
            try:
                await follow()
            except Exception as error:  # noqa: BLE001  the loop's boundary: what is lived is kept, and found later
                log_line.warning("making cycles recallable failed", error=repr(error))
                await clock.sleep(_RETRY_SECONDS)

    # Not a task group: errors inside the `with` block are not this task's, and must be raised unwrapped.
    task = asyncio.create_task(keep_following(), name="making cycles recallable")
    try:
        yield hint
    finally:
        task.cancel()
        await asyncio.wait([task])
