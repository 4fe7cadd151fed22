"""Who may store, list and delete secrets, and set the budget of an organization, from Python and over HTTP alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from denizen import NotAllowed, NotFound
from denizen.access import audit
from denizen.access.audit import AuditFilter
from denizen.access.vault import new_key
from tests.access.test_space_changes import requester
from tests.world import World, open_world


@pytest.fixture
async def small_world(ready_url: str) -> AsyncGenerator[World]:
    async with open_world(ready_url, secret_key=new_key()) as world:
        yield world


async def test_admins_keep_the_secrets_of_the_organization(small_world: World) -> None:
    secrets, noor = small_world.denizen.secrets, await small_world.person("Noor")
    with pytest.raises(NotAllowed, match="Only admins"):
        await secrets.set("WEATHER_KEY", "a-key-of-our-own", by=requester(noor))
    await secrets.set("WEATHER_KEY", "a-key-of-our-own", by=requester(noor, "admin"))
    assert await secrets.list(by=requester(noor)) == []
    assert [each.name for each in await secrets.list(by=requester(noor, "admin"))] == ["WEATHER_KEY"]
    with pytest.raises(NotAllowed, match="Only admins"):
        await secrets.delete("WEATHER_KEY", by=requester(noor))
    await secrets.delete("WEATHER_KEY", by=requester(noor, "admin"))


async def test_people_keep_their_own_secrets(small_world: World) -> None:
    """Not even an owner sees or deletes them. The program that opened the runtime may do everything."""
    secrets, noor = small_world.denizen.secrets, await small_world.person("Noor")
    olga = await small_world.person("Olga")
    await secrets.set("OPENAI_API_KEY", "a-key-of-noors-own", person=noor, by=requester(noor))
    assert [each.owner_id for each in await secrets.list(by=requester(noor))] == [noor.id]
    owner = requester(olga, "owner")
    assert await secrets.list(by=owner) == []
    with pytest.raises(NotAllowed, match="another person's key"):
        await secrets.set("OPENAI_API_KEY", "a-key-of-olgas", person=noor, by=owner)
    with pytest.raises(NotAllowed, match="another person's key"):
        await secrets.delete("OPENAI_API_KEY", person=noor, by=owner)
    assert [each.owner_id for each in await secrets.list()] == [noor.id]
    await secrets.delete("OPENAI_API_KEY", person=noor)


async def test_admins_set_the_budget_of_their_organization(small_world: World) -> None:
    """It is in the audit log, whoever set it."""
    denizen, noor = small_world.denizen, await small_world.person("Noor")
    with pytest.raises(NotAllowed, match="Only admins"):
        await denizen.budgets.set(tokens_per_day=1_000, by=requester(noor))
    bakery = await denizen.organizations.create("Bakery")
    with pytest.raises(NotFound, match="organization"):
        await denizen.budgets.set(bakery, tokens_per_day=1_000, by=requester(noor, "admin"))
    await denizen.budgets.set(noor.organization_id, tokens_per_day=1_000)
    found = await denizen.db.read(audit.entries, noor.organization_id, noor.id, AuditFilter(), limit=10)
    assert [each.action for each in found] == ["put_budget"]


async def test_the_audit_log_says_whose_secret_was_set_or_deleted(small_world: World) -> None:
    """A person may have one of the same name as the organization's."""
    denizen, noor = small_world.denizen, await small_world.person("Noor")
    admin = requester(noor, "admin")
    await denizen.secrets.set("WEATHER_KEY", "a-key-of-our-own", by=admin)
    await denizen.secrets.set("WEATHER_KEY", "a-key-of-noors-own", person=noor, by=admin)
    await denizen.secrets.delete("WEATHER_KEY", by=admin)
    await denizen.secrets.delete("WEATHER_KEY", person=noor, by=admin)
    found = await denizen.db.read(audit.entries, noor.organization_id, noor.id, AuditFilter(), limit=10)
    assert [(each.action, each.subject_id, each.detail) for each in reversed(found)] == [
        ("set_key", None, {"name": "WEATHER_KEY", "whose": "organization"}),
        ("set_key", noor.id, {"name": "WEATHER_KEY", "whose": "own"}),
        ("delete_key", None, {"name": "WEATHER_KEY", "whose": "organization"}),
        ("delete_key", noor.id, {"name": "WEATHER_KEY", "whose": "own"}),
    ]
