"""The record of an agent's calls and results, keyed by cycle, step and position, because provider call ids repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from denizen.ids import CycleId, MessageId
from denizen.inbox import sources
from denizen.inbox.outside import parsed
from denizen.inbox.sources import Source
from denizen.storage.database import Tx, insert_into, select_where, update_where
from denizen.storage.schema import effects


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One call and its result."""

    step: int
    position: int
    tool: str
    state: Literal["intent", "asked", "done"]
    changes: bool
    result: str | None
    outside: tuple[Source, ...] = ()
    """The sources of text from outside in the result."""


_add = insert_into(effects, "cycle_id, step, position, tool, state, changes, result, rule, outside, created_at")
_complete = update_where(
    effects, "cycle_id, step, position", effects.c.state != "done", set_="result, outside", state="done"
)
_of_cycle = select_where(
    effects, "step, position, tool, state, changes, result, outside", "cycle_id", order_by="step, position"
)


def record(
    tx: Tx,
    cycle_id: CycleId,
    step: int,
    position: int,
    tool: str,
    *,
    result: str,
    changes: bool,
    outside: Sequence[Source] = (),
) -> None:
    """Record a finished call. Fails if it was recorded before. `outside`: sources of outside text in its result."""
    tx.send(
        _add,
        cycle_id=cycle_id,
        step=step,
        position=position,
        tool=tool,
        state="done",
        changes=int(changes),
        result=result,
        rule=None,
        outside=sources.dump(outside or None),
        created_at=tx.now,
    )


def intend(
    tx: Tx,
    cycle_id: CycleId,
    step: int,
    position: int,
    tool: str,
    state: Literal["intent", "asked"] = "intent",
    rule: str | None = None,
) -> None:
    """Record that an outside call is about to be made, or that somebody is asked. From here on it may have happened."""
    tx.send(
        _add,
        cycle_id=cycle_id,
        step=step,
        position=position,
        tool=tool,
        state=state,
        changes=1,
        result=None,
        rule=rule,
        outside=None,
        created_at=tx.now,
    )


_approve = update_where(
    effects, "cycle_id, step, position", effects.c.state == "asked", state="intent", rule="approved"
)


def approve(tx: Tx, cycle_id: CycleId, step: int, position: int) -> None:
    """Record that the call that a person was asked about is about to be made."""
    tx.run(_approve, cycle_id=cycle_id, step=step, position=position)


def complete(tx: Tx, cycle_id: CycleId, step: int, position: int, result: str, outside: Sequence[Source] = ()) -> bool:
    """Record that the intended or asked call is done; False if it was done before."""
    came_from = sources.dump(outside or None)
    return tx.run(_complete, cycle_id=cycle_id, step=step, position=position, result=result, outside=came_from) == 1


_outside_of_step = select_where(
    effects, "outside", "cycle_id, step", effects.c.outside.is_not(None), order_by="position"
)


def outside_of_step(tx: Tx, cycle_id: CycleId, step: int) -> tuple[Source, ...] | None:
    """The sources of text from outside in the results of a step; None if there are none."""
    rows = tx.all(_outside_of_step, cycle_id=cycle_id, step=step)
    return sources.distinct(each for (outside,) in rows for each in sources.load(outside) or ()) if rows else None


def message_in(result: str | None) -> MessageId | None:
    """The id of the message that a call has sent, from its result. Results of other tools may look the same."""
    told = parsed(result or "")
    id = told.get("messageId") if isinstance(told, dict) else None
    return MessageId(id) if isinstance(id, str) else None


def of_cycle(tx: Tx, cycle_id: CycleId) -> list[EffectRecord]:
    """All calls of a cycle in order."""
    return [
        EffectRecord(step, position, tool, state, bool(changes), result, sources.load(outside) or ())
        for step, position, tool, state, changes, result, outside in tx.all(_of_cycle, cycle_id=cycle_id)
    ]
