"""Whether what matters is in front of an agent when somebody asks, end to end: in the request that its model gets.

    python -m bench.remembering [--data locomo.json] [--strategy S] [--window TOKENS] [--lives N] [--questions N]

Each life is streamed through real cycles, one message a cycle, by a clock that follows the dates of the conversation;
the scripted agent ends each cycle with a line that begins as the message did. When the window has rolled on, each
question is posted, and the request is searched; then the agent skips, which leaves no trace for the next question.

`evidence`: the share of the turns that a question rests on that are in the request, averaged over questions. `hit`: the
share of questions with all of them. `answer`: the share of the words of the answer that are in the request and not in
the question. `false`: the share of questions about somebody else's life that bring a `[RECALLED]` block. Without
`--data`, lives are made up, and have no answers. LoCoMo is for measuring only, and in no repository of ours.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final, get_args

import structlog
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from bench._recall_data import Conversation, Question, Turn, made_up, read_locomo
from denizen import Entity, Runtime, forever, skip
from denizen.clock import SECOND, Instant, ManualClock, moment
from denizen.consciousness.settings import Strategy
from denizen.models.scripted import Info
from denizen.models.tokens import estimate

_BEGINNING: Final = 80
"""A turn is in a request if so many of its first characters are."""
_LINE: Final = 120
_WORD: Final = re.compile(r"\w+")
_ADVANCES: Final = 30 * 24 * 3_600 * SECOND
"""The clock moves on by at most so much at once."""


@dataclass
class Listener:
    """A scripted agent: it takes note of each message in a line, and looks at the request of a question."""

    asked: bool = False
    said: str = ""
    sent: list[str] = field(default_factory=list[str])

    def decide(self, messages: list[ModelMessage], _info: Info) -> Any:
        if not self.asked:
            return self.said
        self.sent = [
            str(part.content)
            for each in messages
            if isinstance(each, ModelRequest)
            for part in each.parts
            if isinstance(part, UserPromptPart)
        ]
        return skip("a question of the bench")


@dataclass
class Scores:
    """What was found, by question."""

    evidence: list[float] = field(default_factory=list[float])
    answer: list[float] = field(default_factory=list[float])
    false: list[float] = field(default_factory=list[float])
    tokens: list[int] = field(default_factory=list[int])
    rolled: list[bool] = field(default_factory=list[bool])

    def report(self) -> dict[str, Any]:
        return {
            "questions": len(self.evidence),
            "evidence": _share(self.evidence),
            "hit": _share([each == 1 for each in self.evidence]),
            "answer": _share(self.answer),
            "false": _share(self.false),
            "tokens": int(fmean(self.tokens)) if self.tokens else 0,
            "rolled": all(self.rolled),
        }


def _share(values: Sequence[float]) -> float | None:
    return round(100 * fmean(values), 1) if values else None


class Life:
    """An agent that lives through a conversation."""

    def __init__(self, runtime: Runtime, clock: ManualClock, model: Listener) -> None:
        self._runtime = runtime
        self._clock = clock
        self._model = model
        self._people: dict[str, Entity] = {}

    async def begin(self, turns: Sequence[Turn], strategy: str, window: int) -> None:
        runtime = self._runtime
        for name in dict.fromkeys([*(turn.who for turn in turns), "Somebody"]):
            self._people[name] = await runtime.people.create(name)
        settings = {"strategy": strategy, "max_tokens": window}
        self._agent = await runtime.agents.create(
            "Ada", model=forever(self._model.decide, record=False), window=settings, cycle={"silent_reply": "ignore"}
        )
        self._space = await runtime.spaces.create("Conversation", [*self._people.values(), self._agent])

    async def hear(self, turn: Turn) -> None:
        while (left := turn.at - self._clock.now()) > 0:
            self._clock.advance(min(left, _ADVANCES) / SECOND)
        self._model.said = f"{turn.who}: {turn.text}"[:_LINE]
        await self._say(turn.who, turn.text)

    async def ask(self, question: str) -> list[str]:
        """Returns what people and the past say in the request, part by part."""
        self._model.asked, self._model.sent = True, []
        await self._say("Somebody", question)
        self._model.asked = False
        return self._model.sent

    async def _say(self, who: str, text: str) -> None:
        await self._runtime.spaces.post(self._space, self._people[who], text)
        await self._runtime.run_until_idle()


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def found_share(question: Question, turns: Mapping[tuple[str, str], Turn], request: str) -> float:
    """The share of the question's evidence that is in the request."""
    wanted = [_plain(turns[each].text[:_BEGINNING]) for each in sorted(question.evidence) if each in turns]
    return fmean(each in request for each in wanted) if wanted else 0.0


