"""Suspending, resuming and deleting agents: who may, and what the audit log says, from Python and over HTTP alike."""

from __future__ import annotations

import pytest

from denizen import Actor, EntityId, NotAllowed, NotFound, Organization, Requester
from denizen.access import audit
from denizen.access.audit import AuditFilter
from denizen.access.roles import Role
from tests.world import World


async def asked_by(world: World, role: Role, organization: str = "Home") -> Requester:
    """Someone of this role in a new or the first organization."""
    person = await world.person(role.title(), organization=await the_organization(world, organization))
    return Requester(Actor(person.id), person.organization_id, role)


async def the_organization(world: World, name: str) -> Organization:
    found = [each for each in await world.denizen.organizations.list() if each.name == name]
    return found[0] if found else await world.denizen.organizations.create(name)


async def audited(world: World) -> list[tuple[str, str | None]]:
    """The audited actions on agents, with who did them."""
    (home, *_) = await world.denizen.organizations.list()
    found = await world.denizen.db.read(audit.entries, home.id, EntityId(""), AuditFilter(), limit=100)
    return [(each.action, each.by and each.by.handle) for each in reversed(found) if each.kind == "agents"]


async def test_a_member_may_not_suspend_an_agent(small_world: World):
    ada, member = await small_world.agent("Ada"), await asked_by(small_world, "member")
    with pytest.raises(NotAllowed, match="Your role is member"):
        await small_world.denizen.agents.suspend(ada, by=member)
    assert await small_world.denizen.agents.status(ada) == "sleeping"
    assert await audited(small_world) == []


async def test_an_admin_of_another_organization_does_not_find_the_agent(small_world: World):
    ada, stranger = await small_world.agent("Ada"), await asked_by(small_world, "admin", "Bakery")
    for change in (small_world.denizen.agents.suspend, small_world.denizen.agents.delete):
        with pytest.raises(NotFound):
            await change(ada, by=stranger)
    assert await small_world.denizen.agents.status(ada) == "sleeping"


async def test_who_changed_an_agent_is_in_the_audit_log(small_world: World):
    ada, admin = await small_world.agent("Ada"), await asked_by(small_world, "admin")
    await small_world.denizen.agents.suspend(ada, by=admin)
    await small_world.denizen.agents.resume(ada)
    await small_world.denizen.agents.delete(ada, by=admin)
    assert await audited(small_world) == [
        ("suspend_agent", "admin"),
        ("resume_agent", None),
        ("delete_agent", "admin"),
    ]
