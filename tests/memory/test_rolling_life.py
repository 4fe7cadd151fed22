"""Conversations are summed up while agents live, and what they came to is remembered."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage
from sqlalchemy import select

from denizen import call, forever, reply, tool
from denizen.memory.documents import dump
from denizen.models.scripted import Info
from denizen.storage.database import statement
from denizen.storage.schema import memories
from tests.memory.conftest import answering, known, utility, written
from tests.world import World, as_text, listening

_documents = statement(select(memories.c.document).where(memories.c.kind == "snapshot"))


async def test_a_conversation_is_summed_up_in_the_background_and_the_tail_is_kept(world: World):
    """The summary reaches up to a message, and everything after it is still there to be shown."""
    model = utility(world, written("Noor greeted.", facts=[known("Noor lives in Lisbon.", 1)]))
    ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for text in ("I live in Lisbon.", "It rains."):
        await world.say(noor, text, kitchen)
        await world.run()

    state = await world.denizen.memory.summary(kitchen)
    assert (state.summary, state.upto, state.passes) == ("Noor greeted.", 2, 1)
    asked = as_text(model.requests[0][1])
    assert '[1] Noor (human), 2026-01-05 09:00: "I live in Lisbon."' in asked
    owners = {each.owner.partition(":")[0] for each in await world.denizen.memory.list()}
    assert owners == {"conversation", "user", "persona"}


async def test_each_scope_is_written_what_is_its_and_the_snapshot_is_the_latest(small_world: World):
    """Snapshot and items for the conversation, items for the person and for the two who talked, none for everyone."""
    utility(
        small_world,
        written("One.", facts=[known("Noor lives in Lisbon.", 1)]),
        written("Two.", facts=[known("Noor lives in Lisbon.", 1), known("It rains.", 3)]),
    )
    ada, noor = await small_world.agent("Ada", model=forever(answering)), await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor, ada)
    for text in ("I live in Lisbon.", "It rains.", "Still."):
        await small_world.say(noor, text, kitchen)
        await small_world.run()

    found = [(each.owner, each.kind, each.text) for each in await small_world.denizen.memory.list()]
    owners = [f"conversation:{kitchen.id}", f"persona:{noor.id}:{ada.id}", f"user:{noor.id}"]
    both = [(owner, "item", text) for owner in owners for text in ("It rains.", "Noor lives in Lisbon.")]
    assert sorted(found) == sorted([*both, (owners[0], "snapshot", "Two.")])
    state = await small_world.denizen.memory.summary(kitchen)
    documents = await small_world.denizen.db.read(lambda tx: tx.all(_documents))
    assert documents == [(dump(state.memory),)]


async def test_the_output_cap_is_across_both_the_summary_and_the_memory(small_world: World):
    """`maxSummaryTokens`, 900 by default: told to the model, and set for it."""
    sent: list[int | None] = []

    def write(messages: list[ModelMessage], info: Info) -> str:
        assert "Everything together has at most 900 tokens." in as_text(messages[0])
        sent.append((info.settings or {}).get("max_tokens"))
        return written("They met.")

    utility(small_world, write)
    noor = await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor)
    await small_world.denizen.spaces.join(kitchen, await small_world.agent("Ada"), attention="none")
    for _ in range(4):
        await small_world.say(noor, "Hm.", kitchen)
    assert await small_world.denizen.memory.summarize(kitchen) == "done"
    assert sent == [900 + 225 + 64], "what cuts is above what the model is told"


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
    assert [each.uses for each in await world.denizen.memory.list(owner=f"user:{noor.id}")] == [1]


async def test_readers_of_the_space_are_told_of_a_new_summary(world: World):
    utility(world, written("Noor greeted."))
    ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    async with listening(world, kitchen) as heard:
        for text in ("I live in Lisbon.", "It rains."):
            await world.say(noor, text, kitchen)
            await world.run()
        frames = [each for each in await heard() if each["type"] == "metadata.updated"]
    told = [each for each in frames if each["what"] == "rolling_memory"]
    summary = {"type": "metadata.updated", "space": kitchen.id, "what": "rolling_memory"}
    assert told == [{**summary, "agent": None, "cycle": None}]


async def test_readers_of_a_space_are_not_told_of_a_recall_in_another(world: World):
    """An urgent message from the garden is read in the middle of a cycle whose memories are about the kitchen."""
    noor = await world.person("Noor")
    kitchen, garden = await world.space("Kitchen", noor), await world.space("Garden", noor)

    @tool
    async def look_outside() -> str:
        """Look outside."""
        await world.denizen.spaces.post(garden, noor, "It rains!", urgent=True)
        return "It rains."

    answers = [reply("It rains.", space_id=space.id) for space in (kitchen, garden)]
    ada = await world.agent("Ada", call("look_outside"), *answers, "Answered.", tools=[look_outside])
    for space in (kitchen, garden):
        await world.denizen.spaces.join(space, ada)
    async with listening(world, kitchen) as in_kitchen, listening(world, garden) as in_garden:
        await world.say(noor, "What is the weather like?", kitchen)
        await world.run()
        told = [
            [each["agent"] for each in await heard() if each["type"] == "metadata.updated"]
            for heard in (in_kitchen, in_garden)
        ]
    assert told == [[ada.id], []]
    assert (await world.transcript(garden))[-1] == "Ada: It rains."
