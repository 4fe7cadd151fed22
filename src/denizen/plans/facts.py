"""The lines about an agent's goals, notes and plans that it is shown, by key."""

from __future__ import annotations

from denizen.ids import AgentId
from denizen.plans import agenda, goals, notes
from denizen.storage.database import Tx


def facts_of(tx: Tx, agent_id: AgentId) -> dict[str, str]:
    """The current lines. They do not depend on the clock, nor change when a recurring plan has run."""
    planned = sorted(agenda.plans_of(tx, agent_id), key=lambda plan: (plan.name, plan.id))
    return dict(
        [
            *(goals.fact(goal) for goal in goals.goals_of(tx, agent_id)),
            *(notes.fact(note) for note in notes.notes_of(tx, agent_id)),
            *(fact for plan in planned if (fact := agenda.fact(plan)) is not None),
        ]
    )
