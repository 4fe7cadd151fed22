"""What generated lives share: a clock that lets no cycle wait, models with a small context, what every request is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import settings
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart

from denizen.app import Runtime
from denizen.clock import ManualClock
from denizen.cycles.records import calls_of
from denizen.models.scripted import Decide, ScriptedModel
from denizen.tools.functions import tool
from tests.properties.house import unfinished

EXAMPLES: Final = settings.default.max_examples if settings.default else 100
PATIENCE: Final = 900 if EXAMPLES <= 100 else 3600
"""Seconds that a test may take: many times what it takes, for only a hang should reach them."""


class HurryingClock(ManualClock):
    """It stands still, but whoever waits in the middle of a cycle finds that the time has passed."""

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("life of"):
            self.advance(seconds)
            await asyncio.sleep(0)
        else:
            await super().sleep(seconds)


class NarrowModel(ScriptedModel):
    """A scripted model with a context of its own size."""

    context: int | None = None

    @property
    def context_window(self) -> int | None:
        return self.context


def narrow(decide: Decide, context: int | None, chunk: int | None) -> NarrowModel:
    model = NarrowModel(decide, name="scripted", chunk=chunk, pause=None, record=True)
    model.context = context
    return model


@tool(independent=True)
def look(size: int) -> str:
    """See something of that size."""
    return "z" * size


async def come_to_rest(denizen: Runtime, clock: ManualClock, run_until_idle: Callable[[], Any]) -> None:
    """Everything is done or dead in the end, after a bounded number of attempts."""
    for _ in range(60):
        await run_until_idle()
        if not await denizen.db.read(unfinished):
            return
        clock.advance(61)
    raise AssertionError(f"never at rest: {await denizen.db.read(unfinished)}")


def check_well_formed(request: Sequence[ModelMessage]) -> None:
    """It begins with the self and then someone else's words, and every call stands directly before its result."""
    assert isinstance(request[1], ModelRequest)
    assert isinstance(request[1].parts[0], UserPromptPart)
    assert isinstance(request[-1], ModelRequest)
    for position, message in enumerate(request):
        asked = [(each.tool_name, each.tool_call_id) for each in calls_of(message)]
        if asked:
            assert answered(request[position + 1]) == asked
        if answered(message):
            before = [(each.tool_name, each.tool_call_id) for each in calls_of(request[position - 1])]
            assert before == answered(message)
            assert all(isinstance(part, ToolReturnPart) for part in message.parts)


def answered(message: ModelMessage) -> list[tuple[str, str]]:
    return [(part.tool_name, part.tool_call_id) for part in message.parts if isinstance(part, ToolReturnPart)]
