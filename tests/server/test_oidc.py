"""People who come from an identity provider, a real one on loopback: what of it is believed, and what is not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.warnings import InsecureKeyLengthWarning
from sqlalchemy import func, select

from denizen.access import identities, roles
from denizen.access.oidc import ASKED_AGAIN_SECONDS, KEPT_SECONDS
from denizen.clock import SECOND, ManualClock
from denizen.settings.shape import OidcSettings
from denizen.storage.database import statement
from denizen.storage.schema import entities
from tests.server.conftest import House, served
from tests.world import World

AUDIENCE = "denizen"
_ALL = statement(select(func.count()).select_from(entities))


def _rsa(bits: int = 2048) -> Any:
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


RSA, OTHER_RSA, SMALL_RSA = _rsa(), _rsa(), _rsa(1024)
EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()


def public(key: Any, kid: str, **more: str) -> dict[str, Any]:
    """The public half as the issuer publishes it."""
    algorithm = {
        rsa.RSAPrivateKey: RSAAlgorithm,
        ec.EllipticCurvePrivateKey: ECAlgorithm,
        ed25519.Ed25519PrivateKey: OKPAlgorithm,
    }
    [kind] = [each for each in algorithm if isinstance(key, each)]
    return {**algorithm[kind].to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


@dataclass
class Provider:
    """An identity provider that runs here."""

    clock: ManualClock
    address: str = ""
    keys: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    down: bool = False
    calls_itself: str | None = None

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.down:
            return web.Response(status=500)
        if request.path == "/.well-known/openid-configuration":
            issuer = self.calls_itself or self.address
            return web.json_response({"issuer": issuer, "jwks_uri": f"{self.address}/keys"})
        return web.json_response({"keys": self.keys})

    def token(
        self, key: Any = RSA, algorithm: str = "RS256", kid: str | None = "one", header: Any = None, **claims: Any
    ) -> str:
        """What the provider gives someone; None takes a claim away."""
        now = self.clock.now() // SECOND
        said = {
            "iss": self.address,
            "aud": AUDIENCE,
            "sub": "248289761001",
            "exp": now + 600,
            "iat": now,
            "name": "Noor Al-Amin",
            "preferred_username": "noor@example.com",
        } | claims
        headers = ({} if kid is None else {"kid": kid}) | (header or {})
        kept = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(kept, key, algorithm=algorithm, headers=headers)


@asynccontextmanager
async def provided(clock: ManualClock) -> AsyncGenerator[Provider]:
    provider = Provider(clock, keys=[public(RSA, "one"), public(EC, "two"), public(ED, "three")])
    app = web.Application()
    app.router.add_get("/{any:.*}", provider.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield provider
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_house(world: World, **settings: Any) -> AsyncGenerator[tuple[House, Provider]]:
    async with provided(world.clock) as provider:
        oidc = OidcSettings(issuer=provider.address, audience=AUDIENCE, **settings)
        async with served(world, oidc=oidc) as house:
            yield house, provider


async def come(house: House, token: str) -> tuple[int, str]:
    """The status, and who one is or why not."""
    answer = await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {token}"})
    said = answer.json()
    return answer.status_code, said["handle"] if answer.status_code == 200 else said["code"]


async def test_whoever_is_linked_comes_in_and_nobody_else(world: World) -> None:
    """An admin links a member; the provider's token then is as good as one of ours, and can be revoked."""
    noor, amin = await world.person("Noor"), await world.person("Amin")
    mia = await world.person("Mia")
    await world.denizen.db.write(roles.set_role, amin.id, "admin")
    async with open_house(world) as (house, provider):
        token = provider.token()
        answer = await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert "248289761001" in answer.json()["detail"]

        path, body = f"/api/entities/{mia.id}/identities", {"subject": "248289761001"}
        assert (await house.call("POST", path, mia, json=body)).status_code == 403
        assert (await house.call("POST", f"/api/entities/{noor.id}/identities", amin, json=body)).status_code == 403
        assert (await house.call("POST", path, amin, json=body)).status_code == 201
        assert (await house.call("POST", path, amin, json=body)).status_code == 201
        taken = await house.call("POST", "/api/entities/@noor/identities", noor, json=body)
        assert taken.status_code == 422

        assert await come(house, token) == (200, "mia")
        me = (await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {token}"})).json()
        assert (me["role"], me["token"]["kind"], me["token"]["name"]) == ("member", "jwt", provider.address)
        listed = (await house.call("GET", "/api/tokens", amin, params={"entity": "@mia"})).json()["tokens"]
        [seen] = [each for each in listed if each["kind"] == "jwt"]
        assert (await house.call("DELETE", f"/api/tokens/{seen['id']}", amin)).status_code == 204
        assert await come(house, token) == (401, "unauthorized")

        another = provider.token(jti="another")
        assert await come(house, another) == (200, "mia")
        [shown] = (await house.call("GET", path, amin)).json()["identities"]
        assert (shown["issuer"], shown["subject"]) == (provider.address, "248289761001")
        assert (await house.call("DELETE", path, amin, params={"issuer": "x", "subject": "y"})).status_code == 404
        gone = await house.call("DELETE", path, amin, params={"issuer": provider.address, "subject": "248289761001"})
        assert gone.status_code == 204
        assert await come(house, another) == (401, "unauthorized")


async def test_linking_and_unlinking_are_in_the_audit_log(world: World) -> None:
    """Who linked whom to which provider; what was refused is not. The subject is how that person is known elsewhere."""
    noor, mia = await world.person("Noor"), await world.person("Mia")
    async with open_house(world) as (house, provider):
        path, subject = f"/api/entities/{mia.id}/identities", "248289761001"
        assert (await house.call("POST", path, mia, json={"subject": subject})).status_code == 403
        assert (await house.call("POST", path, noor, json={"subject": subject})).status_code == 201
        where = {"issuer": provider.address, "subject": subject}
        assert (await house.call("DELETE", path, noor, params=where | {"subject": "no"})).status_code == 404
        assert (await house.call("DELETE", path, noor, params=where)).status_code == 204
        entries = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [(each["action"], each["by"]["id"], each["subject_id"], each["detail"]) for each in entries] == [
        ("unlink_identity", noor.id, mia.id, {"issuer": provider.address}),
        ("link_identity", noor.id, mia.id, {"issuer": provider.address}),
    ]


async def test_people_may_be_made_as_they_come(world: World) -> None:
    """Under a handle like the one they have there, as members, once."""
    await world.person("Noor")
    async with open_house(world, create_people=True) as (house, provider):
        assert await come(house, provider.token()) == (200, "noor-2")
        assert await come(house, provider.token(jti="later")) == (200, "noor-2")
        assert await come(house, provider.token(sub="2", preferred_username=None, name=None)) == (200, "2")
        me = await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {provider.token()}"})
        assert (me.json()["name"], me.json()["role"]) == ("Noor Al-Amin", "member")
        found = await world.denizen.db.read(identities.find, provider.address, "248289761001")
        assert found is not None
        assert found.entity_id == me.json()["id"]


async def test_tokens_that_expired_are_not_kept_for_ever(small_world: World) -> None:
    noor = await small_world.person("Noor")
    async with open_house(small_world) as (house, provider):
        await small_world.denizen.db.write(identities.link, noor.id, provider.address, "248289761001")
        for number in range(3):
            assert (await come(house, provider.token(jti=str(number))))[0] == 200
            small_world.clock.advance(1_000)
        await come(house, provider.token(jti="last"))
        listed = (await house.call("GET", "/api/tokens", noor)).json()["tokens"]
        assert [each["kind"] for each in listed].count("jwt") == 1


GOOD = {
    "rsa": {},
    "ec": {"key": EC, "algorithm": "ES256", "kid": "two"},
    "ed25519": {"key": ED, "algorithm": "EdDSA", "kid": "three"},
    "the only key of its kind needs no name": {"key": EC, "algorithm": "ES256", "kid": None},
    "one of several audiences": {"aud": ["other", AUDIENCE]},
    "a clock that is wrong by less than a minute": {"exp_in": -59, "nbf_in": 59},
}
BAD = {
    "another's key": {"key": OTHER_RSA},
    "a key of another kind": {"key": EC, "algorithm": "ES256", "kid": "one"},
    "an unknown key": {"kid": "nine"},
    "an algorithm that is not taken": {"algorithm": "RS512"},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "other"},
    "no audience": {"aud": None},
    "expired": {"exp_in": -60},
    "never expires": {"exp": None},
    "expires at no time": {"exp": True},
    "not yet": {"nbf_in": 61},
    "nobody": {"sub": None},
    "an empty subject": {"sub": ""},
    "extensions we do not know": {"header": {"crit": ["x"], "x": 1}},
}


