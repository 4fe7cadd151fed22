"""What people may do, and what their tokens leave of it."""

from __future__ import annotations

import pytest

from denizen.access import roles, tokens
from denizen.access.roles import PERSONAL, ROLES, Role
from denizen.errors import InvalidInput, NotFound
from tests.world import World


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("scope", ROLES)
def test_a_scope_never_adds_to_a_role(role: Role, scope: Role) -> None:
    left = roles.lesser(role, scope)
    for wanted in PERSONAL:
        if roles.reaches(left, wanted):
            assert roles.reaches(role, wanted)
            assert roles.reaches(scope, wanted)


def test_owners_may_do_what_admins_may_and_agents_nothing_of_it() -> None:
    assert [[roles.reaches(role, wanted) for wanted in PERSONAL] for role in ROLES] == [
        [True, True, True, True],
        [False, True, True, True],
        [False, False, True, True],
        [False, False, False, True],
        [False, False, False, False],
        [False, False, False, False],
    ]


async def test_the_first_person_owns_the_organization(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    found = [await world.denizen.db.read(roles.role_of, each.id) for each in (noor, sam, ada)]
    assert found == ["owner", "member", "agent"]


async def test_an_organization_keeps_an_owner(world: World) -> None:
    db = world.denizen.db
    noor, sam = await world.person("Noor"), await world.person("Sam")
    with pytest.raises(InvalidInput, match="Make someone else an owner first"):
        await db.write(roles.set_role, noor.id, "admin")
    await db.write(roles.set_role, sam.id, "owner")
    await db.write(roles.set_role, noor.id, "member")
    assert [await db.read(roles.role_of, each.id) for each in (noor, sam)] == ["member", "owner"]


async def test_owners_of_another_organization_do_not_count(world: World) -> None:
    db = world.denizen.db
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, sam = [await world.person(name, organization=home) for name in ("Noor", "Sam")]
    eve = await world.person("Eve", organization=elsewhere)
    await db.write(roles.set_role, sam.id, "owner")
    with pytest.raises(InvalidInput, match="Make someone else an owner first"):
        await db.write(roles.set_role, eve.id, "member")
    await db.write(roles.set_role, noor.id, "member")
    assert [await db.read(roles.role_of, each.id) for each in (noor, sam, eve)] == ["member", "owner", "owner"]


async def test_roles_of_people_are_for_people(world: World) -> None:
    db = world.denizen.db
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    with pytest.raises(NotFound):
        await db.write(roles.set_role, ada.id, "owner")
    with pytest.raises(InvalidInput, match="not for them"):
        await db.write(roles.set_role, noor.id, "service")
    with pytest.raises(InvalidInput, match="cannot have the role"):
        await db.write(lambda tx: tokens.create(tx, ada.id, "Ada", role="owner"))
    with pytest.raises(InvalidInput, match="cannot have the role"):
        await db.write(lambda tx: tokens.create(tx, noor.id, "Noor", role="agent"))


async def test_a_token_of_a_member_is_not_a_guests(world: World) -> None:
    """What it writes would be the words of the member: agents trust them, and approvals count them."""
    db, sam = world.denizen.db, await world.person("Sam")
    await world.person("Noor")
    with pytest.raises(InvalidInput, match="Sam is not a guest"):
        await db.write(lambda tx: tokens.create(tx, sam.id, "Small", role="guest"))
    noor = await world.denizen.people.find("noor")
    await db.write(roles.set_role, noor.id, "guest")
    token, _ = await db.write(lambda tx: tokens.create(tx, noor.id, "Small", role="guest"))
    assert token.role == "guest"
