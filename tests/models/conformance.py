"""What holds for each API of a model provider, tested against a server on loopback that misbehaves."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

import pytest
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
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from denizen.errors import ContentRefused, ModelError, ModelOverloaded, ModelUnreachable, RequestTooLarge
from denizen.models import learned, request, thinking
from denizen.models.catalog import Models
from denizen.models.pictures import Picture, with_pictures
from tests.models.loopback import Failure, Loopback, loopback

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SEND = ToolDefinition(name="send_message", description="Say it.", parameters_json_schema=SCHEMA)
QUESTION: list[ModelMessage] = [ModelRequest([SystemPromptPart("You are Ada."), UserPromptPart("Hello.")])]
JPEG = b"\xff\xd8 the bytes of a picture"


def chat_body(model: str, **schema: Any) -> dict[str, Any]:
    """The body of a request without thinking, in the form of OpenAI's Chat Completions."""
    function = {"name": "send_message", "description": "Say it.", "parameters": SCHEMA | schema}
    return {
        "model": model,
        "messages": [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hello."}],
        "max_tokens": 500,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": function}],
    }


def text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


class WireConformance:
    """The tests of one API. A subclass says which, and how its requests look."""

    variable: ClassVar[str]
    """The environment variable that names the server."""
    path: ClassVar[str]
    """What the address in that variable ends with."""
    model: ClassVar[str]
    plain: ClassVar[dict[str, Any]]
    """The body of a request without thinking."""
    thinking_model: ClassVar[str]
    thinks: ClassVar[dict[str, Any]]
    """What the body of a request with thinking has besides, for a reply of 4,000 tokens."""
    brief: ClassVar[dict[str, Any]]
    """What the body of a utility call of 900 tokens has."""
    overflow: ClassVar[dict[str, Any]]
    """The error of a server whose context has 4,096 tokens."""

    @pytest.fixture
    async def server(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Loopback]:
        async with loopback() as server:
            monkeypatch.setenv(self.variable, f"{server.url}{self.path}")
            server.tool = None
            yield server

    @asynccontextmanager
    async def resolved(self, name: str | None = None) -> AsyncIterator[Model]:
        models = Models()
        try:
            yield models.resolve(name or self.model, "key-of-loopback")
        finally:
            await models.close()

    async def ask(self, model: Model, *, tools: bool = False, **settings: Any) -> ModelResponse:
        sent = cast(ModelSettings, settings)
        async with request.stream(model, QUESTION, tools=(SEND,) if tools else (), settings=sent) as answer:
            async for _ in answer:
                pass
        return answer.response

    # Requests

    async def test_the_body_of_a_request_is_as_recorded(self, server: Loopback) -> None:
        async with self.resolved() as model:
            await self.ask(model, tools=True, max_tokens=500)
        assert server.received[0].body == self.plain

    async def test_a_picture_goes_with_its_line(self, server: Loopback) -> None:
        """Also when the same message is sent again, and behind the result of a call."""
        line = Picture('"photo.jpg"', 10, 20, "0190c9a2-1111-7222-8333-444455556666")
        stored = ModelRequest([UserPromptPart("Look!"), UserPromptPart(line.line())])
        opened = ModelRequest([ToolReturnPart("read_entry", "below", "call_1"), UserPromptPart(line.line())])
        looking, found = (with_pictures(each, {line.file_id: JPEG}, "image/jpeg") for each in (stored, opened))
        called = ModelResponse([ToolCallPart("read_entry", "{}", "call_1")])
        async with self.resolved() as model:
            for messages in ([QUESTION[0], looking], [QUESTION[0], looking, called, found]):
                async with request.stream(model, messages) as answer:
                    async for _ in answer:
                        pass
        once, twice = (json.dumps(each.body) for each in server.received[-2:])
        sent = base64.b64encode(JPEG).decode()
        assert (once.count(sent), twice.count(sent)) == (1, 2)
        assert (once.count("photo.jpg"), twice.count("photo.jpg")) == (1, 2)

    async def test_thinking_is_asked_for_with_room_for_the_reply(self, server: Loopback) -> None:
        """A panel at its defaults was refused by Anthropic: 4,000 tokens with a thinking budget of 10,000."""
        async with self.resolved(self.thinking_model) as model:
            await self.ask(model, **thinking.settings(model, 4_000, thinking=True))
        body = server.received[0].body
        assert {name: body.get(name) for name in self.thinks} == self.thinks

    async def test_a_utility_call_thinks_little_and_is_cut_above_the_limit_it_is_told(self, server: Loopback) -> None:
        async with self.resolved(self.thinking_model) as model:
            await self.ask(model, **thinking.brief(model, 900))
        body = server.received[0].body
        assert {name: body.get(name) for name in self.brief} == self.brief

    async def test_an_object_is_asked_for_by_the_schema_of_the_provider(self, server: Loopback) -> None:
        server.text = '{"text": "Tea?"}'
        async with self.resolved() as model, request.stream(model, QUESTION, wanted=SEND) as answer:
            async for _ in answer:
                pass
        [call] = answer.response.tool_calls
        assert (call.tool_name, call.args_as_dict()) == ("send_message", {"text": "Tea?"})
        body = server.received[0].body
        assert self.schema_in(body) == SEND.parameters_json_schema["properties"]
        assert not body.get("tools")

    async def test_a_server_that_takes_no_schema_is_asked_for_a_call(self, server: Loopback) -> None:
        def judge(body: dict[str, Any]) -> Failure | None:
            said = "response_format of type json_schema is not supported"
            error = {"message": said, "type": "invalid_request_error", "code": None}
            return Failure(400, body={"error": error}) if self.schema_in(body) is not None else None

        server.judge, server.tool, server.arguments = judge, "send_message", '{"text": "Tea?"}'
        async with self.resolved() as model:
            for _ in range(2):
                async with request.stream(model, QUESTION, wanted=SEND) as answer:
                    async for _event in answer:
                        pass
                assert [call.args_as_dict() for call in answer.response.tool_calls] == [{"text": "Tea?"}]
        assert [self.schema_in(each.body) is None for each in server.received] == [False, True, True]

    def schema_in(self, body: dict[str, Any]) -> Any:
        """The properties of the JSON schema that the answer has to have; None where it need not have one."""
        form = body.get("response_format", {}).get("json_schema") or body.get("text", {}).get("format")
        form = form or body.get("output_config", {}).get("format") or body.get("output_format")
        return None if form is None else form["schema"]["properties"]

    # Responses

    async def test_a_ping_before_the_answer_is_heard(self, server: Loopback) -> None:
        """Comments and hidden thinking are dropped by the provider's library; the clock to the first part ran on."""
        server.pings, server.hold_after_pings = 1, asyncio.Event()
        heard = asyncio.Event()
        async with self.resolved() as model:

            async def ask() -> str | None:
                async with request.stream(model, QUESTION, heard=heard.set) as answer:
                    async for _ in answer:
                        pass
                return answer.response.text

            asking, hearing = asyncio.create_task(ask()), asyncio.create_task(heard.wait())
            await asyncio.wait((asking, hearing), return_when=asyncio.FIRST_COMPLETED)
            assert (heard.is_set(), asking.done()) == (True, False)
            server.hold_after_pings.set()
            assert await asking == "Good morning."

    async def test_a_stream_without_an_end_is_asked_again_and_then_taken(self, server: Loopback) -> None:
        """Once is a connection that broke; twice is a server that never says why it stops."""
        server.ends = False
        async with self.resolved() as model:
            with pytest.raises(ModelUnreachable, match="broke off"):
                await self.ask(model)
            assert (await self.ask(model)).text == "Good morning."
            server.ends = True
            await self.ask(model)
            server.ends = False
            with pytest.raises(ModelUnreachable):
                await self.ask(model)

    async def test_a_call_that_broke_off_is_never_taken(self, server: Loopback) -> None:
        server.ends, server.text = False, ""
        server.tool, server.arguments = "send_message", '{"text": "Hal'
        async with self.resolved() as model:
            for _ in range(3):
                with pytest.raises(ModelUnreachable):
                    await self.ask(model, tools=True)

    async def test_an_answer_that_reached_its_limit_says_so(self, server: Loopback) -> None:
        server.finish = "length"
        async with self.resolved() as model:
            assert (await self.ask(model)).finish_reason == "length"

    async def test_an_answer_that_a_filter_stopped_is_refused_even_where_it_had_begun(self, server: Loopback) -> None:
        server.finish = "content_filter"
        async with self.resolved() as model:
            with pytest.raises(ContentRefused, match="Ask in other words"):
                await self.ask(model)

    # Errors

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 529])
    async def test_an_error_is_a_sentence_that_says_what_to_do(self, server: Loopback, status: int) -> None:
        """People saw `status_code: 400, model_name: …, body: {'error': {…}}`."""
        said = "Something is wrong with it"
        server.failure = Failure(status, body={"error": {"message": said, "type": "t", "param": None, "code": None}})
        async with self.resolved() as model:
            with pytest.raises(ModelError) as caught:
                await self.ask(model)
        told = str(caught.value)
        assert f"({status}): {said}. " in told
        assert told.endswith(".")
        assert not set("{}[]'") & set(told)

    async def test_a_server_that_loads_its_model_is_waited_for(self, server: Loopback) -> None:
        server.failure = Failure(503, body={"error": {"message": "Loading model", "type": "unavailable_error"}})
        async with self.resolved() as model:
            with pytest.raises(ModelOverloaded) as caught:
                await self.ask(model)
        assert caught.value.loading
        waits = [request.retry_delay(caught.value, attempt) for attempt in range(1, request.LOADING_ATTEMPTS)]
        assert sum(wait or 0 for wait in waits) > 120

    async def test_the_size_of_the_context_is_learned_from_the_error(self, server: Loopback) -> None:
        server.failure = Failure(400, body=self.overflow)
        async with self.resolved() as model:
            with pytest.raises(RequestTooLarge) as caught:
                await self.ask(model)
            assert caught.value.context_tokens == 4_096
            assert learned.about(model).context_tokens == 4_096


