"""The email bridge and encryption: certificates are checked, and a password is never said in the open."""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from pydantic import ValidationError

from denizen.bridges.email import adapter as adapters
from denizen.bridges.email.imap import Imap, ImapError, WrongPassword
from denizen.bridges.email.kind import EmailSettings
from denizen.bridges.email.tokens import AccessTokens
from denizen.bridges.http_service import ServiceError
from denizen.tools import outbound
from denizen.tools.outbound import Outbound
from tests.bridges.certificates import self_signed
from tests.bridges.conformance import ROOM, build
from tests.bridges.listening import listening
from tests.bridges.mail_server import MailServer, address_of
from tests.world import World


@pytest.mark.parametrize("at_once", [True, False])
async def test_mail_is_read_and_sent_encrypted(
    at_once: bool, bay: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the beginning, or after STARTTLS, without which these servers take nothing."""
    certificates = self_signed(tmp_path)
    monkeypatch.setattr(outbound, "_trusted", certificates.trusted)
    server = MailServer(certificates.of_server(), at_once=at_once)
    async with server.running():
        front = await build(bay, server)
        await server.write(ROOM, "Eve", "Ahoy!")
        await front.run()
        (space,) = [each for each in await bay.denizen.spaces.list(front.noor) if each.name == "The boat"]
        await bay.say(front.noor, "Hello Eve", space)
        await front.run()
        assert await bay.transcript(space) == ["Eve: Ahoy!", "Noor: Hello Eve"]
        assert server.recipients == [[address_of("Eve")]]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(
    at_once: bool, bay: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the password is not."""
    certificates = self_signed(tmp_path)
    server = MailServer(certificates.of_server(), at_once=at_once)
    async with server.running():
        with monkeypatch.context() as trusting:
            trusting.setattr(outbound, "_trusted", certificates.trusted)
            front = await build(bay, server)
            await server.write(ROOM, "Eve", "Ahoy!")
            await front.run()
        await front.run()
        bridge = (await bay.denizen.bridges.get(front.bridge)).bridge
        assert (bridge.error or "").startswith("The mailbox at 127.0.0.1 cannot be reached (its certificate is not")
        assert bridge.parked_reason is None
        (space,) = [each for each in await bay.denizen.spaces.list(front.noor) if each.name == "The boat"]
        await bay.say(front.noor, "Hello Eve", space)
        await front.run()
        assert "certificate is not valid: " in ((await bay.denizen.bridges.get(front.bridge)).bridge.error or "")
        assert (server.tries_to_sign_in, server.sent) == (0, [])


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def talked_to(talk: Talk) -> AsyncIterator[socket.socket]:
    """A connection to a server that talks so."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()
            over.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        sock = await asyncio.to_thread(socket.create_connection, server.sockets[0].getsockname())
        sock.setblocking(False)
        yield sock
        await over.wait()
        await asyncio.sleep(0)  # The transport closes its socket.


async def test_a_public_server_without_encryption_is_refused() -> None:
    server, tls = MailServer(), ssl.create_default_context()
    async with server.running():
        sock = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", server.imap_port))
        sock.setblocking(False)
        with pytest.raises(ImapError, match="offers no encryption"):
            await Imap.open(sock, "127.0.0.1", tls, at_once=False, needs_tls=True)
        sock = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", server.smtp_port))

        def greet() -> None:
            with adapters._Smtp(sock, "127.0.0.1", "localhost") as smtp:  # pyright: ignore[reportPrivateUsage]
                smtp.ehlo()
                smtp.starttls(context=tls)

        with pytest.raises(smtplib.SMTPNotSupportedError):
            await asyncio.to_thread(greet)


async def test_what_is_said_before_encryption_begins_is_not_taken_for_encrypted(tmp_path: Path) -> None:
    """Somebody in between adds a line to the answer to STARTTLS."""
    certificates = self_signed(tmp_path)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        await reader.readline()
        writer.write(b"* CAPABILITY IMAP4rev1 STARTTLS\r\nD1 OK done\r\n")
        await reader.readline()
        writer.write(b"D2 OK begin\r\n* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\nD3 OK injected\r\n")
        await writer.drain()
        await reader.read()

    async with talked_to(serve) as sock:
        with pytest.raises(ImapError, match="before encryption began"):
            await Imap.open(sock, "127.0.0.1", certificates.trusted(), at_once=False, needs_tls=True)


# Tokens instead of a password (with real mail servers: tests/bridges/real/test_email.py)


@pytest.mark.parametrize("token", ["good", "bad"])
async def test_a_token_is_said_as_xoauth2_and_a_refusal_is_told(token: str) -> None:
    """A server that refuses it first tells why, and goes on when that was read."""
    said: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        while line := await reader.readline():
            tag, _, command = line.decode().strip().partition(" ")
            if command == "CAPABILITY":
                writer.write(f"* CAPABILITY IMAP4rev1 AUTH=XOAUTH2\r\n{tag} OK\r\n".encode())
                continue
            assert command == "AUTHENTICATE XOAUTH2"
            writer.write(b"+ \r\n")
            said.append(b64decode(await reader.readline()).decode())
            if "Bearer good" in said[-1]:
                writer.write(f"{tag} OK\r\n".encode())
                continue
            writer.write(b"+ " + b64encode(b'{"status":"401"}') + b"\r\n")
            assert await reader.readline() == b"\r\n"
            writer.write(f"{tag} NO SASL authentication failed\r\n".encode())

    async with talked_to(serve) as sock:
        imap = await Imap.open(sock, "127.0.0.1", ssl.create_default_context(), at_once=False, needs_tls=False)
        try:
            if token == "good":
                await imap.log_in("ada@harbour.test", "", token)
            else:
                with pytest.raises(WrongPassword):
                    await imap.log_in("ada@harbour.test", "", token)
        finally:
            imap.close()
    assert said == [f"user=ada@harbour.test\1auth=Bearer {token}\1\1"]


async def test_access_tokens_are_made_anew_when_they_expire_or_were_refused(bay: World) -> None:
    asked: list[dict[str, list[str]]] = []
    status = 200

    async def tokens(request: web.Request) -> web.Response:
        asked.append(parse_qs(await request.text()))
        told = {"access_token": f"token-{len(asked)}", "expires_in": 3600} if status == 200 else {"error": "no"}
        return web.json_response(told, status=status)

    async with listening(tokens) as url, Outbound() as reach:
        settings = EmailSettings.model_validate(
            {
                **MailServer().settings(password=""),
                "token_url": url,
                "client_id": "denizen",
                "client_secret": "s",
                "scope": "mail",
            }
        )
        made = AccessTokens(settings, bay.clock, reach)
        assert [await made.get(), await made.get()] == ["token-1", "token-1"]
        assert await made.get(refused="token-1") == "token-2"
        assert await made.get(refused="token-1") == "token-2"
        bay.clock.advance(3500)
        assert await made.get() == "token-3"
        assert asked[0] == {
            "grant_type": ["client_credentials"],
            "client_id": ["denizen"],
            "client_secret": ["s"],
            "scope": ["mail"],
        }
        for answer, means in ((400, "revoked"), (503, "later")):
            status = answer
            with pytest.raises(ServiceError) as refused:
                await made.get(refused="token-3")
            assert refused.value.means == means


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"password": ""}, "Set either password"),
        ({"token_url": "https://example.org/token"}, "Set either password"),
        ({"password": "", "token_url": "https://example.org/token"}, "needs client_id"),
        ({"password": "", "token_url": "http://example.org/token", "client_id": "x"}, "https://"),
    ],
)
def test_a_bridge_signs_in_with_a_password_or_with_tokens(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        EmailSettings.model_validate({**MailServer().settings(), **settings})
