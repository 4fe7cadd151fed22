"""The Telegram bridge against a stand-in for the Bot API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession

from denizen import reply, scripted
from denizen.bridges.drafts import WRITING
from denizen.bridges.port import IncomingFile
from denizen.bridges.running import DEFECT_TRIES, FETCH_TRIES, LONGEST_PAUSE_SECONDS
from denizen.errors import InvalidInput
from denizen.spaces.directory import Space
from tests.bridges.bot_api import TOKEN, BotApi
from tests.bridges.conformance import ROOM, BridgeSuite, Pier, Service, build, refuse_by_a_defect
from tests.bridges.listening import listening
from tests.bridges.live_suite import TEXT, Pen
from tests.bridges.status_suite import StatusSuite
from tests.world import World


@pytest.fixture
async def telegram() -> AsyncIterator[BotApi]:
    found = BotApi()
    async with listening(found.handle) as found.url:
        yield found


class TestTelegram(StatusSuite, BridgeSuite):
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


@pytest.mark.parametrize("number", [1_000, 900_000])
async def test_updates_that_are_numbered_anew_after_a_quiet_week_are_read(
    bay: World, telegram: BotApi, number: int
) -> None:
    """Those with lower numbers counted as read already: Telegram was told so, and forgot them."""
    telegram.number_anew(500_000)
    pier = await build(bay, telegram)
    mole = await bay.space("Mole", pier.noor)
    await bay.denizen.bridges.connect(pier.bridge, mole, telegram.room_id("mole"))
    await telegram.write(ROOM, "Eve", "Before")
    await telegram.write("mole", "Mia", "Before")
    await pier.run()
    telegram.number_anew(number)
    for room, who in ((ROOM, "Eve"), ("mole", "Mia"), (ROOM, "Eve")):
        await telegram.write(room, who, "After")
    await pier.run()
    await bay.restart()
    await telegram.write("mole", "Mia", "Later")
    await pier.run()
    assert await pier.lines() == ["Eve: Before", "Eve: After", "Eve: After"]
    assert (await bay.transcript(mole))[-3:] == ["Mia: Before", "Mia: After", "Mia: Later"]
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


async def test_an_agent_is_shown_as_typing_and_its_text_as_it_is_written(bay: World, telegram: BotApi) -> None:
    """Only in a private chat: there drafts end by themselves, and nothing can stay behind."""
    pen = Pen()
    ada = await bay.agent("Ada", model=scripted(reply(TEXT), "Told Eve.", pause=pen.pause))
    pier = await build(bay, telegram)
    alone = await bay.space("Alone", pier.noor, ada)
    await bay.denizen.bridges.connect(pier.bridge, alone, telegram.room_id("private"))
    await pier.run()
    async with bay.denizen.living(), asyncio.timeout(60):
        await telegram.write("private", "Eve", "When?")
        await telegram.typing.wait()
        pen.write(3)
        await telegram.drafted.wait()
        pen.write()
        await bay.run()
    assert set(telegram.typed) == {"private"}
    assert telegram.drafts[0][1].endswith(WRITING)
    assert telegram.said == [f"private: Ada: {TEXT}"]


async def test_in_a_group_of_telegram_nothing_is_shown_of_what_is_written(bay: World, telegram: BotApi) -> None:
    ada = await bay.agent("Ada", reply(TEXT), "Told Eve.")
    pier = await build(bay, telegram, ada)
    await telegram.write(ROOM, "Eve", "When?")
    await pier.run()
    assert (telegram.drafts, telegram.said) == ([], [f"{ROOM}: Ada: {TEXT}"])


async def in_mole(bay: World, telegram: BotApi, pier: Pier) -> Space:
    mole = await bay.space("Mole", pier.noor)
    await bay.denizen.bridges.connect(pier.bridge, mole, telegram.room_id("mole"))
    await pier.run()
    return mole


async def test_a_file_that_telegram_never_hands_out_holds_up_only_its_chat_and_for_minutes(
    bay: World, telegram: BotApi
) -> None:
    """The whole bridge stopped reading for good. The message comes in the end, and says what is missing."""
    pier = await build(bay, telegram)
    mole = await in_mole(bay, telegram, pier)
    telegram.broken_files.add("map.png")
    file = IncomingFile("map.png", "image/png", b"png")
    async with bay.denizen.living():
        await telegram.write(ROOM, "Eve", "See the map.", files=[file])
        await telegram.write(ROOM, "Eve", "Later")
        await telegram.write("mole", "Mia", "Ahoy")
        await pier.run()
        assert await pier.lines() == []
        assert (await bay.transcript(mole))[-1] == "Mia: Ahoy"
        for _ in range(FETCH_TRIES):
            await pier.run_after(LONGEST_PAUSE_SECONDS)
    told, later = await pier.lines()
    assert told.startswith("Eve: See the map.")
    assert "map.png could not be fetched from Telegram." in told
    assert later == "Eve: Later"
    assert telegram.updates == []


async def test_an_update_that_nobody_can_read_is_left_out(bay: World, telegram: BotApi) -> None:
    """It was met again at every reading, and no chat of the bot was read any further."""
    pier = await build(bay, telegram)
    mole = await in_mole(bay, telegram, pier)
    async with bay.denizen.living():
        await telegram.write(ROOM, "Eve", "Garbled")
        telegram.garble()
        await telegram.write(ROOM, "Eve", "Later")
        await telegram.write("mole", "Mia", "Ahoy")
        await pier.run()
        assert (await bay.transcript(mole))[-1] == "Mia: Ahoy"
        for _ in range(DEFECT_TRIES):
            await pier.run_after(LONGEST_PAUSE_SECONDS)
    assert await pier.lines() == ["Eve: Later"]
    assert [each for each in await pier.notices() if "could not receive something" in each]
    assert telegram.updates == []


async def test_what_is_behind_a_hundred_updates_comes_when_the_first_has_waited_for_minutes(
    bay: World, telegram: BotApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Telegram shows no more than a hundred, and what is behind them waited for more than an hour."""
    refuse_by_a_defect(monkeypatch, "odd")
    pier = await build(bay, telegram)
    mole = await in_mole(bay, telegram, pier)
    async with bay.denizen.living():
        await telegram.write(ROOM, "Eve", "odd")
        for number in range(120):
            await telegram.write("mole", "Mia", f"Ahoy {number}")
        await pier.run()
        assert (await bay.transcript(mole))[-1] == "Mia: Ahoy 98"
        for _ in range(FETCH_TRIES):
            await pier.run_after(LONGEST_PAUSE_SECONDS)
    assert (await bay.transcript(mole))[-1] == "Mia: Ahoy 119"
    assert [each for each in await pier.notices() if "could not receive something" in each]
    assert telegram.updates == []


