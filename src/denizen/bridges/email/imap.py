"""A connection to an IMAP server (RFC 9051, and 3501), as much as a bridge needs. It changes nothing there.

The standard library has no IMAP without a thread for each connection, and none that waits for new mail.
"""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import ssl
from calendar import timegm
from dataclasses import dataclass, field
from typing import Final

from denizen.bridges.email.tokens import said_with

COMMAND_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 25 * 60.0
"""Servers may end a connection that says nothing for half an hour."""
LINE_BYTES: Final = 1 << 20
MAIL_BYTES: Final = 40_000_000
"""Of a mail that is larger, only the headers are read."""

_LITERAL: Final = re.compile(rb"\{(\d+)\+?\}\r\n$")
_NUMBERS: Final = re.compile(r"\d+")


class ImapError(Exception):
    """The server refused a command, or cannot be reached."""


class WrongPassword(ImapError):
    """The server does not accept the user name and password."""


@dataclass(slots=True)
class Line:
    """A response: its text, and the literals that were in it, in order."""

    text: str
    literals: list[bytes] = field(default_factory=list[bytes])


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as it is now: what its numbers are valid for, and the number that the next mail gets."""

    validity: int
    next: int


@dataclass(frozen=True, slots=True)
class FetchedMail:
    """A mail: its number, when the server got it (in seconds), and itself; of a very large one only its headers."""

    uid: int
    received: int
    data: bytes
    whole: bool


class Imap:
    """A connection, signed in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._number = 0
        self.capabilities: frozenset[str] = frozenset()

    @classmethod
    async def open(cls, sock: socket.socket, host: str, tls: ssl.SSLContext, *, at_once: bool, needs_tls: bool) -> Imap:
        """Greet the server; encrypted from the beginning (`at_once`), or then, if it is needed or offered."""
        encrypted, named = (tls, host) if at_once else (None, None)
        reader, writer = await asyncio.open_connection(
            sock=sock, limit=LINE_BYTES, ssl=encrypted, server_hostname=named
        )
        found = cls(reader, writer)
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                await found._line()
            await found._ask_capabilities()
            if not at_once and "STARTTLS" in found.capabilities:
                await found.command("STARTTLS")
                if reader._buffer:  # type: ignore[attr-defined]  # noqa: SLF001  it has no public name
                    raise ImapError("Data was added to the mail server's answer before encryption began.")
                await writer.start_tls(tls, server_hostname=host)
                await found._ask_capabilities()
            elif not at_once and needs_tls:
                raise ImapError(
                    "The mail server offers no encryption. Use imaps://, or list its host in allow_private."
                )
        except BaseException:
            found.close()
            raise
        return found

    async def log_in(self, user: str, password: str, token: str | None = None) -> None:
        """Sign in, with the access token if there is one."""
        try:
            if token is not None:
                said = base64.b64encode(said_with(user, token).encode()).decode()
                await self.command("AUTHENTICATE XOAUTH2", said)
            elif "AUTH=PLAIN" in self.capabilities:
                said = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
                await self.command("AUTHENTICATE PLAIN", said)
            else:
                await self.command(f"LOGIN {quoted(user)} {quoted(password)}")
        except ImapError as error:
            if "[UNAVAILABLE]" in str(error) or "[INUSE]" in str(error):
                raise
            raise WrongPassword(str(error)) from error
        await self._ask_capabilities()

    def close(self) -> None:
        """End the connection at once: an encrypted one would wait for the server to agree."""
        self._writer.transport.abort()

    async def _ask_capabilities(self) -> None:
        lines = await self.command("CAPABILITY")
        told = [each.text.split()[1:] for each in lines if each.text.upper().startswith("CAPABILITY")]
        self.capabilities = frozenset(each.upper() for words in told for each in words)

    # Folders and mails

    async def examine(self, folder: str) -> Folder:
        """Look at the folder, without a right to change it."""
        lines = await self.command(f"EXAMINE {quoted(encoded(folder))}")
        told = "\n".join(each.text for each in lines).upper()
        validity, following = (re.search(rf"\[{name} (\d+)\]", told) for name in ("UIDVALIDITY", "UIDNEXT"))
        if validity is None:
            raise ImapError("The mail server gives its mails no lasting numbers (UIDVALIDITY).")
        if following is not None:
            return Folder(int(validity[1]), int(following[1]))
        newest = await self.search("UID *")
        return Folder(int(validity[1]), max(newest, default=0) + 1)

    async def search(self, criteria: str) -> list[int]:
        """The numbers of the mails that these criteria are true for, in order."""
        lines = await self.command(f"UID SEARCH {criteria}")
        told = [each.text for each in lines if each.text.upper().startswith("SEARCH")]
        return sorted(int(each) for line in told for each in _NUMBERS.findall(line))

    async def received(self, uids: str) -> dict[int, int]:
        """When the server got these mails, in seconds."""
        lines = await self.command(f"UID FETCH {uids} (UID INTERNALDATE)")
        return {uid: _received(each.text) for each in lines if (uid := _number(each.text, "UID")) is not None}

    async def fetch(self, uid: int) -> FetchedMail | None:
        """The mail; None if it was deleted. Does not mark it as read."""
        lines = await self.command(f"UID FETCH {uid} (UID INTERNALDATE RFC822.SIZE)")
        known = next((each for each in lines if _number(each.text, "UID") == uid), None)
        if known is None:
            return None
        whole = (_number(known.text, "RFC822.SIZE") or 0) <= MAIL_BYTES
        part = "BODY.PEEK[]" if whole else "BODY.PEEK[HEADER]"
        lines = await self.command(f"UID FETCH {uid} (UID {part})")
        data = next((each.literals[0] for each in lines if each.literals and _number(each.text, "UID") == uid), None)
        return None if data is None else FetchedMail(uid, _received(known.text), data, whole)

    async def sent_folders(self) -> list[str]:
        """The folders that hold copies of what was sent, in the server's spelling."""
        if "SPECIAL-USE" not in self.capabilities:
            return []
        lines = await self.command('LIST "" "*"')
        found = [re.match(r'LIST \(([^)]*)\) (?:"[^"]*"|NIL) (.+)$', each.text, re.IGNORECASE) for each in lines]
        return [decoded(each[2].strip('"')) for each in found if each is not None and "\\sent" in each[1].lower()]

    async def idle(self) -> None:
        """Returns when something in the folder has changed, or after a while."""
        tag = await self._send("IDLE")
        await self._until_continued(tag)
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                while not re.match(r"\* \d+ (EXISTS|RECENT)", (await self._line()).text, re.IGNORECASE):
                    pass
        except TimeoutError:
            pass
        self._writer.write(b"DONE\r\n")
        async with asyncio.timeout(COMMAND_SECONDS):
            await self._ended(tag)

    # Commands

    async def command(self, said: str, then: str | None = None) -> list[Line]:
        """Returns what the server tells, without `* `. `then` is what follows when the server asks for more."""
        async with asyncio.timeout(COMMAND_SECONDS):
            tag = await self._send(said)
            if then is not None:
                await self._until_continued(tag)
                self._writer.write(f"{then}\r\n".encode())
            return await self._ended(tag)

    async def _send(self, said: str) -> str:
        self._number += 1
        tag = f"D{self._number}"
        self._writer.write(f"{tag} {said}\r\n".encode())
        await self._writer.drain()
        return tag

    async def _until_continued(self, tag: str) -> None:
        while not (line := await self._line()).text.startswith("+"):
            if line.text.startswith(f"{tag} "):
                raise ImapError(line.text.partition(" ")[2][:200])

    async def _ended(self, tag: str) -> list[Line]:
        lines: list[Line] = []
        while True:
            line = await self._line()
            if line.text.startswith(f"{tag} "):
                result = line.text.partition(" ")[2]
                if not result.upper().startswith("OK"):
                    raise ImapError(result[:200])
                return lines
            if line.text.startswith("* "):
                line.text = line.text[2:]
                if line.text.upper().startswith("BYE"):
                    raise ConnectionError(line.text[:200])
                lines.append(line)
            elif line.text.startswith("+"):
                self._writer.write(b"\r\n")  # Why an access token is refused: it tells when we have read that.

    async def _line(self) -> Line:
        """The next response, with its literals."""
        text, literals = "", list[bytes]()
        while True:
            part = await self._reader.readuntil(b"\r\n")
            found = _LITERAL.search(part)
            if found is None:
                return Line(text + part[:-2].decode("utf-8", "replace"), literals)
            if int(found[1]) > MAIL_BYTES + LINE_BYTES:
                raise ConnectionError("The mail server sends more than was asked for.")
            text += part[: found.start()].decode("utf-8", "replace")
            literals.append(await self._reader.readexactly(int(found[1])))


