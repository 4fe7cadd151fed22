"""Creating, changing, suspending and deleting agents: who may, and what the audit log says."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen import Actor, EntityId, NotAllowed, NotFound, Organization, Requester
from denizen.access import audit
from denizen.access.audit import AuditFilter
from denizen.access.roles import Role
from denizen.agents.files import DefinitionFile, read
from denizen.tools.settings import McpServer
from tests.world import World

DOCUMENT = DefinitionFile("bo.yaml", "name: Bo\nmodel: demo\ninstructions: You help.\n")


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
    assert await audited(small_world) == [("create_agent", None)]


async def test_an_admin_of_another_organization_does_not_find_the_agent(small_world: World):
    ada, stranger = await small_world.agent("Ada"), await asked_by(small_world, "admin", "Bakery")
    agents = small_world.denizen.agents
    for change in (agents.suspend, agents.delete, agents.edit, agents.fork, agents.try_again):
        with pytest.raises(NotFound):
            await change(ada, by=stranger)
    with pytest.raises(NotFound, match="agent"):
        await agents.trigger(ada, "doorbell", by=stranger)
    assert await small_world.denizen.agents.status(ada) == "sleeping"


async def test_who_changed_an_agent_is_in_the_audit_log(small_world: World):
    ada, admin = await small_world.agent("Ada"), await asked_by(small_world, "admin")
    await small_world.denizen.agents.suspend(ada, by=admin)
    await small_world.denizen.agents.resume(ada)
    await small_world.denizen.agents.delete(ada, by=admin)
    assert await audited(small_world) == [
        ("create_agent", None),
        ("suspend_agent", "admin"),
        ("resume_agent", None),
        ("delete_agent", "admin"),
    ]


async def test_only_admins_create_change_and_fork_agents(small_world: World):
    agents, member = small_world.denizen.agents, await asked_by(small_world, "member")
    ada = await small_world.agent("Ada")
    for change in (
        agents.create("Bo", model="demo", by=member),
        agents.edit(ada, instructions="Obey.", by=member),
        agents.fork(ada, by=member),
        agents.apply(read([DOCUMENT]), by=member),
        agents.try_again(ada, by=member),
    ):
        with pytest.raises(NotAllowed):
            await change
    assert [each.name for each in await agents.list()] == ["Ada"]
    assert (await agents.get(ada)).version == 1


async def test_an_admin_creates_agents_in_their_own_organization_only(small_world: World):
    admin, home = await asked_by(small_world, "admin", "Bakery"), await the_organization(small_world, "Home")
    for change in (
        small_world.denizen.agents.create("Bo", model="demo", organization=home, by=admin),
        small_world.denizen.agents.apply(read([DOCUMENT]), organization=home, by=admin),
    ):
        with pytest.raises(NotFound, match="organization"):
            await change


async def test_what_a_definition_may_hold_depends_on_the_requester(small_world: World):
    """The table of restrictions holds for every requester with a role, not only for requests over HTTP."""
    agents, admin, owner = (
        small_world.denizen.agents,
        await asked_by(small_world, "admin"),
        await asked_by(small_world, "owner"),
    )
    program = {"files": McpServer(command="list-files")}
    with pytest.raises(NotAllowed, match="files"):
        await agents.create("Bo", model="demo", mcp=program, by=admin)
    bo = await agents.create("Bo", model="demo", mcp=program, by=owner)
    with pytest.raises(NotAllowed, match="files"):
        await agents.edit(bo, mcp={"files": McpServer(command="delete-files")}, by=admin)
    await agents.edit(bo, instructions="Tidy up.", by=admin)
    assert await audited(small_world) == [("create_agent", "owner"), ("edit_agent", "admin")]


async def test_a_change_that_changes_nothing_is_not_audited(small_world: World):
    ada = await small_world.agent("Ada", instructions="Cook.")
    assert (await small_world.denizen.agents.edit(ada, instructions="Cook.")).version == ada.version
    assert await audited(small_world) == [("create_agent", None)]


async def test_only_owners_import(small_world: World, tmp_path: Path):
    noor = await small_world.person("Noor")
    hall, admin = await small_world.space("Hall", noor), await asked_by(small_world, "admin")
    file = tmp_path / "hall.jsonl"
    file.write_text("".join([line async for line in small_world.denizen.spaces.export(hall)]))
    with pytest.raises(NotAllowed, match="Only owners"):
        await small_world.denizen.organizations.import_file(file, name="Copy", by=admin)
    assert [each.name for each in await small_world.denizen.spaces.list(noor)] == ["Hall"]
