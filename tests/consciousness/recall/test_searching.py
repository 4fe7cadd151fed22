"""An agent finds what was said to it, however long ago; nobody hears what was said in private."""

from __future__ import annotations

import asyncio
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.agents.registry import Agent
from denizen.clock import SECOND, Instant
from denizen.consciousness.recall import full_text, settling
from denizen.consciousness.recall.cues import Period
from denizen.consciousness.recall.fetching import Filter
from denizen.consciousness.recall.full_text import MOST_POSTINGS
from denizen.consciousness.recall.passages import PASSAGE_CHARACTERS, SEALED, Piece, forget_cycles, forget_messages
from denizen.consciousness.recall.searching import MOST_AROUND, MOST_LOOKED_AT, search
from denizen.consciousness.recall.terms import count_terms
from denizen.storage.database import Tx, statement
from denizen.storage.schema import passages as passages_table
from denizen.storage.schema import postings
from tests.consciousness.recall.lives import MINUTE, START, Counting, an_agent, found, heard, house, live, texts
from tests.databases import with_tables

# Ranking by words

Life = list[list[str]]
WORDS = st.sampled_from(["kettle", "kettles", "lamp", "violin", "tent", "map", "the", "a", "猫"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
LIVES = st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=12)


def bm25(texts: Sequence[str], query: str) -> dict[int, float]:
    """What each text scores, by the book: over every text, with no index at all."""
    counts = [count_terms(f"Noor {text}") for text in texts]
    lengths = [sum(each.values()) for each in counts]
    mean = max(sum(lengths) / max(len(texts), 1), 1.0)
    scores: defaultdict[int, float] = defaultdict(float)
    for term in count_terms(query):
        having = sum(term in each for each in counts)
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, (each, length) in enumerate(zip(counts, lengths, strict=True), start=1):
            if term in each:
                often = min(each[term], 15)
                scores[number] += rarity * often * 1.9 / (often + 0.9 * (0.6 + 0.4 * length / mean))
    return dict(scores)


@settings(max_examples=40)
@given(life=LIVES, query=TEXTS, settled=st.sets(st.integers(0, 11)))
def test_scores_are_those_of_the_book(life: Life, query: str, settled: set[int]) -> None:
    """Wherever in its life an agent's newest terms were put among the postings, BM25 is what it is by definition."""

    async def story(folder: Path) -> None:
        async with house(with_tables(folder / "denizen.db")) as runtime:
            ada, other = await an_agent(runtime), await an_agent(runtime, "Grace")
            await live(runtime.db, other, [[heard("kettle kettle lamp")]])
            for number, said in enumerate(life):
                await live(runtime.db, ada, [[heard(text) for text in said]], first=number + 1)
                if number in settled:
                    await settling.settle(runtime.db, ada.id, fewest=1)
            scored = await runtime.db.read(_scores, ada, query)
            told = [text for said in life for text in said if text.strip()]
            assert scored == pytest.approx(bm25(told, query))

    with TemporaryDirectory() as folder:
        asyncio.run(story(Path(folder)))


def _scores(tx: Tx, agent: Agent, query: str) -> dict[int, float]:
    scored = full_text.score(tx, agent.id, settling.extent(tx, agent.id), query)
    return dict(zip(scored.numbers.tolist(), scored.scores.tolist(), strict=True))


def a_life(cycles: int, seed: int = 3) -> list[list[Piece]]:
    """Much that is said in a few spaces, with words as rare and as common as in real lives."""
    chance = random.Random(seed)
    vocabulary = [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in "bdfgklmnprstvz"]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    return [
        [
            heard(" ".join(chance.choices(vocabulary, weights, k=20)), minute=at * 10, who=f"Person {at % 7}"),
            Piece("said", " ".join(chance.choices(vocabulary, weights, k=12)), START + at * 10 * MINUTE + SECOND),
        ]
        for at in range(cycles)
    ]


async def test_how_many_are_asked_for_does_not_change_which_are_the_best(ready_sqlite_url: str) -> None:
    """A short passage with one of the words comes before 120 long ones with both, also if only one is asked for."""
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        long = f"{'kettle ' * 3}{'violin ' * 3}{'and so on ' * 120}"
        lives = [[heard("A kettle.")], *([heard(f"Lamp {at}.", minute=600 * at)] for at in range(1, 401))]
        lives += [[heard(long, minute=600 * at)] for at in range(401, 521)]
        await live(runtime.db, ada, lives)
        everything = await texts(runtime.db, ada, "kettle violin")
        assert everything[0] == "A kettle."
        assert await texts(runtime.db, ada, "kettle violin", limit=1) == everything[:1]


async def test_both_databases_find_the_same_in_the_same_order(ready_sqlite_url: str, ready_postgres_url: str) -> None:
    """The ranking is ours: what differs between databases does not show."""
    lives = a_life(300)
    queries = [" ".join(lives[at][0].text.split()[:5]) for at in range(0, 300, 30)]
    answers: list[list[Any]] = []
    for url in (ready_sqlite_url, ready_postgres_url):
        async with house(url) as runtime:
            ada = await an_agent(runtime)
            await live(runtime.db, ada, lives)
            results = [await found(runtime.db, ada, query) for query in queries]
            answers.append([[(each.number, each.score, each.text) for each in result] for result in results])
    assert all(answers[0])
    assert answers[0] == answers[1]


async def test_what_was_said_in_cycle_12_is_found_after_5000(ready_sqlite_url: str) -> None:
    """A life is not too long to remember its beginning."""
    lives = a_life(5_000)
    lives[11] = [heard("My grandmother's violin is in the lighthouse.", minute=110)]
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, lives)
        first = (await found(runtime.db, ada, "Where is the violin of Noor's grandmother?"))[0]
    assert (first.cycle, first.text) == (12, "My grandmother's violin is in the lighthouse.")


