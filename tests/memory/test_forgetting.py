"""What was forgotten is in no table, index, layer or prompt."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import forever, reply
from denizen.agents.registry import Agent
from denizen.models.scripted import Info
from denizen.spaces.directory import Entity, Space
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.memory.conftest import known, utility, written
from tests.properties.house import everything
from tests.world import World, as_text

SECRET = "Quentin keeps a violet xylophone beneath seventeen crooked umbrellas."
PARAPHRASE = "A purple instrument of Q lies hidden."
"""What the models make of it, in words of their own."""


def listening(messages: list[ModelMessage], _info: Info) -> Any:
    said = as_text(messages[-1])
    return reply("Noted. " * 60) if said.startswith(("[INBOX", "[REMEMBERED")) else "Listened."


async def a_life(world: World) -> tuple[Agent, Entity, Space]:
    """A conversation that was summed up, an agent that lives with the summary, and was reminded of what it holds."""
    texts = [written(f"Summary: {PARAPHRASE}", facts=[known(PARAPHRASE, 1), known("Tea is at four.", 2)])]
    utility(world, *texts, *[written("What is left.", facts=[known("Tea is at four.", 2)])] * 40)
    window = {"max_tokens": Toolbox(PREBUILT).tokens + 2_600, "strategy": "rolling", "min_recent_cycles": 1}
    ada = await world.agent("Ada", model=forever(listening), window=window, cycle={"silent_reply": "ignore"})
    noor = await world.person("Noor Quentin")
    kitchen = await world.space("Violet Kitchen", noor, ada)
    for text in (SECRET, "Tea is at four.", "And now?"):
        await world.say(noor, text, kitchen)
        await world.run()
    study = await world.space("Study", noor, ada)
    await world.say(noor, "Where is the purple instrument?", study)
    await world.run()
    for n in range(4):
        await world.say(noor, f"Go on, {n}. " + "Well. " * 160, study)
        await world.run()
    return ada, noor, kitchen


async def stored(world: World) -> str:
    return str(await world.denizen.db.read(everything))


async def test_the_summary_and_the_reminder_are_in_the_prompt_before_anything_is_forgotten(small_world: World):
    """Else the tests below would show nothing: the strategy `rolling` puts the summary before the layers."""
    ada, _, _ = await a_life(small_world)
    prompts = await small_world.prompts(ada)
    assert any(text.startswith('user: [ROLLING MEMORY — "Violet Kitchen", messages 1–') for text in prompts[-1])
    assert any(PARAPHRASE in text for prompt in prompts for text in prompt if text.startswith("user: [REMEMBERED"))


@pytest.mark.parametrize("what", ["person", "space", "memory"])
async def test_what_was_learned_is_gone_with_what_it_was_learned_from(small_world: World, what: str):
    """In whatever words: no table, no index, no layer, no prompt of any cycle after it."""
    await forget_and_look(small_world, what)


async def test_what_was_learned_is_gone_with_a_message(world: World):
    """The same on both databases."""
    await forget_and_look(world, "message")


async def test_a_memory_that_repeats_a_message_is_gone_with_it_whatever_it_rests_on(small_world: World):
    """Somebody has corrected what was learned from another message, in the words of this one."""
    _, _, kitchen = await a_life(small_world)
    tea = next(each for each in await small_world.denizen.memory.list() if each.text == "Tea is at four.")
    await small_world.denizen.memory.correct(tea, SECRET)
    first = (await small_world.denizen.spaces.messages(kitchen))[0]
    await small_world.denizen.spaces.forget_message(first.id)
    assert SECRET not in {each.text for each in await small_world.denizen.memory.list()}


async def forget_and_look(world: World, what: str) -> None:
    ada, noor, kitchen = await a_life(world)
    if what == "message":
        first = (await world.denizen.spaces.messages(kitchen))[0]
        receipt = await world.denizen.spaces.forget_message(first.id)
    elif what == "person":
        receipt = await world.denizen.people.forget(noor)
    elif what == "space":
        receipt = await world.denizen.spaces.forget(kitchen)
    else:
        memory = next(each for each in await world.denizen.memory.list() if each.text == PARAPHRASE)
        receipt = await world.denizen.memory.forget(memory)
    assert receipt.removed["memories"] >= 3
    left = await stored(world)
    assert PARAPHRASE not in left
    asked = len(world.model(ada).requests)
    if what != "person":
        sam = await world.person("Sam")
        await world.say(sam, "Hello!", await world.space("Cellar", sam, ada))
        await world.run()
        after = [as_text(each) for prompt in world.model(ada).requests[asked:] for each in prompt]
        assert after
        assert not [text for text in after if PARAPHRASE in text]


async def test_a_memory_that_was_forgotten_is_kept_out_of_the_next_summary(small_world: World):
    """If it comes again in these words: neither in the conversation's memory nor in anyone's."""
    utility(
        small_world,
        written("One.", facts=[known(PARAPHRASE, 1), known("Tea is at four.", 2)]),
        written("Two.", facts=[known(PARAPHRASE, 1), known("Tea is at four.", 2)]),
    )
    ada, noor = await small_world.agent("Ada"), await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor)
    await small_world.denizen.spaces.join(kitchen, ada, attention="none")
    for n in range(4):
        await small_world.say(noor, f"Remark {n}.", kitchen)
    await small_world.denizen.memory.summarize(kitchen)
    memory = next(each for each in await small_world.denizen.memory.list() if each.text == PARAPHRASE)
    await small_world.denizen.memory.forget(memory)
    for n in range(2):
        await small_world.say(noor, f"More {n}.", kitchen)
    assert await small_world.denizen.memory.summarize(kitchen) == "done"
    state = await small_world.denizen.memory.summary(kitchen)
    assert [each.text for each in state.memory.facts] == ["Tea is at four."]
    assert {each.text for each in await small_world.denizen.memory.list()} == {"Tea is at four.", "Two."}
    assert (await small_world.denizen.spaces.messages(kitchen))[0].text == "Remark 0."


async def test_a_deleted_message_is_unlearned_and_its_conversation_summed_up_anew(small_world: World):
    utility(small_world, written("One.", facts=[known(PARAPHRASE, 1)]), written("Two."))
    ada, noor = await small_world.agent("Ada"), await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor)
    await small_world.denizen.spaces.join(kitchen, ada, attention="none")
    for n in range(4):
        await small_world.say(noor, f"Remark {n}.", kitchen)
    await small_world.denizen.memory.summarize(kitchen)
    first = (await small_world.denizen.spaces.messages(kitchen))[0]
    await small_world.denizen.spaces.delete_message(first, by=noor)
    assert PARAPHRASE not in {each.text for each in await small_world.denizen.memory.list()}
    assert (await small_world.denizen.memory.summary(kitchen)).upto == 0
