"""A small world for tests to tell stories in: a house on a real database, a clock that stands still, scripted models.

Texts that the world gives back have names where identifiers were: `<Kitchen>` is a space, `<Ada>` someone in it, and
`<Kitchen 2>` the second message there. So whole histories can be compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from sqlalchemy import bindparam, select, text

from denizen import ManualClock, Runtime, scripted
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import space_topic
from denizen.clock import SECOND
from denizen.cycles.records import CycleRecord
from denizen.models.catalog import DEMO
from denizen.models.demo.model import demo
from denizen.models.scripted import Info, ScriptedModel, Turn
from denizen.spaces.directory import Entity, Floor, Space
from denizen.spaces.posting import Posted
from denizen.storage.database import Tx, statement
from denizen.storage.schema import events, ledger, messages
from denizen.tools.settings import ToolSettings
from denizen.tools.tool import OutsideTool

USUAL = Pace(grace_seconds=60)
"""As in any house, but that a slow machine may take its time to finish what is under way when the house closes."""
UNHURRIED = Pace(lease_seconds=10_000_000, warm_seconds=1_000_000, sweep_seconds=1_000_000, grace_seconds=60)
"""Nothing happens by the clock but what the test is about."""


class LocalScript(WrapperModel):
    """A scripted model that runs on this machine, as far as anybody can tell."""

    @property
    def system(self) -> str:
        return "local"


def slow_local(*turns: Turn) -> Model:
    """Such a model, which lets everybody else go on before each word: a deadline that is over is noticed."""

    async def pause() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    return LocalScript(scripted(*turns, pause=pause))


class JumpingClock(ManualClock):
    """A manual clock that jumps ahead whenever someone wants to sleep for less than a day; `waits` says how long."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        if seconds < 86_400:
            self.waits.append(seconds)
            self.advance(seconds)
            await asyncio.sleep(0)  # a loop that does nothing but sleep must let others go on
            return
        await super().sleep(seconds)


@dataclass(frozen=True)
class Waiting:
    """An event as its row has it: what it says, its state, failed attempts, and in how many seconds it may be taken."""

    text: str
    state: str
    attempts: int = 0
    seconds: float = 0.0


