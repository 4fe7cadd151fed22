"""As whom an identity provider knows people: one subject is one person."""

from __future__ import annotations

import pytest

from denizen.access import identities, tokens
from denizen.clock import SECOND, Instant
from denizen.errors import HandleTaken, InvalidInput, NotFound
from tests.world import World

ISSUER = "https://login.example.com"


async def test_a_subject_is_one_person_until_unlinked(world: World) -> None:
    db, noor, sam = world.denizen.db, await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    linked = await db.write(identities.link, noor.id, ISSUER, "1")
    assert await db.write(identities.link, noor.id, ISSUER, "1") == linked
    assert await db.read(identities.find, ISSUER, "1") == linked
    assert await db.read(identities.find, "https://other.example", "1") is None
    for who, subject, says in [(sam, "1", "someone else"), (ada, "2", "Only people"), (sam, "", "1 to 255")]:
        with pytest.raises(InvalidInput, match=says):
            await db.write(identities.link, who.id, ISSUER, subject)

    end = Instant(world.clock.now() + 60 * SECOND)
    assert await db.write(tokens.see, noor.id, "eyJ.a.b", ISSUER, end) is not None
    with pytest.raises(NotFound):
        await db.write(identities.unlink, sam.id, ISSUER, "1")
    await db.write(identities.unlink, noor.id, ISSUER, "1")
    assert await db.read(identities.identities_of, noor.id) == []
    assert await db.read(tokens.find, "eyJ.a.b", "jwt") is None


async def test_sessions_that_began_with_an_identity_end_with_it(world: World) -> None:
    """By a login link that a token of the provider made, also when that token is long expired; others stay."""
    db, noor = world.denizen.db, await world.person("Noor")
    await db.write(identities.link, noor.id, ISSUER, "1")
    own, _ = await db.write(tokens.create, noor.id, "laptop")
    soon = Instant(world.clock.now() + 60 * SECOND)
    first = await db.write(tokens.see, noor.id, "eyJ.a.b", ISSUER, soon)
    assert first is not None
    sessions: list[str] = []
    for below in (first.id, own.id, None):
        _, link = await db.write(tokens.create_login, noor.id, below=below)
        opened = await db.write(tokens.open_session, link)
        assert opened is not None
        sessions.append(opened[1])
    world.clock.advance(120)
    later = Instant(world.clock.now() + 60 * SECOND)
    assert await db.write(tokens.see, noor.id, "eyJ.c.d", ISSUER, later) is not None
    assert first.id not in {each.id for each in await db.read(tokens.tokens_of, noor.id)}

    await db.write(identities.unlink, noor.id, ISSUER, "1")
    assert await db.read(tokens.find, "eyJ.c.d", "jwt") is None
    assert [await db.read(tokens.find, each, "session") is not None for each in sessions] == [False, True, True]


async def test_new_people_get_a_handle_that_is_free(world: World) -> None:
    db, noor = world.denizen.db, await world.person("Noor")

    async def made(subject: str) -> str:
        person = await db.write(identities.create_person, noor.organization_id, ISSUER, subject, "Noor", "Noor")
        return person.handle

    assert [await made(each) for each in ("1", "2", "1")] == ["noor-2", "noor-3", "noor-2"]
    for number in range(3, 50):
        await made(str(number))
    with pytest.raises(HandleTaken):
        await made("50")
    await world.denizen.organizations.create("Elsewhere")
    with pytest.raises(InvalidInput, match=r"oidc\.organization"):
        await db.write(identities.create_person, None, ISSUER, "99", "Noor", "Noor")


async def test_a_forgotten_person_is_nobodys_subject(world: World) -> None:
    db = world.denizen.db
    await world.person("Sam")
    noor = await world.person("Noor")
    await db.write(identities.link, noor.id, ISSUER, "1")
    await world.denizen.people.forget(noor)
    assert await db.read(identities.find, ISSUER, "1") is None
