"""How long messages are kept, over HTTP: previewed by anyone in the space, set by those who manage it."""

from __future__ import annotations

from tests.server.conftest import House

DAY = 86_400


async def test_a_manager_sets_what_members_may_look_at(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    made = await house.call("POST", "/api/spaces", sam, json={"name": "Den", "members": [noor.id]})
    path = f"/api/spaces/{made.json()['id']}/retention"
    for text in ("One.", "Two."):
        await house.call("POST", f"/api/spaces/{made.json()['id']}/messages", sam, json={"text": text})
    world.clock.advance(100 * DAY)

    told = await house.call("GET", path, noor)
    for_ever = {"days": 0, "archive": False}
    assert told.json() == {**for_ever, "own": False, "default": for_ever, "expired": 0}
    assert (await house.call("GET", f"{path}?days=90", noor)).json()["expired"] == 2
    assert (await house.call("GET", f"{path}?days=101", noor)).json()["expired"] == 0

    made = await house.call("PUT", path, sam, json={"days": 30, "archive": True})
    assert made.json() == {"days": 30, "archive": True, "own": True, "default": for_ever, "expired": 2}
    again = await house.call("PUT", path, sam, json={"days": None})
    assert again.json() == {**for_ever, "own": False, "default": for_ever, "expired": 0}
    audited = (await house.call("GET", "/api/audit", noor)).json()["entries"]
    assert [(each["action"], each["detail"]) for each in audited][:2] == [
        ("set_retention", {}),
        ("set_retention", {"days": 30, "archive": True}),
    ]


async def test_who_does_not_manage_the_space_sets_nothing(house: House) -> None:
    world = house.world
    _, sam, kim, eve = [await world.person(name) for name in ("Noor", "Sam", "Kim", "Eve")]
    space = (await house.call("POST", "/api/spaces", sam, json={"name": "Den", "members": [kim.id]})).json()
    path = f"/api/spaces/{space['id']}/retention"
    refused = await house.call("PUT", path, kim, json={"days": 1})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    for method, body in (("GET", None), ("PUT", {"days": 1})):
        hidden = await house.call(method, path, eve, json=body)
        assert (hidden.status_code, hidden.json()["code"]) == (404, "not_found")
    for wrong in ({"days": -1}, {"days": 40_000}, {}, {"days": "ten"}):
        assert (await house.call("PUT", path, sam, json=wrong)).status_code == 422


async def test_an_owner_sets_the_default(house: House) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    change = {"settings": {"keep_days": 365, "archive_expired": True}}
    assert (await house.call("PATCH", "/api/organization", noor, json=change)).status_code == 200
    told = (await house.call("GET", f"/api/spaces/{kitchen.id}/retention", noor)).json()
    assert (told["days"], told["archive"], told["own"]) == (365, True, False)
    assert (
        await house.call("PATCH", "/api/organization", noor, json={"settings": {"keep_days": -1}})
    ).status_code == 422
