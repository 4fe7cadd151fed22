"""Goals of an agent: a short list, each with a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId
from denizen.inbox.format import one_line
from denizen.plans import told_changes
from denizen.plans.limits import checked_text
from denizen.shapes.vocabulary import GoalStatus, Priority
from denizen.storage.database import Params, Tx, delete_where, insert_into, select_where, update_where
from denizen.storage.schema import goals

MOST_GOALS: Final = 50
GOAL_CHARACTERS: Final = 500

_PRIORITIES: Final[tuple[Priority, ...]] = ("high", "normal", "low")


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of an agent."""

    number: int
    text: str
    status: GoalStatus
    priority: Priority
    outside: bool = False
    """Whether the agent wrote it after reading text from outside."""


@dataclass(frozen=True, slots=True)
class GoalChange:
    """A new goal, or changes to an existing one; None leaves a field as it is."""

    number: int | None = None
    text: str | None = None
    status: GoalStatus | None = None
    priority: Priority | None = None


_of = select_where(goals, "number, text, status, priority, outside", "agent_id", order_by="number")
_add = insert_into(goals, "agent_id, number, text, status, priority, outside, created_at, updated_at")
_change = update_where(goals, "agent_id, number", set_="text, status, priority, outside, updated_at")
_remove = delete_where(goals, "agent_id, number")


def goals_of(tx: Tx, agent_id: AgentId) -> list[Goal]:
    """The agent's goals: the most important first, done ones last."""
    found = [
        Goal(number, text, status, _PRIORITIES[int(priority)], bool(outside))
        for number, text, status, priority, outside in tx.all(_of, agent_id=agent_id)
    ]
    return sorted(found, key=lambda each: (each.status == "done", _PRIORITIES.index(each.priority), each.number))


def change_goals(tx: Tx, agent_id: AgentId, changes: Sequence[GoalChange], *, outside: bool = False) -> list[Goal]:
    """Add or change these goals. Returns them as they are now. All of it or, with an error, nothing."""
    told_changes.zone_of(tx, agent_id)
    told_changes.lock(tx, agent_id)
    there = {goal.number: goal for goal in goals_of(tx, agent_id)}
    made: list[Goal] = []
    for change in changes:
        # A number is not reused while any goal has a higher one, so that a removed goal is not mistaken for a new one.
        goal = _made(there, change, max(there, default=0) + 1, outside)
        there[goal.number] = goal
        made.append(goal)
    if len(there) > MOST_GOALS:
        raise InvalidInput(
            f"That would be {len(there)} goals, but at most {MOST_GOALS} are allowed. Delete some first."
        )
    for goal, change in zip(made, changes, strict=True):
        _write(tx, agent_id, goal, is_new=change.number is None)
    return made


def _made(there: dict[int, Goal], change: GoalChange, next_number: int, outside: bool) -> Goal:
    old = Goal(next_number, "", "active", "normal")
    if change.number is not None:
        if change.number not in there:
            raise NotFound("goal", str(change.number))
        old = there[change.number]
    elif change.text is None:
        raise InvalidInput("A new goal needs a text. To change an existing goal, give its number.")
    text = old.text if change.text is None else checked_text("The text of a goal", change.text, GOAL_CHARACTERS)
    mark = outside or (old.outside and change.text is None)
    return Goal(old.number, text, change.status or old.status, change.priority or old.priority, mark)


def _write(tx: Tx, agent_id: AgentId, goal: Goal, *, is_new: bool) -> None:
    row: dict[str, Params] = {
        "agent_id": agent_id,
        "number": goal.number,
        "text": goal.text,
        "status": goal.status,
        "priority": _PRIORITIES.index(goal.priority),
        "outside": int(goal.outside),
        "updated_at": tx.now,
    }
    if is_new:
        tx.run(_add, **row, created_at=tx.now)
    else:
        tx.run(_change, **row)


def remove_goals(tx: Tx, agent_id: AgentId, numbers: Iterable[int]) -> None:
    """Remove the goals with these numbers."""
    told_changes.lock(tx, agent_id)
    wanted, there = list(dict.fromkeys(numbers)), {goal.number for goal in goals_of(tx, agent_id)}
    for number in wanted:
        if number not in there:
            raise NotFound("goal", str(number))
    for number in wanted:
        tx.run(_remove, agent_id=agent_id, number=number)


def fact(goal: Goal) -> tuple[str, str]:
    """The line about a goal for the agent, with its key."""
    priority = "" if goal.priority == "normal" else f", {goal.priority} priority"
    return f"goal:{goal.number}", f"{one_line(goal.text)} (goal {goal.number}, {goal.status}{priority})"
