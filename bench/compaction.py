"""How much of what matters is in front of an agent after its window has rolled on, without the tool `recall`.

    python -m bench.compaction [--lives dev|held-out] [--cycles N] [--planted N] [--window TOKENS] [--seeds N] [--thin]

An agent lives N cycles of small talk, in which decisions, promises and facts are planted at random. It ends each cycle
with one line, as agents are told to. Then each planted thing is asked for, and what the model is sent is searched for
the words of its answer: in whole cycles, in the layers or in the `[RECALLED]` block. Beside the strategies stands a
sliding window: the newest entries of the same log that have as many tokens as a request of `layered`.

The `dev` lives were in view when the layers were tuned; the `held-out` ones (the default) have other words. For
`rolling`, a scripted writer stands in for the utility model: it keeps the sentences with a name or a number, the newest
first, as many as it may write; for `written`, one that notes them cycle by cycle. A real model writes better or worse.
With `--thin` the agent ends each cycle with a line that says nothing, as small models do: what is planted is then only
in the log.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final, cast, get_args

import structlog
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from bench._planted import PADDING, Lives, Planted, plant, small_talk
from denizen import Runtime, forever, reply
from denizen.clock import ManualClock
from denizen.consciousness.log import Entry
from denizen.memory.settings import MemoryOptions
from denizen.models import codec
from denizen.models.scripted import Info
from denizen.models.tokens import estimate

STRATEGIES: Final = ("layered", "self_summary", "semantic", "rolling", "written")
_SESSION: Final = 25
"""After so many cycles the agent sleeps longer than a provider's cache lives."""
_SAID: Final = re.compile(r"^\[\d+\] [^:\n]*:\d\d: \"(.*)\"$", re.MULTILINE)
_CYCLE: Final = re.compile(r"^\[CYCLE (\d+) — ", re.MULTILINE)
_HEARD: Final = re.compile(rf'"([^"\n]*?) {re.escape(PADDING)}"')
_KNOWN: Final = re.compile(r"^summary_markdown: \"(.*)\"$", re.MULTILINE)
_TELLING: Final = re.compile(r"\d|(?<!^)(?<![.!?] )\b[A-Z][a-z]{2,}")
_WRITTEN_CHARACTERS: Final = 3_000


@dataclass
class Model:
    """A scripted model that answers, sums up in one line, and looks for words in what it is sent."""

    needed: tuple[str, ...] = ()
    found: list[bool] = field(default_factory=list[bool])
    tokens: int = 0
    summary: str = ""

    def decide(self, messages: list[ModelMessage], _info: Info) -> Any:
        if isinstance(messages[-1].parts[0], ToolReturnPart):
            return self.summary
        if self.needed:
            sent = "\n".join(codec.dump(each) for each in messages if isinstance(each, ModelRequest))
            self.found.append(_holds(sent, self.needed))
            self.tokens = estimate(sent)
        return reply("All right.")


def _holds(text: str, needed: Sequence[str]) -> bool:
    return all(word in text for word in needed)


def write(messages: list[ModelMessage], _info: Info) -> str:
    """The scripted writer: what it knew before and what was said, as far as it has a name or a number."""
    told = "\n".join(str(part.content) for part in messages[1].parts if part.part_kind == "user-prompt")
    before = _KNOWN.search(told)
    known: list[str] = before[1].split(" / ") if before else []
    known += [each.split(PADDING)[0].strip() for each in cast("list[str]", _SAID.findall(told))]
    kept, left = list[str](), _WRITTEN_CHARACTERS
    for each in reversed(known):
        if _TELLING.search(each) and len(each) < left:
            kept.insert(0, each)
            left -= len(each) + 3
    return json.dumps({"summary_markdown": " / ".join(kept) or "Small talk.", "memory_json": {}})


def note(messages: list[ModelMessage], _info: Info) -> str:
    """The scripted writer of chapters: what was said in each cycle, as far as it has a name or a number."""
    told = "\n".join(str(part.content) for part in messages[1].parts if part.part_kind == "user-prompt")
    _, *sections = _CYCLE.split(told)
    heard = [(int(number), text) for number, text in zip(sections[::2], sections[1::2], strict=True)]
    notes = [
        {"cycle": number, "kind": "fact", "text": said}
        for number, text in heard
        for said in cast("list[str]", _HEARD.findall(text))
        if _TELLING.search(said)
    ]
    return json.dumps({"notes": notes})


