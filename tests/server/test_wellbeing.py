"""What the face of a house asks for: how it lives, what agents can be given, where one is alone with one of them."""

from __future__ import annotations

import asyncio

from sqlalchemy import text

from denizen import reply, scripted, tool
from denizen.access import roles
from denizen.errors import ModelKeyRejected
from denizen.inbox import parking
from denizen.inbox.delivery import DEAD_AFTER
from denizen.storage.database import Tx, statement
from tests.server.conftest import House

WELL = {"missing": [], "agents": [], "dead": [], "late": [], "alerts": []}


async def test_a_full_disk_is_told_rather_than_that_no_instance_thinks(small_house: House) -> None:
    """Health said to start a server, which was running, or nothing at all."""
    world = small_house.world
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)

    def limit(tx: Tx, pages: int) -> None:
        tx.all(statement(text(f"PRAGMA max_page_count = {pages}")))

    await world.denizen.db.write(limit, 1)  # as few as it has now
    answer = await small_house.call("POST", f"/api/spaces/{hall.id}/messages", noor, json={"text": "x" * 40_000})
    assert answer.json()["code"] == "disk_full"
    [alert] = (await small_house.call("GET", "/api/health", noor)).json()["alerts"]
    assert alert["code"] == "disk_full"
    await world.denizen.db.write(limit, 1_000_000)
    answer = await small_house.call("POST", f"/api/spaces/{hall.id}/messages", noor, json={"text": "x" * 40_000})
    assert answer.status_code == 201


async def test_a_house_says_what_needs_a_person(house: House) -> None:
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await world.person("Noor", organization=home)
    eve = await world.person("Eve", organization=elsewhere)
    ada = await world.agent("Ada", *[RuntimeError("No.")] * (DEAD_AFTER + 3), organization=home)
    kitchen = await world.space("Kitchen", noor, ada, organization=home)

    async def told(who) -> dict:
        answer = await house.call("GET", "/api/health", who)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert [each["code"] for each in (await told(noor))["alerts"]] == ["nobody_thinks"]
    await world.say(noor, "Good morning.", kitchen)
    world.clock.advance(601)
    late = await told(noor)
    assert [each["code"] for each in late["alerts"]] == ["nobody_thinks", "late_events", "people_wait"]
    assert late["alerts"][-1]["text"] == "A person has waited 10 minutes for Ada: see why, and try again."
    assert [(each["handle"], each["events"]) for each in late["late"]] == [("ada", 1)]

    async with world.denizen.living():
        for _ in range(DEAD_AFTER):
            await world.run_after(3_600)
        given_up = await told(noor)
        while not any(each["answers"] for each in given_up["instances"]):
            # Hours have passed: it is listed again when it has renewed its leases, which nobody here waits for.
            given_up = await told(noor)
        assert len(given_up["instances"]) == 1
        assert [each["code"] for each in given_up["alerts"]] == ["dead_events"]
        assert [(each["agent_id"], each["events"]) for each in given_up["dead"]] == [(ada.id, 1)]
        others = await told(eve)
        assert {name: others[name] for name in WELL} == WELL, "of another house they hear nothing"


