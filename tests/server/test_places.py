"""Spaces over HTTP: opened, changed, joined and left, read and searched."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from denizen.agents.registry import Agent
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House


@dataclass
class Cast:
    """Noor owns the house; Sam, Kim and the agent Ada live in it."""

    noor: Entity
    sam: Entity
    kim: Entity
    ada: Agent


@pytest.fixture
async def cast(house: House) -> Cast:
    world = house.world
    noor, sam, kim = [await world.person(name) for name in ("Noor", "Sam", "Kim")]
    return Cast(noor, sam, kim, await world.agent("Ada"))


def problem(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def opened(house: House, who: Entity, **wanted: Any) -> dict[str, Any]:
    answer = await house.call("POST", "/api/spaces", who, json={"name": "Kitchen", **wanted})
    assert answer.status_code == 201, answer.text
    return answer.json()


def names(space: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["name"], each["role"]) for each in space["members"]]


async def test_a_space_is_opened_with_those_who_shall_be_in_it(house: House, cast: Cast) -> None:
    space = await opened(house, cast.sam, name=" Den ", members=["@ada", cast.kim.id, "@sam"], private=True)

    assert {key: space[key] for key in space if key not in ("id", "members")} == {
        "kind": "conversation",
        "name": "Den",
        "private": True,
        "floor": "one",
        "agent_run_limit": 12,
        "stopped": False,
        "created_at": "2026-01-05T09:00:00Z",
        "last_seq": 0,
        "read_seq": 0,
        "unread": 0,
        "unread_mentions": 0,
        "statuses": [],
    }
    assert sorted(names(space)) == [("Ada", "member"), ("Kim", "member"), ("Sam", "owner")]
    assert (await house.call("GET", f"/api/spaces/{space['id']}", cast.kim)).json() == space
    assert problem(await house.call("GET", f"/api/spaces/{space['id']}", cast.noor)) == (404, "not_found")


async def test_nobody_is_put_into_a_space_who_is_not_there(house: House, cast: Cast) -> None:
    elsewhere = await house.world.denizen.organizations.create("Elsewhere")
    eve = await house.world.person("Eve", organization=elsewhere)
    dead = await house.world.agent("Bea", organization=cast.noor.organization_id)
    await house.world.denizen.agents.delete(dead)
    await house.world.denizen.people.remove(cast.kim)

    for who in ("@eve", eve.id, "@nobody", dead.id, "@kim", cast.kim.id):
        answer = await house.call("POST", "/api/spaces", cast.sam, json={"name": "Den", "members": [who]})
        assert problem(answer) == (404, "not_found")
    assert (await house.call("GET", "/api/spaces", cast.sam)).json() == {"spaces": [], "next": None}
    assert problem(await house.call("POST", "/api/spaces", cast.ada, json={"name": "Den"})) == (403, "not_allowed")
    for wrong in [{}, {"name": ""}, {"name": "Den", "member": []}, {"name": "Den", "members": ["@ada"] * 201}]:
        assert problem(await house.call("POST", "/api/spaces", cast.sam, json=wrong)) == (422, "invalid_input")


async def test_opening_again_with_the_same_key_is_opening_once(house: House, cast: Cast) -> None:
    key = {"Idempotency-Key": "den"}

    async def open_den(who: Entity, **wanted: Any) -> httpx2.Response:
        return await house.call("POST", "/api/spaces", who, headers=key, json=wanted)

    answers = await asyncio.gather(*(open_den(cast.sam, name="Den", members=["@ada"]) for _ in range(5)))

    assert {(answer.status_code, answer.text) for answer in answers} == {(201, answers[0].text)}
    for other in [{"name": "Cave"}, {"name": "Den", "private": True}, {"name": "Den", "floor": "all"}]:
        assert problem(await open_den(cast.sam, **other)) == (422, "idempotency_key_reused")
    assert (await open_den(cast.kim, name="Den")).json()["id"] != answers[0].json()["id"]
    assert len((await house.call("GET", "/api/spaces", cast.sam)).json()["spaces"]) == 1


async def test_members_set_the_floor_of_a_space(house: House, cast: Cast) -> None:
    space = await opened(house, cast.sam, members=["@kim", "@ada"], floor="addressed", agent_run_limit=3)
    path = f"/api/spaces/{space['id']}"
    assert (space["floor"], space["agent_run_limit"]) == ("addressed", 3)
    changed = (await house.call("PATCH", path, cast.kim, json={"floor": "all", "agent_run_limit": 0})).json()
    assert (changed["floor"], changed["agent_run_limit"], changed["name"]) == ("all", 0, "Kitchen")
    for wrong in [{"floor": "everyone"}, {"agent_run_limit": -1}, {"agent_run_limit": "many"}]:
        assert problem(await house.call("PATCH", path, cast.kim, json=wrong)) == (422, "invalid_input")
        assert problem(await house.call("POST", "/api/spaces", cast.sam, json={"name": "X", **wrong})) == (
            422,
            "invalid_input",
        )
    assert (await house.call("GET", path, cast.sam)).json() == changed


async def test_a_space_tells_that_its_agents_have_stopped_and_members_let_them_go_on(house: House, cast: Cast) -> None:
    bo = await house.world.agent("Bo")
    space = await opened(house, cast.sam, members=["@ada", "@bo"], floor="all", agent_run_limit=1)
    path = f"/api/spaces/{space['id']}"
    for text in ("One", "Two"):
        await house.world.denizen.spaces.post(space["id"], cast.ada, text)
    assert (await house.call("GET", path, cast.sam)).json()["stopped"]
    assert [each["stopped"] for each in (await house.call("GET", "/api/spaces", cast.sam)).json()["spaces"]] == [True]

    assert problem(await house.call("POST", f"{path}/continue", cast.kim)) == (404, "not_found")
    assert problem(await house.call("POST", f"{path}/continue", cast.ada)) == (403, "not_allowed")
    assert not (await house.call("POST", f"{path}/continue", cast.sam)).json()["stopped"]
    assert [event.wakes for event in await house.world.denizen.minds.inbox(bo)] == [True, True]


async def test_members_rename_and_hide_a_space_and_its_agents_hear_of_it(house: House, cast: Cast) -> None:
    space = await opened(house, cast.sam, members=["@kim", "@ada"])
    path = f"/api/spaces/{space['id']}"

    changed = (await house.call("PATCH", path, cast.kim, json={"name": "Big kitchen"})).json()
    assert (changed["name"], changed["private"]) == ("Big kitchen", False)
    changed = (await house.call("PATCH", path, cast.kim, json={"private": True})).json()
    assert (changed["name"], changed["private"]) == ("Big kitchen", True)
    for wrong in [{"name": " "}, {"Name": "X"}, {"private": "perhaps"}]:
        assert problem(await house.call("PATCH", path, cast.kim, json=wrong)) == (422, "invalid_input")
    assert (await house.call("PATCH", path, cast.kim, json={})).json() == changed
    assert problem(await house.call("PATCH", path, cast.ada, json={"name": "Mine"})) == (403, "not_allowed")

    await house.world.denizen.spaces.post(space["id"], cast.sam, "@ada Hello")
    await house.world.run()
    assert "Big kitchen" in (await house.world.prompts(cast.ada))[0][0]


async def test_spaces_come_page_by_page(house: House, cast: Cast) -> None:
    made = [(await opened(house, cast.sam, name=f"Space {number}"))["id"] for number in range(5)]
    found: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        page = (await house.call("GET", f"/api/spaces?limit=2&after={after}", cast.sam)).json()
        found.append([each["id"] for each in page["spaces"]])
        after = page["next"]
    assert [len(page) for page in found] == [2, 2, 1]
    assert [each for page in found for each in page] == sorted(made)
    assert problem(await house.call("GET", "/api/spaces?limit=0", cast.sam)) == (422, "invalid_input")


async def test_members_come_change_and_go(house: House, cast: Cast) -> None:
    space = await opened(house, cast.sam)
    path = f"/api/spaces/{space['id']}/members"

    async def now() -> list[tuple[str, str, str]]:
        shown = (await house.call("GET", f"/api/spaces/{space['id']}", cast.sam)).json()
        return sorted((each["name"], each["role"], each["attention"]) for each in shown["members"])

    kim = await house.call("POST", path, cast.sam, json={"entity": "@kim"})
    assert (kim.status_code, kim.json()["name"], kim.json()["role"]) == (201, "Kim", "member")
    ada = await house.call("POST", path, cast.kim, json={"entity": cast.ada.id, "attention": "mentions"})
    assert (ada.status_code, ada.json()["attention"]) == (201, "mentions")
    again = await house.call("POST", path, cast.kim, json={"entity": "@ada"})
    assert again.json() == ada.json()

    quiet = await house.call("PATCH", f"{path}/@ada", cast.kim, json={"attention": "none"})
    assert quiet.json()["attention"] == "none"
    # What a person attends to is their own; who runs the space is for those who do.
    refused = [
        await house.call("PATCH", f"{path}/@sam", cast.kim, json={"attention": "none"}),
        await house.call("PATCH", f"{path}/@kim", cast.kim, json={"role": "owner"}),
        await house.call("POST", path, cast.kim, json={"entity": "@noor", "role": "admin"}),
        await house.call("DELETE", f"{path}/@sam", cast.kim),
        await house.call("POST", path, cast.ada, json={"entity": "@noor"}),
    ]
    assert [problem(each) for each in refused] == [(403, "not_allowed")] * len(refused)
    assert await now() == [("Ada", "member", "none"), ("Kim", "member", "all"), ("Sam", "owner", "all")]

    assert (await house.call("PATCH", f"{path}/@kim", cast.sam, json={"role": "admin"})).json()["role"] == "admin"
    assert (await house.call("DELETE", f"{path}/@sam", cast.kim)).status_code == 204
    assert (await house.call("DELETE", f"{path}/@ada", cast.kim)).status_code == 204
    for nobody in ("@ada", "@noor", cast.sam.id, "%00"):
        assert problem(await house.call("DELETE", f"{path}/{nobody}", cast.kim)) == (404, "not_found")
    assert (await house.call("DELETE", f"{path}/{cast.kim.id}", cast.kim)).status_code == 204
    assert problem(await house.call("GET", f"/api/spaces/{space['id']}", cast.kim)) == (404, "not_found")
    assert await house.world.denizen.spaces.members(space["id"]) == []


async def test_those_who_run_the_organization_run_the_spaces_they_are_in(house: House, cast: Cast) -> None:
    hall = await house.world.space("Hall", cast.noor, cast.sam, cast.kim)
    path = f"/api/spaces/{hall.id}/members"
    assert problem(await house.call("DELETE", f"{path}/@kim", cast.sam)) == (403, "not_allowed")
    assert (await house.call("DELETE", f"{path}/@kim", cast.noor)).status_code == 204
    other = await house.world.space("Other", cast.sam, cast.kim)
    answer = await house.call("DELETE", f"/api/spaces/{other.id}/members/@kim", cast.noor)
    assert problem(answer) == (404, "not_found")


async def test_what_is_unread_is_known_and_marked(house: House, cast: Cast) -> None:
    hall = await house.world.space("Hall", cast.noor, cast.sam)
    for number in range(3):
        await house.say(cast.noor, f"{number}", hall)

    async def shown(who: Entity) -> tuple[int, int, int]:
        [space] = (await house.call("GET", "/api/spaces", who)).json()["spaces"]
        return space["last_seq"], space["read_seq"], space["unread"]

    path = f"/api/spaces/{hall.id}/read"
    assert [await shown(cast.noor), await shown(cast.sam)] == [(3, 3, 0), (3, 0, 3)]
    marked = await house.call("PUT", path, cast.sam, json={"seq": 2})
    assert marked.json() == {"space_id": hall.id, "last_seq": 3, "read_seq": 2, "unread": 1, "unread_mentions": 0}
    assert [await shown(cast.noor), await shown(cast.sam)] == [(3, 3, 0), (3, 2, 1)]
    for wrong in (-1, 4, 2**70, None, "x"):
        assert problem(await house.call("PUT", path, cast.sam, json={"seq": wrong})) == (422, "invalid_input")
    assert await shown(cast.sam) == (3, 2, 1)


async def test_a_reader_hears_that_the_space_has_changed(house: House, cast: Cast) -> None:
    """And of the agents that come: their status, without a new connection."""
    hall = await house.world.space("Hall", cast.noor, cast.sam)
    changed = {"type": "space.changed", "space": hall.id, "kind": "conversation", "private": False, "last_seq": 0}
    async with house.stream(cast.noor, hall) as stream:
        await house.call("POST", f"/api/spaces/{hall.id}/members", cast.sam, json={"entity": "@ada"})
        heard = await stream.until("space.changed")
        assert [(each.name, each.id) for each in heard] == [("agent.status", None), ("space.changed", None)]
        assert heard[-1].data == changed | {"name": "Hall"}
        await house.call("PATCH", f"/api/spaces/{hall.id}", cast.sam, json={"name": "Great hall"})
        assert (await stream.until("space.changed"))[-1].data == changed | {"name": "Great hall"}


async def test_leaving_ends_the_stream_at_once(house: House, cast: Cast) -> None:
    hall = await house.world.space("Hall", cast.noor, cast.sam)
    async with house.stream(cast.sam, hall) as stream:
        await house.call("DELETE", f"/api/spaces/{hall.id}/members/@sam", cast.sam)
        assert await stream.rest() == []


@pytest.fixture
async def talk(house: House, cast: Cast) -> tuple[Space, Space]:
    """Two spaces in which tea was spoken of; Kim is in the first only."""
    world = house.world
    hall, attic = await world.space("Hall", cast.sam, cast.kim), await world.space("Attic", cast.sam)
    for where, who, text in [
        (hall, cast.sam, "Tea at four?"),
        (hall, cast.kim, "No *tea* for me"),
        (attic, cast.sam, "Hide the tea"),
        (hall, cast.sam, "Steam"),
    ]:
        world.clock.advance(1)
        await world.say(who, text, where)
    return hall, attic


async def test_words_are_found_in_ones_own_spaces(house: House, cast: Cast, talk: tuple[Space, Space]) -> None:
    hall, attic = talk

    async def found(who: Entity, **query: Any) -> list[str]:
        answer = await house.call("GET", "/api/messages/search", who, params={"q": "TEA", **query})
        assert answer.status_code == 200, answer.text
        assert answer.json()["next"] is None
        return [each["text"] for each in answer.json()["messages"]]

    assert await found(cast.sam) == ["Hide the tea", "No *tea* for me", "Tea at four?"]
    assert await found(cast.kim) == ["No *tea* for me", "Tea at four?"]
    assert await found(cast.noor) == []
    assert await found(cast.sam, space=attic.id) == ["Hide the tea"]
    assert await found(cast.sam, author="@kim") == ["No *tea* for me"]
    assert await found(cast.sam, author=cast.sam.id, space=hall.id) == ["Tea at four?"]
    assert await found(cast.sam, q="tea four") == ["Tea at four?"]


async def test_a_search_goes_on_where_it_stopped(house: House, cast: Cast, talk: tuple[Space, Space]) -> None:
    query: dict[str, Any] = {"q": "tea", "limit": 1}
    found: list[str] = []
    while True:
        page = (await house.call("GET", "/api/messages/search", cast.sam, params=query)).json()
        found += [each["text"] for each in page["messages"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]
    assert found == ["Hide the tea", "No *tea* for me", "Tea at four?"]


async def test_what_one_may_not_know_of_is_not_searched(house: House, cast: Cast, talk: tuple[Space, Space]) -> None:
    _, attic = talk
    elsewhere = await house.world.denizen.organizations.create("Elsewhere")
    eve = await house.world.person("Eve", organization=elsewhere)

    async def ask(who: Entity | Agent, **query: str) -> tuple[int, str]:
        return problem(await house.call("GET", "/api/messages/search", who, params={"q": "tea", **query}))

    for space in (attic.id, "no-such-space", "\0"):
        assert await ask(cast.kim, space=space) == (404, "not_found")
    for author in (eve.id, "@eve", "@nobody"):
        assert await ask(cast.kim, author=author) == (404, "not_found")
    assert await ask(cast.ada) == (403, "not_allowed")
    for wrong in ({"q": "?"}, {"q": ""}, {"q": "x" * 201}, {"before": "!!"}, {"limit": "0"}, {"limit": "101"}):
        assert await ask(cast.kim, **wrong) == (422, "invalid_input")


async def test_members_whose_names_look_alike_are_marked(house: House) -> None:
    """Also where letters of another script, or nothing that can be seen, make the difference."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    other = await world.denizen.people.create("N\u200bооr", handle="n2")
    kitchen = await world.space("Kitchen", noor, sam)
    members = (await house.call("GET", f"/api/spaces/{kitchen.id}", noor)).json()["members"]
    assert [each["namesake"] for each in members] == [False, False]
    added = await house.call("POST", f"/api/spaces/{kitchen.id}/members", noor, json={"entity": other.id})
    assert added.json()["namesake"] is True
    members = (await house.call("GET", f"/api/spaces/{kitchen.id}", noor)).json()["members"]
    assert {each["id"] for each in members if each["namesake"]} == {noor.id, other.id}
