"""HTTP to the service of a bridge: requests with limits, and what an error means for reading and for sending."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import httpx2

from denizen.amounts import human_size
from denizen.bridges.port import AccessRevoked, Later, NotReadable, Outcome, Refused, Revoked
from denizen.errors import AddressRefused

REQUEST_SECONDS: Final = 30.0
ANSWER_BYTES: Final = 10_000_000


class ServiceError(Exception):
    """The service refused a request, or could not be reached (status 0)."""

    def __init__(
        self,
        text: str,
        means: Literal["later", "refused", "revoked"] = "later",
        *,
        status: int = 0,
        code: str = "",
        retry_seconds: float | None = None,
    ) -> None:
        super().__init__(text)
        self.means: Literal["later", "refused", "revoked"] = means
        self.status, self.code, self.retry_seconds = status, code, retry_seconds

    def as_outcome(self) -> Outcome:
        """What it means for something that was to be sent."""
        match self.means:
            case "later":
                return Later(str(self), self.retry_seconds)
            case "refused":
                return Refused(str(self))
            case "revoked":
                return Revoked(str(self))

    def as_unreadable(self) -> NotReadable:
        """What it means for reading."""
        return AccessRevoked(str(self)) if self.means == "revoked" else NotReadable(str(self))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def json(self) -> dict[str, Any]:
        """The JSON object of the answer; an empty one if it is none."""
        return parsed(self.body)

    @property
    def retry_seconds(self) -> float | None:
        """How long the header `Retry-After` asks to wait."""
        return as_seconds(self.headers.get("retry-after"))


class HttpService:
    """Requests to one service. No error holds the address: a token may be in it."""

    def __init__(self, name: str, client: httpx2.AsyncClient) -> None:
        self._name, self._client = name, client

    async def ask(
        self, method: str, url: str, *, seconds: float = REQUEST_SECONDS, at_most: int = ANSWER_BYTES, **more: Any
    ) -> Answer:
        """The answer, whatever its status. Raises `ServiceError` if there is none."""
        try:
            async with asyncio.timeout(seconds), self._client.stream(method, url, **more) as answer:
                parts: list[bytes] = []
                size = 0
                async for part in answer.aiter_bytes():
                    size += len(part)
                    if size > at_most:
                        why = f"The answer of {self._name} is larger than {human_size(at_most)}."
                        raise ServiceError(why, "refused", status=413)
                    parts.append(part)
        except AddressRefused as error:
            raise ServiceError(str(error), "revoked", status=401) from error
        except TimeoutError:
            raise ServiceError(f"{self._name} did not answer within {seconds:g} seconds.") from None
        except httpx2.HTTPError as error:
            raise ServiceError(f"{self._name} cannot be reached ({type(error).__name__}).") from None
        return Answer(answer.status_code, answer.headers, b"".join(parts))


def parsed(body: bytes | str) -> dict[str, Any]:
    """The JSON object in this text; an empty one if there is none. Pure."""
    try:
        return as_object(json.loads(body))
    except ValueError:
        return {}


def as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_objects(value: Any) -> list[dict[str, Any]]:
    return [as_object(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def as_seconds(value: Any) -> float | None:
    """A number of seconds that a service asks for; None if it is none. Pure."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
