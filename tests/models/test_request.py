"""Requests against servers on loopback: what is heard, and what a failure becomes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from denizen.errors import (
    ContentRefused,
    DenizenError,
    ModelAnswerUnusable,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    ModelUnsuitable,
    NotFound,
    RequestTooLarge,
    ResponsesApiMissing,
)
from denizen.models.openai import accelerate
from denizen.models.request import ATTEMPTS, _parameters, retry_delay, stream, translate
from denizen.models.scripted import scripted
from tests.models.loopback import Failure, Loopback, claude, loopback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.models import Model

PROVIDERS = ["chat", "responses", "anthropic"]
TOOLS = (ToolDefinition(name="send_message", description="Say it.", parameters_json_schema={"type": "object"}),)
HISTORY: list[ModelMessage] = [
    ModelRequest([SystemPromptPart("You are Ada."), UserPromptPart("Hello.")]),
    ModelResponse([ToolCallPart("send_message", '{"text": "Hi"}', "call_0")]),
    ModelRequest([ToolReturnPart("send_message", "sent", "call_0")]),
    ModelResponse([TextPart("Done.")]),
    ModelRequest([UserPromptPart("And now?")]),
]


@asynccontextmanager
async def serving(provider: str) -> AsyncIterator[tuple[Loopback, Model]]:
    if provider == "anthropic":
        async with claude() as (server, model):
            yield server, model
        return
    async with (
        loopback() as server,
        AsyncOpenAI(
            base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=httpx2.AsyncClient(verify=False)
        ) as client,
    ):
        kind = OpenAIChatModel if provider == "chat" else OpenAIResponsesModel
        yield server, accelerate(kind("gpt-5", provider=OpenAIProvider(openai_client=client)))


async def ask(model: Model, **kwargs: Any) -> ModelResponse:
    async with stream(model, HISTORY, tools=TOOLS, **kwargs) as answer:
        async for _ in answer:
            pass
        return answer.response


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_text_and_a_tool_call_are_heard_and_counted(provider: str):
    async with serving(provider) as (server, model):
        response = await ask(model)
        again = await ask(model, settings={"request_timeout": 30})
    assert response.text == "Good morning."
    [call] = response.tool_calls
    assert call.args_as_dict() == {"space": "kitchen", "text": "Tea? ☕"}
    assert (response.usage.input_tokens, response.usage.cache_read_tokens, response.usage.output_tokens) == (20, 8, 7)
    assert "estimated" not in response.usage.details
    assert (response.state, again.parts) == ("complete", response.parts)
    assert server.received[0].body == server.received[1].body
    assert [tool.get("name") or tool["function"]["name"] for tool in server.received[0].body["tools"]] == [
        "send_message"
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("failure", "expected", "retry_after"),
    [
        (Failure(429, {"Retry-After": "7"}), ModelOverloaded, 7.0),
        (Failure(429), ModelOverloaded, None),
        (Failure(503), ModelOverloaded, None),
        (
            Failure(529, body={"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
            ModelOverloaded,
            None,
        ),
        (Failure(500), ModelAnswerUnusable, None),
        (Failure(502), ModelAnswerUnusable, None),
        (Failure(400), ModelRejected, None),
        (Failure(401), ModelKeyRejected, None),
        (Failure(404, body={"error": {"message": "The model gpt-5 does not exist."}}), ModelUnsuitable, None),
        (Failure(413), RequestTooLarge, None),
        (Failure(cut_after=0), ModelAnswerUnusable, None),
        (Failure(cut_after=4), ModelAnswerUnusable, None),
    ],
    ids=lambda value: str(value.status or f"cut{value.cut_after}") if isinstance(value, Failure) else None,
)
async def test_a_failure_says_what_it_means_and_keeps_its_cause(
    provider: str, failure: Failure, expected: type[ModelError], retry_after: float | None
):
    async with serving(provider) as (server, model):
        server.failure = failure
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert type(caught.value) is expected
    assert caught.value.retry_after == retry_after
    assert caught.value.__cause__ is not None
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"detail": "Not Found"}),
        (404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}),
        (405, {"detail": "Method Not Allowed"}),
    ],
)
async def test_a_server_without_the_responses_api_is_told_with_the_model_to_choose(status: int, body: dict[str, Any]):
    """It was told to check the name of the model, which was right."""
    async with serving("responses") as (server, model):
        server.failure = Failure(status, body=body)
        with pytest.raises(ResponsesApiMissing, match="has no Responses API, choose openai-chat:gpt-5 as") as caught:
            await ask(model)
    assert caught.value.instead == "openai-chat:gpt-5"


async def test_openai_itself_has_the_responses_api():
    async with AsyncOpenAI(api_key="k", base_url="https://api.openai.com/v1") as client:
        model = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=client))
        assert type(translate(ModelHTTPError(404, "gpt-5"), model)) is ModelUnsuitable


async def test_a_server_that_is_not_there_is_unreachable():
    async with serving("chat") as (server, model):
        client = model.provider.client  # pyright: ignore[reportOptionalMemberAccess]
        client.base_url = "http://127.0.0.1:1/v1"
        with pytest.raises(ModelUnreachable, match="cannot be reached"):
            await ask(model)
    assert server.received == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another task"])
async def test_a_cancelled_answer_keeps_what_had_come_and_its_usage_is_estimated(provider: str, elsewhere: bool):
    """Whoever reads the answer sees it end, not fail, even when another task cancels it in the middle of a wait."""
    async with serving(provider) as (server, model), asyncio.TaskGroup() as tasks:
        server.hold_after = 5
        async with stream(model, HISTORY, tools=TOOLS) as answer:
            async for event in answer:
                if event.event_kind != "part_delta":
                    continue
                if elsewhere:
                    tasks.create_task(answer.cancel(), name="cancel")
                else:
                    await answer.cancel()
            response = answer.response
    assert response.state == "interrupted"
    assert "Good morning.".startswith(response.text or "?")
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens > 0
    assert provider == "anthropic" or response.usage.details["estimated"] == 1


async def test_what_the_callers_own_code_raises_passes_untouched():
    with pytest.raises(UserError, match="mine"):
        async with stream(scripted("x"), HISTORY):
            raise UserError("mine")
    with pytest.raises(asyncio.CancelledError):
        async with stream(scripted("x"), HISTORY):
            raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ModelHTTPError(429, "m"), ModelOverloaded),
        (ModelHTTPError(529, "m"), ModelOverloaded),
        (ModelHTTPError(504, "m"), ModelAnswerUnusable),
        (ModelHTTPError(408, "m"), ModelAnswerUnusable),
        (ModelHTTPError(422, "m"), ModelRejected),
        (ModelQuotaExceededError("m", "paid up?"), ModelKeyRejected),
        (ContentFilterError("no"), ContentRefused),
        (UserError("bad settings"), ModelRejected),
        (UnexpectedModelBehavior("half an event"), ModelAnswerUnusable),
        (httpx2.RemoteProtocolError("the peer closed the connection"), ModelAnswerUnusable),
        (httpx2.ReadTimeout("nothing more came"), ModelAnswerUnusable),
        (httpx2.ConnectError("no such host"), ModelUnreachable),
        (httpx2.ConnectTimeout("no such machine"), ModelUnreachable),
        (ConnectionResetError(), ModelUnreachable),
        (TimeoutError(), ModelUnreachable),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_every_kind_of_error_has_its_place_in_the_tree(error: Exception, expected: type[ModelError]):
    assert type(translate(error)) is expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}, ModelUnsuitable),
        (404, {"message": "No endpoints found that support tool use."}, ModelUnsuitable),
        (403, {"message": "Country not supported"}, ModelKeyRejected),
        (402, {"message": "Insufficient credits"}, ModelKeyRejected),
        (400, {"code": "content_policy_violation", "message": "rejected by our safety system"}, ContentRefused),
        (
            400,
            {"code": "invalid_prompt", "message": "flagged as potentially violating our usage policy"},
            ContentRefused,
        ),
        (403, {"message": "Your input was flagged", "metadata": {"reasons": ["violence"]}}, ContentRefused),
        (400, {"message": "prompt is too long: 213462 tokens > 200000 maximum"}, RequestTooLarge),
        (400, {"message": "This model's maximum context length is 8192 tokens."}, RequestTooLarge),
        (400, {"message": "max_tokens: 99999 > 8192, the maximum allowed number of output tokens"}, ModelRejected),
        (400, {"message": "temperature must be at most 1"}, ModelRejected),
    ],
)
def test_what_a_provider_says_tells_why_it_rejects_a_request(status: int, body: Any, expected: type[ModelError]):
    """Before, all of these were one error, tried five times."""
    assert type(translate(ModelHTTPError(status, "m", body=body))) is expected


@pytest.mark.parametrize("provider", ["chat", "anthropic"])
async def test_an_answer_that_the_provider_withheld_is_refused_content(provider: str):
    """A filter that leaves nothing of an answer gives an empty one, which looked like having nothing to say."""
    async with serving(provider) as (server, model):
        server.text, server.tool, server.finish = "", None, "content_filter"
        with pytest.raises(ContentRefused):
            await ask(model)


def test_a_key_that_a_provider_repeats_is_not_told() -> None:
    error = ModelHTTPError(401, "m", body={"message": "Incorrect API key provided: sk-canary0123456789."})
    told = str(translate(error))
    assert "canary" not in told
    assert "Incorrect API key provided" in told


@pytest.mark.parametrize(
    "error", [ModelOverloaded(), NotFound("agent", "ada"), DenizenError("x"), KeyError("bug"), AssertionError()]
)
def test_our_own_errors_and_bugs_stay_what_they_are(error: Exception):
    assert translate(error) is error


def test_waits_grow_and_end():
    waits = [retry_delay(ModelUnreachable(), attempt) for attempt in range(1, ATTEMPTS + 1)]
    assert waits[-1] is None
    known = [wait for wait in waits if wait is not None]
    assert len(known) == ATTEMPTS - 1
    assert known == sorted(known)
    assert 0 < known[0] <= 1


def test_what_will_not_change_is_not_tried_again():
    assert retry_delay(ModelRejected(), 1) is None
    assert retry_delay(ModelUnknown(), 1) is None
    assert retry_delay(ModelError(), 1) is None


def test_the_provider_is_given_the_time_it_asks_for_up_to_a_minute():
    assert 20 <= (retry_delay(ModelOverloaded(retry_after=20), 1) or 0) <= 25
    assert retry_delay(ModelOverloaded(retry_after=3600), 1) == 60


def test_those_who_failed_together_come_back_apart_and_each_always_alike():
    waits = {key: retry_delay(ModelOverloaded(), 1, key=key) for key in map(str, range(100))}
    assert len(set(waits.values())) > 90
    assert waits == {key: retry_delay(ModelOverloaded(), 1, key=key) for key in waits}


def test_the_parameters_of_the_same_tools_are_built_once():
    assert _parameters(TOOLS) is _parameters(list(TOOLS))
    assert _parameters(TOOLS) is not _parameters((ToolDefinition(name="send_message"),))
    for _ in range(1000):
        _parameters([ToolDefinition(name="fresh")])
    assert [tool.name for tool in _parameters(TOOLS).function_tools] == ["send_message"]
