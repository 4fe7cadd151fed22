"""Whoever looks after an agent hears of what should not go on unseen."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from denizen import reply
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.consciousness import compaction
from denizen.cycles import alerts
from denizen.models.prices import Price
from tests.world import World, open_world

FILLER = "Nothing much happens here, and it takes its time to say so. " * 60


async def alerts_of(world: World, agent: Agent, *said: str) -> list[str]:
    """The kinds of alerts while Noor says these things to the agent, each in a cycle of its own."""
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, agent)
    topic = agent_topic(agent.id)
    heard: list[str] = []
    async with world.denizen.bus.subscribe(topic, limit=10_000) as frames:
        for text in said:
            await world.say(noor, text, hall)
            await world.run()
        world.denizen.bus.publish(topic, {"type": "that was all"})
        async for frame in frames:
            assert isinstance(frame, Frame)
            if frame.payload["type"] == "that was all":
                break
            if frame.payload["type"] == "agent.alert":
                heard.append(str(frame.payload["kind"]))
    return heard


@pytest.mark.parametrize(("limit", "told"), [("0.000001", ["dear_cycle"]), ("1000", [])])
async def test_a_dear_cycle_is_told_of(ready_sqlite_url: str, limit: str, told: list[str]):
    prices = {"python:ada": Price(Decimal(1), Decimal(1))}
    async with open_world(ready_sqlite_url, prices=prices) as world:
        ada = await world.agent("Ada", reply("Hi."), "Greeted.", cycle={"alert_dollars": limit})
        assert await alerts_of(world, ada, "Hello") == told


async def test_a_compaction_that_fails_is_told_of_and_the_agent_lives_on(
    small_world: World, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(compaction, "compact", broken)
    turns = [each for _ in range(12) for each in (reply(FILLER), "Told Noor.")]
    ada = await small_world.agent("Ada", *turns, window={"max_tokens": 8_000})
    assert "compaction_failed" in await alerts_of(small_world, ada, *[FILLER] * 12)
    assert len(await small_world.cycles(ada)) == 12


def test_a_window_that_stays_full_is_an_alert():
    assert alerts.window_full(9_001, 10_000) is not None
    assert alerts.window_full(9_000, 10_000) is None
