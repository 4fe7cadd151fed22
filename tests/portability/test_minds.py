"""What an agent makes of its conversations, and what is remembered of them, comes along: with the one or the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call, forever
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.errors import ImportInvalid
from denizen.ids import AgentId, SpaceId
from denizen.memory.changes import MemoryChange
from denizen.memory.items import MemoryItem
from denizen.memory.policy import Policy
from denizen.models.scripted import Info, Turn
from denizen.portability.agent_import import check_agent
from denizen.portability.reading import ExportFile
from denizen.portability.space_import import check_space
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from tests.databases import with_tables
from tests.memory.conftest import answering, known, remembering, utility
from tests.memory.conftest import written as summed_up
from tests.portability.files import Lines, of, parsed, spoilt, without_ids, written
from tests.world import World, as_text, open_world

CROSS = "I hate this, it is terrible and awful."


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    async with open_world(ready_url, memory=remembering()) as world:
        yield world


@pytest.fixture
async def small_world(ready_sqlite_url: str) -> AsyncGenerator[World]:
    async with open_world(ready_sqlite_url, memory=remembering()) as world:
        yield world


@dataclass
class Felt:
    """An agent with a past that has left marks."""

    ada: Agent
    noor: Entity
    kitchen: Space


def _utility(messages: list[ModelMessage], _info: Info) -> Turn:
    if "memory_json" not in as_text(messages[0]):
        return call("adjust", mood="empathetic", imprints={"likes": "tea"}, reason="They are cross.")
    facts = [known("Noor lives in Lisbon.", 1), known("Noor hates mornings.", 1)]
    return summed_up("Noor complained.", facts=facts)


async def felt(world: World) -> Felt:
    """A person who is cross, is summed up and remembered; settings of the conversation's own; something forgotten."""
    world.denizen.models.register("utility", forever(_utility))
    reflection = {"profile": "basic", "model": "utility"}
    ada = await world.agent("Ada", model=forever(answering), reflection=reflection)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for text in (f"I live in Lisbon. {CROSS}", "It rains.", "And now?"):
        await world.say(noor, text, kitchen)
        await world.run()
    denizen = world.denizen
    await denizen.reflection.set_settings(ada, kitchen, {"mode": "support"})
    await denizen.memory.set_policy(kitchen, Policy(enabled=True))
    mornings = [each for each in await denizen.memory.list(owner=_persona(noor, ada)) if "mornings" in each.text]
    await denizen.memory.forget(mornings[0].id)
    [lisbon] = await denizen.memory.list(owner=_persona(noor, ada))
    world.clock.advance(60)
    porto = await denizen.memory.correct(lisbon, "Noor lives in Porto.", by=noor)
    world.clock.advance(60)
    await denizen.memory.revert(porto, (await denizen.memory.history(porto))[0], by=noor)
    return Felt(ada, noor, kitchen)


def _persona(noor: Entity, ada: Agent) -> str:
    return f"persona:{noor.id}:{ada.id}"


def counted(lines: Lines) -> dict[str, int]:
    rows = ("place", "stance", "feeling", "signal", "reflection", "memory", "kept_out", "memory_policy", "rolling")
    return {row: len(of(lines, row)) for row in rows if of(lines, row)}


async def test_they_come_out_as_they_went_in(world: World, tmp_path: Path) -> None:
    """Agent first or space first: the same files again, and the same mind."""
    past = await felt(world)
    ada = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    kitchen = await written(world.denizen.spaces.export(past.kitchen), tmp_path / "kitchen.jsonl")
    assert counted(parsed(ada)) == {
        "place": 1, "stance": 1, "feeling": 1, "signal": 1, "reflection": 1, "memory": 2, "kept_out": 1,
    }  # fmt: skip
    assert counted(parsed(kitchen)) == {"memory": 3, "kept_out": 1, "memory_policy": 1, "rolling": 1}
    for order in ((ada, kitchen), (kitchen, ada)):
        name = f"{order[0].stem}-first"
        async with open_world(with_tables(tmp_path / f"{name}.db"), clock=world.clock, memory=remembering()) as other:
            made = [await other.denizen.organizations.import_file(each) for each in order]
            assert {each.id for each in made} == {past.ada.id, past.kitchen.id}
            assert await _same(world, other, past)
            for path, lines in (
                (ada, other.denizen.agents.export(past.ada.id)),
                (kitchen, other.denizen.spaces.export(past.kitchen.id)),
            ):
                assert without_ids(parsed(await written(lines, tmp_path / name))) == without_ids(parsed(path))
            assert await check_database(other.denizen.db) == []


