"""HTTP requests as tools, by configuration: a model can reach only what the owner has configured.

Arguments are encoded into the URL, so that each stays one value in one place. Secrets stand in headers only. Headers of
the definition are sent to the configured origin only; secrets are removed from whatever comes back.
"""

from __future__ import annotations

import codecs
import json
import mimetypes
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from email.message import Message
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import httpx2
from pydantic_ai.tools import ToolDefinition

from denizen.amounts import human_size
from denizen.errors import InvalidInput, ToolFailed
from denizen.files.storing import FILE_BYTES
from denizen.masking import masked, without
from denizen.telemetry.traces import passed_on
from denizen.tools.outbound import Outbound
from denizen.tools.references import Secret, filled
from denizen.tools.results import Output, ToolFile
from denizen.tools.schemas import checker
from denizen.tools.settings import PLACE, HttpTool
from denizen.tools.tool import CallIdentity, OutsideTool

LONGEST: Final = 1_000_000
"""How many bytes of an answer are read; the rest is dropped."""
REDIRECTS: Final = 5
_SLACK: Final = 8_192
"""Read beyond the limit, so that a secret at the cut is complete and can be found."""
_BEGINNING: Final = 2_000
"""How many characters of the body of a failed answer are shown."""
_TEXTUAL: Final = re.compile(r"text/|[^;]*[/+](?:json|xml|javascript|yaml|x-yaml|x-ndjson|x-www-form-urlencoded)\b")


AnswerTo = Callable[[str], str]
"""Returns the address that takes the answer to the call with this id."""


def http_tool(
    settings: HttpTool, *, secret: Secret, outbound: Outbound, answer_to: AnswerTo | None = None
) -> OutsideTool:
    """The tool that makes this request."""

    async def call(arguments: Mapping[str, Any], occasion: CallIdentity) -> str | Output:
        fixed, secrets = filled(settings.headers, secret)
        try:
            request = _request(settings, arguments, fixed, _own_headers(settings, occasion, answer_to))
            status, told = await _ask(outbound.client(settings.allow_private), request, secrets)
        except httpx2.HTTPError as error:
            # Without its cause, which may hold what was sent.
            raise ToolFailed(without(_trouble(settings, error), secrets)) from None
        if settings.mode == "async" and not 200 <= status < 300:
            raise ToolFailed(told if isinstance(told, str) else told.text)
        return told

    return OutsideTool(
        definition=ToolDefinition(
            name=settings.name, description=settings.description, parameters_json_schema=settings.parameters
        ),
        check=checker(settings.name, settings.parameters),
        call=call,
        on_crash=settings.on_crash,
        independent=settings.independent,
        seconds=settings.seconds,
        visible=settings.visible,
        mode="async" if settings.mode == "async" else "wait",
        results=settings.results,
        effect=settings.method != "GET" if settings.effect is None else settings.effect,
        link_is_effect=settings.effect is None,
        needs_trusted=settings.needs == "trusted",
        kinds=settings.kinds,
        makes=settings.makes,
    )


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    for_any_origin: Mapping[str, str]
    """The headers that follow a redirect to another origin: none that the definition sets or that identify the call."""
    content: bytes | None


def _request(
    settings: HttpTool, arguments: Mapping[str, Any], fixed: Mapping[str, str], own: Mapping[str, str]
) -> _Request:
    rest = {name: value for name, value in arguments.items() if name not in settings.places}
    body = settings.body or ("none" if settings.method in ("GET", "DELETE") else "json")
    url = _address(settings, arguments, rest if body == "none" else {})
    content, content_type = _content(body, rest)
    _check_headers(fixed)
    plain = {"user-agent": "denizen", "accept-encoding": "gzip", **content_type}
    return _Request(settings.method, url, {**plain, **_lowered(fixed), **own}, plain, content)


def _own_headers(settings: HttpTool, occasion: CallIdentity, answer_to: AnswerTo | None) -> dict[str, str]:
    headers = passed_on()
    if settings.method != "GET":
        headers["idempotency-key"] = occasion.key
    if settings.mode == "async":
        headers["denizen-call-id"] = occasion.call_id
        if answer_to is not None:
            headers["denizen-answer-to"] = answer_to(occasion.call_id)
    return headers


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise ToolFailed(
                f"The header {name} cannot be sent: a secret in it has line breaks or characters beyond ASCII. "
                "The owner of the agent has to set it again."
            )