def _token(provider: Provider, how: dict[str, Any]) -> str:
    now = provider.clock.now() // SECOND
    given = {name.removesuffix("_in"): now + value if name.endswith("_in") else value for name, value in how.items()}
    return provider.token(**given)


async def test_what_is_believed(small_world: World) -> None:
    noor = await small_world.person("Noor")
    async with open_house(small_world) as (house, provider):
        await small_world.denizen.db.write(identities.link, noor.id, provider.address, "248289761001")
        for name, how in GOOD.items():
            assert await come(house, _token(provider, how)) == (200, "noor"), name
        assert provider.asked == ["/.well-known/openid-configuration", "/keys"]


async def test_what_is_not_believed(small_world: World) -> None:
    """Not one of these is let in, even where people are made as they come; none of them leaves anybody behind."""
    await small_world.person("Noor")
    async with open_house(small_world, create_people=True) as (house, provider):
        provider.keys += [public(SMALL_RSA, "small"), public(OTHER_RSA, "sealing", use="enc")]
        provider.keys += [
            {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"k" * 32).decode().rstrip("=")}
        ]
        for name, how in BAD.items():
            assert (await come(house, _token(provider, how)))[0] == 401, name
        with pytest.warns(InsecureKeyLengthWarning):
            small = provider.token(SMALL_RSA, kid="small")
        assert (await come(house, small))[0] == 401
        assert (await come(house, provider.token(OTHER_RSA, kid="sealing")))[0] == 401
        for forged in _forged(provider):
            assert (await come(house, forged))[0] == 401, forged
        people = (await small_world.denizen.db.read(lambda tx: tx.all(_ALL)))[0][0]
        assert people == 1


