"""Vectors follow the passages, whatever stops them, and so do those of their words; an embedder can be changed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai.embeddings import Embedder as ProvidersEmbedder
from pydantic_ai.embeddings import TestEmbeddingModel

from denizen.consciousness.recall import embedding, wording
from denizen.consciousness.recall.embedding import Progress, QuestionVectors, ask, reindex
from denizen.consciousness.recall.passages import VECTORS_IN_A_ROW, forget_cycles
from denizen.models.embedders import ProviderEmbedder, TextVectors
from denizen.storage.database import Tx, statement
from denizen.storage.schema import vectors, wordings
from tests.consciousness.recall.lives import an_agent, found, heard, house, live, texts


def an_embedder(name: str, dimensions: int = 8) -> ProviderEmbedder:
    """One that Pydantic AI has for tests: every text means the same."""
    return ProviderEmbedder(name, ProvidersEmbedder(TestEmbeddingModel(dimensions=dimensions)))


def _rows(tx: Tx) -> list[tuple[str, int, bytes]]:
    chosen = vectors.select().with_only_columns(vectors.c.embedder, vectors.c.first, vectors.c.codes)
    return [(embedder, first, codes) for embedder, first, codes in tx.all(statement(chosen.order_by(vectors.c.first)))]


async def test_vectors_follow_the_passages(ready_url: str) -> None:
    """Rows fill up as life goes on; doing it again does nothing."""
    async with house(ready_url) as runtime:
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


async def test_work_that_was_stopped_goes_on_where_it_was(ready_url: str) -> None:
    """An embedder that fails in the middle has done what it did; queries use what is there."""

    class Failing(ProviderEmbedder):
        asked = 0

        async def embed(self, texts, *, asking=False):
            self.asked += 1
            if self.asked == 2:
                raise ConnectionError("gone")
            return await super().embed(texts, asking=asking)

    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(80)])
        failing = Failing("small", ProvidersEmbedder(TestEmbeddingModel(dimensions=8)))
        with pytest.raises(ConnectionError):
            await reindex(runtime.db, failing)
        assert await runtime.db.read(embedding.progress, "small") == Progress(VECTORS_IN_A_ROW, 80)
        near = await runtime.db.read(embedding.meaning, ada.id, "small", QuestionVectors(bytes([1] * 8)))
        assert near is not None
        assert len(await found(runtime.db, ada, "number", meaning=near)) == 80
        assert await reindex(runtime.db, failing) == 80 - VECTORS_IN_A_ROW


async def test_another_embedder_begins_anew_and_ends_the_old_one(ready_url: str) -> None:
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(40)])
        await reindex(runtime.db, an_embedder("small"))
        assert await runtime.db.read(embedding.progress, "large") == Progress(0, 40)
        await reindex(runtime.db, an_embedder("large", dimensions=16))
        assert {embedder for embedder, _, _ in await runtime.db.read(_rows)} == {"large"}
        assert await runtime.db.read(embedding.meaning, ada.id, "small", QuestionVectors(bytes(8))) is None


async def test_what_is_forgotten_means_nothing_any_more(ready_url: str) -> None:
    """Its vector is gone, and does not come back from work that had begun before."""
    async with house(ready_url) as runtime:
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


# Words


class Spelling:
    """An embedder to which a word means what its first two letters say, and all texts mean the same."""

    name = "spelling"

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [each.vector for each in await self.read(texts, asking=asking)]

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[TextVectors]:
        del asking
        return [_spelled(text.replace(":", " ").replace(".", " ").lower().split()) for text in texts]

    async def close(self) -> None:
        return


def _spelled(words: Sequence[str]) -> TextVectors:
    states = [hashlib.sha256(word[:2].encode()).digest() for word in words]
    return TextVectors(bytes([1] * 32), tuple(words), b"".join(states))


def _worded(tx: Tx) -> list[tuple[str, int, int]]:
    chosen = wordings.select().order_by(wordings.c.number)
    return [(embedder, number, len(codes)) for _, embedder, number, codes in tx.all(statement(chosen))]


async def test_a_passage_is_found_by_words_that_mean_the_same(ready_url: str) -> None:
    """None shares a word with the question; in one of them a word is near to one of the question's."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        said = ["Rain all day.", "The fiddle needs strings.", "Soup again."]
        await live(runtime.db, ada, [[heard(text, minute=at * 1_000)] for at, text in enumerate(said)])
        await reindex(runtime.db, Spelling())
        near = await runtime.db.read(embedding.meaning, ada.id, "spelling", await ask(Spelling(), "fiction"))
        assert await texts(runtime.db, ada, "fiction", meaning=near) == [said[1], said[2], said[0]]


