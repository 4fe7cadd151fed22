"""Renewing leases, losing them and giving them back: nobody thinks without one, and nothing that arrives is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai.messages import ModelMessage

from denizen.agents.pace import Pace
from denizen.app import Runtime
from denizen.clock import ManualClock
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import LEASE_SECONDS
from denizen.cycles import calling
from denizen.models.scripted import Info, Turn, call, forever, skip
from denizen.storage.database import Database
from denizen.tools import calls
from denizen.tools.settings import ClientTool


class Slow:
    """The real database, which tells what has become of one kind of write only when it is told to."""

    def __init__(self, db: Database, fn: Callable[..., Any]) -> None:
        self._db = db
        self._fn = fn
        self.written = asyncio.Event()
        self.may_tell = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def write(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return await self._told(fn, await self._db.write(fn, *args, **kwargs))

    async def write_first(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        return await self._told(fn, await self._db.write_first(fn, *args))

    async def _told(self, fn: Callable[..., Any], result: Any) -> Any:
        if fn is self._fn:
            self.written.set()
            await self.may_tell.wait()
        return result


async def test_a_life_that_begins_during_a_renewal_goes_on(sqlite_url: str) -> None:
    clock, asked, may_answer = ManualClock(), asyncio.Event(), asyncio.Event()

    async def answer(_: list[ModelMessage], __: Info) -> Turn:
        asked.set()
        await may_answer.wait()
        return "Done."

    model = forever(answer)
    async with Runtime(sqlite_url, clock=clock, pace=Pace(warm_seconds=1e9, sweep_seconds=1e9)) as denizen:
        denizen._db = db = Slow(denizen.db, leases.renew)  # pyright: ignore[reportAttributeAccessIssue]
        agent = await denizen.agents.create("Ada", model=model)
        async with denizen.living() as residents:
            await clock.sleeper(10)
            clock.advance(10)
            await db.written.wait()
            await denizen.agents.trigger(agent, "clock")
            await asked.wait()
            db.may_tell.set()
            # Both writes of a renewal, and whatever they lead to, are over when a later one is.
            await denizen.db.write_first(leases.appear, denizen.instance, LEASE_SECONDS)
            await denizen.db.read(leases.epoch_of, agent.id)
            may_answer.set()
            await residents.run_until_idle()
            assert [each.outcome for each in await denizen.minds.cycles(agent)] == ["acted"]
    assert len(model.requests) == 1


async def test_whoever_has_lost_its_lease_stops_thinking_when_leases_are_renewed(ready_sqlite_url: str) -> None:
    """Its writes would be refused: a model that goes on answering is paid for nothing."""
    clock, asked, stopped, never = ManualClock(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(_: list[ModelMessage], info: Info) -> Turn:
        if info.number > 0:
            return skip()
        asked.set()
        try:
            await never.wait()
        finally:
            stopped.set()
        return "Unreachable."

    async with Runtime(ready_sqlite_url, clock=clock) as denizen, asyncio.timeout(60):
        agent = await denizen.agents.create("Ada", model=forever(answer))
        async with denizen.living():
            await denizen.agents.trigger(agent, "clock")
            await asked.wait()
            await denizen.db.write(leases.seize, agent.id)
            clock.advance(LEASE_SECONDS / 3)
            await stopped.wait()


async def test_what_arrives_while_an_agent_lets_go_wakes_it_again(ready_sqlite_url: str) -> None:
    """Nobody else heard of it: the hint went to the life that was ending."""
    clock, thought = ManualClock(), asyncio.Semaphore(0)

    def answer(_: list[ModelMessage], __: Info) -> Turn:
        thought.release()
        return skip()

    async with Runtime(ready_sqlite_url, clock=clock, pace=Pace(warm_seconds=0, sweep_seconds=1e9)) as denizen:
        denizen._db = db = Slow(denizen.db, leases.release)  # pyright: ignore[reportAttributeAccessIssue]
        agent = await denizen.agents.create("Ada", model=forever(answer))
        async with denizen.living(), asyncio.timeout(60):
            await denizen.agents.trigger(agent, "clock")
            await thought.acquire()
            await db.written.wait()
            await denizen.agents.trigger(agent, "clock")
            db.may_tell.set()
            await thought.acquire()


async def test_an_answer_that_comes_while_an_agent_pauses_wakes_it_again(ready_sqlite_url: str) -> None:
    """It can be answered as soon as it is asked: before the agent's own process knows that it waits."""
    asked: dict[str, Any] = {"type": "object", "properties": {}}
    confirm = ClientTool(name="confirm", description="Ask.", parameters=asked)
    over = asyncio.Event()

    def answer(_: list[ModelMessage], info: Info) -> Turn:
        if info.number == 0:
            return call("confirm")
        over.set()
        return "Done."

    pace = Pace(sweep_seconds=1e9)
    async with Runtime(ready_sqlite_url, clock=ManualClock(), pace=pace) as denizen:
        denizen._db = db = Slow(denizen.db, calling.carry_on)  # pyright: ignore[reportAttributeAccessIssue]
        agent = await denizen.agents.create("Ada", model=forever(answer), tools=[confirm])
        async with denizen.living(), asyncio.timeout(60):
            await denizen.agents.trigger(agent, "clock")
            await db.written.wait()
            (waiting,) = await denizen.db.read(calls.pausing, agent.id)
            await denizen.db.write(calls.answer, waiting.id, "Yes.")
            db.may_tell.set()
            await over.wait()
