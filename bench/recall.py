"""How much of what matters an agent recalls, and what a query costs.

    python -m bench.recall [--data FILE] [--half dev|held-out] [--words-only] [--cycles N] [--cache FILE]
    python -m bench.recall --format beam --data FOLDER [--half dev|held-out] [--sample N] [--words-only]

Evidence recall: each turn of a conversation is lived as a cycle, through the real messages and the real index; then
each question is asked, and a context of at most so many tokens (characters ÷ 4, headers and names included) is chosen.
Reported is the share of the question's evidence in it, in percent (`recall`), and the share of questions with all of it
(`hit`), for the newest turns (`window`), for full text, and with the local embedder where it is installed (`full`):

- `single`: each conversation is a life of its own. `merged`: all of them are one life, interleaved by date; here also
  by kind of question (`kinds`).
- `short`: the merged life with each sentence as a message of its own. The evidence is all sentences of its turns.
- `automatic`: what the merged life is shown by itself, in the block that opens a cycle, without the tool: the share of
  the evidence, of questions that bring nothing (`nothing`), and of questions that bring something although they are
  about people of whom the life knows nothing (`strangers`: each conversation's questions, in the merged life of the
  others; questions that name one of their speakers are left out).

FILE, or DENIZEN_RECALL_DATA, is in the format of LoCoMo (Maharana et al., 2024: data/locomo10.json in the repository
snap-research/locomo; CC BY-NC 4.0, for measuring only). Without it, a small life is made up. With `--format beam`,
FOLDER is a copy of the repository mohammadtavakoli78/BEAM or of its folder `chats` (Tavakoli et al.; for measuring
only): the chats of 100K and 500K tokens. A message counts as found if a part of it is in the context.

What is chosen by measuring is chosen with the questions of one half only (`--half dev`): of LoCoMo the conversations
conv-26 and conv-30, of BEAM the chats with even numbers. `--half held-out` asks the others; the lives are the same.

`index`: how many passages the merged life has, and what each takes with its words. `cpu_ms`: the median of its queries,
with 400 results. `query_ms`: the median CPU of a query in a generated life of N cycles (5,000); with everything on, the
embedding of the question included. `--cache` keeps what the embedder has read between runs.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import pickle
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from bench._recall_data import (
    Conversation,
    Question,
    Turn,
    asked_of,
    in_sentences,
    made_up,
    merged,
    read_beam,
    read_locomo,
    words,
)
from denizen import Runtime
from denizen.agents.registry import Agent
from denizen.clock import SECOND, Instant
from denizen.consciousness import recollection
from denizen.consciousness.recall.embedding import QuestionVectors, ask, meaning, reindex
from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.consciousness.recall.passages import Piece, remember
from denizen.consciousness.recall.rendering import pack
from denizen.consciousness.recall.searching import search
from denizen.consciousness.recall.settling import settle
from denizen.errors import InvalidInput
from denizen.ids import AgentId, MessageId, new_id
from denizen.models.embedders import LocalEmbedder, TextVectors
from denizen.spaces.directory import Entity, Space
from denizen.spaces.handles import handle_from
from denizen.storage.database import Tx, insert_into
from denizen.storage.schema import messages

BUDGETS = (1_000, 2_000, 4_000, 8_000)
MOST = 400
"""Passages that may fit the largest of them."""


# Living it

_add_message = insert_into(messages, "id", "space_id", "seq", "author_id", "text", "created_at")


class House:
    """A runtime with one agent that has heard everything."""

    def __init__(self, runtime: Runtime, agent: Agent) -> None:
        self.runtime = runtime
        self.agent = agent
        self._people: dict[tuple[str, str], Entity] = {}
        self._spaces: dict[str, Space] = {}

    async def live(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            key = (turn.conversation, turn.who)
            if key not in self._people:
                namesakes = sum(turn.who == who for _, who in self._people)
                handle = f"{handle_from(turn.who)}-{namesakes + 1}" if namesakes else None
                self._people[key] = await self.runtime.people.create(turn.who, handle=handle)
            if turn.conversation not in self._spaces:
                self._spaces[turn.conversation] = await self.runtime.spaces.create(turn.conversation, [self.agent])
        for first in range(0, len(turns), 200):
            await self.runtime.db.write(self._write, turns[first : first + 200], first + 1)
        await settle(self.runtime.db, self.agent.id)

    def _write(self, tx: Tx, turns: Sequence[Turn], first: int) -> None:
        for number, turn in enumerate(turns, start=first):
            id = MessageId(new_id())
            space, person = self._spaces[turn.conversation], self._people[turn.conversation, turn.who]
            row = {"space_id": space.id, "seq": number, "author_id": person.id, "text": turn.text}
            tx.run(_add_message, id=id, **row, created_at=turn.at)
            if turn.own:
                piece = Piece("said", turn.text, turn.at, space.id, self.agent.id, "", id)
            else:
                piece = Piece("heard", turn.text, turn.at, space.id, person.id, turn.who, id)
            remember(tx, self.agent.id, number, [piece])

    def audience(self, question: Question) -> frozenset[str]:
        """The space in which the question is asked."""
        return frozenset((self._spaces[question.here].id,)) if question.here else frozenset()


async def house(runtime: Runtime) -> House:
    return House(runtime, await runtime.agents.create("Ada", model="demo"))


# Measuring it


class Remembering:
    """The local embedder, which reads what is in two lives only once; with a file, also in two runs."""

    def __init__(self, file: Path | None = None) -> None:
        self._embedder = LocalEmbedder()
        self.name = self._embedder.name
        self._known: dict[str, TextVectors] = {}
        self._file = None if file is None else sqlite3.connect(file)
        if self._file is not None:
            self._file.execute("CREATE TABLE IF NOT EXISTS readings (text BLOB PRIMARY KEY, reading BLOB)")

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [reading.vector for reading in await self.read(texts, asking=asking)]

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[TextVectors]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known and not self._load(text)]
        for text, reading in zip(new, await self._embedder.read(new, asking=asking), strict=True):
            self._known[text] = reading
            if self._file is not None:
                row = (_digest(text), pickle.dumps((reading.vector, reading.words, reading.states)))
                self._file.execute("INSERT OR IGNORE INTO readings VALUES (?, ?)", row)
        if self._file is not None:
            self._file.commit()
        return [self._known[text] for text in texts]

    def _load(self, text: str) -> bool:
        asked = (
            None
            if self._file is None
            else self._file.execute("SELECT reading FROM readings WHERE text = ?", (_digest(text),)).fetchone()
        )
        if asked is None:
            return False
        self._known[text] = TextVectors(*pickle.loads(asked[0]))
        return True

    async def cpu(self, text: str) -> float:
        """Milliseconds of CPU that it takes to read a question."""
        began = time.process_time()
        await ask(self._embedder, text)
        return (time.process_time() - began) * 1000

    async def close(self) -> None:
        await self._embedder.close()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def local(file: Path | None = None) -> Remembering | None:
    try:
        return Remembering(file)
    except InvalidInput:
        return None


@dataclass(frozen=True, slots=True)
class Asking:
    """A question in a life, and how it is asked."""

    agent_id: AgentId
    question: Question
    audience: frozenset[str]
    now: Instant
    embedder: str = ""
    asked: QuestionVectors | None = None
    """None: by words only."""


def by_tool(tx: Tx, asking: Asking, limit: int = 80) -> list[RecalledPassage]:
    """What the tool finds, the best first."""
    asked = asking.asked
    near = None if asked is None else meaning(tx, asking.agent_id, asking.embedder, asked)
    text, audience = asking.question.text, asking.audience
    return search(tx, asking.agent_id, text, audience=audience, now=asking.now, limit=limit, meaning=near)


def _timed(tx: Tx, asking: Asking) -> tuple[list[RecalledPassage], float]:
    """What the tool finds, and the milliseconds of CPU that it took."""
    began = time.thread_time()
    found = by_tool(tx, asking, limit=MOST)
    return found, (time.thread_time() - began) * 1000


def by_itself(tx: Tx, asking: Asking) -> list[RecalledPassage]:
    """What the block shows that opens a cycle."""
    seen = recollection.InboxCue(asking.question.text, asking.audience, before_cycle=2**40)
    occasion = recollection.search(tx, asking.agent_id, seen, "UTC", asking.embedder, asking.asked, now=asking.now)
    return recollection.choose(tx, asking.agent_id, occasion, tokens=recollection.MOST_TOKENS, zone="UTC")


def window(turns: Sequence[Turn]) -> list[RecalledPassage]:
    """The newest turns, as a sliding window has them."""
    return [_as_found(at, turns[at]) for at in range(len(turns) - 1, max(len(turns) - 2_000, -1), -1)]


def _as_found(at: int, turn: Turn) -> RecalledPassage:
    return RecalledPassage(
        at + 1, at + 1, turn.at, "heard", turn.conversation, turn.conversation, turn.who, turn.text, "", 0.0
    )


def _share(chosen: Iterable[RecalledPassage], question: Question, turns: Sequence[Turn]) -> float:
    """The share of the question's evidence among the chosen."""
    there = {(turns[each.cycle - 1].conversation, turns[each.cycle - 1].id) for each in chosen}
    return len(there & question.evidence) / len(question.evidence)


