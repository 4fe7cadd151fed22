"""Whose key a model is asked with: the server's, an organization's, or the own key of whoever pays."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic_ai.exceptions import UserError
from pydantic_ai.providers import infer_provider, infer_provider_class

from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.errors import InvalidInput, ModelUnknown, SecretUnreadable
from denizen.models.catalog import _KEY_NAMES, Models
from denizen.models.scripted import scripted
from tests.models.loopback import Loopback, loopback
from tests.world import World, open_world

MODEL = "openai-chat:gpt-5"
ASK_FOR_NONE = {"gateway", "azure", "azure-responses", "bedrock-mantle", "github", "system-one", "vllm"}
"""Providers that can do without a key, ask for something else first, or are asked for in another way."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {*_KEY_NAMES.values(), "GEMINI_API_KEY", "DASHSCOPE_API_KEY", "OPENAI_BASE_URL"}:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Loopback]:
    """Where the models of these stories are; it answers with text."""
    async with loopback() as server:
        server.tool = None
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    async with open_world(ready_url, secret_key=new_key()) as world:
        yield world


async def think(world: World, agent: Agent) -> None:
    """The agent has something to think about, and does."""
    await world.denizen.agents.trigger(agent, "Clock", text="It is noon.")
    await world.run()


async def agent_of(world: World, name: str, **more: Any) -> Agent:
    return await world.denizen.agents.create(name, model=MODEL, **more)


def used(server: Loopback) -> list[str]:
    """The keys of the requests, in their order."""
    return [each.headers["Authorization"].removeprefix("Bearer ") for each in server.received]


@pytest.mark.parametrize("provider", sorted(_KEY_NAMES.keys() - ASK_FOR_NONE))
def test_the_variable_is_the_one_that_the_provider_asks_for(provider: str) -> None:
    """As its own error says; where its library is not installed here, nothing can be said."""
    try:
        infer_provider_class(provider)
    except ImportError:
        pytest.skip(f"the library of {provider} is not installed")
    with pytest.raises(UserError, match=_KEY_NAMES[provider]):
        infer_provider(provider)


def test_what_needs_no_key_has_no_name_for_it() -> None:
    models = Models({"openai:mine": scripted("x")})
    for name in ("demo", "openai:mine", "python:ada", "default", "nowhere:model"):
        assert models.key_name(name) is None
    assert models.key_name("openai:gpt-5") == "OPENAI_API_KEY"
    assert (models.key_name("ollama:llama3"), models.needs_key("ollama:llama3")) == ("OLLAMA_API_KEY", False)
    assert (models.key_name("compatible:m"), models.needs_key("compatible:m")) == ("COMPATIBLE_API_KEY", False)
    assert models.key_name("anthropic:claude-sonnet-4-5") == "ANTHROPIC_API_KEY"
    assert models.key_name("gateway/openai:gpt-5") == "PYDANTIC_AI_GATEWAY_API_KEY"


def test_a_model_is_built_once_for_each_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of the server")
    models = Models()
    server, first, second = models.resolve(MODEL), models.resolve(MODEL, "first"), models.resolve(MODEL, "second")
    assert len({id(server), id(first), id(second)}) == 3
    assert models.resolve(MODEL, "first") is first
    assert models.resolve(MODEL) is server
    assert [each.provider.client.api_key for each in (server, first)] == ["of the server", "first"]  # pyright: ignore[reportOptionalMemberAccess]
    assert first.provider.client.max_retries == 0  # pyright: ignore[reportOptionalMemberAccess]
    assert type(first).__name__ == "ChatModel"
    assert "first" not in repr(models._built.keys())


