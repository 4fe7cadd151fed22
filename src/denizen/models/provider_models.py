"""Which models a provider offers for a key: asked of the provider itself, and remembered for a while.

The list that comes with pydantic-ai is older than what providers offer, and does not know what a key may use.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import httpx2

from denizen.clock import SECOND, Clock
from denizen.errors import DenizenError
from denizen.models.catalog import Models
from denizen.models.providers import HOSTED, USUAL_MODELS

PATIENCE_SECONDS: Final = 3.0
"""How long a provider may take: somebody waits for the list."""
REMEMBERED_SECONDS: Final = 600
FAILURE_SECONDS: Final = 60
"""After so long a provider that did not answer is asked again."""
MOST_BYTES: Final = 4 * 1024 * 1024
MOST_MODELS: Final = 500
MOST_REMEMBERED: Final = 200
ASKED: Final = (*HOSTED, "compatible")
"""The providers that can be asked: `GET /models`, as OpenAI and Anthropic have it."""
_ANTHROPIC_VERSION: Final = "2023-06-01"
_NOT_FOR_TALKING: Final = re.compile(
    r"embed|rerank|whisper|\btts|-tts|dall-e|moderation|image|audio|realtime|transcribe|sora|babbage|davinci|guard|ocr",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")


@dataclass(slots=True)
class _Answer:
    names: tuple[str, ...]
    until: int


@dataclass(slots=True)
class OfferedModels:
    """What providers have answered in this process, by provider, address and key."""

    catalog: Models
    clock: Clock
    _known: dict[str, _Answer] = field(default_factory=dict[str, _Answer])
    _asking: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])

    async def names(self, provider: str, key: str | None) -> tuple[str, ...]:
        """The models of this provider for this key (None: the server's own), the useful ones first.

        Empty if the provider did not answer, or cannot be asked: then what is known has to do.
        """
        if provider not in ASKED:
            return ()
        address = self.catalog.addresses.get(provider, "")
        secret = hashlib.sha256((key or "").encode("utf-8", "surrogatepass")).hexdigest()
        of = f"{provider} {address} {secret}"
        # Several pages ask at the same time: the first asks the provider, the others wait.
        async with self._asking.setdefault(of, asyncio.Lock()):
            known = self._known.get(of)
            if known is None or known.until <= self.clock.now():
                found = await self._ask(provider, key)
                seconds = REMEMBERED_SECONDS if found else FAILURE_SECONDS
                known = _Answer(found, self.clock.now() + seconds * SECOND)
                self._remember(of, known)
        return known.names

    def _remember(self, of: str, answer: _Answer) -> None:
        self._known.pop(of, None)
        self._known[of] = answer
        while len(self._known) > MOST_REMEMBERED:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._asking.pop(oldest, None)

    async def _ask(self, provider: str, key: str | None) -> tuple[str, ...]:
        try:
            async with self.catalog.tried(f"{provider}:models", key, None) as model:
                client: Any = getattr(model, "client", None)
                secret = key or str(getattr(client, "api_key", "") or "")
                url = f"{str(model.base_url or '').rstrip('/')}/models"
            listed = await _fetch(provider, _with_version(provider, url), secret)
        except (DenizenError, httpx2.HTTPError, httpx2.InvalidURL, ValueError, TimeoutError):
            return ()
        return best_first(provider, listed)


def _with_version(provider: str, url: str) -> str:
    if provider != "anthropic":
        return url
    return url if "/v1/" in url else f"{url.removesuffix('/models')}/v1/models"


async def _fetch(provider: str, url: str, secret: str) -> list[str]:
    """The names in the provider's answer, at most so many."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    params: dict[str, Any] = {}
    if provider == "anthropic":
        headers = {"x-api-key": secret, "anthropic-version": _ANTHROPIC_VERSION}
        params = {"limit": MOST_MODELS}
    body = bytearray()
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        httpx2.AsyncClient(timeout=PATIENCE_SECONDS) as client,
        client.stream("GET", url, headers=headers, params=params) as answer,
    ):
        answer.raise_for_status()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise ValueError("the list is too long")
    return names_in(await asyncio.to_thread(json.loads, bytes(body)))


def names_in(told: object) -> list[str]:
    """The names of models in an answer: `{"data": [{"id": "gpt-5"}, …]}`, or a list of such."""
    data: object = cast("dict[str, object]", told).get("data") if isinstance(told, dict) else told
    if not isinstance(data, list):
        raise ValueError("it is not a list of models")
    found = [cast("dict[str, object]", each).get("id") for each in cast("list[object]", data) if isinstance(each, dict)]
    names = [each for each in found if isinstance(each, str) and _NAME.fullmatch(each)]
    return [each for each in names if not _NOT_FOR_TALKING.search(each)][:MOST_MODELS]


def best_first(provider: str, names: Sequence[str]) -> tuple[str, ...]:
    """These models as agents name them: those that most people look for first, then the others by name."""
    usual = USUAL_MODELS.get(provider, ())
    offered = {f"{provider}:{each}" for each in names}
    return (*(each for each in usual if each in offered), *sorted(offered - set(usual)))
