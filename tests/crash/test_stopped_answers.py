"""A stop is durable: whenever the process dies, what a person has stopped is not written again."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection

import pytest

from denizen import Runtime, failpoints
from denizen.agents.pace import Pace
from denizen.ids import EntityId, SpaceId
from denizen.models.scripted import ScriptedModel, forever, reply, scripted

LONG = "One word after the other, until somebody stops me in the middle of it."
MODEL = "script:ada"
PACE = Pace(lease_seconds=0.5, sweep_seconds=0.1, grace_seconds=0)


def die_while_stopping(url: str, space_id: str, noor: str, point: str, ready: Connection) -> None:
    """Writes, is stopped in the middle, and is killed at this point."""
    asyncio.run(_die(url, SpaceId(space_id), EntityId(noor), point, ready))


async def _die(url: str, space_id: SpaceId, noor: EntityId, point: str, ready: Connection) -> None:
    pieces = 0

    async def pause() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 10:
            failpoints.arm(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
            await denizen.spaces.stop(space_id, noor)

    model = forever(lambda _messages, _info: reply(LONG), pause=pause, chunk=4)
    async with Runtime(url, models={MODEL: model}, pace=PACE) as denizen, denizen.living():
        ready.send("living")
        await denizen.spaces.post(space_id, noor, "Count.")
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("point", "stays"),
    [
        ("commit:stop_answer", True),
        ("committed:stop_answer", False),
        ("commit:carry_on", False),
        ("committed:carry_on", True),
        ("commit:end_cycle", True),
        ("committed:end_cycle", True),
    ],
)
async def test_killed_while_an_answer_is_stopped(database_url: str, point: str, stays: bool):
    """Before the request is stored, the answer is written; after that, what was said stays or there is none."""
    never: ScriptedModel = scripted()
    whole: ScriptedModel = scripted(reply(LONG), "Counted.")
    async with Runtime(database_url, models={MODEL: whole if point == "commit:stop_answer" else never}) as denizen:
        ada = await denizen.agents.create("Ada", model=MODEL)
        noor = await denizen.people.create("Noor")
        hall = await denizen.spaces.create("Hall", [noor, ada])
        ours, theirs = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn")
        child = spawn.Process(target=die_while_stopping, args=(database_url, hall.id, noor.id, point, theirs))
        child.start()
        await asyncio.to_thread(child.join)
        assert (ours.recv(), child.exitcode) == ("living", -signal.SIGKILL)

        async def until_answered() -> None:
            async with denizen.living():
                while True:
                    await denizen.run_until_idle()
                    if await denizen.minds.cycles(ada):
                        return
                    await asyncio.sleep(0.05)  # until the lease of the dead process ends

        await asyncio.wait_for(until_answered(), 60)
        said = (await denizen.spaces.messages(hall))[1:]
        (cycle,) = await denizen.minds.cycles(ada)
        if point == "commit:stop_answer":
            assert [each.text for each in said] == [LONG]
            return
        assert cycle.stop_reason == "stopped"
        assert [each.metadata for each in said] == ([{"stopped": {"by": noor.id}}] if stays else [])
        assert all(LONG.startswith(each.text) for each in said)
        statuses = await denizen.spaces.statuses(hall)
        assert [each.cause for each in statuses] == ([] if stays else ["stopped"])
