"""Reflection in panels where something is odd: much to read, messages that go, rounds that are asked again, rivals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import bindparam, update

from denizen import call
from denizen.checker import check_database
from denizen.errors import ModelRejected
from denizen.ids import SpaceId
from denizen.models.scripted import Info, Turn, forever
from denizen.panel import reflecting
from denizen.panel.panels import Panel
from denizen.reflection.settings import Manual, Metaprompt
from denizen.reflection.stance_store import VOICES
from denizen.spaces import directory
from denizen.storage.database import Params, Row, Statement, Tx, statement
from denizen.storage.schema import panel_reflecting
from tests.panel.test_reflection import PATIENT, ask, board, runs
from tests.panel.test_rounds import voices
from tests.reflection.kitchens import CROSS, utility
from tests.world import World


class Counting:
    """A transaction that counts what is asked of it, and what it answers."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def one(self, statement: Statement, /, **params: Params) -> Row | None:
        self.statements += 1
        return self._tx.one(statement, **params)

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        self.statements += 1
        found = self._tx.all(statement, **params)
        self.rows += len(found)
        return found


_move_marks = statement(update(panel_reflecting).values(turn=panel_reflecting.c.turn + bindparam("by")))


def counted(tx: Tx, panel_id: SpaceId) -> tuple[int, int]:
    counting = Counting(tx)
    assert reflecting.next_held(counting, panel_id) is not None  # pyright: ignore[reportArgumentType]
    return counting.statements, counting.rows


