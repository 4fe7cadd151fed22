"""A space leaves the house as a file with everything that was said in it, and is the same in another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from denizen.checker import check_database
from denizen.errors import ImportInvalid, InvalidInput
from denizen.ids import AgentId, SpaceId
from denizen.spaces.directory import Space
from tests.consciousness.past import Past, new_life
from tests.databases import with_tables
from tests.portability.files import Lines, of, parsed, spoilt, without_ids, written
from tests.world import World, open_world


async def told(world: World) -> Past:
    """A space in which much has happened: an answer, an edit, a deletion, someone who has left."""
    past = await new_life(world)
    await past.hear("Hello, @ada!", "silent, please")
    sam = await world.person("Sam")
    await world.denizen.spaces.join(past.hall, sam, attention="mentions")
    first = await world.say(sam, "I say *this*.", past.hall, metadata={"from": "a test"})
    await world.say(past.noor, "And I that.", past.hall, reply_to=first.id)
    await world.denizen.spaces.edit_message(first.id, "I say *something else*.", by=sam)
    gone = await world.say(past.noor, "Nothing.", past.hall)
    await world.denizen.spaces.delete_message(gone.id, by=past.noor)
    await world.denizen.spaces.leave(past.hall, sam)
    return past


async def test_a_space_comes_out_as_it_went_in(world: World, tmp_path: Path) -> None:
    """Out of a house, into an empty one, and out again: the same file, to the letter."""
    past = await told(world)
    file = await written(world.denizen.spaces.export(past.hall), tmp_path / "hall.jsonl")
    async with open_world(with_tables(tmp_path / "other.db"), clock=world.clock) as other:
        made = await other.denizen.organizations.import_file(file)
        assert (made.kind, made.id, made.name) == ("space", past.hall.id, "Hall")
        assert (made.people, made.absent) == (("noor", "sam"), ("ada",))
        again = await written(other.denizen.spaces.export(SpaceId(made.id)), tmp_path / "again.jsonl")
        assert again.read_text() == file.read_text()
        assert await other.transcript(past.hall) == await world.transcript(past.hall)
        assert await check_database(other.denizen.db) == []


async def test_a_space_keeps_its_floor_and_an_old_file_means_all(world: World, tmp_path: Path) -> None:
    hall = await world.space("Hall", await world.person("Noor"), floor="addressed", agent_run_limit=3)
    file = await written(world.denizen.spaces.export(hall), tmp_path / "hall.jsonl")
    made = await world.denizen.spaces.get(SpaceId((await world.denizen.organizations.import_file(file)).id))
    assert (made.floor, made.agent_run_limit) == ("addressed", 3)

    def from_before(lines: Lines) -> None:
        for name in ("floor", "agent_run_limit"):
            del of(lines, "space")[0][name]

    old = spoilt(file, from_before)
    made = await world.denizen.spaces.get(SpaceId((await world.denizen.organizations.import_file(old)).id))
    assert (made.floor, made.agent_run_limit) == ("all", 12)


async def test_the_same_space_twice_in_one_house(world: World, tmp_path: Path) -> None:
    """It is another space with the same people, whose messages answer each other as they did; nobody is woken."""
    past = await told(world)
    await world.run()
    file = await written(world.denizen.spaces.export(past.hall), tmp_path / "hall.jsonl")
    asked = len(past.model.requests)
    made = await world.denizen.organizations.import_file(file, name="Hall again")
    again = Space(SpaceId(made.id), past.hall.organization_id, "conversation", made.name, False)
    assert made.id != past.hall.id
    assert (made.people, made.absent) == ((), ())
    assert await world.transcript(again) == await world.transcript(past.hall)
    copies, originals = await world.denizen.spaces.messages(again), await world.denizen.spaces.messages(past.hall)
    at = {each.id: each.seq for each in (*copies, *originals)}
    assert [each.reply_to and at[each.reply_to] for each in copies] == [
        each.reply_to and at[each.reply_to] for each in originals
    ]
    renamed = [each | {"name": "Hall again"} if each.get("row") == "space" else each for each in parsed(file)]
    lines = parsed(await written(world.denizen.spaces.export(again), tmp_path / "again.jsonl"))
    assert _without_replies(lines) == _without_replies(renamed)
    await world.run()
    assert len(past.model.requests) == asked
    await world.say(past.noor, "And now?", again)
    await world.run()
    assert (await world.transcript(again))[-1].startswith("Ada: Answer"), "it is a space like any other"
    assert await check_database(world.denizen.db) == []


def _without_replies(lines: Lines) -> Lines:
    return without_ids([{key: value for key, value in each.items() if key != "reply_to"} for each in lines])


async def test_who_has_the_same_handle_is_the_same(world: World, tmp_path: Path) -> None:
    """But not where a person has the handle of what was an agent."""
    past = await told(world)
    file = await written(world.denizen.spaces.export(past.hall), tmp_path / "hall.jsonl")
    async with open_world(with_tables(tmp_path / "other.db"), clock=world.clock) as other:
        noor = await other.person("Noor")
        await other.person("Ada")
        made = await other.denizen.organizations.import_file(file)
        assert (made.people, made.absent) == (("sam",), ("ada-2",))
        members = await other.denizen.spaces.members(SpaceId(made.id))
        assert [each.entity.handle for each in members] == ["ada-2", "noor"]
        assert members[1].entity.id == noor.id
        assert await other.denizen.agents.status(AgentId(members[0].entity.id)) == "dead"


async def test_an_agent_takes_the_place_that_a_space_has_kept_for_it(world: World, tmp_path: Path) -> None:
    """Its messages there are its own again, and it is in the space, suspended like every agent that comes in."""
    past = await told(world)
    hall = await written(world.denizen.spaces.export(past.hall), tmp_path / "hall.jsonl")
    ada = await written(world.denizen.agents.export(past.ada), tmp_path / "ada.jsonl")
    async with open_world(with_tables(tmp_path / "other.db"), clock=world.clock) as other:
        await other.denizen.organizations.import_file(hall)
        made = await other.denizen.organizations.import_file(ada)
        here = await other.denizen.agents.get(AgentId(made.id))
        assert (made.handle, await other.denizen.agents.status(here)) == ("ada", "suspended")
        authors = {
            each.author_id for each in await other.denizen.spaces.messages(past.hall) if each.author_name == "Ada"
        }
        assert authors == {here.id}
        assert here.id in {each.entity.id for each in await other.denizen.spaces.members(past.hall)}
        assert here.definition == (await world.denizen.agents.get(past.ada)).definition
        assert await check_database(other.denizen.db) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param(lambda lines: of(lines, "message")[1].update(seq=9), "this should be message 2", id="order"),
        pytest.param(lambda lines: of(lines, "message")[1].update(author_id="x"), "nobody of the file", id="author"),
        pytest.param(
            lambda lines: of(lines, "message")[1].update(id=of(lines, "message")[0]["id"]), "of this id", id="twice"
        ),
        pytest.param(lambda lines: of(lines, "space")[0].update(messages=1), "speaks of 1 messages", id="count"),
        pytest.param(lambda lines: of(lines, "entity")[0].update(handle="!"), "line 3: The handle", id="handle"),
        pytest.param(lambda lines: of(lines, "entity")[0].update(kind="ghost"), "entity.kind", id="kind"),
        pytest.param(lambda lines: lines[0].update(kind="agent"), "should begin with a line 'agent'", id="other"),
    ],
)
async def test_what_is_not_as_it_should_be_is_told_by_its_line(
    small_world: World, tmp_path: Path, change: Callable[[Lines], object], fault: str
) -> None:
    past = await new_life(small_world)
    await past.hear("Hello!")
    file = await written(small_world.denizen.spaces.export(past.hall), tmp_path / "hall.jsonl")
    with pytest.raises(ImportInvalid, match=fault):
        await small_world.denizen.organizations.import_file(spoilt(file, change))
    assert len(await small_world.denizen.spaces.messages(past.hall)) == 2


async def test_a_space_has_no_handle(small_world: World, tmp_path: Path) -> None:
    hall = await small_world.space("Hall", await small_world.person("Noor"))
    file = await written(small_world.denizen.spaces.export(hall), tmp_path / "hall.jsonl")
    with pytest.raises(InvalidInput, match="holds a space"):
        await small_world.denizen.organizations.import_file(file, handle="hall")
