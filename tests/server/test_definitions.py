"""Definitions and files that come over HTTP: nobody does with them what they could not do one by one."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.access import roles
from denizen.server.context import ServerLimits
from denizen.server.routes.portability import _until_refused
from denizen.spaces.directory import Entity, Organization
from tests.cycles.test_server_budget import from_a_provider
from tests.server.conftest import House, served
from tests.world import World

PROGRAM = {"name": "Cleo", "mcp": {"files": {"command": "ls"}}}


async def people(world: World) -> tuple[Organization, Entity, Entity]:
    """An owner and an admin."""
    home = await world.denizen.organizations.create("Home")
    olga, amin = [await world.person(name, organization=home) for name in ("Olga", "Amin")]
    await world.denizen.db.write(roles.set_role, amin.id, "admin")
    return home, olga, amin


async def apply(house: House, who: Entity, *documents: dict[str, Any]) -> tuple[int, str]:
    body = {"documents": [{"place": f"a.yaml:{at}", "document": each} for at, each in enumerate(documents, 1)]}
    answer = await house.call("POST", "/api/apply", who, json=body)
    told = answer.json()
    return answer.status_code, told.get("detail") or ", ".join(each["action"] for each in told["changes"])


async def test_what_starts_programs_is_for_owners_to_define(small_house: House) -> None:
    _, olga, amin = await people(small_house.world)
    status, told = await apply(small_house, amin, {"name": "Dora"}, PROGRAM)
    assert (status, "mcp.files" in told) == (403, True)
    listed = await small_house.call("GET", "/api/agents", amin)
    assert listed.json()["agents"] == [], "not even the harmless half of it"
    assert await apply(small_house, olga, PROGRAM) == (200, "created")
    assert await apply(small_house, amin, {**PROGRAM, "instructions": "Be brief."}) == (200, "changed")
    status, _ = await apply(small_house, amin, {**PROGRAM, "mcp": {"files": {"command": "rm"}}})
    assert status == 403


async def test_a_budget_in_dollars_without_a_price_is_refused_with_the_name_of_the_agent(small_house: House) -> None:
    _, olga, _ = await people(small_house.world)
    small_house.world.denizen.models.register("python:dear", from_a_provider())
    dear = {"name": "Dora", "model": "python:dear", "budget": {"dollars_per_day": 5}}
    documents = [{"place": f"a.yaml:{at}", "document": each} for at, each in enumerate(({"name": "Cleo"}, dear), 1)]
    body = {"documents": documents}
    answer = await small_house.call("POST", "/api/apply", olga, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "price_unknown"), answer.text
    assert answer.json()["detail"].startswith("The agent @dora: The price of the model 'python:dear' is unknown")
    assert (await small_house.call("GET", "/api/agents", olga)).json()["agents"] == []


async def test_spaces_are_for_those_who_are_in_them(small_house: House) -> None:
    world = small_house.world
    home, olga, amin = await people(world)
    await world.denizen.spaces.create("Garden", [olga], organization=home)
    hall = await world.denizen.spaces.create("Hall", [olga, amin], organization=home)
    for document in (
        {"kind": "space", "name": "Garden", "members": ["amin"]},
        {"kind": "space", "name": "Garden", "private": True},
        {"name": "Spy", "spaces": ["Garden"]},
    ):
        status, told = await apply(small_house, amin, document)
        assert (status, "The name 'Garden' is taken" in told) == (422, True)
    quiet = {"kind": "space", "name": "Hall", "members": [{"handle": "olga", "attention": "none"}]}
    assert await apply(small_house, amin, quiet) == (
        422,
        "a.yaml:1: Only Olga can change which messages Olga gets.",
    )
    assert [each.attention for each in await world.denizen.spaces.members(hall)] == ["all", "all"]
    assert await apply(small_house, amin, {"kind": "space", "name": "Hall", "private": True}) == (200, "changed")


async def test_apply_does_not_tell_that_a_private_space_exists(small_house: House) -> None:
    """The answer is the same as where there is none; the private space is not touched, and its members find it."""
    world = small_house.world
    home, olga, amin = await people(world)
    diary = await world.denizen.spaces.create("Diary", [olga], private=True, organization=home)
    told: list[list[str]] = []
    for name in ("Diary", "Nothing"):
        documents = [
            [{"kind": "space", "name": name, "members": ["amin"]}, {"name": f"Spy {name}", "spaces": [name]}],
            [{"kind": "space", "name": name, "private": True}],
        ]
        answers = [await applied(small_house, amin, *each) for each in documents]
        told.append([each.replace(name, "…").replace(name.lower(), "…") for each in answers])
    assert told[0] == told[1]
    assert '"action":"created"' in told[0][0]
    assert [each.entity.handle for each in await world.denizen.spaces.members(diary)] == ["olga"]
    # Each means the space that they are in.
    assert await apply(small_house, olga, {"kind": "space", "name": "Diary", "private": False}) == (200, "changed")
    assert not (await world.denizen.spaces.get(diary.id)).private


async def applied(house: House, who: Entity, *documents: dict[str, Any]) -> str:
    body = {"documents": [{"place": f"a.yaml:{at}", "document": each} for at, each in enumerate(documents, 1)]}
    answer = await house.call("POST", "/api/apply", who, json=body)
    return f"{answer.status_code} {answer.text}"


async def test_an_agent_as_a_document_names_no_private_space_of_others(small_house: House) -> None:
    world = small_house.world
    home, olga, amin = await people(world)
    ada = await world.denizen.agents.create("Ada", organization=home)
    for name, private, who in (("Diary", True, olga), ("Den", True, amin), ("Garden", False, olga)):
        await world.denizen.spaces.create(name, [who, ada], private=private, organization=home)
    for who, seen in ((olga, {"Diary", "Garden"}), (amin, {"Den", "Garden"})):
        answer = await small_house.call("GET", "/api/agents/@ada/document", who)
        assert {each["name"] for each in answer.json()["document"]["spaces"]} == seen


async def test_an_admin_sees_no_tokens_of_owners(small_house: House) -> None:
    _, olga, amin = await people(small_house.world)
    for who, seen in ((amin, {"amin"}), (olga, {"amin", "olga"})):
        answer = await small_house.call("GET", "/api/tokens?everyone=true", who)
        assert {each["handle"] for each in answer.json()["tokens"]} == seen | {who.handle}
    both = await small_house.call("GET", "/api/tokens?everyone=true&entity=@olga", olga)
    assert both.json()["code"] == "invalid_input"


@pytest.mark.parametrize(
    ("media_type", "body", "code"),
    [
        ("application/jsonl", b"x" * 101, "too_large"),
        ("application/json", b"{}", "unsupported_media_type"),
        ("application/jsonl", b"{}", "import_invalid"),
        ("application/x-ndjson", b"", "import_invalid"),
    ],
    ids=["large", "json", "foreign", "empty"],
)
async def test_what_is_no_export_is_not_taken_in(small_world: World, media_type: str, body: bytes, code: str) -> None:
    _, olga, _ = await people(small_world)
    async with served(small_world, limits=ServerLimits(import_bytes=100)) as house:
        headers = {**await house.headers(olga), "Content-Type": media_type}
        answer = await house.client.post("/api/import", headers=headers, content=body)
        assert answer.json()["code"] == code


async def test_an_export_in_which_something_was_forgotten_meanwhile_has_no_end(small_house: House) -> None:
    world = small_house.world
    home, olga, _ = await people(world)
    hall = await world.denizen.spaces.create("Hall", [olga], organization=home)
    said = await world.say(olga, "The violet xylophone.", hall)
    lines = world.denizen.spaces.export(hall)
    begun = [await anext(lines), await anext(lines)]
    await world.denizen.spaces.forget_message(said.id)
    rest = [line async for line in _until_refused(lines)]
    assert len(begun + rest) > 2
    assert not any('"row":"end"' in line for line in rest)
