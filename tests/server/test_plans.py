"""Goals, notes and plans over HTTP: set by admins, told to the agent with its next cycle."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from denizen import reply
from denizen.agents.registry import Agent
from denizen.spaces.directory import Entity
from tests.server.conftest import House

ADA = "/api/agents/@ada"


@pytest.fixture
async def noor(house: House) -> Entity:
    return await house.world.person("Noor")


@pytest.fixture
async def ada(house: House, noor: Entity) -> Agent:
    return await house.world.agent("Ada", reply("Good."), "Answered.")


async def ask(house: House, noor: Entity, method: str, path: str, **body: Any) -> httpx2.Response:
    sent = {"json": body} if method in ("POST", "PUT") else {}
    return await house.call(method, f"{ADA}/{path}", noor, **sent)


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_goals_are_given_changed_and_taken_away(house: House, noor: Entity, ada: Agent) -> None:
    first = await ask(house, noor, "POST", "goals", text="Keep the pantry stocked.")
    again = await ask(house, noor, "POST", "goals", text="Keep the pantry stocked.", priority="high")
    await ask(house, noor, "POST", "goals", text="Learn the names of the birds.", status="long-term")
    changed = await ask(house, noor, "PUT", "goals/1", status="paused")

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == {
        "number": 1,
        "text": "Keep the pantry stocked.",
        "status": "active",
        "priority": "normal",
        "outside": False,
    }
    assert again.json() == first.json() | {"priority": "high"}
    assert changed.json() == again.json() | {"status": "paused"}
    listed = (await ask(house, noor, "GET", "goals")).json()["goals"]
    assert [(each["number"], each["status"]) for each in listed] == [(1, "paused"), (2, "long-term")]
    assert (await ask(house, noor, "DELETE", "goals/1")).status_code == 204
    assert [each["number"] for each in (await ask(house, noor, "GET", "goals")).json()["goals"]] == [2]
    for method, path in [("PUT", "goals/1"), ("DELETE", "goals/1"), ("DELETE", f"goals/{2**62}")]:
        assert outcome(await ask(house, noor, method, path)) == (404, "not_found")


async def test_notes_are_written_and_struck_out(house: House, noor: Entity, ada: Agent) -> None:
    for key in ("tea", "a%2Fb%20c", "100%25"):
        put = await ask(house, noor, "PUT", f"notes/{key}", text="No sugar.")
        assert put.status_code == 200, put.text
    changed = await ask(house, noor, "PUT", "notes/tea", text="Honey.")
    assert changed.json() == {"key": "tea", "text": "Honey.", "outside": False}
    listed = (await ask(house, noor, "GET", "notes")).json()["notes"]
    assert [(each["key"], each["text"]) for each in listed] == [
        ("100%", "No sugar."),
        ("a/b c", "No sugar."),
        ("tea", "Honey."),
    ]
    assert (await ask(house, noor, "DELETE", "notes/a%2Fb%20c")).status_code == 204
    assert outcome(await ask(house, noor, "DELETE", "notes/a%2Fb%20c")) == (404, "not_found")
    assert outcome(await ask(house, noor, "PUT", "notes/long", text="x" * 501)) == (422, "invalid_input")


async def test_plans_are_made_changed_and_called_off(house: House, noor: Entity, ada: Agent) -> None:
    made = await ask(
        house, noor, "PUT", "plans/Morning round", instruction="Look.", cron="0 7 * * *", zone="Europe/Berlin"
    )
    assert made.status_code == 200, made.text
    assert (made.json()["kind"], made.json()["name"], made.json()["next_run"]) == (
        "plan",
        "Morning round",
        "2026-01-06T06:00:00Z",
    )
    await ask(house, noor, "PUT", "plans/Morning round", instruction="Look twice.", after="2 hours")
    timer = await house.world.denizen.plans.set_timer(ada, "Tea", after="1 hour")

    listed = (await ask(house, noor, "GET", "plans")).json()["plans"]

    assert [(each["kind"], each["instruction"], each["next_run"]) for each in listed] == [
        ("timer", "Tea", "2026-01-05T10:00:00Z"),
        ("plan", "Look twice.", "2026-01-05T11:00:00Z"),
    ]
    assert (await ask(house, noor, "DELETE", f"plans/{timer.id}")).status_code == 204
    assert (await ask(house, noor, "DELETE", "plans/Morning%20round")).status_code == 204
    assert outcome(await ask(house, noor, "DELETE", "plans/Morning%20round")) == (404, "not_found")
    assert (await ask(house, noor, "GET", "plans")).json() == {"plans": []}
    for wrong in ({}, {"cron": "x"}, {"at": "2020-01-01T00:00"}, {"after": "2 hours", "cron": "0 7 * * *"}):
        assert outcome(await ask(house, noor, "PUT", "plans/p", instruction="Look.", **wrong)) == (422, "invalid_input")


async def test_the_agent_hears_of_it_with_its_next_cycle(house: House, noor: Entity, ada: Agent) -> None:
    kitchen = await house.world.space("Kitchen", noor, ada)
    await ask(house, noor, "POST", "goals", text="Keep the pantry stocked.")
    await ask(house, noor, "PUT", "notes/tea", text="No sugar.")
    await house.world.run()
    assert house.world.model(ada).requests == [], "nothing of it wakes it"
    await house.say(noor, "Ada?", kitchen)
    await house.world.run()
    [asked] = (await house.world.prompts(ada))[:1]
    assert "Keep the pantry stocked." in asked[0]
    assert "No sugar." in asked[0]


async def test_none_of_it_is_for_members_or_others(house: House, noor: Entity, ada: Agent) -> None:
    mia = await house.world.person("Mia")
    elsewhere = await house.world.denizen.organizations.create("Elsewhere")
    eve = await house.world.person("Eve", organization=elsewhere)
    for method, path, body in [
        ("POST", "goals", {"text": "x"}),
        ("PUT", "goals/1", {}),
        ("DELETE", "goals/1", None),
        ("PUT", "notes/a", {"text": "x"}),
        ("DELETE", "notes/a", None),
        ("PUT", "plans/a", {"instruction": "x", "after": "1 hour"}),
        ("DELETE", "plans/a", None),
    ]:
        sent = {} if body is None else {"json": body}
        assert outcome(await house.call(method, f"{ADA}/{path}", mia, **sent)) == (403, "not_allowed")
        theirs = await house.call(method, f"/api/agents/{ada.id}/{path}", eve, **sent)
        assert outcome(theirs) == (404, "not_found")
    assert await house.world.denizen.goals.list(ada) == []
    assert await house.world.denizen.notes.list(ada) == []
    assert await house.world.denizen.plans.list(ada) == []
