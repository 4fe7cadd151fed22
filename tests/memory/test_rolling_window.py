"""The strategy `rolling`: what the summaries cover leaves the window when an era begins, not only when it is full."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import forever
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.memory.policy import Policy
from denizen.models.scripted import Info
from denizen.spaces.directory import Entity, Space
from tests.memory.conftest import answering, remembering, utility, written
from tests.world import World, as_text, open_world

WINDOW = {"strategy": "rolling", "min_recent_cycles": 3}


def summing(messages: list[ModelMessage], _info: Info) -> str:
    """A utility model that says how far it has read."""
    last = [line for line in as_text(messages[1]).splitlines() if line.startswith("[")][-1]
    return written(f"Read until {last.split()[0]}.")


async def talking(world: World, turns: int, **window: object) -> tuple[Agent, Entity, Space]:
    """Ada and Noor have talked so often, and all but the last two messages are summarized."""
    utility(world, *[summing] * 40)
    ada = await world.agent("Ada", model=forever(answering), window=WINDOW | window)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    await talk(world, noor, kitchen, range(turns))
    return ada, noor, kitchen


async def talk(world: World, noor: Entity, space: Space, turns: range) -> None:
    for n in turns:
        await world.say(noor, f"This is message {n} of mine.", space)
        await world.run()


def _is_alert(frame: object) -> bool:
    return isinstance(frame, Frame) and frame.payload["type"] == "agent.alert"


async def shown(world: World, ada: Agent) -> str:
    return "\n".join((await world.prompts(ada))[-1])


async def test_what_a_summary_covers_leaves_the_window_when_the_next_era_begins(world: World):
    """The window is nearly empty. The recent cycles stay whole; the summary and a line for each stand for others."""
    ada, noor, kitchen = await talking(world, 8)
    before = await shown(world, ada)
    assert "[ROLLING MEMORY" not in before
    assert '"This is message 0 of mine."' in before
    world.clock.advance(301)
    await talk(world, noor, kitchen, range(8, 9))
    now = await shown(world, ada)
    assert '[ROLLING MEMORY — "Kitchen", messages 1–' in now
    assert "| Read until [" in now
    assert [f'"This is message {n} of mine."' in now for n in range(9)] == [False] * 5 + [True] * 4
    assert "Cycle 1 (" in now
    # Within the era nothing moves: the prefix stays in the provider's cache.
    await talk(world, noor, kitchen, range(9, 10))
    assert (await shown(world, ada)).startswith(now)


async def test_messages_that_no_summary_covers_stay_in_the_window(small_world: World):
    """Three cycles in a study, which is too short for a summary, hold back what came after them."""
    utility(small_world, *[summing] * 40)
    ada = await small_world.agent("Ada", model=forever(answering), window=WINDOW)
    noor = await small_world.person("Noor")
    kitchen, study = [await small_world.space(name, noor, ada) for name in ("Kitchen", "Study")]
    await talk(small_world, noor, kitchen, range(4))
    await small_world.say(noor, "Only this in the study.", study)
    await small_world.run()
    await talk(small_world, noor, kitchen, range(4, 10))
    small_world.clock.advance(301)
    await talk(small_world, noor, kitchen, range(10, 11))
    now = await shown(small_world, ada)
    assert '"Only this in the study."' in now
    assert '"This is message 3 of mine."' not in now
    assert '"This is message 4 of mine."' in now


async def test_without_summaries_the_layers_have_all_the_room_and_the_owner_is_told(ready_sqlite_url: str):
    """A runtime without memory writes none."""
    async with open_world(ready_sqlite_url) as world:
        ada = await world.agent("Ada", model=forever(answering), window=WINDOW)
        noor = await world.person("Noor")
        kitchen = await world.space("Kitchen", noor, ada)
        await talk(world, noor, kitchen, range(6))
        world.clock.advance(301)
        async with world.denizen.bus.subscribe(agent_topic(ada.id), limit=1_000) as frames:
            await talk(world, noor, kitchen, range(6, 7))
            told = await anext(each async for each in frames if _is_alert(each))
        assert isinstance(told, Frame)
        assert told.payload["kind"] == "no_summaries"
        # Nothing has left: no summary covers it.
        assert '"This is message 0 of mine."' in await shown(world, ada)


@pytest.mark.parametrize(("strategy", "passes"), [("layered", 0), ("rolling", 1)])
async def test_a_pass_that_nobody_reads_is_not_paid_for(small_world: World, strategy: str, passes: int):
    """Opted out of long-term memory, a conversation is summarized only for an agent that reads it."""
    model = utility(small_world, *[summing] * 5)
    ada = await small_world.agent("Ada", model=forever(answering), window={"strategy": strategy})
    noor = await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor, ada)
    await small_world.denizen.memory.set_policy(kitchen, Policy(enabled=False))
    await talk(small_world, noor, kitchen, range(2))
    assert len(model.requests) == passes
    # As soon as somebody reads it, it is made up for.
    await small_world.denizen.memory.set_policy(kitchen, Policy(enabled=True))
    await talk(small_world, noor, kitchen, range(2, 4))
    assert len(model.requests) > passes


async def test_with_long_term_memory_switched_off_nothing_is_summarized_for_nobody(ready_sqlite_url: str):
    async with open_world(ready_sqlite_url, memory=remembering(longTermMemory={"enabled": False})) as world:
        model = utility(world, *[summing] * 5)
        ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
        kitchen = await world.space("Kitchen", noor, ada)
        await talk(world, noor, kitchen, range(4))
        assert model.requests == []
