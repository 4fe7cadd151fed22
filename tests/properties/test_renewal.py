"""Renewing leases, losing them and giving them back: nobody thinks without one, and nothing that arrives is missed."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai.messages import ModelMessage

from denizen.agents.residents import Pace
from denizen.app import Runtime
from denizen.clock import ManualClock
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import LEASE_SECONDS
from denizen.models.scripted import Info, Turn, forever, skip
from denizen.storage.database import Database


class SlowRenewal:
    """The real database, which answers a renewal only when it is told to."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.renewed = asyncio.Event()
        self.may_tell = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def write_first(self, fn: Any, /, *args: Any) -> Any:
        result = await self._db.write_first(fn, *args)
        if fn is leases.renew:
            self.renewed.set()
            await self.may_tell.wait()
        return result


async def test_a_life_that_begins_during_a_renewal_goes_on(sqlite_url: str) -> None:
    clock, asked, may_answer = ManualClock(), asyncio.Event(), asyncio.Event()

    async def answer(_: list[ModelMessage], __: Info) -> Turn:
        asked.set()
        await may_answer.wait()
        return "Done."

    model = forever(answer)
    async with Runtime(sqlite_url, clock=clock, pace=Pace(warm_seconds=1e9)) as denizen:
        denizen._db = db = SlowRenewal(denizen.db)  # pyright: ignore[reportAttributeAccessIssue]
        agent = await denizen.create_agent("Ada", model=model)
        async with denizen.living() as residents:
            clock.advance(10)
            await db.renewed.wait()
            await denizen.trigger(agent, "clock")
            await asked.wait()
            db.may_tell.set()
            # Both writes of a renewal, and whatever they lead to, are over when a later one is.
            await denizen.db.write_first(leases.appear, denizen.instance)
            await denizen.db.read(leases.epoch_of, agent.id)
            may_answer.set()
            await residents.run_until_idle()
            assert [each.outcome for each in await denizen.cycles(agent)] == ["acted"]
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
        agent = await denizen.create_agent("Ada", model=forever(answer))
        async with denizen.living():
            await denizen.trigger(agent, "clock")
            await asked.wait()
            await denizen.db.write(leases.seize, agent.id)
            clock.advance(LEASE_SECONDS / 3)
            await stopped.wait()


class SlowRelease(SlowRenewal):
    """The real database, which answers whoever gives a lease back only when it is told to."""

    async def write(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = await self._db.write(fn, *args, **kwargs)
        if fn is leases.release:
            self.renewed.set()
            await self.may_tell.wait()
        return result


async def test_what_arrives_while_an_agent_lets_go_wakes_it_again(ready_sqlite_url: str) -> None:
    """Nobody else heard of it: the hint went to the life that was ending."""
    clock, thought = ManualClock(), asyncio.Semaphore(0)

    def answer(_: list[ModelMessage], __: Info) -> Turn:
        thought.release()
        return skip()

    async with Runtime(ready_sqlite_url, clock=clock, pace=Pace(warm_seconds=0, sweep_seconds=1e9)) as denizen:
        denizen._db = db = SlowRelease(denizen.db)  # pyright: ignore[reportAttributeAccessIssue]
        agent = await denizen.create_agent("Ada", model=forever(answer))
        async with denizen.living(), asyncio.timeout(60):
            await denizen.trigger(agent, "clock")
            await thought.acquire()
            await db.renewed.wait()
            await denizen.trigger(agent, "clock")
            db.may_tell.set()
            await thought.acquire()
