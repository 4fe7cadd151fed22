"""Who may connect what with what."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from denizen import failpoints, reply
from denizen.access import audit, roles
from denizen.access.audit import Actor, AuditFilter
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.vault import new_key
from denizen.bridges import registry as bridge_registry
from denizen.clock import ManualClock
from denizen.consciousness import lease as leases
from denizen.errors import InvalidInput, NotAllowed, NotFound, OutcomeUnknown
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, statement
from denizen.storage.schema import addresses, bridges, carried, channels, metadata, outbox
from tests.bridges.conformance import ROOM, build
from tests.bridges.in_process import Harbour
from tests.world import World, open_world

_COUNTS = {table.name: statement(select(table)) for table in (bridges, channels, addresses, carried, outbox)}


def requester(person: Entity, role: Role) -> Requester:
    return Requester(Actor(person.id), person.organization_id, role)


async def with_role(world: World, name: str, role: Role) -> tuple[Entity, Requester]:
    person = await world.person(name)
    await world.denizen.db.write(roles.set_role, person.id, role)
    return person, requester(person, role)


def _rows(tx: Tx) -> dict[str, int]:
    return {name: len(tx.all(query)) for name, query in _COUNTS.items()}


async def test_bridges_are_for_admins(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    _, sam = await with_role(bay, "Sam", "member")
    channel = (await bay.denizen.bridges.get(pier.bridge)).channels[0]
    denied: list[Any] = [
        bay.denizen.bridges.create("Mine", "harbour", {}, by=sam),
        bay.denizen.bridges.list(by=sam),
        bay.denizen.bridges.get(pier.bridge, by=sam),
        bay.denizen.bridges.change(pier.bridge, {}, by=sam),
        bay.denizen.bridges.retry(pier.bridge, by=sam),
        bay.denizen.bridges.remove(pier.bridge, by=sam),
        bay.denizen.bridges.connect(pier.bridge, pier.space, "mole", by=sam),
    ]
    for each in denied:
        with pytest.raises(NotAllowed):
            await each
    with pytest.raises(NotFound):
        await bay.denizen.bridges.disconnect(channel, by=sam)


async def test_bridges_of_another_organization_do_not_exist(bay: World, harbour: Harbour) -> None:
    home = await bay.denizen.organizations.create("Home")
    noor = await bay.person("Noor", organization=home)
    bridge, _ = await bay.denizen.bridges.create("Harbour", "harbour", {}, organization=home)
    elsewhere = await bay.denizen.organizations.create("Elsewhere")
    eve = requester(await bay.person("Eve", organization=elsewhere), "owner")
    space = await bay.space("Theirs", noor, organization=home)
    for each in (
        bay.denizen.bridges.get(bridge, by=eve),
        bay.denizen.bridges.remove(bridge, by=eve),
        bay.denizen.bridges.connect(bridge, space, ROOM, by=eve),
        bay.denizen.bridges.send_code(bridge, "@eve:harbour", eve),
    ):
        with pytest.raises(NotFound):
            await each
    assert await bay.denizen.bridges.list(by=eve) == []


async def test_an_admin_cannot_let_others_read_a_space_they_are_not_in(bay: World, harbour: Harbour) -> None:
    """Nor a private one that they do not manage."""
    pier = await build(bay, harbour)
    sam, admin = await with_role(bay, "Sam", "admin")
    secret = await bay.space("Secret", pier.noor, private=True)
    with pytest.raises(NotFound):
        await bay.denizen.bridges.connect(pier.bridge, secret, "mole", by=admin)
    await bay.denizen.spaces.join(secret, sam)
    with pytest.raises(NotAllowed, match="private space"):
        await bay.denizen.bridges.connect(pier.bridge, secret, "mole", by=admin)


async def test_secrets_and_private_addresses_are_for_owners(bay: World, harbour: Harbour) -> None:
    await bay.person("Noor")
    _, admin = await with_role(bay, "Sam", "admin")
    for settings in ({"token": "${HARBOUR_TOKEN}"}, {"allow_private": ["10.0.0.1"]}):
        with pytest.raises(NotAllowed, match="owners"):
            await bay.denizen.bridges.create("Harbour", "harbour", settings, by=admin)
    elsewhere = await bay.denizen.organizations.create("Elsewhere")
    eve = requester(await bay.person("Eve", organization=elsewhere), "owner")
    with pytest.raises(NotAllowed, match="private_hosts"):
        await bay.denizen.bridges.create("Mine", "harbour", {"allow_private": ["10.0.0.1"]}, by=eve)


async def test_wrong_settings_say_what_is_wrong(bay: World, harbour: Harbour) -> None:
    await bay.person("Noor")
    with pytest.raises(InvalidInput, match="no kind of bridge 'pigeon'"):
        await bay.denizen.bridges.create("Mail", "pigeon", {})
    with pytest.raises(InvalidInput, match="tokn"):
        await bay.denizen.bridges.create("Harbour", "harbour", {"tokn": "x"})
    bridge, _ = await bay.denizen.bridges.create("Harbour", "harbour", {})
    panel = await bay.denizen.panels.create("Board")
    with pytest.raises(InvalidInput, match="panel"):
        await bay.denizen.bridges.connect(bridge, panel.id, ROOM)
    with pytest.raises(InvalidInput, match="1 to 255"):
        await bay.denizen.bridges.connect(bridge, await bay.space("Pier"), "x" * 256)


async def test_a_room_is_connected_with_one_space(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    again = await bay.denizen.bridges.connect(pier.bridge, pier.space, ROOM)
    assert again.room == ROOM
    other = await bay.space("Other", pier.noor)
    with pytest.raises(InvalidInput, match="another space"):
        await bay.denizen.bridges.connect(pier.bridge, other, ROOM)


async def test_the_space_knows_that_others_read(bay: World, harbour: Harbour) -> None:
    """The bridge is a member, and a notice says so; removed from the space, it carries nothing."""
    pier = await build(bay, harbour)
    assert [each.entity.name for each in await bay.denizen.spaces.members(pier.space)] == ["Noor", "Harbour"]
    assert (await bay.transcript(pier.space))[0].startswith("Harbour: Harbour connects this space with pier")
    await bay.denizen.spaces.leave(pier.space, pier.bridge.entity_id)
    await pier.say("Only among us")
    await harbour.write(ROOM, "Eve", "Hello?")
    await pier.run()
    assert harbour.said == []
    assert await pier.lines() == ["Noor: Only among us"]
    await bay.denizen.bridges.connect(pier.bridge, pier.space, ROOM)
    await pier.say("Hello")
    await pier.run()
    assert harbour.said == [f"{ROOM}: Noor: Hello"]


async def test_a_removed_bridge_leaves_nothing_but_what_was_said(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve", "Ahoy!")
    await pier.run()
    await pier.say("Never sent")
    await bay.denizen.bridges.remove(pier.bridge)
    await pier.run()
    assert await bay.denizen.db.read(_rows) == {"bridges": 0, "channels": 0, "addresses": 0, "carried": 0, "outbox": 0}
    assert harbour.said == []
    assert await pier.lines() == ["Eve: Ahoy!", "Noor: Never sent"]
    assert [each.entity.name for each in await bay.denizen.spaces.members(pier.space)] == ["Noor", "Eve"]


async def test_changes_of_bridges_are_in_the_audit_log(bay: World, harbour: Harbour) -> None:
    noor = await bay.person("Noor")
    by = requester(noor, "owner")
    space = await bay.space("Pier", noor)
    bridge, _ = await bay.denizen.bridges.create("Harbour", "harbour", {}, by=by)
    channel = await bay.denizen.bridges.connect(bridge, space, ROOM, by=by)
    await bay.denizen.bridges.change(bridge, {"history_minutes": 5}, by=by)
    await bay.denizen.bridges.retry(bridge, by=by)
    await bay.denizen.bridges.disconnect(channel, by=by)
    await bay.denizen.bridges.remove(bridge, by=by)
    found = await bay.denizen.db.read(
        audit.entries, noor.organization_id, noor.id, AuditFilter(kind="bridges"), limit=20
    )
    assert [each.action for each in reversed(found)] == [
        "create_bridge",
        "connect_room",
        "change_bridge",
        "retry_bridge",
        "disconnect_room",
        "remove_bridge",
    ]
    assert all(each.by is not None and each.by.id == noor.id for each in found)


async def test_a_missing_secret_parks_the_bridge(bay: World, harbour: Harbour) -> None:
    """With the reason; once the secret is there and somebody tries again, it works."""
    harbour.settings = {"token": "${HARBOUR_TOKEN}"}
    pier = await build(bay, harbour)
    await pier.say("Hello")
    await pier.run()
    assert harbour.said == []
    report = await bay.denizen.bridges.get(pier.bridge)
    assert "HARBOUR_TOKEN is missing" in (report.bridge.parked_reason or "")
    await bay.denizen.secrets.set("HARBOUR_TOKEN", "good")
    await bay.denizen.bridges.retry(pier.bridge)
    await pier.run()
    assert harbour.said == [f"{ROOM}: Noor: Hello"]


async def test_forgetting_covers_what_bridges_keep(bay: World, harbour: Harbour) -> None:
    """A forgotten guest's account, and the rooms of a forgotten space, are nowhere any more."""
    pier = await build(bay, harbour)
    await harbour.write(ROOM, "Eve", "My xylophone is a secret.")
    await pier.run()
    posted = await pier.say("Meet me at the xylophone at noon, everyone.")
    await pier.run()
    await bay.denizen.spaces.forget_message(posted.id)
    await pier.run()
    assert harbour.said[-1] == f"{ROOM}: delete (out-1)"
    await bay.denizen.people.forget(await bay.denizen.people.find("eve-harbour"))
    assert await _kept(bay, "eve:harbour", "xylophone", "Eve") == []
    await bay.denizen.spaces.forget(pier.space)
    assert await _kept(bay, ROOM) == []


