"""How much of what matters an agent recalls, and what a query costs.

    python -m bench.recall [--data FILE] [--words-only] [--cycles N]

Evidence recall: each turn of a conversation is lived as a cycle, through the real messages and the real index; then
each question is asked, and a context of at most so many tokens (characters ÷ 4, headers and names included) is chosen.
Reported is the share of the question's evidence in it, in percent: for the newest turns (`window`), for full text, and
with the local embedder where it is installed (`full`); with each conversation as a life of its own (`single`) and with
all of them interleaved by date into one life (`merged`). `merged_hit` is the share of questions with all their
evidence in the context.

FILE, or DENIZEN_RECALL_DATA, is in the format of LoCoMo (Maharana et al., 2024: data/locomo10.json in the repository
snap-research/locomo; CC BY-NC 4.0, for measuring only). Without it, a small life is made up.

`query_ms`: the median CPU of a query in a generated life of N cycles (5,000); with everything on, the embedding of the
question included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from denizen import Runtime
from denizen.agents.registry import Agent
from denizen.clock import SECOND, Instant
from denizen.consciousness.recall.embedding import QuestionVectors, ask, meaning, reindex
from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.consciousness.recall.passages import Piece, remember
from denizen.consciousness.recall.rendering import pack
from denizen.consciousness.recall.searching import search
from denizen.consciousness.recall.settling import settle
from denizen.errors import InvalidInput
from denizen.ids import AgentId, MessageId, new_id
from denizen.models.embedders import LocalEmbedder, Reading
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, insert_into
from denizen.storage.schema import messages

BUDGETS = (1_000, 2_000, 4_000, 8_000)
MOST = 400
"""Passages that may fit the largest of them."""


@dataclass(frozen=True, slots=True)
class Turn:
    conversation: str
    id: str
    who: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: list[Turn]
    questions: list[Question]


# The data


def read_data(path: Path) -> list[Conversation]:
    return [_conversation(sample) for sample in json.loads(path.read_text())]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk, turns = sample["conversation"], list[Turn]()
    for number in range(1, 200):
        if f"session_{number}" not in talk:
            continue
        given = f"{talk[f'session_{number}_date_time'].strip()} +0000"
        began_at = int(datetime.strptime(given, "%I:%M %p on %d %B, %Y %z").timestamp()) * SECOND
        for at, turn in enumerate(talk[f"session_{number}"]):
            picture = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            said = turn["text"] + picture
            turns.append(Turn(sample["sample_id"], turn["dia_id"], turn["speaker"], said, began_at + at * 20 * SECOND))
    there = {turn.id for turn in turns}
    asked = [
        Question(each["question"], frozenset((sample["sample_id"], id) for id in _ids(each.get("evidence")) & there))
        for each in sample["qa"]
    ]
    return Conversation(turns, [question for question in asked if question.evidence])


def _ids(evidence: Iterable[str] | None) -> set[str]:
    """The turns that are meant: `D8:6; D9:17` is two, `D12:3-D12:5` three, and `D:11:26` is `D11:26`."""
    found: set[str] = set()
    for label in evidence or ():
        given = [(int(session), int(turn)) for session, turn in re.findall(r"D:?(\d+):(\d+)", label)]
        if "-" in label and len(given) == 2 and given[0][0] == given[1][0]:
            given = [(given[0][0], turn) for turn in range(given[0][1], given[1][1] + 1)]
        found |= {f"D{session}:{turn}" for session, turn in given}
    return found


def _words(text: str) -> list[str]:
    return text.split()


THINGS = _words("kettle lamp violin passport bicycle tent camera recipe map ladder canoe telescope piano scarf drill")
PLACES = _words("attic garage cellar shed kitchen office library balcony harbour station museum market")


def made_up(seed: int = 7) -> list[Conversation]:
    """A few short lives in which people say where they put things, between much that does not matter."""
    chance = random.Random(seed)
    lives: list[Conversation] = []
    for name, other in (("Noor", "Sam"), ("Ida", "Bo"), ("Lena", "Raj")):
        turns: list[Turn] = []
        questions: list[Question] = []
        pairs = [(thing, chance.choice(PLACES)) for thing in THINGS]
        for at, (thing, place) in enumerate(pairs):
            day = 1_767_603_600 * SECOND + at * 86_400 * SECOND
            for line, (who, text) in enumerate(
                [
                    (other, f"Have you seen the {thing} anywhere? I could use it this week."),
                    (name, f"I put it away, it is in the {place} now."),
                    (other, f"Thanks. {_small_talk(chance)}"),
                    *((chance.choice((name, other)), _small_talk(chance)) for _ in range(12)),
                ]
            ):
                turns.append(Turn(name, f"D{at}:{line}", who, text, day + line * 30 * SECOND))
            questions.append(Question(f"Where did {name} put the {thing}?", frozenset({(name, f"D{at}:1")})))
        lives.append(Conversation(turns, questions))
    return lives


def _small_talk(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(6, 22))).capitalize() + "."


WORDS = _words(
    "the a weather was fine today and we walked along river with friends who said that their new work is going well "
    "but there are so many meetings I would rather read or cook something simple maybe soup then watch film about "
    "mountains yesterday my sister called from abroad she wants to visit in spring if tickets get cheaper"
)


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
                handle = f"p{len(self._people)}"
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
            heard = Piece("heard", turn.text, turn.at, space.id, person.id, turn.who, id)
            remember(tx, self.agent.id, number, [heard])


async def house(runtime: Runtime) -> House:
    return House(runtime, await runtime.agents.create("Ada", model="demo"))


# Measuring it

Chooser = Callable[[Tx, AgentId, Question, Instant], list[RecalledPassage]]


def full_text(tx: Tx, agent_id: AgentId, question: Question, now: Instant, limit: int = 80) -> list[RecalledPassage]:
    return search(tx, agent_id, question.text, now=now, limit=limit)


def full(
    tx: Tx, agent_id: AgentId, question: Question, now: Instant, limit: int = 80, *, name: str, asked: QuestionVectors
) -> list[RecalledPassage]:
    near = meaning(tx, agent_id, name, asked)
    return search(tx, agent_id, question.text, now=now, limit=limit, meaning=near)


class Remembering:
    """The local embedder, which reads what is in two lives only once."""

    def __init__(self) -> None:
        self._embedder = LocalEmbedder()
        self.name = self._embedder.name
        self._known: dict[str, Reading] = {}

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [reading.vector for reading in await self.read(texts, asking=asking)]

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[Reading]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, await self._embedder.read(new, asking=asking), strict=True))
        return [self._known[text] for text in texts]

    async def cpu(self, text: str) -> float:
        """Milliseconds of CPU that it takes to read a question."""
        began = time.process_time()
        await ask(self._embedder, text)
        return (time.process_time() - began) * 1000

    async def close(self) -> None:
        await self._embedder.close()


def local() -> Remembering | None:
    try:
        return Remembering()
    except InvalidInput:
        return None


def window(turns: Sequence[Turn]) -> list[RecalledPassage]:
    """The newest turns, as a sliding window has them."""
    return [_as_found(at, turns[at]) for at in range(len(turns) - 1, max(len(turns) - 2_000, -1), -1)]


def _as_found(at: int, turn: Turn) -> RecalledPassage:
    return RecalledPassage(
        at + 1, at + 1, turn.at, "heard", turn.conversation, turn.conversation, turn.who, turn.text, "", 0.0
    )


@dataclass(slots=True)
class Tally:
    """Recall and hits, summed over questions."""

    recall: defaultdict[int, float]
    hits: defaultdict[int, float]
    questions: int = 0

    def add(self, found: Sequence[RecalledPassage], question: Question, turns: Sequence[Turn]) -> None:
        self.questions += 1
        for budget in BUDGETS:
            chosen = {
                (turns[each.cycle - 1].conversation, turns[each.cycle - 1].id) for each in pack(found, tokens=budget)
            }
            share = len(chosen & question.evidence) / len(question.evidence)
            self.recall[budget] += share
            self.hits[budget] += share == 1.0

    def report(self, sums: defaultdict[int, float]) -> dict[str, float]:
        return {str(budget): round(100 * sums[budget] / max(self.questions, 1), 1) for budget in BUDGETS}


def tally() -> Tally:
    return Tally(defaultdict(float), defaultdict(float))


async def measure(folder: Path, lives: Sequence[Conversation], *, with_meaning: bool) -> dict[str, Any]:
    merged_turns = sorted((turn for life in lives for turn in life.turns), key=lambda turn: turn.at)
    merged = Conversation(merged_turns, [question for life in lives for question in life.questions])
    embedder = local() if with_meaning else None
    methods: dict[str, dict[str, Any]] = {"window": {}, "full_text": {}}
    if embedder is not None:
        methods["full"] = {}
    for shape, several in (("single", lives), ("merged", [merged])):
        tallies = {name: tally() for name in methods}
        for number, life in enumerate(several):
            await one_life(f"sqlite:///{folder}/{shape}-{number}.db", life, tallies, embedder)
        for name, each in tallies.items():
            methods[name][shape] = each.report(each.recall)
            if shape == "merged":
                methods[name]["merged_hit"] = each.report(each.hits)
    if embedder is not None:
        await embedder.close()
    return methods


async def one_life(url: str, life: Conversation, tallies: dict[str, Tally], embedder: Remembering | None) -> None:
    async with Runtime(url) as runtime:
        home = await house(runtime)
        await home.live(life.turns)
        if embedder is not None:
            await reindex(runtime.db, embedder)
        now = Instant(life.turns[-1].at + 86_400 * SECOND)
        newest = window(life.turns)
        for question in life.questions:
            tallies["window"].add(newest, question, life.turns)
            found = await runtime.db.read(full_text, home.agent.id, question, now, limit=MOST)
            tallies["full_text"].add(found, question, life.turns)
            if embedder is not None:
                asked = await ask(embedder, question.text)
                choose = partial(full, name=embedder.name, asked=asked)
                found = await runtime.db.read(choose, home.agent.id, question, now, limit=MOST)
                tallies["full"].add(found, question, life.turns)


def _cpu(tx: Tx, choose: Chooser, agent_id: AgentId, question: Question, now: Instant) -> float:
    """Milliseconds of CPU that one query takes."""
    began = time.thread_time()
    choose(tx, agent_id, question, now)
    return (time.thread_time() - began) * 1000


# What a query costs


async def cost(folder: Path, cycles: int, *, with_meaning: bool, queries: int = 60) -> dict[str, float]:
    """The CPU of queries in a generated life: words as rare and as common as in real ones."""
    chance = random.Random(11)
    vocabulary = [f"{a}{b}{c}" for a in CONSONANTS for b in "aeiou" for c in CONSONANTS]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]

    def sentence(words: int) -> str:
        return " ".join(chance.choices(vocabulary, weights, k=words))

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
        words = [await runtime.db.read(_cpu, full_text, home.agent.id, question, now) for question in asked]
        spent = {"full_text": words}
        if embedder is not None:
            await reindex(runtime.db, Scattered(embedder.name))
            spent["full"] = [await _cpu_of_all(runtime, home, embedder, question, now) for question in asked]
            await embedder.close()
    return {"window": 0.0} | {name: round(statistics.median(each), 2) for name, each in spent.items()}


class Scattered:
    """Vectors that mean nothing, in the place of those of another embedder: comparing them costs the same."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._chance = random.Random(3)

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [reading.vector for reading in await self.read(texts, asking=asking)]

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[Reading]:
        del asking
        return [self._reading(tuple(text.split())) for text in texts]

    def _reading(self, words: tuple[str, ...]) -> Reading:
        return Reading(self._chance.randbytes(384), words, self._chance.randbytes(384 * len(words)))

    async def close(self) -> None:
        return


async def _cpu_of_all(runtime: Runtime, home: House, embedder: Remembering, question: Question, now: Instant) -> float:
    embedding = await embedder.cpu(question.text)
    asked = await ask(embedder, question.text)
    choose = partial(full, name=embedder.name, asked=asked)
    return embedding + await runtime.db.read(_cpu, choose, home.agent.id, question, now)


CONSONANTS = _words("b d f g k l m n p r s t v z br dr st tr pl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("DENIZEN_RECALL_DATA"))
    parser.add_argument("--cycles", type=int, default=5_000, help="of the generated life in which queries are timed")
    parser.add_argument("--words-only", action="store_true", help="leave out the local embedder")
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what is printed is the result
    lives = read_data(Path(given.data)) if given.data else made_up()
    with tempfile.TemporaryDirectory() as name:
        methods = asyncio.run(measure(Path(name), lives, with_meaning=not given.words_only))
        query_ms = asyncio.run(cost(Path(name), given.cycles, with_meaning=not given.words_only))
    print(json.dumps({"bench": "recall", "methods": methods, "query_ms": query_ms}))


if __name__ == "__main__":
    main()
