"""Parses the request to a webhook, after its signature was verified. Pure.

A body is JSON, or a form (with JSON in its field `payload`, as GitHub and Slack may send it), or otherwise text. A
form with several parts (`multipart/form-data`) may have files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

from pydantic import JsonValue

from denizen.access.signatures import Scheme
from denizen.errors import InvalidInput
from denizen.inbox.outside import is_deep, storable_data
from denizen.storage.database import storable

MOST_FIELDS: Final = 1_000
_TITLES: Final[Mapping[Scheme, str]] = {"github": "GitHub", "slack": "Slack", "jira": "Jira", "generic": "Event"}
_KIND = re.compile(r"[A-Za-z0-9_.:/ -]{1,80}")


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file in a form."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class WebhookNotice:
    """What the agent is told: a line, or the text that came, and the data, if any."""

    text: str
    data: JsonValue = None
    files: tuple[SentFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Greeting:
    """A ping of the service: nobody else is told."""

    answer: str | None = None
    """The reply that it expects, if any."""


def read(scheme: Scheme, headers: Mapping[str, str], body: bytes) -> WebhookNotice | Greeting:
    """Parse the request. The names of headers are lower case."""
    content_type = headers.get("content-type", "")
    if content_type.lower().startswith("multipart/form-data"):
        fields, files = _parts(content_type, body)
        return WebhookNotice(storable(_line(scheme, headers, fields)), storable_data(fields), files)
    data, text = _decoded(content_type, body)
    if scheme == "github" and headers.get("x-github-event") == "ping":
        return Greeting()
    if scheme == "slack" and _word(data, "type") == "url_verification":
        return Greeting(_word(data, "challenge"))
    line = _line(scheme, headers, data)
    return WebhookNotice(storable("\n".join(part for part in (line, text) if part)), storable_data(data))


def _decoded(content_type: str, body: bytes) -> tuple[JsonValue, str | None]:
    """The data, and None; or None, and the text."""
    text = body.decode("utf-8", "replace")
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if media_type == "application/x-www-form-urlencoded":
            return _form(text), None
        return _json(text), None
    except (ValueError, RecursionError):
        return None, text


def _parts(content_type: str, body: bytes) -> tuple[JsonValue, tuple[SentFile, ...]]:
    """The fields of a form, and its files. Raises `InvalidInput` if it is not a form."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise InvalidInput("The request is not a form: its parts are not separated as its Content-Type says.")
    fields: dict[str, JsonValue] = {}
    files: list[SentFile] = []
    for part in list(message.iter_parts())[:MOST_FIELDS]:
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        content = data if isinstance(data, bytes) else b""
        if (filename := part.get_filename()) is not None:
            files.append(SentFile(filename, part.get_content_type(), content))
        elif isinstance(name, str):
            fields.setdefault(name, content.decode("utf-8", "replace"))
    payload = fields.get("payload")
    try:
        return (_json(payload) if isinstance(payload, str) else fields), tuple(files)
    except (ValueError, RecursionError):
        return fields, tuple(files)


def _form(text: str) -> JsonValue:
    fields: dict[str, JsonValue] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=MOST_FIELDS):
        fields.setdefault(name, value)
    payload = fields.get("payload")
    return _json(payload) if isinstance(payload, str) else fields


def _json(text: str) -> JsonValue:
    data: JsonValue = json.loads(text, parse_constant=_refuse)
    if is_deep(data):
        raise ValueError("nested too deep")
    return data


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"JSON has no {constant}")


def _line(scheme: Scheme, headers: Mapping[str, str], data: JsonValue) -> str:
    match scheme:
        case "github":
            parts = (_plain(headers.get("x-github-event")), _word(data, "action"))
        case "slack":
            inner = data.get("event") if isinstance(data, dict) else None
            parts = (_word(inner, "type") or _word(data, "command") or _word(data, "type"),)
        case "jira":
            parts = (_word(data, "webhookEvent"),)
        case "generic":
            parts = (_word(data, "type") or _word(data, "event"),)
    said = " ".join(part for part in parts if part)
    if scheme == "generic":
        # The webhook already names the service.
        return said
    return f"{_TITLES[scheme]}: {said}" if said else _TITLES[scheme]


def _word(data: Any, key: str) -> str | None:
    """A short string in the data, or None."""
    return _plain(data.get(key)) if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _plain(value: object) -> str | None:
    return value if isinstance(value, str) and _KIND.fullmatch(value) else None
