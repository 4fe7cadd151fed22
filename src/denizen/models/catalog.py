"""Models by name: those registered here, the built-in `demo`, and any `provider:name` that pydantic-ai knows.

A provider's library is imported when its first model is used, which takes a second or more: call `resolve` before the
event loop matters, or in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from denizen.errors import InvalidInput, ModelKeyMissing, ModelUnknown
from denizen.models import first_byte
from denizen.models.local_servers import COMPATIBLE, SERVERS, provider_for
from denizen.models.location import OLLAMA_URL, is_loopback, is_openai, ollama_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

DEMO: Final = "demo"
OWN: Final = "python:"
"""The prefix of the name of a model that was made for one agent."""
LOCAL: Final = "local:smollm2"

GATEWAYS: Final = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""Hosted providers that can be reached through a gateway, with the environment variable of its address."""
_SAME_PROVIDER: Final = {"openai-chat": "openai", "openai-responses": "openai"}

MOST_MODELS: Final = 256
"""How many models are kept with their connections; keys change."""

_KEY_NAMES: Final = {
    "alibaba": "ALIBABA_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "azure-responses": "AZURE_OPENAI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
    "bedrock-mantle": "AWS_BEARER_TOKEN_BEDROCK",
    "cerebras": "CEREBRAS_API_KEY",
    "cohere": "CO_API_KEY",
    "crusoe": "CRUSOE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "gateway": "PYDANTIC_AI_GATEWAY_API_KEY",
    "github": "GITHUB_API_KEY",
    "github-copilot": "GITHUB_COPILOT_API_KEY",
    "google": "GOOGLE_API_KEY",
    "google-cloud": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
    "heroku": "HEROKU_INFERENCE_KEY",
    "huggingface": "HF_TOKEN",
    "meta": "META_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "moonshotai": "MOONSHOTAI_API_KEY",
    "nebius": "NEBIUS_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "ovhcloud": "OVHCLOUD_API_KEY",
    "sambanova": "SAMBANOVA_API_KEY",
    "system-one": "SYSTEM_ONE_API_KEY",
    "together": "TOGETHER_API_KEY",
    "typesafe": "TYPESAFE_API_KEY",
    "vercel": "VERCEL_AI_GATEWAY_API_KEY",
    "xai": "XAI_API_KEY",
    "zai": "ZAI_API_KEY",
}
"""The environment variables in which pydantic-ai's providers look for their key."""

_OPTIONAL_KEYS: Final = {"ollama": "OLLAMA_API_KEY", **{each.prefix: each.key_variable for each in SERVERS.values()}}
"""The same for servers that most people run without a key."""

_PROVIDERS: Final = {
    "anthropic": "Anthropic",
    "azure": "Azure OpenAI",
    "azure-responses": "Azure OpenAI",
    "bedrock": "Amazon Bedrock",
    "bedrock-mantle": "Amazon Bedrock",
    COMPATIBLE.prefix: COMPATIBLE.title,
    "deepseek": "DeepSeek",
    "github": "GitHub Models",
    "github-copilot": "GitHub Copilot",
    "google": "Google",
    "google-cloud": "Google Cloud",
    "huggingface": "Hugging Face",
    "llamacpp": "llama.cpp",
    "lmstudio": "LM Studio",
    "moonshotai": "Moonshot AI",
    "openai": "OpenAI",
    "openai-chat": "OpenAI",
    "openai-responses": "OpenAI",
    "openrouter": "OpenRouter",
    "ovhcloud": "OVHcloud",
    "sambanova": "SambaNova",
    "vllm": "vLLM",
    "xai": "xAI",
    "zai": "Z.ai",
}
"""The display names of providers, if not their prefix with a capital."""

_MAKERS: Final = ("openai", "anthropic", "google", "mistral", "deepseek", "xai", "cohere")
"""Providers that serve models of their own."""

