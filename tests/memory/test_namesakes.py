"""Two people with the same name, or names that look the same, are told apart wherever an agent reads of them."""

from __future__ import annotations

import pytest

from denizen import call, forever, reply
from denizen.consciousness import compaction, layers
from denizen.inbox.format import kept_speaker, speaker
from tests.memory.conftest import answering, utility, written
from tests.world import World, as_text

LOOKALIKE = "N\u03bf\u03bfr"
"""Noor, with two Greek letters."""
SAME_NAMES = pytest.mark.parametrize("name", ["Noor", LOOKALIKE], ids=["same", "lookalike"])


@SAME_NAMES
async def test_a_memory_pass_reads_handles(world: World, name: str) -> None:
    model = utility(world, written("They greeted."))
    ada, other = await world.agent("Ada", model=forever(answering)), await world.person(name, handle="noor-2")
    kitchen = await world.space("Kitchen", other, ada)
    for text in ("I live in Porto.", "It rains."):
        await world.say(other, text, kitchen)
        await world.run()
    assert f'[1] {name} (human, @noor-2), 2026-01-05 09:00: "I live in Porto."' in as_text(model.requests[0][1])


@SAME_NAMES
async def test_recall_and_layers_read_handles(world: World, name: str) -> None:
    ada = await world.agent(
        "Ada",
        reply("Noted."), "Noted where Noor lives.",
        call("recall", query="live"), reply("You do."), "Told who lives where.",
    )  # fmt: skip
    other = await world.person(name, handle="noor-2")
    kitchen = await world.space("Kitchen", other, ada)
    await world.say(other, "I live in Porto.", kitchen)
    await world.run()
    await world.say(other, "Where do I live?", kitchen)
    await world.run()
    recalled = as_text(world.model(ada).requests[3][-1])
    assert f'{name} (@noor-2): "I live in Porto."' in recalled
    [first, _] = await world.denizen.db.read(compaction.lived, ada.id, 1, 2)
    assert f', "Kitchen", {name} (@noor-2)): ' in layers.line(first, "UTC", 500)


@SAME_NAMES
async def test_notices_of_edits_name_handles(world: World, name: str) -> None:
    ada = await world.agent("Ada", reply("Hello."), "Greeted.", reply("I see."), "Read it again.")
    other = await world.person(name, handle="noor-2")
    kitchen = await world.space("Kitchen", other, ada)
    posted = await world.say(other, "Tea at four.", kitchen)
    await world.run()
    await world.denizen.spaces.edit_message(posted.id, "Tea at five.", by=other)
    await world.say(other, "See?", kitchen)
    await world.run()
    assert f'{name} (@noor-2) edited a message in "Kitchen"' in await world.newest_inbox(ada)


@pytest.mark.parametrize("name", ["Noor", LOOKALIKE, "Noor (@noor)", 'Noor" said', "O'Neil 3rd"])
@pytest.mark.parametrize("handle", ["noor", "noor-2", None])
def test_a_kept_name_is_shown_as_it_was_written(name: str, handle: str | None) -> None:
    written_once = speaker(name, None, handle)
    assert kept_speaker(written_once) == written_once


def test_a_name_cannot_pose_as_one_with_a_handle() -> None:
    assert speaker("Noor (@noor)", None, "noor-noor") == '"Noor (@noor)"'
    assert kept_speaker("Noor: (@noor)\nAda") == '"Noor: (@noor) Ada"'
