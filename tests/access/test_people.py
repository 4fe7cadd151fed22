"""Who is in an organization, and what is left of those who have left it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from denizen.access import people, roles, secrets, tokens
from denizen.access.vault import Vault, keys_in_memory, new_key
from denizen.errors import HandleTaken, InvalidInput, ModelUnknown, NotFound
from denizen.first_start import set_up_home
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from tests.world import World, listening, open_world


@pytest.fixture
async def world_with_secrets(ready_url: str) -> AsyncGenerator[World]:
    async with open_world(ready_url, secret_key=new_key()) as world:
        yield world


async def test_whoever_leaves_is_gone_and_what_they_said_stays(world_with_secrets: World) -> None:
    world = world_with_secrets
    denizen = world.denizen
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    await world.say(sam, "I was here.", hall)
    _, secret = await denizen.db.write(tokens.create, sam.id, "Laptop")
    await denizen.secrets.set("OPENAI_API_KEY", "sk-of-sam", person=sam)

    await denizen.people.remove(sam)

    assert await world.transcript(hall) == ["Sam: I was here."]
    assert [each.entity.name for each in await denizen.spaces.members(hall)] == ["Noor"]
    assert await denizen.db.read(tokens.find, secret) is None
    assert await denizen.db.read(roles.role_of, sam.id) is None
    assert await denizen.secrets.list() == []
    home = noor.organization_id
    assert [each.name for each in await denizen.db.read(directory.list_entities, home)] == ["Noor"]
    everyone = await denizen.db.read(directory.list_entities, home, also_left=True)
    assert [each.name for each in everyone] == ["Noor", "Sam"]
    with pytest.raises(NotFound):
        await denizen.people.find("sam")
    profile = await denizen.db.read(people.get, home, sam.id)
    assert (profile.entity, profile.role, profile.left_at) == (sam, "member", world.clock.now())


async def test_whoever_has_left_cannot_leave_again_nor_come_into_a_space(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor)
    await world.denizen.people.remove(sam)
    with pytest.raises(NotFound):
        await world.denizen.people.remove(sam)
    with pytest.raises(InvalidInput, match="has left"):
        await world.denizen.spaces.join(hall, sam)


async def test_the_handle_of_someone_who_left_is_given_to_nobody(world: World) -> None:
    await world.person("Noor")
    sam = await world.person("Sam")
    with pytest.raises(HandleTaken, match="is taken"):
        await world.person("Sam")
    await world.denizen.people.remove(sam)
    with pytest.raises(HandleTaken, match="someone who has left"):
        await world.person("Sam")
    with pytest.raises(HandleTaken, match="someone who has left"):
        await world.agent("Sam")


async def test_the_last_owner_stays(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    with pytest.raises(InvalidInput, match="Make someone else an owner first"):
        await world.denizen.people.remove(noor)
    await world.denizen.db.write(roles.set_role, sam.id, "owner")
    await world.denizen.people.remove(noor)
    assert await world.denizen.db.read(roles.first_owner, noor.organization_id) == sam.id


async def test_of_two_owners_who_leave_at_once_one_stays(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    await world.denizen.db.write(roles.set_role, sam.id, "owner")

    outcomes = await asyncio.gather(
        *(world.denizen.people.remove(each) for each in (noor, sam)), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in outcomes) == ["InvalidInput", "NoneType"]
    assert await world.denizen.db.read(roles.count_owners, noor.organization_id) == 1


async def test_of_two_owners_who_go_in_different_ways_at_once_one_stays(world: World) -> None:
    """Whoever waits for the other decides by what is so then, not by what was so before."""
    denizen, db = world.denizen, world.denizen.db
    noor = await world.person("Noor")
    ways: list[Callable[[Entity], Awaitable[object]]] = [
        lambda who: denizen.people.remove(who),
        lambda who: denizen.people.forget(who, refuse_last_owner=True),
        lambda who: db.write(roles.set_role, who.id, "member"),
    ]
    for number, goes in enumerate(ways):
        sam = await world.person(f"Sam {number}")
        await db.write(roles.set_role, sam.id, "owner")
        step_down = db.write(roles.set_role, noor.id, "member")

        outcomes = await asyncio.gather(goes(sam), step_down, return_exceptions=True)

        assert [type(each) for each in outcomes].count(InvalidInput) == 1
        owner = await db.read(roles.first_owner, noor.organization_id)
        assert await db.read(roles.count_owners, noor.organization_id) == 1
        if owner != noor.id:
            await db.write(roles.set_role, noor.id, "owner")
            await db.write(roles.set_role, owner, "member")


async def test_nobody_is_brought_into_a_space_while_they_leave(world: World) -> None:
    """Whichever comes first: afterwards they are in none."""
    noor, sam = await world.person("Noor"), await world.person("Sam")
    spaces = [await world.space(f"Space {number}", noor) for number in range(8)]
    await world.denizen.spaces.join(spaces[0], sam)

    joining = [world.denizen.spaces.join(space, sam) for space in spaces]
    outcomes = await asyncio.gather(
        *joining[:4], world.denizen.people.remove(sam), *joining[4:], return_exceptions=True
    )

    assert all(each is None or isinstance(each, InvalidInput) for each in outcomes)
    assert await world.denizen.db.read(directory.spaces_of, sam.id) == []


async def test_the_house_belongs_to_an_owner_who_is_there(small_world: World) -> None:
    """Not to whoever came first: they may have left, and the next one may be anybody."""
    noor, sam, kim = [await small_world.person(name) for name in ("Noor", "Sam", "Kim")]
    await small_world.denizen.db.write(roles.set_role, kim.id, "owner")
    await small_world.denizen.people.remove(noor)
    assert (await set_up_home(small_world.denizen, "Nobody")).owner == kim
    assert sam != kim


async def test_an_agent_does_not_leave_as_people_do(world: World) -> None:
    await world.person("Noor")
    ada = await world.agent("Ada")
    with pytest.raises(InvalidInput, match="Delete the agent"):
        await world.denizen.people.remove(ada.entity)


async def test_an_agent_whose_payer_has_left_is_told_so(small_world: World) -> None:
    noor, sam = await small_world.person("Noor"), await small_world.person("Sam")
    await small_world.denizen.people.remove(sam)
    vault = Vault(keys_in_memory(), {})
    with pytest.raises(ModelUnknown, match="has left"):
        await small_world.denizen.db.read(
            secrets.paying_key, vault, noor.organization_id, "OPENAI_API_KEY", "@sam", "ada"
        )


async def test_pages_list_who_is_here(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada, dead = await world.agent("Ada"), await world.agent("Bea")
    await world.person("Zoe")
    await world.denizen.agents.delete(dead)
    await world.denizen.people.remove(sam)
    elsewhere = await world.denizen.organizations.create("Elsewhere")
    await world.person("Eve", organization=elsewhere)

    async def handles(**which: object) -> list[str]:
        page = await world.denizen.db.read(people.page, noor.organization_id, **{"limit": 10, **which})
        return [each.entity.handle for each in page]

    assert await handles() == ["ada", "noor", "zoe"]
    assert await handles(limit=2) == ["ada", "noor"]
    assert await handles(after="noor") == ["zoe"]
    assert await handles(kind="agent") == [ada.entity.handle]
    assert await handles(kind="human") == ["noor", "zoe"]
    assert await handles(kind="service") == []


async def test_someone_forgotten_is_here_no_more_unless_nobody_else_owns_the_house(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    await world.denizen.people.forget(sam)
    await world.denizen.people.forget(noor)
    left = await world.denizen.db.read(directory.list_entities, noor.organization_id)
    assert [(each.id, each.name) for each in left] == [(noor.id, "(forgotten)")]


async def test_a_space_says_that_it_has_changed(world: World) -> None:
    """Whoever shows it reads it again: once for each change, and not where nothing has changed."""
    denizen = world.denizen
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    hall = await world.space("Hall", noor)
    changed = {"type": "space.changed", "space": hall.id}

    async with listening(world, hall) as heard:
        for change in [
            lambda: denizen.spaces.join(hall, sam),
            lambda: denizen.spaces.join(hall, ada),
            lambda: denizen.spaces.set_attention(hall, ada, "none"),
            lambda: denizen.db.write(directory.rename, ada.id, "Ada L."),
            lambda: denizen.db.write(directory.change_space, hall.id, name="Great hall"),
            lambda: denizen.db.write(directory.change_space, hall.id, private=True),
            lambda: denizen.db.write(directory.appoint, hall.id, sam.id, "admin"),
            lambda: denizen.spaces.leave(hall, ada),
            lambda: denizen.people.remove(sam),
        ]:
            await change()
            assert await heard() == [changed]
        for nothing in [lambda: denizen.spaces.join(hall, noor), lambda: denizen.spaces.leave(hall, ada)]:
            await nothing()
            assert await heard() == []
    assert (await denizen.db.read(directory.get_space, hall.id)).name == "Great hall"
