"""The clock of a world's servers, set forward and back by libfaketime. The monotonic clock goes on as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from lab.world import World

FURTHEST_SECONDS: Final = 7_200
_PLACES: Final = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/local/lib/faketime/libfaketimeMT.so.1")


def library() -> Path | None:
    """libfaketime, where Debian's `faketime` puts it."""
    found = (path for place in _PLACES for path in Path("/").glob(place.removeprefix("/")))
    return next(found, None)


def environment() -> dict[str, str]:
    """What a process is started with to see another time than the machine's, if a file beside its folder says so."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": "../clock",
        "FAKETIME_CACHE_DURATION": "1",  # the file is read once a second, not whenever somebody asks for the time
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",  # as older versions call it
        "FAKETIME_DONT_RESET": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # or threads that wait for one another are never asleep
    }


def give_own_clock(world: World) -> None:
    """Its servers see the machine's time and what a file adds to it."""
    (world.folder / "clock").write_text("+0s\n")
    world.keeps_time = False
    for instance in world.instances:
        instance.environment |= environment()  # it is asked for whenever somebody wants to know the time


async def step(world: World) -> None:
    """The clock is set, forward or back, by up to two hours; half of the time the server is killed as well."""
    offset = world.chance.randint(-FURTHEST_SECONDS, FURTHEST_SECONDS)
    (world.folder / "clock").write_text(f"{offset:+d}s\n")
    world.history.add("clock", offset=offset)
    await world.pause(1)
    if world.chance.random() < 0.3:
        instance = world.some_instance
        await instance.kill()
        instance.start()
        await asyncio.sleep(0)
