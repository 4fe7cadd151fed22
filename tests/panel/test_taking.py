"""What is to be answered in panels, and the advisors who answer: as their rows tell them."""

from __future__ import annotations

from denizen.inbox.delivery import INTERRUPTED_AT_MOST
from denizen.panel import taking
from denizen.panel.advisors import COLOURS
from denizen.panel.background import PendingTurn
from tests.panel.test_rounds import a_panel, echoing, voices
from tests.world import World


async def test_a_turn_that_is_due_tells_what_was_asked_unless_it_was_deleted(small_world: World) -> None:
    """Whoever looks for memories for a turn looks by its words; several voices of a turn are one turn."""
    world = small_world
    noor, panel = await a_panel(world, voices(echoing), "Seth", "Buber")
    read = world.denizen.db.read
    assert await read(taking.turns_due) == []
    asked = await world.denizen.panels.ask(panel, noor, "Sell or stay?")
    assert await read(taking.turns_due) == [PendingTurn(panel.id, 1, asked.message_id, "Sell or stay?")]
    await world.denizen.spaces.delete_message(asked.message_id, by=noor)
    assert await read(taking.turns_due) == [PendingTurn(panel.id, 1, asked.message_id, "")]


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
        assert len(await write(taking.take, f"process {death}", 30, 10)) == 1
        await write(taking.free_all_of, f"process {death}")
    assert await write(taking.take, "the last", 30, 10) == []
    (reply,) = (await world.denizen.rounds.get(asked)).spoken
    assert (reply.state, reply.error_code) == ("failed", "interrupted")
