"""Tokens, login links and sessions over HTTP: who may make, see, change and end them, and what a browser may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from denizen.access import roles, tokens
from denizen.access.roles import Role
from denizen.access.vault import Vault, keys_in_memory
from denizen.clock import SECOND, Instant
from denizen.server.login_page import PAGE
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from tests.server.conftest import House, session_headers

DAY = 86_400


@dataclass
class Cast:
    """One of each role, and Eve, who owns another organization."""

    owner: Entity
    admin: Entity
    member: Entity
    other: Entity
    service: Entity
    eve: Entity


async def _cast(house: House) -> Cast:
    denizen = house.world.denizen
    home, elsewhere = [await denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    owner, admin, member, other = [
        await house.world.person(name, organization=home) for name in ("Olga", "Amin", "Mia", "Max")
    ]
    await denizen.db.write(roles.set_role, admin.id, "admin")
    service = await denizen.db.write(directory.create_entity, home.id, "service", name="CI", handle="ci")
    eve = await house.world.person("Eve", organization=elsewhere)
    return Cast(owner, admin, member, other, service, eve)


@pytest.fixture
async def cast(house: House) -> Cast:
    return await _cast(house)


@pytest.fixture
async def small_cast(small_house: House) -> Cast:
    return await _cast(small_house)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def post(house: House, path: str, who: Entity | None, body: Any = None, **headers: str) -> tuple[int, dict]:
    answer = await house.call("POST", path, who, json={} if body is None else body, headers=headers)
    return answer.status_code, answer.json()


async def test_a_token_is_made_shown_once_used_given_a_new_secret_and_revoked(house: House, cast: Cast) -> None:
    status, made = await post(house, "/api/tokens", cast.member, {"name": "Backup"})
    assert status == 201
    assert (made["token"]["name"], made["token"]["role"], made["token"]["kind"]) == ("Backup", "member", "token")
    me = await house.call("GET", "/api/me", headers=bearer(made["secret"]))
    assert (me.json()["handle"], me.json()["role"], me.json()["token"]["kind"]) == ("mia", "member", "token")

    status, again = await post(house, f"/api/tokens/{made['token']['id']}/rotate", cast.member)
    assert (status, again["token"]["id"]) == (200, made["token"]["id"])
    assert (await house.call("GET", "/api/me", headers=bearer(made["secret"]))).status_code == 401
    assert (await house.call("GET", "/api/me", headers=bearer(again["secret"]))).status_code == 200

    path = f"/api/tokens/{made['token']['id']}"
    assert (await house.call("DELETE", path, cast.member)).status_code == 204
    assert (await house.call("DELETE", path, cast.member)).status_code == 204
    assert (await house.call("GET", "/api/me", headers=bearer(again["secret"]))).status_code == 401
    refused, _ = await post(house, f"{path}/rotate", cast.member)
    assert refused == 422
    listed = await house.call("GET", "/api/tokens", cast.member)
    shown = {each["name"]: each["revoked_at"] is not None for each in listed.json()["tokens"]}
    assert shown == {"Test": False, "Backup": True}
    assert made["secret"] not in listed.text


async def test_who_may_let_whom_in(house: House, cast: Cast) -> None:
    """Everyone for themselves; admins for members and services; owners for admins and owners; nobody for elsewhere."""
    allowed = {
        "member": {"member"},
        "admin": {"admin", "member", "other", "service"},
        "owner": {"owner", "admin", "member", "other", "service"},
    }
    everyone = {name: getattr(cast, name) for name in ("owner", "admin", "member", "other", "service", "eve")}
    for who, may in allowed.items():
        for name, target in everyone.items():
            expected = 404 if name == "eve" else 201 if name in may else 403
            asked = {"name": "x", "entity": target.id}
            assert (await post(house, "/api/tokens", everyone[who], asked))[0] == expected, (who, name)
            answer = await house.call("GET", "/api/tokens", everyone[who], params={"entity": target.id})
            assert answer.status_code == (200 if expected == 201 else expected)
    of_owner, secret = await house.world.denizen.db.write(tokens.create, cast.owner.id, "Mine")
    for who in ("admin", "member"):
        assert (await post(house, f"/api/tokens/{of_owner.id}/rotate", everyone[who]))[0] == 403
        assert (await house.call("DELETE", f"/api/tokens/{of_owner.id}", everyone[who])).status_code == 403
    assert (await house.call("DELETE", f"/api/tokens/{of_owner.id}", cast.eve)).status_code == 404
    assert (await house.call("GET", "/api/me", headers=bearer(secret))).status_code == 200
    status, _ = await post(house, "/api/tokens", cast.service, {"name": "x"})
    assert status == 403


@pytest.mark.parametrize("wanted", [None, "owner"])
async def test_a_small_token_makes_nothing_greater(small_house: House, small_cast: Cast, wanted: str | None) -> None:
    """Neither by making a token, nor by a login link, nor by giving a greater one a new secret."""
    db, owner = small_house.world.denizen.db, small_cast.owner
    greater, _ = await db.write(tokens.create, owner.id, "Great")
    _, small = await db.write(tokens.create, owner.id, "Small", role="member")
    small_house.secrets[owner.id] = small

    _, made = await post(small_house, "/api/tokens", owner, {"name": "x", "role": wanted})
    assert made["token"]["role"] == "member"
    _, login = await post(small_house, "/api/logins", owner)
    status, session = await post(small_house, "/api/session", None, {"secret": login["secret"]})
    assert (status, session["role"]) == (201, "member")
    assert (await post(small_house, f"/api/tokens/{greater.id}/rotate", owner))[0] == 403
    assert (await post(small_house, "/api/tokens", owner, {"name": "x", "entity": "@amin"}))[0] == 403


async def test_a_token_that_an_admin_made_does_not_grow_with_its_person(small_house: House, small_cast: Cast) -> None:
    """Whoever made it knows it: it is not to be an owner's one day."""
    _, made = await post(small_house, "/api/tokens", small_cast.admin, {"name": "x", "entity": "@mia"})
    await small_house.world.denizen.db.write(roles.set_role, small_cast.member.id, "owner")
    me = await small_house.call("GET", "/api/me", headers=bearer(made["secret"]))
    assert me.json()["role"] == "member"


