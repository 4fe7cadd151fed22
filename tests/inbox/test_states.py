"""What each change of an inbox changes, and that it changes nothing else: neither other events nor those of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from sqlalchemy import bindparam, select, update

from denizen.clock import SECOND
from denizen.errors import NotFound
from denizen.ids import AgentId, CycleId, SpaceId
from denizen.inbox import delivery, statuses
from denizen.inbox.delivery import BACK_OFF_SECONDS, DEAD_AFTER, INTERRUPTED_AT_MOST, TRIED_ALONE_AFTER, Delivery
from denizen.storage.database import Tx, statement
from denizen.storage.schema import events
from tests.world import World

COLUMNS: Final = ("state", "cycle_id", "attempts", "interruptions", "not_before", "lane", "wakes")
_all = statement(select(events.c.agent_id, events.c.id, *(events.c[each] for each in COLUMNS)))
_set = statement(
    update(events)
    .where(events.c.id == bindparam("event"))
    .values({each: bindparam(f"new_{each}") for each in ("state", "attempts", "interruptions", "not_before")})
)

Rows = dict[tuple[str, str], dict[str, Any]]
Change = Callable[[Tx, AgentId, SpaceId], object]
CYCLE: Final = CycleId("cycle-of-ada")
"""It has taken one event of Ada's inbox, another cycle two."""
IN_COMPANY: Final = CycleId("another-cycle-of-ada")


def rows(tx: Tx) -> Rows:
    return {(row[0], row[1]): dict(zip(COLUMNS, row[2:], strict=True)) for row in tx.all(_all)}


async def inboxes(world: World) -> tuple[AgentId, SpaceId]:
    """Of two agents, with the same events: taken, dead, put off and new."""
    noor = await world.person("Noor")
    ada, bee = await world.agent("Ada"), await world.agent("Bee")
    hall, attic = await world.space("Hall", noor, ada, bee), await world.space("Attic", noor, ada, bee)

    def fill(tx: Tx) -> None:
        for agent in (ada, bee):
            names = ("alone", "first", "second", "dead", "dead elsewhere", "dead, nobody waits", "put off", "new")
            delivery.deliver(
                tx,
                [
                    Delivery(
                        agent.id,
                        name,
                        "notice",
                        tx.now,
                        wakes=False,
                        waits=name not in ("dead, nobody waits", "second"),
                        space_id=attic.id if name == "dead elsewhere" else hall.id,
                    )
                    for name in names
                ],
            )
            waiting = {each.id: each for each in delivery.pending(tx, agent.id)}
            mine = agent.id == ada.id
            delivery.take(tx, [waiting["alone"]], CYCLE if mine else CycleId("of-bee"))
            delivery.take(tx, [waiting["first"], waiting["second"]], IN_COMPANY if mine else CycleId("of-bee-too"))
        for name in ("dead", "dead elsewhere", "dead, nobody waits"):
            tx.run(_set, event=name, new_state="dead", new_attempts=5, new_interruptions=1, new_not_before=0)
        tx.run(_set, event="put off", new_state="pending", new_attempts=1, new_interruptions=0, new_not_before=2**60)

    await world.denizen.db.write(fill)
    return ada.id, hall.id


async def changed(world: World, change: Change) -> dict[str, dict[str, Any]]:
    """What the change does to the inbox of Ada: for each event the columns that are different. Nothing else changes."""
    ada, hall = await inboxes(world)

    def do(tx: Tx) -> dict[str, dict[str, Any]]:
        before = rows(tx)
        change(tx, ada, hall)
        after = rows(tx)
        now = {"not_before": tx.now}
        different = {
            key: {
                name: value - now["not_before"] if name == "not_before" and value else value
                for name, value in row.items()
                if value != before[key][name]
            }
            for key, row in after.items()
            if row != before[key]
        }
        assert {agent for agent, _ in different} <= {ada}
        return {name: each for (_, name), each in different.items()}

    return await world.denizen.db.write(do)


