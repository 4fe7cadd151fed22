"""An agent leaves the house as a file with its whole life, and is the same in another one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from denizen import call, reply, tool
from denizen.checker import check_database
from denizen.consciousness.recall.searching import search
from denizen.errors import HandleTaken, ImportInvalid, InvalidInput
from denizen.ids import AgentId
from denizen.tools.settings import HttpTool
from tests.agents.test_forking import replayed
from tests.consciousness.past import Past, eventful_life, new_life
from tests.databases import with_tables
from tests.portability.files import Lines, cut_short, of, parsed, spoilt, without_ids, written
from tests.properties.house import everything
from tests.world import World, as_text, open_world


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncGenerator[World]:
    """An empty house on SQLite."""
    async with open_world(with_tables(tmp_path / "elsewhere.db")) as world:
        yield world


async def full_life(world: World) -> Past:
    """An eventful one, with everything that an agent keeps."""
    past = await eventful_life(world)
    await world.denizen.agents.edit(past.ada, heartbeat={"every_minutes": 60, "instruction": "Look around."})
    await world.denizen.notes.set(past.ada, "tea", "Noor takes milk.")
    await world.denizen.plans.set(past.ada, "standup", "Ask what is up.", cron="0 9 * * *")
    await world.denizen.plans.set_timer(past.ada, "Tea is ready.", after="1h")
    return past


async def test_a_life_comes_out_as_it_went_in(world: World, tmp_path: Path) -> None:
    """Out of a house, into an empty one, and out again: the same file, and the same requests to the letter."""
    past = await full_life(world)
    file = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    async with open_world(with_tables(tmp_path / "other.db"), clock=world.clock) as other:
        made = await other.denizen.organizations.import_file(file)
        ada = await other.denizen.agents.get(AgentId(made.id))
        assert (made.kind, made.handle, made.id) == ("agent", "ada", past.ada.id)
        assert ada.definition == (await world.denizen.agents.get(past.ada)).definition
        again = await written(other.denizen.agents.export(ada), tmp_path / "again.jsonl")
        assert without_ids(parsed(again)) == without_ids(parsed(file))
        assert made.counts["cycle"] == 26
        assert await replayed(other, ada, 26) == await replayed(world, past.ada, 26)
        assert await other.denizen.goals.list(ada) == await world.denizen.goals.list(past.ada)
        assert await other.denizen.notes.list(ada) == await world.denizen.notes.list(past.ada)
        assert await check_database(other.denizen.db) == []


async def test_the_same_life_twice_in_one_house(world: World, tmp_path: Path) -> None:
    """Under another handle and with ids of its own; nothing of the first is different, and no invariant is broken."""
    past = await full_life(world)
    file = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    before = await world.denizen.db.read(everything)
    with pytest.raises(HandleTaken, match="--handle"):
        await world.denizen.organizations.import_file(file)
    assert await world.denizen.db.read(everything) == before
    made = await world.denizen.organizations.import_file(file, handle="bea")
    bea = await world.denizen.agents.get(AgentId(made.id))
    assert (bea.name, bea.entity.handle) == ("Ada", "bea")
    assert bea.id != past.ada.id
    after = await world.denizen.db.read(everything)
    for name, rows in before.items():
        assert set(rows) <= set(after[name]), f"a row of {name} has changed"
    assert await replayed(world, bea, 26) == await replayed(world, past.ada, 26)
    again = parsed(await written(world.denizen.agents.export(bea), tmp_path / "bea.jsonl"))
    renamed = [each | {"handle": "bea"} if each.get("row") == "agent" else each for each in parsed(file)]
    assert without_ids(again) == without_ids(renamed)
    assert await check_database(world.denizen.db) == []


async def test_who_comes_in_does_nothing_until_resumed(world: World, tmp_path: Path) -> None:
    """Its plans are held and it is in no space; then it goes on where it was."""
    past = await full_life(world)
    file = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    await world.denizen.agents.delete(past.ada)
    made = await world.denizen.organizations.import_file(file, handle="bea")
    bea = await world.denizen.agents.get(AgentId(made.id))
    assert await world.denizen.agents.status(bea) == "suspended"
    assert {(each.kind, each.state) for each in await world.denizen.plans.list(bea)} == {
        ("plan", "held"),
        ("timer", "held"),
        ("heartbeat", "held"),
    }
    asked = len(past.model.requests)
    await world.run_after(2 * 86_400)
    assert len(past.model.requests) == asked
    attic = await world.space("Attic", past.noor, bea)
    await world.denizen.agents.resume(bea)
    await world.say(past.noor, "Hello again!", attic)
    await world.run()
    assert (await world.transcript(attic))[-1].startswith("Ada: Answer")
    assert len(await world.cycles(bea)) > 26
    told = [as_text(each) for each in past.model.requests[asked]]
    assert any("Good night." in each for each in told), "it has its past in mind"
    assert await check_database(world.denizen.db) == []


async def test_what_is_written_out_as_a_secret_stays_here(small_world: World, tmp_path: Path) -> None:
    """The name of a secret stands in its place, and whoever takes the agent in is told which to keep."""
    canary = "canary-4711-abcdef"
    weather = HttpTool(
        name="weather",
        description="The weather.",
        url="https://weather.example/now",
        headers={"Authorization": f"Bearer {canary}", "X-Station": canary, "Accept": "text/plain", "X-Id": "${ID}"},
    )
    programs = {"files": {"command": "x", "env": {"A": canary}}}
    ada = await small_world.denizen.agents.create("Ada", tools=[weather], mcp=programs)
    file = await written(small_world.denizen.agents.export(ada), tmp_path / "ada.jsonl")
    assert canary not in file.read_text()
    made = await small_world.denizen.organizations.import_file(file, handle="bea")
    assert len(made.dangers) == 1, "it would start a program"
    assert made.secrets == ("FILES_A", "ID", "WEATHER_AUTHORIZATION", "WEATHER_X_STATION")
    (kept,) = (await small_world.denizen.agents.get(AgentId(made.id))).definition.tools
    assert isinstance(kept, HttpTool)
    assert kept.headers == {
        "Authorization": "Bearer ${WEATHER_AUTHORIZATION}",
        "X-Station": "${WEATHER_X_STATION}",
        "Accept": "text/plain",
        "X-Id": "${ID}",
    }


async def test_what_was_cut_is_still_read_whole(world: World, tmp_path: Path) -> None:
    """The pointer in its log leads to the text, which came along."""

    @tool
    def look() -> str:
        """Look."""
        return "long " * 400 + "the end"

    turns = [call("look"), reply("Seen."), "Looked."]
    ada = await world.agent("Ada", *turns, tools=[look], window={"result_characters": 500})
    noor = await world.person("Noor")
    await world.say(noor, "Look!", await world.space("Hall", noor, ada))
    await world.run()
    (results,) = [
        as_text(each.message) for each in await world.denizen.minds.log(ada) if "cut at" in as_text(each.message)
    ]
    pointer = results.split('read_entry("')[1].split('"')[0]
    file = await written(world.denizen.agents.export(ada), tmp_path / "ada.jsonl")
    made = await world.denizen.organizations.import_file(file, handle="bea")
    bea = await world.denizen.agents.get(AgentId(made.id))
    await world.denizen.agents.resume(bea)
    world.model(ada)._decide = lambda messages, _info: (
        call("read_entry", entry=pointer, offset=1_900) if as_text(messages[-1]).startswith("[INBOX") else "Read it."
    )
    await world.say(noor, "Read it all.", await world.space("Attic", noor, bea))
    await world.run()
    told = [as_text(each.message) for each in await world.denizen.minds.log(bea)]
    assert any("read_entry →" in each and "the end" in each for each in told)


async def test_nothing_of_an_open_cycle_or_of_what_waits_leaves(world: World, tmp_path: Path) -> None:
    """Only what has ended: the rest is still the agent's, here."""
    past = await new_life(world)
    await past.hear("Hello!")
    # Nobody waits for an answer to this: the skip leaves no trace.
    await world.denizen.agents.trigger(past.ada, "bell", text="skip this")
    await world.run()
    await world.denizen.agents.suspend(past.ada)
    await world.say(past.noor, "Still there?", past.hall)
    lines = parsed(await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl"))
    assert [each["number"] for each in of(lines, "cycle")] == [1]
    assert [each["said"]["text"] for each in of(lines, "event")] == ["Hello!"]
    assert {each["cycle"] for each in of(lines, "entry")} == {1}


async def test_with_its_space_it_can_recall_what_was_said_there(world: World, tmp_path: Path) -> None:
    """Space first or agent first, they find each other again; alone, it keeps to itself what others said elsewhere."""
    past = await new_life(world)
    await past.hear("The violin is in the cellar.", "The cello is in the attic.")
    ada = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    hall = await written(world.denizen.spaces.export(past.hall), tmp_path / "hall.jsonl")

    async def found(files: list[Path]) -> list[str]:
        name = "-".join(each.stem for each in files)
        async with open_world(with_tables(tmp_path / f"{name}.db"), clock=world.clock) as other:
            for each in files:
                await other.denizen.organizations.import_file(each)
            assert await check_database(other.denizen.db) == []
            here = await other.denizen.people.find("ada")
            return [each.text for each in await other.denizen.db.read(search, here.id, "violin cellar")]

    known = [each.text for each in await world.denizen.db.read(search, past.ada.id, "violin cellar")]
    assert "The violin is in the cellar." in known
    assert await found([hall, ada]) == known
    assert await found([ada, hall]) == known
    assert await found([ada]) == []


async def test_a_forgotten_message_is_in_no_file(world: World, tmp_path: Path) -> None:
    past = await new_life(world)
    said = await world.say(past.noor, "The violin lies under the third step of the cellar stairs", past.hall)
    await world.run()
    lines = world.denizen.agents.export(past.ada)
    begun = await anext(lines)
    await world.denizen.spaces.forget_message(said.id)
    with pytest.raises(InvalidInput, match="forgotten during"):
        _ = [begun, *[line async for line in lines]]
    for name, whole in (
        ("ada", world.denizen.agents.export(past.ada)),
        ("hall", world.denizen.spaces.export(past.hall)),
    ):
        assert "violin" not in (await written(whole, tmp_path / name)).read_text()


def _cut(lines: Lines) -> None:
    del lines[-1]


def _swap(lines: Lines) -> None:
    at = [each.get("row") for each in lines].index("cycle")
    lines[at], lines[at + 1] = lines[at + 1], lines[at]


def _set(row: str, /, **fields: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        of(lines, row)[0].update(fields)

    return change


def _planned(cron: str, zone: str) -> Callable[[Lines], None]:
    return _set("plan", schedule=json.dumps({"kind": "cron", "expression": cron, "zone": zone}))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(lambda lines: lines.clear(), "line 1: the file is empty", id="empty"),
        pytest.param(lambda lines: lines[0].update(format="other"), "line 1: it is not a Denizen export", id="format"),
        pytest.param(lambda lines: lines[0].update(version=2), "line 1: it is written in version 2", id="version"),
        pytest.param(_cut, "incomplete", id="cut"),
        pytest.param(lambda lines: lines.remove(of(lines, "note")[0]), "a line is missing or repeated", id="hole"),
        pytest.param(lambda lines: lines.append(lines[1]), "there is more after the end", id="tail"),
        pytest.param(
            _set("agent", colour="red"), r"line 2: agent.colour: this Denizen knows no such field", id="field"
        ),
        pytest.param(_set("note", row="sonnet"), "this Denizen knows no such kind of line", id="kind"),
        pytest.param(_set("agent", definition={"modle": "x"}), "line 2: .*modle", id="definition"),
        pytest.param(_set("agent", cycles=99), "it speaks of 99 cycles", id="count"),
        pytest.param(_set("agent", window_from=10_000), "window begins where there is nothing", id="window"),
        pytest.param(_set("agent", era=77), "no self of era 77", id="era"),
        pytest.param(_set("entry", message="{}"), "its message cannot be read", id="message"),
        pytest.param(_set("entry", cycle=3), "another cycle than it says", id="entry"),
        pytest.param(_set("effect", cycle=4_000), "there is no cycle 4,000", id="effect"),
        pytest.param(_set("passage", number=9), "this should be passage 1", id="passage"),
        pytest.param(_set("plan", schedule="{}"), "its schedule cannot be read", id="plan"),
        pytest.param(
            _set("agent", definition={"zone": "Mars/Olympus"}), "line 2: .*Unknown time zone 'Mars/Olympus'", id="zone"
        ),
        pytest.param(
            _set("agent", definition={"heartbeat": {"every_minutes": 5, "zone": "Mars/Olympus"}}),
            "line 2: .*Unknown time zone 'Mars/Olympus'",
            id="heartbeat",
        ),
        pytest.param(_planned("0 9 * * *", "Mars/Olympus"), "Unknown time zone 'Mars/Olympus'", id="plan zone"),
        pytest.param(_planned("daily", "UTC"), "'daily' is not a cron expression", id="plan cron"),
        pytest.param(
            _set("plan", schedule='{"kind": "once", "at": 4000000000000000000}'),
            "too far in the future",
            id="plan time",
        ),
        pytest.param(_set("plan", next_run=2**62), "plan.next_run: .*less than or equal", id="next run"),
        pytest.param(_set("note", text="\x00"), "databases cannot store", id="character"),
        pytest.param(_swap, "this should be cycle 1", id="order"),
    ],
)
async def test_what_is_not_as_it_should_be_is_told_by_its_line(
    life_in_a_file: Path, elsewhere: World, change: Callable[[Lines], object], told: str
) -> None:
    """And nothing of the file is taken in."""
    before = await elsewhere.denizen.db.read(everything)
    with pytest.raises(ImportInvalid, match=told) as refused:
        await elsewhere.denizen.organizations.import_file(spoilt(life_in_a_file, change))
    assert refused.value.line >= 1
    rows = await elsewhere.denizen.db.read(everything)
    assert {name: rows[name] for name in rows if name not in ("organizations", "roster")} == {
        name: before[name] for name in before if name not in ("organizations", "roster")
    }


async def test_what_is_no_json_is_told_by_its_line(life_in_a_file: Path, elsewhere: World) -> None:
    with pytest.raises(ImportInvalid, match=r"broken.jsonl, line 4: it cannot be read: it is not JSON"):
        await elsewhere.denizen.organizations.import_file(cut_short(life_in_a_file, 4))


@pytest.fixture
async def life_in_a_file(small_world: World, tmp_path: Path) -> Path:
    past = await new_life(small_world)
    await past.hear("Hello!", "work")
    await small_world.denizen.notes.set(past.ada, "tea", "Noor takes milk.")
    await small_world.denizen.plans.set(past.ada, "standup", "Ask what is up.", cron="0 9 * * *")
    return await written(small_world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
