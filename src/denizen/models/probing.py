"""Tests a model with one small tool call: whether it answers, and whether it can do what agents need."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from denizen.errors import ModelError, ModelUnreachable
from denizen.models import thinking
from denizen.models.location import is_local
from denizen.models.request import stream

TOKENS: Final = 64
SECONDS: Final = 30.0
LOADING_SECONDS: Final = 180.0
"""How long a model in this network may take: it may have to be loaded."""

_TOOL: Final = ToolDefinition(
    name="answer",
    description="Give the answer.",
    parameters_json_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class ModelTest:
    """The result of a test."""

    called_tool: bool
    """Whether it has called the tool, as agents need it; otherwise it has answered with text, or with nothing."""
    text: str
    seconds: float
    input_tokens: int
    output_tokens: int
    thought: bool
    """Whether it has thought first."""


async def try_model(model: Model) -> ModelTest:
    """Asks the model for one call. Raises the `ModelError` if the request fails."""
    question: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart('Call the tool answer with the text "ok".')])]
    settings = cast(ModelSettings, thinking.brief(model, TOKENS))
    patience = LOADING_SECONDS if is_local(model) else SECONDS
    began = time.perf_counter()
    try:
        async with asyncio.timeout(patience), stream(model, question, tools=(_TOOL,), settings=settings) as answer:
            async for _ in answer:
                pass
    except TimeoutError as error:
        raise ModelUnreachable(f"The model did not answer within {patience:g} seconds.") from error
    return _read(answer.response, time.perf_counter() - began)


def _read(response: ModelResponse, seconds: float) -> ModelTest:
    called = any(isinstance(part, ToolCallPart) and part.tool_name == _TOOL.name for part in response.parts)
    usage = response.usage
    thought = any(part.part_kind == "thinking" for part in response.parts)
    return ModelTest(called, (response.text or "").strip(), seconds, usage.input_tokens, usage.output_tokens, thought)


class Probing:
    """Tests each model once, however many agents use it."""

    def __init__(self) -> None:
        self._answers: dict[int, ModelError | None] = {}
        self._asked: list[Model] = []
        """Kept, so that no other model gets the same identity meanwhile."""

    async def ask(self, model: Model) -> None:
        """Tests the model. Raises the `ModelError` if the request fails."""
        if id(model) not in self._answers:
            self._asked.append(model)
            self._answers[id(model)] = await _trouble(model)
        if (error := self._answers[id(model)]) is not None:
            raise error


async def _trouble(model: Model) -> ModelError | None:
    try:
        await try_model(model)
    except ModelError as error:
        return error
    return None
