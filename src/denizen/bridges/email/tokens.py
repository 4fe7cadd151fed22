"""Access tokens with which a bridge signs in to mail servers instead of a password (XOAUTH2), made anew in time.

With a refresh token the bridge reads the mailbox of who signed in (Google); without one it signs in as an application
that an administrator has let into the mailbox (Microsoft: client credentials).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from denizen.bridges.email.kind import EmailSettings
from denizen.bridges.http_service import HttpService, ServiceError, as_seconds
from denizen.clock import SECOND, Clock

if TYPE_CHECKING:
    from denizen.tools.outbound import Outbound

EARLY_SECONDS: Final = 120.0
"""So long before a token expires, another one is made."""
SHORTEST_SECONDS: Final = 60.0


class AccessTokens:
    """The access token of one mailbox."""

    def __init__(self, settings: EmailSettings, clock: Clock, outbound: Outbound) -> None:
        self._settings, self._clock = settings, clock
        self._service = HttpService("The sign-in server", outbound.client(settings.allow_private))
        self._making = asyncio.Lock()
        self._token, self._until = "", 0

    async def get(self, *, refused: str = "") -> str:
        """A token that is not the one that was refused. Raises `ServiceError`."""
        async with self._making:
            if not self._token or self._token == refused or self._clock.now() >= self._until:
                self._token, seconds = await self._made()
                self._until = self._clock.now() + int(max(seconds - EARLY_SECONDS, SHORTEST_SECONDS) * SECOND)
            return self._token

    async def _made(self) -> tuple[str, float]:
        settings = self._settings
        fields = {"client_id": settings.client_id, "client_secret": settings.client_secret, "scope": settings.scope}
        if settings.refresh_token:
            fields |= {"grant_type": "refresh_token", "refresh_token": settings.refresh_token}
        else:
            fields["grant_type"] = "client_credentials"
        answer = await self._service.ask(
            "POST", settings.token_url, data={name: value for name, value in fields.items() if value}
        )
        token = answer.json.get("access_token")
        if answer.is_success and isinstance(token, str) and token:
            return token, as_seconds(answer.json.get("expires_in")) or 3600.0
        if answer.status in (400, 401, 403):
            code = str(answer.json.get("error") or answer.status)[:100]
            why = (
                f"The sign-in server gives no access to the mailbox ({code}). Sign in anew, set the secret, and retry."
            )
            raise ServiceError(why, "revoked", status=answer.status)
        raise ServiceError(f"The sign-in server gave no token ({answer.status}).", retry_seconds=answer.retry_seconds)


def said_with(user: str, token: str) -> str:
    """What is said to the mail server."""
    return f"user={user}\1auth=Bearer {token}\1\1"