async def test_a_query_reads_no_more_of_a_long_life(ready_sqlite_url: str) -> None:
    """The commonest words of a long life are read in part, the rarest in whole."""
    lives = [[heard(f"kettle lamp violin tent map number{at}", minute=at)] for at in range(6_000)]
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, lives)

        def counted(tx: Tx) -> tuple[int, int, list[int]]:
            counting = Counting(tx)
            result = search(cast("Tx", counting), ada.id, "kettle lamp violin tent map number17", limit=50)
            return counting.rows, counting.postings, [each.cycle for each in result]

        rows, read, cycles = await runtime.db.read(counted)
    assert cycles[0] == 18
    assert read <= MOST_POSTINGS
    assert rows <= MOST_LOOKED_AT + MOST_AROUND + 1_000


async def test_relevance_spreads_to_what_was_said_around_it(ready_url: str) -> None:
    """The answer shares no word with the question, but follows what does."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        talk = ["Have you seen the violin?", "In the cellar, behind the boxes.", "Thank you."]
        far = [[heard(f"Rain again, day {at}.", minute=at * 1_000, space="")] for at in range(5, 30)]
        await live(runtime.db, ada, [*([heard(line, minute=at)] for at, line in enumerate(talk)), *far])
        order = await texts(runtime.db, ada, "violin")
    assert order[:3] == talk


async def test_who_is_named_and_when_decides_between_equals(ready_url: str) -> None:
    """The same words, from the one who is named and at the time that is meant, come first."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        said = [("Sam", 0), ("Noor", 2_000), ("Noor", 20_000), ("Bo", 40_000)]
        await live(runtime.db, ada, [[heard("The kettle is broken.", minute=at, who=who)] for who, at in said])
        by_bo = await found(runtime.db, ada, "What did Bo say about the kettle?")
        then = await found(runtime.db, ada, "kettle on 6 January 2026", now=Instant(START + 90_000 * MINUTE))
    assert (by_bo[0].who, by_bo[0].cycle) == ("Bo", 4)
    assert then[0].cycle == 2


# Filters


