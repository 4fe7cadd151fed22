"""Vectors follow the passages, whatever stops them, and an embedder can be changed."""

from __future__ import annotations

import pytest
from pydantic_ai.embeddings import Embedder as ProvidersEmbedder
from pydantic_ai.embeddings import TestEmbeddingModel

from denizen.consciousness.recall import embedding
from denizen.consciousness.recall.embedding import Progress, reindex
from denizen.consciousness.recall.passages import VECTORS_IN_A_ROW, forget_cycles
from denizen.models.embedders import ProviderEmbedder
from denizen.storage.database import Tx, statement
from denizen.storage.schema import vectors
from tests.consciousness.recall.lives import an_agent, found, heard, house, live

pytest.importorskip("numpy")


def an_embedder(name: str, dimensions: int = 8) -> ProviderEmbedder:
    """One that Pydantic AI has for tests: every text means the same."""
    return ProviderEmbedder(name, ProvidersEmbedder(TestEmbeddingModel(dimensions=dimensions)))


def _rows(tx: Tx) -> list[tuple[str, int, bytes]]:
    chosen = vectors.select().with_only_columns(vectors.c.embedder, vectors.c.first, vectors.c.codes)
    return [(embedder, first, codes) for embedder, first, codes in tx.all(statement(chosen.order_by(vectors.c.first)))]


async def test_vectors_follow_the_passages(database_url: str) -> None:
    """Rows fill up as life goes on; doing it again does nothing."""
    async with house(database_url) as runtime:
        ada = await an_agent(runtime)
        small = an_embedder("small")
        for first in (1, 21, 41):
            await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(first, first + 20)], first=first)
            assert await reindex(runtime.db, small) == 20
        assert await reindex(runtime.db, small) == 0
        assert await runtime.db.read(embedding.progress, "small") == Progress(60, 60)
        assert [(first, len(codes)) for _, first, codes in await runtime.db.read(_rows)] == [
            (1, 8 * VECTORS_IN_A_ROW),
            (1 + VECTORS_IN_A_ROW, 8 * (60 - VECTORS_IN_A_ROW)),
        ]


async def test_work_that_was_stopped_goes_on_where_it_was(database_url: str) -> None:
    """An embedder that fails in the middle has done what it did; queries use what is there."""

    class Failing(ProviderEmbedder):
        asked = 0

        async def embed(self, texts, *, asking=False):
            self.asked += 1
            if self.asked == 2:
                raise ConnectionError("gone")
            return await super().embed(texts, asking=asking)

    async with house(database_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(80)])
        failing = Failing("small", ProvidersEmbedder(TestEmbeddingModel(dimensions=8)))
        with pytest.raises(ConnectionError):
            await reindex(runtime.db, failing)
        assert await runtime.db.read(embedding.progress, "small") == Progress(VECTORS_IN_A_ROW, 80)
        near = await runtime.db.read(embedding.meaning, ada.id, "small", bytes([1] * 8))
        assert near is not None
        assert len(await found(runtime.db, ada, "number", meaning=near)) == 80
        assert await reindex(runtime.db, failing) == 80 - VECTORS_IN_A_ROW


async def test_another_embedder_begins_anew_and_ends_the_old_one(database_url: str) -> None:
    async with house(database_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(40)])
        await reindex(runtime.db, an_embedder("small"))
        assert await runtime.db.read(embedding.progress, "large") == Progress(0, 40)
        await reindex(runtime.db, an_embedder("large", dimensions=16))
        assert {embedder for embedder, _, _ in await runtime.db.read(_rows)} == {"large"}
        assert await runtime.db.read(embedding.meaning, ada.id, "small", bytes(8)) is None


async def test_what_is_forgotten_means_nothing_any_more(database_url: str) -> None:
    """Its vector is gone, and does not come back from work that had begun before."""
    async with house(database_url) as runtime:
        ada = await an_agent(runtime)
        small = an_embedder("small")
        await live(runtime.db, ada, [[heard("one")], [heard("two")]])
        batch = await runtime.db.read(embedding.next_batch, "small")
        assert batch is not None
        codes = await small.embed(batch.texts)
        await runtime.db.write(forget_cycles, ada.id, [1])
        assert await runtime.db.write(embedding.keep, "small", batch, codes)
        await runtime.db.write(forget_cycles, ada.id, [2])
        assert [codes for _, _, codes in await runtime.db.read(_rows)] == [bytes(16)]