def _number(text: str, name: str) -> int | None:
    found = re.search(rf"\b{re.escape(name)} (\d+)", text, re.IGNORECASE)
    return None if found is None else int(found[1])


_DATE: Final = re.compile(
    r'INTERNALDATE "\s?(\d+)-(\w{3})-(\d{4}) (\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)"', re.IGNORECASE
)
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _received(text: str) -> int:
    found = _DATE.search(text)
    if found is None or found[2].title() not in MONTHS:
        return 0
    day, month, year, hour, minute, second, sign, *offset = found.groups()
    shift = (int(offset[0]) * 60 + int(offset[1])) * (60 if sign == "+" else -60)
    parts = (int(year), MONTHS.index(month.title()) + 1, int(day), int(hour), int(minute), int(second))
    return timegm((*parts, 0, 0, 0)) - shift


def quoted(text: str) -> str:
    """The text as a quoted string. Raises `ImapError` if it cannot be one."""
    if any(each in text for each in "\r\n\0"):
        raise ImapError("There is a line break in a name or password.")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def encoded(name: str) -> str:
    """The name of a folder in modified UTF-7, as IMAP wants it."""
    parts = re.split(r"([^\x20-\x7e]+)", name)
    said: list[str] = []
    for at, part in enumerate(parts):
        if at % 2 == 0:
            said.append(part.replace("&", "&-"))
        else:
            packed = base64.b64encode(part.encode("utf-16-be")).decode().rstrip("=").replace("/", ",")
            said.append(f"&{packed}-")
    return "".join(said)


def decoded(name: str) -> str:
    """The name of a folder that the server spelled in modified UTF-7."""

    def unpacked(found: re.Match[str]) -> str:
        packed = found[1].replace(",", "/")
        return base64.b64decode(packed + "=" * (-len(packed) % 4)).decode("utf-16-be", "replace") if packed else "&"

    return re.sub(r"&([^-]*)-", unpacked, name)
