"""Requests to Discord's REST API, within its rate limits."""

from __future__ import annotations

import json
from typing import Any, Final

from denizen.bridges.discord.kind import DiscordSettings
from denizen.bridges.http_service import Answer, HttpService, ServiceError, as_objects, as_seconds
from denizen.bridges.port import Means
from denizen.clock import SECOND

NOT_ACCEPTED: Final = "Discord does not accept the token of the bot. Reset it, and store the new one."
UNKNOWN_MESSAGE, UNKNOWN_EMOJI = 10008, 10014
_MISSING: Final = {50001: "The bot is not in this channel.", 50013: "The bot lacks a permission in this channel."}


class Rest:
    """The REST API, as one bot."""

    def __init__(self, settings: DiscordSettings, means: Means) -> None:
        self._settings, self._clock = settings, means.clock
        self._http = HttpService("Discord", means.outbound.client(settings.allow_private))
        self._free_at: dict[str, int] = {}
        """When the next request of a kind may be made, if the last one said so."""

    async def call(self, method: str, path: str, *, quiet: bool = False, **more: Any) -> Any:
        """The JSON of the answer; None if what it is about is gone and it may be `quiet`. Raises `ServiceError`.

        Limits are for each method and channel, which are the first two parts of the path.
        """
        kind = f"{method} {'/'.join(path.split('/')[:2])}"
        await self._clock.sleep((self._free_at.pop(kind, 0) - self._clock.now()) / SECOND)
        headers = {"Authorization": f"Bot {self._settings.token}"}
        answer = await self._http.ask(method, f"{self._settings.api.rstrip('/')}/{path}", headers=headers, **more)
        if answer.headers.get("x-ratelimit-remaining") == "0":
            wait = as_seconds(answer.headers.get("x-ratelimit-reset-after")) or 0
            self._free_at[kind] = self._clock.now() + int(wait * SECOND)
        if answer.is_success:
            return json.loads(answer.body) if answer.body else None
        error = refusal(answer)
        if quiet and error.code in (str(UNKNOWN_MESSAGE), str(UNKNOWN_EMOJI)):
            return None
        raise error

    async def messages(self, room: str, **wanted: str) -> list[dict[str, Any]]:
        """Messages of a channel, oldest first."""
        found = as_objects(await self.call("GET", f"channels/{room}/messages", params={"limit": "100", **wanted}))
        return sorted(found, key=lambda each: int(each["id"]))

    async def download(self, url: str, at_most: int) -> bytes:
        answer = await self._http.ask("GET", url, at_most=at_most)
        if not answer.is_success:
            raise refusal(answer)
        return answer.body


def refusal(answer: Answer) -> ServiceError:
    """The error that an answer tells. Pure."""
    status, told = answer.status, answer.json
    code = told.get("code")
    if status == 401:
        return ServiceError(NOT_ACCEPTED, "revoked", status=status)
    wait = as_seconds(told.get("retry_after")) or answer.retry_seconds
    why = _MISSING.get(code) if isinstance(code, int) else None
    return ServiceError(
        why or f"Discord refuses this ({str(told.get('message') or f'HTTP {status}')[:200]}).",
        "later" if status == 429 or status >= 500 else "refused",
        status=status,
        code=str(code),
        retry_seconds=wait,
    )
