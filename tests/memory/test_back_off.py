"""A utility model that writes junk is not asked again and again, however short the cool-down."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.memory.keeping import LEAST_BACK_OFF_MS, cooling_ms
from denizen.memory.settings import CompactionProfile
from denizen.models.scripted import Info, forever
from tests.memory.conftest import remembering, written
from tests.world import open_world


async def test_junk_is_repaired_once_and_then_waits(ready_sqlite_url: str) -> None:
    """With `cooldownMs` 0 there were 838 calls in six seconds."""
    calls, spinning = list[str](), asyncio.Event()

    def junk(_messages: list[ModelMessage], _info: Info) -> str:
        calls.append("asked")
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
        assert await world.denizen.memory.summarize(kitchen) == "cooling down"
        world.clock.advance(LEAST_BACK_OFF_MS / 1_000)
        assert await world.denizen.memory.summarize(kitchen) == "done"


@pytest.mark.parametrize(
    ("cooldown_ms", "failures", "expected"),
    [(0, 0, 0), (0, 1, 10_000), (0, 2, 20_000), (60_000, 0, 60_000), (60_000, 1, 60_000), (60_000, 3, 240_000)],
)
def test_the_wait_after_a_pass(cooldown_ms: int, failures: int, expected: int) -> None:
    assert cooling_ms(CompactionProfile(cooldownMs=cooldown_ms), failures) == expected


def test_the_wait_after_many_failures_is_bounded() -> None:
    assert cooling_ms(CompactionProfile(cooldownMs=0), 1_000) == LEAST_BACK_OFF_MS * 64