@dataclass(slots=True)
class Tally:
    """Shares of evidence, by budget and kind of question."""

    shares: defaultdict[tuple[int, str], list[float]] = field(default_factory=lambda: defaultdict(list[float]))

    def add(self, found: Sequence[RecalledPassage], question: Question, turns: Sequence[Turn]) -> None:
        for budget in BUDGETS:
            self.shares[budget, question.kind].append(_share(pack(found, tokens=budget), question, turns))

    def report(self, kind: str | None = None) -> dict[str, dict[str, float]]:
        recall: dict[str, float] = {}
        hit: dict[str, float] = {}
        for budget in BUDGETS:
            some = [each for (at, of), each in self.shares.items() if at == budget and kind in (None, of)]
            shares = [share for each in some for share in each]
            recall[str(budget)] = percent(shares)
            hit[str(budget)] = percent([share == 1.0 for share in shares])
        return {"recall": recall, "hit": hit}

    def kinds(self) -> dict[str, Any]:
        counts = {kind: len(each) for (budget, kind), each in self.shares.items() if budget == BUDGETS[0]}
        return {kind: {"questions": counts[kind], **self.report(kind)} for kind in sorted(counts)}


def percent(values: Sequence[float]) -> float:
    return round(100 * sum(values) / max(len(values), 1), 1)


