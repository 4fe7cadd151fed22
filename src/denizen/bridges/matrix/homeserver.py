"""Requests to a homeserver, as the application service or as one of its users."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote

import httpx2

from denizen.bridges.matrix.kind import MatrixSettings
from denizen.bridges.port import AccessRevoked, Later, Means, NotReadable, Outcome, Refused, Revoked
from denizen.errors import AddressRefused

REQUEST_SECONDS: Final = 30.0
ANSWER_BYTES: Final = 10_000_000
DEVICE: Final = "DENIZEN"
"""The device of each of our users: the homeserver remembers transaction ids for each device."""


class MatrixError(Exception):
    """The homeserver refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, code: str, text: str, retry_seconds: float | None = None) -> None:
        super().__init__(text)
        self.status, self.code, self.retry_seconds = status, code, retry_seconds


class Homeserver:
    """The client API of a homeserver."""

    def __init__(self, settings: MatrixSettings, means: Means) -> None:
        self._settings = settings
        self._client = means.outbound.client(settings.allow_private)

    async def ask(
        self,
        method: str,
        *path: str,
        user: str | None = None,
        device: bool = False,
        params: Mapping[str, str] | None = None,
        json: object = None,
        data: bytes | None = None,
        media_type: str = "application/json",
        at_most: int = ANSWER_BYTES,
    ) -> bytes:
        """The body of the answer. Raises `MatrixError`."""
        asked = dict(params or {})
        if user is not None:
            asked["user_id"] = user
            if device:
                asked["device_id"] = DEVICE
        url = self._settings.homeserver.rstrip("/") + "/_matrix/" + "/".join(quote(each, safe="") for each in path)
        headers = {"Authorization": f"Bearer {self._settings.as_token}"}
        if data is not None:
            headers["Content-Type"] = media_type
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                self._client.stream(method, url, params=asked, headers=headers, json=json, content=data) as answer,
            ):
                body = await _read(answer, at_most)
        except AddressRefused as error:
            raise MatrixError(401, "M_ADDRESS_REFUSED", str(error)) from error
        except TimeoutError as error:
            raise MatrixError(0, "", f"The homeserver did not answer within {REQUEST_SECONDS:g} seconds.") from error
        except httpx2.HTTPError as error:
            raise MatrixError(0, "", f"The homeserver cannot be reached ({type(error).__name__}).") from error
        if not answer.is_success:
            raise refusal(answer.status_code, body)
        return body

    async def json(self, method: str, *path: str, **more: Any) -> dict[str, Any]:
        return parsed(await self.ask(method, *path, **more))


async def _read(answer: httpx2.Response, at_most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > at_most:
            raise MatrixError(413, "M_TOO_LARGE", f"The homeserver's answer has more than {at_most:,} bytes.")
        parts.append(part)
    return b"".join(parts)


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer; an empty one if it is none. Pure."""
    import json

    try:
        found: Any = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def refusal(status: int, body: bytes) -> MatrixError:
    """The error that an answer tells. Pure."""
    told = parsed(body)
    code = str(told.get("errcode") or "")
    wait = told.get("retry_after_ms")
    seconds = wait / 1_000 if isinstance(wait, int | float) else None
    return MatrixError(status, code, f"The homeserver refuses this (HTTP {status} {code}).".replace(" )", ")"), seconds)


def is_revoked(error: MatrixError) -> bool:
    """Whether the homeserver does not accept the application service any more. Pure."""
    return error.status == 401 or error.code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_EXCLUSIVE")


def as_outcome(error: MatrixError) -> Outcome:
    """What an error means for something that was to be sent. Pure."""
    if is_revoked(error):
        return Revoked("The homeserver does not accept the application service. Check its registration and tokens.")
    if error.status == 429 or error.status == 0 or error.status >= 500 or error.status in (408, 409, 425):
        return Later(str(error), error.retry_seconds)
    return Refused(str(error))


def as_unreadable(error: MatrixError) -> NotReadable:
    """What an error means for reading. Pure."""
    if is_revoked(error):
        return AccessRevoked("The homeserver does not accept the application service. Check its registration.")
    return NotReadable(str(error))
