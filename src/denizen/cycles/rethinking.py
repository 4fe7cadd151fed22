"""Sends a past request to another model, to see what it would have answered. Without effects.

No tool is run and nothing is written: not to the log, and not to the ledger either, so it counts against no budget.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings, ToolOrOutput

from denizen.clock import Clock
from denizen.consciousness.replay import RebuiltRequest
from denizen.cycles.seeing import with_bytes
from denizen.errors import InvalidInput, ModelError
from denizen.ids import AgentId
from denizen.models import caching, request
from denizen.models.pictures import sees
from denizen.models.prices import Price, cost
from denizen.storage.database import Database


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """A model's answer to an earlier request."""

    asked: RebuiltRequest
    model: str
    response: ModelResponse
    dollars: Decimal | None
    """The cost; None if the price is unknown."""

    @property
    def difference(self) -> list[str]:
        """The difference between the answers then and now, as `diff -u` shows it; empty if they are equal."""
        before, now = list(lines_of(self.asked.response)), list(lines_of(self.response))
        told = difflib.unified_diff(before, now, self.asked.model, self.model, lineterm="", n=10_000)
        return list(told)


def lines_of(response: ModelResponse) -> Iterator[str]:
    """A response as comparable lines: its text, and each call with its arguments in a fixed order."""
    for part in response.parts:
        if isinstance(part, TextPart):
            yield from part.content.splitlines()
        elif isinstance(part, ToolCallPart):
            yield f"→ {part.tool_name}"
            arguments = part.args_as_dict(raise_if_invalid=False)
            yield from (f"    {name}: {_plain(value)}" for name, value in sorted(arguments.items()))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


async def rethink(
    db: Database,
    asked: RebuiltRequest,
    model: Model,
    name: str,
    agent_id: AgentId,
    *,
    clock: Clock,
    prices: Mapping[str, Price],
) -> NewAnswer:
    """Send the same request to `model`, with the same tools to choose from; none of them is run."""
    if not asked.tools_kept:
        raise InvalidInput(
            f"The tools of cycle {asked.cycle:,}, step {asked.step}, were not stored, and without them another "
            "model would answer differently. Choose another cycle."
        )
    shown = [await with_bytes(db, each) for each in asked.messages] if sees(model) else list(asked.messages)
    response = await _ask(asked, shown, model, agent_id, clock)
    return NewAnswer(asked, name, response, cost(response, prices, asked=name))


async def _ask(
    asked: RebuiltRequest, shown: list[ModelMessage], model: Model, agent_id: AgentId, clock: Clock
) -> ModelResponse:
    lasting = len(asked.messages) - asked.has_note
    marks = (len(asked.messages) - asked.present, lasting - 1)
    messages = caching.marked(model, shown, marks)
    settings = cast(ModelSettings, {**_portable(asked.settings), **caching.settings(model, agent_id)})
    attempt = 0
    while True:
        attempt += 1
        try:
            async with request.stream(model, messages, tools=asked.tools, settings=settings) as answer:
                async for _ in answer:
                    pass
            return answer.response
        except ModelError as error:
            delay = request.retry_delay(error, attempt, key=agent_id)
            if delay is None:
                raise
            await clock.sleep(delay)


def _portable(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings that apply to every model; the rest was for that provider."""
    kept = {name: settings[name] for name in ("max_tokens", "tool_choice") if name in settings}
    if isinstance(choice := kept.get("tool_choice"), dict):
        kept["tool_choice"] = ToolOrOutput(**cast("dict[str, list[str]]", choice))
    return {name: value for name, value in kept.items() if value != "auto"}
