"""Requests to a Denizen server over HTTP, and its streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import date
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ValidationError

from denizen.client.streaming import Connected, LifeEvent, decode
from denizen.clock import Clock, SystemClock
from denizen.errors import InvalidInput, RequestRefused, ServerError, ServerUnreachable, TokenRefused
from denizen.shapes.health import Health
from denizen.shapes.people import Me
from denizen.shapes.value import Value

REQUEST_SECONDS: Final = 20.0
SILENT_SECONDS: Final = 45.0
"""A stream that is silent for so long is dead: the server sends something every 15 seconds."""
_BUSY: Final = (429, 502, 503, 504)
"""Statuses of a server, or of a proxy before it, that are worth a retry."""


class _Problem(Value):
    code: str = ""
    detail: str = ""


LONG: Final = httpx2.Timeout(REQUEST_SECONDS, read=600)
"""For requests that take longer with more data."""

_Told = TypeVar("_Told", bound=BaseModel)


class Connection:
    """The connection of one caller to one server."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        clock: Clock | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = _checked(url)
        self._clock = clock or SystemClock()
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if not token.isascii() or not token.isprintable():
            raise InvalidInput("The access token contains invalid characters. Copy it again.")
        # Proxies of the environment are for the internet; one's own server is not there.
        self._http = httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=REQUEST_SECONDS,
            trust_env=False,
            follow_redirects=False,
            # Without certificates for plain HTTP: loading them takes longer than most requests.
            verify=not self.url.startswith("http://"),
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def health(self) -> Health:
        """Returns the server's health and version. Needs no token."""
        return await self._ask(Health, "GET", "/healthz")

    async def me(self) -> Me:
        return await self._ask(Me, "GET", "/api/me")

    async def _events(self, path: str, last: str | None) -> AsyncGenerator[tuple[str | None, LifeEvent]]:
        """Yields the events of one connection, each with its id, until it ends."""
        headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
        waiting = httpx2.Timeout(REQUEST_SECONDS, read=SILENT_SECONDS)
        try:
            async with self._http.stream("GET", path, headers=headers, timeout=waiting) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise refusal(response)
                yield None, Connected()
                async for id, event in _decoded(response):
                    yield id, event
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error

    async def _ask(self, kind: type[_Told], method: str, path: str, **request: Any) -> _Told:
        response = await self._tell(method, path, **request)
        try:
            return kind.model_validate_json(response.content, extra="ignore")
        except ValidationError as error:
            raise ServerError(f"What answers at {self.url} is not a Denizen server.") from error

    async def _tell(self, method: str, path: str, **request: Any) -> httpx2.Response:
        try:
            response = await self._http.request(method, path, **request)
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            raise refusal(response)
        return response

    def _unreachable(self, error: httpx2.RequestError) -> ServerUnreachable:
        why = "It takes too long." if isinstance(error, httpx2.TimeoutException) else ""
        return ServerUnreachable(f"No Denizen server answers at {self.url}. {why}".strip())


async def _decoded(response: httpx2.Response) -> AsyncIterator[tuple[str | None, LifeEvent]]:
    async for sent in httpx2.EventSource(response):
        if (event := decode(sent)) is not None:
            yield sent.id or None, event


def refusal(response: httpx2.Response) -> ServerError:
    try:
        problem = _Problem.model_validate_json(response.content)
    except ValidationError:
        problem = _Problem()
    if response.status_code == 401:
        return TokenRefused(f"The server refused access: {problem.detail or 'the access token is not valid.'}")
    said = problem.detail or f"The server answered with status {response.status_code}."
    if response.status_code in _BUSY:
        return ServerUnreachable(said)
    return RequestRefused(said, problem=problem.code, status=response.status_code)


def path_to(*parts: str) -> str:
    return "/".join(["/api", *(quote(each, safe="@") for each in parts)])


def those_given(**fields: Any) -> dict[str, Any]:
    """Returns the arguments that were given: the server knows the defaults of the others."""
    return {name: value for name, value in fields.items() if value is not None}


def keyed(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def iso(at: date | None) -> str | None:
    return None if at is None else at.isoformat()


def _checked(url: str) -> str:
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InvalidInput(f"{url!r} is not a server address. Use something like http://127.0.0.1:8420.") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(f"{url!r} is not a server address. Use something like http://127.0.0.1:8420.")
    return url.rstrip("/")
