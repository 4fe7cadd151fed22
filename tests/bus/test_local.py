"""The bus within one process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from denizen.bus.local import LocalBus
from denizen.bus.port import Frame
from tests.bus.suite import BusSuite


class TestLocalBus(BusSuite):
    @pytest.fixture
    async def bus(self) -> AsyncIterator[LocalBus]:
        bus = LocalBus()
        await bus.open()
        yield bus
        await bus.close()


async def test_attention_ends_with_the_last_reader():
    """A publisher can spare itself the work of writing frames that nobody reads."""
    bus = LocalBus()
    async with bus.subscribe("space:1"), bus.subscribe("space:1", "space:2"):
        assert bus.attention("space:1")
        assert not bus.attention("space:3")
    assert not bus.attention("space:1")
    assert not bus.attention("space:2")


async def test_what_was_queued_before_the_close_can_still_be_read():
    bus = LocalBus()
    async with bus.subscribe("space:1") as subscription:
        bus.publish("space:1", {"n": 1})
        await bus.close()
        assert [item async for item in subscription] == [Frame("space:1", {"n": 1})]