_PROVIDERS_MODEL: Final = re.compile(
    r"(chatgpt|gpt|claude|gemini|gemma|llama|qwen|mistral|mixtral|deepseek|grok|phi|command|o(?=\d))[-\d.]",
    re.IGNORECASE,
)
"""Prefixes of the names of providers' models."""

_COMPATIBLE_SERVER: Final = {
    "openai_chat_supports_max_completion_tokens": False,
    "openai_supports_strict_tool_definition": False,
}
"""Features that not all servers with OpenAI's API have: some ignore `max_completion_tokens`, some refuse it."""

_KEY_VARIABLE = re.compile(r"Set the `?([A-Z][A-Z0-9_]*_API_KEY)\b")
"""Finds the variable in the library's message about a missing key; the rest of it is for programmers."""
_AFTER_FIRST_SENTENCE = re.compile(r"(?<=\.) .*", re.DOTALL)


class Models:
    """All models that agents here may use, each built once."""

    def __init__(self, registered: Mapping[str, Model] | None = None) -> None:
        self._registered = {name: _accelerated(model) for name, model in (registered or {}).items()}
        self._built: dict[tuple[str, str, str], Model] = {}
        self.ollama_url: str | None = None
        """The address of `ollama:` models; if not set, OLLAMA_BASE_URL, otherwise this machine's usual port."""
        self.addresses: Mapping[str, str] = {}
        """Addresses of servers set by an operator, by the prefix of their models."""

    def register(self, name: str, model: Model) -> None:
        """Register `model` under this name.

        A model of OpenAI's APIs is replaced by one that sends the same and costs less CPU (`denizen.models.openai`).
        """
        self._registered[name] = _accelerated(model)

    def resolve(self, name: str, key: str | None = None) -> Model:
        """Returns the model with this name, with this key or the server's own.

        Raises `ModelUnknown`, saying what to set, if it is not available.
        """
        if name in self._registered:
            return self._registered[name]
        used, address = key if self.key_name(name) is not None else None, self._address(name)
        digest = "" if used is None else hashlib.sha256(used.encode("utf-8", "surrogatepass")).hexdigest()
        known = name, digest, address or ""
        if known not in self._built:
            built = _ours(name) or _build(name, used, address, self._provider_of(*known))
            if len(self._built) >= MOST_MODELS:
                del self._built[next(iter(self._built))]
            self._built[known] = built
        return self._built[known]

    def _provider_of(self, name: str, digest: str, address: str) -> Provider[Any] | None:
        """The provider of another model with the same prefix, key and address: its connections serve for all of them.

        A client of its own would also read the certificates of the machine once more, which takes 25 ms.
        """
        wanted = name.partition(":")[0], digest, address
        same = (built for (of, *rest), built in self._built.items() if (of.partition(":")[0], *rest) == wanted)
        return next((each.provider for each in same), None)

    @asynccontextmanager
    async def tried(self, name: str, key: str | None, address: str | None) -> AsyncGenerator[Model]:
        """Provides the model with this name, key and address inside the block: built for this once, and not kept.

        An empty address is the provider's own.
        """
        if name in self._registered or name in (DEMO, LOCAL):
            yield self.resolve(name)
            return
        model = await asyncio.to_thread(_build, name, key, self._address(name) if address is None else address)
        try:
            yield model
        finally:
            await _close(model)
            await _close_connections(model.provider)

    def _address(self, name: str) -> str | None:
        prefix = name.partition(":")[0]
        prefix = _SAME_PROVIDER.get(prefix, prefix)
        return self.addresses.get(prefix) or (self.ollama_url if prefix == "ollama" else None)

    async def close(self) -> None:
        """Closes the connections of all models. A model that is used again is built again."""
        built = list(self._built.values())
        self._built.clear()
        for model in built:
            await _close(model)
        for provider in {id(model.provider): model.provider for model in built}.values():
            await _close_connections(provider)

    def check_name(self, name: str) -> None:
        """Raises `InvalidInput` for a provider's model without its provider, unless one is registered under that name.

        Any other name may still be registered: that is checked when the agent thinks.
        """
        if ":" in name or name in self._registered or name in ("default", DEMO):
            return
        meant = meant_by(name)
        if not meant and _PROVIDERS_MODEL.match(name) is None:
            return
        advice = f"Did you mean {' or '.join(meant)}?" if meant else "Name it as provider:name, such as openai:gpt-5."
        raise InvalidInput(f"There is no model {name!r}: a provider's model has its provider before it. {advice}")

    def key_name(self, name: str) -> str | None:
        """The usual environment variable for this model's key; None if it takes none."""
        if name in self._registered:
            return None
        provider = name.partition(":")[0].partition("/")[0] if ":" in name else ""
        return _KEY_NAMES.get(provider) or _OPTIONAL_KEYS.get(provider)

    def needs_key(self, name: str) -> bool:
        """Whether this model needs a key. Self-hosted servers do not."""
        return self.key_name(name) is not None and name.partition(":")[0] not in _OPTIONAL_KEYS

    def names(self) -> list[str]:
        """Returns the models that need no key: the built-in one, and those registered by name."""
        return [DEMO, *sorted(name for name in self._registered if name != DEMO and not name.startswith(OWN))]

    def context_tokens(self, name: str, key: str | None = None) -> int | None:
        """Returns the size of its context in tokens, if known."""
        return self.resolve(name, key).context_window


