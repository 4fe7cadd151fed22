"""How the size of a model's context becomes known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from denizen.models import context_size, learned
from denizen.models.catalog import Models
from denizen.models.context_size import ContextSize, in_model_list, in_ollama_ps, in_ollama_show
from denizen.models.overflow import context_named_in
from denizen.models.scripted import scripted
from tests.models.loopback import Loopback, loopback


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Loopback]:
    async with loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OLLAMA_BASE_URL", f"{server.url}/v1")
        yield server


@pytest.mark.parametrize(
    ("row", "tokens"),
    [
        pytest.param({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}}, 8_192, id="llama.cpp"),
        pytest.param({"id": "m", "max_model_len": 4096}, 4_096, id="vllm"),
        pytest.param({"id": "m", "loaded_context_length": 4096, "max_context_length": 131072}, 4_096, id="lm-studio"),
        pytest.param({"id": "m", "context_length": 200_000}, 200_000, id="openrouter"),
        pytest.param({"id": "m", "meta": None}, None, id="openai"),
        pytest.param({"id": "m", "max_model_len": True}, None, id="not-a-number"),
        pytest.param({"id": "m", "max_model_len": 0}, None, id="zero"),
    ],
)
def test_a_list_of_models_says_how_large_each_is(row: dict[str, Any], tokens: int | None) -> None:
    assert in_model_list({"data": [{"id": "other", "max_model_len": 999}, row]}, "m") == tokens


def test_a_server_with_one_model_means_that_one_whatever_it_is_called() -> None:
    assert in_model_list({"data": [{"id": "/models/x.gguf", "meta": {"n_ctx": 4096}}]}, "m") == 4_096
    assert in_model_list({"data": [{"id": "x", "max_model_len": 1024}, {"id": "y"}]}, "m") is None
    assert in_model_list("no", "m") is None


def test_ollama_says_how_large_a_model_is() -> None:
    info = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
    assert in_ollama_show({"model_info": info}) == 40_960
    assert in_ollama_show({"model_info": info, "parameters": 'stop "x"\nnum_ctx                        8192'}) == 8_192
    assert in_ollama_show({}) is None
    assert in_ollama_ps({"models": [{"name": "qwen3:8b", "context_length": 4096}]}, "qwen3:8b") == 4_096
    assert in_ollama_ps({"models": [{"name": "llama3.2:latest", "context_length": 4096}]}, "llama3.2") == 4_096
    assert in_ollama_ps({"models": []}, "qwen3:8b") is None


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 8_192),
        ("{'code': 400, 'n_prompt_tokens': 5012, 'n_ctx': 4096}", 4_096),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096),
        ("prompt is too long: 213462 tokens > 200000 maximum", 200_000),
        ("Trying to keep the first 5012 tokens when context the overflows. context length of only 4096 tokens", 4_096),
        ("exceeds the maximum number of tokens allowed (1,048,576).", 1_048_576),
        ("The prompt is too long.", None),
        ("maximum context length is 12 tokens", None),
    ],
)
def test_an_overflow_error_names_the_size(said: str, tokens: int | None) -> None:
    assert context_named_in(said) == tokens


async def test_a_server_is_asked_and_a_setting_wins(server: Loopback) -> None:
    server.models = {"data": [{"id": "mine", "meta": {"n_ctx": 8192}}]}
    models = Models()
    model = models.resolve("openai-chat:mine", "key")
    assert context_size.size_of(model) == ContextSize(None, "unknown")
    assert context_size.size_of(model, contexts={"*": 16_384}).tokens == 16_384
    await context_size.ask_server(model)
    assert context_size.size_of(model, contexts={"*": 16_384}) == ContextSize(8_192, "/v1/models of its server")
    set_for_it = {"openai-chat:mine": 4_096}
    assert context_size.size_of(model, "openai-chat:mine", set_for_it) == ContextSize(4_096, "a setting")
    await models.close()


async def test_an_ollama_is_asked_in_its_own_way(server: Loopback) -> None:
    server.shows = {"model_info": {"qwen3.context_length": 40960}}
    models = Models()
    model = models.resolve("ollama:qwen3:8b")
    await context_size.ask_server(model)
    assert context_size.size_of(model) == ContextSize(40_960, "/api/show of Ollama")
    await models.close()


async def test_what_an_error_said_is_not_replaced_by_what_a_server_says(server: Loopback) -> None:
    server.models = {"data": [{"id": "mine", "max_model_len": 32_768}]}
    models = Models()
    model = models.resolve("openai-chat:mine", "key")
    learned.learn_context(model, 4_096, "an overflow error")
    await context_size.ask_server(model)
    assert context_size.size_of(model) == ContextSize(4_096, "an overflow error")
    await models.close()


async def test_a_server_that_says_nothing_and_a_model_without_one_stay_unknown(server: Loopback) -> None:
    models = Models()
    model = models.resolve("openai-chat:mine", "key")
    await context_size.ask_server(model)
    assert context_size.size_of(model).tokens is None
    without = scripted("x")
    await context_size.ask_server(without)
    assert context_size.size_of(without).tokens is None
    await models.close()
