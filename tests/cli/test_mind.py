"""`denizen profiles` and `denizen mind`, in a house of the demo model, and what `denizen inspect` shows of both."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

from denizen.cli.home import OpenedHome, open_home
from denizen.ids import AgentId, SpaceId
from denizen.settings.loading import load
from tests.cli.conftest import Run
from tests.cli.terminals import Terminal

CROSS = "@bodil I hate this, it is terrible and awful. Make a plan."


def told(run: Run, *arguments: str) -> Any:
    """What a command prints for programs."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


async def talk(house: OpenedHome, text: str) -> str:
    """Somebody says something to an agent that reflects; gives the id of the space."""
    denizen, owner = house.runtime, house.world.owner
    bo = await denizen.agents.create("Bodil", handle="bodil", reflection={"profile": "basic"})
    desk = await denizen.spaces.create("Desk", [owner, bo])
    await denizen.spaces.post(desk, owner, text)
    await denizen.run_until_idle()
    return desk.id


def test_profiles_are_begun_listed_checked_and_tried(run: Run) -> None:
    """Without a file those of Denizen apply; `init` writes one that is right, and leaves what is there."""
    assert "the presets that come with Denizen apply" in run("profiles", "check").stdout.replace("\n", " ")
    assert [each["id"] for each in told(run, "profiles", "list")][:2] == ["balanced", "concise"]
    assert run("profiles", "init").exit_code == 0
    assert run("profiles", "init").exit_code == 1
    assert "is right: 7 presets" in run("profiles", "check").stdout.replace("\n", " ")
    assert [each["id"] for each in told(run, "profiles", "list")][:2] == ["balanced", "concise"]
    tried = told(run, "profiles", "try", "Tell me briefly.")
    assert (tried["id"], tried["reason"]) == ("concise", "rule 'asked-to-be-brief': the message has 'briefly'")
    Path("prompts/_meta/concise.md").write_text("Two words.")
    assert told(run, "profiles", "try", "Tell me briefly.")["text"] == "Two words."


async def test_the_profiles_of_the_house_are_listed_and_tried(terminal: Terminal) -> None:
    """Those of the house, wherever one asks."""
    listed = await terminal.told("profiles", "list")
    assert [(each["id"], each["addons"]) for each in listed][:2] == [("balanced", []), ("concise", ["concise"])]
    assert "concise" in (await terminal("profiles", "list")).stdout
    tried = (await terminal("profiles", "try", "Tell me briefly.")).stdout
    assert tried.startswith("concise  rule 'asked-to-be-brief': the message has 'briefly'")
    assert (await terminal.told("profiles", "try", "Tell me briefly."))["text"] in tried


async def test_an_organization_sets_and_resets_its_own_presets(terminal: Terminal, tmp_path: Path) -> None:
    shown = await terminal("profiles", "show")
    document = json.loads(shown.stdout)
    assert list(document["memoryCompaction"]["profiles"]) == ["off", "standard"]
    document["rules"] = [{"id": "hurry", "presetId": "concise", "anyKeywords": ["hurry"]}]
    file = tmp_path / "own.json"
    file.write_text(json.dumps({**document, "metaPrompts": []}))
    changed = await terminal("profiles", "set", str(file))
    assert (changed.exit_code, changed.stdout) == (0, "The organization's own presets apply.\n")
    assert "metaPrompts is ignored: only the server's file sets it." in changed.stderr
    tried = await terminal.told("profiles", "try", "I am in a hurry.")
    assert (tried["id"], tried["reason"]) == ("concise", "rule 'hurry': the message has 'hurry'")
    file.write_text('{"presets": []}')
    wrong = await terminal("profiles", "set", str(file))
    assert (wrong.exit_code, "list at least one preset" in wrong.stderr) == (1, True)
    assert (await terminal("profiles", "reset")).stdout == "The presets that come with Denizen apply.\n"
    assert (await terminal.told("profiles", "try", "I am in a hurry."))["id"] == "balanced"


