"""Telling an agent of something over HTTP: whoever may, as much as may be, and once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from denizen.agents.registry import Agent
from denizen.spaces.directory import Entity
from tests.server.conftest import House

JSON = {"Content-Type": "application/json"}


async def tell(
    house: House, who: Entity | None, agent: Agent | str, *, key: str | None = None, **event: Any
) -> httpx2.Response:
    named = agent if isinstance(agent, str) else agent.id
    headers = JSON | ({} if key is None else {"Idempotency-Key": key})
    content = json.dumps({"service": "CI", **event})
    return await house.call("POST", f"/api/agents/{named}/trigger", who, headers=headers, content=content)


async def test_what_happened_is_told_to_the_agent_and_wakes_it(house: House) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", "Looked into it.")

    answer = await tell(house, noor, ada, text="The build failed.", data={"run": 4711})

    [event] = await world.denizen.minds.inbox(ada)
    assert (answer.status_code, answer.json()) == (202, {"id": event.id})
    assert event.payload == {"service": "CI", "text": "The build failed.", "data": {"run": 4711}}
    await world.run()
    assert '[Service "CI"]\n   | The build failed.\n   | {"run":4711}' in await world.newest_inbox(ada)


async def test_an_agent_may_be_named_by_its_handle(house: House) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    answers = [await tell(house, noor, named, text="Hello.", urgent=True) for named in ("@ada", "@ADA", ada.id)]
    assert [each.status_code for each in answers] == [202] * 3
    assert [each.lane for each in await world.denizen.minds.inbox(ada)] == ["urgent"] * 3


async def test_other_organizations_agents_are_as_those_that_do_not_exist(house: House) -> None:
    """Dead ones too; and a person is no agent."""
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await world.person("Noor", organization=home)
    gone = await world.agent("Gone", organization=home)
    ada = await world.agent("Ada", organization=elsewhere)
    await world.denizen.agents.delete(gone)

    missing = await tell(house, noor, "019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f", text="Hello?")

    assert missing.status_code == 404
    for named in (ada.id, "@ada", gone.id, "@gone", noor.id, "@noor", "%00", "@", "%ed%a0%80"):
        answer = await tell(house, noor, named, text="Hello?")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        shown = answer.json()["detail"].partition("'")[0]
        assert shown == missing.json()["detail"].partition("'")[0]
    assert (await tell(house, None, ada, text="Hello?")).status_code == 401
    assert await world.waiting(ada) == []


async def test_telling_again_is_telling_once(house: House) -> None:
    """With a key of the caller's own, or with the service's id of what happened."""
    world = house.world
    noor, sam, ada = await world.person("Noor"), await world.person("Sam"), await world.agent("Ada")

    by_key = await asyncio.gather(*(tell(house, noor, ada, key="a", text="1", data=[1.5]) for _ in range(5)))
    by_id = [await tell(house, noor, ada, id="run 7", text=text) for text in ("2", "2, in other words")]
    assert {each.status_code for each in [*by_key, *by_id]} == {202}
    assert len({each.text for each in by_key}) == len({each.text for each in by_id}) == 1
    assert await world.inbox(ada) == ["1", "2"]

    reused = await tell(house, noor, ada, key="a", text="something else")
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
    # Both are their owner's alone, and an id is its service's.
    await tell(house, sam, ada, key="a", text="3")
    await tell(house, sam, ada, id="run 7", text="4")
    await tell(house, noor, ada, id="run 7", service="Backup", text="5")
    assert await world.inbox(ada) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"service": ""}, "service"),
        ({"service": "two\nlines"}, "service"),
        ({"text": "x" * 10_001}, "text"),
        ({"data": ["x" * 262_144]}, "262,144"),
        ({"data": float("nan")}, "NaN"),
        ({"id": ""}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"urgency": True}, "urgency"),
    ],
)
async def test_what_cannot_be_told_is_refused(small_house: House, event: dict[str, Any], says: str) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    answer = await tell(small_house, noor, ada, **event)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert says in answer.json()["detail"]
    assert await world.waiting(ada) == []


async def test_data_may_be_large_but_not_endlessly_deep(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    assert (await tell(small_house, noor, ada, data="x" * 262_142)).status_code == 202
    path = f"/api/agents/{ada.id}/trigger"
    for levels, accepted in [(100, True), (102, False), (900, False), (100_000, False)]:
        content = '{"service": "CI", "data": ' + "[" * levels + "]" * levels + "}"
        answer = await small_house.call("POST", path, noor, headers=JSON, content=content)
        assert (answer.status_code == 202) == accepted, answer.text
        assert answer.status_code in (202, 400, 422)


async def test_what_no_database_can_hold_does_not_stop_it(house: House) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", "Strange.")
    for _ in range(2):
        answer = await tell(house, noor, ada, key="a", text="a\0b", data={"\ud800": ["\udfff\0"]})
        assert answer.status_code == 202
    await world.run()
    assert '   | a\ufffdb\n   | {"\ufffd":["\ufffd\ufffd"]}' in await world.newest_inbox(ada)