async def _same(world: World, other: World, past: Felt) -> bool:
    """Whether the mind is the same in both worlds, and remembers the same."""
    for each in (world, other):
        stance = await each.denizen.reflection.stance(past.ada.id, past.kitchen.id)
        assert (stance.state.mood, stance.imprints, stance.overrides) == (
            "empathetic", {"likes": "tea"}, {"mode": "support"},
        )  # fmt: skip
        found = await each.denizen.memory.search("Where does Noor live?", [_persona(past.noor, past.ada)])
        assert [one.item.text for one in found] == ["Noor lives in Lisbon."]
        versions = await each.denizen.memory.history(found[0].item)
        assert [(one.change.kind, one.text, one.change.by_id) for one in versions] == [
            ("learned", "Noor lives in Lisbon.", None),
            ("corrected", "Noor lives in Porto.", past.noor.id),
            ("reverted", "Noor lives in Lisbon.", past.noor.id),
        ]
        assert (await each.denizen.memory.summary(past.kitchen.id)).summary == "Noor complained."
        assert (await each.denizen.memory.policy(past.kitchen.id)).enabled is True
    mine = await world.denizen.reflection.states_of_mind(past.ada.id, past.kitchen.id)
    theirs = await other.denizen.reflection.states_of_mind(past.ada.id, past.kitchen.id)
    assert [(each.cycle, each.cause, each.state, each.at) for each in mine] == [
        (each.cycle, each.cause, each.state, each.at) for each in theirs
    ]
    return True


async def test_an_agent_alone_keeps_the_place_of_its_conversation(world: World, tmp_path: Path) -> None:
    """Nobody is in that space and nobody sees it, until the space itself comes."""
    past = await felt(world)
    ada = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    async with open_world(with_tables(tmp_path / "other.db"), clock=world.clock, memory=remembering()) as other:
        made = await other.denizen.organizations.import_file(ada)
        assert made.people == ("noor",)
        assert [each.space_id for each in await other.denizen.reflection.stances(AgentId(made.id))] == [past.kitchen.id]
        assert await other.denizen.spaces.members(past.kitchen.id) == []
        assert await other.denizen.db.read(directory.spaces_of, past.noor.id) == []
        again = await written(other.denizen.agents.export(AgentId(made.id)), tmp_path / "again.jsonl")
        assert without_ids(parsed(again)) == without_ids(parsed(ada))
        assert await check_database(other.denizen.db) == []


async def test_twice_in_one_house_each_has_its_own(world: World, tmp_path: Path) -> None:
    """The copy stands to the same conversation, and remembers by itself: what one forgets, the other still knows."""
    past = await felt(world)
    ada = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    kitchen = await written(world.denizen.spaces.export(past.kitchen), tmp_path / "kitchen.jsonl")
    bea = AgentId((await world.denizen.organizations.import_file(ada, handle="bea")).id)
    attic = SpaceId((await world.denizen.organizations.import_file(kitchen, name="Attic")).id)
    assert [each.space_id for each in await world.denizen.reflection.stances(bea)] == [past.kitchen.id]
    for owner in (f"persona:{past.noor.id}:{bea}", f"conversation:{attic}"):
        found = await world.denizen.memory.search("Noor lives in Lisbon", [owner])
        assert [each.item.text for each in found][:1] == ["Noor lives in Lisbon."]
    assert (await world.denizen.memory.summary(attic)).summary == "Noor complained."
    # By its hash alone, what was forgotten cannot be known of another owner.
    assert counted(parsed(await written(world.denizen.agents.export(bea), tmp_path / "bea.jsonl"))) == {
        "place": 1, "stance": 1, "feeling": 1, "signal": 1, "reflection": 1, "memory": 2,
    }  # fmt: skip
    mine = await world.denizen.memory.list(owner=_persona(past.noor, past.ada))
    copies = await world.denizen.memory.list(owner=f"persona:{past.noor.id}:{bea}")
    assert {each.id for each in mine}.isdisjoint(each.id for each in copies)
    assert [each.replaced for each in await _changes(world, copies)] == [(), (copies[1].id,), (copies[0].id,)]
    assert await check_database(world.denizen.db) == []


async def _changes(world: World, memories: list[MemoryItem]) -> list[MemoryChange]:
    return [each.change for each in await world.denizen.memory.history(memories[0])]


async def test_what_is_a_persons_own_or_the_organizations_stays(small_world: World, tmp_path: Path) -> None:
    """Only that person may see the one, and the other belongs to the house: neither is in a file."""
    past = await felt(small_world)
    scopes = {each.scope for each in await small_world.denizen.memory.list()}
    assert "user" in scopes
    for name, lines in (
        ("ada", small_world.denizen.agents.export(past.ada)),
        ("kitchen", small_world.denizen.spaces.export(past.kitchen)),
    ):
        found = {each["scope"] for each in of(parsed(await written(lines, tmp_path / name)), "memory")}
        assert found == {"persona" if name == "ada" else "conversation"}