class ThinkingTagConformance(WireConformance):
    """APIs in whose text local models write what they think."""

    async def test_a_model_is_told_what_the_object_means_that_its_server_enforces(self, server: Loopback) -> None:
        """Otherwise it wrote a score of 1 for an angry person: local servers do not show the schema to the model."""
        async with self.resolved() as model:
            for as_text in (False, True):
                async with request.stream(model, QUESTION, wanted=SEND, as_text=as_text) as answer:
                    async for _ in answer:
                        pass
        told, left = (each.body["messages"][0]["content"] for each in server.received)
        assert told == f"You are Ada.\n\nSay it. Answer with one JSON object of this schema: {json.dumps(SCHEMA)}"
        assert left == "You are Ada.", "where the prompt says it itself"

    async def test_a_model_that_never_thinks_gets_no_room_for_it(self, server: Loopback) -> None:
        """A small one that finds no end writes 190 tokens for a judgement then, instead of 2,237: minutes less."""
        with_room, without = 100 + 25 + 64 + 2_048, 100 + 25 + 64

        def room(model: Model) -> int:
            return thinking.brief(model, 100)["max_tokens"]

        async with self.resolved() as model:
            for answered in range(thinking.PLAIN_ANSWERS):
                assert room(model) == with_room, answered
                await self.ask(model)
            assert room(model) == without
            server.finish = "length"  # it may have thought unseen
            await self.ask(model)
            assert room(model) == with_room
            server.finish = "stop"
            for _ in range(thinking.PLAIN_ANSWERS):
                await self.ask(model)
            assert room(model) == without
            server.chunks = ["Secret.", "</think>", "Hello."]
            await self.ask(model)
            assert room(model) == with_room

    @pytest.mark.parametrize(
        ("text", "said", "thought"),
        [
            ("<think>Secret.</think>Hello.", "Hello.", "Secret."),
            ("Well. <think>Secret.</think>Hello.", "Well. Hello.", "Secret."),
            ("<think>\nSecret.\n</think>\n\nHello.", "Hello.", "Secret."),
            ("1 < 2 and <thin> and <", "1 < 2 and <thin> and <", ""),
            ("Secret.\n</think>\n\nHello.", "Hello.", "Secret."),
        ],
    )
    async def test_thinking_between_tags_never_leaks(
        self, server: Loopback, text: str, said: str, thought: str
    ) -> None:
        async with self.resolved() as model:
            for at in range(1, len(text)):
                server.chunks = [text[:at], text[at:]]
                response = await self.ask(model)
                assert text_of(response) == said, server.chunks
                assert (response.thinking or "").strip() == thought, server.chunks
            server.chunks = list(text)
            assert text_of(await self.ask(model)) == said

    async def test_thinking_between_tags_is_not_streamed_as_text(self, server: Loopback) -> None:
        server.chunks = ["<th", "ink>Sec", "ret.</thi", "nk>Hel", "lo."]
        heard = ""
        async with self.resolved() as model, request.stream(model, QUESTION) as answer:
            async for event in answer:
                if event.event_kind == "part_start" and event.part.part_kind == "text":
                    heard += event.part.content
                elif event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
                    heard += event.delta.content_delta
        assert heard == "Hello."