@dataclass(slots=True)
class Tallies:
    """Everything that is counted for one way of finding."""

    tool: defaultdict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """By shape of the life."""
    automatic: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    """Shares of evidence, by kind of question."""
    cpu_ms: list[float] = field(default_factory=list[float])
    """Of the tool's queries in the merged life, without the reading of the question."""
    nothing: list[float] = field(default_factory=list[float])
    strangers: list[float] = field(default_factory=list[float])

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {shape: each.report() for shape, each in self.tool.items()}
        if "merged" in found:
            found["merged"]["kinds"] = self.tool["merged"].kinds()
            if self.cpu_ms:
                found["merged"]["cpu_ms"] = round(statistics.median(self.cpu_ms), 1)
        if self.automatic:
            found["automatic"] = {
                "tokens": recollection.MOST_TOKENS,
                "recall": percent([share for each in self.automatic.values() for share in each]),
                "nothing": percent(self.nothing),
                "strangers": percent(self.strangers),
                "kinds": {kind: percent(each) for kind, each in sorted(self.automatic.items())},
            }
        return found


SHAPES = ("single", "merged", "short", "automatic")


async def measure(
    folder: Path, lives: Sequence[Conversation], shapes: Iterable[str], embedder: Remembering | None
) -> dict[str, Any]:
    everything = merged(lives)
    shaped = {
        "single": [life for life in lives if life.questions],
        "merged": [everything],
        "short": [in_sentences(everything)],
    }
    methods = {"window": Tallies(), "full_text": Tallies()} | ({} if embedder is None else {"full": Tallies()})
    wanted = list(shapes)
    for shape, several in shaped.items():
        automatic = shape == "merged" and "automatic" in wanted
        for number, life in enumerate(several if shape in wanted or automatic else ()):
            url = f"sqlite:///{folder}/{shape}-{number}.db"
            tool = shape if shape in wanted else ""
            await one_life(url, life, methods, embedder, tool=tool, automatic=automatic)
    if "automatic" in wanted:
        for number, life in enumerate(lives):
            others = [other for other in lives if other is not life]
            url = f"sqlite:///{folder}/without-{number}.db"
            await strangers(url, merged(others), _strange(life, others), methods, embedder)
    found: dict[str, Any] = {name: each.report() for name, each in methods.items()}
    if "merged" in wanted:
        found["index"] = _size(f"{folder}/merged-0.db")
    return found


