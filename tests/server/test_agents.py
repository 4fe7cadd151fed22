"""Agents over HTTP: made, seen, changed, suspended, deleted, forked; and who may say what of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from denizen import reply, scripted, skip, tool
from denizen.access import roles
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.masking import MASK
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House, served
from tests.world import open_world


@dataclass
class Cast:
    """Noor owns the house, Sam is its admin, Mia a member; Eve lives elsewhere, and owns that."""

    noor: Entity
    sam: Entity
    mia: Entity
    eve: Entity
    kitchen: Space


@pytest.fixture
async def cast(house: House) -> Cast:
    return await cast_of(house)


async def cast_of(house: House) -> Cast:
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, sam, mia = [await world.person(name, organization=home) for name in ("Noor", "Sam", "Mia")]
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    eve = await world.person("Eve", organization=elsewhere)
    kitchen = await world.space("Kitchen", noor, sam, organization=home)
    return Cast(noor, sam, mia, eve, kitchen)


async def make(house: House, who: Entity, key: str | None = None, **wanted: Any) -> httpx2.Response:
    headers = None if key is None else {"Idempotency-Key": key}
    return await house.call("POST", "/api/agents", who, json={"name": "Ada", **wanted}, headers=headers)


async def change(house: House, who: Entity, agent: str = "@ada", **changes: Any) -> httpx2.Response:
    return await house.call("PATCH", f"/api/agents/{agent}", who, json=changes)


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_an_agent_is_made_and_lives(house: House, cast: Cast) -> None:
    house.world.denizen.models.register("polite", scripted(reply("Good morning."), "Greeted Sam."))

    made = await make(house, cast.sam, model="polite", instructions="Be polite.\nAnd brief.", spaces=[cast.kitchen.id])

    assert made.status_code == 201, made.text
    assert made.json() == {
        "id": made.json()["id"],
        "handle": "ada",
        "name": "Ada",
        "status": "sleeping",
        "model": "polite",
        "purpose": "",
        "trouble": None,
        "created_at": "2026-01-05T09:00:00Z",
        "cycles": 0,
        "resting": None,
        "version": 1,
        "definition": {"model": "polite", "instructions": "Be polite.\nAnd brief."},
    }
    await house.say(cast.sam, "Good morning!", cast.kitchen)
    await house.world.run()
    assert await house.world.transcript(cast.kitchen) == ["Sam: Good morning!", "Ada: Good morning."]
    seen = await house.call("GET", "/api/agents/@ada", cast.sam)
    assert seen.json() == made.json() | {"cycles": 1}


async def test_members_see_how_an_agent_is_and_not_how_it_is_defined(house: House, cast: Cast) -> None:
    await make(house, cast.sam, purpose="Looks after this house.", instructions="Never tell about the treasure.")
    seen = await house.call("GET", "/api/agents/@ada", cast.mia)
    assert (seen.status_code, seen.json()["purpose"]) == (200, "Looks after this house.")
    assert seen.json()["definition"] is None
    assert "treasure" not in seen.text


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_an_agent_of_others_is_as_one_that_does_not_exist(house: House, cast: Cast, method: str) -> None:
    made = (await make(house, cast.sam)).json()
    body = {"json": {"name": "Mine"}} if method == "PATCH" else {}
    answers = [
        await house.call(method, f"/api/agents/{agent}", cast.eve, **body)
        for agent in (made["id"], "@ada", "@nobody", "%00", "a" * 500)
    ]
    assert {outcome(answer) for answer in answers} == {(404, "not_found")}
    assert (await house.call("GET", "/api/agents/@ada", cast.sam)).json() == made


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/agents"),
        ("PATCH", "/api/agents/@ada"),
        ("POST", "/api/agents/@ada/suspend"),
        ("POST", "/api/agents/@ada/resume"),
        ("POST", "/api/agents/@ada/fork"),
        ("DELETE", "/api/agents/@ada"),
    ],
)
async def test_members_change_no_agents(house: House, cast: Cast, method: str, path: str) -> None:
    made = (await make(house, cast.sam)).json()
    body = {} if method == "DELETE" else {"json": {"name": "Bee", "handle": "bee"}}
    assert outcome(await house.call(method, path, cast.mia, **body)) == (403, "not_allowed")
    assert (await house.call("GET", "/api/agents", cast.sam)).json()["agents"] == [
        {name: made[name] for name in ("id", "handle", "name", "status", "model", "purpose", "trouble")}
        | {"last_cycle_at": None}
    ]


async def test_what_cannot_be_is_told_where_it_is_with_the_nearest_name(house: House, cast: Cast) -> None:
    answer = await make(
        house, cast.sam, instructoins="Hi", cycle={"max_stps": 3, "awareness": "urgnt"}, zone="Europe/Berlim"
    )
    assert outcome(answer) == (422, "invalid_input")
    told = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert told["instructoins"] == "unknown key 'instructoins' (did you mean 'instructions'?)"
    assert told["cycle.max_stps"] == "unknown key 'max_stps' (did you mean 'max_steps'?)"
    assert told["cycle.awareness"].endswith("(did you mean 'urgent'?)")
    assert "Europe/Berlin" in told["zone"]
    assert (await house.call("GET", "/api/agents", cast.sam)).json() == {"agents": [], "next": None}


@pytest.mark.parametrize(
    ("wanted", "status", "code", "words"),
    [
        ({"name": ""}, 422, "invalid_input", "name is empty"),
        ({"handle": "a b"}, 422, "invalid_input", "Try 'a-b'"),
        ({"handle": "noor"}, 409, "handle_taken", "@noor"),
        ({"spaces": ["019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f"]}, 422, "invalid_input", "you are in no space"),
        ({"tools": ["weathr"]}, 422, "invalid_input", "Did you mean 'weather'?"),
        ({"instructions_file": "/etc/passwd"}, 422, "invalid_input", "unknown key"),
    ],
    ids=["no name", "bad handle", "taken handle", "foreign space", "unknown tool", "a file of the server"],
)
async def test_an_agent_that_cannot_be_is_not_made(
    house: House, cast: Cast, wanted: dict[str, Any], status: int, code: str, words: str
) -> None:
    @tool
    async def weather() -> str:
        """The weather."""
        return "Fine."

    house.world.denizen.register_tool(weather)
    answer = await make(house, cast.sam, **wanted)
    assert outcome(answer) == (status, code)
    assert words in answer.json()["detail"]
    assert (await house.call("GET", "/api/agents", cast.sam)).json()["agents"] == []


async def test_a_space_one_is_not_in_is_not_given_to_an_agent(house: House, cast: Cast) -> None:
    diary = await house.world.space("Diary", cast.mia, private=True, organization=cast.mia.organization_id)
    answer = await make(house, cast.sam, spaces=[diary.id])
    assert outcome(answer) == (422, "invalid_input")
    assert len(await house.world.denizen.spaces.members(diary)) == 1


async def test_asking_again_with_the_same_key_makes_one_agent(house: House, cast: Cast) -> None:
    first, second = [await make(house, cast.sam, "k-1", instructions="Hi.") for _ in range(2)]
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    other = await make(house, cast.sam, "k-1", instructions="Something else.")
    assert outcome(other) == (422, "idempotency_key_reused")
    at_once = await asyncio.gather(*(make(house, cast.sam, "k-2", name="Bee") for _ in range(5)))
    assert {each.status_code for each in at_once} == {201}
    assert len({each.json()["id"] for each in at_once}) == 1
    theirs = await make(house, cast.noor, "k-1", handle="ada-2")
    assert theirs.status_code == 201
    assert theirs.json()["id"] != first.json()["id"]


async def test_what_is_sent_is_changed_and_the_rest_stays(house: House, cast: Cast) -> None:
    await make(
        house,
        cast.sam,
        instructions="Be brief.",
        zone="Europe/Berlin",
        cycle={"max_steps": 5, "awareness": "none"},
        budget={"tokens_per_day": 1_000},
    )

    changed = await change(
        house, cast.sam, name="Ada L.", zone=None, cycle={"max_steps": None, "token_budget": 9_000}, model="demo"
    )

    assert changed.status_code == 200, changed.text
    assert (changed.json()["name"], changed.json()["handle"], changed.json()["version"]) == ("Ada L.", "ada", 2)
    assert changed.json()["definition"] == {
        "model": "demo",
        "instructions": "Be brief.",
        "cycle": {"awareness": "none", "token_budget": 9_000},
        "budget": {"tokens_per_day": 1_000},
    }
    unchanged = await change(house, cast.sam)
    assert unchanged.json() == changed.json()
    without = await change(house, cast.sam, budget=None)
    assert "budget" not in without.json()["definition"]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"modl": "demo"}, "modl", "did you mean 'model'?"),
        ({"cycle": {"max_steps": 0}}, "cycle.max_steps", "greater than or equal to 1"),
        ({"cycle": "short"}, "cycle", "mapping"),
        ({"handle": "bee"}, "", "cannot be changed"),
        ({"name": None}, "", "name"),
        ({"name": " "}, "", "empty"),
        ({"spaces": []}, "spaces", "unknown key"),
    ],
    ids=["unknown", "too small", "no mapping", "handle", "no name", "empty name", "spaces"],
)
async def test_a_change_that_cannot_be_changes_nothing(
    house: House, cast: Cast, changes: dict[str, Any], field: str, words: str
) -> None:
    made = (await make(house, cast.sam)).json()
    answer = await change(house, cast.sam, instructions="New.", **changes)
    assert outcome(answer) == (422, "invalid_input")
    assert words in answer.json()["detail"]
    assert field in [each["field"] for each in answer.json().get("errors", [{"field": ""}])]
    assert (await house.call("GET", "/api/agents/@ada", cast.sam)).json() == made


PROGRAM: dict[str, Any] = {"mcp": {"files": {"command": "mcp-files", "args": ["--root", "/srv"]}}}
INSIDE: dict[str, Any] = {
    "tools": [
        {
            "kind": "http",
            "name": "thermostat",
            "description": "Reads it.",
            "url": "http://thermostat.local/now",
            "allow_private": ["thermostat.local"],
        }
    ]
}


@pytest.mark.parametrize("dangerous", [PROGRAM, INSIDE], ids=["program", "private address"])
async def test_what_reaches_beyond_is_for_owners(house: House, cast: Cast, dangerous: dict[str, Any]) -> None:
    refused = await make(house, cast.sam, **dangerous)
    assert outcome(refused) == (403, "not_allowed")
    assert ("mcp.files" if "mcp" in dangerous else "tools.thermostat") in refused.json()["detail"]
    assert (await make(house, cast.sam)).status_code == 201
    assert outcome(await change(house, cast.sam, **dangerous)) == (403, "not_allowed")

    allowed = await change(house, cast.noor, **dangerous)

    assert allowed.status_code == 200, allowed.text
    left = await change(house, cast.sam, instructions="Be careful.")
    assert left.status_code == 200, "an admin may leave them as they are"
    assert left.json()["definition"] == allowed.json()["definition"] | {"instructions": "Be careful."}
    fork = {"json": {"handle": "ada-2"}}
    await lived(house, cast)
    assert outcome(await house.call("POST", "/api/agents/@ada/fork", cast.sam, **fork)) == (403, "not_allowed")
    assert (await house.call("POST", "/api/agents/@ada/fork", cast.noor, **fork)).status_code == 201
    assert (await change(house, cast.sam, mcp=None, tools=None)).status_code == 200, "and remove them"
    assert outcome(await change(house, cast.sam, **dangerous)) == (403, "not_allowed")


async def lived(house: House, cast: Cast) -> None:
    """Ada has lived a cycle, without the tools she has."""
    agent = await house.world.denizen.people.find("ada", organization=cast.noor.organization_id)
    kept = await house.world.denizen.agents.get(agent.id)
    house.world.denizen.models.register("quiet", scripted("Saw it."))
    await house.world.denizen.agents.edit(agent.id, model="quiet", tools=(), mcp={})
    await house.world.denizen.agents.trigger(agent.id, "Test")
    await house.world.run()
    await house.world.denizen.agents.edit(agent.id, **dict(kept.definition))


@pytest.mark.parametrize(
    "sly",
    [
        {"mcp": {"files": {"args": ["--root", "/"]}}},
        {"mcp": {"files": {"env": {"X": "1"}}}},
        {"mcp": {"more": {"command": "sh"}}},
        {"mcp": {"files": {"command": "sh"}}},
    ],
    ids=["other arguments", "other environment", "one more", "another program"],
)
async def test_an_admin_does_not_change_a_part_that_is_for_owners(
    house: House, cast: Cast, sly: dict[str, Any]
) -> None:
    made = (await make(house, cast.noor, **PROGRAM)).json()
    assert outcome(await change(house, cast.sam, **sly)) == (403, "not_allowed")
    assert (await house.call("GET", "/api/agents/@ada", cast.noor)).json() == made


async def test_where_a_secret_is_sent_is_for_owners_or_as_they_said(house: House, cast: Cast) -> None:
    """By host: an admin who could send it anywhere could send it to themselves."""

    def calling(url: str, name: str = "crm") -> dict[str, Any]:
        tool = {"kind": "http", "name": name, "description": "d", "url": url, "headers": {"X-Key": "${CRM_TOKEN}"}}
        return {"tools": [tool]}

    there, elsewhere = calling("https://api.crm.example/a"), calling("https://evil.example/a")
    assert outcome(await make(house, cast.sam, name="One", **there)) == (403, "not_allowed")
    assert (await make(house, cast.noor, name="One", **there)).status_code == 201
    # What an owner has defined stays, and may be called otherwise; it may not go elsewhere.
    path = "/api/agents/@one"
    for changed, status in [(calling("https://api.crm.example/b", "renamed"), 200), (elsewhere, 403)]:
        assert (await house.call("PATCH", path, cast.sam, json=changed)).status_code == status
    mcp = {"mcp": {"crm": {"url": "https://evil.example", "headers": {"Authorization": "Bearer ${CRM_TOKEN}"}}}}
    refused = await house.call("PATCH", path, cast.sam, json=mcp)
    assert outcome(refused) == (403, "not_allowed")
    assert "mcp.crm sends CRM_TOKEN to evil.example" in refused.json()["detail"]

    hosts = {"settings": {"secret_hosts": {"CRM_TOKEN": ["api.crm.example"]}}}
    assert outcome(await house.call("PATCH", "/api/organization", cast.sam, json=hosts)) == (403, "not_allowed")
    settled = await house.call("PATCH", "/api/organization", cast.noor, json=hosts)
    assert settled.json()["settings"]["secret_hosts"] == {"CRM_TOKEN": ["api.crm.example"]}
    assert (await make(house, cast.sam, name="Two", **there)).status_code == 201
    assert outcome(await make(house, cast.sam, name="Three", **elsewhere)) == (403, "not_allowed")
    for wrong in ({"CRM_TOKEN": ["https://api.crm.example"]}, {"no name of a secret": ["api.crm.example"]}):
        changed = await house.call("PATCH", "/api/organization", cast.noor, json={"settings": {"secret_hosts": wrong}})
        assert outcome(changed) == (422, "invalid_input")


async def test_only_whoever_pays_can_say_so(house: House, cast: Cast) -> None:
    for who in (cast.sam, cast.noor):
        assert outcome(await make(house, who, pays="@mia")) == (403, "not_allowed")
    assert (await make(house, cast.sam, pays="@sam")).status_code == 201
    assert (await change(house, cast.noor, instructions="Hi.")).json()["definition"]["pays"] == "@sam"
    assert outcome(await change(house, cast.noor, pays="@mia")) == (403, "not_allowed")
    await lived(house, cast)
    fork = {"json": {"handle": "ada-2"}}
    assert outcome(await house.call("POST", "/api/agents/@ada/fork", cast.noor, **fork)) == (403, "not_allowed")
    assert "pays" not in (await change(house, cast.noor, pays=None)).json()["definition"]


async def test_secrets_in_a_definition_are_not_shown_and_outlive_a_change(house: House, cast: Cast) -> None:
    lamp = {
        "kind": "http",
        "name": "lamp",
        "description": "Switches it.",
        "url": "https://lamps.example/on",
        "headers": {"X-Key": "canary-1", "Authorization": "Bearer ${LAMP}", "Accept": "text/plain"},
    }
    made = await make(house, cast.noor, tools=[lamp], mcp={"m": {"command": "m", "env": {"PASS": "canary-2"}}})
    assert "canary" not in made.text
    [shown] = made.json()["definition"]["tools"]
    assert shown["headers"] == {"X-Key": MASK, "Authorization": "Bearer ${LAMP}", "Accept": "text/plain"}

    changed = await change(house, cast.sam, tools=[{**shown, "description": "Switches the lamp."}])

    assert changed.status_code == 200, changed.text
    agent = await house.world.denizen.agents.get(made.json()["id"])
    [kept] = agent.definition.tools
    assert not isinstance(kept, str)
    assert (kept.description, getattr(kept, "headers", None)) == ("Switches the lamp.", lamp["headers"])
    assert agent.definition.mcp["m"].env == {"PASS": "canary-2"}
    moved = await change(house, cast.sam, tools=[{**shown, "name": "other"}])
    assert outcome(moved) == (422, "invalid_input")
    assert "hides a value" in moved.json()["detail"]
    assert "canary" not in moved.text


async def test_a_suspended_agent_waits_and_a_resumed_one_answers(house: House, cast: Cast) -> None:
    ada = await house.world.agent("Ada", reply("Here."), "Answered.", organization=cast.noor.organization_id)
    await house.world.denizen.spaces.join(cast.kitchen, ada)

    suspended = await house.call("POST", "/api/agents/@ada/suspend", cast.sam, json={})
    await house.say(cast.sam, "Ada?", cast.kitchen)
    await house.world.run()

    assert (suspended.status_code, suspended.json()["status"]) == (200, "suspended")
    assert await house.world.transcript(cast.kitchen) == ["Sam: Ada?"]
    resumed = await house.call("POST", "/api/agents/@ada/resume", cast.sam, json={})
    await house.world.run()
    assert (resumed.status_code, resumed.json()["status"]) == (200, "sleeping")
    assert await house.world.transcript(cast.kitchen) == ["Sam: Ada?", "Ada: Here."]


async def test_a_deleted_agent_is_gone_and_its_past_stays(house: House, cast: Cast) -> None:
    made = (await make(house, cast.sam, model="demo")).json()
    await lived(house, cast)

    deleted = await house.call("DELETE", "/api/agents/@ada", cast.sam)

    assert (deleted.status_code, deleted.content) == (204, b"")
    assert outcome(await house.call("GET", "/api/agents/@ada", cast.sam)) == (404, "not_found")
    assert outcome(await house.call("DELETE", "/api/agents/@ada", cast.sam)) == (404, "not_found")
    assert outcome(await change(house, cast.sam, agent=made["id"], name="Back")) == (404, "not_found")
    assert (await house.call("GET", "/api/agents", cast.sam)).json()["agents"] == []
    past = await house.call("GET", f"/api/agents/{made['id']}/cycles", cast.sam)
    assert [each["summary"] for each in past.json()["cycles"]] == ["Saw it."]


async def test_agents_are_listed_page_by_page(house: House, cast: Cast) -> None:
    for handle in ("delta", "alpha", "charlie", "bravo"):
        await make(house, cast.sam, name=handle.title(), handle=handle)
    await house.world.agent("Eves", organization=cast.eve.organization_id)
    await house.call("DELETE", "/api/agents/@bravo", cast.sam)
    seen: list[str] = []
    after, pages = "", 0
    while after is not None:
        page = (await house.call("GET", "/api/agents", cast.mia, params={"after": after, "limit": 2})).json()
        seen += [each["handle"] for each in page["agents"]]
        after, pages = page["next"], pages + 1
    assert (seen, pages) == (["alpha", "charlie", "delta"], 2)


async def test_a_fork_has_the_past_and_is_made_once(house: House, cast: Cast) -> None:
    ada = await house.world.agent("Ada", "One.", skip(), "Two.", organization=cast.noor.organization_id)
    for _ in range(3):
        await house.world.denizen.agents.trigger(ada, "Test")
        await house.world.run()
    path, key = "/api/agents/@ada/fork", {"Idempotency-Key": "f"}

    forks = [
        await house.call("POST", path, cast.sam, json={"handle": "Bee", "name": "Bee", "at": 1}, headers=key)
        for _ in range(2)
    ]

    assert [each.status_code for each in forks] == [201, 201]
    assert forks[0].json() == forks[1].json()
    assert (forks[0].json()["handle"], forks[0].json()["cycles"]) == ("bee", 1)
    other = await house.call("POST", path, cast.sam, json={"handle": "cat"}, headers=key)
    assert outcome(other) == (422, "idempotency_key_reused")
    taken = await house.call("POST", path, cast.sam, json={"handle": "bee"})
    assert outcome(taken) == (409, "handle_taken")
    late = await house.call("POST", path, cast.sam, json={"handle": "cat", "at": 9})
    assert outcome(late) == (422, "invalid_input")


# Models


@pytest.fixture
async def keeping_house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """A house that can keep secrets."""
    async with open_world(ready_sqlite_url, secret_key=new_key()) as world, served(world) as house:
        yield house


async def test_the_models_that_can_be_paid_are_listed(keeping_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from denizen.models import catalog

    for name in catalog.known_names().values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GROQ_API_KEY", "canary-server")
    cast = await cast_of(keeping_house)
    await keeping_house.world.agent("Ada", organization=cast.noor.organization_id)
    denizen = keeping_house.world.denizen
    denizen.models.register("house", scripted())
    home = cast.noor.organization_id
    await denizen.secrets.set("ANTHROPIC_API_KEY", "canary-home", organization=home)
    await denizen.secrets.set("MISTRAL_API_KEY", "canary-mia", person=cast.mia)

    answers = {who.name: await keeping_house.call("GET", "/api/models", who) for who in (cast.mia, cast.sam, cast.eve)}

    def paid(who: str, by: str) -> set[str]:
        return {each["name"].partition(":")[0] for each in answers[who].json()["models"] if each["paid_by"] == by}

    assert {answer.json()["default"] for answer in answers.values()} == {"demo"}
    assert paid("Mia", "nobody") == paid("Eve", "nobody") == {"demo", "house"}
    assert (paid("Mia", "organization"), paid("Mia", "you"), paid("Mia", "server")) == (
        {"anthropic"},
        {"mistral"},
        {"groq"},
    )
    assert (paid("Sam", "you"), paid("Eve", "organization"), paid("Eve", "server")) == (set(), set(), {"groq"})
    assert not any("canary" in answer.text for answer in answers.values())


async def test_an_agent_and_a_service_see_no_agents(small_house: House) -> None:
    world = small_house.world
    await world.person("Noor")
    ada: Agent = await world.agent("Ada")
    for path in ("/api/agents", "/api/agents/@ada", "/api/models"):
        assert outcome(await small_house.call("GET", path, ada)) == (403, "not_allowed")


async def test_nothing_that_is_sent_is_a_defect_of_ours(house: House, cast: Cast) -> None:
    """Deep, strange and wrong bodies are answered as such."""
    await make(house, cast.sam)
    bodies = [
        *(f'{{"name": "X", "tools": {"[" * depth + "]" * depth}}}' for depth in (50, 150, 450, 900, 3_000)),
        '{"name": "X", "cycle": ' + '{"a": ' * 99 + "1" + "}" * 99 + "}",
        '{"name": "X\\u0000Y"}',
        '{"name": "\\ud800"}',
        '{"zone": "\\ud800"}',
        '{"cycle": {"max_seconds": 1e999}}',
        '{"budget": {"dollars": 1e999}}',
        '{"tools": [null, 7, {"kind": "http"}, {"kind": "smtp"}]}',
        '{"mcp": {"a": null, "b": {}, "c": 3}}',
        "[]",
        "3",
        "null",
    ]
    for method, path in [("POST", "/api/agents"), ("PATCH", "/api/agents/@ada")]:
        for sent in bodies:
            headers = {"Content-Type": "application/json"}
            answer = await house.call(method, path, cast.sam, content=sent.encode(), headers=headers)
            assert answer.status_code < 500, (method, sent[:60], answer.text)
    body = b'{"instructions": "a\\u0000b\\ud800c"}'
    headers = {"Content-Type": "application/json"}
    strange = await house.call("PATCH", "/api/agents/@ada", cast.sam, content=body, headers=headers)
    assert strange.json()["definition"]["instructions"] == "a\ufffdb\ufffdc"


async def test_a_change_of_an_older_version_is_refused(small_house: House) -> None:
    noor, ada = await small_house.world.person("Noor"), await small_house.world.agent("Ada")
    path = f"/api/agents/{ada.id}"
    seen = (await small_house.call("GET", path, noor)).json()["version"]
    first = await small_house.call("PATCH", path, noor, json={"instructions": "One", "version": seen})
    second = await small_house.call("PATCH", path, noor, json={"instructions": "Two", "version": seen})
    assert (first.status_code, second.status_code, second.json()["code"]) == (200, 409, "changed_meanwhile")
    assert (await small_house.call("GET", path, noor)).json()["definition"]["instructions"] == "One"
    again = {"instructions": "Two", "version": first.json()["version"]}
    assert (await small_house.call("PATCH", path, noor, json=again)).json()["definition"]["instructions"] == "Two"
    odd = await small_house.call("PATCH", path, noor, json={"instructions": "Three", "version": "2"})
    assert (odd.status_code, odd.json()["detail"]) == (422, "version: it must be a whole number.")
