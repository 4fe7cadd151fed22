"""Forgetting over HTTP: who may, what is left, and the receipts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from denizen.access import roles
from denizen.spaces.directory import Entity, Space
from tests.properties.house import everything
from tests.server.conftest import House

SECRET = "Quentin hid the violet xylophone beneath seventeen crooked umbrellas last Thursday."


@dataclass
class Cast:
    noor: Entity
    sam: Entity
    mia: Entity
    eve: Entity
    kitchen: Space
    message: str


@pytest.fixture
async def cast(house: House) -> Cast:
    """Mia has said something in the kitchen, and Ada has heard it. Noor owns the house, Sam is its admin."""
    world = house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, sam, mia = [await world.person(name, organization=home) for name in ("Noor", "Sam", "Mia")]
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    eve = await world.person("Eve", organization=elsewhere)
    ada = await world.agent("Ada", "Heard it.", cycle={"silent_reply": "ignore"}, organization=home)
    kitchen = await world.space("Kitchen", mia, ada, organization=home)
    said = await world.say(mia, SECRET, kitchen)
    await world.run()
    return Cast(noor, sam, mia, eve, kitchen, said.id)


async def forget(house: House, who: Entity, kind: str, id: str, **more: Any) -> httpx2.Response:
    return await house.call("POST", "/api/forget", who, json={"kind": kind, "id": id, **more})


async def kept(house: House) -> str:
    rows = await house.world.denizen.db.read(everything)
    return "\n".join(str(value) for found in rows.values() for row in found for value in row)


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_a_message_is_gone_with_a_receipt(house: House, cast: Cast) -> None:
    rehearsed = await forget(house, cast.sam, "message", cast.message, dry_run=True)
    assert rehearsed.status_code == 200, rehearsed.text
    assert "xylophone" in await kept(house)
    assert (await house.call("GET", "/api/receipts", cast.sam)).json() == {"receipts": [], "next": None}

    done = await forget(house, cast.sam, "message", cast.message)
    again = await forget(house, cast.sam, "message", cast.message)

    assert "xylophone" not in await kept(house)
    assert done.json() == again.json()
    assert (rehearsed.json()["id"], rehearsed.json()["dry_run"]) == (None, True)
    assert rehearsed.json()["removed"] == done.json()["removed"]
    assert done.json()["removed"]["messages"] == 1
    assert (done.json()["by_id"], done.json()["subject_id"]) == (cast.sam.id, cast.message)
    assert (await house.call("GET", "/api/receipts", cast.sam)).json() == {"receipts": [done.json()], "next": None}


async def test_people_and_spaces_are_for_owners(house: House, cast: Cast) -> None:
    for kind, id in [("person", "@mia"), ("space", cast.kitchen.id)]:
        assert outcome(await forget(house, cast.sam, kind, id)) == (403, "not_allowed")
    for who in (cast.mia,):
        assert outcome(await forget(house, who, "message", cast.message)) == (403, "not_allowed")
    assert outcome(await house.call("GET", "/api/receipts", cast.mia)) == (403, "not_allowed")
    assert "xylophone" in await kept(house)

    mia = await forget(house, cast.noor, "person", "@mia")
    kitchen = await forget(house, cast.noor, "space", cast.kitchen.id)

    assert (mia.json()["kind"], mia.json()["subject_id"]) == ("person", cast.mia.id)
    assert kitchen.json()["kind"] == "space"
    left = await kept(house)
    assert "xylophone" not in left
    assert "Mia" not in left
    assert "Kitchen" not in left
    assert (await house.call("GET", "/api/me", cast.mia)).status_code == 401
    first = (await house.call("GET", "/api/receipts", cast.noor, params={"limit": 1})).json()
    second = (await house.call("GET", "/api/receipts", cast.noor, params={"before": first["next"]})).json()
    assert {each["kind"] for each in first["receipts"] + second["receipts"]} == {"person", "space"}
    assert (len(first["receipts"]), len(second["receipts"]), second["next"]) == (1, 1, None)


async def test_what_is_of_others_is_not_there(house: House, cast: Cast) -> None:
    for kind, id in [
        ("message", cast.message),
        ("person", cast.mia.id),
        ("person", "@mia"),
        ("space", cast.kitchen.id),
        ("space", "\0"),
        ("message", "nothing"),
    ]:
        assert outcome(await forget(house, cast.eve, kind, id)) == (404, "not_found")
    done = (await forget(house, cast.sam, "message", cast.message)).json()
    theirs = await house.call("GET", "/api/receipts", cast.eve)
    assert theirs.json()["receipts"] == []
    page = await house.call("GET", "/api/receipts", cast.eve, params={"before": done["id"]})
    assert outcome(page) == (404, "not_found")


async def test_the_last_owner_and_agents_are_not_forgotten(house: House, cast: Cast) -> None:
    for named in ("@noor", "@ada"):
        assert outcome(await forget(house, cast.noor, "person", named)) == (422, "invalid_input")
    await house.world.denizen.db.write(roles.set_role, cast.sam.id, "owner")
    assert (await forget(house, cast.noor, "person", "@sam")).status_code == 200
    wrong = await forget(house, cast.noor, "space", cast.kitchen.id, also_replies=True)
    assert outcome(wrong) == (422, "invalid_input")
