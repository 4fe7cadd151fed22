"""Checks that no row is left over or missing: traces of skipped cycles, strays, plans, references, lost parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import ForeignKey, exists, func, select

from denizen.checks.spaces import MESSAGE_EVENTS
from denizen.checks.violation import Violation
from denizen.storage.database import Statement, Tx, long_running, statement
from denizen.storage.schema import (
    agents,
    calls,
    cycles,
    effects,
    entities,
    events,
    ledger,
    log,
    memberships,
    messages,
    metadata,
    organizations,
    overflow,
    panels,
    passages,
    plans,
    recalls,
    roster,
    rounds,
    spaces,
    spending,
)

_lost_events = statement(
    select(events.c.agent_id, events.c.id)
    .where(events.c.type.in_(MESSAGE_EVENTS))
    # An imported one whose message stayed on the other server has the text itself.
    .where(
        (events.c.message_id.is_(None) & events.c.payload.is_(None))
        | (events.c.message_id.is_not(None) & events.c.message_id.not_in(select(messages.c.id)))
    )
    .order_by(events.c.number)
)
_skips = select(ledger.c.cycle_id).where(ledger.c.kind == "skip")
_known = select(cycles.c.id)
_traces = {
    "the cycle records": statement(select(cycles.c.id).where(cycles.c.id.in_(_skips))),
    "the log": statement(select(log.c.cycle_id).where(log.c.cycle_id.in_(_skips)).distinct()),
    "the effects": statement(select(effects.c.cycle_id).where(effects.c.cycle_id.in_(_skips)).distinct()),
    "the long results": statement(select(overflow.c.cycle_id).where(overflow.c.cycle_id.in_(_skips)).distinct()),
    "a space": statement(select(messages.c.cycle_id).where(messages.c.cycle_id.in_(_skips)).distinct()),
}
_strays = {
    "An effect": statement(
        select(effects.c.cycle_id)
        .where(effects.c.cycle_id.not_in(_known), effects.c.cycle_id.not_in(_skips))
        .distinct()
    ),
    "A long result": statement(
        select(overflow.c.cycle_id)
        .where(overflow.c.cycle_id.not_in(_known), overflow.c.cycle_id.not_in(_skips))
        .distinct()
    ),
    "A message": statement(
        select(messages.c.cycle_id)
        .where(messages.c.cycle_id.is_not(None))
        .where(messages.c.cycle_id.not_in(_known), messages.c.cycle_id.not_in(_skips))
        .distinct()
    ),
}


def check_leftovers(tx: Tx) -> Iterator[Violation]:
    for agent_id, event_id in tx.all(_lost_events):
        yield Violation(2, "An inbox holds the event of a message that does not exist.", (agent_id, event_id))
    for where, query in _traces.items():
        for (cycle_id,) in tx.all(query):
            yield Violation(6, f"A skipped cycle left a trace in {where}.", (cycle_id,))
    for what, query in _strays.items():
        for (cycle_id,) in tx.all(query):
            yield Violation(4, f"{what} is of a cycle that does not exist.", (cycle_id,))


_fired_timers = statement(
    select(plans.c.agent_id, plans.c.id)
    .join(events, (events.c.agent_id == plans.c.agent_id) & events.c.id.like("timer:" + plans.c.id + ":%"))
    .where(plans.c.kind == "timer")
)
_plans_of_the_dead = statement(
    select(plans.c.agent_id, plans.c.id).join(agents, agents.c.id == plans.c.agent_id).where(agents.c.status == "dead")
)


def check_plans(tx: Tx) -> Iterator[Violation]:
    for agent_id, plan_id in tx.all(_fired_timers):
        yield Violation(4, "A timer has gone off, and waits to go off again.", (agent_id, plan_id))
    for agent_id, plan_id in tx.all(_plans_of_the_dead):
        yield Violation(5, "A dead agent has a plan.", (agent_id, plan_id))


_SHOWN: Final = 5
"""The most missing ids that are named."""


def _broken(key: ForeignKey) -> Statement:
    """Selects the values of a column that refer to a missing row, and how many rows hold each."""
    target = key.column.table.alias("target")
    missing = ~exists(select(target.c[key.column.name]).where(target.c[key.column.name] == key.parent))
    return statement(
        select(key.parent, func.count())
        .where(key.parent.is_not(None), missing)
        .group_by(key.parent)
        .order_by(key.parent)
    )


_references: Final = [
    (table.name, key.parent.name, key.column.table.name, _broken(key))
    for table in metadata.sorted_tables
    for key in sorted(table.foreign_keys, key=lambda each: each.parent.name)
]


_of_models = (
    select(ledger.c.agent_id, ledger.c.model, func.sum(ledger.c.input_tokens + ledger.c.output_tokens).label("tokens"))
    .where(ledger.c.model.is_not(None))
    .group_by(ledger.c.agent_id, ledger.c.model)
    .subquery()
)
_spent = (
    select(func.coalesce(func.sum(spending.c.input_tokens + spending.c.output_tokens), 0))
    .where(spending.c.agent_id == _of_models.c.agent_id, spending.c.model == _of_models.c.model)
    .scalar_subquery()
)
_kept = select(func.count()).where(passages.c.agent_id == recalls.c.agent_id).scalar_subquery()
_incomplete: Final = (
    (
        "An agent has no definition.",
        statement(
            select(entities.c.id).where(
                entities.c.kind == "agent", ~exists(select(agents.c.id).where(agents.c.id == entities.c.id))
            )
        ),
    ),
    (
        "A question is missing that its cycle waits for.",
        statement(
            select(effects.c.cycle_id)
            .join(cycles, cycles.c.id == effects.c.cycle_id)
            .where(
                effects.c.state == "asked",
                cycles.c.number.is_(None),
                ~exists(select(calls.c.id)).where(
                    calls.c.cycle_id == effects.c.cycle_id,
                    calls.c.step == effects.c.step,
                    calls.c.position == effects.c.position,
                ),
            )
        ),
    ),
    *(
        (
            f"{'An' if kind[0] in 'aeiou' else 'A'} {kind} is missing.",
            statement(select(roster.c.id).where(roster.c.kind == kind, roster.c.id.not_in(select(table.c.id)))),
        )
        for kind, table in (
            ("organization", organizations),
            ("entity", entities),
            ("space", spaces),
            ("question", calls),
        )
    ),
    (
        "A member of a space is missing.",
        statement(
            select(roster.c.id, roster.c.member_id).where(
                roster.c.kind == "member",
                ~exists(select(memberships.c.space_id)).where(
                    memberships.c.space_id == roster.c.id, memberships.c.entity_id == roster.c.member_id
                ),
            )
        ),
    ),
    (
        "A panel has no settings.",
        statement(
            select(rounds.c.space_id)
            .where(~exists(select(panels.c.space_id).where(panels.c.space_id == rounds.c.space_id)))
            .distinct()
        ),
    ),
    (
        "The spending of an agent is less than what its model calls used.",
        statement(select(_of_models.c.agent_id, _of_models.c.model).where(_of_models.c.tokens > _spent)),
    ),
    (
        "Passages of an agent's past are missing.",
        statement(select(recalls.c.agent_id).where(recalls.c.passages != _kept)),
    ),
)


@long_running
def check_references(tx: Tx) -> list[Violation]:
    """Returns every row that refers to a missing one, or has lost a part."""
    found: list[Violation] = []
    for sentence, query in _incomplete:
        found += [Violation(0, sentence, tuple(map(str, row))) for row in tx.all(query)]
    for table, column, target, query in _references:
        if rows := tx.all(query):
            count = sum(each[1] for each in rows)
            sentence = f"{count:,} {'row' if count == 1 else 'rows'} of {table}: {column} is not in {target}."
            found.append(Violation(0, sentence, tuple(str(each[0]) for each in rows[:_SHOWN])))
    return found
