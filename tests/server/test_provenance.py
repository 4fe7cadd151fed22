"""Where text comes from, as messages, log, cycles and requests tell it over HTTP."""

from __future__ import annotations

from typing import Any

from denizen import call, reply, tool
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.spaces.directory import Entity
from tests.server.conftest import House
from tests.trust.test_inheritance import SMALL
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


async def test_goals_notes_plans_memories_summaries_and_layers_say_that_they_were_made_from_text_from_outside(
    house: House,
) -> None:
    world = house.world
    wanted = [
        call("set_goals", text="Buy now"),
        call("set_memories", memories={"shop": "Sells now."}),
        call("set_timer", name="Buying", reason="Buy it.", cron="0 9 * * *"),
        call("set_timer", reason="Buy", after="2 days"),
    ]
    filler = ["Went on. " + "Well. " * 150] * 8
    ada = await world.agent(
        "Ada",
        call("get_page"),
        wanted,
        "Noted.",
        *filler,
        tools=[get_page],
        window=SMALL,
        cycle={"silent_reply": "ignore"},
    )
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    views = {name: f"agents/{ada.id}/{name}" for name in ("goals", "notes", "plans")}
    await house.call("PUT", f"/api/agents/{ada.id}/notes/tea", noor, json={"text": "Milk."})
    for number in range(7):
        await world.say(noor, f"Go on, {number}. " + "Well. " * 150, kitchen)
        await world.run()
    found = {name: [each["outside"] for each in (await get(house, noor, path))[name]] for name, path in views.items()}
    assert found == {"goals": [True], "notes": [True, False], "plans": [True, True]}
    parts = (await get(house, noor, f"agents/{ada.id}/mind"))["window"]["parts"]
    assert {each["part"]: each["outside"] for each in parts}["layers"] is True

    whose = Owner("user", noor.organization_id, user_id=noor.id)
    kept = [Candidate("facts", "Noor sings.", ("m",)), Candidate("facts", "Noor buys.", ("m",), outside=True)]
    await world.denizen.db.write(items.remember, whose, kitchen.id, kept)
    memories = (await get(house, noor, "memory"))["memories"]
    assert {each["text"]: each["outside"] for each in memories} == {"Noor sings.": False, "Noor buys.": True}
    assert (await get(house, noor, f"spaces/{kitchen.id}/memory"))["outside"] is False