async def test_who_comes_in_goes_on_as_it_was_disposed(small_world: World, tmp_path: Path) -> None:
    """In its conversation again it is told of its state of mind, and what it lived is not reflected on again."""
    past = await felt(small_world)
    files = [
        await written(small_world.denizen.spaces.export(past.kitchen), tmp_path / "kitchen.jsonl"),
        await written(small_world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl"),
    ]
    async with open_world(with_tables(tmp_path / "other.db"), clock=small_world.clock) as other:
        asked = utility(other)
        other.denizen.models.register("ada", forever(answering))
        for each in files:
            await other.denizen.organizations.import_file(each)
        ada = await other.denizen.agents.get(past.ada.id)
        await other.denizen.agents.edit(ada, model="ada")
        await other.denizen.agents.resume(ada)
        await other.say(past.noor, "Hello again.", past.kitchen)
        await other.run()
        told = [each for each in await other.history(ada) if each.startswith(("inbox", "self"))]
        assert any("your mood is empathetic" in each for each in told)
        assert asked.requests == [], "nothing was wrong with what was said now"


def _set(row: str, /, **fields: Any) -> Callable[[Lines], None]:
    return lambda lines: of(lines, row)[0].update(fields)


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        pytest.param("ada", _set("stance", space_id="x"), "speaks of no space x", id="space"),
        pytest.param("ada", _set("stance", mood="jolly"), "stance.mood", id="mood"),
        pytest.param(
            "ada", _set("stance", overrides={"colour": "red"}), "Unknown conversation setting 'colour'", id="overrides"
        ),
        pytest.param("ada", _set("feeling", person_id="x"), "nobody of whom the file speaks", id="person"),
        pytest.param("ada", _set("feeling", counters={}), "its counters cannot be read", id="counters"),
        pytest.param("ada", _set("stance", reflected_turns=9), "turns that there were not", id="turns"),
        pytest.param("ada", _set("signal", cycle=9), "there was no cycle 9", id="signal"),
        pytest.param("ada", _set("reflection", cycle=9), "there was no cycle 9", id="reflection"),
        pytest.param("ada", _set("memory", user_id="x"), "nobody of whom the file speaks", id="user"),
        pytest.param("ada", _set("memory", scope="conversation"), "nobody of whom the file", id="scope"),
        pytest.param("ada", _set("reflection", outcome="odd"), "reflection.outcome", id="outcome"),
        pytest.param("ada", lambda lines: lines.insert(-1, of(lines, "place")[0]), "one of these before", id="twice"),
        pytest.param("kitchen", _set("memory", scope="persona"), "does not remember it", id="not here"),
        pytest.param("kitchen", _set("rolling", upto=99), "sums up what was not said", id="upto"),
        pytest.param("kitchen", _set("rolling", memory={"facts": 3}), "its memory cannot be read", id="memory"),
        pytest.param("kitchen", _set("memory_policy", policy={"odd": 1}), "it is no policy", id="policy"),
    ],
)
def test_what_is_not_as_it_should_be_is_told_by_its_line(
    both: dict[str, Path], file: str, change: Callable[[Lines], object], told: str
) -> None:
    with pytest.raises(ImportInvalid, match=told):
        CHECKS[file](ExportFile(spoilt(both[file], change)))


CHECKS: dict[str, Callable[[ExportFile], object]] = {"ada": check_agent, "kitchen": check_space}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The agent and its space, as files."""
    folder = tmp_path_factory.mktemp("both")

    async def write() -> dict[str, Path]:
        async with open_world(with_tables(folder / "here.db"), memory=remembering()) as world:
            past = await felt(world)
            return {
                "ada": await written(world.denizen.agents.export(past.ada), folder / "ada.jsonl"),
                "kitchen": await written(world.denizen.spaces.export(past.kitchen), folder / "kitchen.jsonl"),
            }

    return asyncio.run(write())


@pytest.mark.parametrize("name", ["agent", "space", "panel"])
async def test_files_from_before_still_come_in(small_world: World, name: str, tmp_path: Path) -> None:
    """They hold nothing of stances, memories and panels, and are as whole as they were."""
    old = Path(__file__).parent / "old" / f"{name}.jsonl"
    made = await small_world.denizen.organizations.import_file(old)
    lines = (
        small_world.denizen.agents.export(AgentId(made.id))
        if made.kind == "agent"
        else small_world.denizen.spaces.export(SpaceId(made.id))
    )
    before = parsed(old)
    for space in of(before, "space"):
        space |= {"floor": "all", "agent_run_limit": 12}
    again = parsed(await written(lines, tmp_path / "again.jsonl"))
    # Which spaces its cycles come from was not told then: its events say it. So the last line counts more of them.
    told = [each for each in again if each.get("row") != "cycle_space"]
    told[-1]["lines"] = len(told)
    # Nor what came from outside: whatever people did not write counts as such.
    marks = {each["row"]: set[Any]() for each in told[1:]}
    for each in told[1:]:
        marks[each["row"]].add(each.pop("outside", None))
        each.pop("outside_from", None)
        if each["row"] == "passage":
            assert each.pop("page") is None  # nor were the pages of files recalled
        if each["row"] == "message":
            # Nobody could react then, or pin.
            assert (each.pop("reactions"), each.pop("pinned_at")) == (None, None)
        for reply in each.get("replies", ()):
            assert reply.pop("outside") == 1
    assert marks.get("agent", {1}) == marks.get("note", {1}) == marks.get("rolling", {1}) == {1}
    assert without_ids(told) == without_ids(before)
    assert await check_database(small_world.denizen.db) == []
