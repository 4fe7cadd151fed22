"""Worlds that remember."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import reply, scripted
from denizen.memory.settings import MemoryOptions
from denizen.models.scripted import Info, ScriptedModel
from tests.world import World, as_text, open_world

PRESETS: dict[str, Any] = {
    "memoryCompaction": {
        "profiles": {
            "quick": {
                "tailTurnsToKeep": 2,
                "minTurnsToSummarize": 2,
                "maxTurnsToSummarizePerPass": 8,
                "cooldownMs": 0,
                "modelId": "utility",
            }
        },
        "defaultProfile": "quick",
    }
}


def written(summary: str, **memory: Any) -> str:
    """What a utility model answers."""
    return json.dumps({"summary_markdown": summary, "memory_json": memory})


def known(text: str, *sources: int, **more: Any) -> dict[str, Any]:
    """An item of a memory."""
    return {"text": text, "sources": list(sources), **more}


def answering(messages: list[ModelMessage], _info: Info) -> Any:
    """An agent that says something to everything."""
    said = as_text(messages[-1])
    return reply("I see.") if said.startswith(("[INBOX", "[REMEMBERED", "[RECALLED")) else "Listened."


def utility(world: World, *turns: Any) -> ScriptedModel:
    """The utility model answers with these, one after the other."""
    model = scripted(*turns)
    world.denizen.models.register("utility", model)
    return model


def remembering(**more: Any) -> MemoryOptions:
    presets = {**PRESETS, **more}
    return MemoryOptions(presets=lambda: presets)


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    """A world that remembers, on SQLite and on PostgreSQL."""
    async with open_world(ready_url, memory=remembering()) as world:
        yield world


@pytest.fixture
async def small_world(ready_sqlite_url: str) -> AsyncGenerator[World]:
    """A world that remembers, on SQLite."""
    async with open_world(ready_sqlite_url, memory=remembering()) as world:
        yield world
