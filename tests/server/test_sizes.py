"""How much of the database each organization uses, over HTTP and in doctor."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from denizen.access import roles
from denizen.cli import size_check
from denizen.spaces import sizes
from denizen.spaces.directory import Entity
from denizen.spaces.sizes import divided
from tests.server.conftest import House

DAY = 86_400


@given(st.integers(0, 10**12), st.dictionaries(st.text(max_size=3), st.integers(0, 10**9), min_size=1, max_size=6))
def test_shares_follow_the_weights(whole: int, weights: dict[str, float]) -> None:
    parts = divided(whole, weights)
    assert parts.keys() == weights.keys()
    if any(weights.values()):
        assert whole - len(parts) - 1 <= sum(parts.values()) <= whole + len(parts)
    assert all(part >= 0 and (weights[id] or part == 0) for id, part in parts.items())
    assert sorted(parts, key=lambda id: (parts[id], weights[id])) == sorted(
        parts, key=lambda id: (weights[id], parts[id])
    )


async def size(house: House, who: Entity, *, of_all: bool = False) -> Any:
    answer = await house.call("GET", f"/api/organization/size{'?all_organizations=true' if of_all else ''}", who)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_what_grows_is_told_day_by_day(house: House) -> None:
    """The operator sees every organization, others only their own. A day is measured once."""
    world = house.world
    noor = await world.person("Noor")
    elsewhere = await world.denizen.organizations.create("Elsewhere")
    sam = await world.person("Sam", organization=elsewhere)
    home = noor.organization_id
    ada = await world.agent("Ada", "Noted.", cycle={"silent_reply": "ignore"}, organization=home)
    kitchen = await world.space("Kitchen", noor, ada, organization=home)
    await world.denizen.spaces.post(kitchen, noor, "Tea is ready. " * 50)
    await world.run()

    first = await size(house, noor, of_all=True)
    assert first["may_see_all"]
    assert first["bytes_per_day"] is None
    assert [each["messages"] for each in first["days"]] == [1]
    assert sum(each["bytes"] for each in first["organizations"]) <= first["database_bytes"]
    assert {each["name"] for each in first["organizations"]} >= {"Elsewhere", first["name"]}
    assert first["organizations"][0]["bytes"] == first["bytes"] > 0

    for _ in range(20):
        await world.denizen.spaces.post(kitchen, noor, "More tea is ready. " * 200)
    assert (await size(house, noor))["days"] == first["days"]
    world.clock.advance(2 * DAY)
    later = await size(house, noor)
    assert [each["messages"] for each in later["days"]] == [1, 21]
    assert later["days"][-1]["cycles"] == 1
    assert later["bytes_per_day"] == round((later["bytes"] - first["bytes"]) / 2)

    own = await size(house, noor)
    assert (own["bytes"], own["database_bytes"], own["organizations"]) == (later["bytes"], None, [])
    theirs = await size(house, sam)
    assert (theirs["name"], theirs["database_bytes"], theirs["organizations"]) == ("Elsewhere", None, [])
    assert not theirs["may_see_all"]

    said = (await world.denizen.db.read(size_check.examine)).said
    assert f"{first['name']}: about " in said
    assert " a day." in said


async def test_an_organization_made_today_has_no_size_yet(house: House) -> None:
    noor = await house.world.person("Noor")
    await size(house, noor)
    new = await house.world.denizen.organizations.create("New")
    told = await size(house, await house.world.person("Mia", organization=new))
    assert (told["bytes"], told["days"]) == (0, [])


async def test_sizes_are_for_admins(house: House) -> None:
    noor = await house.world.person("Noor")
    mia = await house.world.person("Mia", organization=noor.organization_id)
    answer = await house.call("GET", "/api/organization/size", mia)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


async def test_sizes_of_other_organizations_are_for_operators(house: House) -> None:
    """Not for admins of the first organization, nor for owners of another."""
    world = house.world
    noor = await world.person("Noor")
    mia = await world.person("Mia", organization=noor.organization_id)
    await world.denizen.db.write(roles.set_role, mia.id, "admin")
    sam = await world.person("Sam", organization=await world.denizen.organizations.create("Elsewhere"))
    for who in (mia, sam):
        answer = await house.call("GET", "/api/organization/size?all_organizations=true", who)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        assert not (await size(house, who))["may_see_all"]


async def test_an_instance_measures_once_a_day(house: House) -> None:
    """Its regular look back does it, whoever asks."""
    world = house.world
    noor = await world.person("Noor")
    async with world.denizen.living() as residents:
        for _ in range(3):
            world.clock.advance(DAY)
            await residents.measure()
            await residents.measure()
    grown = await world.denizen.db.read(sizes.of_organization, noor.organization_id)
    assert grown is not None
    days = [each.day for each in grown.days]
    assert len(days) >= 3
    assert days == [*range(days[0], days[0] + len(days))]