def known_names() -> dict[str, str]:
    """Returns every `provider:name` that pydantic-ai lists for providers with a key, and the variable of that key."""
    found: dict[str, str] = {}
    for name in _names_of_providers():
        key = _KEY_NAMES.get(name.partition(":")[0].partition("/")[0]) if ":" in name else None
        if key is not None:
            found[name] = key
    return found


def meant_by(name: str) -> list[str]:
    """Returns the providers' models that a name without a provider may mean, the makers' own first."""
    known = [each for each in _names_of_providers() if each.partition(":")[2] == name]
    makers = [each for each in known if each.partition(":")[0] in _MAKERS]
    return (makers or known)[:3]


def _names_of_providers() -> tuple[str, ...]:
    from pydantic_ai.models import KnownModelName

    return get_args(KnownModelName.__value__)


def provider_of(name: str) -> str | None:
    """Returns the display name of a model's provider, by the model's name; None if it has none."""
    prefix, colon, _ = name.partition(":")
    if not colon or f"{prefix}:" == OWN or name == LOCAL:
        return None
    prefix = prefix.removeprefix("gateway/")
    return _PROVIDERS.get(prefix, prefix.capitalize())


def keys_of_server() -> frozenset[str]:
    """The key variables that are set in this process: providers use these if no other key is given."""
    return frozenset(name for name in _KEY_NAMES.values() if os.environ.get(name, "").strip())


def _ours(name: str) -> Model | None:
    """Returns a model that comes with Denizen."""
    if name == DEMO:
        from denizen.models.demo.model import demo

        return demo()
    if name == LOCAL:
        from denizen.models.local.model import LocalModel

        return LocalModel()
    return None


async def _close(model: Model) -> None:
    closing: Any = getattr(model, "close", None)
    if closing is not None:
        await closing()


async def _close_connections(provider: Provider[Any] | None) -> None:
    if provider is not None:
        async with provider:
            pass  # The last one to leave closes its connections.


