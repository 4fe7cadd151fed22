"""The email bridge against a real Dovecot and a real Postfix: the conformance suite, encryption, tokens and kills."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from denizen import Runtime, failpoints, reply
from denizen.access.vault import new_key
from denizen.bridges.running import SENT
from denizen.checker import check_database
from denizen.tools import outbound
from tests.bridges.conformance import STEPS_IN, STEPS_OUT, Service
from tests.bridges.listening import listening
from tests.bridges.mail_server import ADDRESS, MailServer, address_of, mail, said
from tests.bridges.real.carrying import SAID, RoomCarrying, carry
from tests.bridges.real.homeserver import Matrix
from tests.bridges.real.mail_servers import MailServers, installed, running_mail_servers
from tests.bridges.real.synapse import Synapse
from tests.bridges.test_email import TestEmail as EmailSuite
from tests.bridges.test_two_bridges import ask_by_mail_and_continue
from tests.crash.killing import KILLED, lived
from tests.world import World

WRITTEN = ("One", "Two", "Three")


@pytest.fixture(scope="module")
def both() -> Iterator[MailServers]:
    if not installed():
        pytest.skip("Dovecot and Postfix cannot be installed here: the tests with pymap and aiosmtpd have to do")
    with running_mail_servers() as found:
        yield found


@pytest.fixture
def servers(both: MailServers, monkeypatch: pytest.MonkeyPatch) -> MailServers:
    """Both, with empty mailboxes, and trusted."""
    both.empty()
    both.set_password(both.password)
    monkeypatch.setattr(outbound, "_trusted", both.certificate.trusted)
    return both


async def arrived(servers: MailServers, address: str, count: int) -> list[EmailMessage]:
    """What is in the mailbox, when so much is."""
    async with asyncio.timeout(120):
        while len(found := servers.mails(address)) < count:  # noqa: ASYNC110  the mail server delivers
            await asyncio.sleep(0.05)
    return found


async def have_arrived(servers: MailServers, wanted: set[str]) -> None:
    """Returns when Eve has all of these mails, in whatever order: Postfix delivers several at the same time."""
    async with asyncio.timeout(120):
        while (found := {said(each) for each in servers.mails(address_of("Eve"))}) != wanted:
            assert found <= wanted
            await asyncio.sleep(0.05)


async def write(servers: MailServers, what: EmailMessage) -> None:
    """Somebody writes to the mailbox, and it has arrived."""
    before = len(servers.mails(ADDRESS))
    await asyncio.to_thread(servers.send, what)
    await arrived(servers, ADDRESS, before + 1)


# The conformance suite


class RealMail(MailServer):
    """People who write to the mailbox that Dovecot keeps. A gate before Postfix can refuse what is sent."""

    def __init__(self, servers: MailServers) -> None:
        super().__init__()
        self.servers = servers
        self.password = servers.password

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        sending = await asyncio.get_running_loop().create_server(self._smtp, "127.0.0.1", 0)
        self.imap_port, self.smtp_port = self.servers.imap, sending.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            sending.close()

    async def attach(self, world: World) -> Any:
        bridge = await super().attach(world)
        await world.denizen.secrets.set("MAIL", self.servers.password)
        return bridge

    def forbid(self) -> None:
        self._set_password("another")

    def permit(self) -> None:
        self._set_password(self.servers.password)

    def _set_password(self, password: str) -> None:
        self.password = password
        self.servers.set_password(password)

    async def put(self, what: EmailMessage | bytes, folder: str = "INBOX") -> None:
        assert isinstance(what, EmailMessage)
        await write(self.servers, what)

    async def _take_copy(self, raw: bytes) -> None:
        """Hand it to Postfix, and wait until the mailbox has the copy, which tells that it was sent."""
        before = len(self.servers.mails(ADDRESS))
        await asyncio.to_thread(self._relay, raw)
        await arrived(self.servers, ADDRESS, before + 1)

    def _relay(self, raw: bytes) -> None:
        with smtplib.SMTP("127.0.0.1", self.servers.smtp, timeout=30) as smtp:
            smtp.sendmail(ADDRESS, [ADDRESS, *self.recipients[-1]], raw)


class TestRealEmail(EmailSuite):
    @pytest.fixture
    async def service(self, servers: MailServers) -> AsyncIterator[Service]:
        found = RealMail(servers)
        async with found.running():
            yield found


async def test_a_person_asks_by_mail_and_continues_in_matrix(
    bay: World, servers: MailServers, synapse: Synapse
) -> None:
    """With a real Dovecot, Postfix and Synapse."""
    server, matrix = RealMail(servers), Matrix(synapse)
    async with server.running(), listening(matrix.pass_on) as matrix.url:
        await ask_by_mail_and_continue(bay, server, matrix)


# Encryption, and tokens instead of a password


async def connected(bay: World, servers: MailServers, *agents: Any, **settings: Any) -> Any:
    """A space with the mailbox. Returns the bridge and somebody in the space."""
    noor = await bay.person("Noor")
    desk = await bay.space("Desk", noor, *agents)
    await bay.denizen.secrets.set("MAIL", servers.password)
    bridge, _ = await bay.denizen.bridges.create("Mail", "email", servers.settings(with_people=True, **settings))
    await bay.denizen.bridges.connect(bridge, desk, "INBOX")
    await bay.run()
    return bridge, noor


async def conversation(bay: World, noor: Any, name: str = "The boat") -> Any:
    (found,) = [each for each in await bay.denizen.spaces.list(noor) if each.name == name]
    return found


@pytest.mark.parametrize("scheme", ["s", ""])
async def test_an_agent_answers_a_mail_at_once(scheme: str, bay: World, servers: MailServers) -> None:
    """Encrypted from the beginning, and with STARTTLS. The answer is in the thread. The clock stands still: the mail
    server tells of the mail (IDLE).
    """
    ada = await bay.agent("Ada", reply("Yes."), "Agreed.", reply("At *noon*."), "Told Zoe.")
    urls = {
        "imap": f"imap{scheme}://127.0.0.1:{servers.imaps if scheme else servers.imap}",
        "smtp": f"smtp{scheme}://127.0.0.1:{servers.smtps if scheme else servers.smtp}",
    }
    bridge, noor = await connected(bay, servers, ada, **urls)
    await bay.say(noor, "@ada look after the mail", await conversation(bay, noor, "Desk"))
    await bay.run()
    async with bay.denizen.living():
        await bay.run()
        await write(servers, mail("Zoe", "When does the boat leave?", id="<zoe@pier.test>"))
        (answer,) = await arrived(servers, address_of("Zoe"), 1)
    assert said(answer) == "pier: Ada: At *noon*."
    assert (answer["In-Reply-To"], answer["Subject"]) == ("<zoe@pier.test>", "Re: The boat")
    assert (await bay.denizen.bridges.get(bridge)).bridge.error is None


async def test_tokens_take_the_place_of_the_password(bay: World, servers: MailServers) -> None:
    """They are made anew when they expire or are refused; when none are made any more, the bridge waits and says so."""
    made: list[str] = []
    good: set[str] = set()
    refused = False

    async def tokens(request: web.Request) -> web.Response:
        fields = {name: values[0] for name, values in parse_qs(await request.text()).items()}
        if request.path == "/introspect":
            token = fields.get("token", "")
            return web.json_response({"active": token in good, "username": ADDRESS})
        if refused:
            return web.json_response({"error": "invalid_grant"}, status=400)
        assert fields == {"grant_type": "refresh_token", "refresh_token": "from-the-sign-in", "client_id": "denizen"}
        made.append(f"token-{len(made) + 1}")
        good.add(made[-1])
        return web.json_response({"access_token": made[-1], "expires_in": 3600})

    async with listening(tokens, servers.tokens_port) as url:
        await bay.denizen.secrets.set("REFRESH", "from-the-sign-in")
        settings = {"token_url": f"{url}/token", "client_id": "denizen", "refresh_token": "${REFRESH}"}
        noor = await bay.person("Noor")
        desk = await bay.space("Desk", noor)
        wanted = {**servers.settings(with_people=True), **settings}
        del wanted["password"]
        bridge, _ = await bay.denizen.bridges.create("Mail", "email", wanted)
        await bay.denizen.bridges.connect(bridge, desk, "INBOX")
        async with bay.denizen.living():
            await bay.run()
            await write(servers, mail("Eve", "Ahoy", id="<1@pier.test>"))
            await bay.run()
            boat = await conversation(bay, noor)
            await bay.say(noor, "Hello", boat)
            await bay.run()
            assert made == ["token-1"]
            good.clear()  # Somebody has taken all tokens back.
            await bay.say(noor, "Again", boat)
            await bay.run()
            assert made == ["token-1", "token-2"]
            bay.clock.advance(3600)
            await bay.say(noor, "Later", boat)
            await bay.run()
            assert made == ["token-1", "token-2", "token-3"]
            assert [said(each) for each in await arrived(servers, address_of("Eve"), 3)] == [
                "pier: Noor: Hello",
                "pier: Noor: Again",
                "pier: Noor: Later",
            ]
            refused = True
            good.clear()
            await bay.say(noor, "Much later", boat)
            await bay.run()
        state = (await bay.denizen.bridges.get(bridge)).bridge
        assert "gives no access to the mailbox (invalid_grant)" in (state.parked_reason or "")
        refused = False
        await bay.denizen.bridges.retry(bridge)
        await bay.run()
        assert len(await arrived(servers, address_of("Eve"), 4)) == 4


# Kills


async def test_mail_servers_killed_at_each_step(bay: World, servers: MailServers) -> None:
    """All their processes, while the bridge reads and sends. Nothing is lost, and each mail is handed over once. What
    Postfix was delivering when it was killed it may deliver again.
    """
    bridge, noor = await connected(bay, servers)
    await write(servers, mail("Eve", "Ahoy", id="<first@pier.test>"))
    await bay.run()
    boat, wanted = await conversation(bay, noor), list[str]()
    for step in (*STEPS_IN, *STEPS_OUT):
        asked = mail("Eve", f"Asked: {step}", id=f"<{step}@pier.test>", reply_to="<first@pier.test>")
        await write(servers, asked)
        await bay.say(noor, f"Said: {step}", boat)
        wanted += [f"Asked: {step}", f"Said: {step}"]

        def kill(step: str = step) -> None:
            failpoints.disarm(step)
            servers.kill()

        failpoints.arm(step, kill)
        await bay.run()
        assert not failpoints.armed, f"{step} was never passed"
        await asyncio.to_thread(servers.start)
        await bay.run_after(60)
        await bay.run_after(600)
    found = [each for each in await bay.denizen.spaces.messages(boat) if "notice" not in each.metadata][1:]
    assert sorted(each.text for each in found) == sorted(wanted)
    await have_arrived(servers, {f"pier: Noor: {each}" for each in wanted if each.startswith("Said")})
    assert set(servers.handed_over().values()) == {1}
    assert (await bay.denizen.bridges.get(bridge)).backlog.waiting == 0


@pytest.mark.parametrize("point", [*STEPS_IN, *STEPS_OUT])
async def test_both_sides_killed_at(point: str, ready_sqlite_url: str, servers: MailServers) -> None:
    """Nothing is lost. What was just sent may be sent twice: mail has no transaction ids, and the copy that tells that
    it was sent may arrive later than the next process looks for it.
    """
    key = new_key()
    async with Runtime(ready_sqlite_url, secret_key=key) as denizen:
        noor = await denizen.people.create("Noor")
        front = await denizen.spaces.create("Front", [noor])
        await denizen.secrets.set("MAIL", servers.password)
        bridge, _ = await denizen.bridges.create("Mail", "email", servers.settings(with_people=True))
        await denizen.bridges.connect(bridge, front, "INBOX")
        await denizen.run_until_idle()
        await write(servers, mail("Eve", "Ahoy", id="<first@pier.test>"))
        await denizen.run_until_idle()
        (pier,) = [each for each in await denizen.spaces.list(noor) if each.name == "The boat"]
    for text in WRITTEN:
        await write(servers, mail("Eve", text, id=f"<{text}@pier.test>", reply_to="<first@pier.test>"))
    wanted = 1 + len(SAID) + len(WRITTEN)
    trusted = str(servers.certificate.certificate)
    assert await asyncio.to_thread(
        lived, carry, RoomCarrying(ready_sqlite_url, key, noor.id, pier.id, bridge.id, wanted, point, trusted)
    ) == (KILLED), f"{point} was never passed"
    await asyncio.to_thread(servers.kill)
    await asyncio.to_thread(servers.start)
    assert (
        await asyncio.to_thread(
            lived, carry, RoomCarrying(ready_sqlite_url, key, noor.id, pier.id, bridge.id, wanted, None, trusted)
        )
        == 0
    )
    async with Runtime(ready_sqlite_url, secret_key=key) as denizen:
        messages = (await denizen.spaces.messages(pier))[1:]
        assert sorted(each.text for each in messages) == sorted((*SAID, *WRITTEN))
        assert [each.text for each in messages if each.author_name == "Eve"] == list(WRITTEN)
        assert await check_database(denizen.db) == []
    await have_arrived(servers, {f"pier: Noor: {text}" for text in SAID})
    handed = servers.handed_over()
    assert sum(handed.values()) <= len(SAID) + (point in (SENT, "commit:end_sending"))