class Stuck:
    """A turn that begins and does not end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, _messages: list[ModelMessage], _info: Info) -> Turn:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class World:
    """Everything a story needs. `restart` closes the house and opens it again on the same database."""

    def __init__(self, url: str, *, clock: ManualClock | None = None, **options: Any) -> None:
        self.url = url
        self.clock = clock or ManualClock()
        self.denizen: Runtime
        self._options: dict[str, Any] = {"pace": USUAL, **options}
        # The built-in model as it is, but that it does not take its time to write.
        self._models: dict[str, ScriptedModel] = {DEMO: demo(pace=0)}
        self._tools: dict[str, OutsideTool] = {}
        self._spaces: list[Space] = []
        self._people: list[Entity] = []

    async def open(self) -> None:
        self.denizen = Runtime(
            self.url, clock=self.clock, models=self._models, tools=self._tools.values(), **self._options
        )
        await self.denizen.__aenter__()

    async def close(self) -> None:
        await self.denizen.__aexit__(None, None, None)

    async def restart(self, **models: ScriptedModel) -> None:
        """The process ends and another begins; agents named in `models` think with these from now on."""
        await self.close()
        self._models.update({f"python:{handle}": model for handle, model in models.items()})
        await self.open()

    # Who and where

    async def person(self, name: str, **options: Any) -> Entity:
        person = await self.denizen.people.create(name, **options)
        self._people.append(person)
        return person

    async def agent(
        self,
        name: str,
        *turns: Turn,
        model: ScriptedModel | None = None,
        tools: Iterable[OutsideTool | ToolSettings] = (),
        **more: Any,
    ) -> Agent:
        """An agent that answers with `turns`, one after the other, or with a model of the test's own."""
        thinking = model or scripted(*turns)
        given = list(tools)
        agent = await self.denizen.agents.create(name, model=thinking, tools=given, **more)
        self._models[agent.definition.model] = thinking
        self._tools.update({each.name: each for each in given if isinstance(each, OutsideTool)})
        self._people.append(agent.entity)
        return agent

    def model(self, agent: Agent) -> ScriptedModel:
        """What the agent thinks with."""
        return self._models[agent.definition.model]

    async def space(self, name: str, *members: Entity | Agent, floor: Floor = "all", **options: Any) -> Space:
        """A space in which, unless the test is about the floor, every agent takes up what is said."""
        space = await self.denizen.spaces.create(name, members, floor=floor, **options)
        self._spaces.append(space)
        return space

    # What happens

    async def say(self, who: Entity | Agent, text: str, where: Space, **options: Any) -> Posted:
        return await self.denizen.spaces.post(where, who, text, **options)

    async def run(self) -> None:
        await self.denizen.run_until_idle()

    async def run_after(self, seconds: float) -> None:
        """Time passes, then everyone does what there is to do."""
        self.clock.advance(seconds)
        await self.run()

    # What there is to see

    async def transcript(self, space: Space) -> list[str]:
        return await self.denizen.spaces.transcript(space)

    async def newest_inbox(self, agent: Agent) -> str:
        """The last inbox message that the agent's model was sent."""
        asked = self.model(agent).requests[-1]
        said = [as_text(each) for each in asked if as_text(each).startswith("[INBOX")]
        return (await self.named([said[-1]]))[0]

    async def history(self, agent: Agent) -> list[str]:
        """The whole log of the agent, one text for each entry: its kind, a colon, what it says."""
        entries = await self.denizen.minds.log(agent)
        return await self.named([f"{entry.kind}: {as_text(entry.message)}" for entry in entries])

    async def prompts(self, agent: Agent) -> list[list[str]]:
        """Every request that the agent's model was sent, each a list of messages with their roles."""
        return [await self.named([_with_role(each) for each in asked]) for asked in self.model(agent).requests]

    async def inbox(self, agent: Agent) -> list[str]:
        return [event.text for event in await self.denizen.minds.inbox(agent)]

    async def waiting(self, agent: Agent) -> list[Waiting]:
        """Every event of the agent that is not done, in the order in which they came."""
        return await self.denizen.db.read(_waiting, agent.id)

    async def ledger(self, agent: Agent) -> list[tuple[str, str | None]]:
        """The kind and the detail of each line."""
        return await self.denizen.db.read(_ledger, agent.id)

    async def endings(self, agent: Agent) -> list[tuple[int, str, str, str]]:
        """The number, outcome, stop reason and summary of every cycle that has ended."""
        return [(each.number, each.outcome, each.stop_reason, each.summary) for each in await self.cycles(agent)]

    async def cycles(self, agent: Agent) -> list[CycleRecord]:
        return await self.denizen.minds.cycles(agent)

    async def named(self, texts: Sequence[str]) -> list[str]:
        """The texts with names for identifiers."""
        names: dict[str, str] = {space.id: f"<{space.name}>" for space in self._spaces}
        names |= {who.id: f"<{who.name}>" for who in self._people}
        for space in self._spaces:
            for message in await self.denizen.spaces.messages(space):
                names[message.id] = f"<{space.name} {message.seq}>"
        return [_replaced(text, names) for text in texts]


def _replaced(text: str, names: Mapping[str, str]) -> str:
    for identifier, name in names.items():
        text = text.replace(identifier, name)
    return text


def as_text(message: ModelMessage) -> str:
    """A message as one text: what is said as it is, `tool {arguments}` for a call, `tool → …` for its result."""
    return "\n".join(_part(part) for part in message.parts)


def _part(part: Any) -> str:
    match part:
        case SystemPromptPart() | UserPromptPart() | TextPart():
            return str(part.content)
        case ThinkingPart():
            return f"({part.content})"
        case ToolCallPart():
            return f"{part.tool_name} {part.args_as_json_str()}"
        case ToolReturnPart():
            return f"{part.tool_name} → {part.content}"
        case _:
            raise AssertionError(f"unexpected part {part!r}")


