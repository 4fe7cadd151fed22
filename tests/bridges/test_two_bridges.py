"""One mind in two services: what is asked in one is remembered in the other, and what is private stays where it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from denizen import reply
from denizen.models.scripted import Turn
from tests.bridges.bot_api import BotApi
from tests.bridges.conformance import ROOM, build
from tests.bridges.in_process import Harbour
from tests.bridges.listening import listening
from tests.world import World


@pytest.fixture
async def telegram() -> AsyncIterator[BotApi]:
    found = BotApi()
    async with listening(found.handle) as found.url:
        yield found


async def test_a_person_asks_in_one_service_and_continues_in_the_other(
    bay: World, harbour: Harbour, telegram: BotApi
) -> None:
    """The agent remembers, and each answer goes where the question came from."""
    spaces: dict[str, str] = {}

    def says(text: str, where: str) -> Callable[[object, object], Turn]:
        return lambda _messages, _info: reply(text, space_id=spaces[where])

    turns = [says("At noon.", "pier"), "Told Eve when.", says("As I said: at noon.", "chat"), "Told Eve again."]
    ada = await bay.agent("Ada", *turns)
    pier = await build(bay, harbour, ada)
    chat = await bay.space("Chat", pier.noor, ada)
    spaces |= {"pier": pier.space.id, "chat": chat.id}
    bridge = await telegram.attach(bay)
    await bay.denizen.bridges.connect(bridge, chat, telegram.room_id("mole"))
    await pier.run()
    await harbour.write(ROOM, "Eve", "@ada when does the boat leave?")
    await pier.run()
    await telegram.write("mole", "Eve", "@ada when was it again?")
    await pier.run()
    assert harbour.said == [f"{ROOM}: Ada: At noon."]
    assert telegram.said == ["mole: Ada: As I said: at noon."]
    assert "when does the boat leave?" in "\n".join(await bay.history(ada))
