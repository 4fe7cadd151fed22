"""The Discord bridge against a stand-in for the gateway and the REST API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from denizen import reply, scripted
from denizen.bridges.discord.events import edit_of, id_at, instant_of, message_of, text_of
from denizen.bridges.live import HEARD_SECONDS
from denizen.bridges.live_reading import EventContext
from denizen.bridges.running import SENT
from denizen.bus.streams import TypingElsewhere
from denizen.clock import SECOND
from tests.bridges.conformance import ROOM, Service, build, kill_once_at
from tests.bridges.discord_api import BOT, DiscordApi
from tests.bridges.listening import listening
from tests.bridges.live_suite import Pen, SocketLiveSuite, typing_in
from tests.world import World


@pytest.fixture
async def discord() -> AsyncIterator[DiscordApi]:
    found = DiscordApi()
    async with listening(found.handle) as found.url:
        yield found


class TestDiscord(SocketLiveSuite):
    @pytest.fixture
    def service(self, discord: DiscordApi) -> Service:
        return discord


async def test_the_agent_that_the_bot_is_speaks_without_a_name(bay: World, discord: DiscordApi) -> None:
    discord.settings = {"speaker": "ada"}
    ada = await bay.agent("Ada", reply("At noon."), "Told Eve.")
    pier = await build(bay, discord, ada)
    eve = str(sum(b"Eve"))
    await discord.write(ROOM, "Eve", f"<@{BOT}> when does the boat leave?")
    await pier.run()
    await pier.say("See you there, @eve-discord! @everyone <@1>")
    await pier.run()
    assert (await pier.lines())[0] == "Eve: @ada when does the boat leave?"
    assert discord.said == [f"{ROOM}: At noon.", f"{ROOM}: Noor: See you there, <@{eve}>! @everyone <@1>"]
    assert discord.notified == [[], [eve]]


async def test_what_was_sent_is_found_when_discord_has_forgotten_its_nonce(bay: World, discord: DiscordApi) -> None:
    """Two messages with the same text are two."""
    pier = await build(bay, discord)
    await pier.say("Ahoy")
    await pier.run()
    await pier.say("Ahoy")
    await pier.say("Ahoy")
    kill_once_at(SENT)
    await pier.run()
    discord.nonces.clear()
    await bay.restart()
    await pier.run_after(3600)
    assert discord.said == [f"{ROOM}: Noor: Ahoy"] * 3


async def test_a_session_is_resumed_and_misses_nothing(bay: World, discord: DiscordApi) -> None:
    pier = await build(bay, discord)
    async with bay.denizen.living():
        first = await discord.write(ROOM, "Eve", "Ahoi")
        await bay.run()
        sessions, requests = discord.sessions, len(discord.requests)
        await discord.hang_up()
        await discord.edit(ROOM, "Eve", first, "Ahoy")
        await bay.run()
        assert (discord.sessions, discord.resumed) == (sessions, 1)
        assert [each for each in discord.requests[requests:] if each.endswith("messages")] == []
        discord.sessions += 1  # The session is invalid now.
        await discord.hang_up()
        await discord.write(ROOM, "Eve", "Anyone?")
        await bay.run()
        assert discord.sessions == sessions + 2
    assert await pier.lines() == ["Eve: Ahoy", "Eve: Anyone?"]


@pytest.mark.parametrize("op", [7, 9])
async def test_discord_may_ask_to_connect_anew(bay: World, discord: DiscordApi, op: int) -> None:
    pier = await build(bay, discord)
    async with bay.denizen.living():
        await bay.run()
        before = discord.connections
        await discord.tell({"op": op, "d": False})
        await discord.write(ROOM, "Eve", "Ahoy!")
        await bay.run()
        assert discord.connections == before + 1
        assert await pier.lines() == ["Eve: Ahoy!"]


async def test_rate_limits_are_kept(bay: World, discord: DiscordApi) -> None:
    """Discord says beforehand when it takes no more: it need not refuse."""
    pier = await build(bay, discord)
    discord.limit_after = 2
    async with bay.denizen.living():
        for number in range(3):
            await pier.say(f"Number {number}")
        await discord.until("Number 1")
        await bay.clock.sleeper(5)
        assert discord.said == [f"{ROOM}: Noor: Number 0", f"{ROOM}: Noor: Number 1"]
        bay.clock.advance(5)
        await bay.run()
    assert len(discord.said) == 3
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None


async def test_a_bot_that_may_not_read_texts_says_what_to_do(bay: World, discord: DiscordApi) -> None:
    discord.allows_text = False
    pier = await build(bay, discord)
    await pier.run()
    (notice,) = await pier.notices()
    assert "Message Content Intent" in notice


async def test_a_token_that_is_revoked_while_connected_parks_the_bridge(bay: World, discord: DiscordApi) -> None:
    pier = await build(bay, discord)
    async with bay.denizen.living():
        await bay.run()
        discord.forbid()
        await pier.say("Ahoy")
        await bay.run()
    (notice,) = await pier.notices()
    assert "does not accept the token" in notice


async def test_an_agent_that_thinks_is_shown_as_typing_until_it_has_spoken(bay: World, discord: DiscordApi) -> None:
    pen = Pen()
    ada = await bay.agent("Ada", model=scripted(reply("At noon."), "Told Eve.", pause=pen.pause))
    pier = await build(bay, discord, ada)
    async with bay.denizen.living(), asyncio.timeout(60):
        await discord.write(ROOM, "Eve", "When?")
        for _ in range(2):
            await discord.typing.wait()
            discord.typing.clear()
            await bay.clock.sleeper(4.5)
            bay.clock.advance(5)
        pen.write()
        await discord.until("At noon.")
        await bay.run()
        typed = len(discord.typed)
        bay.clock.advance(5)
        await bay.run()
    assert set(discord.typed) == {ROOM}
    assert len(discord.typed) == typed
    assert discord.said == [f"{ROOM}: Ada: At noon."]
    assert len(await pier.lines()) == 2


async def test_somebody_who_types_there_is_shown_as_typing_here(bay: World, discord: DiscordApi) -> None:
    """Only now, and only in that space: nothing of it is stored."""
    pier = await build(bay, discord)
    await discord.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    async with bay.denizen.living(), typing_in(bay, pier) as typing, asyncio.timeout(60):
        await bay.run()
        await discord.type(ROOM, "Eve")
        assert await anext(typing) == TypingElsewhere(pier.space.id, "Eve", str(sum(b"Eve")))
    assert await pier.lines() == ["Eve: Ahoy!"]


async def test_only_people_of_the_space_are_shown_as_typing(bay: World, discord: DiscordApi) -> None:
    """Not who has never written, nor who was removed."""
    pier = await build(bay, discord)
    for who in ("Mia", "Eve"):
        await discord.write(ROOM, who, "Ahoy!")
    await pier.run()
    await bay.denizen.people.remove(await bay.denizen.people.find("mia-discord"))
    async with bay.denizen.living(), typing_in(bay, pier) as typing, asyncio.timeout(60):
        await bay.run()
        for who in ("Stranger", "Mia", "Eve"):
            await discord.type(ROOM, who)
        assert (await anext(typing)).name == "Eve"


async def test_who_types_on_and_on_is_shown_now_and_then(bay: World, discord: DiscordApi) -> None:
    pier = await build(bay, discord)
    for who in ("Eve", "Mia"):
        await discord.write(ROOM, who, "Ahoy!")
    await pier.run()
    async with bay.denizen.living(), typing_in(bay, pier) as typing, asyncio.timeout(60):
        await bay.run()
        for who in ("Eve", "Eve", "Eve", "Mia"):
            await discord.type(ROOM, who)
        assert [(await anext(typing)).name for _ in range(2)] == ["Eve", "Mia"]
        bay.clock.advance(HEARD_SECONDS)
        await discord.type(ROOM, "Eve")
        assert (await anext(typing)).name == "Eve"


KNOWN = EventContext(BOT, "ada", {"1": "eve-discord"})


def test_mentions_and_emojis_of_discord_are_readable() -> None:
    message = {"content": f"<@1> <@!2> <@3> <@{BOT}> <#9> <:boat:12>", "mentions": [{"id": "2", "global_name": "Mia"}]}
    assert text_of(message, KNOWN) == "@eve-discord @Mia @3 @ada #9 :boat:"


def test_a_preview_of_a_link_is_no_edit() -> None:
    assert edit_of({"id": "1", "content": "x", "author": {"id": "5"}, "edited_timestamp": None}, KNOWN) is None


def test_what_discord_itself_says_is_not_carried() -> None:
    assert message_of({"id": "1", "type": 7, "content": "Eve joined", "author": {"id": "5"}}, KNOWN) is None


def test_ids_tell_when_something_was_written() -> None:
    at = 1_800_000_000 * SECOND
    assert instant_of(str(id_at(at))) == at
