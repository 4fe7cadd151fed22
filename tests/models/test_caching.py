"""The provider is told what to keep, on the wire, and the next request begins with the very same bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen import Runtime, forever, scripted
from denizen.agents.registry import Agent
from denizen.ids import AgentId
from denizen.models import caching
from denizen.models.openai import accelerate
from denizen.models.request import stream
from tests.models.loopback import Loopback, claude, loopback
from tests.world import World

ADA = AgentId("ada")


class ToLoopback(httpx2.AsyncHTTPTransport):
    """Whatever address is asked for, the server on loopback answers."""

    def __init__(self, url: str) -> None:
        super().__init__(verify=False)
        self._to = httpx2.URL(url)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(scheme="http", host=self._to.host, port=self._to.port)
        return await super().handle_async_request(request)


@asynccontextmanager
async def gpt(kind: Any, address: str = "https://api.openai.com/v1") -> AsyncIterator[tuple[Loopback, Model]]:
    async with (
        loopback() as server,
        httpx2.AsyncClient(transport=ToLoopback(server.url)) as http,
        AsyncOpenAI(base_url=address, api_key="k", max_retries=0, http_client=http) as client,
    ):
        yield server, accelerate(kind("gpt-5", provider=OpenAIProvider(openai_client=client)))


async def live(model: Model, *texts: str, **settings: Any) -> Agent:
    """An agent hears each of these texts in a cycle of its own, which asks the model twice."""
    async with Runtime(models={"wire": model}) as denizen:
        noor = await denizen.people.create("Noor")
        cycle = {"max_steps": 2, "silent_reply": "ignore", **settings}
        ada = await denizen.agents.create("Ada", model="wire", cycle=cycle)
        home = await denizen.spaces.create("Home", [noor, ada])
        for text in texts:
            await denizen.spaces.post(home, noor, text)
            await denizen.run_until_idle()
        for entry in await denizen.minds.log(ada):
            if entry.request is not None:
                told = json.loads(entry.request)["settings"]
                assert caching.settings(model, ada.id).items() <= told.items()
        return ada


def marks(part: Any) -> int:
    """How many marks there are in a piece of a body."""
    return json.dumps(part).count('"cache_control"')


def unmarked(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: unmarked(value) for key, value in part.items() if key != "cache_control"}
    return [unmarked(each) for each in part] if isinstance(part, list | tuple) else part


def blocks(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Every block of the messages, with who says it."""
    return [(message["role"], block) for message in body["messages"] for block in message["content"]]


async def test_anthropic_is_told_to_keep_tools_self_inbox_and_all_that_lasts() -> None:
    """Four marks at most, and what stands before the last is the beginning of the next request, byte for byte."""
    async with claude() as (server, model):
        server.tool, server.arguments = "read_entry", '{"entry": "cycles"}'
        await live(model, "Good morning!", "And now?", "Good night.")
    bodies = [each.body for each in server.received]
    assert len(bodies) == 6
    for body in bodies:
        assert "cache_control" in body["tools"][-1]
        assert "cache_control" in body["system"][-1]
        assert "cache_control" in blocks(body)[-1][1]
        assert marks(body) <= 4
    assert [marks(body["messages"]) for body in bodies] == [1, 2] * 3
    for body, after in pairwise(bodies):
        for part in ("tools", "system"):
            assert json.dumps(body[part]) == json.dumps(after[part])
        prefix = [json.dumps(unmarked(block)) for block in blocks(body)]
        assert prefix == [json.dumps(unmarked(block)) for block in blocks(after)][: len(prefix)]


