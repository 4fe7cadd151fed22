"""Profiles and states of mind over HTTP, for admins."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from denizen import call, reply, scripted
from denizen.access import roles, tokens
from denizen.agents.registry import Agent
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House

gone = Path.unlink
CROSS = "I hate this, it is terrible and awful."


@pytest.fixture
def presets(small_house: House, tmp_path: Path) -> Path:
    """A file of presets, and the house that reads it."""
    from denizen.agents.prompt_config import PromptConfig

    path = tmp_path / "presets.json"
    path.write_text(
        json.dumps(
            {
                "presets": [{"id": "short", "addonPromptKeys": ["concise"]}, {"id": "plain"}],
                "rules": [{"presetId": "short", "anyKeywords": ["briefly"]}],
                "routing": {"defaultPresetId": "plain"},
            }
        )
    )
    small_house.world.denizen.prompt_config = PromptConfig(path)
    return path


async def household(house: House) -> tuple[Agent, Entity, Space]:
    world = house.world
    world.denizen.models.register("utility", scripted(*[call("adjust", mood="patient")] * 3, name="utility"))
    settings = {"profile": "basic", "model": "utility"}
    ada = await world.agent("Ada", *[reply("I see."), "Done."] * 3, reflection=settings)
    noor = await world.person("Noor")
    return ada, noor, await world.space("Kitchen", noor, ada)


async def test_a_stance_is_seen_set_reset_and_tried(small_house: House, presets: Path) -> None:
    """Everything that Python can do with it, HTTP can."""
    ada, noor, room = await household(small_house)
    await small_house.world.say(noor, f"Briefly: {CROSS}", room)
    await small_house.world.run()

    async def ask(method: str, path: str = "", **body: Any) -> Any:
        path = f"/api/agents/{ada.id}/stances/{room.id}{path}"
        answer = await small_house.call(method, path, noor, **({"json": body} if method in ("PUT", "POST") else {}))
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    found = await ask("GET")
    assert (found["profile"]["id"], found["state"]["mood"], found["turns"]) == ("short", "patient", 1)
    assert [each["name"] for each in (await ask("GET", "/signals"))["signals"]] == ["user_frustrated"]
    assert (await ask("PUT", "/state", mood="curious", user_skill="expert"))["state"]["user_skill"] == "expert"
    tried = await ask("POST", "/try", template="How is {{current_mood}}?")
    assert (tried["prompt"], tried["after"]["mood"], tried["applied"]) == ("How is curious?", "patient", False)
    tried = await ask("POST", "/try", metaprompt="confusion_clarification", apply=True)
    assert (tried["applied"], (await ask("GET"))["state"]["mood"]) == (True, "patient")
    await ask("DELETE", "/state")
    page = await ask("GET", "/history?limit=3")
    assert [each["cause"] for each in page["runs"]] == ["reset", "manual", "set"]
    assert [each["cause"] for each in (await ask("GET", f"/history?before={page['next']}"))["runs"]] == [
        "user_frustrated"
    ]
    assert (await ask("PUT", "/settings", preset="plain"))["settings"] == {"preset": "plain"}
    listed = (await small_house.call("GET", f"/api/agents/{ada.id}/stances", noor)).json()["stances"]
    mind = (await small_house.call("GET", "/api/agents/@ada/mind", noor)).json()
    (shown,) = mind["stances"]
    assert (shown["space_id"], shown["space"]) == (room.id, "Kitchen")
    assert (shown["told"], shown["last"]["cause"]) == (None, "reset")
    assert listed == [shown]


async def test_what_cannot_be_is_refused_with_a_sentence(small_house: House, presets: Path) -> None:
    ada, noor, room = await household(small_house)
    for method, path, body, told in [
        ("PUT", "/state", {"mood": "grumpy"}, "mood"),
        ("PUT", "/state", {}, "Give at least one of"),
        ("POST", "/try", {}, "Use either `metaprompt` or `template`"),
        ("POST", "/try", {"template": "{{nothing}}"}, "There is no variable {{nothing}}"),
        ("POST", "/try", {"metaprompt": "nothing"}, "Unknown metaprompt 'nothing'"),
        ("PUT", "/settings", {"preset": "nothing"}, "There is no preset 'nothing'"),
        ("PUT", "/settings", {"reflection": {"profile": "nothing"}}, "there is no profile 'nothing'"),
    ]:
        answer = await small_house.call(method, f"/api/agents/@ada/stances/{room.id}{path}", noor, json=body)
        assert 400 <= answer.status_code < 500
        assert told in answer.text
    elsewhere = await small_house.world.space("Cellar", noor)
    answer = await small_house.call("GET", f"/api/agents/{ada.id}/stances/{elsewhere.id}", noor)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_profiles_of_the_house_are_listed_and_tried(small_house: House, presets: Path) -> None:
    noor = await small_house.world.person("Noor")
    found = (await small_house.call("GET", "/api/profiles", noor)).json()
    assert [each["id"] for each in found["presets"]] == ["short", "plain"]
    assert found["profiles"] == ["off", "basic", "standard", "advanced", "tutor"]
    tried = (await small_house.call("POST", "/api/profiles/try", noor, json={"text": "Say it briefly."})).json()
    assert (tried["id"], tried["reason"]) == ("short", "rule 'rules[0]': the message has 'briefly'")
    gone(presets)
    tried = (await small_house.call("POST", "/api/profiles/try", noor, json={"text": "Say it briefly."})).json()
    assert tried["id"] == "concise"  # of the presets that come with Denizen


async def test_api_chat_returns_the_profile_and_why_and_the_state_of_mind_as_metadata(
    small_house: House, presets: Path
) -> None:
    ada, noor, _ = await household(small_house)
    async with small_house.world.denizen.living():
        body = {"agent": ada.id, "text": "Briefly, please.", "metadata": {"pot": 1}}
        answer = (await small_house.call("POST", "/api/chat", noor, json=body)).json()
    assert answer["metadata"] == {
        "pot": 1,
        "prompt_profile": {"id": "short", "reason": "rule 'rules[0]': the message has 'briefly' (first turn)"},
        "state_of_mind": {"mood": "neutral", "user_skill": "unknown", "task_complexity": "unknown"},
    }


# Told as it happens


async def test_a_changed_stance_is_told_to_admins_in_both_streams(small_house: House, presets: Path) -> None:
    """The profile of the first turn, then what reflecting on it came to: each time as a request would give it."""
    ada, noor, room = await household(small_house)
    world, path = small_house.world, f"/api/agents/{ada.id}/stances/{room.id}"
    async with (
        small_house.listen(noor, f"/api/agents/{ada.id}/stream") as of_agent,
        small_house.listen(noor, "/api/stream") as own,
    ):
        await world.say(noor, f"Briefly: {CROSS}", room)
        await world.run()
        told = [each for each in await of_agent.until("agent.stance", 2) if each.name == "agent.stance"]
        assert [each.data["stance"]["profile"]["id"] for each in told] == ["short", "short"]
        assert told[-1].data["stance"]["state"]["mood"] == "patient"
        assert told[-1].data == {
            "type": "agent.stance",
            "agent": ada.id,
            "stance": (await small_house.call("GET", path, noor)).json(),
        }
        await small_house.call("PUT", f"{path}/settings", noor, json={"preset": "plain"})
        assert (await of_agent.until("agent.stance"))[-1].data["stance"]["settings"] == {"preset": "plain"}
        await small_house.call("DELETE", f"{path}/state", noor)
        assert (await of_agent.until("agent.stance"))[-1].data["stance"]["state"]["mood"] == "neutral"
        assert [each.data for each in await own.until("agent.stance", 4) if each.name == "agent.stance"] == [
            each.data for each in of_agent.seen if each.name == "agent.stance"
        ]


async def test_nobody_is_told_a_stance_who_may_not_read_it(small_house: House) -> None:
    """No member of the space who is no admin, not one who was; no admin of a space that they are not in; and no admin
    by a token that may less than they."""
    ada, noor, room = await household(small_house)
    world = small_house.world
    sam, iris, was, less = [await world.person(name) for name in ("Sam", "Iris", "Otto", "Pia")]
    for each in (iris, was, less):
        await world.denizen.db.write(roles.set_role, each.id, "admin")
    for each in (sam, was, less):
        await world.denizen.spaces.join(room, each)
    _, small_house.secrets[less.id] = await world.denizen.db.write(tokens.create, less.id, "Reader", role="member")
    hall = await world.space("Hall", noor, sam, iris, was, less)
    async with AsyncExitStack() as stack:
        listen = small_house.listen
        streams = [await stack.enter_async_context(listen(each, "/api/stream")) for each in (sam, iris, was, less)]
        of_room = await stack.enter_async_context(small_house.stream(noor, room, last=0))
        of_agent = await stack.enter_async_context(listen(sam, f"/api/agents/{ada.id}/stream"))
        owners = await stack.enter_async_context(listen(noor, "/api/stream"))
        await world.denizen.db.write(roles.set_role, was.id, "member")
        await world.denizen.reflection.set_state_of_mind(ada, room, mood="curious")
        assert (await owners.until("agent.stance"))[-1].data["stance"]["state"]["mood"] == "curious"
        # What was said after it has come, and it has not.
        await world.say(noor, "Good night.", hall)
        for stream in streams:
            assert "agent.stance" not in {each.name for each in await stream.until("message", text="Good night.")}
        await world.say(noor, "Good night.", room)
        assert "agent.stance" not in {each.name for each in await of_room.until("message", text="Good night.")}
        await world.denizen.agents.suspend(ada)
        told = await of_agent.until("agent.status", status="suspended")
        assert {each.name for each in told} == {"agent.status"}
