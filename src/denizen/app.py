"""The wiring, and the door to everything in Python: one `Runtime` holds the database, the bus and the living agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from pydantic import JsonValue
from pydantic_ai.models import Model

from denizen.agents import registry
from denizen.agents.registry import Agent, Status
from denizen.agents.residents import Pace, Residents
from denizen.bus.local import LocalBus
from denizen.bus.port import Bus
from denizen.bus.streams import WAKE, woken
from denizen.clock import Clock, Instant, SystemClock
from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.consciousness.window import Budget, budget
from denizen.cycles.cycle import Faculties
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.stopping import BUILT_IN, Stop
from denizen.errors import InvalidInput, OutcomeUnknown
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import Event
from denizen.models.catalog import Models
from denizen.models.prices import Price
from denizen.plans import agenda, from_outside, goals, notes
from denizen.plans.agenda import PLANNED, Plan, PlanDraft, When
from denizen.plans.goals import Goal, GoalChange, GoalStatus, Priority
from denizen.plans.notes import Note
from denizen.spaces import directory, posting
from denizen.spaces.directory import Attention, Entity, Member, Organization, Space, SpaceKind
from denizen.spaces.handles import handle_from
from denizen.spaces.posting import Draft, Message, Posted
from denizen.storage.database import Announcement, Database, Tx
from denizen.storage.opening import open_database
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import OutsideTool, Toolbox

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
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.models = Models(models)
        self.default_model = default_model
        self.instance = new_id()
        self._database_url = database_url
        self._bus: Bus = _make_bus(redis_url, self.clock)
        self._shared_bus = redis_url is not None
        self._tools = {each.name: each for each in tools}
        self._prices = prices or {}
        self._stops = {**BUILT_IN, **(stops or {})}
        self._pace = pace or Pace()
        self._db: Database | None = None
        self._residents: Residents | None = None
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._bus.open()
        self._closing.push_async_callback(self._bus.close)
        try:
            self._db = await open_database(self._database_url, clock=self.clock, announce=self._announce)
        except BaseException:
            await self._closing.aclose()
            raise
        self._closing.push_async_callback(self._db.close)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._closing.aclose()

    @property
    def db(self) -> Database:
        """The database, while the runtime is open."""
        if self._db is None:
            raise InvalidInput("This runtime is not open: use it as `async with Runtime(...) as denizen`.")
        return self._db

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
            else:
                self._bus.publish(topic, payload)

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[Residents]:
        """Inside, agents wake, think and sleep by themselves; on leaving, cycles finish or are handed back."""
        if self._residents is not None:
            raise InvalidInput("The agents of this runtime are living already.")
        residents = Residents(self.db, self.clock, instance=self.instance, equip=self._equip, pace=self._pace)
        async with AsyncExitStack() as stack:
            if self._shared_bus:
                from denizen.agents.hints import listening

                await stack.enter_async_context(listening(self._bus, residents, self.instance))
            self._residents = await stack.enter_async_context(residents)
            stack.callback(self._forget_residents)
            await residents.sweep()
            yield residents

    def _forget_residents(self) -> None:
        self._residents = None

    async def run_until_idle(self) -> None:
        """Let the agents think until none of them has anything to do."""
        if self._residents is not None:
            await self._residents.run_until_idle()
            return
        async with self.living() as residents:
            await residents.run_until_idle()

    def _equip(self, agent: Agent) -> tuple[Faculties, Budget]:
        definition = agent.definition
        missing = [name for name in definition.tools if name not in self._tools]
        if missing:
            raise InvalidInput(
                f"The agent @{agent.entity.handle} uses tools that this runtime does not have: {', '.join(missing)}. "
                "Hand them to Runtime(tools=[...])."
            )
        unknown = [name for name in definition.cycle.stop_when if name not in self._stops]
        if unknown:
            raise InvalidInput(
                f"The agent @{agent.entity.handle} stops by what this runtime does not have: {', '.join(unknown)}. "
                "Hand them to Runtime(stops={...})."
            )
        model_name = self.default_model if definition.model == "default" else definition.model
        faculties = Faculties(
            db=self.db,
            bus=self._bus,
            clock=self.clock,
            model=self.models.resolve(model_name),
            model_name=model_name,
            toolbox=Toolbox([*PREBUILT, *(self._tools[name] for name in definition.tools)]),
            settings=definition.cycle,
            prices=self._prices,
            stops=self._stops,
        )
        return faculties, budget(definition.window, self.models.context_tokens(model_name))

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
        tools: Iterable[str | OutsideTool] = (),
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

    def _register_tool(self, given: str | OutsideTool) -> str:
        if isinstance(given, str):
            return given
        self._tools[given.name] = given
        return given.name

    async def edit_agent(self, agent: Agent | AgentId, **changes: Any) -> Agent:
        """The agent with these fields of its definition changed; a new era begins with its next cycle."""
        agent_id = _id(agent)
        current = await self.db.read(registry.get, agent_id)
        fields = current.definition.model_dump(exclude_defaults=True) | changes
        return await self.db.write(registry.edit, agent_id, registry.define(**fields))

    async def get_agent(self, agent: Agent | AgentId) -> Agent:
        return await self.db.read(registry.get, _id(agent))

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

        async def post() -> Posted:
            return await self.db.write(
                posting.post,
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

    async def messages(self, space: Space | SpaceId, *, after: int = 0, limit: int = 1_000) -> list[Message]:
        return await self.db.read(posting.messages_after, _id(space), after, limit=limit)

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
        payload: dict[str, JsonValue] = {"service": service, "text": text}
        if data is not None:
            payload["data"] = data
        await self.db.write(_trigger, _id(agent), id or new_id(), payload, urgent)

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

    async def cycles(self, agent: Agent | AgentId, *, limit: int = 100) -> list[CycleRecord]:
        """The agent's last cycles, oldest first."""
        return await self.db.read(cycles_of, _id(agent), limit=limit)

    async def log(self, agent: Agent | AgentId, *, first: int = 1) -> list[Entry]:
        """What the agent saw and did, from the given number on."""
        return await self.db.read(log.entries, _id(agent), first)


async def _draft(text: str) -> Draft:
    # Rendering long Markdown takes its time: not on the event loop.
    return await asyncio.to_thread(posting.draft, text) if len(text) > 2_000 else posting.draft(text)


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


def _trigger(tx: Tx, agent_id: AgentId, id: str, payload: Mapping[str, JsonValue], urgent: bool) -> None:
    registry.get(tx, agent_id)
    delivery.deliver(tx, [Delivery(agent_id, id, "service_trigger", tx.now, urgent=urgent, payload=payload)])