# URL


def _address(settings: HttpTool, arguments: Mapping[str, Any], query: Mapping[str, Any]) -> httpx2.URL:
    """The URL with the arguments inserted. Raises `InvalidInput` if one would change the destination."""
    base, _, asked = settings.url.partition("#")[0].partition("?")
    start = base.find("/", base.index("://") + 3)
    origin, path = (base, "/") if start < 0 else (base[:start], base[start:])
    path = PLACE.sub(lambda place: _in_path(settings.name, place[1], arguments), path)
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        raise InvalidInput(f"{settings.name} was not called: its arguments would lead to another path.")
    # A parameter is left out if its argument is missing.
    given = {name: value for name, value in arguments.items() if value is not None}
    pieces = [piece for piece in asked.split("&") if given.keys() >= set(PLACE.findall(piece))]
    pieces = [PLACE.sub(lambda place: _quoted(_text(given[place[1]])), piece) for piece in pieces]
    whole = "&".join(filter(None, [*pieces, urlencode(_pairs(query), errors="replace")]))
    try:
        return httpx2.URL(f"{origin}{path}{'?' if whole else ''}{whole}")
    except httpx2.InvalidURL as error:
        raise InvalidInput(f"{settings.name} was not called: {error}.") from error


def _in_path(tool: str, name: str, arguments: Mapping[str, Any]) -> str:
    value = _text(arguments.get(name))
    if not value:
        raise InvalidInput(f"{tool} was not called: it needs the argument {name}.")
    # Servers differ in when they decode, so an encoded slash may become a real one.
    if any(part in (".", "..") for part in re.split(r"[/\\]", unquote(value))) or not value.isprintable():
        raise InvalidInput(f"{tool} was not called: {name} cannot be part of a path as it is.")
    return _quoted(value)


