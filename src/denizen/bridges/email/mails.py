"""Translates between mails and messages. Pure.

A mail that breaks the rules is read as far as possible: its sender gets an answer to what could be read.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import SMTP, EmailPolicy
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, Final, cast

from denizen.bridges.email import texts
from denizen.bridges.email.authentication import Verdict, judge
from denizen.bridges.email.kind import EmailSettings
from denizen.bridges.port import IncomingFile, IncomingMessage, Outgoing, Thread, Writer
from denizen.bridges.receiving import OUTSIDE_ID_CHARACTERS
from denizen.clock import SECOND, Instant, moment
from denizen.spaces.posting import MESSAGE_CHARACTERS

FILES: Final = 20
"""The most files that are taken from a mail."""
READERS: Final = 50
PARTS: Final = 10_000
"""A mail with more lines that may begin a part is not read."""
HEADER_CHARACTERS: Final = 10_000
TITLE_CHARACTERS: Final = 100
WHOLE_NAME: Final = "mail.txt"
"""The file with the whole text, if the message is shortened."""

_ID: Final = re.compile(r"<[^<>\s]{1,480}>")
_REPLY: Final = re.compile(r"^\s*((re|aw|wg|fw|fwd|sv|antw|tr|rv)(\[\d+\])?\s*:\s*)+", re.IGNORECASE)
_PROGRAMS: Final = re.compile(
    r"^(mailer-daemon|postmaster|no-?reply|do-?not-?reply|bounces?)([+\-._].*)?@", re.IGNORECASE
)
_MULTIPART: Final = re.compile(rb"multipart/", re.IGNORECASE)
_BULK: Final = ("bulk", "list", "junk", "auto_reply")
_BY_PROGRAMS: Final = (
    "List-Id",
    "List-Post",
    "List-Unsubscribe",
    "X-Autoreply",
    "X-Autorespond",
    "X-Auto-Response-Suppress",
    "X-Failed-Recipients",
    "X-Loop",
)
_NOT_CHARSETS: Final = frozenset({"idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
"""Codecs of Python that are no character sets; some take very long."""
_TEXT_BYTES: Final = 2_000_000


class _ShortHeaders(EmailPolicy):
    """Headers that are too long to be meant are cut: the standard library takes hours for some."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        most = HEADER_CHARACTERS // 10 if name.lower().startswith("content-") else HEADER_CHARACTERS
        return name, value[-most:] if name.lower() == "references" else value[:most]  # The newest stand at its end.


_SHORT_HEADERS: Final = _ShortHeaders()


def message_id(id: str, address: str) -> str:
    """The `Message-ID` of what is sent: the same whenever it is sent."""
    return f"<{id}@{address.rpartition('@')[2]}>"


def incoming(data: bytes, settings: EmailSettings, *, whole: bool = True) -> IncomingMessage | None:
    """What a mail is here; None for what this bridge has sent, and what nobody is to read."""
    if data.count(b"\n--") > PARTS and _MULTIPART.search(data):
        raise ValueError("a mail with too many parts")
    mail: Message[Any, Any] = BytesParser(policy=_SHORT_HEADERS).parsebytes(data)
    (name, address), *more_writers = [*_addresses(mail, "From"), ("", "")]
    id = next(iter(_ids(mail, "Message-ID")), f"<{hashlib.sha256(data).hexdigest()}@no-id>")
    own = settings.address.lower()
    if address in (own, "") or id.endswith(f".denizen@{own.rpartition('@')[2]}>"):
        return None
    verdict = judge(_headers(mail, "Authentication-Results"), settings.auth_server, address)
    if len(more_writers) > 1 or len(_headers(mail, "From")) > 1:
        verdict = Verdict(False, verdict.results)  # Nobody knows whom of them the mail server means.
    if settings.senders and not (verdict.verified and _is_wanted(address, settings.senders)):
        return None
    automatic = _is_automatic(mail, address)
    said, files = _content(mail, whole=whole)
    references = list(reversed(_ids(mail, "References")))
    replied = _ids(mail, "In-Reply-To")
    others = [each for header in ("Reply-To", "To", "Cc") for _, each in _addresses(mail, header)]
    readers = [each for each in dict.fromkeys([address, *others]) if each not in (own, "")][:READERS]
    title = _REPLY.sub("", _header(mail, "Subject")).strip()[:TITLE_CHARACTERS]
    return IncomingMessage(
        id,
        Writer(address, name or address.partition("@")[0], bot=automatic, verified=verdict.verified),
        said,
        sent_at=_date(mail),
        reply_to=next(iter(replied), None),
        files=files,
        addressed=True,
        thread=Thread(title, tuple(dict.fromkeys([*replied, *references, *_returned(mail)]))[:40], tuple(readers)),
        automatic=automatic,
        provenance={"from": address, **_told(verdict)},
    )


