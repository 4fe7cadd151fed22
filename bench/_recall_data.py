"""The lives and questions of `bench.recall`: LoCoMo, BEAM, and lives that are made up."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from denizen.clock import SECOND

_DEV = ("conv-26", "conv-30")
"""The conversations of LoCoMo whose questions weights and thresholds may be chosen with."""
_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@dataclass(frozen=True, slots=True)
class Turn:
    conversation: str
    id: str
    who: str
    text: str
    at: int
    own: bool = False
    """Whether the agent said it."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[tuple[str, str]]
    """Conversations and turns."""
    kind: str = ""
    here: str = ""
    """The conversation in which it is asked; empty: none of them."""


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: list[Turn]
    questions: list[Question]
    dev: bool = False
    speakers: frozenset[str] = field(default=frozenset())


def merged(lives: Iterable[Conversation]) -> Conversation:
    """All of them as one life, interleaved by date."""
    given = list(lives)
    turns = sorted((turn for life in given for turn in life.turns), key=lambda turn: turn.at)
    return Conversation(turns, [question for life in given for question in life.questions])


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")


def in_sentences(life: Conversation) -> Conversation:
    """The same life with each sentence as a turn; the evidence is all sentences of the turns that it was."""
    turns: list[Turn] = []
    parts: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for turn in life.turns:
        for at, sentence in enumerate(_SENTENCE.split(turn.text)):
            id = f"{turn.id}/{at}"
            turns.append(replace(turn, id=id, text=sentence, at=turn.at + at * SECOND))
            parts[turn.conversation, turn.id].append((turn.conversation, id))
    asked = [
        replace(question, evidence=frozenset(part for each in question.evidence for part in parts[each]))
        for question in life.questions
    ]
    return Conversation(turns, asked, life.dev, life.speakers)


# LoCoMo


def read_locomo(path: Path) -> list[Conversation]:
    return [_conversation(sample) for sample in json.loads(path.read_text())]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk, turns, name = sample["conversation"], list[Turn](), sample["sample_id"]
    for number in range(1, 200):
        if f"session_{number}" not in talk:
            continue
        given = f"{talk[f'session_{number}_date_time'].strip()} +0000"
        began_at = int(datetime.strptime(given, "%I:%M %p on %d %B, %Y %z").timestamp()) * SECOND
        for at, turn in enumerate(talk[f"session_{number}"]):
            picture = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            said = turn["text"] + picture
            turns.append(Turn(name, turn["dia_id"], turn["speaker"], said, began_at + at * 20 * SECOND))
    there = {turn.id for turn in turns}
    asked = [
        Question(
            each["question"],
            frozenset((name, id) for id in _ids(each.get("evidence")) & there),
            _KINDS.get(each["category"], "other"),
        )
        for each in sample["qa"]
    ]
    with_evidence = [question for question in asked if question.evidence]
    return Conversation(turns, with_evidence, name in _DEV, frozenset(turn.who for turn in turns))


def _ids(evidence: Iterable[str] | None) -> set[str]:
    """The turns that are meant: `D8:6; D9:17` is two, `D12:3-D12:5` three, and `D:11:26` is `D11:26`."""
    found: set[str] = set()
    for label in evidence or ():
        given = [(int(session), int(turn)) for session, turn in re.findall(r"D:?(\d+):(\d+)", label)]
        if "-" in label and len(given) == 2 and given[0][0] == given[1][0]:
            given = [(given[0][0], turn) for turn in range(given[0][1], given[1][1] + 1)]
        found |= {f"D{session}:{turn}" for session, turn in given}
    return found


# BEAM

_MARK = re.compile(r"\s*->->.*$", re.DOTALL)
"""The label that a person's messages end with."""


def read_beam(folder: Path, sample: int = 0) -> list[Conversation]:
    """The chats of 100K and 500K tokens; with `sample`, as many of each size."""
    chats = folder / "chats" if (folder / "chats").is_dir() else folder
    found: list[Conversation] = []
    for size in ("100K", "500K"):
        numbers = sorted(int(each.name) for each in (chats / size).iterdir() if each.name.isdecimal())
        found += [_chat(chats / size / str(number), f"{size} {number}") for number in numbers[: sample or None]]
    return found


def _chat(folder: Path, name: str) -> Conversation:
    turns: list[Turn] = []
    at = 0
    for batch in json.loads((folder / "chat.json").read_text()):
        for message in (message for turn in batch["turns"] for message in turn):
            if anchor := message.get("time_anchor"):
                day = int(datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC, hour=9).timestamp()) * SECOND
                at = max(at, day)
            at += 60 * SECOND
            text, own = _MARK.sub("", message["content"]), message["role"] != "user"
            turns.append(Turn(name, str(message["id"]), f"User {name}", text, at, own))
    there = {turn.id for turn in turns}
    asked = [
        Question(
            each["question"],
            frozenset((name, str(id)) for id in _numbers(each.get("source_chat_ids")) if str(id) in there),
            kind.replace("_", "-"),
            name,
        )
        for kind, questions in json.loads((folder / "probing_questions" / "probing_questions.json").read_text()).items()
        for each in questions
    ]
    return Conversation(turns, [each for each in asked if each.evidence], int(folder.name) % 2 == 0)


def _numbers(given: Any) -> Iterable[int]:
    """The ids of messages, however they are nested."""
    if isinstance(given, int):
        yield given
    elif isinstance(given, dict | list):
        inner: Iterable[Any] = given.values() if isinstance(given, dict) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        for each in inner:
            yield from _numbers(each)


# Made up


def words(text: str) -> list[str]:
    return text.split()


THINGS = words("kettle lamp violin passport bicycle tent camera recipe map ladder canoe telescope piano scarf drill")
PLACES = words("attic garage cellar shed kitchen office library balcony harbour station museum market")


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
            questions.append(Question(f"Where did {name} put the {thing}?", frozenset({(name, f"D{at}:1")}), "where"))
        lives.append(Conversation(turns, questions, speakers=frozenset((name, other))))
    return lives


def _small_talk(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(6, 22))).capitalize() + "."


WORDS = words(
    "the a weather was fine today and we walked along river with friends who said that their new work is going well "
    "but there are so many meetings I would rather read or cook something simple maybe soup then watch film about "
    "mountains yesterday my sister called from abroad she wants to visit in spring if tickets get cheaper"
)


def asked_of(lives: Sequence[Conversation], half: str) -> list[Conversation]:
    """The same lives with the questions of this half only; empty: all."""
    return [life if half in ("", "dev" if life.dev else "held-out") else replace(life, questions=[]) for life in lives]