async def test_a_mark_stands_before_the_glance_at_the_inbox() -> None:
    """A preview is gone with the next request: whatever was kept with it could not be read again."""
    self, inbox = ModelRequest([SystemPromptPart("You are Ada.")]), ModelRequest([UserPromptPart("[INBOX]")])
    preview = ModelRequest([UserPromptPart("[INBOX PREVIEW]")])
    async with claude() as (server, model):
        asked = [*caching.marked(model, [self, inbox], (1, 1)), preview]
        settings: Any = caching.settings(model, ADA)
        async with stream(model, asked, settings=settings) as answer:
            async for _ in answer:
                pass
    (body,) = (each.body for each in server.received)
    assert [("cache_control" in block, block["text"]) for _, block in blocks(body)] == [
        (True, "[INBOX]"),
        (False, "[INBOX PREVIEW]"),
    ]


@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
async def test_openai_is_given_a_key_for_each_agent(kind: Any) -> None:
    async with gpt(kind) as (server, model):
        server.tool = None
        ada = await live(model, "Good morning!", "And now?")
    bodies = [each.body for each in server.received]
    assert [body["prompt_cache_key"] for body in bodies] == [ada.id] * 2
    first, second = (body.get("messages") or body["input"] for body in bodies)
    assert [json.dumps(each) for each in first] == [json.dumps(each) for each in second][: len(first)]
    assert "cache_control" not in json.dumps(bodies)


OBSERVING = [{"until_step": 0, "reads": True, "tool_choice": "required"}, {"tools": ["send_message"]}]


@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
async def test_openai_is_told_which_tools_a_phase_allows_with_the_list_of_tools_as_it_was(kind: Any) -> None:
    """A call outside the phase cannot be made then, and the prefix stays."""
    async with gpt(kind) as (server, model):
        server.tool, server.arguments = "read_entry", '{"entry": "cycles"}'
        await live(model, "Good morning!", phases=OBSERVING)
    first, second = (each.body for each in server.received)
    assert json.dumps(first["tools"]) == json.dumps(second["tools"])
    allowed = [body["tool_choice"].get("allowed_tools", body["tool_choice"]) for body in (first, second)]
    names = [[(tool.get("function") or tool)["name"] for tool in each["tools"]] for each in allowed]
    assert names == [["read_messages", "read_entry", "recall", "skip"], ["send_message", "skip"]]
    assert [each["mode"] for each in allowed] == ["required", "auto"]


async def test_servers_that_only_speak_openais_language_are_sent_all_tools_in_every_phase() -> None:
    async with gpt(OpenAIChatModel, "http://127.0.0.1:1/v1") as (server, model):
        server.tool, server.arguments = "read_entry", '{"entry": "cycles"}'
        await live(model, "Good morning!", phases=OBSERVING)
    first, second = (each.body for each in server.received)
    assert len(first["tools"]) == len(second["tools"]) > 4
    assert [body["tool_choice"] for body in (first, second)] == ["required", "auto"]


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/v1", "https://openai.com.example/v1"])
async def test_others_that_speak_its_language_are_told_nothing(address: str) -> None:
    """Some of them refuse a request with a field that they do not know."""
    async with gpt(OpenAIChatModel, address) as (server, model):
        server.tool = None
        await live(model, "Good morning!")
    (body,) = (each.body for each in server.received)
    assert "prompt_cache_key" not in body


async def test_other_models_are_sent_the_very_list() -> None:
    messages: list[ModelMessage] = [ModelRequest([UserPromptPart("Hello.")])]
    model = scripted("Hello.")
    assert caching.marked(model, messages, (0,)) is messages
    assert caching.settings(model, ADA) == {}


async def test_what_is_stored_bears_no_marks(small_world: World) -> None:
    """Marks are on the way out only: the log, and every later request, is as if there were none."""
    model = forever(lambda _messages, _info: "Done.")
    model._provider_name = "anthropic"
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada", model=model)
    hall = await small_world.space("Hall", noor, ada)
    for text in ("One.", "Two."):
        await small_world.say(noor, text, hall)
        await small_world.run()
    assert sum("CachePoint" in repr(message) for message in model.requests[-1]) in (1, 2)
    assert "CachePoint" not in repr(await small_world.denizen.minds.log(ada))
    assert "CachePoint" not in repr(model.requests[-1][:2])
