"""Creating and changing spaces and their members: who may, from Python and over HTTP alike."""

from __future__ import annotations

import pytest

from denizen import Actor, InvalidInput, NotAllowed, NotFound, Requester
from denizen.access import space_changes
from denizen.access.roles import Role
from denizen.cycles import organization
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from tests.world import World


def requester(entity: Entity, role: Role = "member") -> Requester:
    return Requester(Actor(entity.id), entity.organization_id, role)


async def names(world: World, space: Space) -> list[str]:
    return [each.entity.name for each in await world.denizen.spaces.members(space)]


async def test_a_person_who_creates_a_space_owns_it(small_world: World):
    noor, sam = await small_world.person("Noor"), await small_world.person("Sam")
    hall = await small_world.denizen.spaces.create("Hall", [sam], by=requester(noor))
    members = await small_world.denizen.spaces.members(hall)
    assert [(each.entity.name, each.role) for each in members] == [("Noor", "owner"), ("Sam", "member")]


async def test_the_organization_says_who_may_create_spaces(small_world: World):
    noor, bo = await small_world.person("Noor"), await small_world.agent("Bo")
    with pytest.raises(NotAllowed, match="Your role is agent"):
        await small_world.denizen.spaces.create("Hall", by=requester(bo.entity, "agent"))
    changes = {"spaces_by": "admin"}
    await small_world.denizen.db.write(organization.change_settings, noor.organization_id, changes)
    with pytest.raises(NotAllowed, match="Only admins"):
        await small_world.denizen.spaces.create("Hall", by=requester(noor))
    hall = await small_world.denizen.spaces.create("Hall", by=requester(noor, "admin"))
    assert await names(small_world, hall) == ["Noor"]


async def test_a_space_is_created_in_the_own_organization_with_its_own_people(small_world: World):
    noor = await small_world.person("Noor")
    bakery = await small_world.denizen.organizations.create("Bakery")
    baker = await small_world.person("Baker", organization=bakery)
    create = small_world.denizen.spaces.create
    with pytest.raises(NotFound, match="organization"):
        await create("Hall", organization=bakery, by=requester(noor, "owner"))
    with pytest.raises(NotFound, match="no person, agent or service"):
        await create("Hall", [baker], organization=noor.organization_id, by=requester(noor, "owner"))
    assert await small_world.denizen.spaces.list(noor) == []


async def test_only_members_change_a_space(small_world: World):
    """Not even an owner of the organization: for those who are not in a space, it does not exist."""
    noor, olga = await small_world.person("Noor"), await small_world.person("Olga")
    ada, spaces = await small_world.agent("Ada"), small_world.denizen.spaces
    hall, owner = await small_world.space("Hall", noor, ada), requester(olga, "owner")
    for change in (
        small_world.denizen.db.write(space_changes.change, owner, hall.id, name="Den"),
        spaces.set_floor(hall, "all", by=owner),
        spaces.set_agent_run_limit(hall, 3, by=owner),
        spaces.join(hall, olga, by=owner),
        spaces.leave(hall, ada, by=owner),
        spaces.set_attention(hall, ada, "none", by=owner),
    ):
        with pytest.raises(NotFound, match="space"):
            await change
    assert await spaces.get(hall) == hall
    assert await names(small_world, hall) == ["Noor", "Ada"]


async def test_agents_and_services_do_not_change_spaces(small_world: World):
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    hall, spaces = await small_world.space("Hall", noor, ada), small_world.denizen.spaces
    roles: tuple[Role, ...] = ("agent", "service")
    for role in roles:
        by = requester(ada.entity, role)
        for change in (
            spaces.leave(hall, ada, by=by),
            spaces.join(hall, noor, by=by),
            spaces.set_floor(hall, "all", by=by),
        ):
            with pytest.raises(NotAllowed, match=f"Your role is {role}"):
                await change


async def test_another_person_is_removed_only_by_those_who_manage_the_space(small_world: World):
    noor, sam, ada = await small_world.person("Noor"), await small_world.person("Sam"), await small_world.agent("Ada")
    hall, spaces = await small_world.space("Hall", noor, sam, ada), small_world.denizen.spaces
    with pytest.raises(NotAllowed, match="remove another person"):
        await spaces.leave(hall, noor, by=requester(sam))
    with pytest.raises(NotAllowed, match="Only Noor"):
        await spaces.set_attention(hall, noor, "none", by=requester(sam, "admin"))
    await spaces.leave(hall, ada, by=requester(sam))
    await small_world.denizen.db.write(directory.appoint, hall.id, sam.id, "admin")
    await spaces.leave(hall, noor, by=requester(sam))
    assert await names(small_world, hall) == ["Sam"]
    await spaces.leave(hall, sam, by=requester(sam))
    assert await names(small_world, hall) == []


async def test_roles_in_a_space_are_given_by_those_who_manage_it(small_world: World):
    noor, sam = await small_world.person("Noor"), await small_world.person("Sam")
    hall, write = await small_world.space("Hall", sam), small_world.denizen.db.write
    with pytest.raises(NotAllowed, match="give a role"):
        await write(space_changes.add_member, requester(sam), hall.id, noor.id, role="owner")
    with pytest.raises(NotAllowed, match="give a role"):
        await write(space_changes.change_member, requester(sam), hall.id, "@sam", role="owner")
    await write(space_changes.change_member, requester(sam, "admin"), hall.id, "@sam", role="owner")
    assert [each.role for each in await small_world.denizen.spaces.members(hall)] == ["owner"]


async def test_a_deleted_agent_and_a_person_who_left_cannot_be_added(small_world: World):
    noor, sam, ada = await small_world.person("Noor"), await small_world.person("Sam"), await small_world.agent("Ada")
    hall = await small_world.space("Hall", noor)
    await small_world.denizen.agents.delete(ada)
    await small_world.denizen.people.remove(sam)
    for gone in (ada, sam):
        with pytest.raises(NotFound, match="no person, agent or service"):
            await small_world.denizen.spaces.join(hall, gone, by=requester(noor))
    assert await names(small_world, hall) == ["Noor"]


async def test_an_answer_is_asked_for_by_people_in_the_space(small_world: World):
    noor, sam, ada = await small_world.person("Noor"), await small_world.person("Sam"), await small_world.agent("Ada")
    hall = await small_world.space("Hall", noor, ada)
    with pytest.raises(NotFound, match="space"):
        await small_world.denizen.spaces.ask_for_answer(hall, ada, sam)
    with pytest.raises(InvalidInput):
        await small_world.denizen.spaces.ask_for_answer(hall, ada, noor)


async def test_only_those_who_manage_a_private_space_end_its_privacy(small_world: World):
    """What others said there, they said in private."""
    noor, sam, ada = await small_world.person("Noor"), await small_world.person("Sam"), await small_world.agent("Ada")
    spaces = small_world.denizen.spaces
    den = await spaces.create("Den", [sam, ada], private=True, by=requester(noor))

    async def open_to_others(space: Space, by: Requester) -> bool:
        await small_world.denizen.db.write(space_changes.change, by, space.id, private=False)
        return (await spaces.get(space.id)).private

    with pytest.raises(NotAllowed, match="make a private space visible"):
        await open_to_others(den, requester(sam))
    assert (await spaces.get(den.id)).private
    assert await open_to_others(den, requester(noor)) is False

    own = await small_world.space("Sam and Ada", sam, ada, private=True)
    assert await open_to_others(own, requester(sam)) is False
