"""What carrying messages between a space and a Matrix room costs, and whether any is lost or there twice after kills.

    python -m bench.bridge [--messages N] [--kills N]

A real Synapse (in an environment of its own, which is installed the first time) and a process of Denizen with a Matrix
bridge. Half of the messages are written in the room, half are said in the space. For the first half of them nobody is
killed: from these come the CPU time of Denizen's process for each message, and the delay from one side to the other
(99 of 100 take at most that; both sides use the machine's clock, the homeserver's in milliseconds). During the second
half, Denizen's process and Synapse are killed in turn and started again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from denizen import Runtime
from denizen.access.vault import new_key
from denizen.agents.pace import Pace
from denizen.bridges import sending
from denizen.clock import SECOND
from denizen.ids import BridgeId, EntityId, MessageId, SpaceId
from denizen.spaces.posting import Message
from tests.bridges.real.homeserver import Relay
from tests.bridges.real.synapse import AS_TOKEN, HS_TOKEN, SERVER, Synapse

PAUSE_SECONDS: Final = 0.1
"""Between two messages of one side."""
PACE: Final = Pace(lease_seconds=2, sweep_seconds=0.2, grace_seconds=0)
LIFE_SECONDS: Final = 8.0
"""Between two kills."""


@dataclass(frozen=True)
class Job:
    """What a process of Denizen does: it says `said` messages, and carries until `wanted` are in the space."""

    url: str
    key: str
    noor: EntityId
    space: SpaceId
    bridge: BridgeId
    port: int
    said: range
    wanted: int
    ready: Any = None
    """Is set when it lives."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measure(Path(folder), options.messages // 4 * 4, options.kills))))


async def measure(folder: Path, messages: int, kills: int) -> dict[str, Any]:
    """Carry the messages, and count them on both sides."""
    relay = Relay()
    synapse = Synapse(folder, relay.url)
    synapse.start()
    try:
        room = synapse.room("bench", "Eve")
        job = await _prepared(folder, synapse, relay)
        each = messages // 4
        busy = await _quiet(synapse, room, job, each)
        quiet = await _quiet_delays(job, synapse, room)
        await _killing(synapse, room, job, each, kills)
        lost, twice = await _counted(job, synapse, room, each * 2)
    finally:
        synapse.kill()
    return {
        "bench": "bridge",
        "messages": messages,
        "kills": kills,
        "lost": lost,
        "twice": twice,
        "cpu_ms_per_message": round(busy * 1_000 / (each * 2), 2),
        "delay_p50_ms": round(statistics.median(quiet), 1),
        "delay_p99_ms": round(statistics.quantiles(quiet, n=100)[98], 1),
    }


async def _prepared(folder: Path, synapse: Synapse, relay: Relay) -> Job:
    url, key = f"sqlite:///{folder / 'denizen.db'}", new_key()
    async with Runtime(url, secret_key=key) as denizen:
        noor = await denizen.people.create("Noor")
        space = await denizen.spaces.create("Bench", [noor])
        await denizen.secrets.set("AS", AS_TOKEN)
        await denizen.secrets.set("HS", HS_TOKEN)
        settings = {"homeserver": synapse.url, "as_token": "${AS}", "hs_token": "${HS}", "allow_private": ["127.0.0.1"]}
        bridge, _ = await denizen.bridges.create("Matrix", "matrix", settings)
        await denizen.bridges.connect(bridge, space, f"#bench:{SERVER}")
        await denizen.run_until_idle()
    port = int(relay.url.rpartition(":")[2])
    return Job(url, key, noor.id, space.id, bridge.id, port, range(0), 0)


# The process of Denizen


def carry(job: Job) -> None:
    asyncio.run(_carry(job))


async def _carry(job: Job) -> None:
    relay = Relay(job.port)
    async with Runtime(job.url, secret_key=job.key, pace=PACE) as denizen:

        async def take(token: str, body: bytes) -> None:
            await denizen.bridges.receive_push(job.bridge, token, body)

        relay.take = take
        async with relay.listening(), denizen.living():
            job.ready.set()
            for number in job.said:
                id = MessageId(f"0190c9a2-cccc-7ccc-8ccc-{number:012}")
                await denizen.spaces.post(job.space, job.noor, f"said {number}", id=id)
                await asyncio.sleep(PAUSE_SECONDS)
            while not await _is_done(denizen, job):  # noqa: ASYNC110  the database says it
                await asyncio.sleep(1)