def _strange(life: Conversation, others: Iterable[Conversation]) -> list[Question]:
    """Its questions that name nobody who speaks in the others."""
    known = {name for other in others for name in other.speakers}
    return [each for each in life.questions if not any(name in each.text for name in known)]


async def one_life(
    url: str,
    life: Conversation,
    methods: dict[str, Tallies],
    embedder: Remembering | None,
    *,
    tool: str,
    automatic: bool,
) -> None:
    async with Runtime(url) as runtime:
        home = await lived(runtime, life, embedder)
        newest = window(life.turns)
        for question in life.questions:
            if tool:
                methods["window"].tool[tool].add(newest, question, life.turns)
            for name, asking in (await askings(home, life, question, embedder)).items():
                if tool:
                    found, spent = await runtime.db.read(_timed, asking)
                    methods[name].tool[tool].add(found, question, life.turns)
                    methods[name].cpu_ms += [spent] if tool == "merged" else []
                if automatic:
                    shown = await runtime.db.read(by_itself, asking)
                    methods[name].automatic[question.kind].append(_share(shown, question, life.turns))
                    methods[name].nothing.append(not shown)


async def strangers(
    url: str,
    life: Conversation,
    questions: Sequence[Question],
    methods: dict[str, Tallies],
    embedder: Remembering | None,
) -> None:
    if not questions:
        return
    async with Runtime(url) as runtime:
        home = await lived(runtime, life, embedder)
        for question in questions:
            for name, asking in (await askings(home, life, question, embedder)).items():
                methods[name].strangers.append(bool(await runtime.db.read(by_itself, asking)))


_INDEX = "name IN ('postings', 'passages') OR name LIKE 'ix_passages_%'"


def _size(file: str) -> dict[str, float]:
    """How many passages the database has, and what they and their index of words take."""
    with closing(sqlite3.connect(file)) as database:
        (count,) = database.execute("SELECT count(*) FROM passages").fetchone()
        (taken,) = database.execute(f"SELECT sum(pgsize) FROM dbstat WHERE {_INDEX}").fetchone()
    return {"passages": count, "bytes_per_passage": round(taken / max(count, 1))}


async def lived(runtime: Runtime, life: Conversation, embedder: Remembering | None) -> House:
    home = await house(runtime)
    await home.live(life.turns)
    if embedder is not None:
        await reindex(runtime.db, embedder)
    return home


async def askings(
    home: House, life: Conversation, question: Question, embedder: Remembering | None
) -> dict[str, Asking]:
    """How the question is asked by each method."""
    now = Instant(life.turns[-1].at + 86_400 * SECOND)
    plain = Asking(home.agent.id, question, home.audience(question), now)
    if embedder is None:
        return {"full_text": plain}
    asked = await ask(embedder, question.text)
    return {"full_text": plain, "full": replace(plain, embedder=embedder.name, asked=asked)}


