"""A mailbox with people who write to it: pymap holds it, aiosmtpd takes what is sent. Both in this process."""

from __future__ import annotations

import asyncio
import ssl
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import cache
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from proxyprotocol.sock import SocketInfoLocal
from pymap.backend.dict import Config, DictBackend, Login
from pymap.imap import IMAPServer
from pymap.parsing.message import AppendMessage
from pymap.user import UserMetadata
from pysasl import SASLAuth
from pysasl.hashing import BuiltinHash

from denizen.bridges.email.kind import EMAIL
from denizen.bridges.port import BridgeKind, IncomingFile, Later, Outcome, Refused
from denizen.bridges.registry import Bridge
from denizen.clock import moment
from tests.world import World

ADDRESS = "ada@harbour.test"
PASSWORD = "correct horse"
TRUSTED = "mx.harbour.test"
SEEN = "dmarc=pass header.from=pier.test; dkim=pass header.d=pier.test; spf=pass smtp.mailfrom=pier.test"


def address_of(who: str) -> str:
    return f"{who.lower()}@pier.test"


def mail(who: str, text: str, **more: Any) -> EmailMessage:
    """A mail by somebody at the pier, whom the mail server has authenticated."""
    made = EmailMessage(policy=policy.SMTP)
    if more.get("seen", SEEN):
        made["Authentication-Results"] = f"{TRUSTED}; {more.get('seen', SEEN)}"
    made["From"] = f"{who} <{more.get('address') or address_of(who)}>"
    made["To"] = more.get("to", ADDRESS)
    if more.get("cc"):
        made["Cc"] = more["cc"]
    made["Subject"] = more.get("subject", "The boat")
    if more.get("id"):
        made["Message-ID"] = more["id"]
    if more.get("reply_to"):
        made["In-Reply-To"] = more["reply_to"]
        made["References"] = more.get("references") or more["reply_to"]
    for name, value in more.get("headers", {}).items():
        made[name] = value
    made.set_content(text)
    if more.get("html"):
        made.add_alternative(more["html"], subtype="html")
    for file in cast("tuple[IncomingFile, ...]", more.get("files", ())):
        kind, _, subkind = (file.media_type or "application/octet-stream").partition("/")
        made.add_attachment(file.data, maintype=kind, subtype=subkind, filename=file.name)
    return made


class _Mailboxes(Config):
    """Looks for ways to sign in once, not on every connection, and asks nobody for the name of this machine."""

    @property
    def tls_auth(self) -> SASLAuth:
        return _ways_to_sign_in()

    @property
    def greeting(self) -> bytes:
        return b"Server ready mx.test"


@cache
def _ways_to_sign_in() -> SASLAuth:
    return SASLAuth.defaults()


