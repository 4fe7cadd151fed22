"""The wiring, and the door to everything in Python: one `Runtime` holds the database, the bus and the living agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

from pydantic import JsonValue
from pydantic_ai.models import Model

from denizen.access import people, secrets, webhooks
from denizen.access.payloads import Greeting
from denizen.access.secrets import Place, Secret
from denizen.access.signatures import Scheme
from denizen.access.vault import Keys, Vault, given_keys, keys_in_file, keys_in_memory, no_keys
from denizen.access.webhooks import Webhook
from denizen.agents import applying, forking, gauges, paying, registry, standing
from denizen.agents.advising import Advising, Remembering
from denizen.agents.differences import Change
from denizen.agents.equipping import Equipment
from denizen.agents.files import Declared
from denizen.agents.inspection import Inspection, inspect
from denizen.agents.outlook import Outlook
from denizen.agents.registry import Agent, Status
from denizen.agents.residents import Pace, Residents
from denizen.bus.local import LocalBus
from denizen.bus.port import Bus
from denizen.bus.streams import PANEL, WAKE, woken
from denizen.clock import Clock, Instant, SystemClock
from denizen.consciousness import log, replay
from denizen.consciousness.log import Entry
from denizen.consciousness.recall import embedding
from denizen.consciousness.recall.embedding import following
from denizen.consciousness.recall.fetching import Found as Recalled
from denizen.consciousness.recall.passages import RECALLABLE
from denizen.consciousness.replay import Rebuilt
from denizen.cycles import budgets, catching_up
from denizen.cycles.budgets import BudgetSettings, Resting, Spending
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.reflecting import Afterthoughts, Tried, try_metaprompt
from denizen.cycles.rethinking import Rethought, rethink
from denizen.cycles.routing import Choose
from denizen.cycles.speaking import Voices, heard_by_latecomers
from denizen.cycles.stopping import BUILT_IN, Stop
from denizen.cycles.triage import Judge
from denizen.errors import InvalidInput, NotFound, OutcomeUnknown, StorageError
from denizen.forgetting import changing, forgetting
from denizen.forgetting.erasing import empty_write_ahead_log
from denizen.forgetting.forgetting import Receipt, Rehearsed
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import Event
from denizen.inbox.outside import storable_data
from denizen.memory import hygiene, items, rolling, settled, sinks
from denizen.memory.access import Visitor
from denizen.memory.hygiene import Report
from denizen.memory.items import Remembered
from denizen.memory.keeping import Keeper, Means, Rolling
from denizen.memory.policy import OrganizationMemory, Policy
from denizen.memory.reminding import Reminder
from denizen.memory.rolling import House, Rolled
from denizen.memory.searching import Found as FoundMemory
from denizen.memory.settings import Configuration, MemoryOptions
from denizen.memory.sinks import DatabaseRetriever
from denizen.models.catalog import Models
from denizen.models.embedders import NONE, Embedder, Reader, make_embedder
from denizen.models.prices import Price
from denizen.panel import advisors, desk, panels, rounds, taking, transcript
from denizen.panel.advisors import Advisor, AdvisorDraft
from denizen.panel.asking import Kit
from denizen.panel.costs import Foretold
from denizen.panel.moderator import Moderator
from denizen.panel.panels import Panel
from denizen.panel.rounds import Part, Round
from denizen.panel.suggesting import COUNT, Suggestion
from denizen.panel.taking import Shown
from denizen.plans import agenda, from_outside, goals, notes
from denizen.plans.agenda import PLANNED, Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange, GoalStatus, Priority
from denizen.plans.notes import Note
from denizen.portability import exporting, importing
from denizen.portability.imported import Imported
from denizen.profiles import choosing
from denizen.reflection import records as reflection
from denizen.reflection.history import PastRun, PastSignal, runs_of, signals_of
from denizen.reflection.records import Stance
from denizen.reflection.sentiment import Classifier
from denizen.reflection.settings import Metaprompt
from denizen.reflection.state import Complexity, Mood, Skill
from denizen.spaces import directory, posting, reading, searching
from denizen.spaces.directory import Attention, Entity, Member, Organization, Space, SpaceKind
from denizen.spaces.handles import handle_from
from denizen.spaces.posting import Draft, Message, Posted
from denizen.spaces.searching import Cursor, Found, Wanted, Words
from denizen.storage.database import Announcement, Database, Tx, storable
from denizen.storage.migrating import is_current
from denizen.storage.opening import open_database
from denizen.telemetry.metrics import Metrics
from denizen.telemetry.telemetry import Telemetry
from denizen.tools import calls, guard
from denizen.tools.calls import Call
from denizen.tools.errands import Errands
from denizen.tools.functions import as_text
from denizen.tools.guard import Crossing
from denizen.tools.outside import Outside
from denizen.tools.recalling import Recall, look
from denizen.tools.settings import ToolSettings
from denizen.tools.tool import OutsideTool

READY_SECONDS: Final = 3
"""How long the database may take to say that it is there."""
ANSWERING: Final = "answer to a call"
"""For what an address at which a service answers is signed."""

Who = Entity | Agent
"""Anyone who can be in a space."""


class Runtime:
    """A house for agents and the people they live with. Use it as `async with Runtime(...) as denizen`.

    Agents think while `run_until_idle()` runs, or inside `async with denizen.living()`.
    """

    def __init__(
        self,
        database_url: str = "sqlite://",
        *,
        redis_url: str | None = None,
        models: Mapping[str, Model] | None = None,
        default_model: str = "demo",
        tools: Iterable[OutsideTool] = (),
        prices: Mapping[str, Price] | None = None,
        stops: Mapping[str, Stop] | None = None,
        embedder: str | Embedder = NONE,
        routes: Mapping[str, Choose] | None = None,
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
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.models = Models(models)
        self.vault = Vault(_keys(secret_key, secret_key_file, database_url), shared_secrets or {})
        self.default_model = default_model
        self.instance = new_id()
        self._database_url = database_url
        self._bus: Bus = _make_bus(redis_url, self.clock)
        self._shared_bus = redis_url is not None
        self._tools = {each.name: each for each in tools}
        self.embedder = make_embedder(embedder) if isinstance(embedder, str) else embedder
        """With what agents recall by meaning; None: they recall by words."""
        self._closes_embedder = isinstance(embedder, str)
        self._prices = prices or {}
        self._stops = {**BUILT_IN, **(stops or {})}
        self._routes = dict(routes or {})
        self._triages = dict(triages or {})
        self._pace = pace or Pace()
        self._errands = Errands()
        self._voices = Voices()
        self.public_url = public_url.rstrip("/")
        """Where others reach this server, as they are told it."""
        self.telemetry = telemetry or Telemetry(Metrics())
        """With what this runtime is watched; by default it counts, and traces nothing."""
        self.outlook = Outlook(presets, prompts, classifier)
        """Prompt profiles and metaprompts: the file `presets`, with the add-ons in `prompts`."""
        self._outside = Outside(self.clock, self.answer_address)
        self.draining = False
        """Told to stop: whoever asks is sent to other instances, and no cycle is begun here any more."""
        self._memory = memory
        self._keeper: Keeper | None = None
        self._reminder: Reminder | None = None
        self._advising: Advising | None = None
        self._db: Database | None = None
        self._residents: Residents | None = None
        self._moderator: Moderator | None = None
        self._make_recallable: Callable[[AgentId], None] | None = None
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.outlook.check()
        await self._bus.open()
        self._closing.push_async_callback(self._bus.close)
        self._closing.push_async_callback(self.models.close)
        try:
            self._db = await open_database(self._database_url, clock=self.clock, announce=self._announce)
        except BaseException:
            await self._closing.aclose()
            raise
        self._closing.push_async_callback(self._db.close)
        self._closing.push_async_callback(self._outside.close)
        if self.embedder is not None and self._closes_embedder:
            self._closing.push_async_callback(self.embedder.close)
        if self._memory is not None:
            try:
                self._begin_remembering(self._memory)
            except BaseException:
                await self._closing.aclose()
                raise
        elif self.outlook.library.path is not None:
            self._advising = Advising(self.db, self.outlook.presets, None)
        return self

    def _begin_remembering(self, options: MemoryOptions) -> None:
        configuration = Configuration(options.presets, options.switches)
        configuration.now()  # what is wrong with it is said at the start
        sink = None if options.sink is None else sinks.load(options.sink, "memory.sink", "keep")
        retriever = DatabaseRetriever
        if options.retriever is not None:
            retriever = sinks.load(options.retriever, "memory.retriever", "retrieve")
        finding = retriever(self.db, self.embedder)
        self._reminder = Reminder(self.db, finding, configuration)
        self._advising = Advising(self.db, self.outlook.presets, Remembering(finding, configuration))
        means = Means(
            self.db,
            self.clock,
            configuration,
            self._utility_model,
            paying.Purse(self.db, self._prices).room_for,
            paying.pay,
            _review_profiles,
            None if sink is None else sink(self.db, self.embedder),
            self.embedder,
            self._prices,
            options.prompts,
        )
        self._keeper = Keeper(means)
        self._keeper.compacted += [self._reminder.compacted, self._advising.compacted]

    async def _utility_model(self, house: House, name: str) -> tuple[str, Model]:
        if house.kind != "panel":
            return await self._equipment().model_for(await self.get_agent(house.agents[0][0]), name)
        return await self._kit().model_for(house.organization_id, name)

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

    @property
    def bus(self) -> Bus:
        return self._bus

    def _announce(self, announcements: Sequence[Announcement]) -> None:
        """After a commit: whoever lives here is woken directly; the others, and readers of streams, by the bus."""
        for topic, payload in announcements:
            if topic == WAKE:
                if self._residents is not None:
                    for agent_id in woken(payload):
                        self._residents.hint(agent_id)
                if self._shared_bus:
                    self._bus.publish(topic, {**payload, "by": self.instance})
            elif topic == PLANNED:
                # Whoever made the plan waits for it; should this instance be gone by then, a sweep of another finds it.
                if self._residents is not None:
                    self._residents.expect(Instant(int(str(payload["at"]))))
            elif topic == PANEL:
                if self._moderator is not None:
                    self._moderator.hint()
                if self._shared_bus:
                    self._bus.publish(topic, {**payload, "by": self.instance})
            elif topic == RECALLABLE:
                # Lost where nobody lives here: whoever lives next looks for those that have waited.
                if self._make_recallable is not None:
                    self._make_recallable(AgentId(str(payload["agent"])))
            else:
                if payload.get("type") == "message.created":
                    self._count_message(payload)
                elif payload.get("type") == "round.changed" and self._keeper is not None:
                    self._keeper.hint_again(SpaceId(str(payload["space"])))
                self._bus.publish(topic, payload)

    def _count_message(self, payload: Mapping[str, JsonValue]) -> None:
        if self.telemetry.metrics is not None:
            self.telemetry.metrics.posts.add(1)
        if self._keeper is not None:
            self._keeper.hint(SpaceId(str(payload["space"])), int(str(payload["seq"])))

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[Residents]:
        """Inside, agents wake, think and sleep by themselves; on leaving, cycles finish or are handed back."""
        if self._residents is not None:
            raise InvalidInput("The agents of this runtime are living already.")
        equipment = self._equipment()
        afterthoughts = Afterthoughts(self.db, equipment.reflector)
        residents = Residents(
            self.db,
            self.clock,
            instance=self.instance,
            equip=equipment.equip,
            pace=self._pace,
            errands=self._errands,
            afterthoughts=afterthoughts,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(heard_by_latecomers(self._bus, self._voices, self.clock))
            self._make_recallable = await stack.enter_async_context(catching_up.following(self.db, self.clock))
            if self.embedder is not None:
                await stack.enter_async_context(following(self.db, self.embedder, self.clock))
            self._moderator = await stack.enter_async_context(self._new_moderator())
            if self._keeper is not None:
                await stack.enter_async_context(self._keeper.following())
            self._residents = await stack.enter_async_context(residents)
            stack.callback(self._forget_residents)
            # After them: a hint may come at once. What came before is found by the sweep.
            if self._shared_bus:
                from denizen.agents.hints import listening
                from denizen.panel.hints import overhearing

                await stack.enter_async_context(listening(self._bus, residents, self.instance))
                await stack.enter_async_context(overhearing(self._bus, self._moderator, self.instance))
            self._moderator.hint()
            await residents.look_back()
            await residents.sweep()
            yield residents

    def _new_moderator(self) -> Moderator:
        pace = self._pace
        return Moderator(
            self._kit(),
            instance=self.instance,
            lease_seconds=pace.lease_seconds,
            sweep_seconds=pace.sweep_seconds,
            grace_seconds=pace.grace_seconds,
        )

    def _kit(self) -> Kit:
        """What advisors of panels answer with."""
        return Kit(
            self.db,
            self._bus,
            self.clock,
            self.models,
            self.default_model,
            self._prices,
            self.vault,
            self._advising,
        )

    def _forget_residents(self) -> None:
        self._residents = None
        self._moderator = None
        self._make_recallable = None

    async def drain(self) -> None:
        """No cycle is begun here any more; those under way have finished, or are handed back after `grace_seconds`."""
        self.draining = True
        if self._residents is not None and self._moderator is not None:
            await asyncio.gather(self._residents.stop(), self._moderator.stop())

    def hurry(self) -> None:
        """Whatever still finishes while we drain is handed back at once: it goes on elsewhere, or later."""
        if self._residents is not None and self._moderator is not None:
            self._residents.hurry()
            self._moderator.hurry()

    async def missing(self) -> list[str]:
        """What this instance lacks to take work: `database`, `schema`, `bus`, or that it is `draining`."""
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

    async def _until_idle(self, residents: Residents) -> None:
        assert self._moderator is not None
        await residents.run_until_idle()
        while await self._moderator.run_until_idle():
            await residents.run_until_idle()
        if self._keeper is not None:
            await self._keeper.settled()

    def _equipment(self) -> Equipment:
        return Equipment(
            db=self.db,
            bus=self._bus,
            clock=self.clock,
            models=self.models,
            default_model=self.default_model,
            tools=self._tools,
            prices=self._prices,
            stops=self._stops,
            routes=self._routes,
            triages=self._triages,
            vault=self.vault,
            embedder=self.embedder,
            errands=self._errands,
            outside=self._outside,
            voices=self._voices,
            telemetry=self.telemetry,
            reminder=self._reminder,
            outlook=self.outlook,
        )

    def answer_address(self, call_id: str) -> str:
        """Where a service that has taken a call gives its answer; whoever knows the address may answer."""
        return f"{self.public_url}/hooks/calls/{call_id}?key={self.vault.sign(call_id, ANSWERING)}"

    # Who and where

    async def create_organization(self, name: str) -> Organization:
        return await self.db.write(directory.create_organization, name)

    async def _organization(self, given: Organization | OrganizationId | None) -> OrganizationId:
        """The one that was given; else the only one there is, which is made if there is none."""
        if given is not None:
            return given.id if isinstance(given, Organization) else given
        return await self.db.write(_only_organization)

    async def create_person(
        self, name: str, *, handle: str | None = None, organization: Organization | OrganizationId | None = None
    ) -> Entity:
        """Someone who talks to agents. Without a handle, one is made from the name."""
        home = await self._organization(organization)
        return await self.db.write(
            directory.create_entity, home, "human", name=name, handle=handle or handle_from(name)
        )

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
        return await self.db.write(registry.create, home, name=name, handle=handle, definition=defined)

    def _register_tool(self, given: str | OutsideTool | ToolSettings) -> str | ToolSettings:
        if not isinstance(given, OutsideTool):
            return given
        self._tools[given.name] = given
        return given.name

    async def edit_agent(self, agent: Agent | AgentId, **changes: Any) -> Agent:
        """The agent with these fields of its definition changed; a new era begins with its next cycle."""
        agent_id = _id(agent)
        current = await self.db.read(registry.get, agent_id)
        fields = current.definition.model_dump(exclude_defaults=True) | changes
        return await self.db.write(registry.edit, agent_id, registry.define(**fields))

    async def apply(
        self,
        definitions: Iterable[Declared],
        *,
        dry_run: bool = False,
        creator: Who | EntityId | None = None,
        guard: applying.Guard | None = None,
        organization: Organization | OrganizationId | None = None,
    ) -> list[Change]:
        """What the documents of definition files say is so, all of it or nothing; what changed, in their order.

        The `creator` is put into every space that is made. A dry run does it all and undoes it again. Where a `guard`
        is given, it says what of it is not to be done.
        """
        home = await self._organization(organization)
        who = None if creator is None else _id(creator)
        try:
            do = applying.rehearse if dry_run else applying.apply
            return await self.db.write(do, home, list(definitions), who, guard)
        except applying.Rehearsed as rehearsed:
            return rehearsed.changes

    async def get_agent(self, agent: Agent | AgentId) -> Agent:
        return await self.db.read(registry.get, _id(agent))

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
        home = await self._organization(organization)
        await self.db.write(budgets.set_organization_budget, home, budgets.checked(given))

    async def budget(self, organization: Organization | OrganizationId | None = None) -> BudgetSettings | None:
        """What all agents of the organization together may use."""
        return await self.db.read(budgets.organization_budget, await self._organization(organization))

    async def resting(self, agent: Agent | AgentId) -> Resting | None:
        """Why and until when the agent rests, if its budget has suspended it."""
        return await self.db.read(budgets.resting, _id(agent))

    async def spending(
        self,
        agent: Agent | AgentId | None = None,
        *,
        days: int = 30,
        organization: Organization | OrganizationId | None = None,
    ) -> list[Spending]:
        """What the agent, or without one each agent and panel of the organization, used on the last days, by model."""
        if agent is not None:
            return await self.db.read(budgets.spending_of_agent, _id(agent), days=days)
        return await self.db.read(budgets.spending_of_all, await self._organization(organization), days=days)

    async def suspend_agent(self, agent: Agent | AgentId) -> None:
        await self.db.write(registry.suspend, _id(agent))

    async def resume_agent(self, agent: Agent | AgentId) -> None:
        await self.db.write(registry.resume, _id(agent))

    async def delete_agent(self, agent: Agent | AgentId) -> None:
        await self.db.write(registry.delete, _id(agent))

    async def status(self, agent: Agent | AgentId) -> Status:
        return await self.db.read(registry.status, _id(agent))

    async def find(self, handle: str, *, organization: Organization | OrganizationId | None = None) -> Entity:
        """Whoever has this handle."""
        home = await self._organization(organization)
        return await self.db.read(directory.find_entity, home, handle)

    async def create_space(
        self,
        name: str,
        members: Iterable[Who] = (),
        *,
        kind: SpaceKind = "conversation",
        private: bool = False,
        organization: Organization | OrganizationId | None = None,
    ) -> Space:
        """A new space with these members in it."""
        joining = [_id(each) for each in members]
        home = await self._organization(organization)
        return await self.db.write(_create_space, home, name, kind, private, joining)

    async def join(self, space: Space | SpaceId, who: Who | EntityId, *, attention: Attention = "all") -> None:
        await self.db.write(directory.join, _id(space), _id(who), attention=attention)

    async def leave(self, space: Space | SpaceId, who: Who | EntityId) -> None:
        await self.db.write(directory.leave, _id(space), _id(who))

    async def attend(self, space: Space | SpaceId, who: Who | EntityId, attention: Attention) -> None:
        """From now on this much of the space reaches the member: all, mentions, none."""
        await self.db.write(directory.attend, _id(space), _id(who), attention)

    async def remove_person(self, person: Entity | EntityId) -> None:
        """They, or a service, are here no more: in no space, with no token. What they said stays, under their name."""
        await self.db.write(people.leave, _id(person))

    async def members(self, space: Space | SpaceId) -> list[Member]:
        return await self.db.read(directory.members, _id(space))

    # Saying and reading

    async def post(
        self,
        space: Space | SpaceId,
        author: Who | EntityId,
        text: str,
        *,
        id: MessageId | None = None,
        reply_to: MessageId | None = None,
        urgent: bool = False,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Posted:
        """The message stands in the space and in every inbox that attends to it when this returns."""
        what = await _draft(text)
        # Known beforehand, so that posting again after an unknown outcome is posting once.
        chosen = id or MessageId(new_id())
        self._remember_cause(chosen)

        async def post() -> Posted:
            return await self.db.write(
                rounds.post,
                _id(space),
                _id(author),
                what,
                id=chosen,
                reply_to=reply_to,
                urgent=urgent,
                metadata=metadata,
            )

        try:
            return await post()
        except OutcomeUnknown:
            return await post()

    async def edit_message(self, message: Message | Posted | MessageId, text: str, *, by: Who | EntityId) -> Message:
        """The message says this now; agents that have read it are told once. Its author may, or who runs the space."""
        return await self.db.write(changing.edit_message, _id(message), _id(by), await _draft(text))

    async def delete_message(self, message: Message | Posted | MessageId, *, by: Who | EntityId) -> Message:
        """The text of the message is gone, its place stays; agents that have read it are told once."""
        return await self.db.write(changing.delete_message, _id(message), _id(by))

    async def messages(self, space: Space | SpaceId, *, after: int = 0, limit: int = 1_000) -> list[Message]:
        return await self.db.read(posting.messages_after, _id(space), after, limit=limit)

    async def mark_read(self, space: Space | SpaceId, who: Who | EntityId, seq: int) -> reading.Place:
        """They have read up to the message of that number, and not what follows it."""
        return await self.db.write(reading.mark_read, _id(space), _id(who), seq)

    async def search(
        self,
        who: Who | EntityId,
        words: str,
        *,
        space: Space | SpaceId | None = None,
        author: Who | EntityId | None = None,
        before: str | None = None,
        limit: int = 20,
    ) -> Found:
        """Messages in their spaces that have all these words, newest first. `before`: where the last one stopped."""
        wanted = Wanted(Words(words), None if space is None else _id(space), None if author is None else _id(author))
        place = None if before is None else Cursor.read(before)
        return await self.db.read(searching.search, _id(who), wanted, before=place, limit=limit)

    async def transcript(self, space: Space | SpaceId) -> list[str]:
        """The conversation, one line a message: `Noor: Hello.`"""
        return [f"{message.author_name}: {message.text}" for message in await self.messages(space)]

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
            await self.db.write(_trigger, _id(agent), chosen, payload, urgent)
        except OutcomeUnknown:
            await self.db.write(_trigger, _id(agent), chosen, payload, urgent)

    def _remember_cause(self, event_id: str) -> None:
        if self.telemetry.tracer is not None:
            self.telemetry.tracer.remember(event_id)

    # Panels: several advisors answer at once

    async def create_panel(
        self,
        name: str,
        members: Iterable[Who] = (),
        *,
        advisors: Iterable[AdvisorDraft | Mapping[str, Any] | str] = (),
        private: bool = False,
        organization: Organization | OrganizationId | None = None,
        **settings: Any,
    ) -> Panel:
        """A new panel with these members and advisors in it; an advisor may be given as its name alone."""
        home = await self._organization(organization)
        joining, drafts = [_id(each) for each in members], [_drafted(each) for each in advisors]
        return await self.db.write(_create_panel, home, name, joining, drafts, private, settings)

    async def panels(self, who: Who | EntityId) -> list[Panel]:
        """The panels they are in."""
        return await self.db.read(panels.panels_of, _id(who))

    async def get_panel(self, panel: Panel | Space | SpaceId) -> Panel:
        return await self.db.read(panels.get, _id(panel))

    async def edit_panel(self, panel: Panel | Space | SpaceId, **settings: Any) -> Panel:
        """The panel with these settings changed."""
        return await self.db.write(panels.edit, _id(panel), settings)

    async def advisors(self, panel: Panel | Space | SpaceId) -> list[Advisor]:
        """Who advises in the panel, switched off or on, in order."""
        return await self.db.read(advisors.list_of, _id(panel))

    async def add_advisors(
        self, panel: Panel | Space | SpaceId, *given: AdvisorDraft | Mapping[str, Any] | str
    ) -> list[Advisor]:
        return await self.db.write(advisors.add, _id(panel), [_drafted(each) for each in given])

    async def edit_advisor(self, panel: Panel | Space | SpaceId, advisor: Advisor | str, **changes: Any) -> Advisor:
        """The advisor with these fields changed; its past stays its own."""
        return await self.db.write(advisors.edit, _id(panel), _id(advisor), changes)

    async def remove_advisor(self, panel: Panel | Space | SpaceId, advisor: Advisor | str) -> None:
        """It is asked no more. What it has said stays."""
        await self.db.write(advisors.remove, _id(panel), _id(advisor))

    async def reorder_advisors(self, panel: Panel | Space | SpaceId, order: Iterable[Advisor | str]) -> list[Advisor]:
        return await self.db.write(advisors.reorder, _id(panel), [_id(each) for each in order])

    async def set_group_active(self, panel: Panel | Space | SpaceId, group: str, active: bool) -> list[Advisor]:
        """All advisors of the group are switched on, or off."""
        return await self.db.write(advisors.set_group_active, _id(panel), group, active)

    async def import_advisors(
        self, panel: Panel | Space | SpaceId, document: Mapping[str, Any], *, replace: bool = False
    ) -> list[Advisor]:
        """The advisors of an exported document are in the panel; with `replace`, those that were there are not."""
        return await self.db.write(advisors.bring_in, _id(panel), document, replace=replace)

    async def export_advisors(self, panel: Panel | Space | SpaceId) -> dict[str, Any]:
        return advisors.taken_out(await self.advisors(panel))

    async def suggest_advisors(
        self, panel: Panel | Space | SpaceId, topic: str, *, count: int = COUNT
    ) -> list[Suggestion]:
        """Advisors that a model proposes for the topic, each with a reason."""
        return await desk.suggest(self._kit(), _id(panel), topic, count)

    async def ask_panel(
        self,
        panel: Panel | Space | SpaceId,
        author: Who | EntityId,
        text: str,
        *,
        id: MessageId | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Round:
        """The message stands in the panel, and everyone it is for has it to answer. `round` gives what came of it."""
        posted = await self.post(_id(panel), author, text, id=id, metadata=metadata)
        begun = await self.db.read(rounds.begun_by, posted.id)
        if begun is None:
            raise InvalidInput("Only what a person says to a panel is answered.")
        return begun

    async def round(self, asked: Round) -> Round:
        """The round as it is now."""
        return await self.db.read(rounds.get, asked.panel_id, asked.id)

    async def rounds(
        self, panel: Panel | Space | SpaceId, *, before: int | None = None, limit: int = 50
    ) -> list[Round]:
        """The last rounds of turns before that one, or of all, the oldest first."""
        return await self.db.read(rounds.before, _id(panel), before, limit=limit)

    async def cancel_round(self, asked: Round, advisor: Advisor | str | None = None) -> Round:
        """The advisor, or without one everyone who has not finished, answers no more in this round."""
        voice = None if advisor is None else _id(advisor)
        return await self.db.write(rounds.cancel, asked.panel_id, asked.id, voice)

    async def retry_round(self, asked: Round, advisor: Advisor | str | None = None) -> Round:
        """The advisor, or without one everyone who has failed or was cancelled, is asked again.

        One who has answered, and is named, answers anew: what it said is gone.
        """
        voice = None if advisor is None else _id(advisor)
        return await self.db.write(rounds.retry, asked.panel_id, asked.id, voice)

    async def synthesize(self, asked: Round) -> Round:
        """What was said is put together: the part `synthesis` of the round."""
        return await self.db.write(rounds.want_synthesis, asked.panel_id, asked.id)

    async def crosstalk(self, asked: Round, *, by: Who | EntityId, times: int = 1) -> Round:
        """The advisors answer each other, so many times; gives the first round of it."""
        return await self.db.write(rounds.begin_crosstalk, asked.panel_id, asked.id, _id(by), times)

    async def vote(self, asked: Round, question: str = "", *, by: Who | EntityId) -> Round:
        """The advisors vote on the question, or on what the turn was about; `voting.tally` says what it came to."""
        return await self.db.write(rounds.begin_vote, asked.panel_id, asked.id, _id(by), question)

    async def reply_context(self, asked: Round, advisor: Advisor | str, *, part: Part | None = None) -> Shown:
        """Exactly what the advisor was shown when it answered in this round."""
        return await self.db.read(taking.context_of, asked.panel_id, asked.id, _id(advisor), part)

    async def foretell(self, panel: Panel | Space | SpaceId, text: str) -> list[Foretold]:
        """What the message would cost, voice by voice."""
        return await desk.foretell(self._kit(), _id(panel), text)

    async def panel_transcript(self, panel: Panel | Space | SpaceId) -> str:
        """Everything that was said in the panel, in Markdown."""
        return await self.db.read(transcript.markdown, _id(panel))

    # Forgetting: gone everywhere, in one transaction

    async def forget_message(
        self,
        message: Message | Posted | MessageId,
        *,
        by: Who | EntityId | None = None,
        also_replies: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """The message is gone from everything that is kept; with `also_replies`, so is what agents answered it.

        With `dry_run` nothing is: the receipt, which is not kept, says how much would be.
        """
        return await self._forget(forgetting.forget_message, _id(message), by, dry_run, also_replies=also_replies)

    async def forget_person(
        self,
        person: Entity | EntityId,
        *,
        by: Who | EntityId | None = None,
        dry_run: bool = False,
        refuse_last_owner: bool = False,
    ) -> Receipt:
        """Everything the person said is gone, and so are their name, their memberships and their tokens.

        The last owner of an organization stays its owner, without a name; with `refuse_last_owner` it is not forgotten.
        """
        refuse = {"refuse_last_owner": refuse_last_owner}
        return await self._forget(forgetting.forget_person, _id(person), by, dry_run, **refuse)

    async def forget_space(
        self, space: Space | SpaceId, *, by: Who | EntityId | None = None, dry_run: bool = False
    ) -> Receipt:
        """Everything said in the space is gone, and so are its name and its members."""
        return await self._forget(forgetting.forget_space, _id(space), by, dry_run)

    async def forget_memory(
        self,
        memory: Remembered | str,
        *,
        by: Who | EntityId | None = None,
        visitor: Visitor | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """The memory is gone, whoever else has it, and does not come again. The messages it rests on stay.

        For a `visitor`: as far as they may change it. Raises `NotFound` if they may not.
        """
        return await self._forget(forgetting.forget_memory, _id(memory), by, dry_run, visitor=visitor)

    async def receipts(self, *, organization: Organization | OrganizationId | None = None) -> list[Receipt]:
        """What was forgotten, the oldest first: how much was removed where, never what it said."""
        return await self.db.read(forgetting.receipts, await self._organization(organization))

    async def _forget(
        self, forget: Callable[..., Receipt], subject: str, by: Who | EntityId | None, dry_run: bool, **options: Any
    ) -> Receipt:
        who = None if by is None else _id(by)
        if dry_run:
            try:
                return await self.db.write(forgetting.rehearse, forget, subject, who, **options)
            except Rehearsed as rehearsed:
                return rehearsed.receipt
        receipt = await self.db.write(forget, subject, who, **options)
        await empty_write_ahead_log(self._database_url)
        return receipt

    async def crossings(self, agent: Agent | AgentId) -> list[Crossing]:
        """The messages of this agent that were stopped, because they would have carried private words elsewhere."""
        return await self.db.read(guard.crossings_of, _id(agent))

    # Webhooks: addresses at which services tell an agent of things

    async def create_webhook(
        self,
        agent: Agent | AgentId,
        name: str,
        *,
        scheme: Scheme = "generic",
        secret: str | None = None,
        urgent: bool = False,
    ) -> tuple[Webhook, str]:
        """A new webhook of this agent, and its secret, which nobody can be shown again. Slack chooses its own."""
        what = webhooks.draft(name, scheme, secret=secret, urgent=urgent)
        sealed = await asyncio.to_thread(self.vault.seal, what.secret, what.purpose)
        return await self.db.write(webhooks.create, _id(agent), what, sealed), what.secret

    async def webhooks(self, agent: Agent | AgentId) -> list[Webhook]:
        """Every webhook the agent ever had, the revoked ones too."""
        return await self.db.read(webhooks.webhooks_of, _id(agent))

    async def revoke_webhook(self, webhook: Webhook | str) -> None:
        """Nothing is received there any more."""
        await self.db.write(webhooks.revoke, _id(webhook))

    async def receive_webhook(self, webhook_id: str, headers: Mapping[str, str], body: bytes) -> Greeting | None:
        """What a service sent to `/hooks/{webhook_id}` is in the agent's inbox, if it was signed with the secret."""
        return await webhooks.receive(self.db, self.vault, self.clock.now(), webhook_id, headers, body)

    # Secrets: keys of providers and of services, sealed

    async def set_secret(
        self,
        name: str,
        value: str,
        *,
        person: Entity | EntityId | None = None,
        organization: Organization | OrganizationId | None = None,
    ) -> Secret:
        """The secret is kept, instead of one of that name that was: the organization's, or a person's own."""
        place = await self._place(secrets.check_name(name), person, organization)
        sealed = await asyncio.to_thread(self.vault.seal, secrets.check_value(value), place.purpose)
        return await self.db.write(secrets.put, place, sealed, secrets.hint(value))

    async def secrets(self, *, organization: Organization | OrganizationId | None = None) -> list[Secret]:
        """The secrets of the organization and of its people, without their values."""
        return await self.db.read(secrets.secrets_of, await self._organization(organization))

    async def delete_secret(
        self,
        name: str,
        *,
        person: Entity | EntityId | None = None,
        organization: Organization | OrganizationId | None = None,
    ) -> None:
        await self.db.write(secrets.remove, await self._place(name, person, organization))

    async def _place(
        self,
        name: str,
        person: Entity | EntityId | None,
        organization: Organization | OrganizationId | None,
    ) -> Place:
        if isinstance(person, Entity) and organization is None:
            return Place(person.organization_id, name, person.id)
        return Place(await self._organization(organization), name, None if person is None else _id(person))

    # What people see and answer

    async def waiting_calls(self, who: Who | EntityId) -> list[Call]:
        """The questions of agents that this person may answer, the oldest first."""
        return await self.db.read(calls.open_to, _id(who))

    async def calls(self, space: Space | SpaceId) -> list[Call]:
        """The tool calls that the people in a space see, in order."""
        return await self.db.read(calls.in_space, _id(space))

    async def answer(self, call: Call | str, result: JsonValue, *, by: Who | EntityId) -> Call:
        """Answer what an agent has asked. The first answer stands: a second one raises `AlreadySettled`."""
        return await self.db.write(calls.answer_as, _id(call), as_text(result), _id(by))

    async def answer_from_service(self, call_id: str, key: str, result: JsonValue) -> Call:
        """A service that was told `answer_address` answers. Raises `NotFound` where the key is not the address's."""
        if not await asyncio.to_thread(self.vault.signed, call_id, ANSWERING, key):
            raise NotFound("call", call_id)
        return await self.db.write(calls.answer, call_id, as_text(result))

    # What an agent means to do. The agent hears of what is changed here with its next cycle; nothing of it wakes it.

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
        return await self.db.write(from_outside.set_goal, _id(agent), GoalChange(number, text, status, priority))

    async def goals(self, agent: Agent | AgentId) -> list[Goal]:
        return await self.db.read(goals.goals_of, _id(agent))

    async def delete_goal(self, agent: Agent | AgentId, number: int) -> None:
        await self.db.write(from_outside.delete_goal, _id(agent), number)

    async def set_note(self, agent: Agent | AgentId, key: str, text: str) -> Note:
        """Something the agent shall always have before its eyes; models call it a memory."""
        return await self.db.write(from_outside.set_note, _id(agent), key, text)

    async def notes(self, agent: Agent | AgentId) -> list[Note]:
        return await self.db.read(notes.notes_of, _id(agent))

    async def delete_note(self, agent: Agent | AgentId, key: str) -> None:
        await self.db.write(from_outside.delete_note, _id(agent), key)

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
        return await self.db.write(from_outside.set_plan, _id(agent), draft)

    async def set_timer(
        self, agent: Agent | AgentId, reason: str, *, at: str | None = None, after: str | None = None
    ) -> Plan:
        """The agent is woken then, once, and told the reason."""
        return await self.db.write(from_outside.set_timer, _id(agent), reason, When(at=at, after=after))

    async def plans(self, agent: Agent | AgentId) -> list[Plan]:
        """The agent's plans, timers and heartbeat, the next one first."""
        return await self.db.read(agenda.plans_of, _id(agent))

    async def delete_plan(self, agent: Agent | AgentId, name: str) -> None:
        """The plan of that name, or the timer of that id, is no more."""
        await self.db.write(from_outside.delete_plan, _id(agent), name)

    # What is remembered beyond an agent's own life

    async def conversation_memory(self, space: Space | SpaceId) -> Rolled:
        """What the conversation came to so far, and the message up to which that reaches; 0: it is not summed up."""
        return await self.db.read(rolling.find, _id(space))

    async def roll(self, space: Space | SpaceId, *, reader: str = rolling.EVERYONE) -> Rolling:
        """Sum the conversation up, as far as one pass goes, if that is due. Inside `living()` it happens by itself."""
        if self._keeper is None:
            raise InvalidInput("This runtime remembers nothing: give it `memory=MemoryOptions()`.")
        return await self._keeper.roll(_id(space), reader)

    async def memory_policy(self, space: Space | SpaceId) -> Policy:
        """What was said of long-term memory in this conversation."""
        return await self.db.read(settled.policy_of, _id(space))

    async def set_memory_policy(self, space: Space | SpaceId, policy: Policy) -> Policy:
        """What the policy says holds in this conversation; where it says nothing, what was said before."""
        return await self.db.write(settled.settle, _id(space), policy)

    async def organization_memory(
        self, organization: Organization | OrganizationId | None = None
    ) -> OrganizationMemory | None:
        """What the organization has switched off; None where that cannot be read, and nothing is allowed."""
        return await self.db.read(settled.organization_of, await self._organization(organization))

    async def change_organization_memory(
        self, changes: Mapping[str, object], *, organization: Organization | OrganizationId | None = None
    ) -> OrganizationMemory:
        """These switches are so from now on; None gives one its default back."""
        return await self.db.write(settled.change_organization, await self._organization(organization), changes)

    async def memories(
        self,
        *,
        owner: str | None = None,
        space: Space | SpaceId | None = None,
        agent: Agent | AgentId | None = None,
        organization: Organization | OrganizationId | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Remembered]:
        """What is remembered, the newest first: by one owner, learned in a space, of an agent alone, or anywhere."""
        if owner is not None:
            return await self.db.read(items.owned, owner, before=before, limit=limit)
        if space is not None:
            return await self.db.read(items.learned_in, _id(space), before=before, limit=limit)
        if agent is not None:
            return await self.db.read(items.of_agent, _id(agent), before=before, limit=limit)
        home = await self._organization(organization)
        return await self.db.read(items.all_of, home, before=before, limit=limit)

    async def search_memories(self, query: str, owners: Iterable[str], *, limit: int = 20) -> list[FoundMemory]:
        """What these owners' memories hold on the question, the best first."""
        return await sinks.look(self.db, self.embedder, query, list(owners), limit)

    async def memory_report(self, *, organization: Organization | OrganizationId | None = None) -> Report:
        """What is wrong with what is remembered: doubles, junk, what nobody was ever reminded of, contradictions."""
        return await self.db.read(hygiene.report, await self._organization(organization))

    # How an agent stands to its conversations: the profile it has there, and its state of mind

    async def stance(self, agent: Agent | AgentId, space: Space | SpaceId) -> Stance:
        """The agent's profile and state of mind in this conversation."""
        return await self.db.read(reflection.stance, _id(agent), _id(space))

    async def stances(self, agent: Agent | AgentId) -> list[Stance]:
        """The same for its conversations, those that changed last first; at most a hundred."""
        return await self.db.read(reflection.stances_of, _id(agent))

    async def set_stance_settings(
        self, agent: Agent | AgentId, space: Space | SpaceId, settings: Mapping[str, JsonValue]
    ) -> Stance:
        """These hold in the conversation instead of the agent's: `preset`, `mode`, `reflection`. Empty: the agent's."""
        return await self.db.write(standing.set_settings, _id(agent), _id(space), settings, self.outlook)

    async def set_state_of_mind(
        self,
        agent: Agent | AgentId,
        space: Space | SpaceId,
        *,
        mood: Mood | None = None,
        user_skill: Skill | None = None,
        task_complexity: Complexity | None = None,
        by: Who | EntityId | None = None,
    ) -> Stance:
        """What is given is so from now on; the agent is told with its next cycle."""
        wanted = standing.wanted({"mood": mood, "user_skill": user_skill, "task_complexity": task_complexity})
        return await self.db.write(reflection.set_state, _id(agent), _id(space), wanted, by=by and _id(by))

    async def reset_state_of_mind(
        self, agent: Agent | AgentId, space: Space | SpaceId, *, by: Who | EntityId | None = None
    ) -> Stance:
        """The agent has no particular state of mind there, and nothing is counted of anybody. The history stays."""
        return await self.db.write(reflection.reset, _id(agent), _id(space), by=by and _id(by))

    async def states_of_mind(
        self, agent: Agent | AgentId, space: Space | SpaceId, *, limit: int = 100
    ) -> list[PastRun]:
        """How the state of mind came to be what it is, the newest first."""
        return await self.db.read(runs_of, _id(agent), _id(space), limit=limit)

    async def signals(self, agent: Agent | AgentId, space: Space | SpaceId, *, limit: int = 100) -> list[PastSignal]:
        """What was seen in how people feel there, the newest first."""
        return await self.db.read(signals_of, _id(agent), _id(space), limit=limit)

    async def try_metaprompt(
        self,
        agent: Agent | AgentId,
        space: Space | SpaceId,
        metaprompt: str | Metaprompt,
        *,
        apply: bool = False,
        by: Who | EntityId | None = None,
    ) -> Tried:
        """Ask a metaprompt now: one of the agent's or of the configuration by its id, or any other.

        Only with `apply` does its answer change the state of mind. What it uses is paid as a cycle is.
        """
        who = await self.get_agent(agent)
        reflector = self._equipment().reflector_of(who)
        asked = metaprompt
        if isinstance(asked, str):
            asked = standing.find_metaprompt(asked, reflector, await self.stance(agent, space))
        return await try_metaprompt(self.db, reflector, _id(space), asked, apply=apply, by=by and _id(by))

    async def metrics(self) -> str:
        """What was counted here, and what the database counts now, in the text format of Prometheus."""
        metrics = self.telemetry.metrics
        if metrics is None:
            raise InvalidInput("Nothing is counted here: give the runtime a Telemetry with Metrics.")
        awake = 0 if self._residents is None else self._residents.awake
        return await gauges.exposition(metrics, self.db, awake=awake)

    # Looking into an agent

    async def inbox(self, agent: Agent | AgentId) -> list[Event]:
        """What waits for the agent, in the order in which it will be taken."""
        return await self.db.read(delivery.pending, _id(agent))

    async def dead_events(self, agent: Agent | AgentId) -> list[Event]:
        return await self.db.read(delivery.dead, _id(agent))

    async def requeue(self, agent: Agent | AgentId, event_id: str) -> None:
        """A dead event is tried again."""
        await self.db.write(delivery.requeue, _id(agent), event_id)

    async def mark_urgent(self, agent: Agent | AgentId, event_id: str) -> None:
        await self.db.write(delivery.mark_urgent, _id(agent), event_id)

    async def reindex(self) -> int:
        """Everything that agents can recall has a vector of this runtime's embedder; gives how many were made.

        Inside `living()` this happens by itself. It can be stopped at any time and goes on where it was.
        """
        return 0 if self.embedder is None else await embedding.reindex(self.db, self.embedder)

    async def reindexing(self) -> embedding.Progress:
        """How many passages have their vector, of how many."""
        name = NONE if self.embedder is None else self.embedder.name
        return await self.db.read(embedding.progress, name, reads=isinstance(self.embedder, Reader))

    async def cycles(self, agent: Agent | AgentId, *, limit: int = 100) -> list[CycleRecord]:
        """The agent's last cycles, oldest first."""
        return await self.db.read(cycles_of, _id(agent), limit=limit)

    async def log(self, agent: Agent | AgentId, *, first: int = 1) -> list[Entry]:
        """What the agent saw and did, from the given number on."""
        return await self.db.read(log.entries, _id(agent), first)

    async def recall(
        self,
        agent: Agent | AgentId,
        query: str,
        *,
        when: str | None = None,
        who: str | None = None,
        space: Space | SpaceId | None = None,
    ) -> list[Recalled]:
        """What the agent finds in its life on this question, the best first.

        As everywhere, what was said in a private space is found only there: name that space to find it.
        """
        where = None if space is None else _id(space)
        wanted = Recall(query=query, when=when, who=who, space=where)
        return await look(self.db, self.embedder, _id(agent), wanted, frozenset(() if where is None else (where,)))

    async def replay(self, agent: Agent | AgentId, cycle: int, *, step: int | None = None) -> list[Rebuilt]:
        """Each request of a past cycle, or that of one step, exactly as it was sent, and what came back."""
        if step is not None:
            return [await self.db.read(replay.request, _id(agent), cycle, step)]
        return await self.db.read(replay.requests, _id(agent), cycle)

    async def rethink(
        self, agent: Agent | AgentId, cycle: int, *, model: str, step: int | None = None
    ) -> list[Rethought]:
        """What another model answers to the same requests. No tool is run, and nothing is written."""
        who, asked = await self.get_agent(agent), await self.replay(agent, cycle, step=step)
        name, other = await self._equipment().model_for(who, model)
        return [await rethink(each, other, name, who.id, clock=self.clock, prices=self._prices) for each in asked]

    async def fork(
        self, agent: Agent | AgentId, *, handle: str | None = None, at: int | None = None, name: str | None = None
    ) -> Agent:
        """A new agent with the past of this one up to cycle `at`, in no space; this one is not touched."""
        return await self.db.write(forking.fork, _id(agent), handle=handle, at=at, name=name)

    # Out of the house and into another

    def export_agent(self, agent: Agent | AgentId) -> AsyncGenerator[str]:
        """The lines of a file that holds the agent with its whole life. Secrets are not in it."""
        return exporting.agent_lines(self.db, _id(agent))

    def export_space(self, space: Space | SpaceId) -> AsyncGenerator[str]:
        """The lines of a file that holds the space with everything that was said in it."""
        return exporting.space_lines(self.db, _id(space))

    async def import_file(
        self,
        path: Path,
        *,
        handle: str | None = None,
        name: str | None = None,
        organization: Organization | OrganizationId | None = None,
    ) -> Imported:
        """What the file holds is here, all of it or, with an error, nothing. An agent is suspended until resumed."""
        home = await self._organization(organization)
        return await importing.take_in(self.db, home, path, handle=handle, name=name)

    async def inspect(self, agent: Agent | AgentId) -> Inspection:
        """How the agent is: what it has in mind, what waits for it, what it means to do, what it has used."""
        return await self.db.read(inspect, _id(agent))