async def _is_done(denizen: Runtime, job: Job) -> bool:
    waiting = await denizen.db.read(sending.next_at, job.bridge)
    return waiting is None and len(await _messages(denizen, job)) >= job.wanted


async def _messages(denizen: Runtime, job: Job) -> list[Message]:
    found = await denizen.spaces.messages(job.space, limit=100_000)
    return [each for each in found if "notice" not in each.metadata]


def _started(job: Job) -> Any:
    """A process that lives."""
    context = multiprocessing.get_context("spawn")
    job = replace(job, ready=context.Event())
    process = context.Process(target=carry, args=(job,), daemon=True)
    process.start()
    job.ready.wait(120)
    return process


# What happens to it


async def _quiet(synapse: Synapse, room: str, job: Job, each: int) -> float:
    """Carry so many messages from each side. Returns the CPU seconds of Denizen's process, without its start."""
    process = await asyncio.to_thread(_started, replace(job, said=range(each), wanted=each * 2))
    before = _cpu_seconds(process.pid)
    await _write(synapse, room, range(each))
    spent = before
    while process.is_alive():
        spent = _cpu_seconds(process.pid) or spent
        await asyncio.sleep(0.05)
    return spent - before


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _write(synapse: Synapse, room: str, numbers: range) -> None:
    for number in numbers:
        content = {"msgtype": "m.text", "body": f"written {number}"}
        while True:
            try:
                await asyncio.to_thread(synapse.send, "Eve", room, "m.room.message", content, f"written-{number}")
                break
            except (OSError, RuntimeError):
                await asyncio.sleep(0.2)  # It was killed: people try again, too.
        await asyncio.sleep(PAUSE_SECONDS)


async def _killing(synapse: Synapse, room: str, job: Job, each: int, kills: int) -> None:
    job = replace(job, said=range(each, each * 2), wanted=each * 4)
    process = await asyncio.to_thread(_started, job)
    writing = asyncio.create_task(_write(synapse, room, range(each, each * 2)), name="writing")
    for number in range(kills):
        await asyncio.sleep(LIFE_SECONDS)
        if number % 2 == 0:
            process.kill()
            process.join()
            process = await asyncio.to_thread(_started, job)
        else:
            await asyncio.to_thread(synapse.kill)
            await asyncio.to_thread(synapse.start)
    await writing
    await asyncio.to_thread(process.join)


# What there is in the end


async def _both_sides(job: Job, synapse: Synapse, room: str) -> tuple[list[Message], list[dict[str, Any]]]:
    async with Runtime(job.url, secret_key=job.key) as denizen:
        here = await _messages(denizen, job)
    events, _ = await asyncio.to_thread(synapse.timeline, "Eve", room)
    return here, [each for each in events if each["type"] == "m.room.message"]


async def _quiet_delays(job: Job, synapse: Synapse, room: str) -> list[float]:
    """Milliseconds from one side to the other, for each message."""
    here, there = await _both_sides(job, synapse, room)
    stored = {each.text: each.created_at * 1_000 / SECOND for each in here}
    sent = {each["content"]["body"]: each["origin_server_ts"] for each in there}
    return [max(stored[text] - sent[text], sent[text] - stored[text]) for text in stored]


async def _counted(job: Job, synapse: Synapse, room: str, each: int) -> tuple[int, int]:
    """How many are missing on a side, and how many are there more than once."""
    here, there = await _both_sides(job, synapse, room)
    wanted = {f"{way} {number}" for way in ("said", "written") for number in range(each)}
    counts = [Counter(one.text for one in here), Counter(one["content"]["body"] for one in there)]
    lost = sum(text not in count for count in counts for text in wanted)
    return lost, sum(number - 1 for count in counts for number in count.values())


if __name__ == "__main__":
    main()
