"""Secrets: sealed where they lie, an organization's or a person's own, and used where they should be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from sqlalchemy import bindparam, select, update

from denizen import Runtime
from denizen.access import secrets
from denizen.access.secrets import SecretLocation, names_in, shared_in
from denizen.access.vault import new_key
from denizen.errors import InvalidInput, NotFound, SecretKeyMissing, SecretUnreadable
from denizen.ids import EntityId, OrganizationId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import secrets as table
from tests.world import World, open_world

KEY = new_key()
VALUE = "sk-proj-0123456789abcdef"

_rows = statement(select(table).order_by(table.c.name))
_move = statement(update(table).where(table.c.name == bindparam("called")).values(name=bindparam("new")))


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    """An empty world that can keep secrets."""
    async with open_world(ready_url, secret_key=KEY) as world:
        yield world


async def resolved(world: World, name: str, organization: OrganizationId, owner: EntityId | None = None) -> str | None:
    return await world.denizen.db.read(secrets.resolve, world.denizen.vault, organization, name, owner)


async def test_a_secret_is_kept_sealed_and_shown_only_by_its_end(world: World) -> None:
    noor = await world.person("Noor")

    kept = await world.denizen.secrets.set("OPENAI_API_KEY", VALUE)

    assert (kept.name, kept.owner_id, kept.hint) == ("OPENAI_API_KEY", None, "…cdef")
    assert await world.denizen.secrets.list() == [kept]
    assert await resolved(world, "OPENAI_API_KEY", noor.organization_id) == VALUE
    [row] = await world.denizen.db.read(lambda tx: tx.all(_rows))
    assert not [each for each in row if isinstance(each, str) and "0123456789" in each]


async def test_setting_it_again_replaces_it(world: World) -> None:
    noor = await world.person("Noor")
    first = await world.denizen.secrets.set("CRM_TOKEN", "the first, which was long")
    world.clock.advance(60)

    second = await world.denizen.secrets.set("CRM_TOKEN", "short")

    assert (second.hint, second.created_at) == ("", first.created_at)
    assert second.updated_at > first.updated_at
    assert await resolved(world, "CRM_TOKEN", noor.organization_id) == "short"
    assert len(await world.denizen.secrets.list()) == 1


async def test_setting_it_at_once_from_many_sides_keeps_one(world: World) -> None:
    noor = await world.person("Noor")
    values = [f"value number {number}" for number in range(8)]

    await asyncio.gather(*(world.denizen.secrets.set("CRM_TOKEN", each) for each in values))

    assert len(await world.denizen.secrets.list()) == 1
    assert await resolved(world, "CRM_TOKEN", noor.organization_id) in values


async def test_a_persons_own_comes_before_the_organizations_and_is_nobody_elses(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    home = noor.organization_id
    await world.denizen.secrets.set("OPENAI_API_KEY", "of the house")
    await world.denizen.secrets.set("OPENAI_API_KEY", "of noor", person=noor)
    await world.denizen.secrets.set("DIARY", "of noor alone", person=noor.id)

    assert await resolved(world, "OPENAI_API_KEY", home) == "of the house"
    assert await resolved(world, "OPENAI_API_KEY", home, noor.id) == "of noor"
    assert await resolved(world, "OPENAI_API_KEY", home, sam.id) == "of the house"
    assert await resolved(world, "DIARY", home, sam.id) is None
    assert [(each.name, each.owner_id) for each in await world.denizen.secrets.list()] == [
        ("DIARY", noor.id),
        ("OPENAI_API_KEY", None),
        ("OPENAI_API_KEY", noor.id),
    ]


async def test_nothing_crosses_from_one_organization_to_another(world: World) -> None:
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await world.person("Noor", organization=home)
    await world.denizen.secrets.set("CRM_TOKEN", VALUE, organization=home)

    assert await resolved(world, "CRM_TOKEN", elsewhere.id) is None
    assert await world.denizen.secrets.list(organization=elsewhere) == []
    with pytest.raises(NotFound):
        await world.denizen.secrets.set("CRM_TOKEN", VALUE, person=noor, organization=elsewhere)
    with pytest.raises(NotFound):
        await world.denizen.secrets.delete("CRM_TOKEN", organization=elsewhere)


async def test_what_is_deleted_is_gone_and_the_others_stay(world: World) -> None:
    noor = await world.person("Noor")
    await world.denizen.secrets.set("CRM_TOKEN", "of the house")
    await world.denizen.secrets.set("CRM_TOKEN", "of noor", person=noor)

    await world.denizen.secrets.delete("CRM_TOKEN", person=noor)

    assert await resolved(world, "CRM_TOKEN", noor.organization_id, noor.id) == "of the house"
    with pytest.raises(NotFound, match="CRM_TOKEN"):
        await world.denizen.secrets.delete("CRM_TOKEN", person=noor)


@pytest.mark.parametrize("name", ["", "A", "openai_api_key", "1PASSWORD", "_X", "A-B", "A B", "Ä_KEY", "A" * 65, "A\n"])
async def test_names_are_those_of_environment_variables(small_world: World, name: str) -> None:
    with pytest.raises(InvalidInput, match="OPENAI_API_KEY"):
        await small_world.denizen.secrets.set(name, VALUE)


@pytest.mark.parametrize("value", ["", " \n", "x" * 16_385, "a\0b", "a\ud800b"])
async def test_what_is_no_text_is_not_kept_and_not_shown(small_world: World, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await small_world.denizen.secrets.set("CRM_TOKEN", value)
    assert not value.strip() or value not in str(refused.value)


async def test_a_secret_is_no_agents_own(world: World) -> None:
    ada = await world.agent("Ada")
    with pytest.raises(InvalidInput, match="@ada is not a person"):
        await world.denizen.secrets.set("CRM_TOKEN", VALUE, person=ada.entity)


async def test_a_sealed_row_that_was_moved_opens_nothing(world: World) -> None:
    """Whoever can write the database cannot have another secret handed out in the place of their own."""
    noor = await world.person("Noor")
    await world.denizen.secrets.set("PAYROLL_TOKEN", VALUE)

    def move(tx: Tx) -> None:
        tx.run(_move, called="PAYROLL_TOKEN", new="WEATHER_TOKEN")

    await world.denizen.db.write(move)
    with pytest.raises(SecretUnreadable):
        await resolved(world, "WEATHER_TOKEN", noor.organization_id)


async def test_with_another_key_it_is_unreadable_until_it_is_set_again(world: World) -> None:
    noor = await world.person("Noor")
    await world.denizen.secrets.set("CRM_TOKEN", VALUE)
    other = Runtime(world.url, clock=world.clock, secret_key=new_key())
    async with other:
        place = SecretLocation(noor.organization_id, "CRM_TOKEN")
        with pytest.raises(SecretUnreadable, match="DENIZEN_SECRET_KEY"):
            await other.db.read(secrets.value_at, other.vault, place)
        await other.secrets.set("CRM_TOKEN", "again")
        assert await other.db.read(secrets.value_at, other.vault, place) == "again"


async def test_a_database_that_stays_needs_a_key_that_stays(ready_sqlite_url: str) -> None:
    """One that is gone with the process makes its own."""
    async with Runtime(ready_sqlite_url) as denizen:
        with pytest.raises(SecretKeyMissing, match="secret_key"):
            await denizen.secrets.set("CRM_TOKEN", VALUE)
        assert await denizen.secrets.list() == []
    async with Runtime() as denizen:
        assert (await denizen.secrets.set("CRM_TOKEN", VALUE)).name == "CRM_TOKEN"


async def test_the_environment_is_not_readable_but_for_what_is_shared() -> None:
    """And never the key that everything is sealed with, although its name looks like one that is."""
    environ = {
        "HOME": "/root",
        "AWS_SECRET_ACCESS_KEY": "aws",
        "DENIZEN_SECRET_KEY": KEY,
        "DENIZEN_SECRET_CRM_TOKEN": "of the operator",
        "DENIZEN_SECRET_EMPTY": "",
    }
    assert shared_in(environ) == {"CRM_TOKEN": "of the operator"}
    async with Runtime(shared_secrets=shared_in(environ)) as denizen:
        home = await denizen.organizations.create("Home")

        async def found(*names: str) -> dict[str, str]:
            return await denizen.db.read(secrets.resolve_all, denizen.vault, home.id, names)

        assert await found("CRM_TOKEN", "KEY", "HOME", "AWS_SECRET_ACCESS_KEY") == {"CRM_TOKEN": "of the operator"}
        await denizen.secrets.set("CRM_TOKEN", "of the house")
        assert await found("CRM_TOKEN") == {"CRM_TOKEN": "of the house"}


def test_references_are_found_in_settings() -> None:
    assert names_in('{"Authorization": "Bearer ${CRM_TOKEN}", "X": "${A}${CRM_URL} $HOME {NOT} ${lower}"}') == {
        "CRM_TOKEN",
        "CRM_URL",
    }