async def _kept(world: World, *words: str) -> list[str]:
    rows = {table.name: statement(select(table)) for table in metadata.sorted_tables}

    def kept(tx: Tx) -> list[str]:
        return [f"{name} {row}" for name, query in rows.items() for row in tx.all(query)]

    return [each for each in await world.denizen.db.read(kept) if any(word in each for word in words)]


async def test_private_words_do_not_cross_a_bridge(bay: World, harbour: Harbour) -> None:
    """What an agent heard in private is refused in a space that others elsewhere read, as with any stranger."""
    words = "the combination of the safe is nine eight seven six five four"
    ada = await bay.agent("Ada", reply(f"I know: {words}"), "Told everyone.", "Done.", "Done.")
    noor = await bay.person("Noor")
    private = await bay.space("Private", noor, ada, private=True)
    await bay.say(noor, words, private)
    await bay.run()
    bridge = await harbour.attach(bay)
    space = await bay.space("Pier", noor, ada)
    await bay.denizen.bridges.connect(bridge, space, ROOM)
    await bay.say(noor, "@ada what do you know?", space)
    await bay.run()
    assert not any(words in each for each in harbour.said)


async def test_a_clock_that_is_set_back_holds_up_no_message(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    await pier.run()
    await pier.say("Hello")
    bay.clock.advance(-1_800)
    await pier.run()
    assert harbour.said == [f"{ROOM}: Noor: Hello"]


async def test_a_bridge_of_a_dead_process_is_taken_over_after_the_clock_was_set_back(
    ready_url: str, harbour: Harbour
) -> None:
    """Its lease ends in half an hour, by a clock that had been wrong."""
    async with open_world(ready_url, bridge_kinds=[harbour.kind], secret_key=new_key()) as before:
        pier = await build(before, harbour)
        await before.denizen.db.write(leases.appear, "dead", 30)
        assert await before.denizen.db.write(bridge_registry.take_leases, "dead", 30)
        await pier.say("Hello")
    clock = ManualClock()
    clock.advance(-1_800)
    async with (
        open_world(ready_url, bridge_kinds=[harbour.kind], clock=clock, secret_key=new_key()) as world,
        world.denizen.living(),
    ):
        await world.run()
        assert harbour.said == []
        world.clock.advance(31)
        await world.run()
        await world.run()
    assert harbour.said == [f"{ROOM}: Noor: Hello"]


async def test_a_lease_that_was_given_unheard_is_given_again(ready_url: str, harbour: Harbour) -> None:
    """It was renewed with that of another bridge, for ever, and nobody carried a message."""

    def fail() -> None:
        failpoints.disarm()
        raise OutcomeUnknown("The connection broke.")

    async with (
        open_world(ready_url, bridge_kinds=[harbour.kind], secret_key=new_key()) as world,
        world.denizen.living(),
    ):
        pier = await build(world, harbour)
        await pier.run()
        failpoints.arm("committed:take_leases", fail)
        try:
            bridge = await harbour.attach(world)
            with suppress(OutcomeUnknown):
                await world.run()
        finally:
            failpoints.disarm()
        quay = await world.space("Quay", pier.noor)
        await world.denizen.bridges.connect(bridge, quay, "quay")
        await world.say(pier.noor, "Hello", quay)
        for _ in range(8):
            await world.run_after(10)
    assert harbour.said == ["quay: Noor: Hello"]


async def test_a_parked_bridge_tries_again_after_the_clock_was_set_back(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    harbour.forbid()
    await pier.say("Hello")
    await pier.run()
    assert harbour.said == []
    harbour.permit()
    await pier.run()
    assert harbour.said == []
    bay.clock.advance(-86_400)
    await pier.run()
    assert harbour.said == [f"{ROOM}: Noor: Hello"]


async def test_a_defect_in_opening_parks_the_bridge_and_is_logged_once(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    harbour.broken = True
    await bay.denizen.bridges.retry(pier.bridge)
    with capture_logs() as logs:
        for _ in range(3):
            await pier.run_after(60)
    assert [each["event"] for each in logs if "defect" in each["event"]] == ["bridge interrupted by a defect"]
    (notice,) = await pier.notices()
    assert "is disconnected: Something went wrong in the bridge." in notice
    harbour.broken = False
    await pier.say("Hello")
    await pier.run_after(3600)
    assert harbour.said == [f"{ROOM}: Noor: Hello"]
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.parked_reason is None
