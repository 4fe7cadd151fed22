"""Conversations are summed up while agents live, and what they came to is remembered."""

from __future__ import annotations

from denizen import forever
from tests.memory.conftest import answering, known, utility, written
from tests.world import World, as_text, listening


async def test_a_conversation_is_summed_up_in_the_background_and_the_tail_is_kept(world: World):
    """The summary reaches up to a message, and everything after it is still there to be shown."""
    model = utility(world, written("Noor greeted.", facts=[known("Noor lives in Lisbon.", 1)]))
    ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for text in ("I live in Lisbon.", "It rains."):
        await world.say(noor, text, kitchen)
        await world.run()

    state = await world.denizen.conversation_memory(kitchen)
    assert (state.summary, state.upto, state.passes) == ("Noor greeted.", 2, 1)
    asked = as_text(model.requests[0][1])
    assert '[1] Noor (human), 2026-01-05 09:00: "I live in Lisbon."' in asked
    owners = {each.owner.partition(":")[0] for each in await world.denizen.memories()}
    assert owners == {"conversation", "user", "persona"}


async def test_what_is_remembered_of_a_person_is_told_in_another_conversation(world: World):
    """Across conversations, and only once while it is in the window."""
    utility(world, written("Noor greeted.", facts=[known("Noor lives in Lisbon.", 1)]))
    ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for text in ("I live in Lisbon.", "It rains."):
        await world.say(noor, text, kitchen)
        await world.run()
    study = await world.space("Study", noor, ada)
    await world.say(noor, "What is the weather like in Lisbon?", study)
    await world.run()

    told = [each for each in await world.history(ada) if each.startswith("remembered")]
    assert len(told) == 1
    assert "| Noor lives in Lisbon. (facts)" in told[0]
    assert [each.uses for each in await world.denizen.memories(owner=f"user:{noor.id}")] == [1]


async def test_readers_of_the_space_are_told_of_a_new_summary(world: World):
    utility(world, written("Noor greeted."))
    ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    async with listening(world, kitchen) as heard:
        for text in ("I live in Lisbon.", "It rains."):
            await world.say(noor, text, kitchen)
            await world.run()
        frames = [each for each in await heard() if each["type"] == "metadata.updated"]
    assert frames == [{"type": "metadata.updated", "space": kitchen.id, "what": "rolling_memory"}]