def _forged(provider: Provider) -> list[str]:
    """Signed with nothing, with the public key as if it were shared, or with a shared key that is among the keys."""
    _, payload, _ = provider.token().split(".")
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    forged = [f"{_part({'alg': alg, 'kid': 'one'})}.{payload}." for alg in ("none", "None", "")]
    for kid, key in (("one", pem), ("one", json.dumps(provider.keys[0]).encode()), ("shared", b"k" * 32)):
        head = f"{_part({'alg': 'HS256', 'kid': kid})}.{payload}"
        forged.append(f"{head}.{_text(hmac.new(key, head.encode(), hashlib.sha256).digest())}")
    good = provider.token()
    return [*forged, good[:-4] + "AAAA", f"{good}x", "eyJ.eyJ.x", "eyJ" + "a" * 20_000 + ".a.a"]


def _part(value: dict[str, Any]) -> str:
    return _text(json.dumps(value).encode())


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


async def test_the_issuer_may_change_its_keys_at_any_time(small_world: World) -> None:
    """A new key is looked for, but not at every request; an old one is gone within the hour."""
    noor, clock = await small_world.person("Noor"), small_world.clock
    async with open_house(small_world) as (house, provider):
        await small_world.denizen.db.write(identities.link, noor.id, provider.address, "248289761001")
        assert (await come(house, provider.token()))[0] == 200
        provider.keys = [public(OTHER_RSA, "new")]
        of_new = {"key": OTHER_RSA, "kid": "new"}
        before = len(provider.asked)
        for _ in range(5):
            assert (await come(house, provider.token(**of_new)))[0] == 401
        assert len(provider.asked) == before
        clock.advance(ASKED_AGAIN_SECONDS)
        assert (await come(house, provider.token(**of_new)))[0] == 200
        assert (await come(house, provider.token()))[0] == 401

        provider.down = True
        clock.advance(KEPT_SECONDS)
        assert (await come(house, provider.token(**of_new)))[0] == 200, "an issuer that is down locks nobody out"
        provider.down, provider.keys = False, [public(RSA, "one")]
        clock.advance(KEPT_SECONDS)
        assert (await come(house, provider.token(**of_new)))[0] == 401
        clock.advance(ASKED_AGAIN_SECONDS)
        assert (await come(house, provider.token()))[0] == 200


async def test_an_issuer_that_gives_no_keys_is_told_apart_from_a_wrong_token(small_world: World) -> None:
    await small_world.person("Noor")
    async with open_house(small_world) as (house, provider):
        provider.down = True
        answer = await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {provider.token()}"})
        assert (answer.status_code, answer.json()["code"]) == (503, "issuer_unreachable")
        assert provider.address not in answer.text
        provider.down, provider.calls_itself = False, "https://evil.example"
        assert await come(house, provider.token()) == (503, "issuer_unreachable")
        provider.calls_itself = None
        assert await come(house, provider.token()) == (401, "unauthorized")


async def test_without_an_issuer_its_tokens_are_unknown(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    async with provided(small_house.world.clock) as provider:
        assert await come(small_house, provider.token()) == (401, "unauthorized")
        assert provider.asked == []
    answer = await small_house.call("POST", f"/api/entities/{noor.id}/identities", noor, json={"subject": "1"})
    assert (answer.status_code, "oidc.issuer" in answer.json()["detail"]) == (422, True)


async def test_whoever_is_forgotten_is_unlinked(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    await world.denizen.db.write(identities.link, sam.id, "https://login.example.com", "248289761001")
    await world.denizen.people.forget(sam, by=noor)
    assert await world.denizen.db.read(identities.identities_of, sam.id) == []