def test_a_file_that_is_wrong_is_told_with_its_place(run: Run) -> None:
    run("profiles", "init")
    path = Path("config/metaprompt-presets.json")
    given = json.loads(path.read_text())
    given["rules"][0]["presetId"] = "concisely"
    path.write_text(json.dumps(given))
    result = run("profiles", "check")
    assert result.exit_code == 1
    assert "rules[0].presetId: there is no preset 'concisely'; did you mean 'concise'." in result.stderr


async def test_a_mind_is_shown_set_reset_and_tried(run: Run, terminal: Terminal) -> None:
    """The demo model finds the word that it knows in the question."""
    mind, told = partial(terminal, "mind"), partial(terminal.told, "mind")
    await asyncio.to_thread(run, "profiles", "init")
    assert "in any conversation yet" in (await mind("show", "@ada")).stderr
    desk = await talk(terminal.house, CROSS)
    (shown,) = await told("show", "@bodil")
    assert (shown["space"], shown["profile"]["id"], shown["mood"]) == ("Desk", "planner", "empathetic")
    page = (await mind("show", "@bodil")).stdout.splitlines()
    assert page[0].startswith("Desk  your mood is empathetic")
    assert page[1] == "  profile planner: rule 'asked-for-a-plan': the message has 'plan' (first turn)"
    assert [each["name"] for each in await told("signals", "@bodil", "Desk")] == ["user_frustrated"]
    assert (await told("set", "@bodil", desk, "--mood", "focused", "--skill", "expert"))["user_skill"] == "expert"
    tried = await told("try", "@bodil", "Desk", "confusion_clarification")
    assert (tried["before"]["mood"], tried["after"]["mood"], tried["applied"]) == ("focused", "patient", False)
    applied = await mind("try", "@bodil", "Desk", "confusion_clarification", "--apply")
    assert "your mood is patient" in applied.stdout
    assert (await told("settings", "@bodil", "Desk", "--preset", "concise", "--profile", "off"))["settings"] == {
        "preset": "concise",
        "reflection": {"profile": "off"},
    }
    assert (await told("settings", "@bodil", "Desk"))["settings"] == {}
    assert (await told("reset", "@bodil", "Desk"))["mood"] == "neutral"
    causes = [each["cause"] for each in await told("history", "@bodil", "Desk")]
    assert causes == ["reset", "manual", "set", "user_frustrated"]
    assert "reset" in (await mind("history", "@bodil", "Desk")).stdout
    bodil = await terminal.house.runtime.people.find("bodil")
    runs = await terminal.house.runtime.reflection.states_of_mind(AgentId(bodil.id), SpaceId(desk))
    owner = terminal.house.world.owner.id
    assert [each.by_id for each in runs] == [owner, owner, owner, None]


WRONG = (
    (("set", "@ada", "Lobby"), "Give at least one of"),
    (("set", "@ada", "Lobby", "--mood", "grumpy"), "mood"),
    (("settings", "@ada", "Lobby", "--preset", "no"), "There is no preset 'no'"),
    (("set", "@ada", "Cellar", "--mood", "patient"), "@ada is in no space that is called 'Cellar'"),
    (("reset", "@ada", "019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d"), "[not_found]"),
    (("show", "@nobody"), "There is no agent '@nobody'. [not_found]"),
)


async def test_what_no_mind_can_be_is_told(run: Run, terminal: Terminal) -> None:
    await asyncio.to_thread(run, "profiles", "init")
    for arguments, why in WRONG:
        refused = await terminal("mind", *arguments)
        assert (refused.exit_code, why in refused.stderr) == (1, True), refused.output


def test_inspect_shows_profile_and_state_of_mind_with_reasons(run: Run) -> None:
    run("profiles", "init")

    async def live() -> None:
        async with open_home(load().settings) as house:
            await talk(house, CROSS)

    asyncio.run(live())
    (found,) = told(run, "inspect", "@bodil")["stances"]
    assert found["profile"]["reason"] == "rule 'asked-for-a-plan': the message has 'plan' (first turn)"
    assert found["last"]["cause"] == "user_frustrated"
    page = run("inspect", "@bodil").stdout
    assert "Desk: your mood is empathetic" in page
    assert "  last user_frustrated, changed: " in page
    assert "  profile planner: rule 'asked-for-a-plan'" in page
