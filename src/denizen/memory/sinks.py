"""Where long-term memories are put, and from where they are brought back: two ports, each with ours as an adapter.

Others are named by import path. What they are handed is allowed already, and what they hand back is checked again:
neither policy nor audience is left to them.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast

import structlog

from denizen.errors import SettingsError
from denizen.ids import OrganizationId, SpaceId
from denizen.memory import granting, items, searching
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, Outcome, Remembered
from denizen.memory.searching import Asked
from denizen.models.embedders import Embedder
from denizen.storage.database import Database, Tx

log_line = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Share:
    """What one owner is to remember."""

    owner: Owner
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What a pass over a conversation leaves to be remembered."""

    organization_id: OrganizationId
    space_id: SpaceId
    message_ids: tuple[str, ...]
    """Those that the pass summed up: by them it is known who spoke."""
    summary: str
    document: str
    """The whole memory, as JSON."""
    shares: tuple[Share, ...]


Kept = Mapping[str, Mapping[Outcome, int]]
"""What became of how many, by owner."""


class Sink(Protocol):
    """Takes what is to be remembered."""

    async def keep(self, batch: Batch) -> Kept: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an agent wants to be reminded of."""

    query: str
    owners: tuple[Owner, ...]
    """Whose memories may be looked at, and no others."""
    top_k: Mapping[str, int]
    """How many at most, by scope."""


class Retriever(Protocol):
    """Brings back what is remembered, the best first."""

    async def retrieve(self, wanted: Wanted) -> Sequence[Remembered]: ...


RETRIEVAL_SECONDS: Final = 10
"""How long whoever wants to think waits for what is remembered."""


async def retrieved(retriever: Retriever, wanted: Wanted, **whose: str) -> list[Remembered]:
    """What is remembered and may be looked at; nothing where the retriever fails, or takes too long."""
    try:
        async with asyncio.timeout(RETRIEVAL_SECONDS):
            found = await retriever.retrieve(wanted)
    except Exception as error:  # noqa: BLE001  somebody's own retriever, or a database: one thinks without
        log_line.warning("nothing remembered", error=repr(error), **whose)
        return []
    allowed = {each.key for each in wanted.owners}
    return [each for each in found if each.owner in allowed]


class DatabaseSink:
    """Memories in Denizen's own database."""

    def __init__(self, db: Database, embedder: Embedder | None = None) -> None:
        self._db = db
        self._embedder = embedder

    async def keep(self, batch: Batch) -> Kept:
        shares = await self._with_vectors(batch.shares)
        name = "" if self._embedder is None else self._embedder.name
        return await self._db.write(keep_memories, replace(batch, shares=shares), name)

    async def _with_vectors(self, shares: Sequence[Share]) -> tuple[Share, ...]:
        texts = list(dict.fromkeys(each.text for share in shares for each in share.candidates))
        vectors = await _vectors(self._embedder, texts)
        return tuple(
            replace(
                share,
                candidates=tuple(replace(each, vector=vectors.get(each.text)) for each in share.candidates),
            )
            for share in shares
        )


async def _vectors(embedder: Embedder | None, texts: Sequence[str], *, asking: bool = False) -> dict[str, bytes]:
    """What each text means; nothing where the embedder fails, which leaves us the words."""
    if embedder is None or not texts:
        return {}
    try:
        return dict(zip(texts, await embedder.embed(texts, asking=asking), strict=True))
    except Exception as error:  # noqa: BLE001  whatever a provider raises
        log_line.warning("remembering by words only", error=repr(error))
        return {}


def keep_memories(tx: Tx, batch: Batch, embedder: str) -> Kept:
    """What is allowed now is remembered: who may have what remembered is asked here, where it is written."""
    grant = granting.for_writing(tx, batch.space_id, batch.message_ids)
    kept: dict[str, Counter[Outcome]] = {}
    for share in batch.shares:
        allowed = grant.candidates(share.owner.scope, share.candidates)
        if allowed is None:
            continue
        kept[share.owner.key] = items.remember(tx, share.owner, batch.space_id, allowed, embedder)
        if share.owner.scope == "conversation":
            items.snapshot(tx, share.owner, batch.space_id, batch.summary, batch.document)
    return kept


class DatabaseRetriever:
    """What is in Denizen's own database."""

    def __init__(self, db: Database, embedder: Embedder | None = None) -> None:
        self._db = db
        self._embedder = embedder

    async def retrieve(self, wanted: Wanted) -> Sequence[Remembered]:
        vectors = await _vectors(self._embedder, [wanted.query], asking=True)
        name = "" if self._embedder is None else self._embedder.name
        return await self._db.read(_retrieve, wanted, Asked(wanted.query, vectors.get(wanted.query), name))


def _retrieve(tx: Tx, wanted: Wanted, asked: Asked) -> list[Remembered]:
    found: list[Remembered] = []
    for owner in wanted.owners:
        most = wanted.top_k.get(owner.scope, 0)
        found += [each.item for each in searching.search(tx, owner.key, asked, limit=most)] if most > 0 else []
    return found


Make = Callable[[Database, Embedder | None], Any]
"""What an import path names: called with the database and the embedder, it gives a sink or a retriever."""


def load(place: str, what: str, method: str) -> Make:
    """What `module:name` names. Raises `SettingsError` where it is not there."""
    module, separator, name = place.partition(":")
    if not separator:
        raise SettingsError(f"{what}: {place!r} is no import path. Write module:name, such as acme.memory:Sink.")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"{what}: {place} cannot be loaded: {type(error).__name__}: {error}.") from error
    if not callable(found) or (isinstance(found, type) and not hasattr(found, method)):
        raise SettingsError(f"{what}: {place} has no method {method!r}.")
    return cast("Make", found)


async def look(
    db: Database, embedder: Embedder | None, query: str, owners: Sequence[str], limit: int
) -> list[searching.Found]:
    """What these owners' memories hold on the question, the best first. For whoever looks into them."""
    vectors = await _vectors(embedder, [query], asking=True)
    asked = Asked(query, vectors.get(query), "" if embedder is None else embedder.name)
    return await db.read(_look, asked, owners, limit)


def _look(tx: Tx, asked: Asked, owners: Sequence[str], limit: int) -> list[searching.Found]:
    found = [each for owner in owners for each in searching.search(tx, owner, asked, limit=limit)]
    return sorted(found, key=lambda each: (-each.score, -each.item.number))[:limit]
