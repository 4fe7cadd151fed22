"""Requests to a homeserver, as the application service or as one of its users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from denizen.bridges.http_service import ANSWER_BYTES, Answer, HttpService, ServiceError, parsed
from denizen.bridges.matrix.kind import MatrixSettings
from denizen.bridges.port import Means

DEVICE: Final = "DENIZEN"
"""The device of each of our users: the homeserver remembers transaction ids for each device."""
NOT_ACCEPTED: Final = "The homeserver does not accept the application service. Check its registration and tokens."


class Homeserver:
    """The client API of a homeserver."""

    def __init__(self, settings: MatrixSettings, means: Means) -> None:
        self._settings = settings
        self._http = HttpService("The homeserver", means.outbound.client(settings.allow_private))

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
        """The body of the answer. Raises `ServiceError`."""
        asked = dict(params or {})
        if user is not None:
            asked["user_id"] = user
            if device:
                asked["device_id"] = DEVICE
        url = self._settings.homeserver.rstrip("/") + "/_matrix/" + "/".join(quote(each, safe="") for each in path)
        headers = {"Authorization": f"Bearer {self._settings.as_token}"}
        if data is not None:
            headers["Content-Type"] = media_type
        answer = await self._http.ask(
            method, url, params=asked, headers=headers, json=json, content=data, at_most=at_most
        )
        if not answer.is_success:
            raise refusal(answer)
        return answer.body

    async def json(self, method: str, *path: str, **more: Any) -> dict[str, Any]:
        return parsed(await self.ask(method, *path, **more))


def refusal(answer: Answer) -> ServiceError:
    """The error that an answer tells. Pure."""
    status, told = answer.status, answer.json
    code = str(told.get("errcode") or "")
    wait = told.get("retry_after_ms")
    seconds = wait / 1_000 if isinstance(wait, int | float) else None
    if status == 401 or code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_EXCLUSIVE"):
        return ServiceError(NOT_ACCEPTED, "revoked", status=status, code=code)
    text = f"The homeserver refuses this (HTTP {status} {code}).".replace(" )", ")")
    means = "later" if status >= 500 or status in (408, 409, 425, 429) else "refused"
    return ServiceError(text, means, status=status, code=code, retry_seconds=seconds)