def _quoted(value: str) -> str:
    # Models can write half of a surrogate pair, which has no bytes.
    return quote(value, safe="", errors="replace")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of a query or a form; a list repeats its name."""
    several: dict[str, list[Any]] = {
        name: value if isinstance(value, list) else [value] for name, value in values.items()
    }
    return [(name, _text(each)) for name, items in several.items() for each in items if each is not None]


def _content(body: str, rest: Mapping[str, Any]) -> tuple[bytes | None, dict[str, str]]:
    if body == "json":
        return json.dumps(rest).encode(), {"content-type": "application/json"}
    if body == "form":
        return urlencode(_pairs(rest), errors="replace").encode(), {"content-type": "application/x-www-form-urlencoded"}
    return None, {}


# Request and response


async def _ask(client: httpx2.AsyncClient, request: _Request, secrets: Sequence[str]) -> tuple[int, str | Output]:
    """The status and the text for the model, or a file, after redirects."""
    for _ in range(REDIRECTS + 1):
        sent = client.build_request(request.method, request.url, headers=dict(request.headers), content=request.content)
        answer = await client.send(sent, stream=True, follow_redirects=False)
        try:
            onward = _onward(request, answer)
            if onward is None:
                return answer.status_code, await _told(answer, secrets)
        finally:
            await answer.aclose()
        request = onward
    raise ToolFailed(f"The service redirects more than {REDIRECTS} times.")


def _onward(request: _Request, answer: httpx2.Response) -> _Request | None:
    """The request that a redirect asks for, by the rules that browsers follow; None if this is not a redirect."""
    location = answer.headers.get("location")
    if answer.status_code not in (301, 302, 303, 307, 308) or not location:
        return None
    try:
        url = request.url.join(location).copy_with(userinfo=b"", fragment=None)
    except httpx2.InvalidURL as error:
        raise ToolFailed("The service redirects to something that is not an address.") from error
    if url.scheme not in ("http", "https"):
        raise ToolFailed(f"The service redirects to {url.scheme}, which is not HTTP.")
    stays = _origin(url) == _origin(request.url)
    headers = dict(request.headers if stays else request.for_any_origin)
    to_get = answer.status_code == 303 or (answer.status_code in (301, 302) and request.method == "POST")
    if not to_get or request.method == "GET":
        return replace(request, url=url, headers=headers)
    for name in ("content-type", "idempotency-key"):
        headers.pop(name, None)
    plain = {name: value for name, value in request.for_any_origin.items() if name != "content-type"}
    return replace(request, method="GET", url=url, headers=headers, for_any_origin=plain, content=None)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


async def _told(answer: httpx2.Response, secrets: Sequence[str]) -> str | Output:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.is_success and kind and not _TEXTUAL.match(kind):
        return await _file(answer, kind, secrets)
    raw, whole = await _read(answer)
    text = without(_readable(raw, answer.headers, whole), secrets)
    line = f"HTTP {answer.status_code} {_phrase(answer.status_code)}".rstrip()
    if not answer.is_success:
        return f"{line}: {text[:_BEGINNING]}" if text else line
    if len(text) > LONGEST or not whole:
        text = f"{text[:LONGEST]}\n… [the answer is longer; only its beginning was read]"
    return text or line


async def _file(answer: httpx2.Response, kind: str, secrets: Sequence[str]) -> str | Output:
    """An answer that is not text: a file, if it is small enough."""
    raw, whole = await _read(answer, FILE_BYTES)
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    data = _unpacked(raw, encoding, FILE_BYTES)
    size = human_size(len(raw)) if whole else f"more than {human_size(FILE_BYTES)}"
    if not whole or not data or len(data) > FILE_BYTES or any(each.encode() in data for each in secrets if each):
        return without(f"[{kind}, {size}]", secrets) if raw else ""
    name = without(_file_name(answer), secrets)
    return Output("", (ToolFile(data, name, kind),))


def _file_name(answer: httpx2.Response) -> str:
    """The name that the service gives, otherwise the last part of the path."""
    given = Message()
    given["content-disposition"] = answer.headers.get("content-disposition", "")
    named = given.get_filename() or unquote(answer.url.path.rstrip("/").rpartition("/")[2]) or "file"
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    return named if "." in named else f"{named}{mimetypes.guess_extension(kind) or ''}"


async def _read(answer: httpx2.Response, most: int = LONGEST) -> tuple[bytes, bool]:
    """The bytes as they were sent, and whether these are all."""
    raw = bytearray()
    async with aclosing(answer.aiter_raw()) as parts:
        async for part in parts:
            raw += part
            if len(raw) > most + _SLACK:
                return bytes(raw[: most + _SLACK]), False
    return bytes(raw), True


def _readable(raw: bytes, headers: httpx2.Headers, whole: bool) -> str:
    content_type = headers.get("content-type", "")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    data = _unpacked(raw, encoding)
    size = human_size(len(raw)) if whole else f"more than {human_size(LONGEST)}"
    if data is None or (content_type and not _TEXTUAL.match(content_type.lower())):
        return f"[{content_type or 'no text'}, {size}]" if raw else ""
    charset = httpx2.Response(200, headers={"content-type": content_type}).charset_encoding or "utf-8"
    try:
        if not content_type:
            return codecs.utf_8_decode(data, "strict", whole)[0]
        return data.decode(charset, errors="replace")
    except LookupError:
        return data.decode(errors="replace")
    except UnicodeDecodeError:
        return f"[no text, {size}]"


def _unpacked(raw: bytes, encoding: str, most: int = LONGEST) -> bytes | None:
    """The decompressed body, never more than the limit: a small body can unpack to a very large one."""
    if encoding in ("identity", ""):
        return raw
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        # 32 more than the window's size: gzip or zlib is detected from the data.
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(raw, most + _SLACK)
    except zlib.error:
        return None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _trouble(settings: HttpTool, error: httpx2.HTTPError) -> str:
    host = httpx2.URL(PLACE.sub("x", settings.url)).host
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return f"{host} could not be reached in time. The request was not sent."
    if isinstance(error, httpx2.ConnectError | httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return f"{host} could not be reached: {masked(str(error)) or 'no connection'}. The request was not sent."
    unknown = "" if settings.method == "GET" else " Whether it did what was asked is unknown."
    return f"The connection to {host} broke before it had answered.{unknown}"
