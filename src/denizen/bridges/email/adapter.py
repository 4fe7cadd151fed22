"""Reads a mailbox and sends mail.

How far a folder is read is its UIDVALIDITY, the number of the last mail, and when the server got it: if the numbers
begin anew, mails that the server got since then are read again, and known by their `Message-ID`. Mail has no
transaction ids: what was sent when a process died is looked for in the mailbox, which gets a copy of everything, before
it is sent again. Nothing is changed in the mailbox.
"""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from typing import Final
from urllib.parse import urlsplit

from denizen.bridges.email import mails
from denizen.bridges.email.imap import MONTHS, Folder, Imap, ImapError, WrongPassword, quoted
from denizen.bridges.email.kind import EmailSettings
from denizen.bridges.email.tokens import AccessTokens, said_with
from denizen.bridges.http_service import ServiceError
from denizen.bridges.port import (
    AccessRevoked,
    Batch,
    IncomingMessage,
    Later,
    Means,
    NotReadable,
    Outcome,
    Outgoing,
    Refused,
    Revoked,
    Sent,
    Unfetched,
)
from denizen.errors import AddressRefused
from denizen.spaces import markdown
from denizen.telemetry.logs import get_logger
from denizen.tools import addresses

log_line = get_logger(__name__)

MAILS_AT_ONCE: Final = 20
BYTES_AT_ONCE: Final = 40_000_000
SENT_AT_ONCE: Final = 4
PATIENCE_SECONDS: Final = 40.0
"""A server that does not take a mail now is asked again after this, and later each time."""
SMTP_SECONDS: Final = 120.0
NO_IDLE_SECONDS: Final = 60.0
_WRONG_TOKEN: Final = "The mail server does not accept the access token. Sign in anew, set the secret, and retry."  # noqa: S105
_WRONG_PASSWORD: Final = "The mail server does not accept the user name and password. Set the secret anew, and retry."  # noqa: S105
_PORTS: Final = {"imaps": 993, "imap": 143, "smtps": 465, "smtp": 587}
_UNREACHABLE: Final = (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError)


