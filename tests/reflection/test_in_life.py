"""Reflection in a life: after the cycle, beside it, and never in its way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import select, update

from denizen import call, reply, skip, tool
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.errors import InvalidInput, NotFound
from denizen.models import location
from denizen.models.scripted import Info, Turn, forever
from denizen.reflection import thinking
from denizen.reflection.signals import Counters
from denizen.reflection.stance_store import AGENTS
from denizen.reflection.state import StateOfMind
from denizen.reflection.templates import VARIABLES
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import feelings, reflections, signals, stances
from tests.reflection.kitchens import CROSS, INTERVAL, Pondering, kitchen, ponder, runs, say, utility
from tests.world import World, as_text, slow_local


async def test_a_frustrated_person_changes_the_state_of_mind_for_the_next_turn(world: World):
    """Sentiment analysis, event detection, metaprompt, state update: told once with the next inbox message."""
    asked = utility(world, call("adjust", mood="empathetic", user_skill="novice", reason="They are cross."))
    ada, noor, room = await kitchen(world)
    await say(world, noor, room, CROSS, "And now?", "And now?")
    told = [entry for entry in await world.history(ada) if entry.startswith("inbox")]
    line = (
        'State of mind from now on: in "Kitchen" (id: <Kitchen>) — your mood is empathetic (acknowledge how they feel '
        "before anything else), their skill is novice"
    )
    assert [line in each for each in told] == [False, True, False]
    assert await runs(world, ada, room) == [(1, "frustration_recovery", "user_frustrated", "changed")]
    (prompt,) = asked.requests
    assert f"| Noor: {CROSS}" in as_text(prompt[-1])
    assert "{{" not in as_text(prompt[-1])
    assert (await world.denizen.reflection.stance(ada, room)).state == StateOfMind("empathetic", "novice", "unknown")
    assert ("usage", "reflection") in await world.ledger(ada)
    assert await check_database(world.denizen.db) == []


async def test_sentiment_analysis_runs_on_every_user_message_and_on_no_other(small_world: World):
    """What an agent says is nobody's feeling; where it is not enabled, nothing is read."""
    utility(small_world)
    ada, noor, room = await kitchen(small_world)
    ben = await small_world.agent("Ben", reply("It is bad."), "Done.")
    await small_world.denizen.spaces.join(room, ben, attention="mentions")
    await say(small_world, noor, room, "It is fine.", "@ben It is fine.", "It is fine.")
    assert "Ben: It is bad." in await small_world.transcript(room)
    assert [score > 0 for score in (await counted(small_world, ada, room, noor)).scores] == [True] * 3
    assert (
        await counted(small_world, ada, room, ben.entity) == await counted(small_world, ben, room, noor) == Counters()
    )


async def counted(world: World, agent: Agent, room: Space, person: Entity) -> Counters:
    return await world.denizen.db.read(AGENTS.counters, agent.id, room.id, person.id)


async def test_without_a_model_of_their_own_metaprompts_and_sentiment_ask_the_agents(small_world: World):
    turns = [reply("I see."), "Done.", call("feel", score=-0.9, intensity=0.9), call("adjust", mood="patient")]
    ada = await small_world.agent("Ada", *turns, reflection={"profile": "advanced"})
    noor = await small_world.person("Noor")
    room = await small_world.space("Kitchen", noor, ada)
    await say(small_world, noor, room, "Das ist furchtbar.")
    assert (await small_world.denizen.reflection.stance(ada, room)).state.mood == "patient"


