"""What was lived can be recalled, also where its cycles left no passages when they ended."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import delete

from denizen import call, reply
from denizen.agents.registry import Agent
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.segments import SEGMENT
from denizen.cycles import catching_up
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import passages, postings, recalls, vectors, wordings
from tests.world import World

_EMPTIED = [statement(delete(table)) for table in (postings, vectors, wordings, passages, recalls)]
_all = statement(passages.select().order_by(passages.c.agent_id, passages.c.number))


def _forget_the_index(tx: Tx) -> None:
    for each in _EMPTIED:
        tx.run(each)


def _passages(tx: Tx) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in tx.all(_all)]


async def _lived(world: World, *more: Any) -> tuple[Agent, Entity, Space]:
    ada = await world.agent("Ada", *([reply("I see."), "Listened."] * 3), *more)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for said in ("The violin is in the cellar.", "The report is due on Friday.", "It rained all afternoon."):
        await world.say(noor, said, kitchen)
        await world.run()
        world.clock.advance(3_600)
    return ada, noor, kitchen


async def test_a_life_from_before_is_recallable_as_if_it_had_always_been(world: World):
    """The passages made from the log are those that the cycles would have written."""
    ada, _, _ = await _lived(world)
    written = await world.denizen.db.read(_passages)
    await world.denizen.db.write(_forget_the_index)
    assert await catching_up.lagging(world.denizen.db) == [ada.id]
    await catching_up.catch_up(world.denizen.db, ada.id)
    assert await world.denizen.db.read(_passages) == written
    assert await catching_up.lagging(world.denizen.db) == []
    await catching_up.catch_up(world.denizen.db, ada.id)
    assert await world.denizen.db.read(_passages) == written


async def test_several_that_catch_up_at_once_keep_each_cycle_once(world: World):
    """Also where the index has no row for the agent yet that one of them could hold."""
    ada, _, _ = await _lived(world)
    for _ in range(5):
        await world.denizen.db.write(_forget_the_index)
        await asyncio.gather(*(catching_up.catch_up(world.denizen.db, ada.id) for _ in range(6)))
        cycles = [row[2] for row in await world.denizen.db.read(_passages)]
        assert (cycles, len(cycles)) == (sorted(cycles), 9)


async def test_a_cycle_waits_for_those_before_it(world: World):
    """It does not come before them in the index; together they are caught up, and what is recalled is complete."""
    more = (reply("Yes."), "Agreed.", call("recall", query="violin"), reply("Cellar."), "Told.")
    ada, noor, kitchen = await _lived(world, *more)
    await world.denizen.db.write(_forget_the_index)
    await world.say(noor, "Nice weather.", kitchen)
    await world.run()
    await catching_up.catch_up(world.denizen.db, ada.id)
    cycles = [row[2] for row in await world.denizen.db.read(_passages)]
    assert cycles == sorted(cycles)
    assert set(cycles) == {1, 2, 3, 4}
    await world.say(noor, "Where is the violin?", kitchen)
    await world.run()
    assert any("The violin is in the cellar." in line for line in await world.history(ada) if "recall →" in line)


async def test_passages_are_settled_while_agents_live(world: World):
    """Nobody has to ask for it; the hint comes with the cycle that has made enough of them."""
    turns = SEGMENT // 3 + 1
    ada = await world.agent("Ada", *([reply("I see."), "Listened."] * turns))
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    async with world.denizen.living() as residents, asyncio.timeout(60):
        for at in range(turns):
            await world.say(noor, f"Number {at}.", kitchen)
            await residents.run_until_idle()
        while (await world.denizen.db.read(settling.extent, ada.id)).settled < SEGMENT:
            pass  # each look lets others work
    assert ada.id not in await catching_up.lagging(world.denizen.db)
