"""Inspecting an agent, over HTTP."""

from __future__ import annotations

from denizen.client.connection import LONG, Connection, path_to, those_given
from denizen.shapes.calls import ApprovalList, ApprovalOut
from denizen.shapes.minds import (
    AnswerAgain,
    AnswersAgain,
    CrossingPage,
    CycleDetail,
    CyclePage,
    InboxPage,
    LogPage,
    MindOut,
    Recalled,
    RecallOut,
    RequestOut,
)
from denizen.shapes.plans import GoalList, GoalOut, NoteList, NoteOut, PlanList, PlanOut


class Minds(Connection):
    """The inbox, the history and the plans of an agent."""

    async def mind(self, agent: str) -> MindOut:
        return await self._ask(MindOut, "GET", path_to("agents", agent, "mind"))

    async def inbox(
        self, agent: str, *, state: str | None = None, after: str | None = None, limit: int = 50
    ) -> InboxPage:
        asked = those_given(state=state, after=after, limit=limit)
        return await self._ask(InboxPage, "GET", path_to("agents", agent, "inbox"), params=asked)

    async def requeue(self, agent: str, event_id: str) -> None:
        """Retries a dead event."""
        await self._tell("POST", path_to("agents", agent, "inbox", event_id, "requeue"))

    async def mark_urgent(self, agent: str, event_id: str) -> None:
        await self._tell("POST", path_to("agents", agent, "inbox", event_id, "urgent"))

    async def cycles(self, agent: str, *, before: int | None = None, limit: int = 50) -> CyclePage:
        asked = those_given(before=before, limit=limit)
        return await self._ask(CyclePage, "GET", path_to("agents", agent, "cycles"), params=asked)

    async def cycle(self, agent: str, number: int) -> CycleDetail:
        return await self._ask(CycleDetail, "GET", path_to("agents", agent, "cycles", str(number)))

    async def request(self, agent: str, cycle: int, step: int) -> RequestOut:
        """Returns the exact request of that step, and the model's answer."""
        path = path_to("agents", agent, "cycles", str(cycle), "steps", str(step))
        return await self._ask(RequestOut, "GET", path)

    async def replay(self, agent: str, cycle: int, *, step: int | None = None) -> list[RequestOut]:
        """Returns the requests of every step of a cycle, or of one."""
        steps = [step] if step is not None else range(len((await self.cycle(agent, cycle)).each_step))
        return [await self.request(agent, cycle, each) for each in steps]

    async def rethink(self, agent: str, cycle: int, model: str, *, step: int | None = None) -> list[AnswerAgain]:
        """Returns another model's answers to the same requests; nothing is written."""
        path, wanted = path_to("agents", agent, "cycles", str(cycle), "rethink"), those_given(model=model, step=step)
        return (await self._ask(AnswersAgain, "POST", path, json=wanted, timeout=LONG)).answers

    async def log(self, agent: str, *, after: int | None = None, before: int | None = None, limit: int = 50) -> LogPage:
        asked = those_given(after=after, before=before, limit=limit)
        return await self._ask(LogPage, "GET", path_to("agents", agent, "log"), params=asked)

    async def recall(
        self, agent: str, words: str, *, when: str | None = None, who: str | None = None, space: str | None = None
    ) -> list[Recalled]:
        asked = those_given(q=words, when=when, who=who, space=space)
        return (await self._ask(RecallOut, "GET", path_to("agents", agent, "recall"), params=asked)).found

    async def crossings(self, agent: str, *, before: int | None = None, limit: int = 50) -> CrossingPage:
        asked = those_given(before=before, limit=limit)
        return await self._ask(CrossingPage, "GET", path_to("agents", agent, "crossings"), params=asked)

    async def approvals(self, agent: str) -> list[ApprovalOut]:
        """Returns the approvals that still allow the agent to act."""
        return (await self._ask(ApprovalList, "GET", path_to("agents", agent, "approvals"))).approvals

    async def revoke_approval(self, agent: str, approval: str) -> None:
        await self._tell("DELETE", path_to("agents", agent, "approvals", approval))

    async def goals(self, agent: str) -> list[GoalOut]:
        return (await self._ask(GoalList, "GET", path_to("agents", agent, "goals"))).goals

    async def add_goal(self, agent: str, text: str, **more: str) -> GoalOut:
        """`more`: `status`, `priority`."""
        return await self._ask(GoalOut, "POST", path_to("agents", agent, "goals"), json={"text": text, **more})

    async def change_goal(self, agent: str, number: int, **changes: str) -> GoalOut:
        return await self._ask(GoalOut, "PUT", path_to("agents", agent, "goals", str(number)), json=changes)

    async def delete_goal(self, agent: str, number: int) -> None:
        await self._tell("DELETE", path_to("agents", agent, "goals", str(number)))

    async def notes(self, agent: str) -> list[NoteOut]:
        return (await self._ask(NoteList, "GET", path_to("agents", agent, "notes"))).notes

    async def set_note(self, agent: str, key: str, text: str) -> NoteOut:
        return await self._ask(NoteOut, "PUT", path_to("agents", agent, "notes", key), json={"text": text})

    async def delete_note(self, agent: str, key: str) -> None:
        await self._tell("DELETE", path_to("agents", agent, "notes", key))

    async def plans(self, agent: str) -> list[PlanOut]:
        return (await self._ask(PlanList, "GET", path_to("agents", agent, "plans"))).plans

    async def set_plan(self, agent: str, name: str, instruction: str, **when: str) -> PlanOut:
        """`when`: one of `cron`, `at` and `after`, and perhaps `zone`."""
        wanted = {"instruction": instruction, **when}
        return await self._ask(PlanOut, "PUT", path_to("agents", agent, "plans", name), json=wanted)

    async def delete_plan(self, agent: str, name: str) -> None:
        await self._tell("DELETE", path_to("agents", agent, "plans", name))
