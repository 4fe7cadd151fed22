"""Asking a model for a few tokens, to see whether it answers at all."""

from __future__ import annotations

import asyncio
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from denizen.errors import ModelError, ModelUnreachable
from denizen.models.request import stream

TOKENS: Final = 16
"""The least that every provider accepts as a limit."""
SECONDS: Final = 30.0


class Probing:
    """Asks each model once, however many agents think with it."""

    def __init__(self) -> None:
        self._answers: dict[int, ModelError | None] = {}
        self._asked: list[Model] = []
        """Kept, so that no other model has the same identity meanwhile."""

    async def ask(self, model: Model) -> None:
        """Raises the `ModelError` with which the model answers, if it does not answer otherwise."""
        if id(model) not in self._answers:
            self._asked.append(model)
            self._answers[id(model)] = await _trouble(model)
        if (error := self._answers[id(model)]) is not None:
            raise error


async def _trouble(model: Model) -> ModelError | None:
    question: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Say ok.")])]
    settings = ModelSettings(max_tokens=TOKENS)
    try:
        async with asyncio.timeout(SECONDS), stream(model, question, settings=settings) as answer:
            async for _ in answer:
                pass
    except ModelError as error:
        return error
    except TimeoutError:
        return ModelUnreachable(f"The model did not answer within {SECONDS:g} seconds.")
    return None