def unreadable(data: bytes) -> IncomingMessage | None:
    """What is said in place of a mail that cannot be read; None if nobody knows who wrote it."""
    head = data[:65_536].decode("utf-8", "replace")
    found = re.search(r"^From:.*?([^@\s<>,\"]+@[^@\s<>,\"]+)", head, re.IGNORECASE | re.MULTILINE)
    if found is None:
        return None
    address = found[1].lower()
    said = "[A mail came that cannot be read here. It is in the mailbox.]"
    thread = Thread("A mail that cannot be read", readers=(address,))
    return IncomingMessage(f"<{hashlib.sha256(data).hexdigest()}@no-id>", Writer(address, address), said, thread=thread)


def _told(verdict: Verdict) -> dict[str, str]:
    """The results of the mail server, by method; what passed stands before what did not."""
    told: dict[str, str] = {}
    for method, result in sorted(verdict.results, key=lambda each: not each[1].startswith("pass")):
        told.setdefault(method, result)
    return told


def _is_wanted(address: str, senders: Sequence[str]) -> bool:
    wanted = {each.strip().lower() for each in senders}
    return address in wanted or f"@{address.rpartition('@')[2]}" in wanted


def _is_automatic(mail: Message[Any, Any], address: str) -> bool:
    """Whether a program has sent it by itself, or a list: nobody waits for an answer, or a program would answer it."""
    submitted = _header(mail, "Auto-Submitted").partition(";")[0].strip().lower()
    return (
        submitted not in ("", "no")
        or _header(mail, "Precedence").strip().lower() in _BULK
        or any(_headers(mail, each) for each in _BY_PROGRAMS)
        or [each.strip() for each in _headers(mail, "Return-Path")[:1]] == ["<>"]
        or mail.get_content_type() == "multipart/report"
        or _PROGRAMS.match(address) is not None
    )


def _returned(mail: Message[Any, Any]) -> list[str]:
    """The ids of the mail that a bounce is about: it is in the bounce."""
    if mail.get_content_type() != "multipart/report":
        return []
    found: list[str] = []
    for part in _parts(mail):
        if part.get_content_type() in ("message/rfc822", "text/rfc822-headers", "message/rfc822-headers"):
            head = _bytes(part)[:65_536].decode("utf-8", "replace")
            unfolded = re.sub(r"\r?\n[ \t]+", " ", head)
            for line in unfolded.splitlines():
                if line.lower().startswith(("message-id:", "in-reply-to:", "references:")):
                    found += reversed(_ID.findall(line))
    return found


# Its parts


def _content(mail: Message[Any, Any], *, whole: bool) -> tuple[str, tuple[IncomingFile, ...]]:
    """What the mail says, and its files; the whole text is one of them if the message is shortened."""
    if not whole:
        return "[This mail is too large to be read here. It is in the mailbox.]", ()
    plain: str | None = None
    html: str | None = None
    files: list[IncomingFile] = []
    for part in _parts(mail):
        kind, named = part.get_content_type(), _filename(part)
        attached = named is not None or part.get_content_disposition() == "attachment"
        if kind == "text/plain" and plain is None and not attached:
            plain = _text(part)
        elif kind == "text/html" and html is None and not attached:
            html = _text(part)
        elif attached or not (kind.startswith("text/") or kind == "message/delivery-status"):
            files.append(IncomingFile(named or _name_of(kind), kind, _bytes(part)))
    said = plain if plain is not None and plain.strip() else texts.text_of_html(html or "")
    kept = texts.without_quotes(said)
    for file in files[FILES:]:
        kept += f"\n\n[A file is missing: {file.name}. At most {FILES} are taken from a mail.]"
    files = files[:FILES]
    if _words(kept) != _words(said) or len(kept) > MESSAGE_CHARACTERS:
        files.append(IncomingFile(WHOLE_NAME, "text/plain", said.strip().encode()))
    if not kept.strip() and not files:
        kept = "[This mail has no text.]"
    return kept, tuple(files)


def _words(text: str) -> str:
    return " ".join(text.split())


