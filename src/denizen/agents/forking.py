"""Forks an agent: a new agent with the history of another, up to one of its cycles. The original is not touched.

One transaction copies everything that happened to it: the log with its eras, the cycles and their effects, and what can
be recalled of them. The copy is exact, so every request up to there can be replayed from the new agent as well. Goals
and notes have no history: they are copied as they are now. What would make two agents do the same thing is left out:
memberships, waiting events, plans and the heartbeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import FromClause, Table, Text, bindparam, cast, func, insert, literal, null, select, union_all

from denizen.agents import registry
from denizen.agents.registry import Agent
from denizen.agents.restrictions import DefinitionPolicy
from denizen.consciousness import eras
from denizen.consciousness import lease as leases
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.passages import RECALLABLE, VECTORS_IN_A_ROW
from denizen.consciousness.recall.postings import BLOCK, block_of
from denizen.consciousness.replay import entries_of_cycle
from denizen.errors import InvalidInput
from denizen.ids import AgentId
from denizen.reflection import records
from denizen.spaces import directory
from denizen.storage.database import Statement, Tx, insert_into, long_running, select_where, statement
from denizen.storage.schema import (
    cycle_spaces,
    cycles,
    effects,
    events,
    fact_spaces,
    goals,
    layers,
    log,
    minds,
    notes,
    overflow,
    passages,
    postings,
    recalls,
    selves,
    vectors,
    wordings,
)
from denizen.storage.schema import leases as leases_table

_LEVELS: Final = 18
"""Ten to this power is more cycles than any agent has."""

_fork = cast(bindparam("fork"), Text)
_cycle_id = _fork + "-" + cast(cycles.c.number, Text)
"""The id of a copied cycle: that of its agent and its number, so that a retried transaction makes the same ids."""
_lived = (cycles.c.agent_id == bindparam("agent"), cycles.c.number.is_not(None), cycles.c.number <= bindparam("last"))


def _copy(table: Table, source: FromClause, *where: Any, order: Any = None, **changed: Any) -> Statement:
    """Copies the rows of `table` in `source`, with these columns changed."""
    names = [column.name for column in table.c if column is not table.autoincrement_column]
    wanted = select(*(_given(table, name, changed) for name in names)).select_from(source).where(*where)
    return statement(insert(table).from_select(names, wanted if order is None else wanted.order_by(order)))


def _given(table: Table, name: str, changed: Mapping[str, Any]) -> Any:
    given = changed.get(name, table.c[name])
    return cast(null(), table.c[name].type) if given is None else given


def _of_cycles(table: Table, **changed: Any) -> Statement:
    joined = table.join(cycles, cycles.c.id == table.c.cycle_id)
    # A condition on both where both have the column: the log is indexed by its agent.
    mine = [table.c.agent_id == bindparam("agent")] if "agent_id" in table.c else []
    return _copy(table, joined, *_lived, *mine, order=table.autoincrement_column, cycle_id=_cycle_id, **changed)


def _of_agent(table: Table, *where: Any) -> Statement:
    return _copy(table, table, table.c.agent_id == bindparam("agent"), *where, agent_id=_fork)


_copied: Final = (
    _copy(
        cycles,
        cycles,
        *_lived,
        id=_cycle_id,
        agent_id=_fork,
        attempts=0,
        interruptions=0,
        not_before=0,
        handed_back=0,
        digest=None,
    ),
    # Without digests: they are of the rows of the original, and the fork begins a chain of its own.
    _of_cycles(log, agent_id=_fork, salt=None, digest=None),
    _of_cycles(effects),
    # A pointer in the log contains the old id of the text: `log.long_text` looks for it with the agent before it.
    _of_cycles(
        overflow, id=_fork + ":" + func.replace(overflow.c.id, cast(bindparam("agent"), Text) + ":", ""), agent_id=_fork
    ),
    # The events that woke those cycles, so that they can be read, and found by forgetting. Nobody waits for the fork.
    _of_cycles(events, agent_id=_fork, waits=0),
    # The same people may read it as may read the original.
    _of_cycles(cycle_spaces, agent_id=_fork),
    _of_agent(passages, passages.c.cycle <= bindparam("last")),
)
_kept_now: Final = (_of_agent(goals), _of_agent(notes), _of_agent(fact_spaces))
_copy_selves = _of_agent(selves, selves.c.era <= bindparam("era"))
_copy_layers = _of_agent(layers, layers.c.level == bindparam("level"), layers.c.first <= bindparam("latest"))


@long_running
def fork(
    tx: Tx,
    policy: DefinitionPolicy,
    agent_id: AgentId,
    *,
    handle: str | None = None,
    at: int | None = None,
    name: str | None = None,
    id: AgentId | None = None,
) -> Agent:
    """A new sleeping agent in no space, with the cycles of this one up to `at`; by default all of them.

    Without a handle it gets that of this one and a number. Raises `InvalidInput` if this agent has fewer cycles, and
    `NotAllowed` if the policy would refuse its definition for a new agent.
    """
    original = registry.get(tx, agent_id)
    handle = handle or directory.free_handle(tx, original.entity.organization_id, original.entity.handle)
    state = _state_after(tx, original, at)
    definition = original.definition.model_copy(update={"heartbeat": None})
    home = original.entity.organization_id
    made = registry.create(tx, policy, home, name=name or original.name, handle=handle, definition=definition, id=id)
    whose = {"agent": agent_id, "fork": made.id}
    for each in _copied:
        tx.run(each, **whose, last=state.cycle)
    for each in _kept_now:
        tx.run(each, **whose)
    tx.run(_copy_selves, **whose, era=state.era)
    for level in range(_LEVELS):
        # Only groups and chapters whose cycles are all copied. A chapter has ten, like a group of the first level.
        tx.run(_copy_layers, **whose, level=level, latest=state.cycle - 10 ** max(level, 1) + 1)
    _copy_index(tx, agent_id, made.id)
    eras.take_over(
        tx,
        made.id,
        cycles=state.cycle,
        ended_at=state.ended_at,
        window_from=state.window_from,
        era=state.era,
        outside=state.outside or _holds_outside(tx, made.id, state),
    )
    if definition.reflection.is_on:
        records.leave_past(tx, made.id)
    # A process has thought for it, under another agent id: the next holder is not the first.
    leases.seize(tx, made.id)
    return made


# The starting state


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a mind after a cycle."""

    cycle: int
    ended_at: int
    era: int
    window_from: int
    outside: bool = False
    """Whether it is known to hold text from outside."""


