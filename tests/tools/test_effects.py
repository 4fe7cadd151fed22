"""The record of what calls did: each is done once."""

from __future__ import annotations

from denizen import reply
from denizen.tools import effects
from tests.world import World


async def test_a_call_is_completed_once(world: World) -> None:
    """A second result, of a process that comes too late say, changes nothing: the agent was told the first."""
    ada = await world.agent("Ada", reply("Hello."), "Said hello.")
    noor = await world.person("Noor")
    await world.say(noor, "Hello?", await world.space("Kitchen", noor, ada))
    await world.run()
    db = world.denizen.db
    [cycle] = await world.cycles(ada)
    await db.write(effects.intend, cycle.id, 7, 0, "fetch")
    assert await db.write(effects.complete, cycle.id, 7, 0, "The first.")
    assert not await db.write(effects.complete, cycle.id, 7, 0, "The second.")
    assert not await db.write(effects.complete, cycle.id, 7, 1, "Of a call that was never made.")
    sent, fetched = await db.read(effects.of_cycle, cycle.id)
    assert (sent.step, sent.position, sent.tool, sent.state) == (0, 0, "send_message", "done")
    assert (fetched.state, fetched.result) == ("done", "The first.")
