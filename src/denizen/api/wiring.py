"""The wiring of a runtime: the database, the bus, and everything between them, created once and in one place."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self

from denizen.access import secrets
from denizen.access.secrets import SecretLocation
from denizen.access.vault import Keys, Vault, given_keys, keys_in_file, keys_in_memory, no_keys
from denizen.agents import gauges, registry
from denizen.agents.instance_lock import InstanceLock
from denizen.agents.pace import Pace
from denizen.agents.prompt_config import PromptConfig
from denizen.agents.restrictions import NO_ACCESS, DefinitionPolicy, HostAccess
from denizen.api.arguments import number_of
from denizen.bridges import registry as bridge_registry
from denizen.bus.local import LocalBus
from denizen.bus.port import Bus
from denizen.bus.streams import PANEL, WAKE, woken
from denizen.clock import Clock, Instant, SystemClock
from denizen.consciousness.recall.passages import RECALLABLE
from denizen.cycles import budgets
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.server_budget import ServerBudget
from denizen.cycles.server_models import FOUND_NOTHING, ServerModels
from denizen.errors import InvalidInput, StorageError
from denizen.files.storing import TO_READ, File, FileLimits
from denizen.forgetting.erasing import empty_write_ahead_log
from denizen.ids import AgentId, EntityId, FileId, OrganizationId, SpaceId, new_id
from denizen.inbox import parking
from denizen.inbox.stop_requests import STOP, StopHints, hinted
from denizen.leased_tasks import LET_GO_SECONDS
from denizen.models.catalog import Models
from denizen.models.discovery import ModelChoice, choose_model, utility_model_for
from denizen.models.embedders import NONE, Embedder, make_embedder
from denizen.models.prices import Price
from denizen.plans.agenda import PLANNED
from denizen.reflection.configuration import require_classifier
from denizen.reflection.cursor import Claimant
from denizen.reflection.settings import ReflectionSettings
from denizen.spaces import directory
from denizen.spaces.directory import Organization
from denizen.spaces.outbox import TO_SEND
from denizen.storage.database import Announcement, Database, Tx
from denizen.storage.migrating import is_current
from denizen.storage.opening import open_database
from denizen.telemetry.logs import get_logger
from denizen.telemetry.metrics import Metrics
from denizen.telemetry.telemetry import Telemetry
from denizen.tools.background_calls import BackgroundCalls
from denizen.tools.outside import Outside
from denizen.tools.results import ToolFile
from denizen.tools.tool import OutsideTool, require_tool

# What thinks is imported where it is made: a command that only reads and writes the database does not need it.
if TYPE_CHECKING:
    from pydantic import JsonValue
    from pydantic_ai.models import Model

    from denizen.access.payloads import SentFile
    from denizen.agents.advising import Advising
    from denizen.agents.equipment import Equipment
    from denizen.agents.residents import Residents
    from denizen.bridges.managing import BridgePolicy
    from denizen.bridges.port import BridgeKind, IncomingFile
    from denizen.bridges.running import BridgeRunner
    from denizen.cycles.speaking import LiveTexts
    from denizen.cycles.steps import Choose, PrepareStep
    from denizen.cycles.stopping import Stop
    from denizen.cycles.triage import Judge
    from denizen.files.extracting import Background
    from denizen.memory.reminding import Reminder
    from denizen.memory.rolling import ConversationInfo
    from denizen.memory.settings import MemoryOptions
    from denizen.memory.summarizing import Keeper
    from denizen.models.provider_models import OfferedModels
    from denizen.panel.asking import PanelDeps
    from denizen.panel.moderator import Moderator
    from denizen.panel.reflecting import PanelReflection
    from denizen.reflection.sentiment import Classifier
    from denizen.tools.elicitation_requests import ElicitationRequests
    from denizen.tools.mcp import McpTrouble
    from denizen.tools.outbound import Outbound

log_line = get_logger(__name__)

READY_SECONDS: Final = 3
"""How long the database may take to answer a readiness check."""
ANSWERING: Final = "answer to a call"
"""The purpose with which the answer address of a service is signed."""
_FOR_EVERY_INSTANCE: Final = (WAKE, PANEL, STOP, TO_SEND)
"""The topics of hints that other instances take too."""


class Wiring:
    """The parts of a runtime, and how it is opened, runs and is closed. The subjects in the modules beside it use what
    is public here; programs use the subjects.
    """

    finds_models: ClassVar[bool] = True
    """Whether a runtime without a configured model looks for one. Tests turn it off, so that they see the same
    everywhere.
    """

    def __init__(
        self,
        database_url: str = "sqlite://",
        *,
        redis_url: str | None = None,
        models: Mapping[str, Model] | None = None,
        default_model: str | None = None,
        found_model: ModelChoice | None = None,
        tools: Iterable[OutsideTool] = (),
        prices: Mapping[str, Price] | None = None,
        contexts: Mapping[str, int] | None = None,
        stops: Mapping[str, Stop] | None = None,
        embedder: str | Embedder = NONE,
        routes: Mapping[str, Choose] | None = None,
        steps: Mapping[str, PrepareStep] | None = None,
        triages: Mapping[str, Judge] | None = None,
        clock: Clock | None = None,
        pace: Pace | None = None,
        secret_key: str | None = None,
        secret_key_file: Path | None = None,
        shared_secrets: Mapping[str, str] | None = None,
        public_url: str = "http://127.0.0.1:8420",
        telemetry: Telemetry | None = None,
        memory: MemoryOptions | None = None,
        presets: Path | None = None,
        prompts: Path | None = None,
        classifier: Classifier | None = None,
        server_budget: BudgetSettings | None = None,
        lock_folder: Path | None = None,
        host_access: HostAccess = NO_ACCESS,
        file_limits: FileLimits | None = None,
        bridge_kinds: Iterable[BridgeKind] = (),
        archive_folder: Path | None = None,
    ) -> None:
        self.file_limits = file_limits or FileLimits()
        self.clock: Clock = clock or SystemClock()
        self.model_catalog = Models(models)
        """All models that agents can be given, by name. `denizen.models` tests and chooses them."""
        self.vault = Vault(_keys(secret_key, secret_key_file, database_url), shared_secrets or {})
        self.server_models = ServerModels(self.model_catalog, default_model, found_model or FOUND_NOTHING)
        """The default model of agents. If it is neither given nor found, it is looked for when the runtime opens."""
        self._finds_model = default_model is None and found_model is None and self.finds_models
        self.instance = new_id()
        self._lock = None if lock_folder is None else InstanceLock(lock_folder, self.instance)
        """Lets other processes on this machine find out whether this one is alive."""
        self._policy = DefinitionPolicy(
            host_access, check_model=self.model_catalog.check_name, check_reflection=self.require_classifier
        )
        """What organizations other than the first may use of this machine."""
        self._database_url = database_url
        self._bus: Bus = _make_bus(redis_url, self.clock)
        self._shared_bus = redis_url is not None
        self._tools = {each.name: each for each in map(require_tool, tools)}
        self.embedder = make_embedder(embedder) if isinstance(embedder, str) else embedder
        """The embedder for recall by meaning; None: recall by words only."""
        self._closes_embedder = isinstance(embedder, str)
        self.prices = prices or {}
        """Prices of models, by name, which override the known ones."""
        self.contexts = {name: number_of(size, f"contexts[{name!r}]", 1) for name, size in (contexts or {}).items()}
        """Context sizes of models in tokens, by name, if set; `*` is the default for unknown ones."""
        self.server_budget = None if server_budget is None else ServerBudget(server_budget, self.prices)
        """The daily budget of all organizations together; None: unlimited."""
        self._stops = dict(stops or {})
        self._routes = dict(routes or {})
        self._steps = dict(steps or {})
        self._triages = dict(triages or {})
        self._pace = pace or Pace()
        self._background_calls = BackgroundCalls()
        self._stop_hints = StopHints()
        self.public_url = public_url.rstrip("/")
        """The public address of this server."""
        self.telemetry = telemetry or Telemetry(Metrics())
        """The metrics and traces of this runtime; by default metrics only."""
        self.prompt_config = PromptConfig(presets, prompts, classifier, self.model_catalog.check_name)
        """Prompt profiles and metaprompts: the file `presets`, with the add-ons in `prompts`."""
        self._outside = Outside(self.clock, self.answer_address, self._make_elicitation, _SignIns(self))
        self.draining = False
        """Whether it was told to stop: clients are sent to other instances, and no cycle is begun here."""
        self._memory = memory
        self.keeper: Keeper | None = None
        """Summarizes conversations; None if the runtime has no memory."""
        self._reminder: Reminder | None = None
        self._advising: Advising | None = None
        self._db: Database | None = None
        self._residents: Residents | None = None
        self._has_lived = False
        """Whether agents have run in this process before."""
        self._moderator: Moderator | None = None
        self._make_recallable: Callable[[AgentId], None] | None = None
        self._file_reading: Background | None = None
        self._bridge_runner: BridgeRunner | None = None
        self._bridge_kinds = tuple(bridge_kinds)
        self.archive_folder = archive_folder
        """Where messages that have expired are written before they are removed; None: such spaces are left alone."""
        self._expiry_due: asyncio.Event | None = None
        self.hint_news: Callable[[], None] | None = None
        """Called after something was said or asked here: somebody may want to be notified."""
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.prompt_config.check()
        if self._finds_model:
            await self._find_model()
        self.model_catalog.check_name(self.default_model)
        await self._bus.open()
        self._closing.push_async_callback(self._bus.close)
        self._closing.push_async_callback(self.model_catalog.close)
        try:
            self._db = await open_database(self._database_url, clock=self.clock, announce=self._announce)
        except BaseException:
            await self._closing.aclose()
            raise
        self._closing.push_async_callback(self._db.close)
        self._closing.push_async_callback(self._outside.close)
        if self.embedder is not None and self._closes_embedder:
            self._closing.push_async_callback(self.embedder.close)
        try:
            await self.server_models.refresh(self._db)
            if self._memory is not None:
                self._begin_remembering(self._memory)
        except BaseException:
            await self._closing.aclose()
            raise
        return self

    @cached_property
    def _voices(self) -> LiveTexts:
        from denizen.cycles.speaking import LiveTexts

        return LiveTexts()

    def require_classifier(self, settings: ReflectionSettings) -> None:
        """Raises `InvalidInput` if the settings use a classifier for sentiment that is not configured here."""
        require_classifier(settings, self.prompt_config.configuration(), self.prompt_config.classifier)

    async def _find_model(self) -> None:
        """As `denizen up` does: DENIZEN_MODEL, a key in the environment, a server on this machine, or the demo."""
        configured = os.environ.get("DENIZEN_MODEL") or None
        choice = await choose_model(configured, os.environ)
        self.server_models.configured, self.server_models.found = configured, choice
        if choice.ollama_url is not None:
            self.model_catalog.ollama_url = choice.ollama_url
        log_line.debug("model found", model=choice.name, reason=choice.reason)

    @property
    def default_model(self) -> str:
        """The default model of agents."""
        return self.server_models.default

    def _begin_remembering(self, options: MemoryOptions) -> None:
        from denizen.agents import memory_budget
        from denizen.agents.advising import Advising, MemoryLookups
        from denizen.cycles.utility_budget import UtilityBudgetDeps
        from denizen.memory import sinks
        from denizen.memory.reminding import Reminder
        from denizen.memory.settings import Configuration
        from denizen.memory.sinks import DatabaseRetriever
        from denizen.memory.summarizing import Keeper, MemoryDeps

        configuration = Configuration(options.presets, options.switches, self.prompt_config.organizations.document)
        configuration.now()  # Problems with it are reported at the start.
        sink = None if options.sink is None else sinks.load(options.sink, "memory.sink", "keep")
        retriever = DatabaseRetriever
        if options.retriever is not None:
            retriever = sinks.load(options.retriever, "memory.retriever", "retrieve")
        finding = retriever(self.db, self.embedder)
        self._reminder = Reminder(self.db, finding, configuration)
        self._advising = Advising(self.db, self.prompt_config.presets_in, MemoryLookups(finding, configuration))
        means = MemoryDeps(
            self.db,
            self.clock,
            configuration,
            self._utility_model,
            memory_budget.MemoryBudget(UtilityBudgetDeps(self.db, self.clock, self.prices, self.server_budget)).reserve,
            memory_budget.pay,
            _review_profiles,
            None if sink is None else sink(self.db, self.embedder),
            self.embedder,
            self.prices,
            options.prompts,
        )
        self.keeper = Keeper(means)
        self.keeper.compacted += [self._reminder.compacted, self._advising.compacted]

    async def _utility_model(self, conversation: ConversationInfo, name: str) -> tuple[str, Model]:
        if name == "default":
            name = utility_model_for(self.default_model)
        if conversation.kind != "panel":
            return await self.equipment().model_for(await self.db.read(registry.get, conversation.agents[0][0]), name)
        return await self.panel_deps().model_for(conversation.organization_id, name)

    async def empty_write_ahead_log(self) -> None:
        """Empties SQLite's write-ahead log, so that erased text is gone from it, too."""
        await empty_write_ahead_log(self._database_url)

    async def __aexit__(self, *error: object) -> None:
        await self._closing.aclose()

    @property
    def db(self) -> Database:
        """The database, while the runtime is open."""
        if self._db is None:
            raise InvalidInput("This runtime is not open: use it as `async with Runtime(...) as denizen`.")
        return self._db

    @property
    def tool_names(self) -> frozenset[str]:
        """The tools that agents can be given here by name."""
        return frozenset(self._tools)

    @property
    def tools(self) -> list[OutsideTool]:
        """The same, each with what it is for, by name."""
        return [self._tools[name] for name in sorted(self._tools)]

    def register_tool(self, tool: OutsideTool) -> None:
        """Registers a tool that agents can be given by its name."""
        self._tools[tool.name] = tool

    def mcp_troubles(self, organization_id: OrganizationId) -> list[McpTrouble]:
        """The MCP servers of the organization's agents that this process could not reach when it last tried."""
        return self._outside.mcp_troubles(organization_id)

    async def tools_for(self, organization_id: OrganizationId) -> list[OutsideTool]:
        """Returns the tools that agents of this organization can be given by name."""
        if await self.db.read(directory.first_organization) == organization_id:
            return self.tools
        return [each for each in self.tools if each.name in self._policy.access.tools]

    @property
    def definition_policy(self) -> DefinitionPolicy:
        """The policy for definitions here. Use cases apply it to their requester."""
        return self._policy

    @property
    def lease_seconds(self) -> float:
        """How long an instance may be silent before others take over from it."""
        return self._pace.lease_seconds

    @property
    def bus(self) -> Bus:
        return self._bus

    def _announce(self, announcements: Sequence[Announcement]) -> None:
        """Called after a commit: wakes the agents that run here directly; other instances, and readers of streams, by
        the bus.
        """
        for topic, payload in announcements:
            if topic in _FOR_EVERY_INSTANCE:
                if self._shared_bus:
                    self._bus.publish(topic, {**payload, "by": self.instance})
                self._take_hint(topic, payload)
            elif topic == PLANNED:
                # The instance that made the plan waits for it; if it is gone by then, a sweep of another finds it.
                if self._residents is not None:
                    self._residents.expect(Instant(int(str(payload["at"]))))
            elif topic == TO_READ:
                # Lost if no agents run here: a process that runs them looks regularly.
                self._read_files()
            elif topic == RECALLABLE:
                # Lost if no agents run here: the next process that runs them looks for waiting ones.
                if self._make_recallable is not None:
                    self._make_recallable(AgentId(str(payload["agent"])))
            else:
                if payload.get("type") == "message.created":
                    self._on_message_posted(payload)
                elif payload.get("type") == "round.changed":
                    self._look_back_at(SpaceId(str(payload["space"])))
                elif payload.get("type") == "call.changed" and self.hint_news is not None:
                    self.hint_news()
                self._bus.publish(topic, payload)

    def _take_hint(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        """Called for a hint of this or another instance: there may be something to do for what runs here."""
        if topic == WAKE:
            if self._residents is not None:
                for agent_id in woken(payload):
                    self._residents.hint(agent_id)
        elif topic == PANEL:
            if self._moderator is not None:
                self._moderator.hint()
        elif topic == STOP:
            if (told := hinted(payload)) is not None:
                self._stop_hints.hint(*told)
        elif self._bridge_runner is not None:
            self._bridge_runner.hear(payload)

    def _look_everywhere(self) -> None:
        """Called when hints of other instances were lost. Woken agents are found by the sweep, and requests to stop at
        the next renewal of the leases.
        """
        if self._moderator is not None:
            self._moderator.hint()
        if self._bridge_runner is not None:
            self._bridge_runner.hint_all()

    def _read_files(self) -> None:
        if self._file_reading is not None:
            self._file_reading.hint()

    def _remove_expired(self) -> None:
        if self._expiry_due is not None:
            self._expiry_due.set()

    def _look_back_at(self, panel_id: SpaceId) -> None:
        """Notes that a turn of the panel may be over: there may be something to summarize and to reflect on."""
        if self.keeper is not None:
            self.keeper.hint_again(panel_id)
        if self._residents is not None:
            self._residents.panel_afterthoughts.hint(panel_id)

    def _on_message_posted(self, payload: Mapping[str, JsonValue]) -> None:
        if self.telemetry.metrics is not None:
            self.telemetry.metrics.posts.add(1)
        if self.keeper is not None:
            self.keeper.hint(SpaceId(str(payload["space"])), int(str(payload["seq"])))
        if self.hint_news is not None:
            self.hint_news()

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[Residents]:
        """Runs the agents inside the block; on leaving, cycles finish or are handed back."""
        if self._residents is not None:
            raise InvalidInput("The agents of this runtime are already running.")
        from denizen.agents.residents import Residents
        from denizen.api.retention import removing
        from denizen.consciousness.recall.embedding import following
        from denizen.consciousness.recall.file_passages import remember_files
        from denizen.cycles import catching_up
        from denizen.cycles.speaking import heard_by_latecomers
        from denizen.files import extracting
        from denizen.reflection.afterthoughts import Afterthoughts

        equipment = self.equipment()
        residents = Residents(
            self.db,
            self.clock,
            instance=self.instance,
            equip=equipment.equip,
            is_outdated=equipment.is_outdated,
            refresh=equipment.refresh,
            pace=self._pace,
            background_calls=self._background_calls,
            afterthoughts=Afterthoughts(partial(equipment.reflect_on_next, self._claimant)),
            panel_afterthoughts=Afterthoughts(self.reflecting().reflect_on_next),
            chapters=Afterthoughts(equipment.write_next_chapter, "chapter"),
            lock=self._lock,
            read_files=self._read_files,
            remove_expired=self._remove_expired,
            stop_hints=self._stop_hints,
            free_leases_of=free_leases_of,
        )
        if not self._has_lived:
            # It may have other keys, models and tools than the last process.
            await self.db.write(_retry_all)
            self._has_lived = True
        async with AsyncExitStack() as stack:
            if self._lock is not None:
                self._lock.hold()
                stack.callback(self._lock.release)
            await stack.enter_async_context(heard_by_latecomers(self._bus, self._voices, self.clock))
            self._make_recallable = await stack.enter_async_context(catching_up.following(self.db, self.clock))
            self._file_reading = await stack.enter_async_context(extracting.following(self.db, remember_files))
            self._expiry_due = await stack.enter_async_context(removing(self, self.archive_folder))
            if self.embedder is not None:
                await stack.enter_async_context(following(self.db, self.embedder, self.clock))
            self._moderator = await stack.enter_async_context(self._new_moderator())
            if self.keeper is not None:
                await stack.enter_async_context(self.keeper.following())
            self._bridge_runner = await stack.enter_async_context(self._new_bridge_runner())
            self._residents = await stack.enter_async_context(residents)
            stack.callback(self._forget_residents)
            # After them: a hint may come at once. Earlier ones are found by the sweep.
            if self._shared_bus:
                from denizen.bus.hearing import hearing_others

                for topic in _FOR_EVERY_INSTANCE:
                    hear = partial(self._take_hint, topic)
                    others = hearing_others(self._bus, topic, self.instance, hear, missed=self._look_everywhere)
                    await stack.enter_async_context(others)
            self._moderator.hint()
            await budgets.reconsider_server(self.db)
            await self._bridge_runner.look()
            await residents.look_back()
            await residents.sweep()
            yield residents

    def _new_moderator(self) -> Moderator:
        from denizen.panel.moderator import Moderator

        return Moderator(self.panel_deps(), instance=self.instance, pace=self._pace)

    @cached_property
    def bridge_policy(self) -> BridgePolicy:
        """The kinds of bridges here, and what they may reach."""
        from denizen.bridges.kinds import BUILT_IN
        from denizen.bridges.managing import BridgePolicy

        return BridgePolicy({each.name: each for each in (*BUILT_IN, *self._bridge_kinds)}, self._policy.access)

    def _new_bridge_runner(self) -> BridgeRunner:
        from denizen.api.files import Files
        from denizen.bridges.running import BridgeDeps, BridgeRunner

        deps = BridgeDeps(
            self.db,
            self._bus,
            self.clock,
            self.vault,
            self._outside.outbound,
            self.bridge_policy,
            self.store_file,
            Files(self).read,
        )
        return BridgeRunner(deps, instance=self.instance, pace=self._pace)

    async def store_file(self, author: EntityId, file: IncomingFile | SentFile | ToolFile, file_id: FileId) -> File:
        """Uploads a file that came through a bridge, a webhook or a tool, once."""
        from denizen.api.files import Files

        return await Files(self).upload(author, file.data, name=file.name, media_type=file.media_type, id=file_id)

    def panel_deps(self) -> PanelDeps:
        """What the advisors of panels answer with."""
        from denizen.agents.advising import Advising
        from denizen.panel.asking import PanelDeps

        if self._advising is None:
            self._advising = Advising(self.db, self.prompt_config.presets_in, None)
        return PanelDeps(
            self.db,
            self._bus,
            self.clock,
            self.model_catalog,
            self.server_models,
            self.prices,
            self.vault,
            self._advising,
            self.server_budget,
            self.contexts,
        )

    def reflecting(self) -> PanelReflection:
        """What the advisors of panels reflect with."""
        from denizen.panel.reflecting import PanelReflection

        prompt_config = self.prompt_config
        return PanelReflection(
            self.panel_deps(), prompt_config.configuration, prompt_config.classifier, claimant=self._claimant
        )

    @property
    def _claimant(self) -> Claimant:
        return Claimant(self.instance, self.lease_seconds)

    def _forget_residents(self) -> None:
        self._residents = None
        self._moderator = None
        self._make_recallable = None
        self._file_reading = None
        self._expiry_due = None
        self._bridge_runner = None

    async def drain(self) -> None:
        """Begins no further cycles here; waits until running ones have finished, or hands them back after
        `grace_seconds`.

        From then on everything together waits `LET_GO_SECONDS` for a database that does not answer.
        """
        self.draining = True
        within = self._pace.grace_seconds + LET_GO_SECONDS
        self.db.end_within(within)
        deadline = time.monotonic() + within
        if self._residents is not None and self._moderator is not None and self._bridge_runner is not None:
            await asyncio.gather(self._residents.stop(), self._moderator.stop())
            # Last: it sends what they have said.
            await self._bridge_runner.stop(deadline - time.monotonic())

    def hurry(self) -> None:
        """Hands back at once whatever is still finishing: it continues elsewhere, or later."""
        if self.draining:
            self.db.end_within(LET_GO_SECONDS)
        if self._residents is not None and self._moderator is not None:
            self._residents.hurry()
            self._moderator.hurry()
        if self._bridge_runner is not None:
            self._bridge_runner.hurry()

    async def missing(self) -> list[str]:
        """Returns what this instance lacks to take work: `database`, `schema`, `bus`, or that it is `draining`."""
        lacks = [*await self._missing_in_database()]
        if not self._bus.is_connected:
            lacks.append("bus")
        return [*lacks, "draining"] if self.draining else lacks

    async def _missing_in_database(self) -> list[str]:
        try:
            async with asyncio.timeout(READY_SECONDS):
                return [] if await self.db.read(is_current) else ["schema"]
        except (StorageError, TimeoutError):
            return ["database"]

    async def run_until_idle(self) -> None:
        """Let the agents think, and the advisors answer, until none of them has anything to do."""
        if self._residents is not None:
            await self._until_idle(self._residents)
            return
        async with self.living() as residents:
            await self._until_idle(residents)

    async def panels_settled(self) -> None:
        """Inside `living`: waits until this process has answered the open questions to panels, and reflected
        on them.
        """
        if self._moderator is not None and self._residents is not None:
            # An advisor that has answered has noted by then that there may be something to reflect on.
            await self._moderator.run_until_idle()
            await self._residents.panel_afterthoughts.settled()

    @cached_property
    def offered_models(self) -> OfferedModels:
        """What providers have said that they offer."""
        from denizen.models.provider_models import OfferedModels

        return OfferedModels(self.model_catalog, self.clock)

    async def wait_until_files_are_read(self, file_ids: Sequence[FileId]) -> None:
        """Waits until the text of these files is there, and pictures can be shown, but not long."""
        from denizen.files import extracting, storing

        if not file_ids:
            return
        found = await self.db.read(lambda tx: [storing.get(tx, each).content_id for each in file_ids])
        if self._file_reading is None:
            await extracting.read_waiting(self.db)
        await extracting.wait_until_read(self.db, found)

    async def _until_idle(self, residents: Residents) -> None:
        assert self._moderator is not None
        assert self._bridge_runner is not None
        await self._bridge_runner.settled()
        await residents.run_until_idle()
        while await self._moderator.run_until_idle():
            await residents.run_until_idle()
        await residents.panel_afterthoughts.settled()
        if self.keeper is not None:
            await self.keeper.settled()
        if self._file_reading is not None:
            await self._file_reading.settled()
        await self._bridge_runner.settled()

    def equipment(self) -> Equipment:
        from denizen.agents.equipment import Equipment
        from denizen.cycles.stopping import BUILT_IN

        return Equipment(
            db=self.db,
            bus=self._bus,
            clock=self.clock,
            models=self.model_catalog,
            server_models=self.server_models,
            tools=self._tools,
            prices=self.prices,
            stops={**BUILT_IN, **self._stops},
            routes=self._routes,
            steps=self._steps,
            triages=self._triages,
            vault=self.vault,
            policy=self._policy,
            embedder=self.embedder,
            background_calls=self._background_calls,
            outside=self._outside,
            voices=self._voices,
            stop_hints=self._stop_hints,
            telemetry=self.telemetry,
            reminder=self._reminder,
            server_budget=self.server_budget,
            prompt_config=self.prompt_config,
            contexts=self.contexts,
            store_file=self.store_file,
        )

    def _make_elicitation(self) -> ElicitationRequests:
        from denizen.tools.elicitation_requests import ElicitationRequests

        return ElicitationRequests(self.db, self._bus, self.instance)

    async def load_secret(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value of a secret of the organization."""
        return await self.db.read(secrets.value_at, self.vault, SecretLocation(organization_id, name))

    async def renew_secret(self, organization_id: OrganizationId, name: str, value: str) -> None:
        """Replace the value of a secret that a service has renewed."""
        place = SecretLocation(organization_id, name)
        sealed = await asyncio.to_thread(self.vault.seal, secrets.check_value(value), place.purpose)
        await self.db.write(secrets.renew, place, sealed)

    async def outbound(self) -> Outbound:
        """HTTP to public hosts, and to those that are allowed by name."""
        return await self._outside.outbound()

    def answer_address(self, call_id: str) -> str:
        """Returns the address at which a service gives its answer to a call; knowing the address is enough to
        answer.
        """
        return f"{self.public_url}/hooks/calls/{call_id}?key={self.vault.sign(call_id, ANSWERING)}"

    async def organization_id(self, given: Organization | OrganizationId | None) -> OrganizationId:
        """Returns the given organization; otherwise the only one, which is created if there is none."""
        if given is not None:
            return given.id if isinstance(given, Organization) else given
        return await self.db.write(_only_organization)

    def remember_cause(self, event_id: str) -> None:
        if self.telemetry.tracer is not None:
            self.telemetry.tracer.remember(event_id)

    async def metrics(self) -> str:
        """Returns the metrics of this process and of the database, in Prometheus's text format."""
        metrics = self.telemetry.metrics
        if metrics is None:
            raise InvalidInput("This runtime has no metrics. Give it a Telemetry with Metrics.")
        awake = 0 if self._residents is None else self._residents.awake
        return await gauges.exposition(metrics, self.db, awake=awake)


def _keys(given: str | None, file: Path | None, database_url: str) -> Keys:
    if given is not None:
        return given_keys(given)
    if file is not None:
        return keys_in_file(file)
    # A temporary database needs no key that outlives the process.
    return keys_in_memory() if database_url in ("sqlite://", "sqlite:///", "sqlite:///:memory:") else no_keys


def _review_profiles(tx: Tx, conversation: ConversationInfo) -> None:
    """Has the profiles of agents in a summarized conversation chosen anew for its next turn."""
    from denizen.profiles import choosing

    for agent_id, _ in conversation.agents:
        choosing.ask_review_in(tx, agent_id, conversation.space_id)


def _make_bus(redis_url: str | None, clock: Clock) -> Bus:
    if redis_url is None:
        return LocalBus()
    from denizen.bus.redis import RedisBus

    return RedisBus(redis_url, clock=clock)


def _retry_all(tx: Tx) -> None:
    """Has agents and bridges that wait for a change try again."""
    parking.retry_all(tx)
    bridge_registry.probe(tx)


def free_leases_of(tx: Tx, instance: str) -> None:
    """Free all that an instance held that is gone; its calls are found by the next instance that looks."""
    from denizen.consciousness import lease
    from denizen.panel import claims

    lease.free_all_of(tx, instance)
    claims.free_all_of(tx, instance)
    bridge_registry.free_all_of(tx, instance)


def _only_organization(tx: Tx) -> OrganizationId:
    found = directory.list_organizations(tx)
    if len(found) > 1:
        raise InvalidInput("There are several organizations. Name one with `organization=`.")
    return found[0].id if found else directory.create_organization(tx, "Home").id


@dataclass(frozen=True)
class _SignIns:
    """The sign-ins to MCP servers, in the secrets of organizations."""

    wiring: Wiring

    def of(self, organization_id: str) -> _SecretsOf:
        return _SecretsOf(self.wiring, OrganizationId(organization_id))


@dataclass(frozen=True)
class _SecretsOf:
    """The secrets of an organization."""

    wiring: Wiring
    organization_id: OrganizationId

    async def load(self, name: str) -> str | None:
        return await self.wiring.load_secret(self.organization_id, name)

    async def save(self, name: str, value: str) -> None:
        await self.wiring.renew_secret(self.organization_id, name, value)