async def test_reading_a_turn_costs_the_same_for_few_and_many_voices_and_at_any_age(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a panel of fifty would hold a reader for seconds after each turn."""
    monkeypatch.setattr(reflecting, "TRIED_TURNS", 6)
    utility(small_world)
    noor, few = await board(small_world, "Seth")
    many = await small_world.denizen.panels.create(
        "Many", [noor], advisors=[f"A{n}" for n in range(9)], model="m", reflection=few.settings.reflection.model_dump()
    )

    async def cost(panel: Panel, turns: int) -> tuple[int, int]:
        await ask(small_world, noor, panel, *["Hm."] * turns)
        await small_world.denizen.db.write(lambda tx: tx.run(_move_marks, by=-1))
        found = await small_world.denizen.db.read(counted, panel.id)
        await small_world.denizen.db.write(lambda tx: tx.run(_move_marks, by=1))
        return found

    young, old = await cost(few, 6), await cost(few, 5)
    assert young == old
    assert (await cost(many, 1))[0] == young[0]


async def test_a_message_that_was_gone_before_anybody_could_answer_is_nobodys_turn_and_nobodys_failure(
    small_world: World,
) -> None:
    """Two of them are no reason to recover from errors."""
    asked = utility(small_world)
    hold = asyncio.Event()
    begun = asyncio.Event()

    async def answering(_who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        begun.set()
        await hold.wait()
        return "Well."

    noor, panel = await board(small_world, "Seth", model=voices(answering), reflection={"profile": "standard"})
    (seth,) = await small_world.denizen.advisors.list(panel)
    async with small_world.denizen.living():
        await small_world.denizen.panels.ask(panel, noor, "One")
        await begun.wait()
        for text in ("Two", "Three"):
            gone = await small_world.denizen.panels.ask(panel, noor, text)
            await small_world.denizen.spaces.delete_message(gone.message_id, by=noor)
        hold.set()
        await small_world.denizen.run_until_idle()
    assert await small_world.denizen.advisors.signals(panel, seth) == []
    assert asked.requests == []
    assert (await small_world.denizen.advisors.stance(panel, seth)).reflected_turns == 1
    assert await small_world.denizen.db.read(reflecting.next_held, panel.id) is None, "and it is done with"


async def test_what_is_asked_again_after_it_was_reflected_on_is_not_a_turn_more(small_world: World) -> None:
    """A round that is cancelled whole is nobody's turn, and holds up nothing."""
    utility(small_world, *[PATIENT] * 4)
    failing = {"now": True}

    def answering(_who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        return ModelRejected("no") if failing["now"] else "Well."

    noor, panel = await board(small_world, "Seth", model=voices(answering))
    denizen = small_world.denizen
    (seth,) = await denizen.advisors.list(panel)
    first = await denizen.panels.ask(panel, noor, CROSS)
    await denizen.run_until_idle()
    failing["now"] = False
    await denizen.rounds.retry(first)
    await denizen.run_until_idle()
    await denizen.rounds.retry(first, seth)
    await denizen.run_until_idle()
    await denizen.rounds.cancel(await denizen.panels.ask(panel, noor, CROSS))
    await ask(small_world, noor, panel, CROSS)
    assert [each[0] for each in await runs(small_world, panel, seth)] == [1, 3]
    assert (await denizen.advisors.stance(panel, seth)).reflected_turns == 2
    assert await check_database(denizen.db) == []


async def test_the_assistant_that_has_answered_reflects_although_advisors_have_come_since(small_world: World) -> None:
    utility(small_world, PATIENT)
    small_world.denizen.models.register("m", forever(lambda _messages, _info: "I see."))
    noor = await small_world.person("Noor")
    reflection = {"profile": "basic", "model": "utility"}
    panel = await small_world.denizen.panels.create("Desk", [noor], model="m", reflection=reflection)
    await small_world.denizen.panels.ask(panel, noor, CROSS)
    await small_world.denizen.advisors.add(panel, "Seth")
    await small_world.run()
    assert (await small_world.denizen.advisors.stance(panel, "assistant")).state.mood == "patient"


async def test_two_processes_that_reflect_on_one_turn_keep_it_once(world: World) -> None:
    """Both have asked. Whoever is later has nothing to keep."""
    utility(world, *[PATIENT] * 2)
    noor, panel = await board(world)
    await ask(world, noor, panel, CROSS)
    await world.denizen.db.write(lambda tx: tx.run(_move_marks, by=-1))
    everyone = asyncio.Barrier(4)

    async def together(_messages: list[ModelMessage], _info: Info) -> Turn:
        await everyone.wait()
        return PATIENT

    utility(world, model=forever(together, name="utility"))
    one, other = (world.denizen.reflecting() for _ in range(2))
    assert await asyncio.gather(one.reflect_on_next(panel.id), other.reflect_on_next(panel.id)) == [True, True]
    for each in await world.denizen.advisors.list(panel):
        assert len(await runs(world, panel, each)) == 2, "one before, and one of the two"
        assert len(await world.denizen.advisors.signals(panel, each)) == 2
    assert not await one.reflect_on_next(panel.id)


async def test_what_someone_did_by_hand_before_does_not_stop_what_comes_of_a_turn(world: World) -> None:
    """Only what they do meanwhile does: also where nothing but their doing is known of the voice."""
    utility(world, *[PATIENT] * 3)
    noor, panel = await board(world, "Seth")
    (seth,) = await world.denizen.advisors.list(panel)
    await world.denizen.advisors.reset_state_of_mind(panel, seth, by=noor)
    await ask(world, noor, panel, CROSS)
    await world.denizen.advisors.reset_state_of_mind(panel, seth, by=noor)
    await ask(world, noor, panel, CROSS)
    assert [each[2:] for each in await runs(world, panel, seth)] == [
        ("reset", "unchanged"), ("user_frustrated", "changed"), ("reset", "changed"), ("user_frustrated", "changed"),
    ]  # fmt: skip
    assert (await world.denizen.db.read(VOICES.counters, seth.id, panel.id, noor.id)).turns == 1


async def test_a_panel_older_than_what_is_kept_of_panels_is_tried_by_hand(world: World) -> None:
    """Something was forgotten in the house long ago: that is no reason to ask again."""
    utility(world, PATIENT)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    await world.denizen.spaces.forget_message((await world.say(noor, "Hello.", kitchen)).id)
    old = await world.denizen.db.write(directory.create_space, noor.organization_id, name="Old", kind="panel")
    own = Metaprompt(id="mine", prompt_template="?", trigger=Manual(type="manual"), model="utility")
    tried = await world.denizen.advisors.try_metaprompt(old, "assistant", own, apply=True, by=noor)
    assert (tried.applied, tried.run.why_not) == (True, "")
    assert (await world.denizen.advisors.stance(old, "assistant")).state.mood == "patient"


async def test_each_model_is_asked_for_itself_how_someone_feels(small_world: World) -> None:
    """Advisors who have models of their own find it out by these, and do not wait for one another."""
    both = asyncio.Barrier(2)

    async def answer(_messages: list[ModelMessage], info: Info) -> Turn:
        if info.tools != ("feel",):
            return PATIENT if info.tools else "Well."
        await both.wait()
        return call("feel", score=-0.9, intensity=0.9)

    for name in ("one", "two"):
        small_world.denizen.models.register(name, forever(answer, name=name))
    noor = await small_world.person("Noor")
    advisors = [{"name": "Seth", "model": "one"}, {"name": "Buber", "model": "two"}]
    panel = await small_world.denizen.panels.create("B", [noor], advisors=advisors, reflection={"profile": "advanced"})
    await ask(small_world, noor, panel, "Hm.")
    for each in await small_world.denizen.advisors.list(panel):
        assert (await small_world.denizen.advisors.stance(panel, each)).state.mood == "patient"
