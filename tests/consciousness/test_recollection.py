"""What comes to mind by itself: what matters to the inbox, found before the cycle opens; else nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, tool
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.consciousness import lease as leases
from denizen.consciousness import mind as minds
from denizen.consciousness.recall.searching import EVERYTHING, Ranking
from denizen.consciousness.recollection import (
    COVERED,
    COVERED_BESIDE_MEANING,
    COVERED_OF_THEM,
    NEAR,
    glance,
    is_relevant,
)
from denizen.consciousness.system_prompt import Identity
from denizen.consciousness.window import budget
from denizen.cycles.opening import OpenedCycle, Waking, open_cycle
from denizen.cycles.recalling import remind
from denizen.models.scripted import Info, Turn
from denizen.spaces.directory import Entity, Space
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.world import World, as_text, open_world

TOOLBOX = Toolbox(PREBUILT)
WINDOW = {"max_tokens": TOOLBOX.tokens + 2_000, "strategy": "semantic", "min_recent_cycles": 2}
PAST = (
    "My violin lies in the cellar, behind the paint.",
    "The report about the harbour is due on Friday, please read it.",
    "Our neighbours have a puppy now, they call it Biscuit.",
    "On Thursday it rained so much that the garden path was under water.",
)


BIRDS = tuple(f"Bird {number} sang: " + f"tirili{number} " * 40 for number in range(16))
OTHERWISE = (
    "The tax office wants the forms back before the end of the month.",
    "My cousin runs marathons, last year he finished in under four hours.",
    "They painted the town hall yellow and nobody likes it.",
    "Tomatoes need more sun than this balcony has.",
    "The new printer refuses to speak with my computer.",
    "I read a novel about whalers in the Arctic.",
    "The bridge is closed, so the bus takes forty minutes longer.",
    "Her thesis is about medieval coins found near the border.",
    "We ran out of coffee again.",
    "The dentist says that I grind my teeth at night.",
    "An old elevator in the office got stuck with six people in it.",
    "They moved the concert to the big hall because of the demand.",
    "My phone's battery hardly lasts until noon.",
    "The soup was far too salty, but the bread was excellent.",
    "A meteor shower can be seen tonight if the clouds leave.",
    "The landlord wants to raise the rent by nine percent.",
    "I am learning Finnish, the cases are endless.",
    "The goalkeeper broke his wrist in the last minute.",
    "The cathedral's organ is being repaired until autumn.",
    "Somebody stole the flowers in front of the library.",
)


def answering(messages: list[ModelMessage], _info: Info) -> Turn:
    return reply("I see.") if as_text(messages[-1]).startswith(("[INBOX", "[RECALLED")) else "Listened."


async def a_life(world: World, *, private: bool = False, since: Sequence[str] = BIRDS) -> tuple[Agent, Entity, Space]:
    """Ada, who has heard all this in the kitchen, and then so much else that none of it is in the window."""
    ada = await world.agent("Ada", model=forever(answering), window=WINDOW)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada, private=private)
    for text in (*PAST, *since):
        await world.say(noor, text, kitchen)
        await world.run()
    assert PAST[0] not in "\n".join(as_text(each) for each in world.model(ada).requests[-1])
    return ada, noor, kitchen


async def comes_to_mind(world: World, ada: Agent, noor: Entity, kitchen: Space, text: str) -> str:
    """What is recalled when Noor says this; empty if nothing is."""
    world.model(ada).requests.clear()
    await world.say(noor, text, kitchen)
    await world.run()
    last = as_text(world.model(ada).requests[0][-1])
    return last if last.startswith("[RECALLED") else ""


@pytest.mark.parametrize(
    ("text", "matters"),
    [
        ("Where did I put my violin?", "cellar"),
        ("The violin is not behind the paint any more, did somebody take it?", "cellar"),
        ("What was that about the harbour report?", "due on Friday"),
        ("Could you please book me a train to Lisbon, for Thursday if possible?", ""),
        ("Have you read anything by Borges?", ""),
        ("Hm.", ""),
        ("And you?", ""),
        ("What was it?", ""),
        ("Ok, thanks!", ""),
    ],
    ids=["a question", "a remark", "another", "one common word", "in passing", "nothing", "no word", "it", "thanks"],
)
async def test_only_what_matters_comes_to_mind(small_world: World, text: str, matters: str):
    """A search would find something for nearly all of them: the best that there is is not always good."""
    ada, noor, kitchen = await a_life(small_world)
    found = await comes_to_mind(small_world, ada, noor, kitchen, text)
    assert (matters in found) if matters else found == ""


async def a_booking(world: World, text: str, notes: str = "") -> tuple[Agent, Entity, Space]:
    """Ada, who has booked something in a cycle long ago."""

    @tool(results="trusted")
    async def book_hotel(city: str) -> str:
        """Book a hotel."""
        return f"Hotel Aurora in {city}, room 12.{notes}"

    script = [call("book_hotel", city="Turin"), reply("It is booked."), "Booked it for Noor."]

    def booking(_messages: list[ModelMessage], _info: Info) -> Turn:
        return script.pop(0) if script else "Listened."

    silent = {"silent_reply": "ignore"}
    ada = await world.agent("Ada", model=forever(booking), tools=[book_hotel], window=WINDOW, cycle=silent)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    for each in (text, *BIRDS):
        await world.say(noor, each, kitchen)
        await world.run()
    return ada, noor, kitchen


async def test_the_cycle_that_matters_comes_whole_with_what_the_agent_did_in_it(world: World):
    """Not only the line of a person that has the words."""
    ada, noor, kitchen = await a_booking(world, "Please book a hotel for the puppet festival in Turin.")
    found = await comes_to_mind(world, ada, noor, kitchen, "Which puppet festival was it?")
    lines = [line for line in found.splitlines() if line.startswith(("09:", "You"))]
    assert lines[:4] == [
        '09:00 Noor: "Please book a hotel for the puppet festival in Turin."',
        'You: "It is booked."',
        "You did:",
        'You summed up: "Booked it for Noor."',
    ]
    assert 'book_hotel {"city": "Turin"} → Hotel Aurora in Turin, room 12.' in found


async def test_of_a_cycle_that_does_not_fit_only_what_matters_comes(world: World):
    long = " It has a view." * 60
    ada, noor, kitchen = await a_booking(world, "Please book a hotel for the puppet festival in Turin.", long)
    found = await comes_to_mind(world, ada, noor, kitchen, "Which puppet festival was it?")
    assert "Please book a hotel for the puppet festival in Turin." in found
    assert "You did" not in found


async def test_with_an_embedder_what_means_the_same_comes_to_mind(ready_sqlite_url: str):
    """In other words too; and what means something else altogether still does not."""
    pytest.importorskip("onnxruntime")
    async with open_world(ready_sqlite_url, embedder="local") as world:
        ada, noor, kitchen = await a_life(world, since=OTHERWISE)
        await world.denizen.minds.reindex()
        assert "Biscuit" in await comes_to_mind(world, ada, noor, kitchen, "Does anybody next door own a young dog?")
        await world.denizen.minds.reindex()
        assert await comes_to_mind(world, ada, noor, kitchen, "Inflation fell to two percent in the euro zone.") == ""


async def test_an_embedder_that_fails_leaves_the_words(ready_sqlite_url: str):
    class Broken:
        name = "broken"

        async def embed(self, texts: Any, *, asking: bool = False) -> list[bytes]:
            raise ConnectionError("gone")

        async def close(self) -> None: ...

    async with open_world(ready_sqlite_url) as world:
        ada, noor, kitchen = await a_life(world)
        world._options["embedder"] = Broken()
        await world.restart()
        assert "cellar" in await comes_to_mind(world, ada, noor, kitchen, "Where did I put my violin?")


async def in_hand(world: World, ada: Agent) -> minds.Mind:
    lease = await world.denizen.db.write(leases.acquire, ada.id, "test")
    assert lease is not None
    definition = ada.definition
    who = Identity(ada.entity, definition.instructions, definition.zone)
    room = budget(definition.window, None)
    return await world.denizen.db.read(minds.load, lease, who, ada.version, definition.window, room, None)


@pytest.mark.parametrize("others", [False, True])
async def test_what_comes_in_between_decides_who_may_hear_of_it(ready_url: str, others: bool):
    """What was found for a private space is not recalled if the cycle is about another one as well."""
    async with open_world(ready_url, pace=Pace(warm_seconds=0)) as world:
        ada, noor, kitchen = await a_life(world, private=True)
        bert = await world.person("Bert")
        hall = await world.space("Hall", bert, ada)
        await world.say(noor, "Where did I put my violin?", kitchen)
        mind = await in_hand(world, ada)
        found = await remind(world.denizen.db, None, mind)
        assert found is not None
        if others:
            await world.say(bert, "Hello.", hall)
        inbox = mind.budget.inbox
        waking = Waking(mind.identity, mind.version, mind.era, inbox, {"normal": TOOLBOX}, mind.next_seq, found)
        opened = await world.denizen.db.write(open_cycle, mind.lease, waking)
        assert isinstance(opened, OpenedCycle)
        assert [each.kind for each in opened.cycle.entries] == (["inbox"] if others else ["inbox", "recalled"])


async def test_while_the_window_holds_the_whole_life_nothing_is_looked_for(world: World):
    ada = await world.agent("Ada", model=forever(answering), window={"strategy": "semantic"})
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, PAST[0], kitchen)
    await world.run()
    assert await world.denizen.db.read(glance, ada.id, ()) is None
    assert await comes_to_mind(world, ada, noor, kitchen, "Where did I put my violin?") == ""


# Whether something matters


def ranking(covered: float, *, named: bool = False) -> Ranking:
    return Ranking(frozenset(), EVERYTHING, {1: 3.0}, 10, {"violin": 4.0, "cellar": 4.0}, 8.0, 1.0, covered, named)


def test_it_matters_by_its_share_of_what_the_words_tell() -> None:
    assert is_relevant(ranking(COVERED), {})
    assert not is_relevant(ranking(COVERED - 0.01), {})


def test_words_must_tell_more_where_meaning_is_known_too() -> None:
    """What means the same is found without them."""
    far = {1: 0.0}
    assert is_relevant(ranking(COVERED_BESIDE_MEANING), far)
    assert not is_relevant(ranking(COVERED_BESIDE_MEANING - 0.01), far)


def test_of_somebody_who_is_known_less_is_enough() -> None:
    assert is_relevant(ranking(COVERED_OF_THEM, named=True), {})
    assert not is_relevant(ranking(COVERED_OF_THEM - 0.01, named=True), {})


def test_of_a_long_inbox_a_few_telling_words_are_enough() -> None:
    long = replace(ranking(0.15), rarity={f"word{number}": 5.0 for number in range(24)})
    assert is_relevant(long, {})
    assert not is_relevant(replace(long, covered=0.1), {})


def test_it_matters_by_what_it_means() -> None:
    assert is_relevant(ranking(0.0), {1: NEAR})
    assert not is_relevant(ranking(0.0), {1: NEAR - 0.01})


def test_without_anything_found_nothing_matters() -> None:
    assert not is_relevant(replace(ranking(1.0), scores={}), {})
