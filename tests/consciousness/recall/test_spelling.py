"""Words that are spelled otherwise in the question than in what was said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import bindparam, update

from denizen.agents.registry import Agent
from denizen.consciousness.recall import settling
from denizen.consciousness.recall.segments import decode, rewrite
from denizen.consciousness.recall.spelling import compounds, one_letter_off
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import postings, recalls
from tests.consciousness.recall.lives import an_agent, heard, house, live, texts

SAID = (
    "Jürgen wohnt jetzt in der Goethestraße.",
    "The restaurant near the harbour was lovely.",
    "Zur Feier an seinem Geburtstag kommen alle.",
    "قرأت الكتاب أمس",
    "We call getUserName before the page is drawn.",
    "Błażej keeps bees in Łódź.",
    "My sister paints the fence.",
    "The Wi-Fi in the cabin is slow.",
    "I sent the landlord an email.",
)
OTHERWISE = tuple(f"Nothing much on day {number}, it rained and rained." for number in range(60))


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Jurgen", 0),
        ("Jürgens Goethestrasse", 0),
        ("Juergen", 0),
        ("restarant", 1),
        ("resturant by the harbor", 1),
        ("Geburtstagsfeier", 2),
        ("كتاب", 3),
        ("user name", 4),
        ("getusername", 4),
        ("Blazej", 5),
        ("wifi", 7),
        ("Wi\u2011Fi", 7),
        ("which e-mails", 8),
    ],
)
async def test_a_word_is_found_as_it_is_spelled_otherwise(
    ready_sqlite_url: str, query: str, found: int, settled: bool
) -> None:
    """Without accents, hyphens or an article, with one letter wrong, as a compound, by a part of its name."""
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        cycles = [[heard(text, minute=at * 1_000)] for at, text in enumerate((*SAID, *OTHERWISE))]
        await live(runtime.db, ada, cycles, settled=settled)
        assert (await texts(runtime.db, ada, query))[:1] == [SAID[found]]


async def test_only_words_that_occur_nowhere_are_looked_for_otherwise(ready_sqlite_url: str) -> None:
    """A word that was said is what is meant, however like it another is."""
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard("The painter came.")], [heard("The pointer moved.", minute=1_000)]])
        assert await texts(runtime.db, ada, "painter") == ["The painter came."]
        assert await texts(runtime.db, ada, "paintre") == ["The painter came."]


@given(st.text("abcdefghij", min_size=5, max_size=12))
def test_a_slip_is_among_the_other_spellings(word: str) -> None:
    """One letter less, more or different, or two swapped; never the word itself, and the first letter stays."""
    others = set(one_letter_off(word))
    assert word not in others
    assert {other[0] for other in others} == {word[0]}
    assert word[:2] + word[3:] in others | {word}
    assert f"{word}x" in others


def test_a_compound_is_parted() -> None:
    assert ("geburtstag", "feier") in list(compounds("geburtstagsfeier"))
    assert list(compounds("haustier")) == [("haus", "tier")]
    assert list(compounds("short")) == []


# After an upgrade


_age = statement(update(recalls).where(recalls.c.agent_id == bindparam("agent")).values(terms=0))
_everything = statement(postings.select())
_rename = statement(update(postings).where(postings.c.term == "jurgen").values(term="jürgen"))
_rewrite = statement(
    update(postings).where(postings.c.block == bindparam("of_block")).values(entries=bindparam("left"))
)


def _as_before(tx: Tx, agent: Agent) -> None:
    """The index as the version before would have made it, which folded no letters."""
    tx.run(_age, agent=agent.id)
    for _, block, _, entries in tx.all(_everything):
        if block < 0:
            old = rewrite(("jürgen" if term == "jurgen" else term, some) for term, some in decode(entries))
            tx.run(_rewrite, of_block=block, left=old)
    tx.run(_rename)


async def _indexed(db: Database) -> list[tuple[object, ...]]:
    def rows(tx: Tx) -> list[tuple[object, ...]]:
        return sorted((block, term, bytes(entries)) for _, block, term, entries in tx.all(_everything))

    return await db.read(rows)


async def test_after_an_upgrade_the_index_is_made_again(ready_url: str) -> None:
    """Full blocks and segments alike; what was found before is found all the time, and the rest afterwards."""
    said = [[heard(f"Jürgen sagte Nummer{number}.", minute=number * 1_000)] for number in range(4_200)]
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, said)
        made = await _indexed(runtime.db)
        await runtime.db.write(_as_before, ada)
        assert await _indexed(runtime.db) != made
        assert len(await texts(runtime.db, ada, "Jürgen nummer7", limit=5)) == 5
        assert ada.id in await runtime.db.read(settling.behind)
        await settling.settle(runtime.db, ada.id)
        assert await _indexed(runtime.db) == made
        assert (await texts(runtime.db, ada, "Jurgen nummer4"))[0] == "Jürgen sagte Nummer4."
        assert await runtime.db.read(settling.behind) == []


@pytest.mark.parametrize("query", ["What was it?", "ok", "Thanks!", "はい", "you said?"])
async def test_small_talk_finds_nothing(ready_sqlite_url: str, query: str) -> None:
    """There is no word in it that could be looked for, though others have said the same."""
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, [[heard("Ok, thanks! What was it?")], [heard("はい")], [heard("Danke dir.")]])
        assert await texts(runtime.db, ada, query) == []
        assert await texts(runtime.db, ada, f"{query} dir") != []
