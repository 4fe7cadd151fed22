"""A panel leaves the house with its advisors and all that was answered, and is the same in another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.checker import check_database
from denizen.errors import ImportInvalid, ModelRejected
from denizen.ids import SpaceId
from denizen.models.scripted import Info, Turn, call
from denizen.panel.panels import Panel
from denizen.portability.reading import ExportFile
from denizen.portability.space_import import check_space
from denizen.spaces.directory import Entity
from tests.databases import with_tables
from tests.panel.test_reflection import board as reflecting_board
from tests.panel.test_rounds import a_panel, in_words, voices
from tests.portability.files import Lines, of, parsed, spoilt, without_ids, written
from tests.reflection.kitchens import CROSS, utility
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
    first = await denizen.panels.ask(panel, noor, "One")
    await denizen.run_until_idle()
    await denizen.rounds.crosstalk(first, by=noor)
    await denizen.run_until_idle()
    await denizen.rounds.synthesize(first)
    await denizen.run_until_idle()
    (pema,) = [each for each in await denizen.advisors.list(panel) if each.name == "Pema"]
    await denizen.advisors.remove(panel, pema)
    await denizen.panels.ask(panel, noor, "Two, @seth")
    await denizen.run_until_idle()
    await denizen.panels.ask(panel, noor, "Three")
    return noor, panel


async def test_a_panel_comes_out_as_it_went_in(world: World, tmp_path: Path) -> None:
    """The same file to the letter, and every request as it was sent; what is still answered stays here."""
    _, panel = await asked(world)
    file = await written(world.denizen.spaces.export(panel.space), tmp_path / "board.jsonl")
    lines = parsed(file)
    assert [(each["turn"], each["step"], each["kind"]) for each in of(lines, "round")] == [
        (1, 0, "ask"),
        (1, 1, "crosstalk"),
        (2, 0, "ask"),
    ]
    async with open_world(with_tables(tmp_path / "other.db"), clock=world.clock) as other:
        await other.denizen.organizations.import_file(file)
        again = await written(other.denizen.spaces.export(panel.space), tmp_path / "again.jsonl")
        assert again.read_text() == file.read_text()
        assert (await in_words(other, panel)) == (await in_words(world, panel))[:-1]
        assert (await other.denizen.panels.get(panel)).settings == panel.settings
        assert await other.denizen.advisors.list(panel) == await world.denizen.advisors.list(panel)
        for before in await world.denizen.rounds.list(panel):
            for said in before.spoken if before.turn < 3 else ():
                if said.state == "done":
                    shown = await other.denizen.rounds.context(before, said.voice)
                    assert shown.exact
        assert await check_database(other.denizen.db) == []


async def test_the_same_panel_twice_in_one_house(world: World, tmp_path: Path) -> None:
    """Its rounds and advisors are its own, and know each other; it answers like any other."""
    noor, panel = await asked(world)
    file = await written(world.denizen.spaces.export(panel.space), tmp_path / "board.jsonl")
    made = await world.denizen.organizations.import_file(file)
    copy = await world.denizen.panels.get(SpaceId(made.id))
    assert copy.id != panel.id
    mine, theirs = await world.denizen.advisors.list(panel), await world.denizen.advisors.list(copy)
    assert {each.id for each in mine}.isdisjoint(each.id for each in theirs)
    assert await in_words(world, copy) == (await in_words(world, panel))[:-1]
    last = (await world.denizen.rounds.list(copy))[-1]
    assert (await world.denizen.rounds.context(last, theirs[0])).exact, "also by the ids that all has here"
    again = parsed(await written(world.denizen.spaces.export(copy.space), tmp_path / "again.jsonl"))
    assert _without_names(again) == _without_names(parsed(file))
    now = await world.denizen.panels.ask(copy, noor, "Four")
    await world.denizen.run_until_idle()
    assert [each.state for each in (await world.denizen.rounds.get(now)).spoken] == ["done", "done"]
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


# What its voices made of people

MINDS = ("voice_stance", "voice_feeling", "voice_signal", "voice_reflection")


async def moved(world: World) -> tuple[Entity, Panel]:
    """Two advisors have reflected on two turns, one of them asked by someone who has left; one advisor has, too.

    The other's state of mind was set by Ida, who has left the panel since.
    """
    utility(world, *[call("adjust", mood="patient", imprints={"tone": "gentle"}, reason="They are cross.")] * 4)
    noor, panel = await reflecting_board(world)
    denizen = world.denizen
    pim = await world.person("Pim")
    await denizen.spaces.join(panel.space, pim)
    for who in (noor, pim):
        await denizen.panels.ask(panel, who, CROSS)
        await denizen.run_until_idle()
    await denizen.spaces.leave(panel.space, pim)
    seth, buber = await denizen.advisors.list(panel)
    ida = await world.person("Ida")
    await denizen.spaces.join(panel.space, ida)
    await denizen.advisors.set_state_of_mind(panel, seth, mood="curious", by=ida)
    await denizen.spaces.leave(panel.space, ida)
    await denizen.advisors.remove(panel, buber)
    return noor, panel


def minds_in(lines: Lines) -> dict[str, int]:
    return {row: len(of(lines, row)) for row in MINDS}


async def test_the_states_of_mind_of_a_panel_come_along(world: World, tmp_path: Path) -> None:
    """Also of an advisor who is gone, and of people who are. What was lived elsewhere is not thought over again."""
    noor, panel = await moved(world)
    file = await written(world.denizen.spaces.export(panel.space), tmp_path / "board.jsonl")
    assert minds_in(parsed(file)) == dict(zip(MINDS, (2, 4, 4, 5), strict=True))
    assert {each["handle"] for each in of(parsed(file), "entity")} == {"noor", "pim", "ida"}
    async with open_world(f"sqlite:///{tmp_path / 'other.db'}", clock=world.clock) as other:
        await other.denizen.organizations.import_file(file)
        again = await written(other.denizen.spaces.export(panel.space), tmp_path / "again.jsonl")
        assert again.read_text() == file.read_text()
        (seth,) = await other.denizen.advisors.list(panel)
        stance = await other.denizen.advisors.stance(panel, seth)
        assert (stance.state.mood, stance.imprints, stance.reflected_turns) == ("curious", {"tone": "gentle"}, 2)
        mine, theirs = [await each.denizen.advisors.states_of_mind(panel, seth) for each in (world, other)]
        assert [(each.cycle, each.cause, each.by_id, each.state, each.at) for each in mine] == [
            (each.cycle, each.cause, each.by_id, each.state, each.at) for each in theirs
        ]
        asked_again = utility(other, call("adjust", mood="empathetic"))
        other.denizen.models.register("m", answering := voices(_answering))
        await other.denizen.run_until_idle()
        assert asked_again.requests == []
        await other.denizen.panels.ask(panel, noor, CROSS)
        await other.denizen.run_until_idle()
        assert "your mood is curious" in as_text(answering.requests[0][0])
        stance = await other.denizen.advisors.stance(panel, seth)
        assert (stance.state.mood, stance.reflected_turns) == ("empathetic", 3)
        assert await check_database(other.denizen.db) == []


async def test_a_copy_of_a_panel_is_disposed_as_it_was_and_changes_by_itself(world: World, tmp_path: Path) -> None:
    _, panel = await moved(world)
    file = await written(world.denizen.spaces.export(panel.space), tmp_path / "board.jsonl")
    copy = await world.denizen.panels.get(SpaceId((await world.denizen.organizations.import_file(file)).id))
    (mine,), (theirs,) = await world.denizen.advisors.list(panel), await world.denizen.advisors.list(copy)
    assert (await world.denizen.advisors.stance(copy, theirs)).state.mood == "curious"
    again = parsed(await written(world.denizen.spaces.export(copy.space), tmp_path / "again.jsonl"))
    assert minds_in(again) == minds_in(parsed(file))
    await world.denizen.advisors.reset_state_of_mind(copy, theirs)
    assert (await world.denizen.advisors.stance(panel, mine)).state.mood == "curious"
    assert await check_database(world.denizen.db) == []


def _set(row: str, /, **fields: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, row)[0].update(fields)


def _again(row: str) -> Callable[[Lines], None]:
    return lambda lines: lines.insert(lines.index(of(lines, row)[0]), of(lines, row)[0])


def _counting(**numbers: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, "voice_feeling")[0]["counters"].update(numbers)


def _before_the_panel(row: str) -> Callable[[Lines], None]:
    def move(lines: Lines) -> None:
        lines.remove(line := of(lines, row)[0])
        lines.insert(lines.index(of(lines, "panel")[0]), line)

    return move


def _reply(**fields: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, "round")[0]["replies"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(_set("space", kind="conversation"), "the space is no panel", id="kind"),
        pytest.param(_set("panel", settings={"modle": "x"}), "Invalid settings of a panel", id="settings"),
        pytest.param(_set("panel", turns=0), "there was no turn 1", id="turns"),
        pytest.param(_set("advisor", handle="buber"), "of this handle before", id="handle"),
        pytest.param(_set("advisor", settings={"odd": 1}), "Invalid settings of an advisor", id="advisor"),
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
        check_space(ExportFile(spoilt(board, change)))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(_set("voice_stance", voice="x"), "there is no advisor x", id="voice"),
        pytest.param(_set("voice_stance", voice="synthesis"), "there is no advisor synthesis", id="synthesis"),
        pytest.param(_set("voice_stance", reflected_turns=3), "turns that there were not", id="turns"),
        pytest.param(_set("voice_stance", mood="jolly"), "voice_stance.mood", id="mood"),
        pytest.param(_again("voice_stance"), "one of these before", id="twice"),
        pytest.param(_before_the_panel("voice_stance"), "there is no advisor", id="no panel"),
        pytest.param(_again("voice_feeling"), "one of these before", id="feeling twice"),
        pytest.param(_set("voice_feeling", person_id="x"), "nobody of whom the file speaks", id="person"),
        pytest.param(_set("voice_feeling", counters={}), "its counters cannot be read", id="no counters"),
        pytest.param(_counting(turns="2"), "its counters cannot be read", id="words"),
        pytest.param(_counting(neutral=9), "its counters cannot be read", id="more than there were"),
        pytest.param(_counting(scores=[], lengths=[]), "its counters cannot be read", id="no scores"),
        pytest.param(_counting(scores=[7.0]), "its counters cannot be read", id="score"),
        pytest.param(_counting(turns=9), "turns that were not reflected on", id="counted"),
        pytest.param(_set("voice_signal", turn=3), "there was no turn 3", id="signal"),
        pytest.param(_set("voice_signal", turn=0), "there was no turn 0", id="turn 0"),
        pytest.param(_set("voice_reflection", turn=9), "there was no turn 9", id="reflection"),
        pytest.param(_set("voice_reflection", outcome="odd"), "voice_reflection.outcome", id="outcome"),
    ],
)
def test_a_state_of_mind_that_cannot_be_is_told_by_its_line(
    minds: Path, change: Callable[[Lines], None], told: str
) -> None:
    check_space(ExportFile(minds))
    with pytest.raises(ImportInvalid, match=rf"line \d+.*{told}"):
        check_space(ExportFile(spoilt(minds, change)))


@pytest.fixture(scope="module")
def minds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A panel whose advisors have reflected, as a file."""
    return asyncio.run(_written(tmp_path_factory.mktemp("minds"), moved))


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The panel as a file."""
    return asyncio.run(_written(tmp_path_factory.mktemp("board"), asked))


async def _written(folder: Path, story: Callable[[World], Awaitable[tuple[Entity, Panel]]]) -> Path:
    async with open_world(with_tables(folder / "here.db")) as world:
        _, panel = await story(world)
        return await written(world.denizen.spaces.export(panel.space), folder / "board.jsonl")
