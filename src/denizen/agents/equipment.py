"""Builds what an agent thinks with: its models, tools and limits, from its definition and what this process has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog
from pydantic_ai.models import Model

from denizen.access import secrets
from denizen.access.vault import Vault
from denizen.agents import registry
from denizen.agents.chapter_writing import ChapterWriter
from denizen.agents.definition import AgentDefinition
from denizen.agents.prompt_config import PromptConfig
from denizen.agents.registry import Agent
from denizen.agents.restrictions import DefinitionPolicy, may_be_sent, not_allowed_here, own_models, sendings
from denizen.bus.port import Bus
from denizen.clock import Clock
from denizen.consciousness.settings import WindowSettings, profile_for
from denizen.consciousness.window import Budget, budget
from denizen.cycles import organization
from denizen.cycles.budgets import Allowance, allowance
from denizen.cycles.deps import CycleDeps
from denizen.cycles.reflecting import reflect_on_next
from denizen.cycles.server_budget import ServerBudget
from denizen.cycles.server_models import ServerModels
from denizen.cycles.settings import Triage
from denizen.cycles.speaking import LiveTexts
from denizen.cycles.steps import Choose, PrepareStep
from denizen.cycles.stopping import Stop
from denizen.cycles.triage import Judge, Sieve
from denizen.cycles.utility_budget import AgentPayer, UtilityBudget, UtilityBudgetDeps
from denizen.errors import (
    InvalidInput,
    ModelError,
    ModelUnknown,
    PriceUnknown,
    SecretKeyMissing,
    SecretUnreadable,
    ToolMissing,
)
from denizen.ids import AgentId, OrganizationId
from denizen.inbox.stop_requests import StopHints
from denizen.memory.reminding import Reminder
from denizen.models import context_size
from denizen.models.catalog import OWN, Models
from denizen.models.discovery import utility_model_for
from denizen.models.embedders import Embedder
from denizen.models.prices import Price, Usage, expected_cost
from denizen.profiles.choosing import Profiling
from denizen.reflection.cursor import Claimant
from denizen.reflection.thinking import NamedModel, Reflector
from denizen.spaces import directory
from denizen.storage.database import Database, Tx
from denizen.telemetry.logs import get_logger
from denizen.telemetry.telemetry import OFF, Telemetry
from denizen.tools.asking import ask_tool
from denizen.tools.background_calls import BackgroundCalls
from denizen.tools.declaring import DECLARING, WillUse
from denizen.tools.outside import Outside
from denizen.tools.prebuilt import PREBUILT, read_entry_tool, small_tools
from denizen.tools.recalling import recall_tool
from denizen.tools.references import for_host
from denizen.tools.results import StoreFile
from denizen.tools.settings import A2aTool, ClientTool, McpServer
from denizen.tools.tool import CustomTool, OutsideTool, OwnTool, Toolbox

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)


@dataclass(frozen=True)
class Equipment:
    """The models, tools and settings of this process for its agents. Tools and models may be added while in use."""

    db: Database
    bus: Bus
    clock: Clock
    models: Models
    server_models: ServerModels
    tools: Mapping[str, OutsideTool]
    prices: Mapping[str, Price]
    stops: Mapping[str, Stop]
    routes: Mapping[str, Choose]
    steps: Mapping[str, PrepareStep]
    triages: Mapping[str, Judge]
    vault: Vault
    policy: DefinitionPolicy
    embedder: Embedder | None
    background_calls: BackgroundCalls
    outside: Outside
    voices: LiveTexts
    stop_hints: StopHints
    telemetry: Telemetry = OFF
    reminder: Reminder | None = None
    server_budget: ServerBudget | None = None
    """The daily limit for all agents of the server together."""
    prompt_config: PromptConfig = field(default_factory=PromptConfig)
    store_file: StoreFile | None = None
    """Stores the files that tools return."""
    contexts: Mapping[str, int] = field(default_factory=dict[str, int])
    """The context size of models by name, where a setting gives it."""

    async def equip(self, agent: Agent) -> tuple[CycleDeps, Budget]:
        """The dependencies of this agent's cycles, and the token budget of its requests. Raises if any is missing."""
        await self.refresh()
        definition = agent.definition
        models, sieve, limits = await self.check(agent)
        model_name = self._named(definition.model)
        recalling, reading = recall_tool(self.db, self.embedder), read_entry_tool(self.db)
        mcp_changes = self.outside.mcp_changes if definition.mcp else None
        custom = await self._custom_tools(agent)
        about = definition.effects, definition.instructions
        context = await self._smallest_context(models)
        deps = CycleDeps(
            db=self.db,
            bus=self.bus,
            clock=self.clock,
            model=models[model_name],
            model_name=model_name,
            toolbox=Toolbox([*PREBUILT, reading, recalling, *_declaring(custom), *custom], *about),
            small_toolbox=Toolbox([*small_tools(reading, recalling), *custom], *about),
            profile=profile_for(definition.profile, context),
            settings=definition.cycle,
            prices=self.prices,
            background_calls=self.background_calls,
            stops=self.stops,
            models=models,
            default_model=self.server_models.default,
            models_revision=self.server_models.chosen.revision,
            mcp_changes=mcp_changes,
            routes=self.routes,
            steps=self.steps,
            sieve=None if sieve is None else self._within_limits(sieve, agent, limits),
            allowance=limits,
            server_budget=self.server_budget,
            organization_id=agent.entity.organization_id,
            embedder=self.embedder,
            reminder=self.reminder,
            voices=self.voices,
            stop_hints=self.stop_hints,
            telemetry=self.telemetry,
            profiling=lambda: self._profiling(agent),
            reflects=agent.reflects,
            store_file=self.store_file,
        )
        window = _window_within(definition.window, models)
        return deps, budget(window, context, deps.toolboxes[deps.profile].tokens)

    async def refresh(self) -> None:
        """Load the choices that operators have made since, here or in another process."""
        await self.server_models.refresh(self.db)

    def is_outdated(self, deps: CycleDeps) -> bool:
        """Whether an operator has chosen another model or address since the agent was equipped, or an MCP server has
        changed its tools."""
        if deps.mcp_changes not in (None, self.outside.mcp_changes):
            return True
        return deps.models_revision != self.server_models.chosen.revision

    async def _smallest_context(self, models: Mapping[str, Model]) -> int | None:
        """The context size that fits all of these models, if known: whichever is called, the request fits."""
        for model in models.values():
            await context_size.ask_server(model)
        sizes = [context_size.size_of(model, name, self.contexts).tokens for name, model in models.items()]
        return min((each for each in sizes if each is not None), default=None)

    async def check(self, agent: Agent) -> tuple[dict[str, Model], Sieve | None, Allowance | None]:
        """The models, the triage and the limits of this agent. Raises if something is missing, as far as that is known
        without a call to another machine."""
        definition = agent.definition
        await self._check_host_access(agent)
        self._check_names(agent)
        models = await self._resolve_all(agent, [definition.model, *definition.cycle.models])
        sieve = await self._sieve(agent)
        return models, sieve, await self._limits(agent, models, sieve)

    async def model_for(self, agent: Agent, name: str) -> tuple[str, Model]:
        """The model with that name, paid for like this agent's own; `default` is resolved to the real name.

        The name may come from presets or from the settings of a conversation, which people of any organization write.
        """
        if name.startswith(OWN) and name not in own_models(agent.definition).values():
            # As for definitions (`restrictions`): a model object from a Python program is for the first organization.
            home = agent.entity.organization_id
            if await self.db.read(directory.first_organization) != home:
                raise ModelUnknown(f"Your organization has no model {name!r}. Use a model of a provider.")
        ((real, model),) = (await self._resolve_all(agent, [name])).items()
        return real, model

    def _profiling(self, agent: Agent) -> Profiling | None:
        settings = agent.definition.profiles
        presets = self.prompt_config.presets() if settings.enabled else None
        if presets is None:
            return None
        home, organizations = agent.entity.organization_id, self.prompt_config.organizations
        return Profiling(
            lambda tx: organizations.of(tx, home, presets) or presets,
            settings.mode or agent.entity.handle,
            settings.preset,
        )

    async def reflect_on_next(self, by: Claimant, agent_id: AgentId) -> bool:
        """Reflect on the next cycle of this agent, as it is defined now; False if there is none to reflect on."""
        agent = await self.db.read(registry.get, agent_id)
        if not agent.reflects or await self.db.read(registry.status, agent_id) in ("suspended", "dead"):
            return False
        return await reflect_on_next(self.db, agent_id, self.reflector_of(agent), by)

    async def write_next_chapter(self, agent_id: AgentId) -> bool:
        """Write the next chapter of this agent's history, if its window needs one; False if there is none to write."""
        agent = await self.db.read(registry.get, agent_id)
        if agent.definition.window.strategy != "written":
            return False
        if await self.db.read(registry.status, agent_id) in ("suspended", "dead"):
            return False
        writer = ChapterWriter(self.db, agent, partial(self._writer_of, agent), self.utility_budget_of(agent, "memory"))
        return await writer.write_next()

    async def _writer_of(self, agent: Agent) -> NamedModel:
        wanted = agent.definition.window.writer_model
        return await (self.utility_model_of(agent) if wanted is None else self.model_for(agent, wanted))

    def reflector_of(self, agent: Agent) -> Reflector:
        """This agent's reflector, whether or not it reflects by itself."""

        async def model_for(name: str | None) -> NamedModel:
            return await self.model_for(agent, name or utility_model_for(self._named(agent.definition.model)))

        return Reflector(
            about={"agent": agent.id},
            name=f"the agent {agent.name}",
            settings=agent.definition.reflection,
            configuration=self.prompt_config.configuration(),
            model_for=model_for,
            budget=self.utility_budget_of(agent, "reflection"),
            classifier=self.prompt_config.classifier,
        )

    def utility_budget_of(self, agent: Agent, purpose: str) -> UtilityBudget:
        """Pays from this agent's budget for calls outside of its cycles; its ledger names the purpose."""
        deps = UtilityBudgetDeps(self.db, self.clock, self.prices, self.server_budget, self.telemetry.metrics)
        return UtilityBudget(deps, AgentPayer(agent.id, agent.entity.organization_id, agent.definition.budget, purpose))

    async def utility_model_of(self, agent: Agent) -> NamedModel:
        """The cheap model of the provider of this agent's model."""
        await self.refresh()
        return await self.model_for(agent, utility_model_for(self._named(agent.definition.model)))

    def _named(self, model: str) -> str:
        return self.server_models.default if model == "default" else model

    async def _check_host_access(self, agent: Agent) -> None:
        """Raises `InvalidInput` if the agent accesses the host in a way that its organization may not, however the
        definition came about."""
        refused = self.policy.only_for_operators(agent.definition)
        if refused and await self.db.read(directory.first_organization) != agent.entity.organization_id:
            raise InvalidInput(f"{'; '.join(map(not_allowed_here, refused))}.")

    def _check_names(self, agent: Agent) -> None:
        """Raises unless everything that the definition names is registered here."""
        definition, cycle = agent.definition, agent.definition.cycle
        triage = cycle.own_triage
        judges = [triage.by] if triage is not None and triage.by is not None else []
        tools = [each for each in definition.tools if isinstance(each, str)]
        routes = [route.by for route in cycle.routing if route.by is not None]
        stops = [each for each in cycle.stop_when if isinstance(each, str)]
        steps = [] if cycle.prepare_step is None else [cycle.prepare_step]
        for names, known, what, where in (
            (tools, self.tools, "uses tools that", "tools=[...]"),
            (stops, self.stops, "stops by functions that", "stops={...}"),
            (steps, self.steps, "prepares its steps with a function that", "steps={...}"),
            (routes, self.routes, "is routed by functions that", "routes={...}"),
            (judges, self.triages, "has its events sorted by a function that", "triages={...}"),
        ):
            missing = [name for name in names if name not in known]
            if missing:
                setting = "tools" if known is self.tools else f"functions.{where.partition('=')[0]}"
                raise (ToolMissing if known is self.tools else InvalidInput)(
                    f"The agent @{agent.entity.handle} {what} this runtime does not have: {', '.join(missing)}. "
                    f"Name them in the setting `{setting}`, or give them to Runtime({where})."
                )

    async def _resolve_all(self, agent: Agent, names: Iterable[str]) -> dict[str, Model]:
        real = dict.fromkeys(map(self._named, names))
        return {name: self.models.resolve(name, await self._provider_key(agent, name)) for name in real}

    async def _sieve(self, agent: Agent) -> Sieve | None:
        triage = agent.definition.cycle.own_triage
        if triage is None:
            return await self._automatic_sieve(agent) if agent.definition.cycle.triage == "auto" else None
        if triage.model is None:
            return Sieve(triage, functions=self.triages)
        ((name, model),) = (await self._resolve_all(agent, [triage.model])).items()
        return Sieve(triage, model, name, self.triages, self.prices)

    async def _automatic_sieve(self, agent: Agent) -> Sieve | None:
        """The small model of the agent's own provider, for spaces with several agents; None where it is not worth it or
        cannot be paid for. Triage is optional and must not keep the agent from thinking."""
        own = self._named(agent.definition.model)
        small = utility_model_for(own)
        if small == own:
            return None
        try:
            ((name, model),) = (await self._resolve_all(agent, [small])).items()
        except (ModelError, SecretUnreadable, SecretKeyMissing):
            return None
        budgets = agent.definition.budget, agent.shared_budget
        if any(each is not None and each.in_dollars for each in budgets) and not await self._has_price(model, name):
            return None
        return Sieve(Triage(model=name), model, name, prices=self.prices, where="shared")

    async def _has_price(self, model: Model, name: str) -> bool:
        # The first read of the price list is slow.
        return await asyncio.to_thread(expected_cost, model, Usage(1, 1), self.prices, asked=name) is not None

    def _within_limits(self, sieve: Sieve, agent: Agent, limits: Allowance | None) -> Sieve:
        return replace(
            sieve,
            allowance=limits,
            server_budget=self.server_budget,
            clock=self.clock,
            organization_id=agent.entity.organization_id,
            metrics=self.telemetry.metrics,
        )

    async def _limits(self, agent: Agent, models: Mapping[str, Model], sieve: Sieve | None) -> Allowance | None:
        """The agent's limits; raises if they are in dollars and the price of one of its models is unknown."""
        own, shared = agent.definition.budget, agent.shared_budget
        limits = allowance(agent.entity.organization_id, own, shared)
        if not any(each is not None and each.in_dollars for each in (own, shared)):
            return limits
        asked = {**models, **({sieve.model_name: sieve.model} if sieve is not None and sieve.model is not None else {})}
        for name, model in asked.items():
            if not await self._has_price(model, name):
                raise PriceUnknown(name)
        return limits

    async def models_without_price(self, agent: Agent) -> list[str]:
        """The first model of this agent with an unknown price, if the agent has its own budget in dollars."""
        budget = agent.definition.budget
        try:
            if budget is not None and budget.in_dollars:
                await self.check_prices([(agent.entity.organization_id, agent.definition)])
        except PriceUnknown as error:
            return [error.model]
        return []

    async def check_prices(self, agents: Iterable[tuple[OrganizationId, AgentDefinition]]) -> None:
        """Raises `PriceUnknown` if one of these definitions names a model without a price. For budgets in dollars."""
        for home, definition in agents:
            triage = definition.cycle.own_triage
            judged = [triage.model] if triage is not None and triage.model is not None else []
            for name in dict.fromkeys(map(self._named, [definition.model, *definition.cycle.models, *judged])):
                await self._check_price(home, name)

    async def _check_price(self, home: OrganizationId, name: str) -> None:
        key_name = self.models.key_name(name)
        key = None if key_name is None else await self.db.read(secrets.resolve, self.vault, home, key_name)
        try:
            model = self.models.resolve(name, key)
        except ModelError:
            return  # a model that is not available, or lacks a key, is reported when it is called
        if not await self._has_price(model, name):
            raise PriceUnknown(name)

    async def _provider_key(self, agent: Agent, model_name: str) -> str | None:
        """The key that pays for this agent's model; None: the server's own key, or none."""
        name = self.models.key_name(model_name)
        if name is None:
            return None
        home, pays = agent.entity.organization_id, agent.definition.pays
        if not self.models.needs_key(model_name):
            pays = ""
        return await self.db.read(secrets.paying_key, self.vault, home, name, pays, agent.entity.handle)

    async def _custom_tools(self, agent: Agent) -> list[CustomTool]:
        """The agent's tools beyond those that every agent has."""
        definition = agent.definition
        named = secrets.names_in(definition.model_dump_json(include={"tools", "mcp"}))
        home = agent.entity.organization_id
        values, hosts = await self.db.read(_secrets, self.vault, home, named) if named else _NO_SECRETS
        tools: list[CustomTool] = []
        for each in definition.tools:
            if isinstance(each, str):
                tools.append(self.tools[each])
            elif isinstance(each, ClientTool):
                tools.append(ask_tool(each))
            elif isinstance(each, A2aTool):
                tools.append(await self.outside.a2a_tool(each, for_host(values, hosts, each.url)))
            else:
                tools.append(await self.outside.http_tool(each, for_host(values, hosts, each.url)))
        taken = [each.name for each in (*PREBUILT, DECLARING, *tools)]
        servers = self._servers(agent, hosts)
        return [*tools, *(await self.outside.mcp_tools(servers, values.get, taken, home))]

    def _servers(self, agent: Agent, hosts: Mapping[str, Sequence[str]]) -> dict[str, McpServer]:
        """The agent's MCP servers, except those that one of their secrets may not be sent to."""
        refused = {each.part: each for each in sendings(agent.definition) if not may_be_sent(each, hosts)}
        for part, sending in refused.items():
            if part.startswith("mcp."):
                log.warning("mcp server left out", agent=agent.id, why=f"{sending}, which secret_hosts does not allow")
        return {name: each for name, each in agent.definition.mcp.items() if f"mcp.{name}" not in refused}


def _window_within(window: WindowSettings, models: Mapping[str, Model]) -> WindowSettings:
    """The owner's settings, with no larger context than the servers of these models are known to accept."""
    accepted = [each for model in models.values() if (each := context_size.accepted_by_server(model)) is not None]
    if window.context_tokens is None or window.context_tokens <= min(accepted, default=window.context_tokens):
        return window
    return window.model_copy(update={"context_tokens": min(accepted)})


def _declaring(custom: Iterable[CustomTool]) -> list[OwnTool[WillUse]]:
    """The tool that declares tools beforehand, for agents that can both read text from outside and act."""
    outside = [each for each in custom if isinstance(each, OutsideTool)]
    reads = any(each.results == "outside" for each in outside)
    return [DECLARING] if reads and any(each.effect for each in outside) else []


_Secrets = tuple[Mapping[str, str], Mapping[str, Sequence[str]]]
_NO_SECRETS: _Secrets = ({}, {})


def _secrets(tx: Tx, vault: Vault, home: OrganizationId, named: set[str]) -> _Secrets:
    """The values of these secrets, and the allowed hosts of those that have any."""
    return secrets.resolve_all(tx, vault, home, named), organization.settings_of(tx, home).secret_hosts
