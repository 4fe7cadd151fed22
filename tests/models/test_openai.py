"""Bodies that go past the SDK's transform are the bodies that would have gone through it."""

from __future__ import annotations

import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest
from openai import AsyncOpenAI
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from denizen.models.openai import ChatModel, ResponsesModel, accelerate, text_piece
from denizen.models.request import stream
from tests.models.loopback import Loopback, loopback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pydantic_ai.models import Model

PAIRS = [(OpenAIChatModel, ChatModel), (OpenAIResponsesModel, ResponsesModel)]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [ToolDefinition(name="send_message", description="Say it.", parameters_json_schema=SCHEMA)]
UNLIKE = {"Content-Length", "X-Stainless-Retry-Count"}


def history(turns: int = 3) -> list[ModelMessage]:
    messages: list[ModelMessage] = [ModelRequest([SystemPromptPart("You are Ada. “Ünïcode” \u2028 ☕")])]
    for turn in range(turns):
        call = ToolCallPart("send_message", f'{{"text": "{turn} é\\n\\ud83d\\ude00"}}', f"call_{turn}")
        messages += [
            ModelRequest([UserPromptPart(f"Hello {turn} 😀\x00")], metadata={"cycle": turn}),
            ModelResponse([TextPart("Let me see."), call], provider_name="openai"),
            ModelRequest([ToolReturnPart("send_message", "sent", f"call_{turn}")]),
            ModelResponse([TextPart("Done.", id="msg_a", provider_name="openai")], provider_name="openai"),
        ]
    return [*messages, ModelRequest([UserPromptPart("And now?")])]


def thinking_history() -> list[ModelMessage]:
    thought = ThinkingPart("Hm.", id="rs_1", signature="sig", provider_name="openai")
    reply = ModelResponse([thought, TextPart("Yes.")], provider_name="openai", provider_response_id="resp_0")
    return [*history(1), reply, ModelRequest([UserPromptPart("Sure?")])]


def reasoning_history() -> list[ModelMessage]:
    """Chat Completions puts an empty reasoning field on the last call because an earlier response had one."""
    thought = ThinkingPart("Hm.", id="reasoning_content", provider_name="openai")
    call = ToolCallPart("send_message", "{}", "call_0")
    return [
        *history(1),
        ModelResponse([thought, TextPart("Yes.")], provider_name="openai"),
        ModelRequest([UserPromptPart("Go on.")]),
        ModelResponse([call], provider_name="openai"),
        ModelRequest([ToolReturnPart("send_message", "sent", "call_0")]),
    ]


def seeing_history() -> list[ModelMessage]:
    """A picture in an inbox message, and one that was opened."""
    picture = UserPromptPart(["[picture]", BinaryContent(b"\xff\xd8 a picture", media_type="image/jpeg")])
    return [
        *history(1)[:-1],
        ModelRequest([UserPromptPart("Look!"), picture]),
        ModelResponse([ToolCallPart("read_entry", "{}", "call_9")], provider_name="openai"),
        ModelRequest([ToolReturnPart("read_entry", "shown below", "call_9"), picture]),
    ]


HISTORIES = {
    "long": history(),
    "short": history(0),
    "thinking": thinking_history(),
    "reasoning": reasoning_history(),
    "seeing": seeing_history(),
}


@asynccontextmanager
async def both(plain: Any, fast: Any, name: str = "gpt-5.6") -> AsyncIterator[tuple[Loopback, Model, Model]]:
    async with (
        loopback() as server,
        AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=httpx2.AsyncClient(verify=False)
        ) as first,
        AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=httpx2.AsyncClient(verify=False)
        ) as second,
    ):
        quick = accelerate(plain(name, provider=OpenAIProvider(openai_client=second)))
        assert type(quick) is fast
        yield server, plain(name, provider=OpenAIProvider(openai_client=first)), quick


async def ask(model: Model, messages: list[ModelMessage], settings: Any = None) -> ModelResponse:
    async with stream(model, messages, tools=TOOLS, settings=settings) as answer:
        async for _ in answer:
            pass
        return answer.response


