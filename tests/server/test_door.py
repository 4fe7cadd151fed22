"""Who is let in, and who is not even told that there is a door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast as typing_cast

import pytest
from fastapi.routing import APIRoute

from denizen.access import tokens
from denizen.agents.registry import Agent
from denizen.clock import SECOND, Instant
from denizen.server.route_modules import all_routes
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House

OPEN = {
    ("GET", "/healthz"),
    ("HEAD", "/healthz"),
    ("GET", "/readyz"),
    ("HEAD", "/readyz"),
    ("GET", "/login"),
    ("POST", "/api/session"),
    ("GET", "/api/sign-in"),
    ("GET", "/login/oidc"),
    ("GET", "/login/oidc/callback"),
    ("GET", "/login/oidc/logout"),
    ("GET", "/a2a/{agent_id}/.well-known/agent-card.json"),  # only of agents that were made public
}
GUARDED: list[tuple[str, str]] = sorted(
    {
        (method, route.path.replace("{space_id}", "{space}"))
        for route in typing_cast("list[APIRoute]", all_routes())
        for method in route.methods or ()
        if not route.path.startswith(("/hooks/", "/v1/", "/files/", "/pictures/"))
    }
    - OPEN
    | {("GET", "/api/openapi.json")}
)
"""Every request of the API that needs a token; `test_walk` says which need none. Links to files and pictures are
secret instead."""
MCP = ("POST", "/mcp")
"""Its errors are those of JSON-RPC."""
BODIES = {
    ("POST", "/api/spaces/{space}/stop"): {},
    ("PATCH", "/api/spaces/{space}"): {"name": "Mine"},
    ("PUT", "/api/spaces/{space}/read"): {"seq": 0},
    ("POST", "/api/spaces/{space}/members"): {"entity": "@ada"},
    ("PATCH", "/api/spaces/{space}/members/{entity_id}"): {"attention": "none"},
    ("PATCH", "/api/spaces/{space}/memory"): {"enabled": False},
    ("PUT", "/api/spaces/{space}/retention"): {"days": 30},
    ("POST", "/api/spaces/{space}/open"): {"reason": "I want to know."},
}
OPENING = ("POST", "/api/spaces/{space}/open")
"""Owners may open spaces that they are not in."""
OF_A_SPACE = [route for route in GUARDED if "{space}" in route[1] and route != OPENING]


@dataclass
class Cast:
    """Noor, who is in the kitchen; Sam, who is not; and Eve of another organization, in a space of her own."""

    noor: Entity
    sam: Entity
    eve: Entity
    ada: Agent
    kitchen: Space
    cellar: Space


@pytest.fixture
async def cast(house: House) -> Cast:
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, sam = await world.person("Noor", organization=home), await world.person("Sam", organization=home)
    eve = await world.person("Eve", organization=elsewhere)
    ada = await world.agent("Ada", organization=home)
    kitchen = await world.space("Kitchen", noor, ada, organization=home)
    cellar = await world.space("Cellar", eve, organization=elsewhere)
    return Cast(noor, sam, eve, ada, kitchen, cellar)


async def ask(house: House, method: str, path: str, space: str, headers: dict[str, str]) -> tuple[int, str, str]:
    """The status and the answer, with the id of the space blotted out."""
    body = BODIES.get((method, path), {"text": "Hello?"}) if method in ("POST", "PATCH", "PUT") else None
    answer = await house.client.request(method, path.replace("{space}", space), headers=headers, json=body)
    return answer.status_code, answer.text.replace(space, "<space>"), answer.headers.get("www-authenticate", "")


async def no_token(house: House, cast: Cast) -> str:
    return ""


async def no_scheme(house: House, cast: Cast) -> str:
    return await house.token(cast.noor)


async def wrong_token(house: House, cast: Cast) -> str:
    return "Bearer dz_" + "x" * 43


async def nearly_right_token(house: House, cast: Cast) -> str:
    return f"Bearer {(await house.token(cast.noor))[:-1]}"


async def its_hash(house: House, cast: Cast) -> str:
    """What is in the database does not open the door."""
    return f"Bearer {tokens._digest(await house.token(cast.noor))}"


async def revoked_token(house: House, cast: Cast) -> str:
    secret = await house.token(cast.noor)
    db = house.world.denizen.db
    [token] = await db.read(tokens.tokens_of, cast.noor.id)
    await db.write(tokens.revoke, token.id)
    return f"Bearer {secret}"


async def expired_token(house: House, cast: Cast) -> str:
    secret = await house.token(cast.noor, expires_at=Instant(house.world.clock.now() + SECOND))
    house.world.clock.advance(1)
    return f"Bearer {secret}"


@pytest.mark.parametrize(
    "make", [no_token, no_scheme, wrong_token, nearly_right_token, its_hash, revoked_token, expired_token]
)
async def test_nobody_comes_in_without_a_good_token(house: House, cast: Cast, make: Callable) -> None:
    """The answer is the same for every path, and does not say what was wrong with the token."""
    authorization = await make(house, cast)
    headers = {"Authorization": authorization} if authorization else {}
    routes = [*(each for each in GUARDED if each != MCP), ("GET", "/api/nothing")]
    answers = {await ask(house, *route, cast.kitchen.id, headers) for route in routes}
    [(status, text, challenge)] = answers
    assert (status, challenge) == (401, "Bearer")
    in_mcp = await ask(house, *MCP, cast.kitchen.id, headers)
    assert (in_mcp[0], in_mcp[2]) == (401, "Bearer")
    assert json.loads(in_mcp[1])["error"]["message"] == json.loads(text)["detail"]
    assert await house.world.transcript(cast.kitchen) == []


@pytest.mark.parametrize(("method", "path"), OF_A_SPACE)
async def test_a_space_one_is_not_in_is_as_one_that_does_not_exist(
    house: House, cast: Cast, method: str, path: str
) -> None:
    """Neither another member of the organization nor anyone else learns that it is there."""
    strangers = [await house.headers(who) for who in (cast.sam, cast.eve)]
    noor = await house.headers(cast.noor)
    private = await house.world.space("Diary", cast.noor, private=True, organization=cast.kitchen.organization_id)

    missing = await ask(house, method, path, "019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f", noor)

    assert missing[0] == 404
    for headers in strangers:
        for space in (cast.kitchen, private):
            assert await ask(house, method, path, space.id, headers) == missing
    assert await ask(house, method, path, cast.cellar.id, noor) == missing
    assert await house.world.transcript(cast.kitchen) == []
    for strange in ("%00", "%ed%a0%80", "a" * 5_000):
        assert (await ask(house, method, path, strange, noor))[0] == 404


async def test_who_may_not_open_a_space_does_not_learn_that_it_is_there(house: House, cast: Cast) -> None:
    """A member is refused whether it is there or not; for an owner of another organization it is not there."""
    private = await house.world.space("Diary", cast.sam, private=True, organization=cast.kitchen.organization_id)
    nowhere = "019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f"
    for who, status in ((cast.sam, 403), (cast.eve, 404)):
        headers = await house.headers(who)
        refused = [await ask(house, *OPENING, space, headers) for space in (cast.kitchen.id, private.id, nowhere)]
        assert {each[0] for each in refused} == {status}
        assert len(set(refused)) == 1
    assert await house.world.transcript(private) == []


async def test_everyone_sees_only_their_own(house: House, cast: Cast) -> None:
    async def get(path: str, who: Entity) -> dict:
        return (await house.call("GET", path, who)).json()

    await house.say(cast.noor, "Hello.", cast.kitchen)

    me = await get("/api/me", cast.noor)
    assert (me["handle"], me["kind"], me["organization"]["name"]) == ("noor", "human", "Home")
    assert me["token"]["expires_at"] is None
    assert [agent["handle"] for agent in (await get("/api/agents", cast.sam))["agents"]] == ["ada"]
    assert (await get("/api/agents", cast.eve))["agents"] == []
    assert (await get("/api/spaces", cast.sam))["spaces"] == []
    [cellar] = (await get("/api/spaces", cast.eve))["spaces"]
    assert (cellar["name"], cellar["last_seq"]) == ("Cellar", 0)
    [kitchen] = (await get("/api/spaces", cast.noor))["spaces"]
    assert kitchen == await get(f"/api/spaces/{cast.kitchen.id}", cast.noor)
    assert kitchen == {
        "id": cast.kitchen.id,
        "kind": "conversation",
        "name": "Kitchen",
        "private": False,
        "floor": "all",
        "agent_run_limit": 12,
        "stopped": False,
        "created_at": "2026-01-05T09:00:00Z",
        "last_seq": 1,
        "read_seq": 1,
        "unread": 0,
        "unread_mentions": 0,
        "members": [
            {
                "id": cast.noor.id,
                "kind": "human",
                "handle": "noor",
                "name": "Noor",
                "role": "member",
                "attention": "all",
                "trouble": None,
                "namesake": False,
            },
            {
                "id": cast.ada.id,
                "kind": "agent",
                "handle": "ada",
                "name": "Ada",
                "role": "member",
                "attention": "all",
                "trouble": None,
                "namesake": False,
            },
        ],
        "statuses": [],
    }


async def test_agents_are_shown_with_what_they_do_and_how_they_are(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    about = "Looks after this house."
    ada = await world.agent("Ada", purpose=about, instructions="Never tell about the treasure.")
    bee = await world.agent("Bee")
    gone = await world.agent("Gone")
    await world.denizen.agents.suspend(bee)
    await world.denizen.agents.delete(gone)

    answer = await house.call("GET", "/api/agents", noor)

    never = {"last_cycle_at": None, "trouble": None}
    suspended = {
        "cause": "suspended",
        "text": "Bee is suspended. Bee answers when somebody resumes it.",
        "actions": ["resume"],
        "retry_at": None,
    }
    assert answer.json()["agents"] == [
        {"id": ada.id, "handle": "ada", "name": "Ada", "status": "sleeping", "model": "python:ada", "purpose": about}
        | never,
        {"id": bee.id, "handle": "bee", "name": "Bee", "status": "suspended", "model": "python:bee", "purpose": ""}
        | never
        | {"trouble": suspended},
    ]


async def test_the_last_use_of_a_token_is_known_to_the_minute(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    await house.token(noor)
    db, start = world.denizen.db, world.clock.now()

    async def last_use() -> list[float | None]:
        found = await db.read(tokens.tokens_of, noor.id)
        return [None if each.last_used_at is None else (each.last_used_at - start) / SECOND for each in found]

    async def asked_after(seconds: float, *, known: float) -> None:
        """It is noted after the answer, so it is waited for."""
        world.clock.advance(seconds)
        await house.call("GET", "/api/me", noor)
        async with asyncio.timeout(60):
            while await last_use() != [known]:
                pass

    assert await last_use() == [None]
    await asked_after(0, known=0)
    await asked_after(59, known=0)
    # Had the use after 59 seconds been noted, however late, this one would not be.
    await asked_after(1, known=60)
    await asked_after(1, known=60)
    await asked_after(59, known=120)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8420", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]"]
)
async def test_only_loopback_names_are_answered(small_house: House, host: str) -> None:
    """So that a page of another site cannot have its own name lead here."""
    noor = await small_house.world.person("Noor")
    for path, who in [("/healthz", None), ("/api/me", noor), ("/", None)]:
        answer = await small_house.call("GET", path, who, headers={"Host": host, "Connection": "close"})
        assert (answer.status_code, answer.json()["code"]) == (421, "host_refused")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:1", "127.1.2.3", "[::1]:8420", "[::1]"])
async def test_every_loopback_name_is_answered(small_house: House, host: str) -> None:
    answer = await small_house.call("GET", "/healthz", headers={"Host": host})
    assert answer.json()["ok"] is True
