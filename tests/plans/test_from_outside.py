"""Goals, notes and plans that others set for an agent: only admins of its organization may."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator

import pytest

from denizen import Actor, NotAllowed, NotFound, Requester
from denizen.access.roles import Role
from denizen.agents.registry import Agent
from denizen.spaces.directory import Entity
from tests.world import World


def requester(entity: Entity, role: Role) -> Requester:
    return Requester(Actor(entity.id), entity.organization_id, role)


def changes(world: World, ada: Agent, by: Requester) -> Iterator[Awaitable[object]]:
    denizen = world.denizen
    yield denizen.goals.set(ada, "Rest.", by=by)
    yield denizen.goals.delete(ada, 1, by=by)
    yield denizen.notes.set(ada, "eggs", "Two.", by=by)
    yield denizen.notes.delete(ada, "milk", by=by)
    yield denizen.plans.set(ada, "dinner", "Cook.", cron="0 18 * * *", by=by)
    yield denizen.plans.set_timer(ada, "The cake is done.", after="45m", by=by)
    yield denizen.plans.delete(ada, "menu", by=by)


async def set_for(world: World, ada: Agent) -> tuple[list[str], list[str], list[str]]:
    denizen = world.denizen
    return (
        [each.text for each in await denizen.goals.list(ada)],
        [each.key for each in await denizen.notes.list(ada)],
        [each.name or each.instruction for each in await denizen.plans.list(ada)],
    )


async def some(world: World) -> Agent:
    ada = await world.agent("Ada")
    await world.denizen.goals.set(ada, "Ship it.")
    await world.denizen.notes.set(ada, "milk", "None.")
    await world.denizen.plans.set(ada, "menu", "Plan the menu.", cron="0 9 * * 1")
    return ada


@pytest.mark.parametrize("role", ["member", "agent", "service"])
async def test_only_admins_set_and_delete_them(small_world: World, role: Role):
    noor, ada = await small_world.person("Noor"), await some(small_world)
    before = await set_for(small_world, ada)
    for change in changes(small_world, ada, requester(noor, role)):
        with pytest.raises(NotAllowed, match=f"Your role is {role}"):
            await change
    assert await set_for(small_world, ada) == before == (["Ship it."], ["milk"], ["menu"])


async def test_an_admin_of_another_organization_does_not_find_the_agent(small_world: World):
    ada, bakery = await some(small_world), await small_world.denizen.organizations.create("Bakery")
    baker = await small_world.person("Baker", organization=bakery)
    for change in changes(small_world, ada, requester(baker, "owner")):
        with pytest.raises(NotFound, match="agent"):
            await change
    assert await set_for(small_world, ada) == (["Ship it."], ["milk"], ["menu"])


async def test_an_admin_sets_and_deletes_them(small_world: World):
    noor, ada = await small_world.person("Noor"), await some(small_world)
    for change in changes(small_world, ada, requester(noor, "admin")):
        await change
    found = await set_for(small_world, ada)
    assert found == (["Rest."], ["eggs"], ["The cake is done.", "dinner"])