async def test_an_update_that_ends_in_a_defect_holds_up_no_other_chat(
    bay: World, telegram: BotApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All chats of the bot waited for more than an hour, until it was left out."""
    words = refuse_by_a_defect(monkeypatch, "odd")
    pier = await build(bay, telegram)
    mole = await bay.space("Mole", pier.noor)
    await bay.denizen.bridges.connect(pier.bridge, mole, telegram.room_id("mole"))
    await pier.run()

    async def in_mole() -> list[str]:
        said = [each for each in await bay.denizen.spaces.messages(mole) if "notice" not in each.metadata]
        return [each.text for each in said]

    async with bay.denizen.living():
        for room, text in ((ROOM, "One"), (ROOM, "odd"), ("mole", "Ahoy"), (ROOM, "Two"), ("private", "/start")):
            await telegram.write(room, "Eve", text)
        await pier.run()
        assert (await in_mole())[-1:] == ["Ahoy"]
        for number in range(5):
            await telegram.write("mole", "Mia", f"Ahoy {number}")
            await telegram.write(ROOM, "Eve", f"Later {number}")
            await pier.run()
            assert (await in_mole())[-1] == f"Ahoy {number}"
            assert await pier.lines() == ["Eve: One"]
        assert len([each for each in telegram.said if "This chat is not connected" in each]) == 1
    before = await in_mole()
    await bay.restart()
    async with bay.denizen.living():
        await pier.run()
        assert await in_mole() == before, "another process begins at the update that waits, and says nothing twice"
        assert await pier.lines() == ["Eve: One"]
        words.clear()
        await pier.run_after(LONGEST_PAUSE_SECONDS)
        await telegram.write("mole", "Mia", "At last")
        await pier.run()
    assert await pier.lines() == [
        "Eve: One",
        "Eve: odd",
        "Eve: Two",
        *(f"Eve: Later {number}" for number in range(5)),
    ]
    assert await in_mole() == [*before, "At last"]
    assert telegram.updates == []
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None
