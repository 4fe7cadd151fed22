"""A person shows an agent a file."""

from __future__ import annotations

from denizen import Agent, Entity, File, Space
from tests.world import World


async def show(world: World, person: Entity, agent: Agent, text: str, file: File) -> Space:
    """A message with the file is in a new space of the two, and the agent has done what it does then."""
    hall = await world.space("Hall", person, agent)
    await world.denizen.spaces.post(hall, person, text, files=[file])
    await world.run()
    return hall