async def test_words_say_nothing_where_none_are_known(ready_url: str) -> None:
    """Vectors that were made before there were any of words find the same in the same order."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"fiddle number {at}", minute=at)] for at in range(50)])
        await _embed_as_before(runtime.db)
        asked = await ask(Spelling(), "fiction number 7")
        near = await runtime.db.read(embedding.meaning, ada.id, "spelling", asked)
        bare = await runtime.db.read(embedding.meaning, ada.id, "spelling", QuestionVectors(asked.vector))
        order = await found(runtime.db, ada, "fiction number 7", meaning=near)
        assert len(order) == 50
        assert order == await found(runtime.db, ada, "fiction number 7", meaning=bare)


async def _embed_as_before(db: Any) -> None:
    """As a version that knows nothing of words does."""
    while (batch := await db.read(embedding.next_batch, "spelling")) is not None:
        await db.write(embedding.keep, "spelling", batch, await Spelling().embed(batch.texts))


async def test_words_are_read_where_only_vectors_were_there(ready_url: str) -> None:
    """All vectors stay meanwhile; how far the words are is told, and what stopped goes on."""

    class Failing(Spelling):
        asked = 0

        async def read(self, texts, *, asking=False):
            self.asked += 1
            if self.asked == 2:
                raise ConnectionError("gone")
            return await super().read(texts, asking=asking)

    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(70)])
        await _embed_as_before(runtime.db)
        before = await runtime.db.read(_rows)
        assert await runtime.db.read(embedding.progress, "spelling", reads=True) == Progress(0, 70)
        failing = Failing()
        with pytest.raises(ConnectionError):
            await reindex(runtime.db, failing)
        assert await runtime.db.read(_rows) == before
        assert await runtime.db.read(embedding.progress, "spelling") == Progress(70, 70)
        assert await runtime.db.read(embedding.progress, "spelling", reads=True) == Progress(VECTORS_IN_A_ROW, 70)
        assert await reindex(runtime.db, failing) == 70 - VECTORS_IN_A_ROW
        assert await runtime.db.read(_rows) == before
        # Noor, number, and the number itself: a bit for each of 32 dimensions.
        assert await runtime.db.read(_worded) == [("spelling", at, 3 * 4) for at in range(1, 71)]
        assert await reindex(runtime.db, failing) == 0


async def test_another_embedder_ends_the_words_of_the_old_one(ready_url: str) -> None:
    """And if the old one comes back, it reads them again."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard(f"number {at}")] for at in range(40)])
        await reindex(runtime.db, Spelling())
        await reindex(runtime.db, an_embedder("small"))
        assert await runtime.db.read(_worded) == []
        assert await reindex(runtime.db, Spelling()) == 40
        assert len(await runtime.db.read(_worded)) == 40


async def test_nothing_remains_of_words_that_are_forgotten(ready_url: str) -> None:
    """Nor does it come back from work that had begun before."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard("one")], [heard("two")], [heard("three")]])
        batch = await runtime.db.read(embedding.next_batch, "spelling", reads=True)
        assert batch is not None
        readings = await Spelling().read(batch.texts)
        await runtime.db.write(forget_cycles, ada.id, [1])
        codes, worded = [each.vector for each in readings], [wording.code(each) for each in readings]
        assert await runtime.db.write(embedding.keep, "spelling", batch, codes, worded)
        assert [number for _, number, _ in await runtime.db.read(_worded)] == [2, 3]
        await runtime.db.write(forget_cycles, ada.id, [2])
        assert [number for _, number, _ in await runtime.db.read(_worded)] == [3]


async def test_meaning_ranks_the_same_on_both_databases(ready_sqlite_url: str, ready_postgres_url: str) -> None:
    """To the last digit, with neighbours, vectors and words."""
    chance = random.Random(5)
    said = [" ".join(chance.choices(["fiddle", "figs", "lamp", "laundry", "soup"], k=4)) for _ in range(150)]
    answers: list[list[tuple[int, float]]] = []
    for url in (ready_sqlite_url, ready_postgres_url):
        async with house(url) as runtime:
            ada = await an_agent(runtime)
            await live(runtime.db, ada, [[heard(text, minute=at)] for at, text in enumerate(said)])
            await reindex(runtime.db, Spelling())
            near = await runtime.db.read(embedding.meaning, ada.id, "spelling", await ask(Spelling(), "fish and lamp"))
            results = await found(runtime.db, ada, "fish and lamp", meaning=near)
            answers.append([(each.number, each.score) for each in results])
    assert len(answers[0]) == 150
    assert answers[0] == answers[1]