async def test_every_variable_is_filled_in_what_the_model_is_asked(small_world: World):
    """Once: what Noor writes is no template."""
    template = "\n".join(f"{name}={{{{{name}}}}}" for name in VARIABLES)
    trigger = {"type": "event_based", "event_name": "user_confused"}
    own = {"id": "confusion_clarification", "prompt_template": template, "trigger": trigger}
    asked = utility(small_world, call("adjust", imprints={"topic": "braces"}), call("adjust"))
    _, noor, room = await kitchen(small_world, metaprompts=[own])
    await say(small_world, noor, room, "I don't understand {{current_mood}}.", "Still unclear: {{evidence}}!")
    assert as_text(asked.requests[-1][-1]).splitlines() == [
        "current_mood=neutral",
        "user_skill=unknown",
        "task_complexity=unknown",
        "current_sentiment=negative (-0.32, intensity 0.32)",
        "recent_conversation=| Noor: I don't understand {{current_mood}}.",
        "| Ada: I see.",
        "| Noor: Still unclear: {{evidence}}!",
        "| Ada: I see.",
        "recent_errors=(none)",
        "evidence=Turn 2. Recent scores: 0.00, -0.32. Kept from before: topic: braces.",
        "| Noor: I don't understand {{current_mood}}.",
        "| Ada: I see.",
        "| Noor: Still unclear: {{evidence}}!",
        "| Ada: I see.",
        "sentiment_score=-0.32",
        "consecutive_frustration=1",
        "consecutive_confusion=2",
        "consecutive_satisfaction=0",
        "confusion_keywords=unclear",
        "consecutive_neutral=0",
    ]


async def test_counters_are_separate_for_each_person_and_space(world: World):
    """Two who are mildly cross, once each, are no streak; nor is one who is in two spaces."""
    utility(world)
    ada, noor, room = await kitchen(world)
    sam = await world.person("Sam")
    await world.denizen.spaces.join(room, sam)
    garden = await world.space("Garden", noor, ada)
    mild = "It is bad."
    await say(world, noor, room, mild)
    await say(world, sam, room, mild)
    await say(world, noor, garden, mild)
    assert (
        await world.denizen.reflection.signals(ada, room) == await world.denizen.reflection.signals(ada, garden) == []
    )
    utility(world, call("adjust", mood="patient"))
    await say(world, noor, room, mild)
    (signal,) = await world.denizen.reflection.signals(ada, room)
    assert (signal.person_id, signal.rule) == (noor.id, "2 negative turns in a row")


async def test_a_metaprompt_is_about_the_person_whose_signal_it_is(small_world: World):
    """Though someone else spoke after them in the same cycle; by interval it is about whoever spoke last."""
    template = "{{sentiment_score}} {{consecutive_frustration}}"
    trigger = {"type": "event_based", "event_name": "user_frustrated"}
    own = [
        {"id": "frustration_recovery", "prompt_template": template, "trigger": trigger},
        {"id": "each", "prompt_template": template, "trigger": {"type": "turn_interval", "interval_turns": 1}},
    ]
    asked = utility(small_world, *[call("adjust")] * 2)
    ada, noor, room = await kitchen(small_world, metaprompts=own)
    sam = await small_world.person("Sam")
    await small_world.denizen.spaces.join(room, sam)
    await small_world.say(sam, "Hello.", room)
    await small_world.say(noor, CROSS, room)
    await small_world.say(sam, "The kettle is on.", room)
    await small_world.run()
    (signal,) = await small_world.denizen.reflection.signals(ada, room)
    assert (signal.person_id, signal.name) == (noor.id, "user_frustrated")
    assert [as_text(each[-1]) for each in asked.requests] == ["-0.87 1", "0.00 0"]


async def test_what_cannot_be_read_in_one_conversation_holds_up_no_other(small_world: World):
    """Its settings fit no more; the others of the same cycle are reflected on, and its turn is counted."""
    utility(small_world, call("adjust", mood="patient"))
    ada, noor, room = await kitchen(small_world)
    garden = await small_world.space("Garden", noor, ada)
    await small_world.denizen.reflection.set_settings(ada, room, {"reflection": {"profile": "standard"}})
    broken = statement(update(stances).values(overrides='{"reflection": {"model": ""}}'))
    await small_world.denizen.db.write(lambda tx: tx.run(broken))
    await small_world.say(noor, CROSS, room)
    await small_world.say(noor, CROSS, garden)
    await small_world.run()
    assert await runs(small_world, ada, room) == []
    assert await runs(small_world, ada, garden) == [(1, "frustration_recovery", "user_frustrated", "changed")]
    assert (await small_world.denizen.reflection.stance(ada, room)).reflected_turns == 1


