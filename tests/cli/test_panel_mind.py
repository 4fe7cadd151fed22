"""`denizen panel mind`, and what other commands on panels know of it, in a house of the demo model."""

from __future__ import annotations

from functools import partial
from typing import Any

from denizen.cli.panel.advisors import reflection_line, with_profile
from denizen.ids import SpaceId
from tests.cli.terminals import Terminal

CROSS = "I hate this, it is terrible and awful."


async def asked(terminal: Terminal, panel: str) -> None:
    """The owner has said something to the panel, and it was answered and reflected on."""
    house = terminal.house
    await house.runtime.panels.ask(SpaceId(panel), house.world.owner, CROSS)
    await house.runtime.run_until_idle()


async def test_the_minds_of_a_panel_are_shown_set_reset_and_tried(terminal: Terminal) -> None:
    """The demo model finds the word that it knows in the question."""
    mind, told = partial(terminal, "panel", "mind"), partial(terminal.told, "panel", "mind")
    made = await terminal.told("panel", "create", "Board", "Seth Godin", "Martin Buber", "--reflection", "basic")
    await terminal.told("panel", "advisors", "edit", "board", "@martin-buber", "--reflection", "off")
    await asked(terminal, made["id"])
    shown = await told("show", "board")
    assert [(each["name"], each["reflects"], each["mood"]) for each in shown] == [
        ("Seth Godin", True, "empathetic"),
        ("Martin Buber", False, "neutral"),
    ]
    page = (await mind("show", "board")).stdout.splitlines()
    assert page[0].startswith("Seth Godin  your mood is empathetic")
    profile = "  profile balanced: default (first turn)"
    assert page[1:] == [profile, "Martin Buber  no particular state of mind", "  does not reflect", profile]
    seen = await told("signals", "board", "seth godin")
    assert [(each["turn"], each["name"]) for each in seen] == [(1, "user_frustrated")]
    assert "turn 1" in (await mind("signals", "board", "@seth-godin")).stdout
    assert (await told("set", "board", "@seth-godin", "--mood", "focused", "--skill", "expert"))["mood"] == "focused"
    tried = await told("try", "board", "@seth-godin", "confusion_clarification")
    assert (tried["before"]["mood"], tried["after"]["mood"], tried["applied"]) == ("focused", "patient", False)
    applied = await mind("try", "board", "@seth-godin", "confusion_clarification", "--apply")
    assert ("your mood is patient" in applied.stdout, "with its next answer" in applied.stderr) == (True, True)
    assert (await told("reset", "board", "@seth-godin"))["mood"] == "neutral"
    runs = await told("history", "board", "@seth-godin")
    assert [(each["turn"], each["cause"]) for each in runs] == [
        (None, "reset"), (None, "manual"), (None, "set"), (1, "user_frustrated"),
    ]  # fmt: skip
    assert "reset" in (await mind("history", "board", "@seth-godin")).stdout
    kept = await terminal.house.runtime.advisors.states_of_mind(SpaceId(made["id"]), shown[0]["voice"])
    owner = terminal.house.world.owner.id
    assert [each.by_id for each in kept] == [owner, owner, owner, None]


async def test_a_panel_is_shown_with_its_moods_and_edited(terminal: Terminal) -> None:
    """What is not said stays; without advisors there is the assistant."""
    told = partial(terminal.told, "panel")
    made = await told("create", "Desk")
    assert (await told("mind", "set", "desk", "assistant", "--mood", "curious"))["name"] == "Assistant"
    shown = await told("show", "desk")
    assert [(each["voice"], each["state"]["mood"]) for each in shown["stances"]] == [("assistant", "curious")]
    changed = await told("edit", "desk", "--name", "Board", "--crosstalk", "1", "--reflection", "standard")
    assert (changed["name"], changed["settings"]["crosstalk"]) == ("Board", 1)
    assert changed["settings"]["reflection"]["profile"] == "standard"
    again = await told("edit", "board", "--synthesis")
    assert (again["settings"]["synthesis"], again["settings"]["reflection"]["profile"]) == ("always", "standard")
    await told("advisors", "add", "board", "Seth", "--reflection", "tutor")
    page = (await terminal("panel", "show", "board")).stdout.splitlines()
    assert page == [
        f"Board  0 turns, {made['id']}",
        "  model default, synthesis always, cross-talk 1, reflection standard",
        "@seth  Seth  no particular state of mind",
    ]
    assert "reflection tutor" in (await terminal("panel", "advisors", "list", "board")).stdout
    await told("advisors", "edit", "board", "@seth", "--reflection", "")
    assert (await told("show", "board"))["advisors"][0]["reflection"] is None


WRONG = (
    (("edit", "board"), "Nothing to change"),
    (("edit", "board", "--reflection", "basik"), "there is no profile 'basik'"),
    (("create", "Other", "--reflection", "basik"), "there is no profile 'basik'"),
    (("advisors", "add", "board", "Pema", "--reflection", "basik"), "there is no profile 'basik'"),
    (("mind", "show", "cellar"), "You are in no panel 'cellar'"),
    (("mind", "history", "board", "nobody"), "There is no advisor 'nobody'"),
    (("mind", "set", "board", "@seth"), "Give at least one of"),
    (("mind", "set", "board", "@seth", "--mood", "grumpy"), "mood"),
    (("mind", "try", "board", "@seth", "cheer_up"), "Unknown metaprompt 'cheer_up'"),
)


async def test_what_no_mind_of_a_panel_can_be_is_told(terminal: Terminal) -> None:
    await terminal("panel", "create", "Board", "Seth")
    for arguments, why in WRONG:
        refused = await terminal("panel", *arguments)
        assert (refused.exit_code, why in refused.stderr) == (1, True), refused.output
    assert [each["name"] for each in await terminal.told("panel", "list")] == ["Board"]


def test_a_profile_replaces_what_was_said_of_sentiment_and_nothing_else() -> None:
    """Whoever names a profile wants that one, and keeps the metaprompts and the model."""
    now: dict[str, Any] = {"profile": "off", "sentiment": {"enabled": True}, "metaprompts": [{}], "model": "m"}
    assert with_profile(now, "basic") == {"profile": "basic", "metaprompts": [{}], "model": "m"}
    assert reflection_line(now) == "with settings of its own, metaprompts of its own: 1"
    assert reflection_line({"profile": "basic", "sentiment": None, "metaprompts": []}) == "basic"
