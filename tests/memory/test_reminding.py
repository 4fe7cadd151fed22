"""What agents are reminded of: by cadence, only what everyone there may know, and guarded at the send."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from denizen import forever, reply, skip
from denizen.agents.registry import Agent
from denizen.consciousness import log
from denizen.consciousness.conversation_summaries import StoredSummary, render
from denizen.errors import ModelRejected
from denizen.ids import CycleId, SpaceId
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.memory.policy import OrganizationMemory, Policy, Scopes
from denizen.memory.reminding import AlreadyShown, FoundReminders, RecallResult, remind
from denizen.memory.settings import MemoryOptions
from denizen.models.scripted import Info
from denizen.spaces.directory import Entity, Space
from tests.memory.conftest import PRESETS, answering, known, remembering, utility, written
from tests.world import World, as_text, awake, open_world

VIOLIN = "Noor hides her violin in the cellar."


async def remembered(world: World, noor: Entity, space: Space, text: str = VIOLIN, **owner: Any) -> None:
    whose = Owner(**{"scope": "user", "organization_id": noor.organization_id, "user_id": noor.id} | owner)
    what = Candidate("facts", text, ("somewhere",))
    await world.denizen.db.write(items.remember, whose, space.id, [what])


async def reminders(world: World, agent: Agent) -> list[str]:
    return [each for each in await world.history(agent) if each.startswith("remembered")]


async def a_home(world: World, *others: Entity | Agent, **agent: Any) -> tuple[Agent, Entity, Space]:
    ada, noor = await world.agent("Ada", model=forever(answering), **agent), await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada, *others)
    return ada, noor, kitchen


async def ask(world: World, noor: Entity, where: Space, text: str = "Where is my violin?", **more: Any) -> None:
    await world.say(noor, text, where, **more)
    await world.run()


async def test_a_person_alone_with_an_agent_is_remembered(world: World):
    ada, noor, kitchen = await a_home(world)
    await remembered(world, noor, kitchen)
    await ask(world, noor, kitchen)
    [told] = await reminders(world, ada)
    assert told == (
        "remembered: [REMEMBERED — from long-term memory, what may matter to this inbox; it may be out of date]\n\n"
        f"About the person you talk with:\n| {VIOLIN} (facts)"
    )


async def test_a_secret_of_one_person_is_not_told_where_another_reads(world: World):
    """Global memory elsewhere: a secret from a private chat appears in a group."""
    sam = await world.person("Sam")
    ada, noor, kitchen = await a_home(world, sam)
    await remembered(world, noor, kitchen)
    await ask(world, noor, kitchen)
    assert await reminders(world, ada) == []


async def test_who_comes_in_before_the_cycle_opens_is_heard_too(small_world: World):
    """The audience is asked again in the transaction that tells: what was found before may not be told any more."""
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen)
    await small_world.say(noor, "Where is my violin?", kitchen)
    found = tuple(await small_world.denizen.memory.list(owner=f"user:{noor.id}"))
    occasion = FoundReminders(frozenset({kitchen.id}), found, 2_800, "first", ("user",), {})
    events = await small_world.denizen.minds.inbox(ada)

    async def told() -> bool:
        write = small_world.denizen.db.write
        reminded = await write(remind, ada.id, CycleId("cycle"), 1, events, occasion, AlreadyShown())
        return reminded is not None and reminded.entry is not None

    assert await told()
    await small_world.denizen.spaces.join(kitchen, await small_world.person("Sam"))
    assert not await told()


async def test_what_is_between_two_is_not_told_where_another_agent_listens(small_world: World):
    # It only listens: what the two said to each other past their hops would be read along with what comes next.
    bee = await small_world.agent("Bee", model=forever(lambda _messages, _info: skip()))
    ada, noor, kitchen = await a_home(small_world, bee)
    await remembered(small_world, noor, kitchen, scope="persona", agent_id=ada.id)
    await ask(small_world, noor, kitchen)
    assert await reminders(small_world, ada) == []
    alone = await small_world.space("Alone", noor, ada)
    await ask(small_world, noor, alone)
    assert len(await reminders(small_world, ada)) == 1


@pytest.mark.parametrize(("every", "rests"), [(1, False), (3, False), (1, True), (3, True)])
async def test_every_n_turns_is_every_n_turns(ready_sqlite_url: str, every: int, rests: bool):
    """Not every N + 1: with N = 3, the first, the fourth and the seventh turn are reminded."""
    presets = {**PRESETS, "routing": {"reviewEveryNTurns": every}, "memoryCompaction": {"defaultProfile": "off"}}
    options = MemoryOptions(presets=lambda: presets)
    async with open_world(ready_sqlite_url, memory=options) as world, awake(world, rests):
        ada, noor, kitchen = await a_home(world)
        turns: list[int] = []
        for turn in range(1, 8):
            await remembered(world, noor, kitchen, f"The violin was tuned in year {turn}.")
            before = len(await reminders(world, ada))
            await ask(world, noor, kitchen)
            turns += [turn] if len(await reminders(world, ada)) > before else []
        assert turns == list(range(1, 8, every))


@pytest.mark.parametrize("rests", [False, True])
async def test_every_0_turns_is_never_also_in_a_running_conversation(ready_sqlite_url: str, rests: bool):
    presets = {**PRESETS, "memoryCompaction": {"defaultProfile": "off"}}
    now: list[dict[str, Any]] = [presets]
    options = MemoryOptions(presets=lambda: now[0])
    async with open_world(ready_sqlite_url, memory=options) as world, awake(world, rests):
        ada, noor, kitchen = await a_home(world)
        told: list[int] = []
        for turn, every in enumerate([1, 1, 0, 0, 0, 1], start=1):
            now[0] = {**presets, "routing": {"reviewEveryNTurns": every}}
            await remembered(world, noor, kitchen, f"The violin was tuned in year {turn}.")
            before = len(await reminders(world, ada))
            await ask(world, noor, kitchen)
            told += [turn] if len(await reminders(world, ada)) > before else []
        assert told == [1, 2, 6]


@pytest.mark.parametrize(("forced", "rests"), [(True, False), (False, False), (True, True), (False, True)])
async def test_memories_are_looked_for_again_whenever_compaction_runs_if_that_is_wanted(
    ready_sqlite_url: str, forced: bool, rests: bool
):
    """`forceReviewOnCompaction`: long before the next turn of the cadence, and not without it; also where the
    conversation was summarized while the agent rested."""
    presets = {**PRESETS, "routing": {"reviewEveryNTurns": 50, "forceReviewOnCompaction": forced}}
    options = MemoryOptions(presets=lambda: presets)
    async with open_world(ready_sqlite_url, memory=options) as world, awake(world, rests):
        utility(world, written("They talked of a violin."))
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen, "The first violin is red.")
        await ask(world, noor, kitchen)
        await remembered(world, noor, kitchen, "The second violin is blue.")
        await ask(world, noor, kitchen)
        assert (await world.denizen.memory.summary(kitchen)).upto == 2
        await ask(world, noor, kitchen)
        told = await reminders(world, ada)
        colours = [("is red." in each, "is blue." in each) for each in told]
        assert colours == [(True, False), (False, True)][: 1 + forced]


async def test_nothing_is_told_twice_while_it_is_in_the_window(small_world: World):
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen)
    for _ in range(8):
        await ask(small_world, noor, kitchen)
    assert len(await reminders(small_world, ada)) == 1


async def test_a_fact_that_is_kept_in_several_scopes_is_told_once(small_world: World):
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen, "The violin is in the attic.")
    await remembered(small_world, noor, kitchen, "the violin is in the  attic", scope="persona", agent_id=ada.id)
    await ask(small_world, noor, kitchen)
    [told] = await reminders(small_world, ada)
    assert told.lower().count("in the attic") == 1


ATTIC = "The violin is in the attic."


async def test_a_fact_in_the_window_is_not_told_again_from_another_scope(ready_sqlite_url: str):
    """Each scope has a memory of its own: it is the text that says whether they are the same fact."""
    async with open_world(ready_sqlite_url, memory=remembering(routing={"reviewEveryNTurns": 1})) as world:
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen, ATTIC)
        await ask(world, noor, kitchen)
        await remembered(world, noor, kitchen, ATTIC.upper(), scope="persona", agent_id=ada.id)
        await ask(world, noor, kitchen)
        assert len(await reminders(world, ada)) == 1


async def test_a_fact_known_from_elsewhere_is_told_where_everyone_may_know_it(small_world: World):
    """What it was told in private it may not say to Sam; what the organization remembers it may."""
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen, ATTIC)
    await ask(small_world, noor, kitchen)
    await remembered(small_world, noor, kitchen, ATTIC, scope="organization")
    square = await small_world.space("Square", noor, await small_world.person("Sam"), ada)
    await ask(small_world, noor, square, metadata={"memory": {"organization": True}})
    assert [f"About the organization:\n| {ATTIC}" in each for each in await reminders(small_world, ada)] == [
        False,
        True,
    ]


async def reminded_of(world: World, ada: Agent, space: Space, shown: AlreadyShown) -> str:
    """What the agent is reminded of when its next cycle opens and it sees this already."""
    found = tuple(await world.denizen.memory.list())
    occasion = FoundReminders(frozenset({space.id}), found, 2_800, "first", ("user",), {})
    events = await world.denizen.minds.inbox(ada)
    reminded = await world.denizen.db.write(remind, ada.id, CycleId("cycle"), 1, events, occasion, shown)
    assert isinstance(reminded, RecallResult)
    return "" if reminded.entry is None else as_text(reminded.entry.message)


async def test_a_fact_in_the_conversation_summary_of_the_window_is_not_told_again(small_world: World):
    """With the strategy `rolling`; the summary of another conversation is no reason to leave it out."""
    utility(small_world, written("They talked.", facts=[known(ATTIC, 1)]))
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen, ATTIC, scope="persona", agent_id=ada.id)
    for text in ("It is in the attic.", "Well."):
        await ask(small_world, noor, kitchen, text)
    study = await small_world.space("Study", noor, ada)
    layers = render([StoredSummary(kitchen.id, "Kitchen", 2, "They talked.", {"facts": [known(ATTIC, 1)]})], 1_000)
    for space, times in ((kitchen, 0), (study, 1)):
        await small_world.say(noor, "Where is my violin?", space)
        told = await reminded_of(small_world, ada, space, AlreadyShown(layers))
        assert told.count(ATTIC) == times
        await small_world.run()


async def test_a_fact_in_a_recalled_passage_is_not_told_again(small_world: World):
    """With the strategy `semantic`, an old message that says the same comes back with the same inbox."""
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen, ATTIC)
    await remembered(small_world, noor, kitchen, "The violin is red.")
    await small_world.say(noor, "Where is my violin?", kitchen)
    passage = f'[RECALLED — …]\n\n["Kitchen" | Mon 2026-01-05]\nCycle 1, 09:00, Noor (@noor): "{ATTIC} I think."'
    recalled = log.entry(1, CycleId("cycle"), "recalled", ModelRequest(parts=[UserPromptPart(passage)]))
    told = await reminded_of(small_world, ada, kitchen, AlreadyShown(recalled=[recalled]))
    assert (ATTIC in told, "The violin is red." in told) == (False, True)


def test_a_conversation_summary_states_each_fact_once() -> None:
    memory = {"facts": [known(ATTIC, 1), known("It is red.", 1)], "decisions": [known("It is red", 1)], "tags": ["x"]}
    shown = render([StoredSummary(SpaceId("kitchen"), "Kitchen", 2, f"Noor came. {ATTIC}", memory)], 1_000)
    assert shown.splitlines()[1:] == [f"| Noor came. {ATTIC}", "| facts: It is red."]


async def test_opting_out_on_the_first_turn_lasts(world: World):
    """The policy is kept with the conversation, and a later request that says nothing does not undo it."""
    ada, noor, kitchen = await a_home(world)
    await remembered(world, noor, kitchen)
    await world.denizen.memory.set_policy(kitchen, Policy(enabled=False))
    await world.denizen.memory.set_policy(kitchen, Policy())
    await ask(world, noor, kitchen)
    assert await reminders(world, ada) == []
    await world.denizen.memory.set_policy(kitchen, Policy(enabled=True, scopes=Scopes(persona=False)))
    study = await world.space("Study", noor, ada)
    await ask(world, noor, study)
    assert len(await reminders(world, ada)) == 1


async def test_a_kill_switch_holds_at_once_when_reading(small_world: World):
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen)
    await small_world.denizen.memory.change_switches({"user": False})
    await ask(small_world, noor, kitchen)
    assert await reminders(small_world, ada) == []


async def test_the_organizations_memories_need_its_id_with_each_request(small_world: World):
    """It is not stored: the next message that does not name it gets nothing."""
    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen, "Our violin teacher is Ruth.", scope="organization")
    await ask(small_world, noor, kitchen, "Who teaches the violin?")
    assert await reminders(small_world, ada) == []
    study = await small_world.space("Study", noor, ada)
    named = {"memory": {"organization": True}}
    await ask(small_world, noor, study, "Who teaches the violin?", metadata=named)
    assert "About the organization:\n| Our violin teacher is Ruth. (facts)" in (await reminders(small_world, ada))[0]


async def test_settings_that_cannot_be_read_bring_nothing_back(small_world: World):
    from sqlalchemy import text

    from denizen.storage.database import statement

    ada, noor, kitchen = await a_home(small_world)
    await remembered(small_world, noor, kitchen)
    broken = statement(text('UPDATE organizations SET settings = \'{"memory": {"enabled": "perhaps"}}\''))
    await small_world.denizen.db.write(lambda tx: tx.run(broken))
    await ask(small_world, noor, kitchen)
    assert await reminders(small_world, ada) == []
    assert await small_world.denizen.memory.switches() is None


async def test_what_was_remembered_in_private_is_stopped_at_the_send_elsewhere(small_world: World):
    """The agent knows it, and does not repeat it where not everyone may know it."""

    def telling(messages: list[ModelMessage], _info: Info) -> Any:
        said = as_text(messages[-1])
        if not said.startswith(("[INBOX", "[REMEMBERED")):
            return "Said it, or not."
        return reply("I know: Noor hides her violin in the cellar!")

    ada, noor = await small_world.agent("Ada", model=forever(telling)), await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor, ada)
    square = await small_world.space("Square", noor, await small_world.person("Sam"), ada)
    await remembered(small_world, noor, kitchen)
    await ask(small_world, noor, kitchen)
    assert (await small_world.transcript(kitchen))[-1].startswith("Ada: I know")
    await ask(small_world, noor, square)
    assert [line for line in await small_world.transcript(square) if line.startswith("Ada")] == []
    [crossing] = await small_world.denizen.minds.crossings(ada)
    assert (crossing.to_space_id, crossing.from_space_id) == (square.id, kitchen.id)


async def test_a_retriever_of_ones_own_cannot_bring_back_what_others_may_not_know(ready_sqlite_url: str):
    """Whatever it finds, only what is of the owners that it was handed is told."""
    options = MemoryOptions(
        retriever=f"{__name__}:Gossip", presets=lambda: {"memoryCompaction": {"defaultProfile": "off"}}
    )
    async with open_world(ready_sqlite_url, memory=options) as world:
        ada, noor, kitchen = await a_home(world)
        sam = await world.person("Sam")
        await remembered(world, noor, kitchen)
        await remembered(world, sam, kitchen, "Sam fears the violin.")
        await ask(world, noor, kitchen)
        [told] = await reminders(world, ada)
        assert (VIOLIN in told, "Sam" in told) == (True, False)


class Gossip:
    """Brings back everything there is."""

    def __init__(self, db: Any, _embedder: Any) -> None:
        self._db = db

    async def retrieve(self, wanted: Any) -> Any:
        home = wanted.owners[0].organization_id
        return await self._db.read(items.all_of, home)


def test_the_organizations_switches_are_all_on_by_default() -> None:
    assert set(OrganizationMemory().model_dump(exclude={"categories"}).values()) == {True}


async def test_what_a_failed_cycle_was_reminded_of_is_told_again_and_what_a_kept_one_was_is_not(small_world: World):
    """A failed cycle leaves no trace: what the agent was told in it is not in its mind."""
    turns = iter([ModelRejected("no"), reply("In the cellar."), "Told.", reply("Still there."), "Told."])
    shown: list[bool] = []

    def decide(messages: list[ModelMessage], _info: Info) -> Any:
        shown.append(VIOLIN in "\n".join(as_text(each) for each in messages if "[REMEMBERED" in as_text(each)))
        return next(turns)

    ada, noor = await small_world.agent("Ada", model=forever(decide)), await small_world.person("Noor")
    kitchen = await small_world.space("Kitchen", noor, ada)
    await remembered(small_world, noor, kitchen)
    await ask(small_world, noor, kitchen)
    assert (shown, await reminders(small_world, ada)) == ([True], [])
    await small_world.run_after(60)
    await ask(small_world, noor, kitchen)
    assert shown == [True] * 5
    assert len(await reminders(small_world, ada)) == 1
