"""What remembering costs: a turn with everything on against everything off, and finding a memory among very many.

    python -m bench.memory [--turns N] [--new N] [--items N] [--database-url URL]

`turn`: CPU of one durable turn (as in `bench.turn`, of a young agent) of a runtime that remembers nothing, and of one
that sums conversations up and reminds the agent with the default cadence; the utility model is scripted and answers at
once, and each pass leaves twelve items, three of which are new (`--new`) and take the place of three that were there,
for each of three owners. They take turns, `ROUNDS` times, so that whatever else the machine does falls
on both; `ratio` is what the second costs for each that the first does, the median over the rounds.
`retrieval`: the median and the 95th percentile of a question to a user's memory of N items (100,000), by words, with
everything that is asked before it (who is there, what is settled), in milliseconds of wall clock; and the CPU of one,
in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import text as sql

from bench.turn import WARM_UP, Asked, household, io_and_cpu, turn
from denizen import Runtime, forever
from denizen.bus.streams import agent_topic
from denizen.consciousness.recall.postings import shape
from denizen.consciousness.recall.terms import count_terms
from denizen.ids import AgentId, SpaceId, new_id
from denizen.memory import permissions
from denizen.memory.items import hash_of
from denizen.memory.settings import MemoryOptions
from denizen.memory.sinks import DatabaseRetriever, MemoryQuery
from denizen.models.scripted import Info
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import memories, memory_owners, memory_terms

WORDS = 4_000
AT_ONCE = 2_000
QUESTIONS = 100
ROUNDS = 3

_PRESETS: dict[str, Any] = {
    "memoryCompaction": {"profiles": {"bench": {"cooldownMs": 0, "modelId": "utility"}}, "defaultProfile": "bench"}
}
_add = insert_into(
    memories,
    *("id", "organization_id", "scope", "owner", "space_id", "user_id", "kind", "category", "text", "hash", "length"),
    *("created_at", "updated_at"),
)
_add_term = insert_into(memory_terms, "owner", "term", "number", "shape")
_analyze = statement(sql("ANALYZE"))
_measure = insert_into(memory_owners, "owner", "items", "length")


def _summing_up(new: int) -> Callable[[object, Info], str]:
    """What a utility model would write: twelve items, so many of them new each time."""

    def sum_up(_messages: object, info: Info) -> str:
        first = info.number * new
        chosen = range(first, first + 12)
        facts = [{"text": f"Noor mentioned thing number {n} of many.", "sources": [1, 2]} for n in chosen]
        return json.dumps({"summary_markdown": "They talked. " * 60, "memory_json": {"facts": facts}})

    return sum_up


async def a_turn(
    folder: Path, turns: int, new: int, database_url: str | None, number: int, *, on: bool
) -> dict[str, float]:
    """The CPU of a turn, with everything that goes on beside it."""
    url = database_url or f"sqlite:///{folder}/memory-{number}.db"
    options = MemoryOptions(presets=lambda: _PRESETS) if on else None
    async with Runtime(url, memory=options) as runtime:
        runtime.models.register("utility", forever(_summing_up(new), chunk=None, record=False))
        person, agent, space = await household(runtime, Asked(), number)
        async with runtime.living(), runtime.bus.subscribe(agent_topic(agent.id)) as life:
            for _ in range(WARM_UP):
                await turn(runtime, person, space, life)
            await runtime.run_until_idle()
            gc.collect()
            before, commits = io_and_cpu(), runtime.db.commits
            for _ in range(turns):
                await turn(runtime, person, space, life)
            await runtime.run_until_idle()
            after = io_and_cpu()
        passes = (await runtime.memory.summary(space)).passes
        return {
            "cpu_ms": round((after[0] - before[0]) / turns * 1000, 3),
            "commits": round((runtime.db.commits - commits) / turns, 2),
            "passes": passes,
        }


async def retrieval(folder: Path, count: int, database_url: str | None) -> dict[str, float]:
    """How long it takes to find what is remembered of somebody of whom very much is."""
    url = database_url or f"sqlite:///{folder}/retrieval.db"
    chance = random.Random(1)
    async with Runtime(url) as runtime:
        person, agent, space = await household(runtime, Asked(), number=2 * ROUNDS)
        owner = f"user:{person.id}"
        whose = {"organization_id": person.organization_id, "scope": "user", "owner": owner, "user_id": person.id}
        texts = [_text(chance) for _ in range(count)]
        counts: Counter[str] = Counter()
        for first in range(0, count, AT_ONCE):
            some = {first + at + 1: each for at, each in enumerate(texts[first : first + AT_ONCE])}
            await runtime.db.write(_fill, {**whose, "space_id": space.id}, some)
            counts.update(term for text in some.values() for term in count_terms(text))
        await runtime.db.write(_count, owner, dict(counts), count, sum(len(text.split()) for text in texts))
        posted = await runtime.spaces.post(space, person, "Hello.")
        retriever = DatabaseRetriever(runtime.db)
        took: list[float] = []
        cpu = time.process_time()
        for _ in range(QUESTIONS):
            query = " ".join(chance.sample(chance.choice(texts).split(), 6)) + " and what else about that"
            began = time.perf_counter()
            who = await runtime.db.read(permissions.readable, AgentId(agent.id), [SpaceId(space.id)], [posted.id])
            found = await retriever.retrieve(MemoryQuery(query, who.owners, {"user": 6, "persona": 6}))
            took.append((time.perf_counter() - began) * 1000)
            assert found
        cpu = time.process_time() - cpu
        took.sort()
        return {
            "items": count,
            "cpu_ms": round(cpu / QUESTIONS * 1000, 2),
            "median_ms": round(statistics.median(took), 2),
            "p95_ms": round(took[int(len(took) * 0.95)], 2),
        }


def _text(chance: random.Random) -> str:
    """Twelve words, some common and most rare, as words are."""
    return " ".join(f"word{int(WORDS ** chance.random())}" for _ in range(12))


def _fill(tx: Tx, whose: dict[str, Any], texts: dict[int, str]) -> None:
    rows: list[dict[str, Any]] = []
    terms: list[dict[str, Any]] = []
    for number, text in texts.items():
        counts = count_terms(text)
        length = sum(counts.values())
        at = {"created_at": tx.now, "updated_at": tx.now}
        # Some are the same words: for a bench they may be two.
        hashed = f"{hash_of(whose['owner'], text)}{number}"
        rows.append({**whose, **at, "id": new_id(), "kind": "item", "category": "facts", "text": text, "hash": hashed}
                    | {"length": length})  # fmt: skip
        terms += [
            {"owner": whose["owner"], "term": term, "number": number, "shape": shape(times, length)}
            for term, times in counts.items()
        ]
    tx.many(_add, rows)
    tx.many(_add_term, terms)


def _count(tx: Tx, owner: str, counts: dict[str, int], many: int, length: int) -> None:
    tx.many(_add_term, [{"owner": owner, "term": term, "number": 0, "shape": each} for term, each in counts.items()])
    tx.run(_measure, owner=owner, items=many, length=length)
    if tx.dialect == "postgresql":
        # As autovacuum would have done by the time there is so much.
        tx.run(_analyze)


async def measure(turns: int, new: int, count: int, database_url: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        off: list[dict[str, float]] = []
        on: list[dict[str, float]] = []
        for number in range(0, 2 * ROUNDS, 2):
            off.append(await a_turn(folder, turns // ROUNDS, new, database_url, number, on=False))
            on.append(await a_turn(folder, turns // ROUNDS, new, database_url, number + 1, on=True))
        found = await retrieval(folder, count, database_url)
    ratio = statistics.median(b["cpu_ms"] / a["cpu_ms"] for a, b in zip(off, on, strict=True))
    each = {"off": _middle(off), "on": _middle(on), "ratio": round(ratio, 2)}
    return {"bench": "memory", "turn": each, "retrieval": found}


def _middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The round that took the median of CPU."""
    return sorted(rounds, key=lambda each: each["cpu_ms"])[len(rounds) // 2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--new", type=int, default=3)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--database-url")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    print(json.dumps(asyncio.run(measure(given.turns, given.new, given.items, given.database_url))))


if __name__ == "__main__":
    main()