async def test_models_of_one_provider_and_key_share_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had a client of its own, and read the certificates of the machine for it while everybody waited."""
    monkeypatch.setenv("OPENAI_API_KEY", "of the server")
    models = Models()
    first, second = models.resolve("openai-chat:a"), models.resolve("openai-chat:b")
    assert first.provider is second.provider
    assert models.resolve("openai-chat:a", "first").provider is not first.provider
    models.addresses = {"openai": "http://127.0.0.1:1/v1"}
    assert models.resolve("openai-chat:c", "first").provider is not models.resolve("openai-chat:a", "k").provider
    await models.close()
    assert second.provider.client._client.is_closed  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    assert models.resolve("openai-chat:a", "first").provider is not first.provider


def test_a_key_makes_a_model_usable_that_the_server_has_none_for() -> None:
    models = Models()
    with pytest.raises(ModelUnknown, match="OPENAI_API_KEY"):
        models.resolve(MODEL)
    assert models.context_tokens("openai:gpt-4o", "k")
    with pytest.raises(ModelUnknown, match="nowhere:model"):
        models.resolve("nowhere:model", "k")


async def test_each_organization_pays_for_its_own_agents(
    world: World, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of the server")
    home, away, poor = [await world.denizen.organizations.create(name) for name in ("Home", "Away", "Poor")]
    await world.denizen.secrets.set("OPENAI_API_KEY", "of home", organization=home)
    await world.denizen.secrets.set("OPENAI_API_KEY", "of away", organization=away)
    await world.denizen.secrets.set("ANTHROPIC_API_KEY", "of poor", organization=poor)

    for organization in (home, away, poor):
        await think(world, await agent_of(world, "Ada", organization=organization))

    assert used(provider) == ["of home", "of away", "of the server"]


async def test_whoever_pays_pays_with_their_own_key_and_nobody_else_does(
    world: World, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the organization and not the server, even where both could."""
    monkeypatch.setenv("OPENAI_API_KEY", "of the server")
    noor = await world.person("Noor")
    await world.denizen.secrets.set("OPENAI_API_KEY", "of home")
    ada = await agent_of(world, "Ada", pays="Noor")
    assert ada.definition.pays == "@noor"

    await world.denizen.agents.trigger(ada, "Clock", text="It is noon.")
    with pytest.raises(ModelUnknown, match="denizen secrets set OPENAI_API_KEY --person @noor"):
        await world.run()
    assert used(provider) == []

    await world.denizen.secrets.set("OPENAI_API_KEY", "of noor", person=noor)
    await world.run()
    assert used(provider) == ["of noor"]
    with pytest.raises(InvalidInput, match="pays"):
        await agent_of(world, "Bo", pays="not a handle")


async def test_a_changed_key_is_used_when_the_agent_is_loaded_again(world: World, provider: Loopback) -> None:
    await world.person("Noor")
    await world.denizen.secrets.set("OPENAI_API_KEY", "old")
    ada = await agent_of(world, "Ada")
    async with world.denizen.living():
        await think(world, ada)
        await world.denizen.secrets.set("OPENAI_API_KEY", "new")
        await think(world, ada)  # it is still warm
        await world.denizen.agents.edit(ada, instructions="Go on.")
        await think(world, ada)
    assert used(provider) == ["old", "old", "new"]


async def test_a_key_that_cannot_be_opened_ends_no_life_but_its_own_and_loses_nothing(
    ready_url: str, provider: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another does not pay instead; the event waits until the key is back."""
    monkeypatch.setenv("OPENAI_API_KEY", "of the server")
    key = new_key()
    async with open_world(ready_url, secret_key=key) as world:
        await world.person("Noor")
        await world.denizen.secrets.set("OPENAI_API_KEY", "of home")
        ada = await agent_of(world, "Ada")
        await world.denizen.agents.trigger(ada, "Clock", text="It is noon.")
    async with open_world(ready_url, secret_key=new_key()) as world:
        bo = await world.agent("Bo", "Noon, I see.")
        await world.denizen.agents.trigger(bo, "Clock", text="It is noon.")
        with pytest.raises(SecretUnreadable):
            await world.run()
        assert [each.summary for each in await world.cycles(bo)] == ["Noon, I see."]
        assert await world.inbox(ada) == ["It is noon."]
    async with open_world(ready_url, secret_key=key) as world:
        await world.run()
    assert used(provider) == ["of home"]
