"""Messages that expire: nothing is left of them, and nobody loses what they wait for."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from denizen import ClientTool, call, forever, reply
from denizen.access import audit
from denizen.access.audit import AuditFilter
from denizen.agents.registry import Agent
from denizen.api import retention
from denizen.bus.streams import space_topic
from denizen.checker import check_deeply
from denizen.cycles import organization
from denizen.errors import InvalidInput
from denizen.forgetting import expiring
from denizen.spaces import retention as rules
from denizen.spaces.directory import Entity, Space
from denizen.spaces.retention import Retention
from tests.forgetting.test_forgetting import assert_gone, dump
from tests.world import World, open_world

DAY = 86_400
OLD = "Quentin hid the violet xylophone beneath seventeen crooked umbrellas last Thursday."
ABOUT_OLD = "Noor told me of an instrument under umbrellas."
NEW = "The plumber comes on Monday at nine and needs the key to the cellar."
WORDS = ("quentin", "xylophon", "crooked", "instrument")
KEPT_90 = 90


async def old_and_new(world: World) -> tuple[Agent, Entity, Space]:
    """Noor says something, and a hundred days later something else; Ada answers both."""
    ada = await world.agent("Ada", reply(f"So: {OLD}"), ABOUT_OLD, reply("I have it here."), "Noted the plumber.")
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, OLD, kitchen)
    await world.run()
    world.clock.advance(100 * DAY)
    await world.say(noor, NEW, kitchen)
    await world.run()
    return ada, noor, kitchen


async def test_what_has_expired_is_gone_everywhere_and_the_rest_stays(world: World):
    """The message, its answer, what the agent thought and summed up: none of it can be read or recalled."""
    ada, noor, kitchen = await old_and_new(world)
    await world.denizen.spaces.set_retention(kitchen, KEPT_90)

    (receipt,) = await world.denizen.organizations.remove_expired()

    await assert_gone(world, *WORDS)
    assert (receipt.kind, receipt.subject_id, receipt.by_id) == ("expired", kitchen.id, None)
    assert await world.transcript(kitchen) == [
        "Noor: [forgotten]",
        "Ada: [forgotten]",
        f"Noor: {NEW}",
        "Ada: I have it here.",
    ]
    assert "plumber" in await dump(world)
    assert await world.denizen.minds.recall(ada, "violet xylophone umbrellas", reader=noor) == []
    assert await world.denizen.organizations.remove_expired() == []
    kept = await world.denizen.db.read(audit.entries, noor.organization_id, noor.id, AuditFilter(), limit=1)
    assert [(each.action, each.by, each.subject_id) for each in kept] == [("expire", None, kitchen.id)]


async def test_nothing_is_removed_where_nobody_has_set_anything(small_world: World):
    world = small_world
    _, _, kitchen = await old_and_new(world)
    before = await dump(world)
    assert await world.denizen.organizations.remove_expired() == []
    await world.denizen.spaces.set_retention(kitchen, 0)
    assert await world.denizen.organizations.remove_expired() == []
    assert [line for line in (await dump(world)).splitlines() if line not in before.splitlines()] != []
    assert await world.transcript(kitchen) != []
    assert "[forgotten]" not in await dump(world)


async def test_layers_and_selves_of_a_long_life_hold_nothing_of_it(small_world: World):
    """Cycles that left the window long ago are lines and counts of the layers, in the words of the agent."""
    world = small_world
    turns = [
        turn
        for number in range(40)
        for turn in (reply(f"Answer {number} of many."), f"Learned the marvel{number} from Noor, and nothing else.")
    ]
    ada = await world.agent("Ada", *turns, window={"max_tokens": 6_000, "min_recent_cycles": 3})
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for number in range(40):
        if number == 30:
            world.clock.advance(100 * DAY)
        await world.say(
            noor, f"Here comes riddle{number}, which nobody has ever solved so far. " + "Think of it. " * 40, kitchen
        )
        await world.run()
    assert "marvel3 " in await dump(world)
    await world.denizen.spaces.set_retention(kitchen, KEPT_90)

    await world.denizen.organizations.remove_expired()

    await assert_gone(world, *(f"{word}{number} " for word in ("marvel", "riddle") for number in range(30)))
    stored = await dump(world)
    assert all(f"riddle{number}," in stored for number in range(30, 40))
    await world.say(noor, "Are you still there?", kitchen)
    assert [each.text for each in await world.denizen.minds.inbox(ada)] == ["Are you still there?"]


async def test_a_cycle_with_several_spaces_keeps_what_the_others_keep(small_world: World):
    """What was said where nothing expires is not lost because somebody said something elsewhere at the same time."""
    world = small_world
    ada = await world.agent("Ada", "Noor spoke of umbrellas, Bert of the roof.", cycle={"silent_reply": "ignore"})
    noor, bert = await world.person("Noor"), await world.person("Bert")
    kitchen, attic = await world.space("Kitchen", noor, ada), await world.space("Attic", bert, ada)
    await world.say(noor, OLD, kitchen)
    await world.say(bert, "The roof leaks above the bed, and the bucket is full by noon.", attic)
    await world.run()
    world.clock.advance(100 * DAY)
    await world.denizen.spaces.set_retention(kitchen, KEPT_90)
    await world.denizen.organizations.remove_expired()
    await assert_gone(world, "xylophon", "crooked")
    stored = await dump(world)
    assert "bucket is full" in stored
    assert "Bert of the roof" in stored


async def test_what_somebody_waits_for_stays(world: World):
    """A message in an inbox, and one whose cycle waits for an answer, expire only when they are done."""
    confirm = ClientTool(name="confirm", description="Ask whether you may.")
    ada = await world.agent("Ada", call("confirm"), reply("Thank you."), "Asked Noor.", tools=[confirm])
    eve = await world.agent("Eve", reply("Heard it."), "Heard it.")
    noor = await world.person("Noor")
    kitchen, attic = await world.space("Kitchen", noor, ada), await world.space("Attic", noor, eve)
    await world.denizen.agents.suspend(eve)
    await world.say(noor, OLD, kitchen)
    await world.say(noor, OLD, attic)
    await world.run()
    world.clock.advance(100 * DAY)
    for each in (kitchen, attic):
        await world.denizen.spaces.set_retention(each, KEPT_90)

    assert await world.denizen.organizations.remove_expired() == []
    assert [*await world.transcript(kitchen), *await world.transcript(attic)] == [f"Noor: {OLD}"] * 2

    await world.denizen.agents.resume(eve)
    await world.run()  # the question has expired meanwhile, and both agents go on
    assert await world.transcript(attic) == [f"Noor: {OLD}", "Eve: Heard it."]
    assert len(await world.denizen.organizations.remove_expired()) == 2
    world.clock.advance(100 * DAY)
    await world.denizen.organizations.remove_expired()
    await assert_gone(world, *WORDS)


async def test_questions_to_a_panel_expire_with_their_answers(small_world: World):
    world = small_world
    world.denizen.models.register("m", forever(lambda _messages, _info: f"I think that {OLD}"))
    noor = await world.person("Noor")
    panel = await world.denizen.panels.create("Board", [noor], model="m")
    await world.denizen.panels.ask(panel, noor, OLD)
    world.clock.advance(100 * DAY)
    await world.denizen.spaces.set_retention(panel.id, KEPT_90)
    assert await world.denizen.organizations.remove_expired() == [], "its round is open"
    await world.run()
    await world.denizen.organizations.remove_expired()
    await assert_gone(world, *WORDS)


# Settings


async def test_a_space_may_differ_from_the_default(small_world: World):
    world = small_world
    _, noor, kitchen = await old_and_new(world)
    attic = await world.space("Attic", noor)
    home = (await world.denizen.organizations.list())[0]
    await world.denizen.db.write(organization.change_settings, home.id, {"keep_days": 30, "archive_expired": True})
    assert await world.denizen.spaces.retention(kitchen) == Retention(30, archive=True)

    await world.denizen.spaces.set_retention(attic, 0)
    assert await world.denizen.db.read(rules.in_force) == [(kitchen.id, Retention(30, archive=True))]
    await world.denizen.spaces.set_retention(attic, 10)
    await world.denizen.spaces.set_retention(attic, None)
    assert await world.denizen.spaces.retention(attic) == Retention(30, archive=True)
    assert {id for id, _ in await world.denizen.db.read(rules.in_force)} == {kitchen.id, attic.id}
    with pytest.raises(InvalidInput, match="days is a number from 0"):
        await world.denizen.spaces.set_retention(attic, -1)
    # This runtime has no folder for archives: it removes nothing that would have to be in one.
    assert await world.denizen.organizations.remove_expired() == []


async def test_a_house_removes_what_has_expired_by_itself(small_world: World):
    """While agents run, once a day."""
    world = small_world
    _, _, kitchen = await old_and_new(world)
    await world.denizen.spaces.set_retention(kitchen, KEPT_90)
    async with world.denizen.living() as residents, world.denizen.bus.subscribe(space_topic(kitchen.id)) as frames:
        await residents.measure()
        await anext(aiter(frames))
    await assert_gone(world, *WORDS)


# Archives


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Every line of the archives of a space."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def said_in(folder: Path) -> list[str]:
    return [each["text"] for each in lines_of(folder) if each.get("row") == "message"]


async def test_an_archive_has_the_messages_and_their_files(ready_sqlite_url: str, tmp_path: Path):
    folder = tmp_path / "archive"
    async with open_world(ready_sqlite_url, archive_folder=folder) as world:
        _, noor, kitchen = await old_and_new(world)
        attic = await world.space("Attic", noor)
        file = await world.denizen.files.upload(noor, b"seven crooked umbrellas", name="list.txt")
        await world.denizen.spaces.post(attic, noor, "The list.", files=[file])
        world.clock.advance(91 * DAY)
        await world.say(noor, "Nothing more.", attic)
        for each in (kitchen, attic):
            await world.denizen.spaces.set_retention(each, KEPT_90, archive=True)
        await world.denizen.organizations.remove_expired()
        await assert_gone(world, *WORDS)
        assert await world.transcript(attic) == ["Noor: [forgotten]", "Noor: Nothing more."]
    said = {each.name: said_in(folder / each.id) for each in (kitchen, attic)}
    assert said == {"Kitchen": [OLD, f"So: {OLD}", NEW, "I have it here."], "Attic": ["The list."]}
    (piece,) = [each for each in lines_of(folder / attic.id) if each.get("row") == "file"]
    assert (piece["name"], piece["size"]) == ("list.txt", 23)
    assert {each.stat().st_mode & 0o777 for each in (folder / kitchen.id).iterdir()} == {0o600}
    assert (folder / kitchen.id).stat().st_mode & 0o777 == 0o700


async def test_a_message_that_is_edited_while_it_is_archived_stays(ready_sqlite_url: str, tmp_path: Path):
    """The archive has the text from before the edit: the message is archived again with the next run."""
    async with open_world(ready_sqlite_url, archive_folder=tmp_path / "archive") as world:
        _, noor, kitchen = await old_and_new(world)
        first, *_ = await world.denizen.spaces.messages(kitchen)
        began = world.clock.now()
        world.clock.advance(1)
        await world.denizen.spaces.edit_message(first.id, "Another text about other things altogether.", by=noor)
        before = Retention(KEPT_90).before(world.clock.now())
        how = {"last": 4, "unless_edited_since": began}
        await world.denizen.db.write(expiring.forget_expired, kitchen.id, before, **how)
        assert (await world.transcript(kitchen))[:2] == [
            "Noor: Another text about other things altogether.",
            "Ada: [forgotten]",
        ]


# Crashes


LIFE = """
import asyncio, os, signal, sys
from pathlib import Path
from denizen import ManualClock, Runtime, failpoints
from denizen.api.retention import remove_expired

