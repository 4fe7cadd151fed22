"""Reflection in panels: each advisor makes its own of how people feel, beside the rounds, and is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import select

from denizen import Runtime, call
from denizen.agents.residents import LOOK_BACK_SECONDS
from denizen.checker import check_database
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import LEASE_SECONDS
from denizen.errors import InvalidInput, ModelRejected, NotFound
from denizen.models.prices import Usage
from denizen.models.scripted import Info, ScriptedModel, Turn, forever
from denizen.panel import advisor_stances, reflection_cursor
from denizen.panel.advisors import Advisor
from denizen.panel.panels import Panel
from denizen.panel.reflecting import PanelReflection, panel_utility_budget
from denizen.reflection.cursor import PANEL_CURSOR, Claimant
from denizen.reflection.settings import Manual, Metaprompt
from denizen.reflection.stance_store import VOICES, ReflectedTurn, Run
from denizen.reflection.state import Adjustment, StateOfMind
from denizen.spaces.directory import Entity
from denizen.storage.database import statement
from denizen.storage.schema import voice_feelings, voice_reflections, voice_signals, voice_stances
from tests.panel.test_rounds import voices
from tests.reflection.kitchens import CROSS, ponder, utility
from tests.world import World, as_text, open_world

PATIENT = call("adjust", mood="patient")


def saying(who: str, messages: list[ModelMessage], _info: Info) -> str:
    return f"{who} to: {as_text(messages[-1]).partition('] ')[2]}"


async def board(
    world: World, *advisors: Any, model: ScriptedModel | None = None, **options: Any
) -> tuple[Entity, Panel]:
    """A panel whose advisors reflect as `basic` has it, by the model `utility`."""
    world.denizen.models.register("m", model or voices(saying))
    noor = await world.person("Noor")
    reflection = {"profile": "basic", "model": "utility", **options.pop("reflection", {})}
    who = advisors or ("Seth", "Buber")
    return noor, await world.denizen.panels.create(
        "Board", [noor], advisors=who, model="m", reflection=reflection, **options
    )


@asynccontextmanager
async def while_pondering(world: World, *answers: Turn) -> AsyncGenerator[tuple[Entity, Panel, Advisor]]:
    """Noor is cross with Seth; the block runs while a metaprompt about it is asked, which is then answered."""
    pondering = ponder(world, *answers)
    noor, panel = await board(world, "Seth")
    (seth,) = await world.denizen.advisors.list(panel)
    async with world.denizen.living():
        await world.denizen.panels.ask(panel, noor, CROSS)
        await pondering.begun.wait()
        yield noor, panel, seth
        pondering.may_answer.set()
        await world.denizen.run_until_idle()


async def ask(world: World, noor: Entity, panel: Panel, *texts: str) -> None:
    for text in texts:
        await world.denizen.panels.ask(panel, noor, text)
        await world.run()


async def runs(world: World, panel: Panel, who: Advisor | str) -> list[tuple[int | None, str | None, str, str]]:
    found = await world.denizen.advisors.states_of_mind(panel, who)
    return [(each.cycle, each.metaprompt, each.cause, each.outcome) for each in reversed(found)]


async def test_each_advisor_reflects_on_the_turn_as_it_saw_it_and_is_told_with_the_next(world: World) -> None:
    """Seth becomes empathetic, Buber patient. Neither metaprompt was shown what the other has said."""

    def answer(messages: list[ModelMessage], _info: Info) -> Turn:
        if as_text(messages[0]).startswith("You are Seth,"):
            return call("adjust", mood="empathetic", user_skill="novice", reason="They are cross.")
        return call("adjust", mood="patient", imprints={"tone": "gentle"})

    asked = utility(world, model=forever(answer, name="utility"))
    answering = voices(saying)
    noor, panel = await board(world, model=answering)
    seth, buber = await world.denizen.advisors.list(panel)
    await ask(world, noor, panel, CROSS)

    assert await runs(world, panel, seth) == [(1, "frustration_recovery", "user_frustrated", "changed")]
    assert (await world.denizen.advisors.stance(panel, seth)).state == StateOfMind("empathetic", "novice")
    gentle = await world.denizen.advisors.stance(panel, buber)
    assert (gentle.state.mood, gentle.imprints, gentle.reflected_turns) == ("patient", {"tone": "gentle"}, 1)
    (signal,) = await world.denizen.advisors.signals(panel, buber)
    assert (signal.name, signal.person_id, signal.cycle) == ("user_frustrated", noor.id, 1)
    shown = {as_text(each[0]).partition(",")[0]: as_text(each[-1]) for each in asked.requests}
    assert f"| Noor: {CROSS}\n| Seth: Seth to: {CROSS}" in shown["You are Seth"]
    assert "Buber" not in shown["You are Seth"]
    assert "Seth" not in shown["You are Buber"]

    await ask(world, noor, panel, "So what now?")
    before, told = ([as_text(each[0]) for each in some] for some in (answering.requests[:2], answering.requests[2:]))
    assert [each for each in before if "mood" in each] == []
    empathetic = "your mood is empathetic (acknowledge how they feel before anything else), their skill is novice."
    patient = "your mood is patient (take your time, one thing after the other)."
    for name, mind in (("Seth", empathetic), ("Buber", patient)):
        (one,) = [each for each in told if each.startswith(f"You are {name}.")]
        assert f"In this conversation {mind} This sets the tone only.\n\n" in one
        assert one.count("mood") == 1
    # With the reply stands what it was told of itself; the calls are on the panel's account.
    last = (await world.denizen.rounds.list(panel))[-1]
    kept = {each.name: (each.recipe or {})["background"]["mind"]["mood"] for each in last.spoken}
    assert kept == {"Seth": "empathetic", "Buber": "patient"}
    assert await check_database(world.denizen.db) == []


async def test_an_advisor_reflects_by_its_own_settings_or_those_of_the_panel(small_world: World) -> None:
    """And where nobody does any more, no turn is looked at; who begins to reflect does so with the next."""
    asked = utility(small_world, PATIENT, PATIENT)
    off, on = {"profile": "off"}, {"profile": "basic", "model": "utility"}
    noor, panel = await board(small_world, {"name": "Seth", "reflection": off}, {"name": "Buber", "reflection": on})
    denizen = small_world.denizen
    seth, buber = await denizen.advisors.list(panel)
    await ask(small_world, noor, panel, CROSS)
    assert (await runs(small_world, panel, seth), len(await runs(small_world, panel, buber))) == ([], 1)
    await denizen.advisors.edit(panel, buber, reflection=None)
    await denizen.panels.edit(panel, reflection=off)
    await ask(small_world, noor, panel, CROSS)
    await denizen.panels.edit(panel, reflection=on)
    await ask(small_world, noor, panel, CROSS)
    assert [each[0] for each in await runs(small_world, panel, buber)] == [1, 3]
    assert len(asked.requests) == 2


async def test_the_plain_assistant_has_a_state_of_mind_too(small_world: World) -> None:
    utility(small_world, PATIENT)
    small_world.denizen.models.register("m", answering := forever(lambda _messages, _info: "I see."))
    noor = await small_world.person("Noor")
    reflection = {"profile": "basic", "model": "utility"}
    panel = await small_world.denizen.panels.create("Desk", [noor], model="m", reflection=reflection)
    await ask(small_world, noor, panel, CROSS, "Go on.")
    assert (await small_world.denizen.advisors.stance(panel, "assistant")).state.mood == "patient"
    assert "your mood is patient" in as_text(answering.requests[-1][0])


async def test_whoever_was_not_asked_or_was_cancelled_had_no_turn_and_whoever_fails_has_errors(
    small_world: World,
) -> None:
    """Two failures among the last ten are a signal, with what went wrong."""
    asked = utility(small_world, call("adjust", mood="cautious"), call("adjust"))

    def failing(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        return ModelRejected("no such model") if who == "Seth" else "Well."

    noor, panel = await board(small_world, model=voices(failing), reflection={"profile": "standard"})
    seth, buber = await small_world.denizen.advisors.list(panel)
    await ask(small_world, noor, panel, "@seth What is it?", "And now?")
    assert await runs(small_world, panel, seth) == [(2, "error_recovery", "error_threshold_exceeded", "changed")]
    assert "\n| no such model" in as_text(asked.requests[0][-1])
    stances = [(await small_world.denizen.advisors.stance(panel, each)).reflected_turns for each in (seth, buber)]
    assert stances == [2, 1]


async def test_an_interval_counts_the_turns_that_an_advisor_had(small_world: World) -> None:
    """Every second turn is after turns 2 and 4, whatever the others were asked meanwhile."""
    asked = utility(small_world, PATIENT, PATIENT)
    every = {
        "id": "look_back",
        "prompt_template": "{{evidence}}",
        "trigger": {"type": "turn_interval", "interval_turns": 2},
    }
    noor, panel = await board(small_world, reflection={"profile": "off", "metaprompts": [every]})
    seth, _ = await small_world.denizen.advisors.list(panel)
    await ask(small_world, noor, panel, *["@seth Yes?", "@buber Yes?"] * 2)
    assert [each[:3] for each in await runs(small_world, panel, seth)] == [(3, "look_back", "interval")]
    assert as_text(asked.requests[0][-1]).startswith("Turn 2. ")


async def test_how_someone_feels_is_asked_once_for_all_advisors(small_world: World) -> None:
    """They would all be told the same, and each time would be paid."""

    def answer(_messages: list[ModelMessage], info: Info) -> Turn:
        return call("feel", score=-0.9, intensity=0.9) if info.tools == ("feel",) else PATIENT

    asked = utility(small_world, model=forever(answer, name="utility"))
    noor, panel = await board(small_world, reflection={"profile": "advanced"})
    await ask(small_world, noor, panel, "Hm.")
    assert len(asked.requests) == 3
    for each in await small_world.denizen.advisors.list(panel):
        assert (await small_world.denizen.advisors.stance(panel, each)).state.mood == "patient"


async def test_counters_are_kept_apart_by_advisor_and_person(small_world: World) -> None:
    utility(small_world, *[PATIENT] * 4)
    noor, panel = await board(small_world)
    sam = await small_world.person("Sam")
    await small_world.denizen.spaces.join(panel.space, sam)
    seth, buber = await small_world.denizen.advisors.list(panel)
    await ask(small_world, noor, panel, "@seth This is bad.", "This is bad.")
    await ask(small_world, sam, panel, "This is great.")

    async def counted(advisor: Advisor, person: Entity) -> tuple[int, int]:
        found = await small_world.denizen.db.read(VOICES.counters, advisor.id, panel.id, person.id)
        return found.turns, found.frustration

    assert [await counted(each, noor) for each in (seth, buber)] == [(2, 2), (1, 1)]
    assert [await counted(each, sam) for each in (seth, buber)] == [(1, 0), (1, 0)]


# Beside the rounds


async def test_it_never_delays_the_next_round_and_is_cancelled_cleanly(small_world: World) -> None:
    """While metaprompts are asked, the next message is answered; stopped, they leave the mark, and it goes on later."""
    pondering = ponder(small_world, PATIENT)
    noor, panel = await board(small_world, "Seth")
    (seth,) = await small_world.denizen.advisors.list(panel)
    async with small_world.denizen.living():
        await small_world.denizen.panels.ask(panel, noor, CROSS)
        await pondering.begun.wait()
        asked = await small_world.denizen.panels.ask(panel, noor, "Are you still there?")
        while (await small_world.denizen.rounds.get(asked)).state != "complete":  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert (await small_world.denizen.advisors.stance(panel, seth)).state == StateOfMind()
    assert await runs(small_world, panel, seth) == []
    utility(small_world, PATIENT)
    await small_world.run()
    assert await runs(small_world, panel, seth) == [(1, "frustration_recovery", "user_frustrated", "changed")]
    assert (await small_world.denizen.advisors.stance(panel, seth)).reflected_turns == 2


async def test_what_is_forgotten_while_a_metaprompt_is_asked_does_not_come_back(world: World) -> None:
    """The model has read it and repeats it: the turn is reflected on again, without it."""
    answer = call("adjust", mood="patient", reason=f"They said: {CROSS}", imprints={"said": CROSS})
    async with while_pondering(world, answer) as (_, panel, seth):
        (asked,) = await world.denizen.spaces.messages(panel.space)
        await world.denizen.spaces.forget_message(asked)
    assert "terrible" not in await kept(world)
    assert (await world.denizen.advisors.stance(panel, seth)).reflected_turns == 1


async def test_what_was_kept_of_someone_is_forgotten_with_them(world: World) -> None:
    """Numbers and signals go with the person; what metaprompts have written of them is rewritten."""
    utility(world, *[call("adjust", mood="patient", reason="Noor is cross.", imprints={"who": "Noor"})] * 2)
    noor, panel = await board(world)
    await ask(world, noor, panel, CROSS)
    assert noor.id in await kept(world)
    receipt = await world.denizen.people.forget(noor)
    assert {receipt.removed[name] for name in ("voice_feelings", "voice_signals")} == {2}
    assert noor.id not in await kept(world)
    assert "Noor" not in await kept(world)
    await world.denizen.spaces.forget(panel.space)
    assert await kept(world) == "[]"


_tables = [statement(select(each)) for each in (voice_stances, voice_feelings, voice_signals, voice_reflections)]


async def kept(world: World) -> str:
    """Everything that is kept of states of mind in panels, as text."""
    return str([row for table in _tables for row in await world.denizen.db.read(lambda tx, of=table: tx.all(of))])


async def test_what_someone_sets_meanwhile_stands(world: World) -> None:
    async with while_pondering(world, PATIENT) as (noor, panel, seth):
        await world.denizen.advisors.set_state_of_mind(panel, seth, mood="curious", by=noor)
    assert await runs(world, panel, seth) == [(None, None, "set", "changed")]
    now = await world.denizen.advisors.stance(panel, seth)
    assert (now.state.mood, now.reflected_turns) == ("curious", 1)
    reset = await world.denizen.advisors.reset_state_of_mind(panel, seth, by=noor)
    assert reset.state == StateOfMind()
    assert [each.by_id for each in await world.denizen.advisors.states_of_mind(panel, seth)] == [noor.id, noor.id]


async def test_an_advisor_that_was_removed_meanwhile_keeps_nothing(small_world: World) -> None:
    async with while_pondering(small_world, PATIENT) as (_, panel, seth):
        await small_world.denizen.advisors.remove(panel, seth)
    assert await kept(small_world) == "[]"
    with pytest.raises(NotFound):
        await small_world.denizen.advisors.stance(panel, seth)


@pytest.mark.parametrize("point", ["commit:keep_panel_turn", "committed:keep_panel_turn"])
async def test_a_crash_between_a_turn_and_the_end_of_its_reflection_loses_and_doubles_nothing(
    point: str, world: World, broken: Callable[[str], None]
) -> None:
    """The turn stands. The next process reflects on it, unless it has been."""
    utility(world, *[PATIENT] * 4)
    noor, panel = await board(world)
    broken(point)
    await ask(world, noor, panel, CROSS)
    await world.run()
    for each in await world.denizen.advisors.list(panel):
        assert await runs(world, panel, each) == [(1, "frustration_recovery", "user_frustrated", "changed")]
        assert len(await world.denizen.advisors.signals(panel, each)) == 1
        assert (await world.denizen.advisors.stance(panel, each)).reflected_turns == 1


async def test_a_process_that_was_faster_leaves_nothing_to_do(small_world: World) -> None:
    utility(small_world)
    noor, panel = await board(small_world, "Seth")
    (seth,) = await small_world.denizen.advisors.list(panel)
    await ask(small_world, noor, panel, "Hello.")
    late = ReflectedTurn(panel.id, 1, {}, [], [Run("m", "interval", Adjustment(mood="patient"))])
    came = {str(seth.id): late}
    keep = small_world.denizen.db.write(
        advisor_stances.keep_panel_turn, panel.id, 1, came, forgotten=0, instance="late"
    )
    assert not await keep
    assert (await small_world.denizen.advisors.stance(panel, seth)).state == StateOfMind()


async def test_a_sweep_finds_a_turn_whose_process_ended_before_it_was_reflected_on(ready_url: str) -> None:
    """Nobody has to ask the panel again, and no instance that was known has to go."""
    async with open_world(ready_url) as world, Runtime(ready_url, clock=world.clock) as other:
        utility(world, *[PATIENT] * 2)
        noor, panel = await board(world)
        other.models.register("m", voices(saying))
        async with world.denizen.living() as residents:
            # The other is not among the peers of this one, and reflects on nothing.
            async with other.living() as others:
                await others.panel_afterthoughts.stop()
                await other.panels.ask(panel, noor, CROSS)
                await other.panels_settled()
            seth, buber = await world.denizen.advisors.list(panel)
            assert await runs(world, panel, seth) == []
            world.clock.advance(LOOK_BACK_SECONDS)
            while not await runs(world, panel, seth):
                await residents.panel_afterthoughts.settled()
        for each in (seth, buber):
            assert await runs(world, panel, each) == [(1, "frustration_recovery", "user_frustrated", "changed")]


async def test_an_instance_that_starts_meanwhile_does_not_pay_for_the_same_turn(world: World) -> None:
    """While one that is alive reflects on it, no other does; what one that is gone comes back with is refused."""
    pondering = ponder(world, PATIENT)
    noor, panel = await board(world, "Seth")
    (seth,) = await world.denizen.advisors.list(panel)
    denizen, another = world.denizen, Claimant("another", LEASE_SECONDS)
    await denizen.db.write(leases.appear, "another", LEASE_SECONDS)
    reflecting = PanelReflection(denizen.panel_deps(), denizen.prompt_config.configuration, claimant=another)
    async with denizen.living() as residents:
        await denizen.panels.ask(panel, noor, CROSS)
        await pondering.begun.wait()
        assert await denizen.db.read(reflection_cursor.behind, another) == []
        assert not await reflecting.reflect_on_next(panel.id)
        assert len(pondering.model.requests) == 1
        await denizen.db.write(leases.vanish, denizen.instance)
        assert await denizen.db.read(reflection_cursor.behind, another) == [panel.id]
        assert await denizen.db.write(PANEL_CURSOR.claim, panel.id, 1, another)
        pondering.may_answer.set()
        await residents.panel_afterthoughts.settled()
        assert await runs(world, panel, seth) == []
    assert await reflecting.reflect_on_next(panel.id)
    assert await runs(world, panel, seth) == [(1, "frustration_recovery", "user_frustrated", "changed")]
    assert await check_database(denizen.db) == []


async def test_a_turn_that_cannot_be_reflected_on_by_a_defect_is_not_paid_again_and_again(
    small_world: World, broken: Callable[[str], None]
) -> None:
    asked = utility(small_world, *[PATIENT] * 4)
    noor, panel = await board(small_world, "Seth")
    (seth,) = await small_world.denizen.advisors.list(panel)
    broken("commit:keep_panel_turn")
    async with small_world.denizen.living() as residents:
        await small_world.denizen.panels.ask(panel, noor, CROSS)
        await small_world.denizen.panels_settled()
        await residents.look_back()
        await small_world.denizen.panels_settled()
        assert len(asked.requests) == 1
        await small_world.denizen.panels.ask(panel, noor, "Hello.")
        await small_world.denizen.panels_settled()
    assert [each[0] for each in await runs(small_world, panel, seth)] == [1]


# By hand, and within budgets


async def test_a_metaprompt_is_tried_by_hand_and_applied_only_if_wanted(small_world: World) -> None:
    asked = utility(small_world, PATIENT, PATIENT, PATIENT)
    noor, panel = await board(small_world, "Seth", reflection={"profile": "off"})
    (seth,) = await small_world.denizen.advisors.list(panel)
    await ask(small_world, noor, panel, CROSS)
    tried = await small_world.denizen.advisors.try_metaprompt(panel, seth, "frustration_recovery")
    assert (tried.applied, tried.after.mood) == (False, "patient")
    assert await runs(small_world, panel, seth) == []
    own = Metaprompt(id="mine", prompt_template="{{recent_conversation}}", trigger=Manual(type="manual"))
    tried = await small_world.denizen.advisors.try_metaprompt(panel, seth, own, apply=True, by=noor)
    assert (tried.applied, tried.prompt) == (True, f"| Noor: {CROSS}\n| Seth: Seth to: {CROSS}")
    assert await runs(small_world, panel, seth) == [(None, "mine", "manual", "changed")]
    with pytest.raises(InvalidInput, match="Unknown metaprompt 'cheer_up'"):
        await small_world.denizen.advisors.try_metaprompt(panel, seth, "cheer_up")
    assert len(asked.requests) == 2


@pytest.mark.parametrize("named", [{"profile": "basik"}, {"sentiment": {"enabled": True, "presets": ["cheer_up"]}}])
async def test_settings_that_name_what_there_is_not_are_refused(small_world: World, named: dict[str, Any]) -> None:
    _, panel = await board(small_world, "Seth")
    (seth,) = await small_world.denizen.advisors.list(panel)
    for refused in (
        small_world.denizen.panels.edit(panel, reflection=named),
        small_world.denizen.advisors.edit(panel, seth, reflection=named),
        small_world.denizen.advisors.add(panel, {"name": "Pema", "reflection": named}),
        small_world.denizen.panels.create("Another", reflection=named),
    ):
        with pytest.raises(InvalidInput, match=r"basik|cheer_up"):
            await refused
    assert len(await small_world.denizen.advisors.list(panel)) == 1


async def test_a_budget_that_is_used_up_leaves_no_room_for_reflection(small_world: World) -> None:
    asked = utility(small_world)
    noor, panel = await board(small_world, "Seth")
    (seth,) = await small_world.denizen.advisors.list(panel)
    await ask(small_world, noor, panel, "Hello.")
    await small_world.denizen.panels.edit(panel, budget={"tokens": 1})
    tried = await small_world.denizen.advisors.try_metaprompt(panel, seth, "frustration_recovery", apply=True)
    assert (tried.run.why_not, tried.applied) == ("The budget of the panel is used up.", False)
    assert asked.requests == []
    assert (await small_world.denizen.advisors.stance(panel, seth)).state == StateOfMind()


async def test_room_is_kept_for_all_advisors_of_a_turn_together(small_world: World) -> None:
    """Else each of a dozen would find the same room. The same in another process."""
    utility(small_world)
    _, panel = await board(small_world, "Seth", budget={"tokens": 1_000})
    kit = small_world.denizen.panel_deps()
    budget, named = panel_utility_budget(kit, panel), await kit.model_for(panel.organization_id, "utility")
    first = await budget.keep(named, Usage(300, 300))
    with pytest.raises(InvalidInput, match="The budget of the panel is used up"):
        await budget.keep(named, Usage(300, 300))
    with pytest.raises(InvalidInput, match="The budget of the panel is used up"):
        await panel_utility_budget(kit, panel).keep(named, Usage(300, 300))
    await budget.pay(named, first, None)
    assert await budget.keep(named, Usage(300, 300)) is not None
