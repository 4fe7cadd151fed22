"""One mind in two services: what is asked in one is remembered in the other, and what is private stays where it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from denizen import reply
from denizen.models.scripted import Turn
from tests.bridges.bot_api import BotApi
from tests.bridges.conformance import ROOM, Service, build
from tests.bridges.discord_api import DiscordApi
from tests.bridges.in_process import Harbour
from tests.bridges.listening import listening
from tests.bridges.mail_server import MailServer, address_of, mail
from tests.bridges.slack_api import SlackApi
from tests.bridges.test_webhook import Program
from tests.world import World

SECRET = "the spare key lies under the blue pot behind the greenhouse"


@pytest.fixture(params=["harbour", "telegram", "slack", "discord", "webhook"])
async def elsewhere(request: pytest.FixtureRequest, harbour: Harbour) -> AsyncIterator[Service]:
    """A service besides mail."""
    if request.param == "harbour":
        yield harbour
        return
    if request.param == "webhook":
        program = Program()
        async with program.listening():
            yield program
        return
    found = {"telegram": BotApi, "slack": SlackApi, "discord": DiscordApi}[request.param]()
    async with listening(found.handle) as found.url:
        yield found


async def test_a_person_asks_by_mail_and_continues_elsewhere(bay: World, elsewhere: Service) -> None:
    server = MailServer()
    async with server.running():
        await ask_by_mail_and_continue(bay, server, elsewhere)


async def ask_by_mail_and_continue(bay: World, server: MailServer, elsewhere: Service) -> None:
    """The agent remembers, and each answer goes where the question came from. What was said in private does not cross:
    neither into the room nor into a mail. What was said in the room does not become a mail, nor the other way round.
    """
    spaces: dict[str, str] = {}

    def says(text: str, where: str) -> Callable[[object, object], Turn]:
        return lambda _messages, _info: reply(text, space_id=spaces[where])

    turns = ["Noted.", reply("At noon."), "Told Eve when."]
    later = [says("As I said: at noon.", "pier"), "Told Eve again.", says(f"Look: {SECRET}.", "pier"), "Kept it."]
    ada = await bay.agent(
        "Ada", *turns, *later, reply(f"Psst: {SECRET}."), "Kept it.", cycle={"silent_reply": "ignore"}
    )
    pier = await build(bay, elsewhere, ada)
    den = await bay.space("Den", pier.noor, ada, private=True)
    spaces["pier"] = pier.space.id
    bridge = await server.attach(bay)
    await bay.denizen.bridges.change(bridge, server.settings())
    await bay.denizen.bridges.connect(bridge, await bay.space("Desk", pier.noor, ada), "INBOX")
    await pier.run()
    await bay.say(pier.noor, f"@ada {SECRET}.", den)
    await pier.run()
    await server.put(mail("Eve", "When does the boat leave?", id="<1@pier.test>"))
    await pier.run()
    await elsewhere.write(ROOM, "Eve", "@ada when was it again?")
    await pier.run()
    await elsewhere.write(ROOM, "Eve", "@ada and where is the key?")
    await pier.run()
    await server.put(mail("Eve", "Where is the key?", id="<2@pier.test>", reply_to="<1@pier.test>"))
    await pier.run()
    assert server.said == ["pier: Ada: At noon."]
    assert server.recipients == [[address_of("Eve")]]
    assert elsewhere.said == [f"{ROOM}: Ada: As I said: at noon."]
    history = "\n".join(await bay.history(ada))
    assert "When does the boat leave?" in history
    assert "when was it again?" in history


async def test_a_person_asks_in_one_chat_and_continues_in_another(bay: World, harbour: Harbour) -> None:
    """The agent remembers, and each answer goes where the question came from."""
    telegram, spaces = BotApi(), dict[str, str]()

    def says(text: str, where: str) -> Callable[[object, object], Turn]:
        return lambda _messages, _info: reply(text, space_id=spaces[where])

    turns = [says("At noon.", "pier"), "Told Eve when.", says("As I said: at noon.", "chat"), "Told Eve again."]
    async with listening(telegram.handle) as telegram.url:
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
