"""The library of the authors of A2A, on each side: its client gives tasks to our agents, ours to its server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from denizen import call, reply
from tests.clients.conftest import HERE, environment, run_program
from tests.server.conftest import served
from tests.server.test_a2a import ask_bo
from tests.world import open_world


async def test_its_client_gives_tasks_to_our_agent(client_python: Path) -> None:
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        noor = await world.person("Noor")
        turns = reply("Hello, Noor."), "Greeted.", reply("One two three four five six."), "Counted."
        ada = await world.agent("Ada", *turns, a2a=True)
        where = f"{house.address}/a2a/{ada.id}"
        told = await run_program(client_python, "a2a_client.py", house, await house.token(noor), DENIZEN_AGENT=where)
    assert told == {
        "plain": "Hello, Noor.",
        "last_update": "TASK_STATE_COMPLETED",
        "streamed": "One two three four five six.",
        "listed": 2,
        "refused": True,
    }


async def test_our_agent_gives_a_task_to_its_server(client_python: Path) -> None:
    async with open_world("sqlite://") as world, serving(client_python) as address:
        noor = await world.person("Noor")
        tool = ask_bo(address)
        ada = await world.agent("Ada", call("ask_bo", text="One box."), reply("It is done."), "Told.", tools=[tool])
        await world.say(noor, "Have it shipped.", await world.space("Work", noor, ada))
        await world.run()
        history = "\n".join(await world.history(ada))
    assert "Shipped: One box.\n\n[context_id " in history


@asynccontextmanager
async def serving(python: Path) -> AsyncGenerator[str]:
    """The address of an agent of the library."""
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(HERE / "programs" / "a2a_server.py"),
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.terminate()
        await process.communicate()
