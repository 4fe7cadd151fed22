"""What an agent means to do: goals, notes, plans, timers."""

from __future__ import annotations

from denizen.agents.registry import Agent
from denizen.api.wiring import Wiring, id_of
from denizen.ids import AgentId
from denizen.plans import agenda, from_outside, goals, notes
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange, GoalStatus, Priority
from denizen.plans.notes import Note


class Intentions(Wiring):
    """An agent hears of what is changed here with its next cycle; nothing of it wakes it."""

    async def set_goal(
        self,
        agent: Agent | AgentId,
        text: str | None = None,
        *,
        number: int | None = None,
        status: GoalStatus | None = None,
        priority: Priority | None = None,
    ) -> Goal:
        """A new goal; or, with its number, one that is there with these things changed."""
        return await self.db.write(from_outside.set_goal, id_of(agent), GoalChange(number, text, status, priority))

    async def goals(self, agent: Agent | AgentId) -> list[Goal]:
        return await self.db.read(goals.goals_of, id_of(agent))

    async def delete_goal(self, agent: Agent | AgentId, number: int) -> None:
        await self.db.write(from_outside.delete_goal, id_of(agent), number)

    async def set_note(self, agent: Agent | AgentId, key: str, text: str) -> Note:
        """Something the agent shall always have before its eyes; models call it a memory."""
        return await self.db.write(from_outside.set_note, id_of(agent), key, text)

    async def notes(self, agent: Agent | AgentId) -> list[Note]:
        return await self.db.read(notes.notes_of, id_of(agent))

    async def delete_note(self, agent: Agent | AgentId, key: str) -> None:
        await self.db.write(from_outside.delete_note, id_of(agent), key)

    async def set_plan(
        self,
        agent: Agent | AgentId,
        name: str,
        instruction: str,
        *,
        cron: str | None = None,
        at: str | None = None,
        after: str | None = None,
        zone: str | None = None,
    ) -> Plan:
        """At each of these times the agent is woken and told the instruction. One of `cron`, `at` and `after`."""
        draft = PlanDraft(name, instruction, When(cron, at, after, zone))
        return await self.db.write(from_outside.set_plan, id_of(agent), draft)

    async def set_timer(
        self, agent: Agent | AgentId, reason: str, *, at: str | None = None, after: str | None = None
    ) -> Plan:
        """The agent is woken then, once, and told the reason."""
        return await self.db.write(from_outside.set_timer, id_of(agent), reason, When(at=at, after=after))

    async def plans(self, agent: Agent | AgentId) -> list[Plan]:
        """The agent's plans, timers and heartbeat, the next one first."""
        return await self.db.read(agenda.plans_of, id_of(agent))

    async def delete_plan(self, agent: Agent | AgentId, name: str) -> None:
        """The plan of that name, or the timer of that id, is no more."""
        await self.db.write(from_outside.delete_plan, id_of(agent), name)