async def test_health_looks_at_every_agent(house: House) -> None:
    """Why each cannot think here, how long people have waited for it; those that need a person come first."""
    world = house.world
    noor = await world.person("Noor")
    well, parked, lost, resting = [await world.agent(name) for name in ("Ada", "Bo", "Cy", "Di")]
    await world.denizen.agents.edit(lost, tools=["no_such_tool"])
    await world.denizen.agents.suspend(resting)
    await world.say(noor, "Hello?", await world.space("Two", noor, parked))

    def reject_key(tx: Tx) -> None:
        parking.park(tx, parked.id, "key", provider="OpenAI")

    await world.denizen.db.write(reject_key)
    world.clock.advance(60)
    told = (await house.call("GET", "/api/health", noor)).json()
    assert [(each["handle"], each["can_think"], each["needs_a_person"]) for each in told["agents"]] == [
        ("bo", False, True),
        ("cy", False, True),
        ("ada", True, False),
        ("di", False, False),
    ]
    assert told["agents_checked"] == 4
    assert [each["trouble"] and each["trouble"]["cause"] for each in told["agents"]] == [
        "key",
        "tool",
        None,
        "suspended",
    ]
    [bo] = [each for each in told["agents"] if each["handle"] == "bo"]
    assert (bo["waiting"], bo["waiting_since"], bo["dead"]) == (1, "2026-01-05T09:00:00Z", 0)
    assert bo["trouble"]["text"].startswith("OpenAI rejected the API key of Bo.")
    codes = [each["code"] for each in told["alerts"]]
    assert codes == ["nobody_thinks", "agents_unable", "agents_unable", "people_wait"]

    # The header of a space, and the list of agents, say the same.
    [space] = (await house.call("GET", "/api/spaces", noor)).json()["spaces"]
    assert [each["trouble"] for each in space["members"]] == [None, bo["trouble"]]
    agents = (await house.call("GET", "/api/agents", noor)).json()["agents"]
    assert [each["trouble"] and each["trouble"]["cause"] for each in agents] == [None, "key", None, "suspended"]
    assert (await house.call("GET", f"/api/agents/{parked.id}", noor)).json()["trouble"] == bo["trouble"]
    assert well.name == "Ada"


async def test_health_asks_models_if_told_to(small_house: House) -> None:
    """Each model once, however many agents think with it; what it says is told as the agents' trouble."""
    world = small_house.world
    noor = await world.person("Noor")
    broken = scripted(ModelKeyRejected("No."))
    world.denizen.models.register("python:shared", broken)
    for name in ("Ada", "Bo"):
        await world.denizen.agents.create(name, model="python:shared")
    plain = (await small_house.call("GET", "/api/health", noor)).json()
    assert [each["can_think"] for each in plain["agents"]] == [True, True]
    probed = (await small_house.call("GET", "/api/health?probe=true", noor)).json()
    assert [each["trouble"]["cause"] for each in probed["agents"]] == ["key", "key"]
    assert len(broken.requests) == 1


async def test_health_is_for_admins(small_house: House) -> None:
    world = small_house.world
    noor, mia = await world.person("Noor"), await world.person("Mia")
    await world.denizen.db.write(roles.set_role, mia.id, "member")
    assert (await small_house.call("GET", "/api/health", mia)).status_code == 403
    assert (await small_house.call("GET", "/api/health", noor)).status_code == 200


async def test_the_space_of_two_is_made_once(house: House) -> None:
    world = house.world
    noor, mia = await world.person("Noor"), await world.person("Mia")
    ada = await world.agent("Ada")
    answers = await asyncio.gather(*[house.call("PUT", "/api/agents/@ada/space", noor, json={}) for _ in range(3)])
    assert [each.status_code for each in answers] == [200] * 3
    [space] = {each.json()["id"] for each in answers}
    assert answers[0].json()["private"] is True
    assert {each["id"] for each in answers[0].json()["members"]} == {noor.id, ada.id}
    assert (await house.call("PUT", "/api/agents/@ada/space", mia, json={})).json()["id"] != space
    assert (await house.call("PUT", "/api/agents/@nobody/space", noor, json={})).status_code == 404


async def test_agents_are_listed_with_when_they_were_last_awake(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada, _ = await world.agent("Ada", reply("Good morning."), "Greeted Noor."), await world.agent("Bo")
    await world.say(noor, "Good morning.", await world.space("Kitchen", noor, ada))
    await world.run()
    agents = (await house.call("GET", "/api/agents", noor)).json()["agents"]
    assert [(each["name"], each["last_cycle_at"] is None) for each in agents] == [("Ada", False), ("Bo", True)]


@tool
def look_up(what: str) -> str:
    """Look something up in the handbook."""
    return what


async def test_tools_and_missing_keys_are_told(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", tools=[look_up])
    tools = (await small_house.call("GET", "/api/tools", noor)).json()["tools"]
    assert tools == [{"name": "look_up", "description": "Look something up in the handbook."}]
    told = (await small_house.call("GET", "/api/models", noor)).json()
    assert {"provider": "openai", "key": "OPENAI_API_KEY"} in told["missing_keys"]
