"""Approvals of calls: for whom, which call, how often and how long they hold, who sees them, and who revokes them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from denizen.agents.registry import Agent
from denizen.clock import SECOND
from denizen.errors import InvalidInput, NotFound
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import grants as grants_table
from denizen.tools import grants
from denizen.tools.grants import Verdict, digest_of, verdict
from tests.world import World

_count = statement(select(func.count()).select_from(grants_table))


async def give(world: World, agent: Agent, by: Entity, arguments: str = '{"a": 1}', **more: Any) -> None:
    space: Space | None = more.pop("space", None)
    given = Verdict(confirmed=True, **more)
    about = {"by": by.id, "call_id": "call", "space_id": None if space is None else space.id}
    await world.denizen.db.write(grants.give, agent.id, "pay", arguments, given, **about)


async def test_an_approval_is_for_one_agent_one_tool_and_these_arguments(small_world: World) -> None:
    noor, ada, bee = await small_world.person("Noor"), await small_world.agent("Ada"), await small_world.agent("Bee")
    await give(small_world, ada, noor, '{"a": 1, "b": [2]}', times=2)
    take = small_world.denizen.db.write
    assert not await take(grants.take, bee.id, "pay", '{"a": 1, "b": [2]}')
    assert not await take(grants.take, ada.id, "refund", '{"a": 1, "b": [2]}')
    assert not await take(grants.take, ada.id, "pay", '{"a": 1, "b": [3]}')
    assert await take(grants.take, ada.id, "pay", '{"b": [2],   "a": 1}')
    assert await take(grants.take, ada.id, "pay", '{"a": 1, "b": [2]}')
    assert not await take(grants.take, ada.id, "pay", '{"a": 1, "b": [2]}'), "it was for two calls"


async def test_an_approval_ends_with_its_time_and_the_one_that_ends_first_is_used_first(small_world: World) -> None:
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    await give(small_world, ada, noor, seconds=20)
    await give(small_world, ada, noor, seconds=10)

    def left(tx: Tx) -> list[int]:
        return [(each.expires_at - tx.now) // SECOND for each in grants.visible_to(tx, ada.id, None)]

    assert await small_world.denizen.db.read(left) == [20, 10]
    assert await small_world.denizen.db.write(grants.take, ada.id, "pay", '{"a": 1}')
    assert await small_world.denizen.db.read(left) == [20]
    small_world.clock.advance(20 - 1e-6)
    assert len(await small_world.denizen.db.read(left)) == 1
    small_world.clock.advance(1e-6)
    assert await small_world.denizen.db.read(left) == []
    assert not await small_world.denizen.db.write(grants.take, ada.id, "pay", '{"a": 1}')
    await give(small_world, ada, noor)
    assert await small_world.denizen.db.read(lambda tx: tx.all(_count)) == [(1,)], "those that are over are deleted"


async def test_who_gave_it_and_who_is_in_its_space_see_an_approval_and_may_revoke_it(small_world: World) -> None:
    noor, sam, eve = [await small_world.person(each) for each in ("Noor", "Sam", "Eve")]
    ada, bee = await small_world.agent("Ada"), await small_world.agent("Bee")
    hall = await small_world.space("Hall", sam, ada)
    await give(small_world, ada, noor, space=hall)
    await give(small_world, ada, noor)
    await give(small_world, bee, noor)
    read = small_world.denizen.db.read
    in_space, elsewhere = await read(grants.visible_to, ada.id, noor.id)
    assert (in_space.space_id, elsewhere.space_id, in_space.given_by, in_space.call_id) == (
        hall.id,
        None,
        noor.id,
        "call",
    )
    assert [each.id for each in await read(grants.visible_to, ada.id, sam.id)] == [in_space.id]
    assert await read(grants.visible_to, ada.id, eve.id) == []

    revoke = small_world.denizen.db.write
    with pytest.raises(NotFound):
        await revoke(grants.revoke, ada.id, elsewhere.id, sam.id)
    with pytest.raises(NotFound):
        await revoke(grants.revoke, bee.id, in_space.id, noor.id)
    await revoke(grants.revoke, ada.id, in_space.id, sam.id)
    assert await read(grants.visible_to, ada.id, None) == [elsewhere]
    await revoke(grants.revoke_all, ada.id)
    assert await read(grants.visible_to, ada.id, None) == []
    assert len(await read(grants.visible_to, bee.id, None)) == 1


def test_the_same_values_have_the_same_digest() -> None:
    assert digest_of('{"a": 1, "b": "é"}') == digest_of('{ "b": "\\u00e9", "a": 1 }')
    assert digest_of("no JSON") != digest_of("No JSON")
    assert digest_of("[1]") != digest_of("[2]")


@pytest.mark.parametrize(
    "result", ["yes", "{}", '{"confirmed": true, "times": 0}', '{"confirmed": true, "seconds": 0}']
)
def test_an_answer_that_is_no_verdict_is_refused(result: str) -> None:
    with pytest.raises(InvalidInput, match="Answer an approval with"):
        verdict(result)


def test_a_verdict_is_for_one_call_within_a_day_unless_it_says_more() -> None:
    assert verdict('{"confirmed": true}') == Verdict(confirmed=True, times=1, seconds=86_400)
    assert verdict('{"confirmed": false, "times": 3}').times == 3