@pytest.mark.parametrize(("plain", "fast"), PAIRS)
@pytest.mark.parametrize(
    "settings",
    [
        None,
        {
            "parallel_tool_calls": True,
            "max_tokens": 100,
            "tool_choice": "required",
            "seed": 3,
            "openai_prompt_cache_key": "ada",
        },
        {"extra_body": {"priority": 1}, "extra_headers": {"X-Denizen": "yes"}},
        {"cache": True},
        {"thinking": "low", "openai_store": False, "openai_send_reasoning_ids": False},
        {"openai_cache_instructions": True},
        {"max_retries": 1},
    ],
    ids=["none", "some", "extra", "cache", "thinking", "instructions", "retries"],
)
@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES)
async def test_the_body_and_the_headers_are_the_same_both_ways(plain, fast, settings, messages):
    async with both(plain, fast) as (server, slow, quick):
        first = await ask(slow, messages, settings)
        second = await ask(quick, messages, settings)
        third = await ask(quick, messages, settings)
    usual, *bypassed = server.received
    for received in bypassed:
        assert received.path == usual.path
        assert received.body == usual.body
        assert {k: v for k, v in received.headers.items() if k not in UNLIKE} == {
            k: v for k, v in usual.headers.items() if k not in UNLIKE
        }
    assert usual.body["stream"] is True
    assert [part.part_kind for part in first.parts] == ["text", "tool-call"]
    assert first.parts == second.parts == third.parts
    assert first.usage == second.usage


@pytest.mark.parametrize(("plain", "fast"), PAIRS)
async def test_a_growing_history_and_changing_settings_give_what_the_parent_gives(plain, fast):
    """What is remembered of one request never shows in another: the settings that change a mapping are respected."""
    messages = thinking_history()
    async with both(plain, fast) as (server, slow, quick):
        for end in range(1, len(messages) + 1):
            for settings in (None, {"openai_send_reasoning_ids": False}, {"openai_store": False}):
                await ask(slow, messages[:end], settings)
                await ask(quick, messages[:end], settings)
    bodies = [received.body for received in server.received]
    assert bodies[0::2] == bodies[1::2]


@pytest.mark.parametrize(("plain", "fast"), PAIRS)
async def test_a_message_is_mapped_once_and_forgotten_with_the_message(plain, fast, monkeypatch: pytest.MonkeyPatch):
    mapped: list[int] = []
    original = plain._map_messages

    async def counting(self: Any, messages: Sequence[ModelMessage], *args: Any, **kwargs: Any) -> Any:
        mapped.append(len(messages))
        return await original(self, messages, *args, **kwargs)

    monkeypatch.setattr(plain, "_map_messages", counting)
    messages = history()
    async with both(plain, fast) as (_, _slow, quick):
        await ask(quick, messages)
        assert sum(mapped) == len(messages)
        mapped.clear()
        await ask(quick, [*messages, ModelResponse([TextPart("x")]), ModelRequest([UserPromptPart("y")])])
        assert sum(mapped) == 3, "the first message, which may be marked in place, and the two new ones"
        del messages
        gc.collect()
        assert not cast(Any, quick)._mapped._known


def piece(delta: Any, *, choice: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": None, **(choice or {})}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(piece({"content": "Hi"}), id="text"),
        pytest.param(piece({"role": "assistant", "content": ""}), id="role"),
        pytest.param(piece({}, choice={"finish_reason": "stop", "logprobs": None}), id="end"),
        pytest.param(piece({"content": "Hi"}, service_tier="default", obfuscation="xy", usage=None), id="marked"),
    ],
)
def test_a_piece_of_text_is_what_the_sdk_would_make_of_it(data: dict[str, Any]) -> None:
    made, long_way = text_piece(data), construct_type(type_=ChatCompletionChunk, value=data)
    assert made is not None
    assert made == long_way
    assert repr(made) == repr(long_way)
    assert made.model_dump(exclude_unset=True) == data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="nothing"),
        pytest.param(None, id="null"),
        pytest.param(piece({"content": "Hi"}, choices=[]), id="no-choice"),
        pytest.param(piece({"content": 1}), id="a-number"),
        pytest.param(piece({"reasoning_content": "Hm"}), id="thinking"),
        pytest.param(piece({"tool_calls": [{"index": 0}]}), id="a-call"),
        pytest.param(piece({"content": "Hi"}, choice={"logprobs": {"content": []}}), id="probabilities"),
        pytest.param(piece({"content": "Hi"}, usage={"total_tokens": 1}), id="usage"),
        pytest.param(piece({"content": "Hi"}, provider={"name": "x"}), id="of-another"),
    ],
)
def test_whatever_is_more_than_text_goes_the_long_way(data: Any) -> None:
    assert text_piece(data) is None
