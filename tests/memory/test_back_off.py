"""A utility model that writes junk is not asked again and again, however short the cool-down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.memory.asking import SHAPE
from denizen.memory.settings import CompactionProfile
from denizen.memory.summarizing import LEAST_BACK_OFF_MS, cooling_ms
from denizen.models.scripted import Info, forever
from tests.memory.conftest import remembering, written
from tests.world import as_text, open_world


async def test_junk_is_repaired_once_and_then_waits(ready_sqlite_url: str) -> None:
    """With `cooldownMs` 0 there were 838 calls in six seconds."""
    calls, spinning = list[str](), asyncio.Event()

    def junk(messages: list[ModelMessage], _info: Info) -> str:
        calls.append("\n".join(map(as_text, messages)))
        if len(calls) > 10:
            spinning.set()
        return written("They met.") if len(calls) > 2 and not spinning.is_set() else "Not JSON."

    async with open_world(ready_sqlite_url, memory=remembering()) as world:
        world.denizen.models.register("utility", forever(junk))
        noor = await world.person("Noor")
        kitchen = await world.space("Kitchen", noor)
        await world.denizen.spaces.join(kitchen, await world.agent("Ada"), attention="none")
        for _ in range(4):
            await world.say(noor, "Hm.", kitchen)
        assert await world.denizen.memory.summarize(kitchen) == "failed"
        assert len(calls) == 2, "asked once, and repaired once"
        assert "Not JSON.\nThat cannot be used." in calls[1], "it is shown what it wrote"
        assert await world.denizen.memory.summarize(kitchen) == "cooling down"
        world.clock.advance(LEAST_BACK_OFF_MS / 1_000)
        assert await world.denizen.memory.summarize(kitchen) == "done"


@pytest.mark.parametrize(
    ("cooldown_ms", "failures", "expected"),
    [(0, 0, 0), (0, 1, 10_000), (0, 2, 20_000), (60_000, 0, 60_000), (60_000, 1, 60_000), (60_000, 3, 240_000)],
)
def test_the_wait_after_a_pass(cooldown_ms: int, failures: int, expected: int) -> None:
    assert cooling_ms(CompactionProfile(cooldownMs=cooldown_ms), failures) == expected


def test_nothing_else_may_be_written_than_what_is_asked_for() -> None:
    """Providers that enforce a schema refuse one that allows other properties."""

    def objects(schema: Any) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield schema
            for each in schema.values():
                yield from objects(each)

    found = list(objects(SHAPE.parameters_json_schema))
    assert len(found) > 2
    assert {each["additionalProperties"] for each in found} == {False}


def test_the_wait_after_many_failures_is_bounded() -> None:
    assert cooling_ms(CompactionProfile(cooldownMs=0), 1_000) == LEAST_BACK_OFF_MS * 64