async def test_a_token_may_expire(small_house: House, small_cast: Cast) -> None:
    asked = {"name": "x", "expires_at": "2026-01-05T09:01:00Z"}
    _, made = await post(small_house, "/api/tokens", small_cast.member, asked)
    assert made["token"]["expires_at"] == "2026-01-05T09:01:00Z"
    small_house.world.clock.advance(60)
    assert (await small_house.call("GET", "/api/me", headers=bearer(made["secret"]))).status_code == 401
    assert (await post(small_house, "/api/tokens", small_cast.member, asked))[0] == 422
    assert (await post(small_house, "/api/tokens", small_cast.member, {"name": "x", "expires_at": "2027"}))[0] == 422


# Signing in


async def sign_in(house: House, who: Entity) -> dict[str, str]:
    """What a browser sends in a new session: its cookie, and the key that its pages know."""
    _, login = await post(house, "/api/logins", who)
    answer = await house.call("POST", "/api/session", json={"secret": login["secret"]})
    assert answer.status_code == 201, answer.text
    return session_headers(house, answer)


async def test_a_link_signs_in_once(house: House, cast: Cast) -> None:
    status, login = await post(house, "/api/logins", cast.member)
    assert status == 201
    assert re.fullmatch(r"http://127\.0\.0\.1:8420/login#dzl_[\w-]{43}", login["url"])
    assert login["url"].endswith(login["secret"])
    # It opens a session, and no other door.
    assert (await house.call("GET", "/api/me", headers=bearer(login["secret"]))).status_code == 401

    first = await house.call("POST", "/api/session", json={"secret": login["secret"]})
    second = await house.call("POST", "/api/session", json={"secret": login["secret"]})

    assert (first.status_code, first.json()["kind"]) == (201, "session")
    assert (second.status_code, second.json()["code"]) == (401, "unauthorized")
    cookie, organization = first.headers.get_list("set-cookie")
    port = house.address.rpartition(":")[2]
    assert re.fullmatch(rf"denizen-{port}=dzs_[\w-]{{43}}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict", cookie)
    # Which policy the page has. It lets nobody in.
    assert organization.startswith(f"denizen-organization-{port}={cast.member.organization_id}; Path=/; ")
    assert "set-cookie" not in second.headers
    me = await house.call("GET", "/api/me", headers=session_headers(house, first))
    assert (me.json()["handle"], me.json()["token"]["kind"]) == ("mia", "session")