async def test_an_answer_that_takes_too_long_leaves_the_state_as_it_was(
    small_world: World, monkeypatch: pytest.MonkeyPatch
):
    """Of a model and of a classifier: the agent goes on reflecting."""
    monkeypatch.setattr(thinking, "SECONDS", 0)
    pondering, may_answer = Pondering(call("adjust", mood="patient")), threading.Event()
    utility(small_world, model=pondering.model)
    ada, noor, room = await kitchen(small_world)
    await say(small_world, noor, room, CROSS)
    assert await runs(small_world, ada, room) == [(1, "frustration_recovery", "user_frustrated", "failed")]
    small_world.denizen.prompt_config.classifier = lambda _: float(may_answer.wait())
    sentiment = {"enabled": True, "method": "trained_classifier", "presets": ["all"]}
    await small_world.denizen.agents.edit(ada, reflection={"sentiment": sentiment})
    await say(small_world, noor, room, CROSS)
    may_answer.set()
    assert (await small_world.denizen.reflection.stance(ada, room)).reflected_turns == 2
    assert len(await runs(small_world, ada, room)) == 1


async def test_a_local_model_has_longer_to_reflect(small_world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(thinking, "SECONDS", 1e-9)
    monkeypatch.setattr(location, "LOCAL_PATIENCE", 1e12)
    small_world.denizen.models.register("utility", slow_local(call("adjust", mood="patient")))
    ada, noor, room = await kitchen(small_world)
    await say(small_world, noor, room, CROSS)
    assert await runs(small_world, ada, room) == [(1, "frustration_recovery", "user_frustrated", "changed")]


async def test_an_interval_is_exact_and_needs_no_sentiment(small_world: World):
    """Every three turns, after the third, the sixth and the ninth; skipped cycles are no turns."""
    utility(small_world, *[call("adjust", imprints={"n": str(number)}) for number in range(3)])
    turns = [reply("I see."), "Done."]
    settings = {"metaprompts": [INTERVAL]}
    ada = await small_world.agent("Ada", *turns * 4, skip("no"), *turns * 5, reflection=settings)
    noor = await small_world.person("Noor")
    room = await small_world.space("Kitchen", noor, ada)
    await say(small_world, noor, room, *[CROSS] * 10)
    assert await runs(small_world, ada, room) == [(n, "look_back", "interval", "changed") for n in (3, 6, 9)]
    assert (await small_world.denizen.reflection.stance(ada, room)).imprints == {"n": "2"}
    assert await small_world.denizen.reflection.signals(ada, room) == []


@pytest.mark.parametrize(
    "answer",
    [
        "I would rather not say.",
        call("adjust", mood="grumpy"),
        call("adjust", mood="patient", status="processing"),
        call("adjust", imprints={"x": 1}),
        call("launch_missiles", mood="patient"),
        RuntimeError("boom"),
    ],
    ids=["text", "mood", "key", "imprint", "tool", "error"],
)
async def test_any_failure_leaves_the_state_as_it_was(small_world: World, answer: Any):
    """And the next turn is reflected on as if nothing had happened; the agent's status is its own."""

    def deciding(_messages: list[ModelMessage], _info: Info) -> Turn:
        if isinstance(answer, Exception):
            raise answer
        return answer

    utility(small_world, model=forever(deciding, name="utility"))
    ada, noor, room = await kitchen(small_world)
    await small_world.denizen.reflection.set_state_of_mind(ada, room, mood="curious")
    await say(small_world, noor, room, CROSS)
    outcome = (await runs(small_world, ada, room))[-1][-1]
    stance = await small_world.denizen.reflection.stance(ada, room)
    assert (outcome, stance.state) == ("failed", StateOfMind("curious"))
    assert await small_world.denizen.agents.status(ada) == "sleeping"
    await say(small_world, noor, room, "Go on.")
    assert (await small_world.denizen.reflection.stance(ada, room)).reflected_turns == 2


async def test_too_many_errors_are_a_signal(small_world: World):
    @tool
    def lookup(word: str) -> str:
        """Look a word up."""
        raise ValueError(f"no entry for {word}")

    asked = utility(small_world, call("adjust", mood="analytical", reason="The dictionary is empty."))
    settings = {"profile": "standard", "model": "utility"}
    turns = [call("lookup", word="tea"), call("lookup", word="pot"), reply("Sorry."), "Done."]
    ada = await small_world.agent("Ada", *turns, tools=[lookup], reflection=settings)
    noor = await small_world.person("Noor")
    room = await small_world.space("Kitchen", noor, ada)
    await say(small_world, noor, room, "The word is tea.")
    (signal,) = await small_world.denizen.reflection.signals(ada, room)
    assert (signal.name, signal.person_id) == ("error_threshold_exceeded", None)
    assert "| lookup failed: ValueError: no entry for tea" in as_text(asked.requests[0][-1])
    assert (await small_world.denizen.reflection.stance(ada, room)).state.mood == "analytical"


async def test_errors_of_the_cycle_under_way_are_no_signal_of_the_one_before(small_world: World):
    """The agent lives on while it is reflected on: what fails in the next cycle belongs to that."""

    @tool
    def lookup(word: str) -> str:
        """Look a word up."""
        raise ValueError(f"no entry for {word}")

    stuck, may_go_on = asyncio.Event(), asyncio.Event()
    turns = iter([reply("Yes."), "Done."] * 2 + [call("lookup", word="tea"), call("lookup", word="pot")])

    async def living(_messages: list[ModelMessage], _info: Info) -> Turn:
        if (turn := next(turns, None)) is not None:
            return turn
        stuck.set()
        await may_go_on.wait()
        return "Sorry."

    pondering = ponder(small_world, call("adjust", mood="patient"))
    settings = {"profile": "standard", "model": "utility"}
    ada = await small_world.agent("Ada", model=forever(living), tools=[lookup], reflection=settings)
    noor = await small_world.person("Noor")
    room = await small_world.space("Kitchen", noor, ada)
    async with small_world.denizen.living() as residents:
        await small_world.say(noor, CROSS, room)
        await pondering.begun.wait()
        for text in ("The word is tea.", "Look it up."):
            await small_world.say(noor, text, room)
            while len(await small_world.cycles(ada)) < 2 and not stuck.is_set():
                await residents.sweep()
                await asyncio.sleep(0)
        await stuck.wait()
        pondering.may_answer.set()
        while (await small_world.denizen.reflection.stance(ada, room)).reflected_turns < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        names = [each.name for each in await small_world.denizen.reflection.signals(ada, room)]
        assert names == ["user_frustrated"]
        may_go_on.set()
        await residents.run_until_idle()
    newest = (await small_world.denizen.reflection.signals(ada, room))[0]
    assert (newest.cycle, newest.name, newest.rule) == (3, "error_threshold_exceeded", "2 errors in the last 4 results")


async def test_a_model_or_a_classifier_may_tell_how_people_feel(small_world: World):
    utility(small_world, call("feel", score=-0.9, intensity=0.9), call("adjust", mood="patient"), "no idea")
    ada, noor, room = await kitchen(small_world, profile="advanced")
    await say(small_world, noor, room, "Das ist furchtbar.", "Hm.")
    assert [each.name for each in await small_world.denizen.reflection.signals(ada, room)] == ["user_frustrated"]
    small_world.denizen.prompt_config.classifier = lambda text: 0.9 if "gut" in text else 0
    sentiment = {"enabled": True, "method": "trained_classifier", "presets": ["satisfaction_reinforcement"]}
    await small_world.denizen.agents.edit(ada, reflection={"sentiment": sentiment, "model": "utility"})
    utility(small_world, call("adjust", mood="encouraging"))
    await say(small_world, noor, room, "Jetzt ist es gut.")
    assert (await small_world.denizen.reflection.stance(ada, room)).state.mood == "encouraging"


async def test_people_set_reset_and_try_by_hand(world: World):
    """Each is in the history with who did it; a try changes nothing unless it is applied."""
    utility(world, call("adjust", mood="focused"), call("adjust", mood="creative", reason="Why not?"))
    ada, noor, room = await kitchen(world)
    await world.denizen.reflection.set_state_of_mind(ada, room, mood="cautious", task_complexity="complex", by=noor)
    tried = await world.denizen.reflection.try_metaprompt(ada, room, "engagement_boost")
    assert (tried.before.state.mood, tried.after.mood, tried.applied) == ("cautious", "focused", False)
    tried = await world.denizen.reflection.try_metaprompt(ada, room, "engagement_boost", apply=True, by=noor)
    assert (tried.after, tried.applied) == (StateOfMind("creative", "unknown", "complex"), True)
    await world.denizen.reflection.reset_state_of_mind(ada, room, by=noor)
    found = list(reversed(await world.denizen.reflection.states_of_mind(ada, room)))
    assert [(each.cause, each.outcome, each.state.mood, each.by_id) for each in found] == [
        ("set", "changed", "cautious", noor.id),
        ("manual", "changed", "creative", noor.id),
        ("reset", "changed", "neutral", noor.id),
    ]
    await say(world, noor, room, "Hello.")
    assert "state of mind" not in (await world.newest_inbox(ada))
    with pytest.raises(InvalidInput, match="Unknown metaprompt 'nothing'"):
        await world.denizen.reflection.try_metaprompt(ada, room, "nothing")
    elsewhere = await world.space("Cellar", noor)
    with pytest.raises(NotFound):
        await world.denizen.reflection.set_state_of_mind(ada, elsewhere, mood="patient")


async def test_a_conversation_may_reflect_though_its_agent_does_not(small_world: World):
    """And one may not though its agent does; the settings of a conversation are checked when they are given."""
    utility(small_world, call("adjust", mood="patient"))
    ada, noor, room = await kitchen(small_world, profile="off")
    garden = await small_world.space("Garden", noor, ada)
    await say(small_world, noor, room, CROSS)
    with pytest.raises(InvalidInput, match="there is no profile 'nothing'"):
        await small_world.denizen.reflection.set_settings(ada, room, {"reflection": {"profile": "nothing"}})
    with pytest.raises(InvalidInput, match="Unknown conversation setting 'colour'"):
        await small_world.denizen.reflection.set_settings(ada, room, {"colour": "red"})
    await small_world.denizen.reflection.set_settings(ada, room, {"reflection": {"profile": "basic"}})
    await say(small_world, noor, garden, CROSS)
    await say(small_world, noor, room, CROSS)
    assert await runs(small_world, ada, garden) == []
    assert await runs(small_world, ada, room) == [(3, "frustration_recovery", "user_frustrated", "changed")]
    utility(small_world, call("adjust", mood="curious"))
    await small_world.denizen.reflection.set_settings(ada, room, {"reflection": {"metaprompts": [INTERVAL]}})
    assert (await small_world.denizen.reflection.try_metaprompt(ada, room, INTERVAL["id"])).after.mood == "curious"
    await small_world.denizen.reflection.set_settings(ada, room, {})
    assert not (await small_world.denizen.agents.get(ada)).reflects


async def test_what_was_felt_is_forgotten_with_the_person_and_with_the_space(world: World):
    utility(world, *[call("adjust", mood="patient", reason=f"They said: {CROSS}", imprints={"tea": CROSS})] * 2)
    ada, noor, room = await kitchen(world)
    sam = await world.person("Sam")
    garden = await world.space("Garden", sam, ada)
    await say(world, noor, room, CROSS)
    await say(world, sam, garden, CROSS)
    await world.denizen.people.forget(noor)
    assert await world.denizen.reflection.signals(ada, room) == []
    assert "terrible" not in str(await world.denizen.db.read(everything, room.id))
    await world.denizen.spaces.forget(garden)
    assert await world.denizen.db.read(everything, garden.id) == []


_TABLES = [statement(select(table)) for table in (stances, feelings, signals, reflections)]


def everything(tx: Tx, space_id: str) -> list[tuple[Any, ...]]:
    return [row for each in _TABLES for row in tx.all(each) if space_id in row]


async def test_a_fork_does_not_reflect_on_the_life_of_another(small_world: World):
    asked = utility(small_world, call("adjust", mood="patient"))
    ada, noor, room = await kitchen(small_world)
    await say(small_world, noor, room, CROSS)
    fork = await small_world.denizen.agents.fork(ada)
    await small_world.run()
    assert (await small_world.denizen.agents.get(fork)).reflects
    assert (len(asked.requests), await small_world.denizen.reflection.stances(fork)) == (1, [])
