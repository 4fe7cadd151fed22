"""Sends what is said in a space as signed JSON to an address.

A receiver that remembers the `id` of what it has taken has everything once. Nothing is read by polling: the program on
the other side sends.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import httpx2

from denizen.access.signatures import GENERIC_HEADER, generic_signature
from denizen.bridges.port import Batch, Later, Means, Outcome, Outgoing, OutgoingFile, Refused, Revoked, Sent
from denizen.bridges.webhook.kind import WebhookSettings
from denizen.clock import SECOND
from denizen.errors import AddressRefused

SEND_SECONDS: Final = 20.0
ANSWER_BYTES: Final = 100_000
FILE_BYTES: Final = 8_000_000
"""Larger files are named, and not sent with the message."""


class WebhookAdapter:
    """Sends to one address."""

    def __init__(self, settings: WebhookSettings, means: Means) -> None:
        self._settings = settings
        self._means = means

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:  # noqa: ARG002
        return ()

    async def news(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        return

    async def send(self, what: Outgoing) -> Outcome:
        means, settings = self._means, self._settings
        files = [await self._with_data(each) for each in what.files]
        body = json.dumps(payload(what, files), ensure_ascii=False).encode()
        signature = generic_signature(means.secret or "", means.clock.now() // SECOND, body)
        headers = {"Content-Type": "application/json", GENERIC_HEADER: signature, "Idempotency-Key": what.id}
        try:
            async with asyncio.timeout(SEND_SECONDS):
                client = means.outbound.client(settings.allow_private)
                async with client.stream("POST", settings.url, content=body, headers=headers) as answer:
                    told = b""
                    async for part in answer.aiter_bytes():
                        told += part
                        if len(told) > ANSWER_BYTES:
                            break
                return outcome(answer.status_code, answer.headers.get("retry-after"), told)
        except AddressRefused as error:
            return Revoked(str(error))
        except TimeoutError:
            return Later(f"The address did not answer within {SEND_SECONDS:g} seconds.")
        except httpx2.HTTPError as error:
            return Later(f"The address cannot be reached ({type(error).__name__}).")

    async def _with_data(self, file: OutgoingFile) -> dict[str, object]:
        told: dict[str, object] = {"name": file.name, "media_type": file.media_type, "size": file.size}
        if file.size <= FILE_BYTES:
            told["data"] = base64.b64encode(await self._means.read_file(file.id)).decode()
        return told


def payload(what: Outgoing, files: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The JSON that is sent. Pure."""
    if what.action == "code":
        return {"type": "code", "id": what.id, "account": what.target, "code": what.text, "again": what.again}
    told: dict[str, object] = {"type": _TYPES[what.action], "id": what.id, "room": what.target, "again": what.again}
    if what.action in ("post", "edit"):
        told |= {"text": what.text, "author": {"name": what.author, "kind": what.author_kind}}
    if what.action == "post":
        told |= {"reply_to": what.reply_to, "files": list(files)}
    else:
        told["of"] = what.of
    if what.action in ("react", "unreact"):
        told |= {"emoji": what.emoji, "removed": what.action == "unreact"}
    return told


_TYPES: Final = {"post": "message", "edit": "edit", "delete": "deletion", "react": "reaction", "unreact": "reaction"}


def outcome(status: int, retry_after: str | None, told: bytes) -> Outcome:
    """What an answer means. Pure."""
    if 200 <= status < 300:
        return Sent(_id_in(told))
    if status in (401, 403, 410):
        return Revoked(f"The address refuses the bridge (HTTP {status}).")
    if status == 429 or status == 503:
        seconds = float(retry_after) if retry_after and retry_after.isdecimal() else None
        return Later(f"The address asks to come back later (HTTP {status}).", seconds)
    if 400 <= status < 500 and status not in (408, 409, 425):
        return Refused(f"The address refuses this message (HTTP {status}).")
    return Later(f"The address answers with an error (HTTP {status}).")


def _id_in(told: bytes) -> str | None:
    """The id that the receiver has given to it, if it says so: with it, it can be changed and replied to."""
    try:
        found: Any = json.loads(told)
    except ValueError:
        return None
    id: Any = cast("dict[str, Any]", found).get("id") if isinstance(found, dict) else None
    return id if isinstance(id, str) and 0 < len(id) <= 500 else None