async def test_a_link_is_good_for_ten_minutes(small_house: House, small_cast: Cast) -> None:
    _, login = await post(small_house, "/api/logins", small_cast.member)
    small_house.world.clock.advance(600)
    assert (await post(small_house, "/api/session", None, {"secret": login["secret"]}))[0] == 401


async def test_who_may_make_links_for_whom(small_house: House, small_cast: Cast) -> None:
    for who, target, expected in [
        (small_cast.admin, "@mia", 201),
        (small_cast.owner, "@amin", 201),
        (small_cast.admin, "@olga", 403),
        (small_cast.member, "@max", 403),
        (small_cast.owner, small_cast.eve.id, 404),
        (small_cast.owner, "@ci", 422),
    ]:
        assert (await post(small_house, "/api/logins", who, {"entity": target}))[0] == expected, target


async def test_a_token_can_be_exchanged_for_a_session_that_does_not_outlast_it(
    small_house: House, small_cast: Cast
) -> None:
    clock = small_house.world.clock
    end = Instant(clock.now() + 3 * DAY * SECOND)
    secret = await small_house.token(small_cast.member, expires_at=end)
    answer = await small_house.call("POST", "/api/session", json={"secret": secret})
    sent = session_headers(small_house, answer)
    assert f"Max-Age={3 * DAY}" in answer.headers["set-cookie"]
    for day in range(3):
        again = await small_house.call("GET", "/api/me", headers=sent)
        assert (again.status_code, "set-cookie" in again.headers) == (200, False), day
        clock.advance(DAY)
    assert (await small_house.call("GET", "/api/me", headers=sent)).status_code == 401
    of_service = await small_house.token(small_cast.service)
    assert (await post(small_house, "/api/session", None, {"secret": of_service}))[0] == 401


@pytest.mark.parametrize("ended", ["revoke", "rotate"])
async def test_sessions_end_with_the_token_they_were_opened_with(house: House, cast: Cast, ended: str) -> None:
    """Those of links that were made with it, too; another's, and one's own by other ways, stay."""
    _, made = await post(house, "/api/tokens", cast.admin, {"name": "Laptop"})

    async def session(secret: str) -> dict[str, str]:
        return session_headers(house, await house.call("POST", "/api/session", json={"secret": secret}))

    async def link(target: str | None, who: dict[str, str]) -> str:
        wanted = {} if target is None else {"entity": target}
        return (await house.call("POST", "/api/logins", json=wanted, headers=who)).json()["secret"]

    laptop, ours = bearer(made["secret"]), {"Origin": house.address}
    exchanged = await session(made["secret"])
    by_link = await session(await link(None, laptop))
    by_session = await session(await link(None, exchanged | ours))
    unused = await link(None, laptop)
    of_another = await session(await link("@mia", laptop))
    by_other_token = await session(await link(None, bearer(await house.token(cast.admin))))
    sessions = [exchanged, by_link, by_session, of_another, by_other_token]
    # Signing out of one ends no other.
    assert (await house.call("DELETE", "/api/session", headers=by_link | ours)).status_code == 204
    good = [(await house.call("GET", "/api/me", headers=each)).status_code for each in sessions]
    assert good == [200, 401, 200, 200, 200]

    path = f"/api/tokens/{made['token']['id']}"
    method, path = ("DELETE", path) if ended == "revoke" else ("POST", f"{path}/rotate")
    assert (await house.call(method, path, cast.admin)).status_code in (200, 204)

    good = [(await house.call("GET", "/api/me", headers=each)).status_code for each in sessions]
    assert good == [401, 401, 401, 200, 200]
    assert (await post(house, "/api/session", None, {"secret": unused}))[0] == 401