async def live(
    strategy: str,
    lives: Lives,
    cycles: int,
    planted: Sequence[Planted],
    window: int,
    seed: int,
    folder: Path,
    *,
    thin: bool,
) -> tuple[dict[str, float], list[Entry]]:
    """One life under this strategy, then a question for each planted thing; and its log before the questions."""
    chance = random.Random(seed)
    model, clock = Model(), ManualClock()
    places = dict(zip(sorted(chance.sample(range(cycles), len(planted))), planted, strict=True))
    talk, sizes = small_talk(lives, seed), list[int]()
    profile = {"modelId": "writer", "cooldownMs": 0}
    presets = {"memoryCompaction": {"profiles": {"bench": profile}, "defaultProfile": "bench"}}
    options = MemoryOptions(presets=lambda: presets) if strategy == "rolling" else None
    async with Runtime(f"sqlite:///{folder}/{strategy}-{seed}.db", clock=clock, memory=options) as denizen:
        denizen.models.register("writer", forever(note if strategy == "written" else write, record=False))
        noor = await denizen.people.create("Noor")
        settings = {"strategy": strategy, "max_tokens": window, "writer_model": "writer"}
        ada = await denizen.agents.create("Ada", model=forever(model.decide, record=False), window=settings)
        kitchen = await denizen.spaces.create("Kitchen", [noor, ada])

        async def say(text: str, summary: str) -> None:
            model.summary = summary
            await denizen.spaces.post(kitchen, noor, text)
            await denizen.run_until_idle()

        for number in range(cycles):
            clock.advance(400 if number % _SESSION == 0 else 20)
            text = told.text if (told := places.get(number)) is not None else next(talk)
            await say(f"{text} {PADDING}", "Answered Noor." if thin else f"Noor: {text} Answered.")
        log = await denizen.minds.log(ada)
        clock.advance(400)  # what was written meanwhile is shown from the next era on
        for told in planted:
            model.needed = told.needed
            await say(told.question, "Answered a question of Noor's.")
            sizes.append(model.tokens)
    return {"kept": fmean(model.found), "tokens": fmean(sizes)}, log


def sliding(log: Sequence[Entry], planted: Sequence[Planted], tokens: float) -> dict[str, float]:
    """The share of planted things among the newest entries of the log that have so many tokens."""
    newest, left = list[str](), tokens
    for entry in reversed(log):
        left -= entry.tokens
        if left < 0:
            break
        newest.append(codec.dump(entry.message))
    text = "\n".join(newest)
    return {"kept": fmean(_holds(text, each.needed) for each in planted), "tokens": tokens}


async def measure(
    lives: Lives, cycles: int, many: int, window: int, seeds: int, strategies: Sequence[str], *, thin: bool
) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(1, seeds + 1):
        planted = plant(lives, seed, many)
        with tempfile.TemporaryDirectory() as folder:
            for strategy in strategies:
                result, log = await live(strategy, lives, cycles, planted, window, seed, Path(folder), thin=thin)
                found.setdefault(strategy, []).append(result)
                if strategy == "layered":
                    found.setdefault("sliding", []).append(sliding(log, planted, result["tokens"]))
    return {
        "bench": "compaction",
        "lives": lives,
        "cycles": cycles,
        "planted": many,
        "window": window,
        "seeds": seeds,
        "thin": thin,
        "strategies": {name: _mean(each) for name, each in found.items()},
    }


def _mean(results: Sequence[dict[str, float]]) -> dict[str, float]:
    kept = [each["kept"] for each in results]
    tokens = int(fmean(each["tokens"] for each in results))
    return {"kept": round(fmean(kept), 3), "worst": round(min(kept), 3), "tokens": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", choices=get_args(Lives), default="held-out")
    parser.add_argument("--cycles", type=int, default=1_000)
    parser.add_argument("--planted", type=int, default=50)
    parser.add_argument("--window", type=int, default=100_000, help="window.max_tokens")
    parser.add_argument("--seeds", type=int, default=3, help="how many lives of each strategy")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--thin", action="store_true", help="the agent's own summaries say nothing")
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # what is printed is the result
    lives = cast("Lives", given.lives)
    measured = measure(lives, given.cycles, given.planted, given.window, given.seeds, given.strategies, thin=given.thin)
    print(json.dumps(asyncio.run(measured)))


if __name__ == "__main__":
    main()
