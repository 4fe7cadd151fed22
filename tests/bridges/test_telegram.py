"""The Telegram bridge against a stand-in for the Bot API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from denizen import reply
from denizen.bridges.telegram.updates import TEXT_CHARACTERS, parts_of
from denizen.errors import InvalidInput
from tests.bridges.bot_api import TOKEN, BotApi
from tests.bridges.conformance import ROOM, BridgeSuite, Service, build
from tests.bridges.listening import listening
from tests.world import World


@pytest.fixture
async def telegram() -> AsyncIterator[BotApi]:
    found = BotApi()
    async with listening(found.handle) as found.url:
        yield found


class TestTelegram(BridgeSuite):
    @pytest.fixture
    def service(self, telegram: BotApi) -> Service:
        return telegram


async def test_the_agent_that_the_bot_is_speaks_without_a_name(bay: World, telegram: BotApi) -> None:
    ada = await bay.agent("Ada", reply("At noon."), "Told Eve.")
    pier = await build(bay, telegram, ada)
    settings = {"token": "${TELEGRAM}", "api": telegram.url, "allow_private": ["127.0.0.1"], "speaker": "@ada"}
    await bay.denizen.bridges.change(pier.bridge, settings)
    await telegram.write(ROOM, "Eve", "@harbour_bot when does the boat leave?")
    await pier.run()
    assert telegram.said == [f"{ROOM}: At noon."]


async def test_updates_of_all_chats_are_read_in_order_and_each_once(bay: World, telegram: BotApi) -> None:
    """Telegram has one queue for all chats; chats that are not connected hold nothing up."""
    pier = await build(bay, telegram)
    mole = await bay.space("Mole", pier.noor)
    await bay.denizen.bridges.connect(pier.bridge, mole, telegram.room_id("mole"))
    await pier.run()
    for number in range(150):
        room = (ROOM, "elsewhere", "mole")[number % 3]
        await telegram.write(room, "Eve", f"{room} {number}")
    await bay.restart()
    await pier.run()
    assert await pier.lines() == [f"Eve: {ROOM} {number}" for number in range(0, 150, 3)]
    assert await bay.transcript(mole) == (await bay.transcript(mole))[:1] + [
        f"Eve: mole {number}" for number in range(2, 150, 3)
    ]
    assert telegram.updates == []


async def test_a_chat_that_is_not_connected_can_be_asked_for_its_id(bay: World, telegram: BotApi) -> None:
    pier = await build(bay, telegram)
    await telegram.write("private", "Eve", "/start")
    await telegram.write("private", "Eve", "Hello?")
    await pier.run()
    assert telegram.said == ["private: This chat is not connected. Its id is 42: an admin can connect it with a space."]


async def test_waiting_for_updates_does_not_read_all_the_time(bay: World, telegram: BotApi) -> None:
    """Reading cuts the long poll short, which must not count as news."""
    pier = await build(bay, telegram)
    async with bay.denizen.living(), ClientSession(telegram.url) as somebody:
        await telegram.write(ROOM, "Eve", "Ahoy!")
        await pier.say("Ahoy yourself!")
        await bay.run()
        polls = telegram.polls
        for _ in range(50):  # time enough for as many polls
            async with somebody.post(f"/bot{TOKEN}/getMe", json={}) as answer:
                await answer.read()
        # Whatever was hinted at last may be read once more.
        assert telegram.polls - polls <= 6
    assert await pier.lines() == ["Noor: Ahoy yourself!", "Eve: Ahoy!"] or await pier.lines() == [
        "Eve: Ahoy!",
        "Noor: Ahoy yourself!",
    ]


async def test_a_token_is_never_in_the_settings(bay: World, telegram: BotApi) -> None:
    with pytest.raises(InvalidInput, match="may only name a secret"):
        await bay.denizen.bridges.create("Telegram", "telegram", {"token": "123:abc"})


@pytest.mark.parametrize("text", ["", "x" * 9_000, "line\n" * 3_000, "👍" * 5_000])
def test_a_long_text_is_sent_in_parts(text: str) -> None:
    parts = parts_of(text)
    assert "".join(parts) == text
    assert all(len(each.encode("utf-16-le")) // 2 <= TEXT_CHARACTERS for each in parts)