@pytest.mark.parametrize("settled", [False, True])
async def test_filters_are_exact(ready_url: str, settled: bool) -> None:
    """Nothing comes that was not asked for, however well it fits otherwise."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        kitchen, attic = [await runtime.spaces.create(name, [ada]) for name in ("Kitchen", "Attic")]
        cycles = [
            [heard("kettle one", minute=0, space=kitchen.id, who="Sam")],
            [heard("kettle two", minute=60, space=attic.id, who="Noor")],
            [heard("kettle three", minute=120, space=kitchen.id, who="Noor")],
        ]
        await live(runtime.db, ada, cycles)
        if settled:
            await settling.settle(runtime.db, ada.id, fewest=1)

        async def only(**given: Any) -> set[str]:
            return set(await texts(runtime.db, ada, "kettle", only=Filter(**given)))

        assert await only(speakers=frozenset({"Noor"})) == {"kettle two", "kettle three"}
        assert await only(space_id=kitchen.id) == {"kettle one", "kettle three"}
        assert await only(period=Period(START + MINUTE, START + 120 * MINUTE)) == {"kettle two"}
        assert await only(before_cycle=3) == {"kettle one", "kettle two"}
        assert await only(space_id=kitchen.id, speakers=frozenset({"Noor"})) == {"kettle three"}
        assert await only(period=Period(0, START)) == set()


async def test_another_agents_life_is_never_found(ready_url: str) -> None:
    async with house(ready_url) as runtime:
        ada, grace = await an_agent(runtime), await an_agent(runtime, "Grace")
        await live(runtime.db, ada, [[heard("kettle")]])
        assert await texts(runtime.db, grace, "kettle") == []


# Privacy


async def test_in_a_life_of_many_spaces_what_was_said_here_is_found_first(ready_url: str) -> None:
    """Though hundreds of others said the same, and more lately."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        rooms = [await runtime.spaces.create(f"Room {number}", [ada]) for number in range(3)]
        told = "My project uses a kettle."
        cycles = [[heard("Her project uses a kettle.", minute=at, space=rooms[at % 2].id)] for at in range(900)]
        cycles.insert(5, [heard(told, minute=5, space=rooms[2].id)])
        await live(runtime.db, ada, cycles)
        assert (await texts(runtime.db, ada, "kettle project", audience=[rooms[2].id]))[0] == told
        assert told not in (await texts(runtime.db, ada, "kettle project", audience=[rooms[0].id]))[:100]


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("wish", ["Always name the price in euros.", "Bitte immer den Preis in Euro nennen."])
async def test_what_somebody_wishes_is_found_where_they_ask(ready_url: str, wish: str, settled: bool) -> None:
    """The question need not share a word with it. Elsewhere that does not matter."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        rooms = [await runtime.spaces.create(f"Room {number}", [ada]) for number in range(2)]
        talk = [heard(f"We travelled to Paris, day {at}.", minute=at, space=rooms[at % 2].id) for at in range(1, 60)]
        cycles = [[heard(wish, space=rooms[0].id)], *([each] for each in talk)]
        await live(runtime.db, ada, cycles, settled=settled)
        question = "How do I travel to Paris?"
        assert wish in (await texts(runtime.db, ada, question, audience=[rooms[0].id]))[:5]
        for audience in ([rooms[1].id], []):
            assert wish not in (await texts(runtime.db, ada, question, audience=audience))[:20]


async def test_who_speaks_of_a_habit_wishes_for_nothing(ready_url: str) -> None:
    """ "Always" alone does not bring a message forward whatever is asked."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        room = await runtime.spaces.create("Room", [ada])
        habit, wish = "The shop has always had a blue door.", "Please always name the price in euros."
        talk = [heard(f"We travelled to Paris, day {at}.", minute=at, space=room.id) for at in range(2, 60)]
        told = [heard(habit, space=room.id), heard(wish, minute=1, space=room.id)]
        await live(runtime.db, ada, [told, *([each] for each in talk)])
        first = (await texts(runtime.db, ada, "How do I travel to Paris?", audience=[room.id]))[:20]
        assert wish in first
        assert habit not in first


async def test_words_with_which_a_question_only_asks_do_not_decide(ready_url: str) -> None:
    """Who counts or mentions something else is no answer to "how many did I mention"."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        about, beside = "There were kettles on the shelf.", "I mentioned it many times."
        others = [[heard("A kettle." if at < 3 else "Rain.", minute=600 * at)] for at in range(1, 15)]
        await live(runtime.db, ada, [[heard(beside)], *others, [heard(about, minute=9_000)]])
        question = "How many kettles on a shelf did I mention?"
        assert (await texts(runtime.db, ada, question))[0] == about
        assert (await texts(runtime.db, ada, question))[-1] == beside


async def test_what_the_agent_said_counts_in_full_if_the_question_is_what_it_said(ready_url: str) -> None:
    """Otherwise it counts less than what it was told: its answers have the same words."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        said = Piece("said", "In Oslo I recommend the hotel at the harbour.", START + MINUTE, "", ada.id)
        await live(runtime.db, ada, [[heard("I need a room in Oslo."), said]])

        async def score(question: str) -> float:
            results = await found(runtime.db, ada, question)
            return next(each.score for each in results if each.text == said.text)

        assert await score("Which hotel did you recommend?") == await score("Which hotel did they recommend?") + 2