# What a query costs


async def cost(folder: Path, cycles: int, *, with_meaning: bool, queries: int = 60) -> dict[str, float]:
    """The CPU of queries in a generated life: words as rare and as common as in real ones."""
    chance = random.Random(11)
    vocabulary = [f"{a}{b}{c}" for a in CONSONANTS for b in "aeiou" for c in CONSONANTS]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]

    def sentence(length: int) -> str:
        return " ".join(chance.choices(vocabulary, weights, k=length))

    turns = [
        Turn(f"room {at % 5}", str(at), f"Person {at % 7}", sentence(30), 1_600_000_000 * SECOND + at * 600 * SECOND)
        for at in range(cycles)
    ]
    embedder = local() if with_meaning else None
    asked = [Question(sentence(8), frozenset()) for _ in range(queries)]
    async with Runtime(f"sqlite:///{folder}/cost.db") as runtime:
        home = await house(runtime)
        await home.live(turns)
        now = Instant(turns[-1].at)
        plain = [Asking(home.agent.id, question, frozenset(), now) for question in asked]
        spent = {"full_text": [await runtime.db.read(_cpu, each) for each in plain]}
        if embedder is not None:
            await reindex(runtime.db, Scattered(embedder.name))
            spent["full"] = [await _cpu_of_all(runtime, embedder, each) for each in plain]
            await embedder.close()
    return {"window": 0.0} | {name: round(statistics.median(each), 2) for name, each in spent.items()}


def _cpu(tx: Tx, asking: Asking) -> float:
    """Milliseconds of CPU that one query takes."""
    began = time.thread_time()
    by_tool(tx, asking)
    return (time.thread_time() - began) * 1000


async def _cpu_of_all(runtime: Runtime, embedder: Remembering, plain: Asking) -> float:
    reading = await embedder.cpu(plain.question.text)
    asked = await ask(embedder, plain.question.text)
    return reading + await runtime.db.read(_cpu, replace(plain, embedder=embedder.name, asked=asked))


class Scattered:
    """Vectors that mean nothing, in the place of those of another embedder: comparing them costs the same."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._chance = random.Random(3)

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [reading.vector for reading in await self.read(texts, asking=asking)]

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[TextVectors]:
        del asking
        return [self._reading(tuple(text.split())) for text in texts]

    def _reading(self, words: tuple[str, ...]) -> TextVectors:
        return TextVectors(self._chance.randbytes(384), words, self._chance.randbytes(384 * len(words)))

    async def close(self) -> None:
        return


CONSONANTS = words("b d f g k l m n p r s t v z br dr st tr pl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("DENIZEN_RECALL_DATA"))
    parser.add_argument("--format", choices=("locomo", "beam"), default="locomo")
    parser.add_argument("--half", choices=("dev", "held-out"), default="", help="only the questions of this half")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="which lives are measured, with commas")
    parser.add_argument("--sample", type=int, default=0, help="of BEAM, only as many chats of each size")
    parser.add_argument("--cycles", type=int, default=5_000, help="of the generated life in which queries are timed")
    parser.add_argument("--words-only", action="store_true", help="leave out the local embedder")
    parser.add_argument("--cache", type=Path, help="a file that keeps what the embedder has read between runs")
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what is printed is the result
    if given.format == "beam":
        lives = read_beam(Path(given.data), given.sample)
    else:
        lives = read_locomo(Path(given.data)) if given.data else made_up()
    lives = asked_of(lives, given.half)
    embedder = None if given.words_only else local(given.cache)
    with tempfile.TemporaryDirectory() as name:
        methods = asyncio.run(measure(Path(name), lives, given.shapes.split(","), embedder))
        query_ms = asyncio.run(cost(Path(name), given.cycles, with_meaning=embedder is not None))
    found = {"bench": "recall", "half": given.half or "all", "questions": sum(len(life.questions) for life in lives)}
    print(json.dumps(found | {"methods": methods, "query_ms": query_ms}))


if __name__ == "__main__":
    main()
