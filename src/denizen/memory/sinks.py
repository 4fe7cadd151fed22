"""Where long-term memories are stored and searched: in our database, or in custom code named by an import path.

Ours are stored in the same transaction as the pass that found them. Custom code only receives memories that are
allowed, and what it returns is checked again: it decides neither policy nor audience.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast

from denizen.errors import SettingsError
from denizen.ids import OrganizationId, SpaceId
from denizen.memory import items, permissions, searching
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, MemoryItem
from denizen.memory.policy import Scope
from denizen.memory.searching import MemoryQuestion
from denizen.models.embedders import Embedder
from denizen.storage.database import Database, Tx
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Share:
    """What one owner is to remember."""

    owner: Owner
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class PassMemories:
    """The memories of one pass over a conversation."""

    organization_id: OrganizationId
    space_id: SpaceId
    message_ids: tuple[str, ...]
    """The messages that the pass covers; their authors decide what is allowed."""
    summary: str
    document: str
    """The whole memory document, as JSON."""
    shares: tuple[Share, ...]
    outside: bool = False
    """Whether the model read text from outside."""
    model: str = ""
    """The model that wrote them."""


class Sink(Protocol):
    """Stores memories elsewhere than in our database, after the pass was stored.

    Later passes repeat what is still known, so a sink that misses a batch receives it with the next.
    """

    async def keep(self, batch: PassMemories) -> object: ...


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A query of an agent for memories."""

    query: str
    owners: tuple[Owner, ...]
    """The only owners whose memories may be searched."""
    top_k: Mapping[Scope, int]
    """The most results, by scope."""


class Retriever(Protocol):
    """Searches memories, best first."""

    async def retrieve(self, wanted: MemoryQuery) -> Sequence[MemoryItem]: ...


RETRIEVAL_SECONDS: Final = 10
"""How long a cycle waits for the retriever."""


async def retrieved(retriever: Retriever, wanted: MemoryQuery, **whose: str) -> list[MemoryItem]:
    """Searches with this retriever; returns nothing if it fails or takes too long."""
    try:
        async with asyncio.timeout(RETRIEVAL_SECONDS):
            found = await retriever.retrieve(wanted)
    except Exception as error:  # noqa: BLE001  somebody's own retriever, or a database: one thinks without
        log_line.warning("nothing remembered", error=repr(error), **whose)
        return []
    allowed = {each.key for each in wanted.owners}
    return [each for each in found if each.owner in allowed]


async def vectors_of(embedder: Embedder | None, texts: Iterable[str], *, asking: bool = False) -> dict[str, bytes]:
    """Returns the vector of each text; nothing if the embedder fails, which leaves the search by words."""
    wanted = list(dict.fromkeys(texts))
    if embedder is None or not wanted:
        return {}
    try:
        return dict(zip(wanted, await embedder.embed(wanted, asking=asking), strict=True))
    except Exception as error:  # noqa: BLE001  whatever a provider raises
        log_line.warning("remembering by words only", error=repr(error))
        return {}


def allowed(tx: Tx, batch: PassMemories) -> PassMemories | None:
    """Returns what of the batch may be remembered now; None if nothing. Checked in the transaction that writes it."""
    grant = permissions.for_writing(tx, batch.space_id, batch.message_ids)
    shares = [share for share in batch.shares if grant.may_write(share.owner.scope)]
    if not shares:
        return None
    for at, share in enumerate(shares):
        if share.owner.scope == "organization":
            shares[at] = replace(share, candidates=tuple(permissions.publishable(tx, grant, share.candidates)))
    if not grant.may_write("conversation"):
        # The whole document belongs to the conversation.
        batch = replace(batch, summary="", document="")
    return replace(batch, shares=tuple(shares))


def keep_memories(tx: Tx, batch: PassMemories, vectors: Mapping[str, bytes], embedder: str) -> None:
    """Stores the batch in our database."""
    for share in batch.shares:
        what = [replace(each, vector=vectors.get(each.text)) for each in share.candidates]
        items.remember(tx, share.owner, batch.space_id, what, embedder, batch.model)
        if share.owner.scope == "conversation":
            items.snapshot(tx, share.owner, batch.space_id, batch.summary, batch.document, outside=batch.outside)


class DatabaseRetriever:
    """Searches our database."""

    def __init__(self, db: Database, embedder: Embedder | None = None) -> None:
        self._db = db
        self._embedder = embedder

    async def retrieve(self, wanted: MemoryQuery) -> Sequence[MemoryItem]:
        vectors = await vectors_of(self._embedder, [wanted.query], asking=True)
        name = "" if self._embedder is None else self._embedder.name
        return await self._db.read(_retrieve, wanted, MemoryQuestion(wanted.query, vectors.get(wanted.query), name))


def _retrieve(tx: Tx, wanted: MemoryQuery, asked: MemoryQuestion) -> list[MemoryItem]:
    found: list[MemoryItem] = []
    for owner in wanted.owners:
        most = wanted.top_k.get(owner.scope, 0)
        found += [each.item for each in searching.search(tx, owner.key, asked, limit=most)] if most > 0 else []
    return found


Make = Callable[[Database, Embedder | None], Any]
"""A function named by an import path: called with the database and the embedder, it returns a sink or a retriever."""


def load(place: str, what: str, method: str) -> Make:
    """Imports `module:name`. Raises `SettingsError` if it does not exist."""
    module, separator, name = place.partition(":")
    if not separator:
        raise SettingsError(f"{what}: {place!r} is not an import path. Write module:name, such as acme.memory:Sink.")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"{what}: {place} cannot be loaded: {type(error).__name__}: {error}.") from error
    if not callable(found) or (isinstance(found, type) and not hasattr(found, method)):
        raise SettingsError(f"{what}: {place} has no method {method!r}.")
    return cast("Make", found)


async def look(
    db: Database, embedder: Embedder | None, query: str, owners: Sequence[str], limit: int
) -> list[searching.FoundMemory]:
    """Searches these owners' memories for people, best first."""
    vectors = await vectors_of(embedder, [query], asking=True)
    asked = MemoryQuestion(query, vectors.get(query), "" if embedder is None else embedder.name)
    return await db.read(_look, asked, owners, limit)


def _look(tx: Tx, asked: MemoryQuestion, owners: Sequence[str], limit: int) -> list[searching.FoundMemory]:
    found = [each for owner in owners for each in searching.search(tx, owner, asked, limit=limit)]
    return sorted(found, key=lambda each: (-each.score, -each.item.number))[:limit]
