"""Consciousness."""

from __future__ import annotations

from tests.consciousness.test_recollection import a_booking, comes_to_mind
from tests.world import World


async def test_relevant_old_cycles_come_back_whole(world: World) -> None:
    """With semantic compaction, the old cycles most relevant to the inbox come back whole, with what the agent did.

    Docs: consciousness.md
    Differs: they come as one message behind the inbox. Put back into the past, they would change the beginning of the
    prompt, and the provider's cache could not serve it.
    """
    ada, noor, kitchen = await a_booking(world, "Please book a hotel for the puppet festival in Turin.")
    found = await comes_to_mind(world, ada, noor, kitchen, "Which puppet festival was it?")
    assert "Please book a hotel for the puppet festival" in found
    assert "You did" in found
    assert "Hotel Aurora in Turin, room 12." in found
