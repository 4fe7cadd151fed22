"""Models by name: those registered here, the built-in `demo`, and any `provider:name` that pydantic-ai knows.

A provider's library is imported when its first model is asked for, which takes a second or more: call `resolve` before
the event loop matters, or in a thread.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model

from denizen.errors import ModelUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.providers import Provider

DEMO: Final = "demo"
OLLAMA_URL: Final = "http://127.0.0.1:11434"
"""Where an Ollama listens that nobody has configured."""

_AFTER_FIRST_SENTENCE = re.compile(r"(?<=\.) .*", re.DOTALL)


class Models:
    """Every model that agents here may use, each built once."""

    def __init__(self, registered: Mapping[str, Model] | None = None) -> None:
        self._models: dict[str, Model] = dict(registered or {})
        self.ollama_url: str | None = None
        """Where `ollama:` models are; if not told, where OLLAMA_BASE_URL says, else on this machine's usual port."""

    def register(self, name: str, model: Model) -> None:
        """Make `model` the one that `name` stands for from now on."""
        self._models[name] = model

    def resolve(self, name: str) -> Model:
        """The model of that name; raises `ModelUnknown`, saying what to set, if it cannot be had."""
        if name not in self._models:
            self._models[name] = _demo() if name == DEMO else _build(name, self.ollama_url)
        return self._models[name]

    def context_tokens(self, name: str) -> int | None:
        """How many tokens a request to it may hold, where that is known."""
        return self.resolve(name).context_window


def _demo() -> Model:
    from denizen.models.demo.model import demo

    return demo()


def _build(name: str, ollama_url: str | None) -> Model:
    try:
        model = infer_model(name, lambda _: _ollama(ollama_url)) if name.startswith("ollama:") else infer_model(name)
    except (UserError, ImportError, ValueError) as error:
        raise ModelUnknown(_what_to_do(name, error)) from error
    _leave_retrying_to_us(model)
    return _accelerated(model)


def _ollama(url: str | None) -> Provider[Any]:
    from pydantic_ai.providers.ollama import OllamaProvider

    if url is not None:
        return OllamaProvider(f"{url}/v1")
    try:
        return OllamaProvider()
    except UserError:
        return OllamaProvider(f"{OLLAMA_URL}/v1")


def _accelerated(model: Model) -> Model:
    # Only a model of pydantic-ai's OpenAI module can be one of these, and then the library is imported already.
    if not any(parent.__module__ == "pydantic_ai.models.openai" for parent in type(model).__mro__):
        return model
    from denizen.models.openai import accelerate

    return accelerate(model)


def _leave_retrying_to_us(model: Model) -> None:
    # The SDKs would retry on their own, unseen, and multiply our attempts.
    client: Any = getattr(model.provider, "client", None)
    if isinstance(getattr(client, "max_retries", None), int):
        client.max_retries = 0


def _what_to_do(name: str, error: Exception) -> str:
    if ":" not in name:
        return f"There is no model {name!r}: register one under that name, or name it as `provider:name`. {error}"
    return f"The model {name!r} cannot be used. {_AFTER_FIRST_SENTENCE.sub('', str(error))}"
