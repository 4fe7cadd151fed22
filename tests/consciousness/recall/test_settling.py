"""The index follows the passages: whatever is settled, and whatever happens meanwhile, the same is found."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen import Runtime
from denizen.agents.registry import Agent
from denizen.consciousness.recall import segments, settling
from denizen.consciousness.recall.passages import forget_cycles
from denizen.consciousness.recall.postings import BLOCK, unpack
from denizen.consciousness.recall.segments import JOINED, SEGMENT
from denizen.storage.database import Tx, statement
from denizen.storage.schema import postings
from tests.consciousness.recall.lives import an_agent, found, heard, house, live

WORDS = ["kettle", "lamp", "violin", "tent", "map", "ladder", "canoe", "scarf"]
COUNTS = st.dictionaries(st.text(alphabet="abcé猫", min_size=1, max_size=3), st.integers(1, 15), max_size=6)


def talk(cycles: int, seed: int = 5) -> list[list[Any]]:
    chance = random.Random(seed)
    return [[heard(" ".join(chance.choices(WORDS, k=4)), minute=at * 3)] for at in range(cycles)]


async def test_a_life_that_has_not_begun_has_nothing_to_search(ready_sqlite_url: str) -> None:
    async with house(ready_sqlite_url) as denizen:
        ada = await an_agent(denizen)
        assert await denizen.db.read(settling.extent, ada.id) == settling.Extent(0, 0, 0, 0)


def test_what_was_forgotten_is_not_there_to_search() -> None:
    assert [settling.Extent(5, forgotten).there for forgotten in (0, 2, 5, 6)] == [5, 3, 0, 0]


def _blocks(tx: Tx) -> list[int]:
    return sorted({row[0] for row in tx.all(statement(postings.select().with_only_columns(postings.c.block)))})


async def answers(runtime: Runtime, agent: Agent) -> list[list[tuple[int, float]]]:
    asked = ["where is the violin", "map tent", "canoe ladder scarf"]
    return [[(each.number, each.score) for each in await found(runtime.db, agent, query)] for query in asked]


@given(counted=st.dictionaries(st.integers(1, BLOCK - 1), COUNTS, max_size=8), cut=st.integers(0, 8))
def test_a_segment_gives_back_what_was_put_into_it(counted: dict[int, dict[str, int]], cut: int) -> None:
    """Each term by itself or all together, from one segment or from two that became one."""
    ordered = sorted(counted.items())
    joined = segments.join([segments.encode(dict(ordered[:cut])), segments.encode(dict(ordered[cut:]))])
    assert joined == segments.encode(dict(ordered))
    terms = sorted({term for _, counts in ordered for term in counts} | {"nothing"})
    looked_up = dict(segments.look_up(joined, segments.sought(terms)))
    assert looked_up == dict(segments.decode(joined))
    for term in terms:
        occurs_in = [(number, counts[term]) for number, counts in ordered if term in counts]
        given_back = [(number, shaped >> 12) for number, shaped in unpack(0, looked_up.get(term, b""))]
        assert given_back == occurs_in


async def test_settling_changes_nothing_that_is_found(ready_url: str) -> None:
    """As texts, as segments, as segments that became one: the same passages with the same scores."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        await live(runtime.db, ada, talk(JOINED + 40), settled=False)
        before = await answers(runtime, ada)
        assert await runtime.db.read(_blocks) == []
        made = await runtime.db.read(settling.make_segment, ada.id, SEGMENT)
        assert made is not None
        assert await runtime.db.write(settling.keep_segment, ada.id, made)
        assert await answers(runtime, ada) == before
        assert not await runtime.db.write(settling.keep_segment, ada.id, made)
        await settling.settle(runtime.db, ada.id, fewest=1)
        assert await runtime.db.read(_blocks) == [-JOINED, -1]
        assert await answers(runtime, ada) == before


async def test_a_full_block_becomes_postings_step_by_step(ready_sqlite_url: str) -> None:
    """While its rows are written they do not count, so that whoever dies in the middle has changed nothing."""
    async with house(ready_sqlite_url) as runtime:
        ada = await an_agent(runtime)
        lives = talk(BLOCK + 10)
        await live(runtime.db, ada, lives, settled=False)
        while (made := await runtime.db.read(settling.make_segment, ada.id, 1)) is not None:
            await runtime.db.write(settling.keep_segment, ada.id, made)
        before = await answers(runtime, ada)
        joint = await runtime.db.read(settling.make_joint, ada.id)
        assert joint is not None
        assert joint.block == 0
        assert await runtime.db.write(settling.keep_rows, ada.id, joint, joint.rows[:3], last=False)
        assert await answers(runtime, ada) == before
        await settling.settle(runtime.db, ada.id, fewest=1)
        assert await runtime.db.read(_blocks) == [-BLOCK, 0]
        assert await answers(runtime, ada) == before


@pytest.mark.parametrize("step", ["segment", "joint"])
async def test_what_is_forgotten_meanwhile_is_not_written_back(ready_url: str, step: str) -> None:
    """Work that had begun before is thrown away."""
    async with house(ready_url) as runtime:
        ada = await an_agent(runtime)
        lives = talk(JOINED + 5)
        lives[3] = [heard("The zither is in the attic.", minute=9)]
        await live(runtime.db, ada, lives, settled=False)
        if step == "segment":
            made = await runtime.db.read(settling.make_segment, ada.id, 1)
            await runtime.db.write(forget_cycles, ada.id, [4])
            assert made is not None
            assert not await runtime.db.write(settling.keep_segment, ada.id, made)
        else:
            while (made := await runtime.db.read(settling.make_segment, ada.id, 1)) is not None:
                await runtime.db.write(settling.keep_segment, ada.id, made)
            joint = await runtime.db.read(settling.make_joint, ada.id)
            await runtime.db.write(forget_cycles, ada.id, [4])
            assert joint is not None
            assert not await runtime.db.write(settling.keep_rows, ada.id, joint, joint.rows, last=True)
        await settling.settle(runtime.db, ada.id, fewest=1)
        assert await found(runtime.db, ada, "zither attic") == []
        rows = await runtime.db.read(lambda tx: tx.all(statement(postings.select())))
        assert rows
        assert "zither" not in repr(rows)
