"""What the model of each cycle answered, in short: its usage and the tools it called."""

from __future__ import annotations

from denizen import call, reply
from denizen.cycles.usage import answers_of_cycles, usage_of_cycles
from tests.world import World


async def test_each_cycle_has_its_own_answers_whichever_are_asked_for(world: World) -> None:
    turns = ([reply("One.")], [call("read_messages"), reply("Two.")], [call("read_entry", entry="inbox")] * 2)
    ada = await world.agent("Ada", *(turn for calls in turns for turn in (calls, "Done.")))
    bee = await world.agent("Bee", *["Nothing."] * 3)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for each in ("First", "Second", "Third"):
        await world.denizen.agents.trigger(bee, each)
        await world.say(noor, each, hall) if each != "Third" else await world.denizen.agents.trigger(ada, each)
        await world.run()
    expected = {1: {"send_message": 1}, 2: {"read_messages": 1, "send_message": 1}, 3: {"read_entry": 2}}
    read = world.denizen.db.read
    for first, last in ((1, 1), (2, 2), (3, 3), (1, 2), (2, 3), (1, 3), (2, 9)):
        found = await read(answers_of_cycles, ada.id, first, last)
        wanted = {number: tools for number, tools in expected.items() if first <= number <= last}
        assert {number: dict(each.tools) for number, each in found.items()} == wanted
    assert await read(answers_of_cycles, ada.id, 4, 9) == {}
    used = await read(usage_of_cycles, ada.id, 1, 3)
    records = {each.number: (each.input_tokens, each.output_tokens) for each in await world.cycles(ada)}
    assert {number: (each.input, each.output) for number, each in used.items()} == records