def _parts(mail: Message[Any, Any]) -> Iterator[Message[Any, Any]]:
    """The parts that hold something, in order. A mail in a mail is one part."""
    left = [mail]
    while left:
        part = left.pop()
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            left += reversed(cast("list[Message[Any, Any]]", part.get_payload()))
        else:
            yield part


def _text(part: Message[Any, Any]) -> str:
    data = _bytes(part)[:_TEXT_BYTES]
    try:
        charset = codecs.lookup(part.get_content_charset() or "utf-8").name.replace("-", "_")
        return data.decode("utf-8" if charset in _NOT_CHARSETS else charset).replace("\r\n", "\n")
    except (LookupError, UnicodeDecodeError):
        return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _bytes(part: Message[Any, Any]) -> bytes:
    if part.is_multipart():  # A mail in a mail.
        (inner, *_) = [*cast("list[Message[Any, Any]]", part.get_payload()), Message()]
        try:
            return inner.as_bytes()
        except (ValueError, LookupError, TypeError, AttributeError, KeyError):
            return b""
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _filename(part: Message[Any, Any]) -> str | None:
    try:
        return part.get_filename()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _name_of(kind: str) -> str:
    return "mail.eml" if kind == "message/rfc822" else f"file.{kind.rpartition('/')[2]}"


# Its headers


def _headers(mail: Message[Any, Any], name: str) -> list[str]:
    """The values of a header. The standard library raises various errors for some that break the rules."""
    try:
        return [str(each) for each in mail.get_all(name) or []]
    except Exception:  # noqa: BLE001  errors of various kinds, in no contract
        return [str(value) for key, value in mail.raw_items() if str(key).lower() == name.lower()]


def _header(mail: Message[Any, Any], name: str) -> str:
    return next(iter(_headers(mail, name)), "")


def _ids(mail: Message[Any, Any], name: str) -> list[str]:
    return [each for each in _ID.findall(" ".join(_headers(mail, name))) if len(each) <= OUTSIDE_ID_CHARACTERS]


def _addresses(mail: Message[Any, Any], name: str) -> list[tuple[str, str]]:
    """The names and addresses, these in lower case."""
    found = [(shown.strip(), address.strip().lower()) for shown, address in getaddresses(_headers(mail, name))]
    return [(shown, address) for shown, address in found if re.fullmatch(r"[^@\s<>,]+@[^@\s<>,]+", address)]


def _date(mail: Message[Any, Any]) -> Instant | None:
    try:
        found = parsedate_to_datetime(_header(mail, "Date"))
        return Instant(int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()) * SECOND)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


# What is sent


def outgoing(
    what: Outgoing,
    address: str,
    now: Instant,
    files: Sequence[tuple[str, str, bytes]],
    html: str,
) -> EmailMessage:
    """A message as a mail to those who read the conversation."""
    assert what.thread is not None
    mail = EmailMessage(policy=SMTP)
    first, *others = what.thread.readers
    mail["From"] = _named(what.author, address)
    mail["To"] = _named("", first)
    if others:
        mail["Cc"] = [_named("", each) for each in others]
    mail["Subject"] = f"Re: {_one_line(what.thread.title) or 'your mail'}"
    mail["Date"] = moment(now)
    mail["Message-ID"] = message_id(f"{what.id}.denizen", address)
    before = what.thread.refers_to
    if before:
        replied = what.reply_to or before[0]
        mail["In-Reply-To"] = replied
        mail["References"] = " ".join([*(each for each in reversed(before) if each != replied), replied])
    if what.author_kind != "human":
        mail["Auto-Submitted"] = "auto-replied"
        mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(what.text)
    mail.add_alternative(html, subtype="html")
    for name, media_type, data in files:
        kind, _, subkind = media_type.partition("/")
        mail.add_attachment(data, maintype=kind or "application", subtype=subkind or "octet-stream", filename=name)
    return mail


def code(what: Outgoing, address: str, now: Instant) -> EmailMessage:
    """A mail with the code that links an address."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = _named("", address)
    mail["To"] = _named("", what.target)
    mail["Subject"] = "Your code"
    mail["Date"] = moment(now)
    mail["Message-ID"] = message_id(f"{what.id}.denizen", address)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"Your code to link this address: {what.text}\n\nIf you did not ask for it, do nothing.")
    return mail


def _named(name: str, address: str) -> Address | str:
    try:
        return Address(_one_line(name), addr_spec=address)
    except Exception:  # noqa: BLE001  errors of various kinds, in no contract
        return address


def _one_line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
