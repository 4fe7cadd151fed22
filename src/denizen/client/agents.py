"""Agents, models, budgets and webhooks, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import date
from typing import Final

import httpx2
from pydantic import JsonValue

from denizen.client.connection import LONG, REQUEST_SECONDS, Connection, iso, keyed, path_to, those_given
from denizen.client.streaming import LifeEvent, resuming
from denizen.shapes.agents import AgentDetail, AgentOut, AgentPage
from denizen.shapes.chat import ChatAnswer
from denizen.shapes.health import HealthOut
from denizen.shapes.models import AgentModels, TestOut
from denizen.shapes.sizes import SizeOut
from denizen.shapes.usage import BudgetOut, UsageOut
from denizen.shapes.webhooks import TriggerAccepted, WebhookCreated, WebhookList, WebhookOut

PROBE_SECONDS: Final = 120.0
"""Testing models may take long."""


class Agents(Connection):
    """Managing agents."""

    async def agents(self) -> list[AgentOut]:
        """Returns the agents that are not dead."""
        found: list[AgentOut] = []
        after: str | None = ""
        while after is not None:
            page = await self._ask(AgentPage, "GET", "/api/agents", params=those_given(after=after or None))
            found += page.agents
            after = page.next
        return found

    async def agent(self, agent: str) -> AgentDetail:
        return await self._ask(AgentDetail, "GET", path_to("agents", agent))

    async def create_agent(
        self, name: str, fields: Mapping[str, JsonValue] | None = None, *, key: str | None = None
    ) -> AgentDetail:
        """Creates an agent; `fields` are `handle`, `spaces` and those of a definition."""
        wanted = {"name": name, **(fields or {})}
        return await self._ask(AgentDetail, "POST", "/api/agents", json=wanted, headers=keyed(key))

    async def edit_agent(self, agent: str, changes: Mapping[str, JsonValue]) -> AgentDetail:
        """Changes the given fields; None resets a field to its default."""
        return await self._ask(AgentDetail, "PATCH", path_to("agents", agent), json=dict(changes))

    async def health_report(self, *, probe: bool = False) -> HealthOut:
        """Returns what needs a person. With `probe`, each model is asked for a few tokens."""
        asked = those_given(probe="true" if probe else None)
        return await self._ask(HealthOut, "GET", "/api/health", params=asked, timeout=PROBE_SECONDS)

    async def try_again(self, agent: str, *, space: str | None = None) -> AgentOut:
        """Makes the agent retry now: in one space, or, for admins, everywhere."""
        return await self._ask(AgentOut, "POST", path_to("agents", agent, "try-again"), json=those_given(space=space))

    async def suspend_agent(self, agent: str) -> AgentOut:
        return await self._ask(AgentOut, "POST", path_to("agents", agent, "suspend"))

    async def resume_agent(self, agent: str) -> AgentOut:
        return await self._ask(AgentOut, "POST", path_to("agents", agent, "resume"))

    async def delete_agent(self, agent: str) -> None:
        """Deletes the agent; its past stays."""
        await self._tell("DELETE", path_to("agents", agent))

    async def fork_agent(
        self,
        agent: str,
        handle: str | None = None,
        *,
        name: str | None = None,
        at: int | None = None,
        key: str | None = None,
    ) -> AgentDetail:
        """Creates an agent with the past of this one, up to cycle `at`."""
        wanted = those_given(handle=handle, name=name, at=at)
        return await self._ask(AgentDetail, "POST", path_to("agents", agent, "fork"), json=wanted, headers=keyed(key))

    async def models(self, *, setup: bool = False) -> AgentModels:
        """With `setup`, for operators: also the model servers on the server's machine."""
        return await self._ask(AgentModels, "GET", "/api/models", params=those_given(setup="true" if setup else None))

    async def test_model(self, name: str, *, address: str | None = None, key: str | None = None) -> TestOut:
        """Makes the server ask the model for one small call."""
        wanted = those_given(name=name, address=address, key=key)
        return await self._ask(TestOut, "POST", "/api/models/test", json=wanted, timeout=LONG)

    async def choose_model(self, name: str, *, address: str | None = None, key: str | None = None) -> AgentModels:
        """Sets the server's default model."""
        wanted = those_given(name=name, address=address, key=key)
        return await self._ask(AgentModels, "PUT", "/api/models/default", json=wanted)

    async def forget_chosen_model(self) -> AgentModels:
        """Resets the default model: the server uses what it finds."""
        return await self._ask(AgentModels, "DELETE", "/api/models/default")

    async def trigger(
        self,
        agent: str,
        service: str,
        text: str = "",
        *,
        data: JsonValue = None,
        id: str | None = None,
        urgent: bool = False,
        key: str | None = None,
        files: Sequence[str] = (),
    ) -> TriggerAccepted:
        """Sends an event to the agent. With an `id` or a key, a repeated event is delivered once.

        `files`: the ids of uploads, or data URLs.
        """
        told = those_given(service=service, text=text, data=data, id=id, urgent=urgent, files=list(files) or None)
        return await self._ask(
            TriggerAccepted, "POST", path_to("agents", agent, "trigger"), json=told, headers=keyed(key)
        )

    async def chat(
        self,
        agent: str,
        text: str,
        *,
        space: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        seconds: float = 60.0,
        key: str | None = None,
        organization_id: str | None = None,
        memory_control: Mapping[str, JsonValue] | None = None,
        files: Sequence[str] = (),
    ) -> ChatAnswer:
        """Posts a message to an agent, and returns its answer when its cycle ends or the time is over.

        `files`: the ids of uploads, or data URLs.
        """
        said = those_given(agent=agent, text=text, space=space, metadata=metadata, seconds=seconds)
        said |= those_given(files=list(files) or None)
        said |= those_given(organizationId=organization_id, memoryControl=memory_control)
        waiting = httpx2.Timeout(REQUEST_SECONDS, read=seconds + _GRACE_SECONDS)
        return await self._ask(ChatAnswer, "POST", "/api/chat", json=said, headers=keyed(key), timeout=waiting)

    async def usage(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        by: str = "day",
        agent: str | None = None,
    ) -> UsageOut:
        asked = those_given(since=iso(since), until=iso(until), by=by, agent=agent)
        return await self._ask(UsageOut, "GET", "/api/usage", params=asked)

    async def budget(self) -> BudgetOut:
        return await self._ask(BudgetOut, "GET", "/api/organization/budget")

    async def size(self, *, all_organizations: bool = False) -> SizeOut:
        """How much of the database your organization uses, and how fast that grows; for operators, all of them."""
        asked = {"all_organizations": "true"} if all_organizations else {}
        return await self._ask(SizeOut, "GET", "/api/organization/size", params=asked)

    async def set_budget(self, **limits: float | None) -> BudgetOut:
        """Replaces all limits: `dollars_per_day`, `tokens_per_day`, `dollars`, `tokens`."""
        return await self._ask(BudgetOut, "PUT", "/api/organization/budget", json=limits)

    async def webhooks(self, agent: str) -> list[WebhookOut]:
        return (await self._ask(WebhookList, "GET", path_to("agents", agent, "webhooks"))).webhooks

    async def create_webhook(
        self, agent: str, name: str, *, scheme: str = "generic", secret: str | None = None, urgent: bool = False
    ) -> WebhookCreated:
        """Creates a webhook. Its secret is shown only once."""
        wanted = those_given(name=name, scheme=scheme, secret=secret, urgent=urgent)
        return await self._ask(WebhookCreated, "POST", path_to("agents", agent, "webhooks"), json=wanted)

    async def revoke_webhook(self, webhook_id: str) -> None:
        """Revokes the webhook: it no longer receives anything."""
        await self._tell("DELETE", path_to("webhooks", webhook_id))

    async def stream_agent(self, agent: str, *, after: int | None = None) -> AsyncGenerator[LifeEvent]:
        """Streams an agent's status; for admins also every cycle after a number, and the open one as it proceeds."""

        def once(last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
            return self._events(path_to("agents", agent, "stream"), last)

        async with aclosing(resuming(once, None if after is None else str(after), self._clock)) as events:
            async for event in events:
                yield event


_GRACE_SECONDS: Final = 15.0
"""How much longer than the server we wait for an answer."""