PENDING: Final = {"state": "pending", "cycle_id": None}
NEW: Final = {"state": "pending", "attempts": 0, "interruptions": 0, "wakes": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda tx, ada, _: delivery.finish(tx, ada, CYCLE), {"alone": {"state": "done"}}),
        (lambda tx, ada, _: delivery.give_back(tx, ada, CYCLE), {"alone": PENDING}),
        (
            lambda tx, ada, _: delivery.give_back(tx, ada, CYCLE, seconds=3),
            {"alone": {**PENDING, "not_before": 3 * SECOND}},
        ),
        (
            lambda tx, ada, _: delivery.fail(tx, ada, IN_COMPANY),
            {
                "first": {**PENDING, "attempts": 1, "not_before": BACK_OFF_SECONDS[0] * SECOND},
                "second": {**PENDING, "attempts": 1, "not_before": BACK_OFF_SECONDS[0] * SECOND},
            },
        ),
        (lambda tx, ada, _: delivery.fail(tx, ada, CYCLE, delay=False), {"alone": {**PENDING, "attempts": 1}}),
        (
            lambda tx, ada, _: delivery.set_aside(tx, ada, IN_COMPANY, "refused", {}),
            {name: {**PENDING, "attempts": TRIED_ALONE_AFTER} for name in ("first", "second")},
        ),
        (
            lambda tx, ada, _: delivery.set_aside(tx, ada, CYCLE, "refused", {}),
            {"alone": {"state": "dead", "cycle_id": None}},
        ),
        (lambda tx, ada, _: delivery.interrupt(tx, ada, CYCLE), {"alone": {**PENDING, "interruptions": 1}}),
        (lambda tx, ada, _: delivery.requeue(tx, ada, "dead"), {"dead": NEW}),
        (
            lambda tx, ada, _: delivery.try_again(tx, ada),
            {"dead": NEW, "dead elsewhere": NEW, "put off": {"not_before": 0}},
        ),
        (lambda tx, ada, hall: delivery.try_again(tx, ada, hall), {"dead": NEW, "put off": {"not_before": 0}}),
        (lambda tx, ada, _: delivery.mark_urgent(tx, ada, "new"), {"new": {"lane": 0, "wakes": 1}}),
    ],
)
async def test_a_change_changes_its_own_events_only(
    small_world: World, change: Change, expected: dict[str, dict[str, Any]]
) -> None:
    assert await changed(small_world, change) == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda tx, ada, _: delivery.requeue(tx, ada, "new"),
        lambda tx, ada, _: delivery.requeue(tx, ada, "unknown"),
        lambda tx, ada, _: delivery.mark_urgent(tx, ada, "dead"),
    ],
)
async def test_an_event_in_another_state_is_not_found(small_world: World, change: Change) -> None:
    with pytest.raises(NotFound):
        await changed(small_world, change)


async def test_an_event_is_dead_after_its_last_try_and_the_space_shows_it_where_somebody_waits(
    small_world: World,
) -> None:
    ada, hall = await inboxes(small_world)

    def fail(tx: Tx, cycle: CycleId) -> tuple[list[str], set[str]]:
        return [each.id for each in delivery.fail(tx, ada, cycle)], {each.cause for each in statuses.of_space(tx, hall)}

    def try_often(tx: Tx) -> None:
        last = {"new_attempts": DEAD_AFTER - 1, "new_interruptions": 0, "new_not_before": 0}
        for name in ("alone", "second"):
            tx.run(_set, event=name, new_state="taken", **last)

    await small_world.denizen.db.write(try_often)
    assert await small_world.denizen.db.write(fail, IN_COMPANY) == (["second"], {"failing"})
    assert await small_world.denizen.db.write(fail, CYCLE) == (["alone"], {"failing", "gave_up"})
    after = await small_world.denizen.db.read(rows)
    assert [after[ada, each]["state"] for each in ("alone", "first", "second")] == ["dead", "pending", "dead"]