async def test_a_session_lasts_while_it_is_used(house: House, cast: Cast) -> None:
    """Thirty days from the last day on which it was used; the cookie is set anew then, and not at every request."""
    clock, sent = house.world.clock, await sign_in(house, cast.member)
    assert "set-cookie" not in (await house.call("GET", "/api/me", headers=sent)).headers
    for _ in range(3):
        clock.advance(29 * DAY)
        renewed = await house.call("GET", "/api/me", headers=sent)
        assert renewed.status_code == 200
        assert renewed.headers["set-cookie"].startswith(f"{sent['Cookie']}; Path=/; Max-Age=2592000;")
        house.client.cookies.clear()
    clock.advance(30 * DAY)
    assert (await house.call("GET", "/api/me", headers=sent)).status_code == 401


@pytest.mark.parametrize("key", [None, "", "dzp_wrong", "<another's>", "<in the cookie>"])
async def test_the_cookie_alone_opens_nothing(small_house: House, small_cast: Cast, key: str | None) -> None:
    """Browsers send it to every port of the host. Whoever runs a server on another one has it, and can pretend to be a
    page of ours; the key is only in the storage of our own origin."""
    session = await sign_in(small_house, small_cast.member)
    stolen = {"Cookie": session["Cookie"], "Origin": small_house.address, "Sec-Fetch-Site": "same-origin"}
    if key == "<another's>":
        stolen["Denizen-Page-Key"] = (await sign_in(small_house, small_cast.member))["Denizen-Page-Key"]
    elif key == "<in the cookie>":
        stolen["Cookie"] += f".{session['Denizen-Page-Key'][:-1]}"
    elif key is not None:
        stolen["Denizen-Page-Key"] = key
    for method, path in [("GET", "/api/me"), ("GET", "/api/stream"), ("POST", "/api/tokens"), ("POST", "/api/logins")]:
        answer = await small_house.call(method, path, headers=stolen, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), path
    assert (await small_house.call("GET", "/api/me", headers=session)).status_code == 200


async def test_signing_out_ends_the_session(house: House, cast: Cast) -> None:
    ours = {**await sign_in(house, cast.member), "Origin": house.address}
    ended = await house.call("DELETE", "/api/session", headers=ours)
    assert (ended.status_code, ended.content) == (204, b"")
    assert "Max-Age=0" in ended.headers["set-cookie"]
    assert (await house.call("GET", "/api/me", headers=ours)).status_code == 401
    # With a token, there is no session to end, and the token stays good.
    assert (await house.call("DELETE", "/api/session", cast.member)).status_code == 204
    assert (await house.call("GET", "/api/me", cast.member)).status_code == 200


async def test_a_session_is_no_bearer_and_a_token_no_cookie(small_house: House, small_cast: Cast) -> None:
    session = await sign_in(small_house, small_cast.member)
    name, _, secret = session["Cookie"].partition("=")
    for whole in (secret, session["Denizen-Page-Key"], f"{secret}.{session['Denizen-Page-Key']}"):
        assert (await small_house.call("GET", "/api/me", headers=bearer(whole))).status_code == 401
    token = await small_house.token(small_cast.member)
    as_cookie = session | {"Cookie": f"{name}={token}"}
    assert (await small_house.call("GET", "/api/me", headers=as_cookie)).status_code == 401
    # Whoever sends both means the token.
    both = bearer("dz_wrong") | session
    assert (await small_house.call("GET", "/api/me", headers=both)).status_code == 401


OURS = "<ours>"
FROM = [
    ({}, 200, 403),
    ({"Origin": OURS}, 200, 201),
    ({"Sec-Fetch-Site": "same-origin"}, 200, 201),
    ({"Origin": OURS, "Sec-Fetch-Site": "same-origin"}, 200, 201),
    ({"Sec-Fetch-Site": "none"}, 200, 403),
    ({"Origin": "http://evil.example"}, 403, 403),
    ({"Origin": "null"}, 403, 403),
    ({"Origin": "http://localhost:1"}, 403, 403),
    ({"Origin": "http://127.0.0.1"}, 403, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403, 403),
    ({"Origin": OURS, "Sec-Fetch-Site": "cross-site"}, 403, 403),
    ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, 403, 403),
]