async def main(url, folder, point, after):
    clock = ManualClock()
    clock.advance(200 * 86_400)
    async with Runtime(url, clock=clock) as denizen:
        failpoints.arm(point, lambda: os.kill(os.getpid(), signal.SIGKILL), after=int(after))
        await remove_expired(denizen, Path(folder), most=2)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("point", ["archive.written", "commit:forget_expired", "committed:forget_expired"])
async def test_killed_at(ready_sqlite_url: str, tmp_path: Path, point: str, after: int):
    """A process killed at any point of it: the next one finishes, and the archives have every message."""
    url, folder = ready_sqlite_url, tmp_path / "archive"
    async with open_world(url) as world:
        _, _, kitchen = await old_and_new(world)
        await world.denizen.spaces.set_retention(kitchen, KEPT_90, archive=True)
        said = await world.transcript(kitchen)
    command = [sys.executable, "-c", LIFE, url, str(folder), point, str(after)]
    killed = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    async with open_world(url) as world:
        world.clock.advance(200 * DAY)
        assert await world.denizen.db.read(check_deeply) == []
        await retention.remove_expired(world.denizen, folder, most=2)
        assert {line.partition(": ")[2] for line in await world.transcript(kitchen)} == {"[forgotten]"}
        await assert_gone(world, *WORDS, "plumber")
    assert said_in(folder / kitchen.id) == [line.partition(": ")[2] for line in said]
    assert not list(folder.glob("*/*.unfinished"))
