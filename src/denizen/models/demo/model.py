"""`demo`: the model that is always available. It costs nothing, contacts nobody, and is deterministic."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from pydantic_ai.messages import ModelMessage

from denizen.models.demo.advising import advise, is_for_a_panel
from denizen.models.demo.compacting import compact, is_asked
from denizen.models.demo.deciding import decide
from denizen.models.demo.note_taking import is_asked_for_chapter, write_chapter
from denizen.models.demo.reading import read
from denizen.models.demo.reflecting import reflection
from denizen.models.scripted import Info, Pause, ScriptedModel, Turn

NAME: Final = "demo"
CONTEXT_TOKENS: Final = 128_000
PACE_SECONDS: Final = 0.015
"""The pause before every few characters, so that people see it write."""
_CHUNK = 6


def demo(
    pace: float = PACE_SECONDS, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep, record: bool = False
) -> ScriptedModel:
    """Creates the demo model. It pauses for `pace` seconds before every few characters; 0 for no pause."""
    pause: Pause | None = (lambda: sleep(pace)) if pace > 0 else None
    return ScriptedModel(
        _next_turn,
        name=NAME,
        chunk=_CHUNK,
        pause=pause,
        record=record,
        provider=NAME,
        context_tokens=CONTEXT_TOKENS,
    )


def _next_turn(messages: list[ModelMessage], info: Info) -> Turn:
    tools = {each.name: each.parameters_json_schema for each in info.definitions}
    if is_asked_for_chapter(messages):
        return write_chapter(messages)
    if is_asked(messages):
        return compact(messages)
    if (thought := reflection(messages, tools)) is not None:
        return thought
    # A request with only these tools comes from a panel: agents always have others.
    return advise(messages, info.tools) if is_for_a_panel(info.tools) else decide(read(messages), tools)