@pytest.mark.parametrize(
    ("cycle", "before", "dead"),
    [
        (CYCLE, INTERRUPTED_AT_MOST - 2, False),
        (CYCLE, INTERRUPTED_AT_MOST - 1, True),
        (IN_COMPANY, INTERRUPTED_AT_MOST + 5, False),
    ],
)
async def test_only_an_event_during_which_alone_processes_died_is_set_aside(
    small_world: World, cycle: CycleId, before: int, dead: bool
) -> None:
    def interrupt(tx: Tx, ada: AgentId, hall: SpaceId) -> None:
        for each in delivery.taken(tx, ada, cycle):
            tx.run(_set, event=each.id, new_state="taken", new_attempts=0, new_interruptions=before, new_not_before=0)
        delivery.interrupt(tx, ada, cycle)
        assert [each.cause for each in statuses.of_space(tx, hall)] == (["interrupted"] if dead else [])

    ada, hall = await inboxes(small_world)
    await small_world.denizen.db.write(interrupt, ada, hall)
    after = await small_world.denizen.db.read(rows)
    names = ["alone"] if cycle == CYCLE else ["first", "second"]
    assert [after[ada, each]["state"] for each in names] == ["dead" if dead else "pending"] * len(names)
    assert {after[ada, each]["interruptions"] for each in names} == {before + 1}


@pytest.mark.parametrize(("tries", "seconds"), [(0, 0), (1, 1), (2, 4), (3, 15), (4, 60), (5, 60), (99, 60)])
def test_the_wait_after_a_failure_grows_up_to_a_minute(tries: int, seconds: int) -> None:
    assert delivery.back_off(tries) == seconds


async def test_an_event_is_open_until_it_is_done(small_world: World) -> None:
    noor = await small_world.person("Noor")
    ada, bee = await small_world.agent("Ada"), await small_world.agent("Bee")
    hall = await small_world.space("Hall", noor, ada, bee)
    said = await small_world.say(noor, "Tea?", hall)
    await small_world.say(noor, "Cake?", hall)

    def is_open(tx: Tx) -> bool:
        return len(delivery.open_about(tx, ada.id, hall.id, said.id)) == 1

    def end(tx: Tx) -> list[bool]:
        states = [is_open(tx)]
        delivery.take(tx, delivery.pending(tx, ada.id), CYCLE)
        states.append(is_open(tx))
        delivery.finish(tx, ada.id, CYCLE)
        return [*states, is_open(tx)]

    assert await small_world.denizen.db.write(end) == [True, True, False]


@pytest.mark.parametrize("urgent", [False, True])
async def test_only_a_normal_event_that_is_tried_later_holds_up_its_space(small_world: World, urgent: bool) -> None:
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    hall = await small_world.space("Hall", noor, ada)

    def is_due(tx: Tx) -> bool:
        first = Delivery(ada.id, "first", "notice", tx.now, urgent=urgent, space_id=hall.id)
        delivery.deliver(tx, [first, Delivery(ada.id, "second", "notice", tx.now, space_id=hall.id)])
        tx.run(_set, event="first", new_state="pending", new_attempts=1, new_interruptions=0, new_not_before=2**60)
        return tx.all(statement(delivery.WITH_DUE_EVENTS), now=tx.now) == [(ada.id,)]

    assert await small_world.denizen.db.write(is_due) == urgent


async def test_a_status_is_shown_where_somebody_waits(small_world: World) -> None:
    ada, hall = await inboxes(small_world)

    def show(tx: Tx, name: str) -> list[str]:
        waiting = {each.id: each for each in [*delivery.pending(tx, ada), *delivery.dead(tx, ada)]}
        statuses.show_for(tx, ada, [waiting[name]], "refused", {})
        return [each.cause for each in statuses.of_space(tx, hall)]

    assert await small_world.denizen.db.write(show, "dead, nobody waits") == []
    assert await small_world.denizen.db.write(show, "dead elsewhere") == []
    assert await small_world.denizen.db.write(show, "dead") == ["refused"]
