"""Access tokens: shown once, kept as a hash, good until revoked or expired."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from sqlalchemy import select

from denizen.access import tokens
from denizen.access.tokens import Token
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


def a_token(**more: Any) -> Token:
    return Token("t", EntityId("noor"), "Laptop", Instant(0), **more)


def test_a_session_is_extended_when_a_day_of_it_has_passed() -> None:
    """One that began with a shorter life never is."""
    whole, day = tokens.SESSION_SECONDS * SECOND, tokens.RENEWED_SECONDS * SECOND
    session = a_token(kind="session", expires_at=Instant(whole))
    assert not session.is_to_be_renewed(Instant(day - 1))
    assert session.is_to_be_renewed(Instant(day))
    assert not a_token(kind="session", expires_at=Instant(whole - 1)).is_to_be_renewed(Instant(whole - 1))
    assert not a_token(expires_at=Instant(whole)).is_to_be_renewed(Instant(day))
    assert not a_token(kind="session").is_to_be_renewed(Instant(day))


def test_a_use_is_noted_again_after_a_minute() -> None:
    assert a_token().use_is_old(Instant(0))
    used = a_token(last_used_at=Instant(5))
    assert not used.use_is_old(Instant(5 + 60 * SECOND - 1))
    assert used.use_is_old(Instant(5 + 60 * SECOND))


async def test_a_use_is_noted_once_a_minute(small_world: World) -> None:
    db, noor = small_world.denizen.db, await small_world.person("Noor")
    token, _ = await db.write(tokens.create, noor.id, "Laptop")
    other, _ = await db.write(tokens.create, noor.id, "Phone")
    seen: list[float | None] = []
    began = small_world.clock.now()
    for _ in range(4):
        await db.write(tokens.note_use, token.id)
        used = (await db.read(tokens.get, token.id)).last_used_at
        seen.append(None if used is None else (used - began) / SECOND)
        small_world.clock.advance(30)
    assert seen == [0, 0, 60, 60]
    assert (await db.read(tokens.get, other.id)).last_used_at is None


async def test_a_token_of_the_same_name_takes_the_place_of_earlier_ones(small_world: World) -> None:
    db, noor, sam = small_world.denizen.db, await small_world.person("Noor"), await small_world.person("Sam")
    kept = [
        (await db.write(tokens.create, noor.id, "Phone"))[1],
        (await db.write(tokens.create, noor.id, "Laptop", kind="session"))[1],
        (await db.write(tokens.create, sam.id, "Laptop"))[1],
    ]
    _, earlier = await db.write(tokens.create, noor.id, "Laptop")
    _, secret = await db.write(tokens.replace_named, noor.id, "Laptop")
    assert await db.read(tokens.find, earlier) is None
    assert await db.read(tokens.find, secret) is not None
    found = [await db.read(tokens.find_any, each) for each in kept]
    assert [each is not None and each.revoked_at for each in found] == [None, None, None]
    assert await db.read(tokens.find_any, "dz_unknown") is None


async def test_a_new_secret_ends_the_old_one_and_what_was_opened_with_it(small_world: World) -> None:
    db, noor = small_world.denizen.db, await small_world.person("Noor")
    token, old = await db.write(tokens.create, noor.id, "Laptop")
    _, other = await db.write(tokens.create, noor.id, "Phone")
    sessions = [await db.write(tokens.open_session, each) for each in (old, other)]
    await db.write(tokens.note_use, token.id)
    rotated, new = await db.write(tokens.rotate, token.id)
    assert (rotated.id, rotated.last_used_at) == (token.id, None)
    assert await db.read(tokens.find, old) is None
    assert await db.read(tokens.find, new) == rotated
    assert [await db.read(tokens.find, each[1], "session") is not None for each in sessions if each] == [False, True]
    await db.write(tokens.revoke, token.id)
    with pytest.raises(InvalidInput, match="Only a valid access token"):
        await db.write(tokens.rotate, token.id)
    assert sessions[1] is not None
    with pytest.raises(InvalidInput, match="Only a valid access token"):
        await db.write(tokens.rotate, sessions[1][0].id)


async def test_a_session_ends_after_thirty_days_or_with_the_token_that_opened_it(small_world: World) -> None:
    db, noor, now = small_world.denizen.db, await small_world.person("Noor"), small_world.clock.now()
    month = tokens.SESSION_SECONDS * SECOND

    async def opened(secret: str) -> int | None:
        session = await db.write(tokens.open_session, secret)
        return None if session is None else (session[0].expires_at or 0) - now

    async def made(seconds: int | None, **more: Any) -> str:
        end = None if seconds is None else Instant(now + seconds * SECOND)
        return (await db.write(tokens.create, noor.id, "Laptop", expires_at=end, **more))[1]

    assert await opened(await made(None)) == month
    assert await opened(await made(90)) == 90 * SECOND
    assert await opened(await made(tokens.SESSION_SECONDS + 90)) == month
    login = await made(600, kind="login", role="member")
    assert await opened(login) == month, "a link ends soon, and what it opens does not"
    assert await opened(login) is None, "a link opens one session"
    assert await opened("dz_unknown") is None
    with pytest.raises(InvalidInput, match="Only people sign in"):
        await db.write(tokens.create_login, (await small_world.agent("Ada")).id)


async def test_revoking_ends_what_came_from_an_identity_provider_and_nothing_else(small_world: World) -> None:
    db, noor, sam = small_world.denizen.db, await small_world.person("Noor"), await small_world.person("Sam")
    _, own = await db.write(tokens.create, noor.id, "Laptop")
    end = Instant(small_world.clock.now() + 60 * SECOND)
    theirs = await db.write(tokens.see, sam.id, "jwt-of-sam", "Provider", end)
    foreign = await db.write(tokens.see, noor.id, "jwt", "Provider", end)
    assert theirs is not None
    assert foreign is not None
    session, _ = await db.write(tokens.create, noor.id, "browser", kind="session", below=foreign.id)
    orphan, _ = await db.write(tokens.create, noor.id, "browser", kind="session", below="gone")
    await db.write(tokens.revoke_foreign, noor.id)
    good = {each.id: each.revoked_at is None for who in (noor, sam) for each in await db.read(tokens.tokens_of, who.id)}
    assert [good[each.id] for each in (foreign, session, orphan, theirs)] == [False, False, False, True]
    assert await db.read(tokens.find, own) is not None
    assert await db.write(tokens.see, noor.id, "jwt", "Provider", end) is None, "it was revoked"
