"""Detects that a provider has begun to answer, by the first byte of its response.

The providers' libraries pass on only what becomes part of an answer, not pings, comments and hidden thinking. So the
first byte is detected below them, in the HTTP client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpx2

Heard = Callable[[], None]

_LISTENER: ContextVar[Heard | None] = ContextVar("denizen_model_arrival", default=None)
_CLIENT: Final = "_client"
"""The attribute in which the SDKs of OpenAI and Anthropic keep their HTTP client."""


@contextmanager
def told_of_first_byte(heard: Heard | None) -> Generator[None]:
    """Calls `heard` when the response to a request sent inside the block begins to arrive."""
    token = _LISTENER.set(heard)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def watch(sdk_client: Any) -> None:
    """Makes the HTTP client of an SDK report first bytes; other clients are left alone."""
    http: Any = getattr(sdk_client, _CLIENT, None)
    if isinstance(http, httpx2.AsyncClient) and _listen not in http.event_hooks["response"]:
        http.event_hooks["response"].append(_listen)


async def _listen(response: Any) -> None:
    heard = _LISTENER.get()
    if heard is not None and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Noted(response.stream, heard)


class _Noted(httpx2.AsyncByteStream):
    """A body that reports its first byte."""

    def __init__(self, body: httpx2.AsyncByteStream, heard: Heard) -> None:
        self._body = body
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._heard()
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()