_lease = statement(
    select(leases_table.c.epoch).where(leases_table.c.agent_id == bindparam("agent_id")).with_for_update(read=True)
)
_mind = statement(
    select(minds.c.cycle_count, minds.c.era, minds.c.window_from, minds.c.last_cycle_at, minds.c.outside)
    .where(minds.c.agent_id == bindparam("agent_id"))
    # No cycle and no redaction may end while we copy.
    .with_for_update()
)
_ended = select_where(cycles, "ended_at", "agent_id, number")
_mark = literal(1).label("mark")
_marks = statement(
    union_all(
        # A cycle is marked if any before it was.
        select(_mark).where(
            cycles.c.agent_id == bindparam("agent_id"),
            cycles.c.number == bindparam("last"),
            cycles.c.number.is_not(None),
            cycles.c.outside_from.is_not(None),
        ),
        select(_mark).where(
            selves.c.agent_id == bindparam("agent_id"), selves.c.era == bindparam("era"), selves.c.outside == 1
        ),
        select(_mark).where(notes.c.agent_id == bindparam("agent_id"), notes.c.outside == 1),
        select(_mark).where(goals.c.agent_id == bindparam("agent_id"), goals.c.outside == 1),
    )
)


def _holds_outside(tx: Tx, fork_id: AgentId, state: _State) -> bool:
    """Whether the copy holds text from outside, or text made from it."""
    return bool(tx.all(_marks, agent_id=fork_id, last=state.cycle, era=state.era))