def answered_share(question: str, answer: str, request: str) -> float | None:
    """The share of the answer's words that are in the request; None if the question has them all."""
    asked, there = set(_plain(question).split()), set(request.split())
    words = [word for word in _plain(answer).split() if word not in asked and (len(word) > 2 or word.isdecimal())]
    return fmean(word in there for word in words) if words else None


async def one_life(
    life: Conversation,
    strangers: Sequence[str],
    answers: Mapping[str, str],
    given: argparse.Namespace,
    scores: Scores,
) -> None:
    began = moment(Instant(life.turns[0].at)) if life.turns else datetime.now(UTC)
    clock, model = ManualClock(began), Listener()
    turns = {(turn.conversation, turn.id): turn for turn in life.turns}
    chance = random.Random(given.seed)
    questions = chance.sample(life.questions, min(given.questions, len(life.questions)))
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(f"sqlite:///{folder}/life.db", clock=clock) as runtime:
            lived = Life(runtime, clock, model)
            await lived.begin(life.turns, given.strategy, given.window)
            for turn in life.turns:
                await lived.hear(turn)
            for question in questions:
                parts = await lived.ask(question.text)
                request = _plain("\n".join(parts))
                scores.evidence.append(found_share(question, turns, request))
                scores.tokens.append(estimate("\n".join(parts)))
                scores.rolled.append(_plain(life.turns[0].text) not in _plain("\n".join(_whole(parts))))
                share = answered_share(question.text, answers.get(question.text, ""), request)
                scores.answer += [] if share is None else [share]
            for stranger in strangers:
                parts = await lived.ask(stranger)
                scores.false.append(any(part.startswith("[RECALLED") for part in new_parts(parts)))


def new_parts(parts: Sequence[str]) -> list[str]:
    """What the request has after the question: not what earlier cycles recalled."""
    last = max((at for at, part in enumerate(parts) if part.startswith("[INBOX")), default=-1)
    return list(parts[last + 1 :])


def _whole(parts: Sequence[str]) -> list[str]:
    """The messages that are still shown in full: not the layers, and not what was recalled."""
    return [part for part in parts if part.startswith("[INBOX")]


def read_answers(path: Path) -> dict[str, str]:
    asked = [each for sample in json.loads(path.read_text()) for each in sample["qa"]]
    return {each["question"]: str(each["answer"]) for each in asked if "answer" in each}


async def measure(lives: Sequence[Conversation], answers: Mapping[str, str], given: argparse.Namespace) -> Scores:
    scores = Scores()
    chosen_lives = [each for each in lives if given.dev or not each.dev][: given.lives]
    for at, life in enumerate(chosen_lives):
        others = [each for other in lives if other is not life for each in other.questions]
        names = {turn.who.casefold() for turn in life.turns}
        # A question that names somebody of this life is not about a stranger.
        strange = [each.text for each in others if not names & set(_plain(each.text).split())]
        chosen = random.Random(at).sample(strange, min(given.questions, len(strange)))
        await one_life(life, chosen, answers, given, scores)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="conversations and questions in the format of LoCoMo")
    parser.add_argument("--strategy", choices=get_args(Strategy), default="semantic")
    parser.add_argument("--window", type=int, default=20_000, help="window.max_tokens")
    parser.add_argument("--lives", type=int, default=1, help="how many of them")
    parser.add_argument("--dev", action="store_true", help="also those with which recall was tuned")
    parser.add_argument("--questions", type=int, default=40, help="how many for each life, and about strangers")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what is printed is the result
    lives = read_locomo(given.data) if given.data else made_up()
    answers = read_answers(given.data) if given.data else {}
    scores = asyncio.run(measure(lives, answers, given))
    told = {"bench": "remembering", "strategy": given.strategy, "window": given.window, "lives": given.lives}
    print(json.dumps({**told, **scores.report()}))


if __name__ == "__main__":
    main()
