"""What others change of an agent's goals, notes and plans: done, and told to it as news with its next cycle."""

from __future__ import annotations

from denizen.ids import AgentId
from denizen.plans import agenda, goals, known, notes, origins
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange
from denizen.plans.notes import Note
from denizen.storage.database import Tx


def set_goal(tx: Tx, agent_id: AgentId, change: GoalChange) -> Goal:
    """The agent has this goal, new or changed."""
    made = goals.change_goals(tx, agent_id, [change])
    if change.text is not None:
        origins.set_origin(tx, agent_id, [goals.fact(made[0])[0]])
    known.tell(tx, agent_id)
    return made[0]


def delete_goal(tx: Tx, agent_id: AgentId, number: int) -> None:
    goals.remove_goals(tx, agent_id, [number])
    known.tell(tx, agent_id)


def set_note(tx: Tx, agent_id: AgentId, key: str, text: str) -> Note:
    """The agent has this noted under the key."""
    made = notes.set_notes(tx, agent_id, {key: text})
    origins.set_origin(tx, agent_id, [notes.fact(made[0])[0]])
    known.tell(tx, agent_id)
    return made[0]


def delete_note(tx: Tx, agent_id: AgentId, key: str) -> None:
    notes.remove_notes(tx, agent_id, [key])
    known.tell(tx, agent_id)


def set_plan(tx: Tx, agent_id: AgentId, draft: PlanDraft) -> Plan:
    """The agent has this plan, in place of one of its name."""
    made = agenda.set_plans(tx, agent_id, [draft])
    origins.set_origin(tx, agent_id, [f"plan:{made[0].id}"])
    known.tell(tx, agent_id)
    return made[0]


def set_timer(tx: Tx, agent_id: AgentId, reason: str, when: When) -> Plan:
    """The agent will be woken then. Timers are no news: the head of each inbox message shows them."""
    return agenda.set_timer(tx, agent_id, reason, when)


def delete_plan(tx: Tx, agent_id: AgentId, name: str) -> None:
    """The plan of that name, or the timer of that id, is no more."""
    agenda.remove_plans(tx, agent_id, [name])
    known.tell(tx, agent_id)
