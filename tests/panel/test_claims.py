"""What is to be answered in panels, and the advisors who answer: as their rows tell them."""

from __future__ import annotations

import asyncio

from pydantic_ai.messages import ModelMessage
from sqlalchemy import func, select

from denizen import Runtime
from denizen.bus.hearing import hearing_others
from denizen.bus.local import LocalBus
from denizen.bus.streams import PANEL
from denizen.clock import SECOND
from denizen.inbox.delivery import INTERRUPTED_AT_MOST
from denizen.leased_tasks import RENEWALS_PER_LEASE
from denizen.models.scripted import Info, Turn
from denizen.panel import claims
from denizen.panel.advisors import COLOURS
from denizen.panel.background import PendingTurn
from denizen.panel.moderator import Moderator
from denizen.storage.database import statement, value
from denizen.storage.schema import replies
from tests.panel.test_rounds import a_panel, echoing, until, voices
from tests.world import UNHURRIED, World

_lease_ends = statement(select(func.max(replies.c.until)))


async def test_a_turn_that_is_due_tells_what_was_asked_unless_it_was_deleted(small_world: World) -> None:
    """Whoever looks for memories for a turn looks by its words; several voices of a turn are one turn."""
    world = small_world
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    read = world.denizen.db.read
    assert await read(claims.turns_due) == []
    asked = await world.denizen.panels.ask(panel, noor, "Sell or stay?")
    assert await read(claims.turns_due) == [PendingTurn(panel.id, 1, asked.message_id, "Sell or stay?")]
    await world.denizen.spaces.delete_message(asked.message_id, by=noor)
    assert await read(claims.turns_due) == [PendingTurn(panel.id, 1, asked.message_id, "")]


async def test_advisors_stand_in_the_order_in_which_they_came_each_in_the_next_colour(small_world: World) -> None:
    world = small_world
    _, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    await world.denizen.advisors.add(panel, "Pema", {"name": "Ada", "colour": "#ABCDEF"})
    there = await world.denizen.advisors.list(panel)
    assert [(each.name, each.position) for each in there] == [("Seth", 1), ("Buber", 2), ("Pema", 3), ("Ada", 4)]
    assert [each.colour for each in there] == [*COLOURS[:3], "#abcdef"]
    first = there[0]
    await world.denizen.advisors.remove(panel, first)
    (late,) = await world.denizen.advisors.add(panel, "Noor")
    assert (late.position, late.colour) == (5, COLOURS[3])


async def test_many_deaths_of_the_process_do_not_count_against_a_reply(small_world: World) -> None:
    """Whoever was killed ten times in a row still answers; only after fifty does it seem to have died of the reply."""
    world = small_world
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    write = world.denizen.db.write
    asked = await world.denizen.panels.ask(panel, noor, "Sell or stay?")
    for death in range(INTERRUPTED_AT_MOST):
        assert len(await write(claims.take, f"process {death}", 30, 10)) == 1
        await write(claims.free_all_of, f"process {death}")
    assert await write(claims.take, "the last", 30, 10) == []
    (reply,) = (await world.denizen.rounds.get(asked)).spoken
    assert (reply.state, reply.error_code) == ("failed", "interrupted")


async def test_a_reply_says_when_it_began_and_ended(small_world: World) -> None:
    """The page of the panel tells how long each voice took."""
    world = small_world

    def thinking_for_long(_who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        world.clock.advance(5)
        return "Sell."

    noor, panel = await a_panel(world, voices(thinking_for_long), "Seth")
    asked = await world.denizen.panels.ask(panel, noor, "Sell or stay?")
    assert [(each.started_at, each.ended_at) for each in asked.spoken] == [(None, None)]
    began = world.clock.now()
    await world.run()
    (reply,) = (await world.denizen.rounds.get(asked)).spoken
    assert (reply.started_at, reply.ended_at) == (began, began + 5 * SECOND)


async def test_an_advisor_that_thinks_for_long_keeps_its_lease(small_world: World) -> None:
    """Nobody else is asked in its place, however often its lease would have ended."""
    world, begun, may_go_on = small_world, asyncio.Event(), asyncio.Event()

    async def think(_who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        begun.set()
        await may_go_on.wait()
        return "Sell."

    async def until_renewed(lease_ends: int) -> int:
        while (now := await world.denizen.db.read(value, _lease_ends)) == lease_ends:
            pass
        return now

    noor, panel = await a_panel(world, voices(think), "Seth", first_byte_seconds=600)
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Sell or stay?")
        await begun.wait()
        lease_ends = await world.denizen.db.read(value, _lease_ends)
        for _ in range(RENEWALS_PER_LEASE + 1):
            await world.clock.sleeper(world.denizen.lease_seconds / RENEWALS_PER_LEASE)
            world.clock.advance(world.denizen.lease_seconds / RENEWALS_PER_LEASE)
            lease_ends = await until_renewed(lease_ends)
        assert await world.denizen.db.write(claims.take, "another process", 30, 10) == []
        may_go_on.set()
        await world.run()
    (reply,) = (await world.denizen.rounds.get(asked)).spoken
    assert (reply.text, reply.epoch, reply.attempts) == ("Sell.", 1, 1)


async def test_what_another_process_asks_is_answered_at_once(small_world: World) -> None:
    """It hints on the bus: no sweep is needed."""
    world, bus = small_world, LocalBus()
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    async with Runtime(world.url, clock=world.clock, models={"m": voices(echoing)}, pace=UNHURRIED) as other:
        moderator = Moderator(other.panel_deps(), instance="here", pace=UNHURRIED)
        hearing = hearing_others(bus, PANEL, "here", lambda _: moderator.hint(), missed=moderator.hint)
        async with moderator, hearing:
            # The first sweep finds nothing.
            await moderator.run_until_idle()
            asked = await world.denizen.panels.ask(panel, noor, "Sell or stay?")
            bus.publish(PANEL, {"space": panel.id, "by": "elsewhere"})
            await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