async def test_what_was_said_in_private_is_found_only_there(ready_url: str) -> None:
    """Not in another space, not in two at once, not where there is none; and no neighbour betrays it."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        room = await runtime.spaces.create("Room", [ada])
        aside, other = [await runtime.spaces.create(name, [ada], private=True) for name in ("Aside", "Other")]
        said = [("public kettle", room.id), ("secret kettle", aside.id), ("other kettle", other.id)]
        mixed = [("mixed kettle", SEALED), ("lost kettle", "a space that is gone"), ("own kettle", "")]
        await live(runtime.db, ada, [[heard(text, space=space)] for text, space in [*said, *mixed]])

        async def seen_in(*audience: str) -> set[str]:
            return set(await texts(runtime.db, ada, "kettle", audience=audience))

        assert await seen_in(room.id) == {"public kettle", "own kettle"}
        assert await seen_in(aside.id) == {"public kettle", "own kettle", "secret kettle"}
        assert await seen_in(aside.id, room.id) == {"public kettle", "own kettle"}
        assert await seen_in(aside.id, other.id) == {"public kettle", "own kettle"}
        assert await seen_in() == {"public kettle", "own kettle"}
        asked = Filter(space_id=aside.id)
        assert await texts(runtime.db, ada, "kettle", audience=[room.id], only=asked) == []
        named = Filter(period=Period(START, START + MINUTE))
        assert set(await texts(runtime.db, ada, "today", audience=[room.id], only=named, now=Instant(START))) == {
            "public kettle",
            "own kettle",
        }


# Long texts, notes


async def test_the_end_of_a_long_text_is_found(ready_url: str) -> None:
    """A long text is several passages; each tells where the whole is."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        sam = await runtime.people.create("Sam")
        room = await runtime.spaces.create("Room", [ada, sam])
        text = "The weather is fine today. " * 400 + "The violin is in the cellar."
        posted = await runtime.spaces.post(room, sam, text)
        await live(runtime.db, ada, [[Piece("heard", text, START, room.id, sam.id, "Sam", posted.id)]])
        first = (await found(runtime.db, ada, "violin"))[0]
    assert first.text.endswith("The violin is in the cellar.")
    assert len(first.text) <= PASSAGE_CHARACTERS
    assert (first.who, first.space, first.pointer) == ("Sam", "Room", f"message:{posted.id}")


async def test_notes_are_found_beside_passages(ready_url: str) -> None:
    """What the agent wrote down for itself is part of its life."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await runtime.notes.set(ada, "violin", "Belongs to Sam's grandmother.")
        await live(runtime.db, ada, [[heard("The kettle is on.")]])
        assert (await found(runtime.db, ada, "Whose violin?"))[0].kind == "note"
        assert "note" not in [each.kind for each in await found(runtime.db, ada, "kettle")]


async def test_a_note_is_found_by_a_word_that_is_said_all_the_time(ready_sqlite_url: str) -> None:
    """It counts for little, but nothing else that was written down has the word."""
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        await runtime.notes.set(ada, "kettle", "Descale it in May, with vinegar.")
        await live(runtime.db, ada, [[heard("The kettle is on.", minute=at)] for at in range(10)])
        assert "note" in [each.kind for each in await found(runtime.db, ada, "kettle", limit=30)]


async def test_an_agent_without_a_past_recalls_nothing(ready_url: str) -> None:
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        assert await texts(runtime.db, ada, "anything") == []
        await live(runtime.db, ada, [[heard("  ")], []])
        assert await texts(runtime.db, ada, "") == []


# Forgetting


def _everything(tx: Tx) -> str:
    kept = [tx.all(statement(table.select())) for table in (passages_table, postings)]
    return repr(kept)


@pytest.mark.parametrize("settled", [False, True])
async def test_not_one_word_remains_of_a_forgotten_cycle(ready_url: str, settled: bool) -> None:
    """It is found no more, its words are in no index, and everything else is found as before."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        cycles = [[heard("The violin is in the cellar.")], [heard("The kettle is in the cellar.")]]
        await live(runtime.db, ada, cycles)
        if settled:
            await settling.settle(runtime.db, ada.id, fewest=1)
        assert "violin" in await runtime.db.read(_everything)

        assert await runtime.db.write(forget_cycles, ada.id, [1]) == 1

        assert await texts(runtime.db, ada, "violin") == []
        assert await texts(runtime.db, ada, "cellar") == ["The kettle is in the cellar."]
        assert "violin" not in await runtime.db.read(_everything)
        assert await runtime.db.write(forget_cycles, ada.id, [1]) == 0
        await live(runtime.db, ada, [[heard("Another violin.")]], first=3)
        assert (await texts(runtime.db, ada, "violin"))[0] == "Another violin."


async def test_a_forgotten_message_is_forgotten_by_everyone(ready_url: str) -> None:
    async with house(ready_url) as runtime:
        ada, grace = await an_agent(runtime), await an_agent(runtime, "Grace")
        sam = await runtime.people.create("Sam")
        room = await runtime.spaces.create("Room", [sam])
        posted = await runtime.spaces.post(room, sam, "The violin is mine.")
        for agent in (ada, grace):
            said = Piece("heard", "The violin is mine.", START, room.id, sam.id, "Sam", posted.id)
            await live(runtime.db, agent, [[said]])

        assert await runtime.db.write(forget_messages, [posted.id]) == 2

        for agent in (ada, grace):
            assert await texts(runtime.db, agent, "violin") == []