class EmailAdapter:
    """The connection to one mailbox."""

    def __init__(self, settings: EmailSettings, means: Means) -> None:
        self._settings, self._means = settings, means
        self._imap: Imap | None = None
        self._idle: Imap | None = None
        self._using = asyncio.Lock()
        self._sending = asyncio.Semaphore(SENT_AT_ONCE)
        self._folders: list[str] = []
        self._has_folders = asyncio.Event()
        self._tokens = AccessTokens(settings, means.clock, means.outbound) if settings.token_url else None
        self._not_accepted = _WRONG_PASSWORD if self._tokens is None else _WRONG_TOKEN

    async def close(self) -> None:
        for each in (self._imap, self._idle):
            if each is not None:
                each.close()

    # Reading

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        self._folders = sorted(rooms, key=lambda room: (room.upper() != "INBOX", room))
        if rooms:
            self._has_folders.set()
        async with self._using:
            imap = await self._connected()
            try:
                problem = None
                for folder in self._folders:
                    try:
                        if batches := await self._read(imap, folder, rooms[folder]):
                            return batches
                    except ImapError as error:
                        problem = NotReadable(f"The folder {folder} cannot be read ({error}).")
                if problem is not None:
                    raise problem
                return ()
            except _UNREACHABLE as error:
                self._drop()
                raise NotReadable(f"The mailbox cannot be read ({type(error).__name__}).") from error
            except BaseException:
                self._drop()  # An answer may be under way.
                raise

    def keep_unread(self, *, holds: bool) -> None:
        """Nothing is ever marked as read in the mailbox."""

    @property
    def is_full(self) -> bool:
        """The mailbox shows all of its mails."""
        return False

    async def _read(self, imap: Imap, folder: str, cursor: str | None) -> Sequence[Batch]:
        now = await imap.examine(folder)
        if cursor is None:
            newest = await imap.received("*") if now.next > 1 else {}
            return [Batch(folder, (), f"{now.validity}:{now.next - 1}:{max(newest.values(), default=0)}")]
        found, at = await self._new(imap, now, cursor)
        if not found:
            moved = f"{now.validity}:{now.next - 1}:{at}"
            return () if cursor.startswith(f"{now.validity}:") else [Batch(folder, (), moved)]
        batches: list[Batch] = []
        size = 0
        for uid in found[:MAILS_AT_ONCE]:
            if size > BYTES_AT_ONCE:
                break
            try:
                fetched = await imap.fetch(uid)
            except ImapError as error:
                log_line.warning("mail not fetched", folder=folder, uid=uid, error=str(error))
                batches.append(Batch(folder, (self._unfetched(folder, uid),), f"{now.validity}:{uid}:{at}"))
                continue
            events: tuple[IncomingMessage, ...] = ()
            if fetched is not None:
                size += len(fetched.data)
                at = max(at, fetched.received)
                event = await asyncio.to_thread(readable, fetched.data, self._settings, whole=fetched.whole)
                events = () if event is None else (event,)
            batches.append(Batch(folder, events, f"{now.validity}:{uid}:{at}"))
        return batches

    def _unfetched(self, folder: str, uid: int) -> Unfetched:
        """A mail that the server could not hand out now."""

        async def fetch(_last: bool) -> Sequence[IncomingMessage]:
            async with self._using:
                imap = await self._connected()
                try:
                    await imap.examine(folder)
                    fetched = await imap.fetch(uid)
                except ImapError as error:
                    raise NotReadable(f"A mail in {folder} cannot be fetched ({error}).") from error
                except BaseException:
                    self._drop()
                    raise
            if fetched is None:
                return ()
            event = await asyncio.to_thread(readable, fetched.data, self._settings, whole=fetched.whole)
            return () if event is None else (event,)

        return Unfetched(f"uid {uid}", fetch, alone=True)

    async def _new(self, imap: Imap, now: Folder, cursor: str) -> tuple[list[int], int]:
        """The numbers of the mails that were not read yet, and when the newest that was came."""
        validity, last, at = (int(each) for each in cursor.split(":"))
        if validity == now.validity:
            # `*` is the newest mail, also where its number is smaller.
            found = await imap.search(f"UID {last + 1}:*") if last + 1 < now.next else []
            return [each for each in found if each > last], at
        day = mails.utc(max(at - 86_400, 0))
        maybe = await imap.search(f"SINCE {day.day}-{MONTHS[day.month - 1]}-{day.year}")
        came = await imap.received(",".join(map(str, maybe))) if maybe else {}
        return [each for each in maybe if came.get(each, at) >= at], at

    async def news(self) -> None:
        """Wait for new mail in the first folder. Others are read when it is time."""
        await self._has_folders.wait()
        try:
            if self._idle is None:
                self._idle = await self._open()
                await self._idle.examine(self._folders[0])
                return  # What came before is read now.
            if "IDLE" not in self._idle.capabilities:
                await self._means.clock.sleep(NO_IDLE_SECONDS)
                return
            await self._idle.idle()
        except BaseException as error:
            if self._idle is not None:
                self._idle.close()
                self._idle = None
            if isinstance(error, (ImapError, *_UNREACHABLE)):
                raise NotReadable(str(error)) from error
            raise

    def _drop(self) -> None:
        if self._imap is not None:
            self._imap.close()
            self._imap = None

    async def _connected(self) -> Imap:
        if self._imap is None:
            self._imap = await self._open()
        return self._imap

    async def _open(self) -> Imap:
        """A connection that is signed in. Raises `NotReadable`."""
        host = self._server(self._settings.imap)[1]
        try:
            token = await self._token()
            try:
                return await self._signed_in(token)
            except WrongPassword:
                if token is None:
                    raise
                return await self._signed_in(await self._token(refused=token))
        except WrongPassword as error:
            raise AccessRevoked(self._not_accepted) from error
        except AddressRefused as error:
            raise AccessRevoked(str(error)) from error
        except ServiceError as error:
            raise error.as_unreadable() from error
        except (ImapError, *_UNREACHABLE) as error:
            raise NotReadable(f"The mailbox at {host} cannot be reached ({_why(error)}).") from error

    async def _signed_in(self, token: str | None) -> Imap:
        settings = self._settings
        scheme, host, port, needs_tls = self._server(settings.imap)
        sock = await self._means.outbound.connect(host, port, settings.allow_private)
        imap = await Imap.open(sock, host, self._means.outbound.tls, at_once=scheme == "imaps", needs_tls=needs_tls)
        try:
            await imap.log_in(settings.user or settings.address, settings.password, token)
        except BaseException:
            imap.close()
            raise
        return imap

    async def _token(self, *, refused: str = "") -> str | None:
        """The access token; None where the bridge signs in with a password. Raises `ServiceError`."""
        return None if self._tokens is None else await self._tokens.get(refused=refused)

    def _server(self, url: str) -> tuple[str, str, int, bool]:
        """The scheme, host and port, and whether a connection must be encrypted: only a listed host need not."""
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        return parts.scheme, host, port, not addresses.is_allowed(host, port, self._settings.allow_private)

    # Sending

    async def send(self, what: Outgoing) -> Outcome:
        if what.action in ("delete", "react", "unreact"):
            return Sent(None)  # A mail cannot be taken back, nor reacted to.
        address, now = self._settings.address, self._means.clock.now()
        if what.action == "code":
            return await self._deliver(mails.code(what, address, now), [what.target])
        if what.thread is None:
            return Sent(None)  # It was said where the folder is connected: nobody there reads it by mail.
        readers = what.thread.readers
        if not readers:
            return Refused("No one receives this conversation by mail.")
        if what.action == "edit":
            what = _correction(what)
        files = [(each.name, each.media_type, await self._means.read_file(each.id)) for each in what.files]
        html = await asyncio.to_thread(markdown.as_html, what.text)
        mail = await asyncio.to_thread(mails.outgoing, what, address, now, files, html or "")
        id = str(mail["Message-ID"])
        if what.again:
            try:
                if await self._has(id):
                    return Sent(id)
            except NotReadable as error:
                return Revoked(str(error)) if isinstance(error, AccessRevoked) else Later(str(error))
        return await self._deliver(mail, readers)

    async def _has(self, id: str) -> bool:
        """Whether the mailbox has a copy of this mail: then it was sent. Raises `NotReadable`."""
        async with self._using:
            imap = await self._connected()
            try:
                for folder in dict.fromkeys(["INBOX", *self._folders, *await imap.sent_folders()]):
                    await imap.examine(folder)
                    if await imap.search(f"HEADER Message-ID {quoted(id)}"):
                        return True
            except (ImapError, *_UNREACHABLE) as error:
                self._drop()
                raise NotReadable(f"The mailbox cannot be searched ({error}).") from error
            except BaseException:
                self._drop()
                raise
        return False

    async def _deliver(self, mail: EmailMessage, readers: Sequence[str]) -> Outcome:
        async with self._sending:
            try:
                token = await self._token()
                try:
                    return await self._handed_over(mail, readers, token)
                except smtplib.SMTPAuthenticationError:
                    if token is None:
                        raise
                    return await self._handed_over(mail, readers, await self._token(refused=token))
            except AddressRefused as error:
                return Revoked(str(error))
            except ServiceError as error:
                return error.as_outcome()
            except smtplib.SMTPAuthenticationError as error:
                return Revoked(self._not_accepted) if error.smtp_code >= 500 else Later("The mail server is busy.")
            except smtplib.SMTPResponseException as error:
                return _outcome(error.smtp_code, _words(error.smtp_error))
            except smtplib.SMTPNotSupportedError as error:
                return Revoked(f"The mail server lacks a feature that sending needs ({error}).")
            except (smtplib.SMTPException, *_UNREACHABLE) as error:
                host = self._server(self._settings.smtp)[1]
                return Later(f"The mail server {host} cannot be reached ({_why(error)}).")

    async def _handed_over(self, mail: EmailMessage, readers: Sequence[str], token: str | None) -> Outcome:
        settings = self._settings
        scheme, host, port, needs_tls = self._server(settings.smtp)
        sock = await self._means.outbound.connect(host, port, settings.allow_private)
        sock.settimeout(SMTP_SECONDS)
        if scheme == "smtps":
            sock = await asyncio.to_thread(self._means.outbound.tls.wrap_socket, sock, server_hostname=host)
        return await asyncio.to_thread(self._hand_over, sock, host, scheme, needs_tls, mail, readers, token)

    def _hand_over(
        self,
        sock: socket.socket,
        host: str,
        scheme: str,
        needs_tls: bool,
        mail: EmailMessage,
        readers: Sequence[str],
        token: str | None,
    ) -> Outcome:
        """Talk to the mail server, in a thread."""
        settings = self._settings
        with _Smtp(sock, host, settings.address.rpartition("@")[2]) as smtp:
            smtp.ehlo()
            if scheme == "smtp" and (needs_tls or smtp.has_extn("starttls")):
                smtp.starttls(context=self._means.outbound.tls)
                smtp.ehlo()
            user = settings.user or settings.address
            if token is not None:
                smtp.auth("XOAUTH2", _XOAuth2(said_with(user, token)))
            elif smtp.has_extn("auth"):
                smtp.login(user, settings.password)
            international = not all(each.isascii() for each in readers)
            options = ["SMTPUTF8"] if international and smtp.has_extn("smtputf8") else []
            _check(smtp.mail(settings.address, options))
            told_of = {each: smtp.rcpt(each) if options or each.isascii() else _NOT_ASCII for each in readers}
            refused = {each: told for each, told in told_of.items() if told[0] >= 400}
            if len(refused) == len(readers):
                told = sorted(refused.values())[0]  # One that may be taken later, if there is one.
                return _outcome(told[0], _words(told[1]))
            smtp.rcpt(settings.address)  # A copy: by it we know later that the mail was sent.
            _check(smtp.data(mail.as_bytes(policy=SMTPUTF8 if options else SMTP)))
            missed = ", ".join(f"{each} ({_words(told[1])})" for each, told in refused.items())
            return Sent(str(mail["Message-ID"]), missed=missed)


