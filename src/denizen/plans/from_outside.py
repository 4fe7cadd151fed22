"""Changes by others to an agent's goals, notes and plans, which it is shown as news with its next cycle."""

from __future__ import annotations

from denizen.ids import AgentId
from denizen.plans import agenda, goals, notes, origins, told_changes
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange
from denizen.plans.notes import Note
from denizen.storage.database import Tx


def set_goal(tx: Tx, agent_id: AgentId, change: GoalChange) -> Goal:
    """Add or change this goal of the agent."""
    made = goals.change_goals(tx, agent_id, [change])
    if change.text is not None:
        origins.set_origin(tx, agent_id, [goals.fact(made[0])[0]])
    told_changes.tell(tx, agent_id)
    return made[0]


def delete_goal(tx: Tx, agent_id: AgentId, number: int) -> None:
    goals.remove_goals(tx, agent_id, [number])
    told_changes.tell(tx, agent_id)


def set_note(tx: Tx, agent_id: AgentId, key: str, text: str) -> Note:
    """Set the agent's note with this key."""
    made = notes.set_notes(tx, agent_id, {key: text})
    origins.set_origin(tx, agent_id, [notes.fact(made[0])[0]])
    told_changes.tell(tx, agent_id)
    return made[0]


def delete_note(tx: Tx, agent_id: AgentId, key: str) -> None:
    notes.remove_notes(tx, agent_id, [key])
    told_changes.tell(tx, agent_id)


def set_plan(tx: Tx, agent_id: AgentId, draft: PlanDraft) -> Plan:
    """Set this plan of the agent, in place of one with its name."""
    made = agenda.set_plans(tx, agent_id, [draft])
    origins.set_origin(tx, agent_id, [f"plan:{made[0].id}"])
    told_changes.tell(tx, agent_id)
    return made[0]


def set_timer(tx: Tx, agent_id: AgentId, reason: str, when: When) -> Plan:
    """Set a timer. Timers are not news: the head of each inbox message shows them."""
    return agenda.set_timer(tx, agent_id, reason, when)


def delete_plan(tx: Tx, agent_id: AgentId, name: str) -> None:
    """Delete the plan with that name, or the timer with that id."""
    agenda.remove_plans(tx, agent_id, [name])
    told_changes.tell(tx, agent_id)
