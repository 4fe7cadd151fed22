"""`denizen.goals`, `denizen.notes` and `denizen.plans`: what an agent means to do.

The agent is told of changes with its next cycle; they do not wake it.
"""

from __future__ import annotations

import builtins

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.api.arguments import text_of
from denizen.api.subject import AgentRef, Subject, id_of
from denizen.plans import admin_changes, agenda, goals, notes
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange, GoalStatus, Priority
from denizen.plans.notes import Note


class Goals(Subject):
    """The goals of an agent.

    ```python
    goal = await denizen.goals.set(ada, "Keep the pantry full.", priority="high")
    await denizen.goals.set(ada, number=goal.number, status="done")
    assert [each.status for each in await denizen.goals.list(ada)] == ["done"]
    ```
    """

    async def set(
        self,
        agent: AgentRef,
        text: str | None = None,
        *,
        number: int | None = None,
        status: GoalStatus | None = None,
        priority: Priority | None = None,
        by: Requester = THIS_PROCESS,
    ) -> Goal:
        """Add a goal; or, with its number, change one."""
        change = GoalChange(number, text, status, priority)
        return await self._runtime.db.write(admin_changes.set_goal, by, id_of(agent), change)

    async def list(self, agent: AgentRef) -> builtins.list[Goal]:
        """The goals of the agent, by number."""
        return await self._read_agent(agent, goals.goals_of)

    async def delete(self, agent: AgentRef, number: int, *, by: Requester = THIS_PROCESS) -> None:
        """Delete the goal of that number."""
        await self._runtime.db.write(admin_changes.delete_goal, by, id_of(agent), number)


class Notes(Subject):
    """The notes of an agent: short texts that it always sees.

    ```python
    await denizen.notes.set(ada, "allergies", "Noor does not eat nuts.")
    assert [each.key for each in await denizen.notes.list(ada)] == ["allergies"]
    ```
    """

    async def set(self, agent: AgentRef, key: str, text: str, *, by: Requester = THIS_PROCESS) -> Note:
        """Write the note of that key, over one that is there."""
        return await self._runtime.db.write(
            admin_changes.set_note, by, id_of(agent), text_of(key, "key"), text_of(text, "text")
        )

    async def list(self, agent: AgentRef) -> builtins.list[Note]:
        """The notes of the agent."""
        return await self._read_agent(agent, notes.notes_of)

    async def delete(self, agent: AgentRef, key: str, *, by: Requester = THIS_PROCESS) -> None:
        """Delete the note of that key."""
        await self._runtime.db.write(admin_changes.delete_note, by, id_of(agent), key)


class Plans(Subject):
    """The plans and timers of an agent: times at which it wakes by itself.

    ```python
    await denizen.plans.set(ada, "menu", "Plan the week's menu.", cron="0 9 * * 1")
    await denizen.plans.set_timer(ada, "The cake is done.", after="45m")
    assert [each.kind for each in await denizen.plans.list(ada)] == ["timer", "plan"]
    await denizen.plans.delete(ada, "menu")
    ```
    """

    async def set(
        self,
        agent: AgentRef,
        name: str,
        instruction: str,
        *,
        cron: str | None = None,
        at: str | None = None,
        after: str | None = None,
        zone: str | None = None,
        by: Requester = THIS_PROCESS,
    ) -> Plan:
        """Wake the agent with the instruction at these times. Give one of `cron`, `at` and `after`.

        A plan of that name that is there is replaced.
        """
        draft = PlanDraft(text_of(name, "name"), text_of(instruction, "instruction"), When(cron, at, after, zone))
        return await self._runtime.db.write(admin_changes.set_plan, by, id_of(agent), draft)

    async def set_timer(
        self,
        agent: AgentRef,
        reason: str,
        *,
        at: str | None = None,
        after: str | None = None,
        by: Requester = THIS_PROCESS,
    ) -> Plan:
        """Wake the agent once, then, with the reason."""
        return await self._runtime.db.write(
            admin_changes.set_timer, by, id_of(agent), text_of(reason, "reason"), When(at=at, after=after)
        )

    async def list(self, agent: AgentRef) -> builtins.list[Plan]:
        """The plans, timers and heartbeat of the agent, the next one first."""
        return await self._read_agent(agent, agenda.plans_of)

    async def delete(self, agent: AgentRef, name: str, *, by: Requester = THIS_PROCESS) -> None:
        """Delete the plan of that name, or the timer of that id."""
        await self._runtime.db.write(admin_changes.delete_plan, by, id_of(agent), name)
