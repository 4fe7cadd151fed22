"""Models by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen.errors import ModelUnknown
from denizen.models.catalog import Models
from denizen.models.openai import ChatModel, ResponsesModel
from denizen.models.scripted import scripted


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_a_registered_model_is_found_by_its_name_and_may_be_replaced():
    first, second = scripted("a"), scripted("b")
    models = Models({"demo": first})
    assert models.resolve("demo") is first
    models.register("demo", second)
    assert models.resolve("demo") is second
    assert models.context_tokens("demo") is None


@pytest.mark.parametrize("of", [OpenAIChatModel, OpenAIResponsesModel])
def test_a_model_object_of_openai_takes_the_fast_path(of: type[OpenAIChatModel | OpenAIResponsesModel]):
    """As one by name does: with the same client, settings and profile."""
    given = of("gpt-5", provider=OpenAIProvider(api_key="none"), settings={"temperature": 0.5})
    models = Models({"first": given})
    models.register("second", given)
    for name in ("first", "second"):
        found = models.resolve(name)
        assert isinstance(found, ChatModel | ResponsesModel)
        assert isinstance(found, of)
        assert (found.model_name, found.client, found.settings) == ("gpt-5", given.client, {"temperature": 0.5})
        assert found.profile == given.profile


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("openai:gpt-5", r"needs the API key OPENAI_API_KEY\. Add it under Administration › Keys"),
        ("anthropic:claude-sonnet-4-5", "or with `denizen secrets set ANTHROPIC_API_KEY`"),
        ("nowhere:model", "Unknown model"),
        ("gpt-5", "`provider:name`"),
    ],
)
def test_what_cannot_be_had_says_what_to_set(name: str, says: str):
    with pytest.raises(ModelUnknown, match=says) as caught:
        Models().resolve(name)
    assert name in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("name", "kind"),
    [("openai:gpt-5", "ResponsesModel"), ("openai-chat:gpt-5", "ChatModel"), ("ollama:x", "OllamaModel")],
)
def test_openai_models_come_back_fast_built_once_and_without_retries_of_their_own(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:1/v1")
    models = Models()
    model = models.resolve(name)
    assert type(model).__name__ == kind
    assert models.resolve(name) is model
    assert model.provider.client.max_retries == 0  # pyright: ignore[reportOptionalMemberAccess]
    assert type(model.provider.client.chat.completions).__name__ == "_Completions"  # pyright: ignore[reportOptionalMemberAccess]


def test_the_context_window_is_known_where_it_is_published(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert (Models().context_tokens("openai:gpt-4o") or 0) >= 100_000
    assert Models().context_tokens("openai:no-such-model") is None


def test_no_providers_library_is_imported_before_its_first_model_is_asked_for():
    program = """
import sys
from denizen.models.catalog import Models
import denizen.models.request, denizen.models.scripted, denizen.models.codec, denizen.models.prices
Models({"demo": denizen.models.scripted.scripted("x")}).resolve("demo")
print(sorted({"openai", "anthropic"} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
