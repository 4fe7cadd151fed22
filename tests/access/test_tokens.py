"""Access tokens: shown once, kept as a hash, good until revoked or expired."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import select

from denizen.access import tokens
from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import tokens as table
from tests.world import World

_everything = statement(select(table))


async def test_a_token_is_found_by_its_secret_and_by_nothing_else(world: World) -> None:
    db, noor = world.denizen.db, await world.person("Noor")

    token, secret = await db.write(tokens.create, noor.id, "Laptop")

    assert (token.entity_id, token.name, token.expires_at) == (noor.id, "Laptop", None)
    assert await db.read(tokens.find, secret) == token
    for other in ("", "dz_", secret[:-1], secret + "x", secret.upper(), f" {secret}", token.id, "\ud800", "\0"):
        assert await db.read(tokens.find, other) is None


async def test_the_secret_is_kept_nowhere(world: World) -> None:
    """Only its SHA-256 is, from which it cannot be found again."""
    db, noor = world.denizen.db, await world.person("Noor")

    _, secret = await db.write(tokens.create, noor.id, "Laptop")

    def rows(tx: Tx) -> list[tuple[object, ...]]:
        return tx.all(_everything)

    [row] = await db.read(rows)
    assert hashlib.sha256(secret.encode()).hexdigest() in row
    assert not [value for value in row if isinstance(value, str) and secret in value]


async def test_secrets_are_long_and_never_the_same(world: World) -> None:
    db, noor = world.denizen.db, await world.person("Noor")
    secrets = {(await db.write(tokens.create, noor.id, "Laptop"))[1] for _ in range(20)}
    assert len(secrets) == 20
    assert all(secret.startswith("dz_") and len(secret) >= 3 + 43 for secret in secrets)


async def test_a_revoked_token_is_not_found_any_more_but_still_listed(world: World) -> None:
    db, noor = world.denizen.db, await world.person("Noor")
    token, secret = await db.write(tokens.create, noor.id, "Laptop")
    _, other = await db.write(tokens.create, noor.id, "Phone")
    revoked_at = world.clock.now()

    await db.write(tokens.revoke, token.id)
    world.clock.advance(5)
    await db.write(tokens.revoke, token.id)

    assert await db.read(tokens.find, secret) is None
    assert await db.read(tokens.find, other) is not None
    listed = {each.name: each.revoked_at for each in await db.read(tokens.tokens_of, noor.id)}
    assert listed == {"Laptop": revoked_at, "Phone": None}
    with pytest.raises(NotFound):
        await db.write(tokens.revoke, "nothing")


async def test_a_token_is_good_up_to_its_end_and_not_at_it(world: World) -> None:
    db, noor = world.denizen.db, await world.person("Noor")
    end = Instant(world.clock.now() + 60 * SECOND)
    token, secret = await db.write(tokens.create, noor.id, "Laptop", expires_at=end)

    world.clock.advance(59.999_999)
    assert await db.read(tokens.find, secret) == token
    world.clock.advance(0.000_001)
    assert await db.read(tokens.find, secret) is None
    with pytest.raises(InvalidInput, match="already have expired"):
        await db.write(tokens.create, noor.id, "Laptop", expires_at=end)


async def test_a_token_is_for_someone_and_has_a_name(world: World) -> None:
    db, noor = world.denizen.db, await world.person("Noor")
    with pytest.raises(NotFound):
        await db.write(tokens.create, EntityId("nobody"), "Laptop")
    with pytest.raises(InvalidInput):
        await db.write(tokens.create, noor.id, "  ")
    assert await db.read(tokens.tokens_of, noor.id) == []


async def test_only_a_session_is_renewed_and_only_while_it_is_not_revoked(world: World) -> None:
    """Whatever else has an end keeps it."""
    db, noor = world.denizen.db, await world.person("Noor")
    end = Instant(world.clock.now() + 60 * SECOND)
    kept: list[str] = []
    for kind in ("token", "login", "session", "session"):
        token, _ = await db.write(tokens.create, noor.id, "Laptop", kind=kind, expires_at=end)
        kept.append(token.id)
    revoked, renewed = kept[2:]
    await db.write(tokens.revoke, revoked)
    for each in kept:
        await db.write(tokens.renew, each)
    until = Instant(world.clock.now() + tokens.SESSION_SECONDS * SECOND)
    ends = {each.id: each.expires_at for each in await db.read(tokens.tokens_of, noor.id)}
    assert ends == {**dict.fromkeys(kept, end), renewed: until}


async def test_a_new_token_of_an_identity_provider_drops_those_that_have_expired(world: World) -> None:
    """And nothing else: not one that is good, not an access token, not what another person has."""
    db, noor, bert = world.denizen.db, await world.person("Noor"), await world.person("Bert")
    soon, late = (Instant(world.clock.now() + seconds * SECOND) for seconds in (60, 600))
    await db.write(tokens.create, noor.id, "Laptop", expires_at=soon)
    for who, secret, end in ((noor, "one", soon), (noor, "two", late), (bert, "three", soon)):
        assert await db.write(tokens.see, who.id, secret, secret, end) is not None
    world.clock.advance(60)
    assert await db.write(tokens.see, noor.id, "four", "four", late) is not None
    assert [each.name for each in await db.read(tokens.tokens_of, noor.id)] == ["Laptop", "two", "four"]
    assert [each.name for each in await db.read(tokens.tokens_of, bert.id)] == ["three"]
    # One that is known already is not added again, and one that was revoked stays so.
    known = await db.write(tokens.see, noor.id, "four", "four", late)
    assert known is not None
    await db.write(tokens.revoke, known.id)
    assert await db.write(tokens.see, noor.id, "four", "four", late) is None
    assert len(await db.read(tokens.tokens_of, noor.id)) == 3
