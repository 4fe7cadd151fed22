"""The adapter of the local model: asked over HTTP, streamed as it writes.

It cannot call tools by itself. The schema makes it write `{"action": …, …}`, which is converted to a call while it is
still being written.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from denizen.models.local.asking import Question, forced, question
from denizen.models.local.process import Address, Tenancy, weights

PROVIDER: Final = "local"
NAME: Final = "smollm2"
CONTEXT_TOKENS: Final = 16_000
"""The size of its window, of which it is shown the end: see `asking`."""
ACTION_TOKENS: Final = 500
"""More than the longest action that the schema allows, so that none is cut."""
SENTENCE_TOKENS: Final = 40

_MANNERS: Final[dict[str, Any]] = {"repeat_penalty": 1.2}
"""Without this it repeats itself until it is stopped."""
_HEAD: Final = re.compile(r'\s*\{\s*"action"\s*:\s*"(\w+)"\s*(?:,|(?=\}))')


class LocalModel(Model):
    """SmolLM2-135M in a process of its own, which is started with the first request."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        weights()  # Checked now, so that a missing package is reported when the model is named.
        self._tenancy = Tenancy(folder)
        self._asked: tuple[Address, OpenAIChatModel] | None = None

    @property
    def model_name(self) -> str:
        return NAME

    @property
    def system(self) -> str:
        return PROVIDER

    @property
    def context_window(self) -> int | None:
        return CONTEXT_TOKENS

    async def close(self) -> None:
        """Ends the process, unless others use it. It is started again with the next request."""
        asked, self._asked = self._asked, None
        if asked is not None:
            await asked[1].client.close()
        await asyncio.to_thread(self._tenancy.leave)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(messages, model_settings, model_request_parameters) as streamed:
            async for _ in streamed:
                pass
            return streamed.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002
    ) -> AsyncGenerator[StreamedResponse]:
        tools = model_request_parameters.function_tools
        # It is too small for other settings: only this one is used.
        if tools and cast("dict[str, Any]", model_settings or {}).get("tool_choice") == "required":
            asked = forced(messages, tools)
        else:
            asked = question(messages, {tool.name for tool in tools})
        served = await self._served()
        plain = ModelRequestParameters(allow_text_output=True)
        async with served.request_stream(_messages(asked), _settings(asked), plain) as answer:
            yield _Acting(model_request_parameters, answer, acts=asked.schema is not None)

    async def _served(self) -> OpenAIChatModel:
        address = await asyncio.to_thread(self._tenancy.address)
        if self._asked is None or self._asked[0] != address:
            provider = OpenAIProvider(base_url=f"{address.url}/v1", api_key=address.key)
            provider.client.max_retries = 0
            self._asked = address, OpenAIChatModel(NAME, provider=provider)
        return self._asked[1]


def _messages(asked: Question) -> list[ModelMessage]:
    messages: list[ModelMessage] = [ModelRequest([SystemPromptPart(asked.system)])]
    for role, text in asked.turns:
        messages.append(ModelRequest([UserPromptPart(text)]) if role == "user" else ModelResponse([TextPart(text)]))
    return messages


def _settings(asked: Question) -> ModelSettings:
    if asked.schema is None:
        return ModelSettings(temperature=0, max_tokens=SENTENCE_TOKENS, extra_body=_MANNERS)
    form = {"type": "json_schema", "json_schema": {"name": "action", "schema": asked.schema}}
    return ModelSettings(temperature=0, max_tokens=ACTION_TOKENS, extra_body={**_MANNERS, "response_format": form})


class _Acting(StreamedResponse):
    """The model's output, as text or as the call that it describes."""

    def __init__(self, parameters: ModelRequestParameters, answer: StreamedResponse, *, acts: bool) -> None:
        self.model_request_parameters = parameters
        self._answer = answer
        self._acts = acts

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        pieces = (_written(event) async for event in self._answer)
        events = self._as_call(pieces) if self._acts else self._as_text(pieces)
        async for event in events:
            yield event
        # A call is forced by the schema, so its server sees only text.
        self.finish_reason = "tool_call" if self._acts else self._answer.get().finish_reason

    async def _as_text(self, pieces: AsyncIterator[str]) -> AsyncIterator[ModelResponseStreamEvent]:
        async for piece in pieces:
            for event in self._parts_manager.handle_text_delta(vendor_part_id="words", content=piece):
                yield event

    async def _as_call(self, pieces: AsyncIterator[str]) -> AsyncIterator[ModelResponseStreamEvent]:
        begun, beginning = False, ""
        async for piece in pieces:
            name, arguments = None, piece
            if not begun:
                beginning += piece
                head = _HEAD.match(beginning)
                if head is None:
                    continue
                begun, name, arguments = True, head[1], "{" + beginning[head.end() :]
            for event in self._parts_manager.handle_tool_call_delta_events(
                vendor_part_id="action", tool_name=name, args=arguments, tool_call_id="action" if name else None
            ):
                yield event

    async def close_stream(self) -> None:
        await self._answer.close_stream()

    @property
    def usage(self) -> RequestUsage:
        return self._answer.usage

    @property
    def model_name(self) -> str:
        return NAME

    @property
    def provider_name(self) -> str:
        return PROVIDER

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._answer.timestamp


def _written(event: ModelResponseStreamEvent) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""
