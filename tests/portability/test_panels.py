"""A panel leaves the house with its advisors and all that was answered, and is the same in another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.checker import check_database
from denizen.errors import ImportInvalid, ModelRejected
from denizen.ids import SpaceId
from denizen.models.scripted import Info, Turn, call
from denizen.panel.panels import Panel
from denizen.portability.reading import Source
from denizen.portability.spaces import check_space
from denizen.spaces.directory import Entity
from tests.panel.test_rounds import a_panel, in_words, voices
from tests.portability.files import Lines, of, parsed, spoilt, without_ids, written
from tests.world import World, as_text, open_world


def _answering(who: str, messages: list[ModelMessage], info: Info) -> Turn:
    said = as_text(messages[-1])
    if "report" in info.tools:
        return call("report", verdicts=[{"passed": True, "why": "It does."}])
    if who == "Pema":
        raise ModelRejected("too long")
    return f"{who}: {len(said)}"


async def asked(world: World) -> tuple[Entity, Panel]:
    """Two turns: with cross-talk, with one that fails and one that is gone since; and a third that nobody answers."""
    model = voices(_answering)
    advisors = [{"name": "Seth", "group": "Sales", "assertions": ["says a number"]}, "Buber", "Pema"]
    noor, panel = await a_panel(world, model, *advisors, synthesis="on_demand", at_once=3)
    denizen = world.denizen
    first = await denizen.ask_panel(panel, noor, "One")
    await denizen.run_until_idle()
    await denizen.crosstalk(first, by=noor)
    await denizen.run_until_idle()
    await denizen.synthesize(first)
    await denizen.run_until_idle()
    (pema,) = [each for each in await denizen.advisors(panel) if each.name == "Pema"]
    await denizen.remove_advisor(panel, pema)
    await denizen.ask_panel(panel, noor, "Two, @seth")
    await denizen.run_until_idle()
    await denizen.ask_panel(panel, noor, "Three")
    return noor, panel


async def test_a_panel_comes_out_as_it_went_in(world: World, tmp_path: Path) -> None:
    """The same file to the letter, and every request as it was sent; what is still answered stays here."""
    _, panel = await asked(world)
    file = await written(world.denizen.export_space(panel.space), tmp_path / "board.jsonl")
    lines = parsed(file)
    assert [(each["turn"], each["step"], each["kind"]) for each in of(lines, "round")] == [
        (1, 0, "ask"),
        (1, 1, "crosstalk"),
        (2, 0, "ask"),
    ]
    async with open_world(f"sqlite:///{tmp_path / 'other.db'}", clock=world.clock) as other:
        await other.denizen.import_file(file)
        again = await written(other.denizen.export_space(panel.space), tmp_path / "again.jsonl")
        assert again.read_text() == file.read_text()
        assert (await in_words(other, panel)) == (await in_words(world, panel))[:-1]
        assert (await other.denizen.get_panel(panel)).settings == panel.settings
        assert await other.denizen.advisors(panel) == await world.denizen.advisors(panel)
        for before in await world.denizen.rounds(panel):
            for said in before.spoken if before.turn < 3 else ():
                if said.state == "done":
                    shown = await other.denizen.reply_context(before, said.voice)
                    assert shown.exact
        assert await check_database(other.denizen.db) == []


async def test_the_same_panel_twice_in_one_house(world: World, tmp_path: Path) -> None:
    """Its rounds and advisors are its own, and know each other; it answers like any other."""
    noor, panel = await asked(world)
    file = await written(world.denizen.export_space(panel.space), tmp_path / "board.jsonl")
    made = await world.denizen.import_file(file)
    copy = await world.denizen.get_panel(SpaceId(made.id))
    assert copy.id != panel.id
    mine, theirs = await world.denizen.advisors(panel), await world.denizen.advisors(copy)
    assert {each.id for each in mine}.isdisjoint(each.id for each in theirs)
    assert await in_words(world, copy) == (await in_words(world, panel))[:-1]
    last = (await world.denizen.rounds(copy))[-1]
    assert (await world.denizen.reply_context(last, theirs[0])).exact, "also by the ids that all has here"
    again = parsed(await written(world.denizen.export_space(copy.space), tmp_path / "again.jsonl"))
    assert _without_names(again) == _without_names(parsed(file))
    now = await world.denizen.ask_panel(copy, noor, "Four")
    await world.denizen.run_until_idle()
    assert [each.state for each in (await world.denizen.round(now)).spoken] == ["done", "done"]
    assert await check_database(world.denizen.db) == []


def _without_names(lines: Lines) -> Lines:
    """What the lines say, but for identifiers: also of those who answered."""
    for each in of(lines, "round"):
        each.pop("asked_by")
        for said in each["replies"]:
            said.pop("voice")
            said.pop("recipe")
    return without_ids([each if each.get("row") != "round" else _flat(each) for each in lines])


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"replies": sorted(str(each) for each in line["replies"])}


def _set(row: str, /, **fields: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, row)[0].update(fields)


def _reply(**fields: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, "round")[0]["replies"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(_set("space", kind="conversation"), "the space is no panel", id="kind"),
        pytest.param(_set("panel", settings={"modle": "x"}), "no settings of a panel", id="settings"),
        pytest.param(_set("panel", turns=0), "there was no turn 1", id="turns"),
        pytest.param(_set("advisor", handle="buber"), "of this handle before", id="handle"),
        pytest.param(_set("advisor", settings={"odd": 1}), "no settings of an advisor", id="advisor"),
        pytest.param(_set("round", message_id="x"), "the message that it answers", id="message"),
        pytest.param(_set("round", asked_by="x"), "nobody of the file has asked", id="asked"),
        pytest.param(_set("round", step=1), "there was this round before", id="place"),
        pytest.param(_reply(voice="x"), "there is no advisor x", id="voice"),
        pytest.param(_reply(recipe={"lines": []}), "what its requests were made of", id="recipe"),
        pytest.param(_reply(state="waiting"), "round.replies.0.state", id="state"),
    ],
)
def test_what_is_not_as_it_should_be_is_told_by_its_line(
    board: Path, change: Callable[[Lines], None], told: str
) -> None:
    with pytest.raises(ImportInvalid, match=told):
        check_space(Source(spoilt(board, change)))


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The panel as a file."""
    folder = tmp_path_factory.mktemp("board")

    async def write() -> Path:
        async with open_world(f"sqlite:///{folder / 'here.db'}") as world:
            _, panel = await asked(world)
            return await written(world.denizen.export_space(panel.space), folder / "board.jsonl")

    return asyncio.run(write())