def _build(name: str, key: str | None, address: str | None, provider: Provider[Any] | None = None) -> Model:
    """The model, at that provider or at one that is made for it."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    behind_gateway = False
    try:
        if name.startswith("ollama:"):
            model = infer_model(name, lambda _: provider or _ollama(address, key))
        elif (prefix := name.partition(":")[0]) in SERVERS:
            made_by = partial(provider_for, prefix, key, address)
            model = infer_model(f"openai-chat:{name.partition(':')[2]}", lambda _: provider or made_by())
        elif address and _SAME_PROVIDER.get(prefix, prefix) in GATEWAYS:
            if key is None:
                raise ModelKeyMissing(
                    f"The model {name!r} has a base URL of its own, and no key for it. A key in the environment is not "
                    "sent there. Enter the key under Administration › Models.",
                    model=name,
                )
            model, behind_gateway = infer_model(name, lambda kind: provider or _at_gateway(kind, key, address)), True
        elif provider is not None:
            model = infer_model(name, lambda _: provider)
        else:
            model = infer_model(name) if key is None else infer_model(name, lambda kind: _with_key(kind, key))
    except (UserError, ImportError, ValueError) as error:
        wants_key = isinstance(error, UserError) and "api_key" in str(error).lower()
        raise (ModelKeyMissing if wants_key else ModelUnknown)(_what_to_do(name, error), model=name) from error
    if not behind_gateway:
        _adapt_to_compatible_server(model)
    client: Any = getattr(model.provider, "client", None)
    _leave_retrying_to_us(client)
    first_byte.watch(client)
    return _accelerated(model)


def _with_key(provider: str, key: str) -> Provider[Any]:
    if provider.startswith("gateway/"):
        from pydantic_ai.providers.gateway import gateway_provider  # pyright: ignore[reportUnknownVariableType]

        return gateway_provider(provider.removeprefix("gateway/"), api_key=key)
    from pydantic_ai.providers import infer_provider_class

    made: Any = infer_provider_class(provider)
    return made(api_key=key)


def _at_gateway(provider: str, key: str, address: str) -> Provider[Any]:
    from pydantic_ai.providers import infer_provider_class

    made: Any = infer_provider_class(provider)
    return made(api_key=key, base_url=address)


def _ollama(url: str | None, key: str | None) -> Provider[Any]:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers.ollama import OllamaProvider

    if url is not None:
        # The key in the environment belongs to the address in the environment.
        own = is_loopback(url) or url == ollama_in(os.environ)
        return OllamaProvider(f"{url}/v1", api_key=key or (None if own else "not-needed"))
    try:
        return OllamaProvider(api_key=key)
    except UserError:
        return OllamaProvider(f"{OLLAMA_URL}/v1", api_key=key)


def _adapt_to_compatible_server(model: Model) -> None:
    """Restricts requests to a compatible server, which is not OpenAI's, to what all of them support."""
    if _speaks_openai(model) and model.system in ("openai", "ollama", "vllm") and not is_openai(model.base_url):
        given: Any = vars(model).get("_profile") or {}
        if not callable(given):
            vars(model)["_profile"] = {**_COMPATIBLE_SERVER, **given}
            vars(model).pop("profile", None)


def _speaks_openai(model: Model) -> bool:
    return _is_of_module(model, "pydantic_ai.models.openai")


def _is_of_module(model: Model, module: str) -> bool:
    return any(parent.__module__ == module for parent in type(model).__mro__)


def _accelerated(model: Model) -> Model:
    # Only a model of pydantic-ai's module can be one of these, and then the library is imported already.
    if _is_of_module(model, "pydantic_ai.models.openai"):
        from denizen.models import openai

        return openai.accelerate(model)
    if _is_of_module(model, "pydantic_ai.models.anthropic"):
        from denizen.models import anthropic

        return anthropic.accelerate(model)
    return model


def _leave_retrying_to_us(client: Any) -> None:
    # The SDKs would retry by themselves, unseen, and multiply our attempts.
    if isinstance(getattr(client, "max_retries", None), int):
        client.max_retries = 0


def _what_to_do(name: str, error: Exception) -> str:
    if ":" not in name:
        return f"There is no model {name!r}: register one under that name, or name it as `provider:name`. {error}"
    if (variable := _KEY_VARIABLE.search(str(error))) is not None:
        return (
            f"The model {name!r} needs the API key {variable[1]}. "
            f"Add it under Administration › Keys, or with `denizen secrets set {variable[1]}`."
        )
    return f"The model {name!r} cannot be used. {_AFTER_FIRST_SENTENCE.sub('', str(error))}"
