"""Agents: made, changed, paid for, told of things outside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_ai.models import Model

from denizen.access import audit, webhooks
from denizen.access.audit import OPERATOR, Actor
from denizen.access.payloads import Greeting
from denizen.access.signatures import Scheme
from denizen.access.webhooks import Webhook
from denizen.agents import applying, fitness, forking, registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.differences import Change
from denizen.agents.documents import AgentDocument
from denizen.agents.files import Declared
from denizen.agents.fitness import Fitness, Unable
from denizen.agents.registry import Agent, Status
from denizen.agents.restrictions import Author
from denizen.api.wiring import Who, Wiring, id_of
from denizen.cycles import budgets
from denizen.cycles.budgets import BudgetSettings, Resting, Spending
from denizen.cycles.troubles import classify
from denizen.errors import DenizenError, OutcomeUnknown, PriceUnknown
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.outside import storable_data
from denizen.models.probing import Probing
from denizen.spaces.directory import Organization, Space
from denizen.spaces.handles import handle_from
from denizen.storage.database import Tx, storable
from denizen.tools.settings import ToolSettings
from denizen.tools.tool import OutsideTool


class Agents(Wiring):
    """Agents as their keepers deal with them."""

    async def create_agent(
        self,
        name: str,
        *,
        model: str | Model = "default",
        instructions: str = "",
        handle: str | None = None,
        tools: Iterable[str | OutsideTool | ToolSettings] = (),
        organization: Organization | OrganizationId | None = None,
        **definition: Any,
    ) -> Agent:
        """A new agent, asleep. A model or tool given as an object is registered with this runtime under its name."""
        home = await self._organization(organization)
        handle = handle or handle_from(name)
        if isinstance(model, Model):
            self.models.register(f"python:{handle}", model)
            model = f"python:{handle}"
        names = [self._register_tool(each) for each in tools]
        defined = registry.define(model=model, instructions=instructions, tools=names, **definition)
        await self.check_prices(home, defined)
        policy = self.definition_policy()
        return await self.db.write(registry.create, policy, home, name=name, handle=handle, definition=defined)

    def _register_tool(self, given: str | OutsideTool | ToolSettings) -> str | ToolSettings:
        if not isinstance(given, OutsideTool):
            return given
        self._tools[given.name] = given
        return given.name

    async def edit_agent(self, agent: Agent | AgentId, **changes: Any) -> Agent:
        """The agent with these fields of its definition changed; a new era begins with its next cycle."""
        agent_id = id_of(agent)
        current = await self.db.read(registry.get, agent_id)
        fields = current.definition.model_dump(exclude_defaults=True) | changes
        defined = registry.define(**fields)
        await self.check_prices(current.entity.organization_id, defined, before=current.definition)
        return await self.db.write(registry.edit, self.definition_policy(), agent_id, defined)

    async def check_prices(
        self, organization_id: OrganizationId, definition: AgentDefinition, *, before: AgentDefinition | None = None
    ) -> None:
        """Raises `PriceUnknown` where the definition sets a budget in dollars for a model without a known price."""
        budgeted = definition.budget is not None and definition.budget.in_dollars
        if budgeted and (before is None or before.budget != definition.budget):
            await self._equipment().check_prices([(organization_id, definition)])

    async def _check_declared_prices(self, organization_id: OrganizationId, declared: Iterable[Declared]) -> None:
        """The same for the agents that documents define; the error names the agent."""
        for each in declared:
            if isinstance(each.document, AgentDocument):
                handle = each.document.handle
                before = await self.db.read(applying.definition_of, organization_id, handle)
                try:
                    await self.check_prices(organization_id, each.document.definition, before=before)
                except PriceUnknown as error:
                    raise PriceUnknown(error.model, agent=handle) from error

    async def check_shared_prices(self, organization_id: OrganizationId, budget: BudgetSettings) -> None:
        """The same for a budget of the organization, which is for all its agents."""
        if budget.in_dollars:
            living = await self.db.read(registry.living_agents, organization_id)
            await self._equipment().check_prices([(organization_id, agent.definition) for agent, _ in living])

    async def apply(
        self,
        definitions: Iterable[Declared],
        *,
        dry_run: bool = False,
        creator: Who | EntityId | None = None,
        guard: applying.Guard | None = None,
        author: Author | None = None,
        organization: Organization | OrganizationId | None = None,
        by: Actor = OPERATOR,
    ) -> list[Change]:
        """What the documents of definition files say is so, all of it or nothing; what changed, in their order.

        The `creator` is put into every space that is made. A dry run does it all and undoes it again. Where a `guard`
        is given, it says which spaces and members are not to be touched. With an `author`, raises `NotAllowed` if that
        person may not define such agents.
        """
        home, declared = await self._organization(organization), list(definitions)
        who = None if creator is None else id_of(creator)
        await self._check_declared_prices(home, declared)
        try:
            do = applying.rehearse if dry_run else applying.apply
            return await self.db.write(do, self.definition_policy(author), home, declared, who, guard, by)
        except applying.Rehearsed as rehearsed:
            return rehearsed.changes

    async def set_budget(
        self,
        organization: Organization | OrganizationId | None = None,
        *,
        dollars_per_day: Decimal | float | None = None,
        tokens_per_day: int | None = None,
        dollars: Decimal | float | None = None,
        tokens: int | None = None,
    ) -> None:
        """All agents of the organization together may use so much, by the day and for life; None is no limit.

        Those that rest because of a limit that is raised go on. An agent's own budget is part of its definition.
        """
        given = {
            "dollars_per_day": dollars_per_day,
            "tokens_per_day": tokens_per_day,
            "dollars": dollars,
            "tokens": tokens,
        }
        home, budget = await self._organization(organization), budgets.checked(given)
        await self.check_shared_prices(home, budget)
        await self.db.write(budgets.set_organization_budget, home, budget)

    async def budget(self, organization: Organization | OrganizationId | None = None) -> BudgetSettings | None:
        """What all agents of the organization together may use."""
        return await self.db.read(budgets.organization_budget, await self._organization(organization))

    async def resting(self, agent: Agent | AgentId) -> Resting | None:
        """Why and until when the agent rests, if its budget has suspended it."""
        return await self.db.read(budgets.resting, id_of(agent))

    async def spending(
        self,
        agent: Agent | AgentId | None = None,
        *,
        days: int = 30,
        organization: Organization | OrganizationId | None = None,
    ) -> list[Spending]:
        """What the agent, or without one each agent and panel of the organization, used on the last days, by model."""
        if agent is not None:
            return await self.db.read(budgets.spending_of_agent, id_of(agent), days=days)
        return await self.db.read(budgets.spending_of_all, await self._organization(organization), days=days)

    async def suspend_agent(self, agent: Agent | AgentId) -> None:
        await self.db.write(registry.suspend, id_of(agent))

    async def resume_agent(self, agent: Agent | AgentId) -> None:
        await self.db.write(registry.resume, id_of(agent))

    async def try_again(self, agent: Agent | AgentId, space: Space | SpaceId | None = None) -> None:
        """The agent tries now what it could not do, in that space or everywhere: it need not wait for a key or a model
        to change, and messages that were set aside while somebody waits are taken up again."""
        await self.db.write(registry.try_again, id_of(agent), None if space is None else id_of(space))

    async def check_agents(
        self, organization: Organization | OrganizationId | None = None, *, probe: bool = False
    ) -> list[Fitness]:
        """Whether each agent can think in this process now, how long people have waited for it, and what it has set
        aside. With `probe`, each of their models is asked for a few tokens, once."""
        found = await self.db.read(fitness.of_organization, await self._organization(organization))
        probing = Probing() if probe else None
        return [each if each.unable is not None else await self._checked(each, probing) for each in found]

    async def _checked(self, found: Fitness, probing: Probing | None) -> Fitness:
        model_name = ""
        try:
            agent = await self.db.read(registry.get, found.agent_id)
            model_name = agent.definition.model
            models, _, _ = await self._equipment().check(agent)
            if probing is not None:
                for name, model in models.items():
                    model_name = name
                    await probing.ask(model)
        except (DenizenError, ValidationError) as error:
            trouble = classify(error, self.default_model if model_name == "default" else model_name)
            return replace(found, unable=Unable(found.agent_id, found.name, trouble.cause, trouble.detail))
        return found

    async def delete_agent(self, agent: Agent | AgentId) -> None:
        await self.db.write(registry.delete, id_of(agent))

    async def status(self, agent: Agent | AgentId) -> Status:
        return await self.db.read(registry.status, id_of(agent))

    async def trigger(
        self,
        agent: Agent | AgentId,
        service: str,
        data: JsonValue = None,
        *,
        text: str = "",
        id: str | None = None,
        urgent: bool = False,
    ) -> None:
        """Tell this agent of something that happened outside. With an `id`, telling it twice is telling it once."""
        payload: dict[str, JsonValue] = {"service": storable(service), "text": storable(text)}
        if data is not None:
            payload["data"] = storable_data(data)
        # Known beforehand, so that telling again after an unknown outcome is telling once.
        chosen = id or new_id()
        self._remember_cause(chosen)
        try:
            await self.db.write(_trigger, id_of(agent), chosen, payload, urgent)
        except OutcomeUnknown:
            await self.db.write(_trigger, id_of(agent), chosen, payload, urgent)

    async def create_webhook(
        self,
        agent: Agent | AgentId,
        name: str,
        *,
        scheme: Scheme = "generic",
        secret: str | None = None,
        urgent: bool = False,
        by: Actor = OPERATOR,
    ) -> tuple[Webhook, str]:
        """A new webhook of this agent, and its secret, which nobody can be shown again. Slack chooses its own."""
        what = webhooks.draft(name, scheme, secret=secret, urgent=urgent)
        sealed = await asyncio.to_thread(self.vault.seal, what.secret, what.purpose)
        return await self.db.write(_create_webhook, id_of(agent), what, sealed, by), what.secret

    async def webhooks(self, agent: Agent | AgentId) -> list[Webhook]:
        """Every webhook the agent ever had, the revoked ones too."""
        return await self.db.read(webhooks.webhooks_of, id_of(agent))

    async def revoke_webhook(self, webhook: Webhook | str, *, by: Actor = OPERATOR) -> None:
        """Nothing is received there any more."""
        await self.db.write(_revoke_webhook, id_of(webhook), by)

    async def receive_webhook(self, webhook_id: str, headers: Mapping[str, str], body: bytes) -> Greeting | None:
        """What a service sent to `/hooks/{webhook_id}` is in the agent's inbox, if it was signed with the secret."""
        return await webhooks.receive(self.db, self.vault, self.clock.now(), webhook_id, headers, body)

    async def fork(
        self, agent: Agent | AgentId, *, handle: str | None = None, at: int | None = None, name: str | None = None
    ) -> Agent:
        """A new agent with the past of this one up to cycle `at`, in no space; this one is not touched."""
        return await self.db.write(
            forking.fork, self.definition_policy(), id_of(agent), handle=handle, at=at, name=name
        )


def _create_webhook(tx: Tx, agent_id: AgentId, what: webhooks.Draft, sealed: str, by: Actor) -> Webhook:
    made = webhooks.create(tx, agent_id, what, sealed)
    home = registry.get(tx, agent_id).entity.organization_id
    audit.record(tx, home, by, "create_webhook", agent_id, webhook=made.id, scheme=made.scheme)
    return made


def _revoke_webhook(tx: Tx, webhook_id: str, by: Actor) -> None:
    webhook = webhooks.get(tx, webhook_id)
    webhooks.revoke(tx, webhook_id)
    if webhook.revoked_at is None:
        home = registry.get(tx, webhook.agent_id).entity.organization_id
        audit.record(tx, home, by, "revoke_webhook", webhook.agent_id, webhook=webhook_id)


def _trigger(tx: Tx, agent_id: AgentId, id: str, payload: Mapping[str, JsonValue], urgent: bool) -> None:
    registry.get(tx, agent_id)
    delivery.deliver(tx, [Delivery(agent_id, id, "service_trigger", tx.now, urgent=urgent, payload=payload)])
