"""A process killed while it reads a mailbox and sends mail loses none; the copy in the mailbox shows what was sent."""

from __future__ import annotations

import asyncio

import pytest

from denizen import Runtime
from denizen.access.vault import new_key
from denizen.checker import check_database
from tests.bridges.mail_server import PASSWORD, MailServer, mail
from tests.bridges.real.carrying import SAID, RoomCarrying, carry
from tests.crash.killing import KILLED, lived

WRITTEN = ("One", "Two", "Three")
POINTS = [
    "bridge.received",
    "commit:take_in",
    "committed:take_in",
    "commit:begin_sending",
    "committed:begin_sending",
    "bridge.begun",
    "bridge.sent",
    "commit:end_sending",
    "committed:end_sending",
]


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at(point: str, ready_sqlite_url: str) -> None:
    """In between the mailbox is made anew: its numbers are others."""
    key, server = new_key(), MailServer()
    async with server.running():
        async with Runtime(ready_sqlite_url, secret_key=key) as denizen:
            noor = await denizen.people.create("Noor")
            front = await denizen.spaces.create("Front", [noor])
            await denizen.secrets.set("MAIL", PASSWORD)
            bridge, _ = await denizen.bridges.create("Mail", "email", server.settings(with_people=True))
            await denizen.bridges.connect(bridge, front, "INBOX")
            await denizen.run_until_idle()
            await server.put(mail("Eve", "Ahoy", id="<first@pier.test>"))
            await denizen.run_until_idle()
            (pier,) = [each for each in await denizen.spaces.list(noor) if each.name == "The boat"]
        for text in WRITTEN:
            await server.put(mail("Eve", text, id=f"<{text}@pier.test>", reply_to="<first@pier.test>"))
        wanted = 1 + len(SAID) + len(WRITTEN)
        life = RoomCarrying(ready_sqlite_url, key, noor.id, pier.id, bridge.id, wanted, point)
        assert await asyncio.to_thread(lived, carry, life) == KILLED, f"{point} was never passed"
        await server.renumber()
        assert (
            await asyncio.to_thread(
                lived, carry, RoomCarrying(ready_sqlite_url, key, noor.id, pier.id, bridge.id, wanted, None)
            )
            == 0
        )
    async with Runtime(ready_sqlite_url, secret_key=key) as denizen:
        messages = (await denizen.spaces.messages(pier))[1:]
        assert sorted(each.text for each in messages) == sorted((*SAID, *WRITTEN))
        assert [each.text for each in messages if each.author_name == "Eve"] == list(WRITTEN)
        assert len(await denizen.spaces.list(noor)) == 2
        assert await check_database(denizen.db) == []
    assert server.said == [f"pier: Noor: {text}" for text in SAID]
