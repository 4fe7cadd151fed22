"""Where long-term memories are put, and from where they are brought back: here, or where an import path says.

Ours are written with the pass that found them, in one transaction. What others are handed is allowed already, and what
they hand back is checked again: neither policy nor audience is left to them.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast

import structlog

from denizen.errors import SettingsError
from denizen.ids import OrganizationId, SpaceId
from denizen.memory import granting, items, searching
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, Remembered
from denizen.memory.policy import Scope
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
    outside: bool = False
    """Whether the model that found it read text from outside."""


class Sink(Protocol):
    """Takes what is to be remembered elsewhere than in our database, after the pass that found it was kept.

    What a pass found comes again with the next one, so whoever misses a batch has it then.
    """

    async def keep(self, batch: Batch) -> object: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an agent wants to be reminded of."""

    query: str
    owners: tuple[Owner, ...]
    """Whose memories may be looked at, and no others."""
    top_k: Mapping[Scope, int]
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


async def vectors_of(embedder: Embedder | None, texts: Iterable[str], *, asking: bool = False) -> dict[str, bytes]:
    """What each text means; nothing where the embedder fails, which leaves us the words."""
    wanted = list(dict.fromkeys(texts))
    if embedder is None or not wanted:
        return {}
    try:
        return dict(zip(wanted, await embedder.embed(wanted, asking=asking), strict=True))
    except Exception as error:  # noqa: BLE001  whatever a provider raises
        log_line.warning("remembering by words only", error=repr(error))
        return {}


def allowed(tx: Tx, batch: Batch) -> Batch | None:
    """Of the batch, what may be remembered now; None if nothing may. Asked in the transaction that writes it."""
    grant = granting.for_writing(tx, batch.space_id, batch.message_ids)
    shares = [share for share in batch.shares if grant.may_write(share.owner.scope)]
    if not shares:
        return None
    for at, share in enumerate(shares):
        if share.owner.scope == "organization":
            shares[at] = replace(share, candidates=tuple(granting.publishable(tx, grant, share.candidates)))
    if not grant.may_write("conversation"):
        # The whole of it belongs to the conversation.
        batch = replace(batch, summary="", document="")
    return replace(batch, shares=tuple(shares))


def keep_memories(tx: Tx, batch: Batch, vectors: Mapping[str, bytes], embedder: str) -> None:
    """What is in the batch is remembered in Denizen's own database."""
    for share in batch.shares:
        what = [replace(each, vector=vectors.get(each.text)) for each in share.candidates]
        items.remember(tx, share.owner, batch.space_id, what, embedder)
        if share.owner.scope == "conversation":
            items.snapshot(tx, share.owner, batch.space_id, batch.summary, batch.document, outside=batch.outside)


class DatabaseRetriever:
    """What is in Denizen's own database."""

    def __init__(self, db: Database, embedder: Embedder | None = None) -> None:
        self._db = db
        self._embedder = embedder

    async def retrieve(self, wanted: Wanted) -> Sequence[Remembered]:
        vectors = await vectors_of(self._embedder, [wanted.query], asking=True)
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
) -> list[searching.Found]:
    """What these owners' memories hold on the question, the best first. For whoever looks into them."""
    vectors = await vectors_of(embedder, [query], asking=True)
    asked = Asked(query, vectors.get(query), "" if embedder is None else embedder.name)
    return await db.read(_look, asked, owners, limit)


def _look(tx: Tx, asked: Asked, owners: Sequence[str], limit: int) -> list[searching.Found]:
    found = [each for owner in owners for each in searching.search(tx, owner, asked, limit=limit)]
    return sorted(found, key=lambda each: (-each.score, -each.item.number))[:limit]
