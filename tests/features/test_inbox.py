"""Inbox."""

from __future__ import annotations

from tests.world import World


async def test_a_stop_command_is_urgent_and_a_bus_stop_is_not(world: World) -> None:
    """A command such as "stop" interrupts the agent; a sentence that only has the word does not.

    Docs: inbox.md
    """
    ada, noor = await world.agent("Ada"), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for text in ("Where's the bus stop?", "Please stop that"):
        await world.say(noor, text, hall)
    lanes = [(event.lane, event.text) for event in await world.denizen.minds.inbox(ada)]
    assert lanes == [("urgent", "Please stop that"), ("normal", "Where's the bus stop?")]
