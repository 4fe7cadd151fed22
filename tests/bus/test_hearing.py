"""Whoever hears a topic hears it for as long as they live, however much is said at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pydantic import JsonValue

from denizen.bus.hearing import hearing, hearing_others
from denizen.bus.local import LocalBus
from denizen.bus.port import Frame, Gap


async def test_more_than_can_be_heard_is_a_gap_and_no_end():
    bus, heard = LocalBus(), asyncio.Queue[Frame | Gap]()
    async with asyncio.timeout(60), hearing(bus, "wake", heard.put_nowait, most_unheard=2):
        for number in range(3):
            bus.publish("wake", {"n": number})
        while not isinstance(await heard.get(), Gap):
            pass
        bus.publish("wake", {"n": 9})
        assert await heard.get() == Frame("wake", {"n": 9})
    assert not bus.attention("wake")


async def test_only_other_instances_are_heard_and_what_they_said_in_vain_is_noticed():
    bus, heard, missed = LocalBus(), asyncio.Queue[int](), asyncio.Event()

    def hear(payload: Mapping[str, JsonValue]) -> None:
        heard.put_nowait(int(str(payload["n"])))

    async with asyncio.timeout(60), hearing_others(bus, "wake", "here", hear, missed=missed.set, most_unheard=2):
        bus.publish("wake", {"n": 1, "by": "here"})
        bus.publish("wake", {"n": 2, "by": "elsewhere"})
        assert await heard.get() == 2
        for number in range(3):
            bus.publish("wake", {"n": number, "by": "elsewhere"})
        await missed.wait()
