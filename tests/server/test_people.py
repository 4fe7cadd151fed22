"""The organization over HTTP: who is in it, who may let people in and go, and what is settled for all of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from denizen.access import roles
from denizen.agents.registry import Agent
from denizen.spaces.directory import Entity
from tests.server.conftest import House, session_headers


@dataclass
class Cast:
    """Noor owns the house, Ann is an admin, Sam and the agent Ada live in it; Eve owns another."""

    noor: Entity
    ann: Entity
    sam: Entity
    eve: Entity
    ada: Agent


async def make_cast(house: House) -> Cast:
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, ann, sam = [await world.person(name, organization=home) for name in ("Noor", "Ann", "Sam")]
    await world.denizen.db.write(roles.set_role, ann.id, "admin")
    eve = await world.person("Eve", organization=elsewhere)
    return Cast(noor, ann, sam, eve, await world.agent("Ada", organization=home))


@pytest.fixture
async def cast(house: House) -> Cast:
    return await make_cast(house)


@pytest.fixture
async def small_cast(small_house: House) -> Cast:
    return await make_cast(small_house)


UNSET = {"secret_hosts": {}, "remote_pictures": False, "keep_days": 0, "archive_expired": False}
"""Settings of an organization that nobody has changed."""


def problem(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_the_organization_is_shown_and_its_settings_to_those_who_run_it(house: House, cast: Cast) -> None:
    home = {"id": cast.noor.organization_id, "name": "Home"}
    settings = {"budget": None, "spaces_by": "member", **UNSET}
    for who, shown in [(cast.noor, settings), (cast.ann, settings), (cast.sam, None)]:
        answer = await house.call("GET", "/api/organization", who)
        assert answer.json() == {**home, "settings": shown}
    assert problem(await house.call("GET", "/api/organization", cast.ada)) == (403, "not_allowed")


async def test_owners_settle_what_holds_for_all(house: House, cast: Cast) -> None:
    path = "/api/organization"
    change = {"name": "Our house", "settings": {"spaces_by": "admin", "budget": {"dollars_per_day": 2.5}}}
    for who in (cast.ann, cast.sam):
        assert problem(await house.call("PATCH", path, who, json=change)) == (403, "not_allowed")

    changed = (await house.call("PATCH", path, cast.noor, json=change)).json()
    budget = {"dollars_per_day": "2.5", "tokens_per_day": None, "dollars": None, "tokens": None}
    settings = {"spaces_by": "admin", "budget": budget, **UNSET}
    assert (changed["name"], changed["settings"]) == ("Our house", settings)
    assert (await house.world.denizen.budgets.get(cast.noor.organization_id)) is not None

    opened = await house.call("POST", "/api/spaces", cast.sam, json={"name": "Den"})
    assert problem(opened) == (403, "not_allowed")
    assert (await house.call("POST", "/api/spaces", cast.ann, json={"name": "Den"})).status_code == 201
    again = await house.call("PATCH", path, cast.noor, json={"settings": {"spaces_by": None}})
    assert again.json()["settings"] == {"spaces_by": "member", "budget": budget, **UNSET}
    assert (await house.call("POST", "/api/spaces", cast.sam, json={"name": "Den"})).status_code == 201
    assert (await house.call("GET", path, cast.eve)).json()["name"] == "Elsewhere"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"nmae": "X"}, "did you mean 'name'"),
        ({"settings": {"space_by": "admin"}}, "did you mean 'spaces_by'"),
        ({"settings": {"spaces_by": "nobody"}}, "spaces_by"),
        ({"settings": {"budget": {"euros": 3}}}, "euros"),
        ({"name": " "}, "name is empty"),
        ({"name": "a\nb"}, "line break"),
        ([], "object"),
    ],
)
async def test_what_cannot_be_settled_is_refused_whole(
    small_house: House, small_cast: Cast, body: Any, told: str
) -> None:
    answer = await small_house.call("PATCH", "/api/organization", small_cast.noor, json=body)
    assert problem(answer) == (422, "invalid_input")
    assert told in answer.json()["detail"]
    assert (await small_house.call("GET", "/api/organization", small_cast.noor)).json()["name"] == "Home"


async def test_entities_are_listed_page_by_page(house: House, cast: Cast) -> None:
    async def pages(query: str) -> list[list[str]]:
        found: list[list[str]] = []
        after: str | None = ""
        while after is not None:
            page = (await house.call("GET", f"/api/entities?{query}&after={after}", cast.sam)).json()
            found.append([each["handle"] for each in page["entities"]])
            after = page["next"]
        return found

    assert await pages("limit=3") == [["ada", "ann", "noor"], ["sam"]]
    assert await pages("limit=4") == [["ada", "ann", "noor", "sam"]]
    assert await pages("kind=agent") == [["ada"]]
    assert await pages("kind=service") == [[]]
    assert problem(await house.call("GET", "/api/entities?kind=ghost", cast.sam)) == (422, "invalid_input")


async def test_an_entity_is_found_by_id_and_by_handle_and_only_at_home(house: House, cast: Cast) -> None:
    shown = {
        "id": cast.ann.id,
        "kind": "human",
        "handle": "ann",
        "name": "Ann",
        "role": "admin",
        "created_at": "2026-01-05T09:00:00Z",
        "left_at": None,
    }
    for named in (cast.ann.id, "@ann", "@ANN"):
        assert (await house.call("GET", f"/api/entities/{named}", cast.sam)).json() == shown
    for named in (cast.eve.id, "@eve", "@nobody", "%00", "ann", "@" + "x" * 500):
        for method in ("GET", "PATCH", "DELETE"):
            body = {"name": "X"} if method == "PATCH" else None
            answer = await house.call(method, f"/api/entities/{named}", cast.noor, json=body)
            assert problem(answer) == (404, "not_found")


async def test_admins_let_people_and_services_in(house: House, cast: Cast) -> None:
    async def let_in(who: Entity, **wanted: Any) -> httpx2.Response:
        return await house.call("POST", "/api/entities", who, json=wanted)

    assert problem(await let_in(cast.sam, name="Kim")) == (403, "not_allowed")
    kim = await let_in(cast.ann, name="Kim Lee")
    assert kim.status_code == 201
    assert [kim.json()[key] for key in ("kind", "handle", "name", "role")] == ["human", "kim-lee", "Kim Lee", "member"]
    build = (await let_in(cast.ann, kind="service", name="Build", handle="@CI")).json()
    assert (build["kind"], build["handle"], build["role"]) == ("service", "ci", "service")
    assert problem(await let_in(cast.ann, name="Kim", handle="ci")) == (409, "handle_taken")

    assert problem(await let_in(cast.ann, name="Bo", role="admin")) == (403, "not_allowed")
    assert (await let_in(cast.noor, name="Bo", role="admin")).json()["role"] == "admin"
    for wrong in [{"kind": "service", "name": "X", "role": "member"}, {"kind": "agent", "name": "X"}, {"name": ""}]:
        assert problem(await let_in(cast.noor, **wrong)) == (422, "invalid_input")
    assert problem(await let_in(cast.noor, name="X", handle="a b")) == (422, "invalid_input")


async def test_letting_in_again_with_the_same_key_is_letting_in_once(house: House, cast: Cast) -> None:
    key = {"Idempotency-Key": "kim"}

    async def let_in(who: Entity, **wanted: Any) -> httpx2.Response:
        return await house.call("POST", "/api/entities", who, headers=key, json=wanted)

    answers = await asyncio.gather(*(let_in(cast.noor, name="Kim") for _ in range(5)))
    assert {(answer.status_code, answer.text) for answer in answers} == {(201, answers[0].text)}
    for other in [{"name": "Kim", "handle": "kk"}, {"name": "Kim", "role": "admin"}, {"name": "Jo"}]:
        assert problem(await let_in(cast.noor, **other)) == (422, "idempotency_key_reused")
    assert problem(await let_in(cast.ann, name="Kim")) == (409, "handle_taken")


async def test_names_are_for_admins_to_change_and_roles_for_owners(house: House, cast: Cast) -> None:
    async def change(who: Entity | Agent, whom: str, **fields: Any) -> httpx2.Response:
        return await house.call("PATCH", f"/api/entities/{whom}", who, json=fields)

    assert problem(await change(cast.sam, "@sam", name="Sammy")) == (403, "not_allowed")
    assert (await change(cast.ann, "@sam", name="Sammy")).json()["name"] == "Sammy"
    for role in ("admin", "owner"):
        assert problem(await change(cast.ann, "@sam", role=role)) == (403, "not_allowed")
    assert problem(await change(cast.ann, "@noor", role="member")) == (403, "not_allowed")
    # What is so already is no change.
    assert (await change(cast.ann, "@sam", role="member")).status_code == 200

    assert problem(await change(cast.noor, "@noor", role="member")) == (422, "invalid_input")
    assert (await change(cast.noor, "@sam", role="owner", name="Sam")).json()["role"] == "owner"
    assert (await change(cast.noor, "@noor", role="member")).json()["role"] == "member"
    assert problem(await change(cast.noor, "@ann", name="Anna")) == (403, "not_allowed")
    assert problem(await change(cast.sam, "@ada", name="Eda")) == (422, "invalid_input")


async def test_a_refused_change_changes_nothing_of_it(house: House, cast: Cast) -> None:
    answer = await house.call("PATCH", "/api/entities/@sam", cast.noor, json={"role": "admin", "name": " "})
    assert problem(answer) == (422, "invalid_input")
    assert (await house.call("GET", "/api/entities/@sam", cast.noor)).json()["role"] == "member"


async def test_whoever_is_let_go_is_let_in_nowhere(house: House, cast: Cast) -> None:
    world = house.world
    hall = await world.space("Hall", cast.noor, cast.sam, organization=cast.noor.organization_id)
    await house.say(cast.sam, "I was here.", hall)
    assert problem(await house.call("DELETE", "/api/entities/@noor", cast.sam)) == (403, "not_allowed")
    signed_in = await house.call("POST", "/api/session", json={"secret": house.secrets[cast.sam.id]})
    session = session_headers(house, signed_in)
    assert (await house.call("GET", "/api/me", headers=session)).status_code == 200

    async with house.stream(cast.sam, hall) as stream:
        gone = await house.call("DELETE", f"/api/entities/{cast.sam.id}", cast.ann)
        assert (gone.status_code, gone.content) == (204, b"")
        assert [event.name for event in await stream.rest() if event.name != "agent.status"] == []

    assert problem(await house.call("GET", "/api/me", cast.sam)) == (401, "unauthorized")
    assert problem(await house.call("GET", "/api/me", headers=session)) == (401, "unauthorized")
    assert problem(await house.call("DELETE", f"/api/entities/{cast.sam.id}", cast.ann)) == (404, "not_found")
    assert problem(await house.call("GET", "/api/entities/@sam", cast.ann)) == (404, "not_found")
    shown = (await house.call("GET", f"/api/entities/{cast.sam.id}", cast.ann)).json()
    assert (shown["name"], shown["left_at"]) == ("Sam", "2026-01-05T09:00:00Z")
    page = (await house.call("GET", f"/api/spaces/{hall.id}/messages", cast.noor)).json()
    assert [each["author"]["name"] for each in page["messages"]] == ["Sam"]
    taken = await house.call("POST", "/api/entities", cast.ann, json={"name": "Sam"})
    assert problem(taken) == (409, "handle_taken")
    assert "has left" in taken.json()["detail"]


async def test_admins_are_let_go_by_owners_and_the_last_owner_by_nobody(house: House, cast: Cast) -> None:
    async def let_go(who: Entity, whom: str) -> httpx2.Response:
        return await house.call("DELETE", f"/api/entities/{whom}", who)

    assert problem(await let_go(cast.ann, "@noor")) == (403, "not_allowed")
    assert problem(await let_go(cast.noor, "@noor")) == (422, "invalid_input")
    assert problem(await let_go(cast.noor, "@ada")) == (422, "invalid_input")
    assert (await let_go(cast.ann, "@ann")).status_code == 204
    assert problem(await house.call("GET", "/api/me", cast.ann)) == (401, "unauthorized")