class MailServer:
    """The mailbox of the bridge, and what was sent with it."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, at_once: bool = False) -> None:
        """With `tls` connections are encrypted: from the beginning (`at_once`), or after STARTTLS."""
        self._tls, self._at_once = tls, at_once
        self.said: list[str] = []
        self.sent: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.answers: list[Outcome] = []
        self.refused: dict[str, str] = {}
        """What is answered for recipients."""
        self.drops = 0
        """How often the connection is cut after a mail was taken."""
        self.password = PASSWORD
        self.tries_to_sign_in = 0
        """How often somebody tried to sign in to send."""
        self.first_cursor = "0:0:0"
        self.tells_deletions = False
        self.sends_once = True
        self.first: str | None = None
        """The id of the mail that began the conversation at the pier."""
        self.imap_port = self.smtp_port = 0
        self._count = 0
        self._world: World | None = None
        self._arrived: list[tuple[datetime, bytes]] = []
        self._mailboxes: _Mailboxes
        self._backend: DictBackend

    @property
    def kind(self) -> BridgeKind:
        return EMAIL

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        args = Namespace(
            host="127.0.0.1", port=0, debug=False, cert=None, key=None, proxy_protocol=None,
            tls=self._tls is not None and not self._at_once,
            demo_data=False, demo_user=ADDRESS, demo_password=PASSWORD, passlib_cfg=None,
        )  # fmt: skip
        # The password is no secret: hashed as usual, each time that somebody signs in takes a third of a second.
        quick = BuiltinHash(rounds=1)
        self._mailboxes = _Mailboxes.from_args(
            args, secure_auth=False, invalid_user_sleep=0, hash_context=quick, ssl_context=self._tls
        )
        self._backend = DictBackend(Login(self._mailboxes), self._mailboxes)
        self._set_password(PASSWORD)
        server = IMAPServer(self._backend.login, self._mailboxes)
        connections = set[asyncio.Task[None]]()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await server(reader, writer, SocketInfoLocal(writer.transport))
            except (OSError, EOFError, asyncio.CancelledError):
                pass
            finally:
                connections.discard(task)
                writer.close()

        at_once = self._tls if self._at_once else None
        reading = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=at_once)
        loop = asyncio.get_running_loop()
        sending = await loop.create_server(self._smtp, "127.0.0.1", 0, ssl=at_once)
        self.imap_port, self.smtp_port = (each.sockets[0].getsockname()[1] for each in (reading, sending))
        try:
            yield
        finally:
            for each in (reading, sending):
                each.close()
            for each in list(connections):
                each.cancel()
            await asyncio.gather(*connections, return_exceptions=True)

    async def attach(self, world: World) -> Bridge:
        self._world = world
        await world.denizen.secrets.set("MAIL", PASSWORD)
        bridge, _ = await world.denizen.bridges.create("Mail", "email", self.settings(with_people=True))
        return bridge

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            "address": ADDRESS,
            "imap": f"imap{'s' * self._at_once}://127.0.0.1:{self.imap_port}",
            "smtp": f"smtp{'s' * self._at_once}://127.0.0.1:{self.smtp_port}",
            "password": "${MAIL}",
            "auth_server": TRUSTED,
            "allow_private": ["127.0.0.1"],
            **more,
        }

    def room_id(self, name: str) -> str:
        return "INBOX"

    async def settle(self) -> None:
        return

    async def close(self) -> None:
        return

    def forbid(self) -> None:
        self._set_password("another")

    def permit(self) -> None:
        self._set_password(PASSWORD)

    def _set_password(self, password: str) -> None:
        self.password = password
        login, hashed = self._backend.login, self._mailboxes.hash_context.hash(password)
        login.users_dict[ADDRESS] = UserMetadata(self._mailboxes, ADDRESS, password=hashed)

    # What people there do

    async def write(self, room: str, who: str, text: str, **more: Any) -> str:
        """Somebody writes in the conversation at the pier, or begins it."""
        self._count += 1
        id = f"<{self._count}@pier.test>"
        more = {"reply_to": self.first, **more}
        self.first = self.first or id
        await self.put(mail(who, text, id=id, **more))
        return id

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        raise NotImplementedError

    async def delete(self, room: str, who: str, of: str) -> None:
        raise NotImplementedError

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        raise NotImplementedError

    async def put(self, what: EmailMessage | bytes, folder: str = "INBOX") -> None:
        """A mail arrives."""
        if isinstance(what, EmailMessage) and "Date" not in what and self._world is not None:
            what["Date"] = moment(self._world.clock.now())
        raw = what if isinstance(what, bytes) else bytes(what)
        when = datetime.now(UTC)
        self._arrived.append((when, raw))
        await self._append(when, raw, folder)

    async def _append(self, when: datetime, raw: bytes, folder: str) -> None:
        async with self._backend.login.demo_user_identity.new_session() as session:
            await session.append_messages(folder, [AppendMessage(raw, when)])

    async def renumber(self) -> None:
        """The mailbox is made anew with the same mails: their numbers begin anew."""
        self._mailboxes.set_cache.clear()
        for when, raw in self._arrived:
            await self._append(when, raw, "INBOX")

    # The SMTP server

    def _smtp(self) -> SMTP:
        tls = None if self._at_once else self._tls
        return SMTP(
            self,
            authenticator=self._authenticate,
            auth_require_tls=tls is not None,
            require_starttls=tls is not None,
            tls_context=tls,
            hostname="mx.test",
        )

    def _authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        self.tries_to_sign_in += 1
        good = isinstance(data, LoginPassword) and data.password.decode() == self.password
        return AuthResult(success=good, handled=False, message=None if good else "535 5.7.8 Wrong password")

    async def handle_RCPT(self, _server: SMTP, _session: Session, envelope: Envelope, to: str, _options: Any) -> str:
        if to in self.refused:
            return self.refused[to]
        envelope.rcpt_tos.append(to)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        match self.answers.pop(0) if self.answers else None:
            case Later():
                return "450 4.2.0 Come back later"
            case Refused():
                return "554 5.3.4 Too large"
            case _:
                pass
        raw = cast("bytes", envelope.content)
        taken = cast("EmailMessage", message_from_bytes(raw, policy=policy.default))
        self.sent.append(taken)
        self.recipients.append([each for each in envelope.rcpt_tos if each != ADDRESS])
        self.said.append(said(taken))
        if ADDRESS in envelope.rcpt_tos:
            await self._take_copy(raw)
        if self.drops:
            self.drops -= 1
            assert server.transport is not None
            cast("asyncio.Transport", server.transport).abort()
        return "250 OK"

    async def _take_copy(self, raw: bytes) -> None:
        await self.put(raw)


def said(taken: EmailMessage) -> str:
    """A mail in a line: `pier: Author: text [file: content]`."""
    body = taken.get_body(("plain",))
    assert body is not None
    files = "".join(f" [{each.get_filename()}: {each.get_content().strip()}]" for each in taken.iter_attachments())
    return f"pier: {taken['From'].addresses[0].display_name}: {body.get_content().replace(chr(13), '').strip()}{files}"
