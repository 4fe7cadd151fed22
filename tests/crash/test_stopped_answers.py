"""A stop is durable: whenever the process dies, what a person has stopped is not written again."""

from __future__ import annotations

import asyncio

import pytest

from denizen import Runtime
from denizen.models.scripted import ScriptedModel, reply, scripted
from tests.crash.killing import KILLED, ended, processes
from tests.crash.stopping import LONG, MODEL, die_while_stopping


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
        ours, theirs = processes().Pipe()
        arguments = (database_url, hall.id, noor.id, point, theirs)
        child = processes().Process(target=die_while_stopping, args=arguments, daemon=True)
        child.start()
        theirs.close()
        assert await asyncio.to_thread(ended, child) == KILLED
        assert ours.recv() == "living"

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
