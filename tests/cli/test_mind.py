"""`denizen profiles` and `denizen mind`, in a house of the demo model, and what `denizen inspect` shows of both."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from denizen.cli.house import open_house
from denizen.settings.loading import load
from tests.cli.conftest import Run

CROSS = "@bodil I hate this, it is terrible and awful. Make a plan."


def told(run: Run, *arguments: str) -> Any:
    """What a command prints for programs."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def talk(text: str) -> str:
    """Somebody says something to an agent that reflects; gives the id of the space."""
    async with open_house(load().settings) as house:
        denizen, owner = house.runtime, house.world.owner
        bo = await denizen.create_agent("Bodil", handle="bodil", reflection={"profile": "basic"})
        desk = await denizen.create_space("Desk", [owner, bo])
        await denizen.post(desk, owner, text)
        await denizen.run_until_idle()
        return desk.id


def test_profiles_are_begun_listed_checked_and_tried(run: Run) -> None:
    """Without a file there are none; `init` writes one that is right, and leaves what is there."""
    assert "There are no presets" in run("profiles", "check").stdout
    assert run("profiles", "list").exit_code == 1
    assert run("profiles", "init").exit_code == 0
    assert run("profiles", "init").exit_code == 1
    assert "is right: 7 presets" in run("profiles", "check").stdout.replace("\n", " ")
    assert [each["id"] for each in told(run, "profiles", "list")][:2] == ["balanced", "concise"]
    tried = told(run, "profiles", "try", "Tell me briefly.")
    assert (tried["id"], tried["reason"]) == ("concise", "rule 'asked-to-be-brief': the message has 'briefly'")
    assert run("profiles", "try", "Tell me briefly.").stdout.startswith("concise  rule")
    Path("prompts/_meta/concise.md").write_text("Two words.")
    assert told(run, "profiles", "try", "Tell me briefly.")["text"] == "Two words."


def test_a_file_that_is_wrong_is_told_with_its_place(run: Run) -> None:
    run("profiles", "init")
    path = Path("config/metaprompt-presets.json")
    given = json.loads(path.read_text())
    given["rules"][0]["presetId"] = "concisely"
    path.write_text(json.dumps(given))
    result = run("profiles", "check")
    assert result.exit_code == 1
    assert "rules[0].presetId: there is no preset 'concisely'; did you mean 'concise'." in result.stderr


def test_a_mind_is_shown_set_reset_and_tried(run: Run) -> None:
    """The demo model finds the word that it knows in the question."""
    run("profiles", "init")
    assert "in any conversation yet" in run("mind", "show", "@ada").stderr
    desk = asyncio.run(talk(CROSS))
    (shown,) = told(run, "mind", "show", "@bodil")
    assert (shown["space"], shown["profile"]["id"], shown["mood"]) == ("Desk", "planner", "empathetic")
    page = run("mind", "show", "@bodil").stdout.splitlines()
    assert page[0].startswith("Desk  your mood is empathetic")
    assert page[1] == "  profile planner: rule 'asked-for-a-plan': the message has 'plan' (first turn)"
    assert [each["name"] for each in told(run, "mind", "signals", "@bodil", "Desk")] == ["user_frustrated"]
    assert told(run, "mind", "set", "@bodil", desk, "--mood", "focused", "--skill", "expert")["user_skill"] == "expert"
    tried = told(run, "mind", "try", "@bodil", "Desk", "confusion_clarification")
    assert (tried["before"]["mood"], tried["after"]["mood"], tried["applied"]) == ("focused", "patient", False)
    assert run("mind", "try", "@bodil", "Desk", "confusion_clarification", "--apply").exit_code == 0
    assert told(run, "mind", "settings", "@bodil", "Desk", "--preset", "concise", "--profile", "off")["settings"] == {
        "preset": "concise",
        "reflection": {"profile": "off"},
    }
    assert told(run, "mind", "settings", "@bodil", "Desk")["settings"] == {}
    assert told(run, "mind", "reset", "@bodil", "Desk")["mood"] == "neutral"
    causes = [each["cause"] for each in told(run, "mind", "history", "@bodil", "Desk")]
    assert causes == ["reset", "manual", "set", "user_frustrated"]
    assert "reset" in run("mind", "history", "@bodil", "Desk").stdout
    for wrong in (
        ("set", "@bodil", "Desk"),
        ("set", "@bodil", "Desk", "--mood", "grumpy"),
        ("settings", "@bodil", "Desk", "--preset", "no"),
        ("set", "@bodil", "Cellar", "--mood", "patient"),
    ):
        assert run("mind", *wrong).exit_code == 1


def test_inspect_shows_profile_and_state_of_mind_with_reasons(run: Run) -> None:
    run("profiles", "init")
    asyncio.run(talk(CROSS))
    (found,) = told(run, "inspect", "@bodil")["stances"]
    assert found["profile"]["reason"] == "rule 'asked-for-a-plan': the message has 'plan' (first turn)"
    assert found["last"]["cause"] == "user_frustrated"
    page = run("inspect", "@bodil").stdout
    assert "Desk: your mood is empathetic" in page
    assert "  last user_frustrated, changed: " in page
    assert "  profile planner: rule 'asked-for-a-plan'" in page
