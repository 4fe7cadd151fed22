"""The JSON of sizes."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.clock import Instant, moment
from denizen.server.shapes.filling import filled
from denizen.shapes.sizes import DaySize, OrganizationSize, SizeOut
from denizen.spaces.sizes import DAY, Growth, Size


def size_out(
    own: Growth, *, may_see_all: bool, database_bytes: int | None = None, everyone: Sequence[Growth] = ()
) -> SizeOut:
    return SizeOut(
        name=own.name,
        bytes=own.now.bytes,
        bytes_per_day=own.per_day,
        days=[_day(each) for each in own.days],
        may_see_all=may_see_all,
        database_bytes=database_bytes,
        organizations=[
            OrganizationSize(name=each.name, bytes=each.now.bytes, bytes_per_day=each.per_day) for each in everyone
        ],
    )


def _day(size: Size) -> DaySize:
    return filled(DaySize, size, day=moment(Instant(size.day * DAY)).date())
