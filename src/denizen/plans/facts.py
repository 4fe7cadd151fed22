"""What an agent means to do, as the lines that it is told: goals, notes and plans, each under a key of its own."""

from __future__ import annotations

from denizen.ids import AgentId
from denizen.plans import agenda, goals, notes
from denizen.storage.database import Tx


def facts_of(tx: Tx, agent_id: AgentId) -> dict[str, str]:
    """The lines as they stand. Nothing in them changes by the clock, nor when a plan that recurs has run."""
    planned = sorted(agenda.plans_of(tx, agent_id), key=lambda plan: (plan.name, plan.id))
    return dict(
        [
            *(goals.fact(goal) for goal in goals.goals_of(tx, agent_id)),
            *(notes.fact(note) for note in notes.notes_of(tx, agent_id)),
            *(fact for plan in planned if (fact := agenda.fact(plan)) is not None),
        ]
    )
