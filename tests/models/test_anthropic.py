"""Bodies whose messages the SDK does not copy are the bodies that it would have copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from denizen.models import caching
from denizen.models.catalog import Models
from tests.models.loopback import claude
from tests.models.test_openai import UNLIKE, ask, history, seeing_history

if TYPE_CHECKING:
    from pydantic_ai.models import Model


def thinking_history() -> list[ModelMessage]:
    thought = ThinkingPart("Hm.", signature="sig", provider_name="anthropic")
    reply = ModelResponse([thought, TextPart("Yes.")], provider_name="anthropic")
    return [*history(1), reply, ModelRequest([UserPromptPart("Sure?")])]


def calling_history() -> list[ModelMessage]:
    """Calls with nested arguments, a result that is data and one that failed."""
    calls = [
        ToolCallPart("look", {"at": {"x": [1, 2.5, None, True, {"deep": "é"}]}}, "call_a"),
        ToolCallPart("look", "{}", "call_b"),
    ]
    results = [
        ToolReturnPart("look", {"seen": ["a", 1]}, "call_a"),
        ToolReturnPart("look", "It broke.", "call_b", outcome="failed"),
    ]
    return [*history(1), ModelResponse([*calls]), ModelRequest([*results])]


HISTORIES = {
    "long": history(),
    "short": history(0),
    "thinking": thinking_history(),
    "seeing": seeing_history(),
    "calling": calling_history(),
}
SETTINGS = {
    "none": None,
    "some": {"max_tokens": 100, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0.3},
    "cache": {"anthropic_cache_tool_definitions": True, "anthropic_cache_instructions": True},
    "extra": {"extra_body": {"priority": 1}, "extra_headers": {"X-Denizen": "yes"}},
    "thinking": {"max_tokens": 2_000, "anthropic_thinking": {"type": "enabled", "budget_tokens": 1_024}},
}


def accelerated(model: Model) -> Model:
    return Models({"claude": model}).resolve("claude")


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES)
async def test_the_body_and_the_headers_are_the_same_both_ways(settings: Any, messages: list[ModelMessage]) -> None:
    async with claude() as (server, slow), claude() as (other, quick):
        accelerated(quick)
        for model in (slow, quick):
            await ask(model, messages, settings)
            await ask(model, caching.marked(model, messages, (len(messages) - 1,)), settings)
    for usual, direct in zip(server.received, other.received, strict=True):
        assert (direct.path, direct.body) == (usual.path, usual.body)
        assert list(direct.body) == list(usual.body)
        assert {k: v for k, v in direct.headers.items() if k not in {*UNLIKE, "Host"}} == {
            k: v for k, v in usual.headers.items() if k not in {*UNLIKE, "Host"}
        }
    assert len(server.received) == 2


async def test_only_what_is_not_plain_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    from anthropic import AsyncAnthropic

    copied: list[list[Any]] = []
    original = AsyncAnthropic._copy_and_prepare

    async def noting(self: AsyncAnthropic, options: Any) -> Any:
        copied.append(options.json_data["messages"])
        return await original(self, options)

    monkeypatch.setattr(AsyncAnthropic, "_copy_and_prepare", noting)
    picture = BinaryContent(b"\xff\xd8 a picture", media_type="image/jpeg")
    messages = [*history(2), ModelResponse([TextPart("x")]), ModelRequest([UserPromptPart(["Look!", picture])])]
    async with claude() as (server, model):
        await ask(accelerated(model), messages)
    (odd,) = copied
    assert len(odd) == 1
    assert [block["type"] for block in odd[0]["content"]] == ["text", "image"]
    sent = server.received[0].body["messages"]
    assert len(sent) > 5
    assert sent[-1]["content"][1]["source"]["data"]
