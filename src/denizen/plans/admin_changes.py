"""Changes by others to an agent's goals, notes and plans, which it is shown as news with its next cycle. For admins.

The HTTP API, `denizen.goals`, `denizen.notes`, `denizen.plans` and definition files call these functions, which check
the requester. The agent's own tools do not: they change what is the agent's own.
"""

from __future__ import annotations

from dataclasses import replace

from denizen.access.requesters import Requester, find_managed_agent
from denizen.plans import agenda, goals, notes, origins, told_changes
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange, GoalStatus, Priority
from denizen.plans.notes import Note
from denizen.storage.database import Tx, storable


def set_goal(tx: Tx, by: Requester, agent: str, change: GoalChange) -> Goal:
    """Add or change this goal of the agent."""
    agent_id = find_managed_agent(tx, by, agent)
    if change.text is not None:
        change = replace(change, text=storable(change.text))
    made = goals.change_goals(tx, agent_id, [change])
    if change.text is not None:
        origins.set_origin(tx, agent_id, [goals.fact(made[0])[0]])
    told_changes.tell(tx, agent_id)
    return made[0]


def add_goal(
    tx: Tx, by: Requester, agent: str, text: str, status: GoalStatus | None, priority: Priority | None
) -> Goal:
    """Add this goal; if the agent has a goal with the same text, change that one."""
    known = goals.goals_of(tx, find_managed_agent(tx, by, agent))
    there = next((each.number for each in known if each.text == storable(text).strip()), None)
    return set_goal(tx, by, agent, GoalChange(there, None if there else text, status, priority))


def delete_goal(tx: Tx, by: Requester, agent: str, number: int) -> None:
    agent_id = find_managed_agent(tx, by, agent)
    goals.remove_goals(tx, agent_id, [number])
    told_changes.tell(tx, agent_id)


def set_note(tx: Tx, by: Requester, agent: str, key: str, text: str) -> Note:
    """Set the agent's note with this key."""
    agent_id = find_managed_agent(tx, by, agent)
    made = notes.set_notes(tx, agent_id, {storable(key): storable(text)})
    origins.set_origin(tx, agent_id, [notes.fact(made[0])[0]])
    told_changes.tell(tx, agent_id)
    return made[0]


def delete_note(tx: Tx, by: Requester, agent: str, key: str) -> None:
    agent_id = find_managed_agent(tx, by, agent)
    notes.remove_notes(tx, agent_id, [storable(key)])
    told_changes.tell(tx, agent_id)


def set_plan(tx: Tx, by: Requester, agent: str, draft: PlanDraft) -> Plan:
    """Set this plan of the agent, in place of one with its name."""
    agent_id = find_managed_agent(tx, by, agent)
    made = agenda.set_plans(
        tx, agent_id, [replace(draft, name=storable(draft.name), instruction=storable(draft.instruction))]
    )
    origins.set_origin(tx, agent_id, [f"plan:{made[0].id}"])
    told_changes.tell(tx, agent_id)
    return made[0]


def set_timer(tx: Tx, by: Requester, agent: str, reason: str, when: When) -> Plan:
    """Set a timer. Timers are not news: the head of each inbox message shows them."""
    return agenda.set_timer(tx, find_managed_agent(tx, by, agent), storable(reason), when)


def delete_plan(tx: Tx, by: Requester, agent: str, name: str) -> None:
    """Delete the plan with that name, or the timer with that id."""
    agent_id = find_managed_agent(tx, by, agent)
    agenda.remove_plans(tx, agent_id, [storable(name)])
    told_changes.tell(tx, agent_id)