_NOT_ASCII: Final = (553, b"5.6.7 The mail server takes only addresses with plain letters")
"""Said of an address with other letters, if the server does not take those."""


class _XOAuth2:
    """What is said to sign in with an access token, and nothing when the server tells why it is refused."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __call__(self, challenge: bytes | None = None, /) -> str:
        return "" if challenge else self._said


class _Smtp(smtplib.SMTP):
    """Talks over a connection that was made to a checked address."""

    def __init__(self, sock: socket.socket, host: str, own_name: str) -> None:
        super().__init__(local_hostname=own_name if own_name.isascii() else "localhost", timeout=SMTP_SECONDS)
        self._host = host  # Whose certificate it is; the same name as in the library.
        self.sock, self.file = sock, None
        try:
            _check(self.getreply())
        except BaseException:
            self.close()
            raise


def _check(told: tuple[int, bytes]) -> None:
    if told[0] >= 400:
        raise smtplib.SMTPResponseException(*told)


def _outcome(code: int, said: str) -> Outcome:
    """What the answer of a mail server means. Pure."""
    if code in (530, 535, 538):
        return Revoked(_WRONG_PASSWORD)
    if code < 500:
        return Later(f"The mail server does not accept the message now ({code} {said}).", PATIENCE_SECONDS)
    return Refused(f"The mail server refuses the message ({code} {said}).")


def _why(error: BaseException) -> str:
    """Why a server cannot be reached. Pure."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid: {error.verify_message}"
        case ssl.SSLError():
            return "encryption failed: is it the right port, and does imaps:// or smtps:// fit it?"
        case ImapError():
            return str(error)
        case _:
            return type(error).__name__


def _words(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:200]


def _correction(what: Outgoing) -> Outgoing:
    return replace(what, text=f"Correction of what I wrote before:\n\n{what.text}", reply_to=what.of)


def readable(data: bytes, settings: EmailSettings, *, whole: bool) -> IncomingMessage | None:
    """The mail; where it cannot be read at all, a line that says so."""
    try:
        return mails.incoming(data, settings, whole=whole)
    except Exception as error:  # noqa: BLE001  Whatever a stranger sends must not end the bridge, nor fill the log.
        log_line.warning("mail not readable", bytes=len(data), error=type(error).__name__)
        return mails.unreadable(data)
