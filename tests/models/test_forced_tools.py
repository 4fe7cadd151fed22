"""A model is made to call one tool, on the wire, and is sent the same tools as before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen import scripted
from denizen.models import forced_tools
from denizen.models.openai import accelerate
from denizen.models.request import stream
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.models.loopback import Loopback, claude, loopback

TOOLS = Toolbox(PREBUILT).definitions
NAMES = [each.name for each in TOOLS]


@asynccontextmanager
async def gpt(kind: Any, named: str) -> AsyncIterator[tuple[Loopback, Model]]:
    async with (
        loopback() as server,
        AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=httpx2.AsyncClient(verify=False)
        ) as client,
    ):
        yield server, accelerate(kind(named, provider=OpenAIProvider(openai_client=client)))


async def asked(server: Loopback, model: Model) -> dict[str, Any]:
    """The body of a request that has to be answered with a message."""
    settings: Any = {"max_tokens": 4_000, **forced_tools.settings(model, "send_message")}
    prompt: Any = [ModelRequest(parts=[UserPromptPart("Hello?")])]
    async with stream(model, prompt, tools=TOOLS, settings=settings) as answer:
        async for _ in answer:
            pass
    (received,) = server.received
    return received.body


@pytest.mark.parametrize("settings", [None, {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1_024}}])
async def test_anthropic_is_made_to_call_it_without_thinking(settings: Any) -> None:
    """It refuses a forced tool together with extended thinking."""
    async with claude(settings=settings) as (server, model):
        body = await asked(server, model)
    assert body["tool_choice"]["type"] == "tool"
    assert body["tool_choice"]["name"] == "send_message"
    assert [each["name"] for each in body["tools"]] == NAMES
    assert body.get("thinking", {"type": "disabled"}) == {"type": "disabled"}


async def test_a_model_that_refuses_a_forced_tool_is_asked_without() -> None:
    async with claude("claude-opus-5-5") as (server, model):
        body = await asked(server, model)
    assert body.get("tool_choice", {"type": "auto"})["type"] == "auto"
    assert [each["name"] for each in body["tools"]] == NAMES


async def test_openai_chat_is_made_to_call_it() -> None:
    async with gpt(OpenAIChatModel, "gpt-5") as (server, model):
        body = await asked(server, model)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "send_message"}}
    assert [each["function"]["name"] for each in body["tools"]] == NAMES


async def test_openai_responses_is_made_to_call_it() -> None:
    async with gpt(OpenAIResponsesModel, "gpt-5") as (server, model):
        body = await asked(server, model)
    assert body["tool_choice"] == {"type": "function", "name": "send_message"}
    assert [each["name"] for each in body["tools"]] == NAMES


def test_other_models_are_only_given_the_tool_choice() -> None:
    assert forced_tools.settings(scripted("Hello."), "send_message") == {"tool_choice": ["send_message"]}


async def test_some_tool_is_required_and_a_local_server_stops_after_the_call() -> None:
    """llama.cpp lets a model write empty lines after its call, up to the limit: minutes of them."""
    async with gpt(OpenAIChatModel, "local") as (server, model):
        settings: Any = forced_tools.any_tool(model)
        prompt: Any = [ModelRequest(parts=[UserPromptPart("Tea?")])]
        async with stream(model, prompt, tools=TOOLS, settings=settings) as answer:
            async for _ in answer:
                pass
        body = server.received[0].body
    assert (body["tool_choice"], body["stop"]) == ("required", ["\n\n\n"])
    assert forced_tools.any_tool(scripted()) == {"tool_choice": "required"}