@pytest.mark.parametrize(("sent", "reading", "writing"), FROM, ids=range(len(FROM)))
async def test_a_page_of_another_site_cannot_use_the_session(
    small_house: House, small_cast: Cast, sent: dict[str, str], reading: int, writing: int
) -> None:
    """What changes something needs proof that a page of ours asks; what only reads, that no other does."""
    headers = {name: value.replace(OURS, small_house.address) for name, value in sent.items()}
    with_session = headers | await sign_in(small_house, small_cast.member)
    read = await small_house.call("GET", "/api/me", headers=with_session)
    wrote = await small_house.call("POST", "/api/tokens", json={"name": "x"}, headers=with_session)
    assert (read.status_code, wrote.status_code) == (reading, writing)
    assert {each.json()["code"] for each in (read, wrote) if each.status_code == 403} <= {"cross_site"}
    # With a token it does not matter which page asks: no browser sends one by itself.
    token = await small_house.headers(small_cast.member)
    answer = await small_house.call("POST", "/api/tokens", json={"name": "x"}, headers=headers | token)
    assert answer.status_code == 201


async def test_a_page_of_another_site_cannot_sign_anyone_in(small_house: House, small_cast: Cast) -> None:
    """Else people would tell their secrets in someone else's name."""
    _, login = await post(small_house, "/api/logins", small_cast.member)
    for sent in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        status, problem = await post(small_house, "/api/session", None, {"secret": login["secret"]}, **sent)
        assert (status, problem["code"]) == (403, "cross_site")
    answer = await small_house.call(
        "POST", "/api/session", content=b'{"secret": "x"}', headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 415
    assert (await post(small_house, "/api/session", None, {"secret": login["secret"]}))[0] == 201


async def test_the_login_page_loads_nothing_and_runs_only_its_own_script(small_house: House) -> None:
    answer = await small_house.call("GET", "/login")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert not re.findall(r"""(?:src|href)=|https?://|\son\w+=|style=""", PAGE)
    assert "location.hash" in PAGE


async def test_the_scope_of_a_token_bounds_what_it_may(small_house: House, small_cast: Cast) -> None:
    db = small_house.world.denizen.db
    scopes: list[Role] = ["owner", "admin", "member"]
    seen = []
    for scope in scopes:
        _, secret = await db.write(tokens.create, small_cast.admin.id, "x", role=scope)
        me = await small_house.call("GET", "/api/me", headers=bearer(secret))
        seen.append(me.json()["role"])
    assert seen == ["admin", "admin", "member"]


# Keys


async def test_keys_are_kept_listed_by_their_end_and_never_shown(house: House, cast: Cast) -> None:
    value = "sk-proj-0123456789abcdef"
    house.world.denizen.vault = Vault(keys_in_memory())
    answer = await house.call("PUT", "/api/keys/OPENAI_API_KEY", cast.admin, json={"value": value})
    assert (answer.status_code, answer.json()["hint"]) == (200, "…cdef")
    own = {"value": "of mia herself, 16+", "whose": "me"}
    assert (await house.call("PUT", "/api/keys/CRM_TOKEN", cast.member, json=own)).status_code == 200

    async def listed(who: Entity) -> list[tuple[str, str]]:
        answer = await house.call("GET", "/api/keys", who)
        assert value not in answer.text
        return [(each["name"], each["whose"]) for each in answer.json()["keys"]]

    assert await listed(cast.admin) == [("OPENAI_API_KEY", "organization")]
    assert await listed(cast.member) == [("CRM_TOKEN", "me")]
    assert await listed(cast.eve) == []
    for path, who, expected in [
        ("/api/keys/OPENAI_API_KEY", cast.member, 403),
        ("/api/keys/OPENAI_API_KEY?whose=me", cast.admin, 404),
        ("/api/keys/CRM_TOKEN?whose=me", cast.admin, 404),
        ("/api/keys/OPENAI_API_KEY", cast.eve, 404),
        ("/api/keys/OPENAI_API_KEY", cast.service, 403),
        ("/api/keys/CRM_TOKEN?whose=me", cast.member, 204),
        ("/api/keys/OPENAI_API_KEY", cast.owner, 204),
    ]:
        assert (await house.call("DELETE", path, who)).status_code == expected, path
    refused = await house.call("PUT", "/api/keys/OPENAI_API_KEY", cast.member, json={"value": value})
    assert refused.status_code == 403
    wrong = await house.call("PUT", "/api/keys/lower", cast.admin, json={"value": value, "extra": 1})
    assert wrong.status_code == 422
    assert value not in wrong.text
