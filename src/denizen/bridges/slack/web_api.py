"""Requests to Slack's Web API."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from denizen.bridges.http_service import ANSWER_BYTES, Answer, HttpService, ServiceError, as_object, as_objects
from denizen.bridges.port import Means
from denizen.bridges.slack.kind import SlackSettings

PAGE: Final = 200
MOST_PAGES: Final = 20
_REVOKED: Final = (
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "org_login_required",
    "not_allowed_token_type",
    "app_uninstalled",
)
_LATER: Final = (
    "ratelimited",
    "rate_limited",
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
    "ekm_access_denied",
)


class WebApi:
    """The Web API, as one app."""

    def __init__(self, settings: SlackSettings, means: Means) -> None:
        self._settings = settings
        self.scopes = ""
        """What the bot may do, as Slack last told; empty if it did not."""
        self._http = HttpService("Slack", means.outbound.client(settings.allow_private))

    async def call(
        self, method: str, wanted: Mapping[str, Any] | None = None, *, app: bool = False, quiet: Container[str] = ()
    ) -> dict[str, Any]:
        """The answer; an empty one for the errors in `quiet`. Raises `ServiceError`."""
        token = self._settings.app_token if app else self._settings.bot_token
        answer = await self._http.ask(
            "POST",
            f"{self._settings.api.rstrip('/')}/{method}",
            headers={"Authorization": f"Bearer {token}"},
            data={name: each if isinstance(each, str) else json.dumps(each) for name, each in (wanted or {}).items()},
        )
        told = answer.json
        self.scopes = answer.headers.get("x-oauth-scopes", "") if not app else self.scopes
        if answer.is_success and told.get("ok") is True:
            return told
        error = refusal(answer)
        if error.code in quiet:
            return {}
        raise error

    async def pages(self, method: str, wanted: Mapping[str, str], most: int = MOST_PAGES) -> list[dict[str, Any]]:
        """The messages of so many pages, in the order in which Slack returns them."""
        found: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        for _ in range(most):
            told = await self.call(method, {"limit": str(PAGE), **wanted, **after})
            found += as_objects(told.get("messages"))
            after = {"cursor": str(as_object(told.get("response_metadata")).get("next_cursor") or "")}
            if not after["cursor"]:
                break
        return found

    async def download(self, url: str, at_most: int) -> bytes:
        """A file. The token is shown only to Slack."""
        host, own = urlsplit(url), urlsplit(self._settings.api)
        is_slack = host.scheme == "https" and (host.hostname or "").endswith(".slack.com")
        if not is_slack and (host.scheme, host.netloc) != (own.scheme, own.netloc):
            raise ServiceError("The file is not on a server of Slack.", "refused")
        headers = {"Authorization": f"Bearer {self._settings.bot_token}"}
        answer = await self._http.ask("GET", url, headers=headers, at_most=at_most)
        if not answer.is_success:
            raise refusal(answer)
        return answer.body

    async def upload(self, name: str, media_type: str, data: bytes) -> str:
        """Upload a file that is in no channel yet. Returns its id."""
        told = await self.call("files.getUploadURLExternal", {"filename": name, "length": str(len(data))})
        files = {"file": (name, data, media_type)}
        answer = await self._http.ask("POST", str(told.get("upload_url")), files=files, at_most=ANSWER_BYTES)
        if not answer.is_success:
            raise refusal(answer)
        return str(told.get("file_id"))


def refusal(answer: Answer) -> ServiceError:
    """The error that an answer tells. Pure."""
    told = answer.json
    code = str(told.get("error") or "")
    if code in _REVOKED:
        why = f"Slack does not accept the tokens of the app ({code}). Install the app again, and store the new tokens."
        return ServiceError(why, "revoked", status=answer.status, code=code)
    if code == "missing_scope":
        needed = str(told.get("needed") or "another scope")
        why = f"The Slack app lacks the scope {needed}. Add it, and install the app again."
        return ServiceError(why, "refused", status=answer.status, code=code)
    is_later = answer.status == 429 or answer.status >= 500 or code in _LATER or (not code and answer.is_success)
    return ServiceError(
        f"Slack refuses this ({code or f'HTTP {answer.status}'}).",
        "later" if is_later else "refused",
        status=answer.status,
        code=code,
        retry_seconds=answer.retry_seconds,
    )
