"""What several readers of a space want at the same moment is read once, for those who may read it."""

from __future__ import annotations

import asyncio

import pytest

from denizen.access import tokens
from denizen.errors import NotAMember
from denizen.ids import SpaceId
from denizen.server.streams.audience import SpaceReader
from denizen.server.streams.shared_reads import SharedReads
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from tests.server.conftest import House


class Reading:
    """Counts how often the space is read."""

    def __init__(self, house: House, space_id: SpaceId) -> None:
        self.times = 0
        self._house = house
        self._space_id = space_id
        self._reads = SharedReads()

    def _find(self, tx: Tx) -> int:
        del tx
        self.times += 1
        return self.times

    async def by(self, who: Entity, what: str = "statuses") -> int:
        reader = SpaceReader(who.id, tokens.IN_PROCESS)
        return await self._reads.read(self._house.world.denizen.db, self._space_id, reader, what, self._find)


async def test_readers_who_ask_at_the_same_moment_share_a_read(house: House) -> None:
    noor, sam, mia = [await house.world.person(name) for name in ("Noor", "Sam", "Mia")]
    reading = Reading(house, (await house.world.space("Kitchen", noor, sam, mia)).id)
    assert await asyncio.gather(*(reading.by(who) for who in (noor, sam, mia))) == [1, 1, 1]
    # Nobody is given what was read before they asked, nor something else.
    assert await asyncio.gather(reading.by(noor), reading.by(sam, "messages")) in ([2, 3], [3, 2])


async def test_who_may_not_read_the_space_is_told_nothing(house: House) -> None:
    world = house.world
    noor, sam, mia = [await world.person(name) for name in ("Noor", "Sam", "Mia")]
    kitchen = await world.space("Kitchen", noor, sam, mia)
    reading = Reading(house, kitchen.id)
    await world.denizen.spaces.leave(kitchen, noor)
    first, *others = await asyncio.gather(*(reading.by(who) for who in (noor, sam, mia)), return_exceptions=True)
    assert isinstance(first, NotAMember)
    assert (others, reading.times) == ([1, 1], 1)


async def test_a_reader_who_leaves_before_reading_holds_nobody_up(house: House) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    reading = Reading(house, (await house.world.space("Kitchen", noor, sam)).id)
    first, second = asyncio.ensure_future(reading.by(noor)), asyncio.ensure_future(reading.by(sam))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first