def _state_after(tx: Tx, original: Agent, at: int | None) -> _State:
    # The lease first: every write of a cycle and every forgetting locks it first.
    tx.one(_lease, agent_id=original.id)
    row = tx.one(_mind, agent_id=original.id)
    assert row is not None
    count, era, window_from, last_cycle_at, outside = row
    if count == 0:
        raise InvalidInput(f"The agent @{original.entity.handle} has no cycles yet, so there is no history to copy.")
    wanted = count if at is None else at
    if not 1 <= wanted <= count:
        raise InvalidInput(
            f"The agent @{original.entity.handle} has no cycle {wanted:,}: its cycles are 1 to {count:,}."
        )
    if wanted == count:
        return _State(count, last_cycle_at, era, window_from, bool(outside))
    ended = tx.one(_ended, agent_id=original.id, number=wanted)
    answers = [each for each in entries_of_cycle(tx, original.id, wanted) if each.kind == "response"]
    assert ended is not None
    # Only the last cycle of an agent can have ended without an answer: that of a deleted agent.
    made_of = json.loads(answers[-1].request or "")
    return _State(wanted, ended[0], made_of["era"], made_of["from"])


# Search index

_index = select_where(recalls, "passages, forgotten, length, settled, embedder, embedded, worded, terms", "agent_id")
_counted = select_where(
    passages,
    (func.coalesce(func.max(passages.c.number), 0), func.count().filter(passages.c.kind == "forgotten")),
    "agent_id",
)
_add_index = insert_into(recalls, "agent_id, passages, forgotten, length, settled, embedder, embedded, worded, terms")
_copy_postings = _of_agent(postings, postings.c.block < bindparam("end"), postings.c.block >= bindparam("oldest"))
_copy_vectors = _of_agent(vectors, vectors.c.embedder == bindparam("name"), vectors.c.first <= bindparam("newest"))
_copy_words = _of_agent(wordings, wordings.c.embedder == bindparam("name"), wordings.c.number <= bindparam("newest"))


def _copy_index(tx: Tx, agent_id: AgentId, fork_id: AgentId) -> None:
    """Make the copied passages of the fork searchable by words and, except for the last few, by meaning."""
    row = tx.one(_index, agent_id=agent_id)
    if row is None:
        return
    copied = tx.one(_counted, agent_id=fork_id)
    assert copied is not None  # aggregates always return a row
    _, _, length, settled, embedder, embedded, worded, terms = row
    newest, forgotten = copied
    whole_rows = newest // VECTORS_IN_A_ROW * VECTORS_IN_A_ROW
    whose = {"agent": agent_id, "fork": fork_id}
    kept = _copy_postings_until(tx, agent_id, fork_id, min(newest, settled))
    tx.run(_copy_vectors, **whose, name=embedder, newest=whole_rows)
    tx.run(_copy_words, **whose, name=embedder, newest=whole_rows)
    tx.run(
        _add_index,
        agent_id=fork_id,
        passages=newest,
        forgotten=forgotten,
        # The number of terms of each passage is not stored; only their mean is needed.
        length=length * kept // max(settled, 1),
        settled=kept,
        embedder=embedder,
        embedded=min(embedded, whole_rows),
        worded=min(worded, whole_rows),
        terms=terms,
    )


def _copy_postings_until(tx: Tx, agent_id: AgentId, fork_id: AgentId, newest: int) -> int:
    """Copy the blocks and segments of the word index that end at or before this passage. Returns where they end.

    The remaining passages are searched unindexed until they are settled.
    """
    segments = [first for first, _ in settling.all_segments(tx, agent_id)]
    whole = min(block_of(newest + 1), block_of(segments[0]) if segments else block_of(newest + 1))
    ends = [first - 1 for first in segments[1:] if first - 1 <= newest]
    last = max(ends, default=whole * BLOCK - 1 if whole else 0)
    if segments and settling.extent(tx, agent_id).settled == newest:
        last = newest
    tx.run(_copy_postings, agent=agent_id, fork=fork_id, oldest=-last, end=whole)
    if newest > last:
        tx.announce(RECALLABLE, {"agent": fork_id})
    return last
