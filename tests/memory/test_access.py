"""Memories of each scope: who may see, correct and forget them, and who settles what is remembered."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from denizen import Actor, NotAllowed, NotFound, Requester
from denizen.access import audit
from denizen.access.audit import AuditFilter
from denizen.access.roles import Role
from denizen.agents.registry import Agent
from denizen.memory import access, items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, MemoryItem
from denizen.memory.policy import Policy, Scope
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from tests.world import World

SCOPES: tuple[Scope, ...] = ("conversation", "user", "persona", "organization")


def requester(entity: Entity, role: Role = "member") -> Requester:
    return Requester(Actor(entity.id), entity.organization_id, role)


@dataclass(frozen=True)
class Cast:
    """Noor, whose memories there are, of each scope; Sam, who is in no space with her; and a baker from elsewhere."""

    noor: Entity
    sam: Entity
    baker: Entity
    ada: Agent
    kitchen: Space
    memories: dict[Scope, MemoryItem]


async def cast_of(world: World) -> Cast:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    kitchen, home = await world.space("Kitchen", noor, ada, private=True), noor.organization_id
    bakery = await world.denizen.organizations.create("Bakery")
    baker = await world.person("Baker", organization=bakery)
    memories: dict[Scope, MemoryItem] = {}
    for scope in SCOPES:
        owner = Owner(scope, home, space_id=kitchen.id, user_id=noor.id, agent_id=ada.id)
        what = [Candidate("facts", f"Tea is at four: {scope}.", (scope,))]
        await world.denizen.db.write(items.remember, owner, kitchen.id, what, "")
        [memories[scope]] = await world.denizen.memory.list(owner=owner.key)
    return Cast(noor, sam, baker, ada, kitchen, memories)


async def seen(world: World, cast: Cast, who: Requester) -> list[Scope]:
    def scopes(tx: Tx) -> list[Scope]:
        return [each for each in SCOPES if access.may_see(tx, cast.memories[each], who)]

    return await world.denizen.db.read(scopes)


async def test_each_scope_is_seen_by_its_own_people(small_world: World):
    cast = await cast_of(small_world)
    assert await seen(small_world, cast, requester(cast.noor)) == [*SCOPES]
    assert await seen(small_world, cast, requester(cast.sam)) == ["organization"]
    # An admin sees what an agent remembers of people, but not what comes from private spaces of others.
    assert await seen(small_world, cast, requester(cast.sam, "admin")) == ["organization"]
    assert await seen(small_world, cast, requester(cast.baker, "owner")) == []


@pytest.mark.parametrize("role", ["member", "admin"])
async def test_what_somebody_may_not_change_they_neither_correct_nor_forget(small_world: World, role: Role):
    cast, memory = await cast_of(small_world), small_world.denizen.memory
    denied = SCOPES if role == "member" else SCOPES[:3]
    for scope in denied:
        for change in (memory.correct, lambda item, _, by: memory.forget(item, by=by)):
            with pytest.raises(NotFound, match="memory"):
                await change(cast.memories[scope], "Tea is at five.", by=requester(cast.sam, role))
    for scope in denied:
        kept = await small_world.denizen.db.read(items.get, cast.memories[scope].id)
        assert kept.text == f"Tea is at four: {scope}."


async def test_people_correct_and_forget_their_own(small_world: World):
    cast, memory = await cast_of(small_world), small_world.denizen.memory
    new = await memory.correct(cast.memories["user"], "Tea is at five.", by=requester(cast.noor))
    assert (new.text, new.scope) == ("Tea is at five.", "user")
    await memory.forget(cast.memories["persona"], by=requester(cast.noor))
    with pytest.raises(NotFound):
        await small_world.denizen.db.read(items.get, cast.memories["persona"].id)


async def test_only_members_of_a_conversation_settle_what_is_remembered(small_world: World):
    cast, memory = await cast_of(small_world), small_world.denizen.memory
    with pytest.raises(NotFound, match="space"):
        await memory.set_policy(cast.kitchen, Policy(enabled=False), by=requester(cast.sam, "owner"))
    with pytest.raises(NotAllowed, match="Your role is agent"):
        await memory.set_policy(cast.kitchen, Policy(enabled=False), by=requester(cast.ada.entity, "agent"))
    assert await memory.policy(cast.kitchen) == Policy()
    await memory.set_policy(cast.kitchen, Policy(enabled=False), by=requester(cast.noor))
    assert await memory.policy(cast.kitchen) == Policy(enabled=False)


async def test_only_admins_change_the_organizations_switches(small_world: World):
    cast, memory = await cast_of(small_world), small_world.denizen.memory
    home = cast.noor.organization_id
    with pytest.raises(NotAllowed, match="Only admins"):
        await memory.change_switches({"user": False}, organization=home, by=requester(cast.noor))
    with pytest.raises(NotFound, match="organization"):
        await memory.change_switches({"user": False}, organization=home, by=requester(cast.baker, "owner"))
    changed = await memory.change_switches({"user": False}, by=requester(cast.noor, "admin"))
    assert not changed.user
    kept = await small_world.denizen.db.read(audit.entries, home, cast.noor.id, AuditFilter(), limit=50)
    changes = [each for each in kept if each.action == "change_organization_memory"]
    assert [(each.by and each.by.name, each.detail) for each in changes] == [("Noor", {"fields": ["user"]})]


async def test_memories_of_an_agent_or_a_space_are_for_those_who_may_see_them(small_world: World):
    cast, read = await cast_of(small_world), small_world.denizen.db.read
    assert await read(access.of_agent, requester(cast.sam), cast.ada.id, before=None, limit=9) == []
    [own] = await read(access.of_agent, requester(cast.noor), cast.ada.id, before=None, limit=9)
    assert own.text == "Tea is at four: persona."
    assert await read(access.of_agent, requester(cast.sam, "admin"), cast.ada.id, before=None, limit=0) == []
    assert await read(access.of_agent, requester(cast.noor), cast.ada.id, before=None, limit=0) == []
    assert await read(access.of_agent, requester(cast.noor), cast.ada.id, before=own.number, limit=9) == []
    [hidden] = await read(access.of_agent, requester(cast.sam, "admin"), cast.ada.id, before=None, limit=9)
    assert "Tea" not in hidden.text
    with pytest.raises(NotFound, match="agent"):
        await read(access.of_agent, requester(cast.baker, "owner"), cast.ada.id, before=None, limit=9)
    with pytest.raises(NotFound, match="space"):
        await read(access.of_space, requester(cast.sam, "owner"), cast.kitchen.id, before=None, limit=9)
