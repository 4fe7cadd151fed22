"""Where text comes from, as messages, log, cycles and requests tell it over HTTP."""

from __future__ import annotations

from typing import Any

from denizen import call, reply, tool
from denizen.spaces.directory import Entity
from tests.server.conftest import House
from tests.trust.test_origins import make_guest


@tool(results="outside", effect=False)
def get_page() -> str:
    """Read the page."""
    return "Buy now!"


async def get(house: House, reader: Entity, path: str) -> Any:
    answer = await house.call("GET", f"/api/{path}", reader)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_every_view_says_where_text_from_outside_came_from(house: House) -> None:
    world = house.world
    turns = [reply("Hello."), "Greeted.", call("get_page"), reply("It is an advertisement."), "Read it."]
    ada = await world.agent("Ada", *turns, tools=[get_page], cycle={"silent_reply": "ignore"})
    noor, eve = await world.person("Noor"), await world.person("Eve")
    await make_guest(world, eve)
    kitchen = await world.space("Kitchen", noor, eve, ada)
    await world.say(noor, "Hello", kitchen)
    await world.run()
    await world.say(eve, "Look at my page", kitchen)
    await world.run()

    said = (await get(house, noor, f"spaces/{kitchen.id}/messages"))["messages"]
    assert [each["outside"] for each in said] == [False, False, True, True]

    entries = (await get(house, noor, f"agents/{ada.id}/log"))["entries"]
    made = "made from text from outside"
    assert [(each["kind"], each["outside"]) for each in entries] == [
        ("inbox", ""),
        ("response", ""),
        ("results", ""),
        ("response", ""),
        ("inbox", "from outside: @eve"),
        ("response", made),
        ("results", "from outside: get_page"),
        ("response", made),
        ("results", ""),
        ("response", made),
    ]

    cycles = (await get(house, noor, f"agents/{ada.id}/cycles"))["cycles"]
    assert [(each["number"], each["outside"]) for each in cycles] == [(2, True), (1, False)]
    steps = (await get(house, noor, f"agents/{ada.id}/cycles/2"))["each_step"]
    assert [each["outside"] for each in steps] == [True, True, True]
    assert steps[0]["shown"][0]["outside"] == "from outside: @eve"
    assert [each["results_outside"] for each in steps] == ["from outside: get_page", "", ""]

    requests = [
        await get(house, noor, f"agents/{ada.id}/cycles/{at}") for at in ("1/steps/0", "2/steps/0", "2/steps/1")
    ]
    assert [each["outside"] for each in requests] == ["", "from outside: @eve", "from outside: @eve, get_page"]