async def _draft(text: str) -> Draft:
    # Rendering long Markdown takes its time: not on the event loop.
    return await asyncio.to_thread(posting.draft, text) if len(text) > 2_000 else posting.draft(text)


def _keys(given: str | None, file: Path | None, database_url: str) -> Keys:
    if given is not None:
        return given_keys(given)
    if file is not None:
        return keys_in_file(file)
    # What is gone with the process needs no key that outlives it.
    return keys_in_memory() if database_url in ("sqlite://", "sqlite:///", "sqlite:///:memory:") else no_keys


def _review_profiles(tx: Tx, house: House) -> None:
    """The profiles that agents have in a conversation that was summed up are chosen anew with its next turn."""
    for agent_id, _ in house.agents:
        choosing.ask_review_in(tx, agent_id, house.space_id)


def _make_bus(redis_url: str | None, clock: Clock) -> Bus:
    if redis_url is None:
        return LocalBus()
    from denizen.bus.redis import RedisBus

    return RedisBus(redis_url, clock=clock)


def _id(thing: Any) -> Any:
    return thing if isinstance(thing, str) else thing.id


def _only_organization(tx: Tx) -> OrganizationId:
    found = directory.list_organizations(tx)
    if len(found) > 1:
        raise InvalidInput("There are several organizations: say which one with `organization=`.")
    return found[0].id if found else directory.create_organization(tx, "Home").id


def _create_space(
    tx: Tx, home: OrganizationId, name: str, kind: SpaceKind, private: bool, joining: Sequence[EntityId]
) -> Space:
    space = directory.create_space(tx, home, name=name, kind=kind, private=private)
    for each in joining:
        directory.join(tx, space.id, each)
    return space


def _create_panel(
    tx: Tx,
    home: OrganizationId,
    name: str,
    joining: Sequence[EntityId],
    drafts: Sequence[AdvisorDraft],
    private: bool,
    settings: Mapping[str, Any],
) -> Panel:
    panel = panels.create(tx, home, name, private=private, settings=settings, members=joining)
    advisors.add(tx, panel.id, drafts)
    return panel


def _drafted(given: AdvisorDraft | Mapping[str, Any] | str) -> AdvisorDraft:
    if isinstance(given, AdvisorDraft):
        return given
    return advisors.drafted({"name": given} if isinstance(given, str) else given)


def _trigger(tx: Tx, agent_id: AgentId, id: str, payload: Mapping[str, JsonValue], urgent: bool) -> None:
    registry.get(tx, agent_id)
    delivery.deliver(tx, [Delivery(agent_id, id, "service_trigger", tx.now, urgent=urgent, payload=payload)])
