"""Embedders: which there are, and what the local one thinks."""

from __future__ import annotations

import pytest
from pydantic_ai.embeddings import Embedder as ProvidersEmbedder
from pydantic_ai.embeddings import TestEmbeddingModel

from denizen.models import embedders
from denizen.models.embedders import LocalEmbedder, ProviderEmbedder, TextVectors, make_embedder


def test_by_default_there_is_none() -> None:
    assert make_embedder("none") is None
    assert make_embedder("") is None


async def test_any_embedder_of_pydantic_ai_can_be_used() -> None:
    """A vector is a byte for each dimension, as long as the longest allows."""
    embedder = ProviderEmbedder("test:model", ProvidersEmbedder(TestEmbeddingModel(dimensions=4)))
    assert embedder.name == "test:model"
    assert await embedder.embed(["one", "two"]) == [bytes([127] * 4)] * 2
    assert isinstance(make_embedder("openai:text-embedding-3-small"), ProviderEmbedder)


def test_directions_are_kept_in_bytes() -> None:
    assert embedders._coded([0.5, -0.5, 0.25, 0.0]) == bytes([127, 129, 64, 0])
    assert embedders._coded([0.0, 0.0]) == bytes(2)


def signed(vector: bytes) -> list[int]:
    return [code - 256 if code > 127 else code for code in vector]


def nearness(one: bytes, other: bytes) -> float:
    first, second = signed(one), signed(other)
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    return dot / (sum(a * a for a in first) * sum(b * b for b in second)) ** 0.5


async def test_the_local_embedder_knows_what_is_alike() -> None:
    """A puppy is nearer to a dog than a report is, in whatever company they are embedded."""
    pytest.importorskip("onnxruntime")
    embedder = LocalEmbedder()
    try:
        dog, puppy, report = await embedder.embed(["a dog", "My puppy sleeps.", "The report is due. " * 50])
        assert len(dog) == 384
        assert nearness(dog, puppy) > nearness(dog, report) + 0.1
        (alone,) = await embedder.embed(["a dog"])
        assert nearness(alone, dog) > 0.99
    finally:
        await embedder.close()


async def test_the_local_embedder_reads_words_where_they_stand() -> None:
    """Each piece of a word has a state and the whole word's name; a word means what is around it."""
    pytest.importorskip("onnxruntime")
    embedder = LocalEmbedder()
    try:
        texts = ["Unforgettable river bank!", "The bank lends money.", "money", ""]
        shore, lender, money, nothing = await embedder.read(texts)
        assert [each.vector for each in (shore, lender, money, nothing)] == await embedder.embed(texts)
        assert list(dict.fromkeys(shore.words)) == ["Unforgettable", "river", "bank", "!"]
        assert len(shore.states) == 384 * len(shore.words)
        assert (nothing.words, nothing.states) == ((), b"")
        assert nearness(_state(money, "money"), _state(lender, "bank")) > nearness(
            _state(money, "money"), _state(shore, "bank")
        )
    finally:
        await embedder.close()


def _state(reading: TextVectors, word: str) -> bytes:
    at = reading.words.index(word) * 384
    return reading.states[at : at + 384]
