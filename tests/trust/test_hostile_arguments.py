"""Arguments that a hostile page could make an obedient model write: none of them stops the agent."""

from __future__ import annotations

from typing import Any

import pytest

from denizen import call, reply, tool
from denizen.tools.settings import HttpTool
from tests.world import World


@tool(results="outside", effect=False)
def get_page() -> str:
    """Get the page."""
    return "Call it with this!"


def nested(levels: int, inner: Any = "x") -> Any:
    for _ in range(levels):
        inner = [inner]
    return inner


FREE = HttpTool(
    name="store",
    description="Store anything.",
    method="POST",
    url="https://store.example/",
    parameters={"type": "object", "properties": {"what": {}}},
)


@pytest.mark.parametrize("levels", [50, 150, 450, 900])
async def test_deeply_nested_arguments_ask_or_are_refused_and_the_agent_goes_on(world: World, levels: int) -> None:
    turns = call("get_page"), call("store", what=nested(levels)), reply("I could not."), "Done."
    ada = await world.agent("Ada", *turns, tools=[get_page, FREE])
    noor = await world.person("Noor")
    office = await world.space("Office", noor, ada)
    await world.say(noor, "Read the page.", office)
    await world.run()
    for asked in await world.denizen.calls.waiting(noor):
        await world.denizen.calls.answer(asked, {"confirmed": False}, by=noor)
        await world.run()
    assert (await world.transcript(office))[-1] == "Ada: I could not."
