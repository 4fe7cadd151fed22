"""Reactions and pins in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from denizen.cli.chat.rendering import message_block
from denizen.client import Client
from tests.cli.chat.houses import House
from tests.cli.chat.test_answering import talking


async def test_messages_are_reacted_to_and_pinned(house: House, tmp_path: Path) -> None:
    spaces = house.runtime.spaces
    async with talking(house, tmp_path, "Kitchen") as (paper, _, _):

        async def told(line: str, sentence: str) -> None:
            paper.type(line)
            await paper.until(lambda: any(sentence in each for each in paper.shown))

        await told("/react", "Name the emoji")
        await told("/react 👍 unicorns", "None of the last 100 messages has the words 'unicorns'.")
        await told("/pins", "Nothing is pinned here.")
        paper.type("Tea is ready.")
        await paper.until("Noor: Tea is ready.")
        await told("/react 👍 tea IS", 'You reacted with 👍 to "Tea is ready.".')
        await told("/pin tea", 'Pinned "Tea is ready.".')
        [tea] = [each for each in await spaces.messages(house.kitchen) if each.text == "Tea is ready."]
        assert ({**tea.reactions}, tea.pinned_at is not None) == ({"👍": [house.noor.id]}, True)
        await told("/pins", '📌 Noor: "Tea is ready."')
        await told("/react 👍 tea", 'You removed 👍 from "Tea is ready.".')
        await told("/pin tea", 'Unpinned "Tea is ready.".')
        # What others do comes as they do it, and each once.
        for removed, line in enumerate(("Ada reacted with 🎉", "Ada removed 🎉")):
            await spaces.react(tea.id, "🎉", by=house.ada, remove=bool(removed))
            await paper.until(lambda line=line: any(line in each for each in paper.shown))
    [tea] = [each for each in await spaces.messages(house.kitchen) if each.text == "Tea is ready."]
    assert ({**tea.reactions}, tea.pinned_at) == ({}, None)
    assert [line for each in paper.shown for line in each.splitlines() if '"Tea is ready."' in line] == [
        'You reacted with 👍 to "Tea is ready.".',
        'Pinned "Tea is ready.".',
        '📌 Noor: "Tea is ready."',
        'You removed 👍 from "Tea is ready.".',
        'Unpinned "Tea is ready.".',
        'Ada reacted with 🎉 to "Tea is ready.".',
        'Ada removed 🎉 from "Tea is ready.".',
    ]


async def test_reactions_and_pins_are_shown(house: House, client: Client) -> None:
    spaces = house.runtime.spaces
    posted = await spaces.post(house.kitchen, house.noor, "Tea is ready.")
    for who in (house.noor, house.ada):
        await spaces.react(posted.id, "👍", by=who)
    await spaces.react(posted.id, "🎉", by=house.noor)
    await spaces.pin(posted.id, by=house.noor)
    message = await client.message(posted.id)
    console = Console(width=60)
    with console.capture() as shown:
        console.print(*message_block(message, house.noor.id), sep="\n")
    assert "  📌 pinned  👍 2  🎉" in shown.get()
