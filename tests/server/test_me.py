"""One's own account."""

from __future__ import annotations

from denizen import reply
from tests.server.conftest import House


async def test_one_changes_ones_own_name_and_nothing_else(house: House) -> None:
    """A member needs no admin for it; agents in the same spaces are told, and the handle stays."""
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    await world.space("Kitchen", noor, ada)
    answer = await house.call("PATCH", "/api/me", noor, json={"name": " Noor Haddad "})
    assert (answer.status_code, answer.json()["name"], answer.json()["handle"]) == (200, "Noor Haddad", "noor")
    assert (await house.call("GET", "/api/me", noor)).json()["name"] == "Noor Haddad"
    refused = await house.call("PATCH", "/api/me", noor, json={"name": "Noor", "role": "owner"})
    assert refused.status_code == 422
    assert (await house.call("PATCH", "/api/me", noor, json={"name": " "})).status_code == 422


async def test_what_an_agent_is_for_is_not_its_prompt(house: House) -> None:
    """People read its purpose in lists; the agent does not."""
    world = house.world
    noor = await world.person("Noor")
    turns = reply("Hello."), "Greeted."
    ada = await world.agent("Ada", *turns, instructions="Never mention the budget.", purpose="Plans the week.")
    (shown,) = (await house.call("GET", "/api/agents", noor)).json()["agents"]
    assert shown["purpose"] == "Plans the week."
    space = await world.space("Kitchen", noor, ada)
    await world.say(noor, "Hello", space)
    await world.run()
    request = str(world.model(ada).requests[0])
    assert "Never mention the budget." in request
    assert "Plans the week." not in request
