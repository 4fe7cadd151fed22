"""An owner opens a private space for an hour: its members are told, and the audit log keeps it."""

from __future__ import annotations

from denizen import reply
from denizen.access import roles
from denizen.checker import check_database
from tests.server.conftest import House

WORD = "nightingale"


async def test_an_owner_reads_for_an_hour_and_the_members_are_told(house: House) -> None:
    world = house.world
    olga, noor, amin = [await world.person(name) for name in ("Olga", "Noor", "Amin")]
    await world.denizen.db.write(roles.set_role, amin.id, "admin")
    ada = await world.agent("Ada", reply("I keep it."), f"Kept {WORD}.")
    den = await world.space("Den", noor, ada, private=True)
    await world.say(noor, f"The word is {WORD}.", den)
    await world.run()

    async def seen_by(who) -> bool:
        log = await house.call("GET", f"/api/agents/{ada.id}/log", who)
        said = await house.call("GET", f"/api/spaces/{den.id}/messages", who)
        assert (said.status_code == 200) == (WORD in log.text)
        return WORD in said.text

    cycle = (await house.call("GET", f"/api/agents/{ada.id}/cycles/1", olga)).json()
    assert cycle["private_spaces"] == [den.id]
    assert (await house.call("GET", f"/api/agents/{ada.id}/cycles/1", amin)).json()["private_spaces"] == []
    assert not await seen_by(olga)

    path, body = f"/api/spaces/{den.id}/open", {"reason": "A complaint has come."}
    assert (await house.call("POST", path, amin, json=body)).status_code == 403
    assert (await house.call("POST", path, olga, json={"reason": " "})).status_code == 422
    opened = await house.call("POST", path, olga, json=body)
    assert opened.status_code == 201
    assert await seen_by(olga)
    assert not await seen_by(amin)

    await world.run()
    said = (await house.call("GET", f"/api/spaces/{den.id}/messages", noor)).json()["messages"]
    notice = said[-1]
    assert notice["author"]["name"] == "Olga"
    assert (
        "opened this private space to read it, until 2026-01-05 10:00 UTC. Reason: A complaint has come."
        in (notice["text"])
    )
    # The agent has it in its inbox, and is not woken by it.
    assert len(said) == 3
    assert await world.inbox(ada) == [notice["text"]]
    await world.denizen.spaces.join(den, olga)
    deleted = await house.call("DELETE", f"/api/spaces/{den.id}/messages/{notice['id']}", olga)
    assert (deleted.status_code, deleted.json()["code"]) == (403, "not_allowed")
    assert (await house.call("POST", path, olga, json=body)).status_code == 422
    await world.denizen.spaces.leave(den, olga)

    [entry] = (await house.call("GET", "/api/audit?kind=private%20spaces", amin)).json()["entries"]
    assert (entry["action"], entry["by"]["name"], entry["reason"]) == (
        "open_private_space",
        "Olga",
        "A complaint has come.",
    )
    assert entry["detail"]["space"] == den.id
    assert "Den" not in str(entry)
    assert await check_database(world.denizen.db) == []

    world.clock.advance(3_601)
    assert not await seen_by(olga)


async def test_an_owner_no_more_reads_no_more(small_house: House) -> None:
    world = small_house.world
    olga, noor = await world.person("Olga"), await world.person("Noor")
    den = await world.space("Den", noor, private=True)
    await world.say(noor, WORD, den)
    await small_house.call("POST", f"/api/spaces/{den.id}/open", olga, json={"reason": "A complaint."})
    assert (await small_house.call("GET", f"/api/spaces/{den.id}/messages", olga)).status_code == 200
    await world.denizen.db.write(roles.set_role, noor.id, "owner")
    await world.denizen.db.write(roles.set_role, olga.id, "admin")
    assert (await small_house.call("GET", f"/api/spaces/{den.id}/messages", olga)).status_code == 404