def _with_role(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return f"model: {as_text(message)}"
    first = message.parts[0]
    role = "self" if isinstance(first, SystemPromptPart) else "tool" if isinstance(first, ToolReturnPart) else "user"
    return f"{role}: {as_text(message)}"


_waiting_rows = statement(
    select(messages.c.text, events.c.payload, events.c.state, events.c.attempts, events.c.not_before)
    .select_from(events.outerjoin(messages, messages.c.id == events.c.message_id))
    .where(events.c.agent_id == bindparam("agent_id"), events.c.state != "done")
    .order_by(events.c.number)
)
_ledger_rows = statement(
    select(ledger.c.kind, ledger.c.detail).where(ledger.c.agent_id == bindparam("agent_id")).order_by(ledger.c.number)
)


_locked_out = statement(
    text("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
)


def someone_waits(tx: Tx) -> bool:
    """Whether a transaction waits for another one to end. On PostgreSQL only."""
    return tx.one(_locked_out) is not None


def _waiting(tx: Tx, agent_id: str) -> list[Waiting]:
    return [
        Waiting(text or payload, state, attempts, max(not_before - tx.now, 0) / SECOND)
        for text, payload, state, attempts, not_before in tx.all(_waiting_rows, agent_id=agent_id)
    ]


def _ledger(tx: Tx, agent_id: str) -> list[tuple[str, str | None]]:
    return [(kind, detail) for kind, detail in tx.all(_ledger_rows, agent_id=agent_id)]


@asynccontextmanager
async def open_world(url: str, *, clock: ManualClock | None = None, **options: Any) -> AsyncGenerator[World]:
    """A world of its own, closed on leaving."""
    world = World(url, clock=clock, **options)
    await world.open()
    try:
        yield world
    finally:
        await world.close()


def awake(world: World, rests: bool) -> AbstractAsyncContextManager[object]:
    """Inside, agents that rest between their cycles stay awake: the message that wakes one may open its next cycle."""
    return world.denizen.living() if rests else nullcontext()


@asynccontextmanager
async def listening(world: World, space: Space) -> AsyncGenerator[Callable[[], Awaitable[list[dict[str, Any]]]]]:
    """Inside, all that is told of the space is heard; await what is given to have it, up to now and in order."""
    topic = space_topic(space.id)
    async with world.denizen.bus.subscribe(topic, limit=10_000) as frames:

        async def heard() -> list[dict[str, Any]]:
            world.denizen.bus.publish(topic, {"type": "that was all"})
            payloads: list[dict[str, Any]] = []
            async for frame in frames:
                assert isinstance(frame, Frame)
                if frame.payload["type"] == "that was all":
                    break
                payloads.append(dict(frame.payload))
            return payloads

        yield heard


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    """An empty world: the test runs once on SQLite and once on PostgreSQL."""
    async with open_world(ready_url) as world:
        yield world


@pytest.fixture
async def unhurried_world(ready_url: str) -> AsyncGenerator[World]:
    """The same, where the clock wakes nobody but whom the test is about: no lease ends and no sweep comes."""
    async with open_world(ready_url, pace=UNHURRIED) as world:
        yield world


@pytest.fixture
async def small_unhurried_world(ready_sqlite_url: str) -> AsyncGenerator[World]:
    """The same on SQLite only."""
    async with open_world(ready_sqlite_url, pace=UNHURRIED) as world:
        yield world


@pytest.fixture
async def small_world(ready_sqlite_url: str) -> AsyncGenerator[World]:
    """An empty world on SQLite, for what has nothing to do with storage."""
    async with open_world(ready_sqlite_url) as world:
        yield world


async def in_a_hall(world: World, *turns: Turn, **options: Any) -> tuple[Agent, Entity, Space]:
    """Ada and Noor, in a space of the two."""
    ada, noor = await world.agent("Ada", *turns, **options), await world.person("Noor")
    return ada, noor, await world.space("Hall", noor, ada)
