"""Whoever hears a topic hears it for as long as they live, however much is said at once."""

from __future__ import annotations

import asyncio

from denizen.bus.hearing import hearing
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
