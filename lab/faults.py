"""Faults: each is an async function of a world. When it returns, the fault is over and everything runs again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from lab import clocks, upgrades
from lab.backups import restore_backup
from lab.postgres import fail_over
from lab.proxy import WAYS, Proxy, Trap, Way, is_commit
from lab.world import Database, World

BOTH: Final[frozenset[Database]] = frozenset({"sqlite", "postgresql"})
POSTGRESQL: Final[frozenset[Database]] = frozenset({"postgresql"})
SQLITE: Final[frozenset[Database]] = frozenset({"sqlite"})
POINT_SECONDS: Final = 1.5
"""How long a process may go on that is to die at a certain point: it may never come there."""
DISK_BYTES: Final = 48 * 2**20

Need = Literal["", "small disk", "own clock", "standby", "backup", "old servers", "old schema"]
"""What a world must have been given for a fault. Those with different needs are not mixed."""
TRIALS_IN_A_WORLD: Final[dict[Need, int]] = {
    "": 25,
    "small disk": 25,
    "own clock": 25,
    "standby": 2,
    "backup": 1,
    "old servers": 1,
    "old schema": 1,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """How it strikes, and where it can."""

    strike: Callable[[World], Awaitable[None]]
    databases: frozenset[Database] = BOTH
    needs: Need = ""
    aim: int = 200
    """How often it strikes in a long run before others are preferred."""
    strikes: int = 4
    """How often it may strike in one trial."""
    hasty: bool = False
    """Whether it may strike again before everything is ready."""


# Processes


async def kill(world: World) -> None:
    """SIGKILL at a random instant, also of a process that starts."""
    instance = world.some_instance
    await instance.kill()
    instance.start()


async def kill_at_a_point(world: World) -> None:
    """SIGKILL just before or after a commit, a model call or a tool call."""
    instance = world.some_instance
    await instance.kill()
    instance.start(fatal=world.chance.random())
    with suppress(AssertionError):
        await instance.ended(POINT_SECONDS)
    await instance.kill()
    instance.start()


async def terminate(world: World) -> None:
    """SIGTERM: it drains and ends with 0."""
    instance = world.some_instance
    instance.signal(signal.SIGTERM)
    status = await world.status_at_end(instance, 60)
    if status is None:
        world.find(f"{instance.name} did not end within 60 s of SIGTERM")
    elif status != 0:
        world.find(f"{instance.name} ended with {status} after SIGTERM")
    instance.start()


async def stop(world: World) -> None:
    """SIGSTOP for longer than a lease."""
    instance = world.some_instance
    instance.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(world.pace.lease_seconds * world.chance.uniform(0.2, 2))
    finally:
        instance.signal(signal.SIGCONT)


async def stop_in_a_transaction(world: World) -> None:
    """SIGSTOP when its COMMIT is on the way and has not arrived: it holds its locks."""
    instance = world.some_instance
    proxy = world.proxy_of(instance)
    await _sprung(proxy, Trap(is_commit, "freeze", "before", on_sprung=lambda: instance.signal(signal.SIGSTOP)))
    try:
        await asyncio.sleep(world.pace.lease_seconds * world.chance.uniform(0.2, 2))
    finally:
        instance.signal(signal.SIGCONT)
        proxy.heal()


# Connections


async def _sprung(proxy: Proxy, trap: Trap, seconds: float = 3.0) -> bool:
    """The trap has caught something, or had so long."""
    proxy.trap = trap
    try:
        async with asyncio.timeout(seconds):
            await trap.sprung.wait()
    except TimeoutError:
        proxy.trap = None
        return False
    return True


async def database(way: Way, world: World) -> None:
    """The connection to PostgreSQL breaks at some statement, half of the time at COMMIT."""
    proxy = world.proxy_of(world.some_instance)
    left = world.chance.randint(1, 60)

    def at_a_statement(_: str) -> bool:
        nonlocal left
        left -= 1
        return left <= 0

    matches = is_commit if world.chance.random() < 0.5 else at_a_statement
    where = "before" if world.chance.random() < 0.5 else "after"
    if not await _sprung(proxy, Trap(matches, way, where)):
        proxy.break_all(way)
    if way in ("freeze", "dark"):
        if world.chance.random() < 0.5:
            proxy.break_all(way)
            proxy.light.clear()
        await asyncio.sleep(world.pace.lease_seconds * world.chance.uniform(0.1, 2))
    proxy.heal()


async def connections(which: Literal["redis", "model"], way: Way, world: World) -> None:
    """Every connection breaks; new ones are refused, dark or fine for a while."""
    proxy = world.model_proxy if which == "model" else world.redis_proxy
    assert proxy is not None
    if which == "model" and world.chance.random() < 0.7:
        where = "before" if world.chance.random() < 0.5 else "after"
        await _sprung(proxy, Trap(lambda _: True, way, where), 1.0)
    proxy.break_all(way)
    match way:
        case "freeze" | "dark":
            proxy.light.clear()
        case _:
            proxy.refuses = world.chance.random() < 0.5
    await asyncio.sleep(world.chance.uniform(0.05, 1.5))
    proxy.heal()


# Servers


async def stop_postgresql(world: World) -> None:
    """It crashes, and is started again after up to three seconds. No instance may say meanwhile that it is ready."""
    assert world.postgres is not None
    await asyncio.to_thread(world.postgres.stop)
    try:
        await world.pause(3)
        for instance in world.instances:
            status, _ = await world.person.ready(instance, 30)
            if status == 200:
                world.find(f"{instance.name} says that it is ready, and PostgreSQL is stopped")
    finally:
        await asyncio.to_thread(world.postgres.start)


async def stop_redis(world: World) -> None:
    """It is gone with all that it held, and is started again, empty."""
    assert world.valkey is not None
    await asyncio.to_thread(world.valkey.stop)
    try:
        await world.pause(2)
    finally:
        await asyncio.to_thread(world.valkey.start)


# Disks


async def slow_down_disk(world: World) -> None:
    """Each commit of a process takes up to half a second longer, for two seconds or more; then it is as before."""
    instance = world.some_instance
    await instance.kill()
    instance.start(slow=world.chance.uniform(0.05, 0.5))
    await asyncio.sleep(world.chance.uniform(2, 5))
    await instance.kill()
    instance.start()


def may_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def give_small_disk(world: World) -> None:
    """Its home is on a file system of its own."""
    instance = world.instances[0]
    instance.home.mkdir(parents=True)
    where = str(instance.home)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "lab", where], check=True)
    world.cleanup.callback(subprocess.run, ["umount", "--lazy", where], check=False)


async def fill_disk(world: World) -> None:
    """There is not a byte left, for up to two seconds."""
    filler = world.instances[0].home / "filler"
    await asyncio.to_thread(_fill, filler)
    try:
        await world.pause(2)
    finally:
        filler.unlink()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)


async def start_read_only(world: World) -> None:
    """It is started on a disk that cannot be written: it says so in a sentence, and ends."""
    instance = world.instances[0]
    await instance.kill()
    _remount("ro", instance.home)
    instance.new_log()
    try:
        instance.start()
        status = await world.status_at_end(instance, 60)
        if status is None:
            world.find("started on a read-only disk, and goes on")
        else:
            said = instance.new_log()
            if status == 0 or "Traceback" in said or not said.strip():
                world.find(f"on a read-only disk it ended with {status} and said: {said[-1000:]}")
    finally:
        _remount("rw", instance.home)
        instance.start()


def _remount(how: Literal["ro", "rw"], path: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(path)], check=True)


async def hold_lock(world: World) -> None:
    """Another program holds the file for up to four seconds."""
    path = world.instances[0].home / "denizen.db"

    def hold(seconds: float) -> None:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            file.execute("ROLLBACK")

    await asyncio.to_thread(hold, world.chance.uniform(0.2, 4))


FAULTS: Final[dict[str, Fault]] = {
    "SIGKILL": Fault(kill, aim=500, hasty=True),
    "SIGKILL at a point": Fault(kill_at_a_point, aim=500, hasty=True),
    "SIGTERM": Fault(terminate),
    "SIGSTOP": Fault(stop),
    "SIGSTOP in a transaction": Fault(stop_in_a_transaction, POSTGRESQL),
    **{f"database {way}": Fault(partial(database, way), POSTGRESQL) for way in WAYS},
    **{f"redis {way}": Fault(partial(connections, "redis", way), POSTGRESQL) for way in WAYS},
    **{f"model {way}": Fault(partial(connections, "model", way)) for way in WAYS},
    "PostgreSQL stopped": Fault(stop_postgresql, POSTGRESQL),
    "Redis stopped": Fault(stop_redis, POSTGRESQL),
    "disk slow": Fault(slow_down_disk),
    "file locked": Fault(hold_lock, SQLITE),
    "disk full": Fault(fill_disk, SQLITE, "small disk"),
    "disk read-only": Fault(start_read_only, SQLITE, "small disk"),
    "clock set": Fault(clocks.step, BOTH, "own clock"),
    "failover": Fault(fail_over, POSTGRESQL, "standby", aim=20, strikes=1),
    "backup restored": Fault(restore_backup, BOTH, "backup", aim=20, strikes=1),
    "rolling deploy": Fault(upgrades.roll, POSTGRESQL, "old servers", aim=20, strikes=1),
    "upgrade": Fault(upgrades.upgraded, BOTH, "old schema", aim=20, strikes=1),
}


def skipped() -> dict[str, str]:
    """The faults that cannot be had here, and why."""
    lacking: dict[Need, str] = {}
    if not may_mount():
        lacking["small disk"] = "only root can mount a small disk"
    if clocks.library() is None:
        lacking["own clock"] = "libfaketime is not installed (Debian: faketime)"
    if upgrades.old_version() is None:
        lacking["old servers"] = "this is no git checkout with an earlier version"
    return {name: lacking[fault.needs] for name, fault in FAULTS.items() if fault.needs in lacking}


PREPARE: Final[dict[Need, Callable[[World], None]]] = {
    "small disk": give_small_disk,
    "own clock": clocks.give_own_clock,
    "old servers": upgrades.give_old_servers,
    "old schema": upgrades.give_old_schema,
}
