"""Reflection beside a life: never in its way, paid as a cycle is, and whole whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from sqlalchemy import select

from denizen import call, reply, scripted
from denizen.agents.pace import SWEEP_SECONDS
from denizen.agents.residents import first_to_try
from denizen.checker import check_database
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import LEASE_SECONDS
from denizen.cycles.reflecting import reflect_on_next
from denizen.errors import DatabaseUnavailable, NotFound
from denizen.ids import AgentId
from denizen.reflection import records
from denizen.reflection.afterthoughts import Afterthoughts
from denizen.reflection.cursor import AGENT_CURSOR, Claimant
from denizen.reflection.stance_store import AGENTS, ReflectedTurn, Run
from denizen.reflection.state import Adjustment, StateOfMind
from denizen.storage.database import statement
from denizen.storage.schema import call_reservations, reflections, stances
from tests.reflection.kitchens import CROSS, Pondering, kitchen, ponder, runs, say, utility
from tests.world import World, as_text

PATIENT = call("adjust", mood="patient")
CHANGED = (1, "frustration_recovery", "user_frustrated", "changed")


async def test_it_never_delays_the_next_message_and_is_cancelled_cleanly(small_world: World):
    """While a metaprompt is asked, the agent answers; stopped, it leaves the mark, and the next process goes on."""
    pondering = ponder(small_world, PATIENT)
    ada, noor, room = await kitchen(small_world)
    async with small_world.denizen.living() as residents:
        await small_world.say(noor, CROSS, room)
        await pondering.begun.wait()
        await small_world.say(noor, "Are you still there?", room)
        while len(await small_world.transcript(room)) < 4:
            await residents.sweep()
            await asyncio.sleep(0)
        assert (await small_world.denizen.reflection.stance(ada, room)).state == StateOfMind()
    assert await runs(small_world, ada, room) == []
    utility(small_world, PATIENT)
    await small_world.run()
    assert await runs(small_world, ada, room) == [CHANGED]
    assert (await small_world.denizen.reflection.stance(ada, room)).reflected_turns == 2


async def test_reflection_never_touches_the_status_of_its_agent(small_world: World):
    """Elsewhere it saved the state "processing", and wedged the agent."""
    pondering = ponder(small_world, PATIENT)
    ada, noor, room = await kitchen(small_world)
    async with small_world.denizen.living() as residents:
        await small_world.say(noor, CROSS, room)
        await pondering.begun.wait()
        while await small_world.denizen.agents.status(ada) == "alive":  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await small_world.denizen.agents.status(ada) == "sleeping"
        pondering.may_answer.set()
        await residents.run_until_idle()
        assert await small_world.denizen.agents.status(ada) == "sleeping"
    assert await runs(small_world, ada, room) == [CHANGED]


# What happens meanwhile


async def test_what_is_forgotten_while_a_metaprompt_is_asked_does_not_come_back(world: World):
    """The model has read it and repeats it: the cycle is reflected on again, without it. Both calls are paid."""
    pondering = ponder(
        world,
        call("adjust", mood="patient", reason=f"They said: {CROSS}", imprints={"said": CROSS}),
        call("adjust", mood="curious", reason="They ask for tea."),
    )
    ada, noor, room = await kitchen(world)
    async with world.denizen.living() as residents:
        cross = await world.say(noor, CROSS, room)
        await world.say(noor, "I don't understand the kettle.", room)
        await pondering.begun.wait()
        await world.denizen.spaces.forget_message(cross.id)
        pondering.may_answer.set()
        await residents.run_until_idle()
    assert "terrible" not in str(await world.denizen.db.read(lambda tx: [*tx.all(_stances), *tx.all(_reflections)]))
    assert [each[1:] for each in await runs(world, ada, room)] == [
        ("confusion_clarification", "user_confused", "changed")
    ]
    assert "terrible" not in as_text(pondering.model.requests[-1][-1])
    assert (await world.ledger(ada)).count(("usage", "reflection")) == len(pondering.model.requests) > 1
    assert await check_database(world.denizen.db) == []


_stances, _reflections = statement(select(stances)), statement(select(reflections))


async def test_a_try_is_not_applied_where_something_was_forgotten_meanwhile(small_world: World):
    pondering = ponder(small_world, PATIENT)
    ada, noor, room = await kitchen(small_world, profile="off")
    said = await small_world.say(noor, CROSS, room)
    trying = asyncio.ensure_future(
        small_world.denizen.reflection.try_metaprompt(ada, room, "error_recovery", apply=True)
    )
    await pondering.begun.wait()
    await small_world.denizen.spaces.forget_message(said.id)
    pondering.may_answer.set()
    tried = await trying
    assert (tried.applied, tried.run.why_not) == (False, "Something was forgotten meanwhile: ask again.")
    assert await runs(small_world, ada, room) == []


async def test_what_someone_sets_meanwhile_stands(world: World):
    """The answer is to a question that nobody has any more; the turn is over all the same."""
    pondering = ponder(world, PATIENT)
    ada, noor, room = await kitchen(world)
    async with world.denizen.living() as residents:
        await world.say(noor, CROSS, room)
        await pondering.begun.wait()
        await world.denizen.reflection.set_state_of_mind(ada, room, mood="curious")
        await world.denizen.reflection.reset_state_of_mind(ada, room)
        pondering.may_answer.set()
        await residents.run_until_idle()
        await world.say(noor, CROSS, room)
        await residents.run_until_idle()
    assert await runs(world, ada, room) == [
        (None, None, "set", "changed"),
        (None, None, "reset", "changed"),
        (2, "frustration_recovery", "user_frustrated", "changed"),
    ]
    assert (await world.denizen.db.read(AGENTS.counters, ada.id, room.id, noor.id)).turns == 1


async def test_an_agent_that_has_left_meanwhile_keeps_nothing_of_the_conversation(small_world: World):
    pondering = ponder(small_world, PATIENT)
    ada, noor, room = await kitchen(small_world)
    async with small_world.denizen.living() as residents:
        await small_world.say(noor, CROSS, room)
        await pondering.begun.wait()
        trying = asyncio.ensure_future(
            small_world.denizen.reflection.try_metaprompt(ada, room, "error_recovery", apply=True)
        )
        while len(pondering.model.requests) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await small_world.denizen.spaces.leave(room, ada)
        pondering.may_answer.set()
        await residents.run_until_idle()
        with pytest.raises(NotFound):
            await trying
    assert await runs(small_world, ada, room) == []


@pytest.mark.parametrize("how", ["edited", "suspended", "deleted"])
async def test_an_agent_that_shall_not_reflect_any_more_does_not_go_on(small_world: World, how: str):
    """What is under way ends; the cycles after it wait until it shall again, or for ever."""
    pondering = ponder(small_world, PATIENT)
    ada, noor, room = await kitchen(small_world)
    denizen = small_world.denizen
    async with denizen.living() as residents:
        await small_world.say(noor, CROSS, room)
        await pondering.begun.wait()
        await small_world.say(noor, CROSS, room)
        while len(await small_world.cycles(ada)) < 2:
            await residents.sweep()
            await asyncio.sleep(0)
        match how:
            case "edited":
                await denizen.agents.edit(ada, reflection={"profile": "off"})
            case "suspended":
                await denizen.agents.suspend(ada)
            case _:
                await denizen.agents.delete(ada)
        pondering.may_answer.set()
        await residents.run_until_idle()
    assert len(pondering.model.requests) == 1
    if how == "suspended":
        await denizen.agents.resume(ada)
        await small_world.run()
        assert [each[0] for each in await runs(small_world, ada, room)] == [1, 2]
    assert await check_database(denizen.db) == []


# Crashes, and other processes


@pytest.mark.parametrize("point", ["commit:keep_turn", "committed:keep_turn"])
async def test_a_crash_between_the_cycle_and_the_end_of_its_reflection_loses_and_doubles_nothing(
    point: str, small_world: World, broken: Callable[[str], None]
):
    """The cycle stands. The next process reflects on it, unless it has been."""
    utility(small_world, PATIENT, PATIENT)
    ada, noor, room = await kitchen(small_world)
    broken(point)
    await say(small_world, noor, room, CROSS)
    assert len(await small_world.cycles(ada)) == 1
    await small_world.run()
    assert await runs(small_world, ada, room) == [CHANGED]
    assert (await small_world.denizen.reflection.stance(ada, room)).reflected_turns == 1
    assert len(await small_world.denizen.reflection.signals(ada, room)) == 1


async def test_a_process_that_was_faster_leaves_nothing_to_do(small_world: World):
    """Two that reflect on the same cycle keep it once."""
    utility(small_world)
    ada, noor, room = await kitchen(small_world)
    await say(small_world, noor, room, "Hello.")
    late = ReflectedTurn(room.id, 1, {}, [], [Run("m", "interval", Adjustment(mood="patient"))])
    assert not await small_world.denizen.db.write(records.keep_turn, ada.id, 1, [late], forgotten=0, instance="late")
    assert (await small_world.denizen.reflection.stance(ada, room)).state == StateOfMind()


async def test_whom_another_process_lives_with_is_left_to_it(world: World):
    """Until its lease is over."""
    pondering = ponder(world, PATIENT)
    ada, noor, room = await kitchen(world)
    async with world.denizen.living():
        await world.say(noor, CROSS, room)
        await pondering.begun.wait()
    read = world.denizen.db.read
    one, another = Claimant("one", 30), Claimant("another", 30)
    assert await read(records.behind, one) == [ada.id]
    assert await world.denizen.db.write(leases.acquire, ada.id, "another", 30) is not None
    assert await read(records.behind, one) == []
    assert await read(records.behind, another) == [ada.id]
    world.clock.advance(31)
    assert await read(records.behind, one) == [ada.id]


async def test_an_instance_that_starts_meanwhile_does_not_pay_for_the_same_cycle(world: World):
    """The agent sleeps, so no lease says that another instance reflects on its cycle: a claim does."""
    pondering = ponder(world, PATIENT)
    ada, noor, room = await kitchen(world)
    denizen, other = world.denizen, Claimant("other", LEASE_SECONDS)
    async with denizen.living() as residents:
        await world.say(noor, CROSS, room)
        await pondering.begun.wait()
        await residents._settled()
        reflector = denizen.equipment().reflector_of(await denizen.agents.get(ada))
        assert not await reflect_on_next(denizen.db, ada.id, reflector, other)
        # It is frozen for longer than a lease: another takes over, and what it comes back with is refused.
        await denizen.db.write(leases.vanish, denizen.instance)
        assert await denizen.db.write(AGENT_CURSOR.claim, ada.id, 1, other)
        await denizen.db.write(leases.appear, "other", LEASE_SECONDS)
        pondering.may_answer.set()
        await residents.run_until_idle()
    assert len(pondering.model.requests) == 1
    assert await runs(world, ada, room) == []


async def test_what_an_instance_left_that_is_gone_is_reflected_on_by_another(small_world: World):
    """Nobody has to say anything for that."""
    interrupted, pondering = Pondering(PATIENT), Pondering(PATIENT)
    utility(small_world, model=interrupted.model)
    ada, noor, room = await kitchen(small_world)
    denizen = small_world.denizen
    async with denizen.living():
        await small_world.say(noor, CROSS, room)
        await interrupted.begun.wait()
    utility(small_world, model=pondering.model)
    # Which names come first depends on an id made by chance: one of a hundred might not be enough.
    names = (f"another {number}" for number in count())
    another = next(each for each in names if first_to_try(ada.id, [each, denizen.instance]) == each)
    await denizen.db.write(leases.appear, another, LEASE_SECONDS)
    async with denizen.living() as residents:
        await residents.run_until_idle()
        assert pondering.model.requests == []
        await denizen.db.write(leases.vanish, another)
        pondering.may_answer.set()
        small_world.clock.advance(LEASE_SECONDS / 3)
        while another in residents._peers:
            await runs(small_world, ada, room)
        small_world.clock.advance(SWEEP_SECONDS)
        while not await runs(small_world, ada, room):
            pass
    assert await runs(small_world, ada, room) == [CHANGED]


async def test_what_was_put_off_because_of_the_database_is_tried_again():
    """By the sweep. Whoever waits for quiet does not wait for that."""
    tried: list[AgentId] = []

    async def reflect_on_next(agent_id: AgentId) -> bool:
        tried.append(agent_id)
        if len(tried) == 1:
            raise DatabaseUnavailable("Not now.")
        return False

    afterthoughts = Afterthoughts(reflect_on_next)
    afterthoughts.hint(AgentId("ada"))
    await afterthoughts.settled()
    assert not afterthoughts.busy
    for _ in range(2):
        afterthoughts.try_again()
        await afterthoughts.settled()
    assert tried == ["ada", "ada"]


# Budgets


async def test_a_budget_that_is_used_up_leaves_no_room_for_reflection(small_world: World):
    asked = utility(small_world)
    ada, noor, room = await kitchen(small_world)
    await say(small_world, noor, room, "Hello.")
    await small_world.denizen.agents.edit(ada, budget={"tokens": 1})
    tried = await small_world.denizen.reflection.try_metaprompt(ada, room, "frustration_recovery", apply=True)
    assert (tried.run.why_not, tried.applied) == (
        "The budget (agent:total) is not enough for this.",
        False,
    )
    assert asked.requests == []
    assert (await small_world.denizen.reflection.stance(ada, room)).state == StateOfMind()


async def test_a_budget_in_dollars_needs_the_price_of_the_model_that_reflects(small_world: World):
    """Else it would be used up by what nobody counts."""

    class Foreign(type(scripted())):  # a model of no price list
        @property
        def system(self) -> str:
            return "elsewhere"

    utility(small_world, PATIENT).__class__ = Foreign
    ada, _, room = await kitchen(small_world)
    await small_world.denizen.agents.edit(ada, budget={"dollars": 1})
    tried = await small_world.denizen.reflection.try_metaprompt(ada, room, "frustration_recovery")
    assert "the price of 'utility' is unknown" in tried.run.why_not


async def test_room_is_kept_while_a_metaprompt_is_asked_so_that_two_do_not_pass_a_limit(small_world: World):
    """The second is not asked while the first may use what is left; a call that has failed gives its room back."""
    pondering = ponder(small_world, PATIENT)
    ada, noor, room = await kitchen(small_world)
    ben = await small_world.agent("Ben", *[reply("Yes."), "Done."], reflection={"profile": "basic", "model": "utility"})
    await small_world.denizen.spaces.join(room, ben)
    denizen = small_world.denizen
    async with denizen.living():
        await small_world.say(noor, "Hello.", room)
        await denizen.run_until_idle()
        used = sum(each.input_tokens + each.output_tokens for each in await denizen.budgets.spending())
        await denizen.budgets.set(tokens=used + 800)
        first = asyncio.ensure_future(denizen.reflection.try_metaprompt(ada, room, "frustration_recovery"))
        await pondering.begun.wait()
        assert [(each > 0) for each in await kept(small_world)] == [True]
        refused = await denizen.reflection.try_metaprompt(ben, room, "frustration_recovery")
        assert refused.run.why_not.endswith("The budget (organization:total) is not enough for this.")
        pondering.may_answer.set()
        assert (await first).run.adjustment is not None
        assert await kept(small_world) == []
        utility(small_world, RuntimeError("boom"))
        assert (
            await denizen.reflection.try_metaprompt(ben, room, "frustration_recovery")
        ).run.why_not == "RuntimeError: boom"
        assert await kept(small_world) == []


_reservations = statement(select(call_reservations.c.tokens))


async def kept(world: World) -> list[Any]:
    """How many tokens are reserved for each call."""
    return [row[0] for row in await world.denizen.db.read(lambda tx: tx.all(_reservations))]
