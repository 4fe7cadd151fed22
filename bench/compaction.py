"""How much of what matters is in front of an agent after its window has rolled on, without the tool `recall`.

    python -m bench.compaction [--cycles N] [--planted N] [--window TOKENS] [--seed N]

An agent lives N cycles of small talk, in which decisions, promises and facts are planted at random. It ends each cycle
with one line, as agents are told to. Then each planted thing is asked for, and what the model is sent is searched for
the words of its answer: in whole cycles, in the layers or in the `[RECALLED]` block. Beside the strategies stands a
sliding window of the same number of tokens. The small talk has names, numbers and dates as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from denizen import Runtime, forever, reply
from denizen.models import codec
from denizen.models.scripted import Info
from denizen.models.tokens import estimate

STRATEGIES: Final = ("layered", "self_summary", "semantic")
PEOPLE: Final = ("Mira", "Jonas", "Aylin", "Pavel", "Ines", "Tomas", "Ruth", "Emre")
THINGS: Final = (
    "GraphQL", "PostgreSQL", "Kubernetes", "the blue logo", "the Lyon office", "the night train", "Terraform",
    "the second vendor", "the red sofa", "Rust", "the small hall", "Redis", "solar panels", "oat milk", "linen",
)  # fmt: skip
PLANTED: Final = (
    ("Let us take {thing}, {x} is out.", "What did we take in the matter of {x}?"),
    ("{who} gets the keys of {thing} on the {day}th.", "When does {who} get the keys?"),
    ("{who} cannot eat {x}, it makes her ill.", "What does {who} not eat?"),
    ("Invoice {number} belongs to {who}.", "Whose invoice is {number}?"),
    ("We go with {thing}; {who} was against it.", "What was {who} against, and what did we do?"),
    ("I told {who} we would have {thing} ready before the {day}th.", "What did I tell {who} we would have ready?"),
    ("The limit for {thing} is {number} a month.", "What is the limit for {thing}?"),
)
TALK: Final = (
    "It rained all {n} days, and {who} lost her umbrella again, can you believe it.",
    "I had {n} coffees today and still yawn. {who} laughed at me in the meeting, of course.",
    "{who} showed me pictures of the cat, {n} of them, all more or less the same.",
    "The train was {n} minutes late, the usual. At least there was a seat by the window.",
    "Good morning! Nothing new here. {who} says hello, by the way.",
    "Lunch was fine, soup again. {who} had the salad and was sorry for it afterwards.",
    "I watched that film on Saturday, the one with the {n} dwarves. Not my thing, but the music was lovely.",
    "My neighbour painted the fence in July, and now in November he paints it again.",
)
PADDING: Final = (
    "Anyway, the afternoon went by quietly, I sorted old papers and thought about how fast the year has gone, and how "
    "everything is a little slower when it is grey outside. Later I went for a walk along the river, which was nice."
)


@dataclass(frozen=True)
class Planted:
    """Something said once that is needed later: the words that an answer needs, and the question."""

    text: str
    question: str
    needed: tuple[str, ...]


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
            self.found.append(all(word in sent for word in self.needed))
            self.tokens = estimate(sent)
        return reply("All right.")


def plant(chance: random.Random, count: int) -> list[Planted]:
    """Each has a number or a pair of words of its own, so that nothing else can be taken for it."""
    made: list[Planted] = []
    for at in range(count):
        text, question = PLANTED[at % len(PLANTED)]
        who, thing = chance.choice(PEOPLE), chance.choice(THINGS)
        values = {"who": f"{who} {at}", "thing": f"{thing} {at}", "x": f"beta-{at}", "day": chance.randint(1, 28)}
        values["number"] = 4_000 + at
        said = text.format(**values)
        needed = tuple(str(values[name]) for name in ("who", "thing", "x", "number") if f"{{{name}}}" in text)
        made.append(Planted(said, question.format(**values), needed))
    return made


async def live(
    strategy: str, cycles: int, planted: list[Planted], window: int, seed: int, folder: Path
) -> dict[str, float]:
    """One life under this strategy, then a question for each planted thing."""
    chance = random.Random(seed)
    model = Model()
    places = dict(zip(sorted(chance.sample(range(cycles), len(planted))), planted, strict=True))
    sizes: list[int] = []
    async with Runtime(f"sqlite:///{folder}/{strategy}.db") as denizen:
        noor = await denizen.people.create("Noor")
        settings = {"strategy": strategy, "max_tokens": window}
        ada = await denizen.agents.create("Ada", model=forever(model.decide), window=settings)
        kitchen = await denizen.spaces.create("Kitchen", [noor, ada])

        async def say(text: str, summary: str) -> None:
            model.summary = summary
            await denizen.spaces.post(kitchen, noor, text)
            await denizen.run_until_idle()

        for number in range(cycles):
            if (told := places.get(number)) is not None:
                await say(f"{told.text} {PADDING}", f"Noor: {told.text} Answered.")
                continue
            text = chance.choice(TALK).format(who=chance.choice(PEOPLE), n=chance.randint(2, 40))
            await say(f"{text} {PADDING}", f"Noor: {text} Answered; nothing pending.")
        for told in planted:
            model.needed = told.needed
            await say(told.question, "Answered a question of Noor's.")
            sizes.append(model.tokens)
    return {"kept": round(sum(model.found) / len(planted), 3), "tokens": sum(sizes) // len(sizes)}


def sliding(cycles: int, planted: int, tokens: int, seed: int) -> dict[str, float]:
    """The share of planted things among the newest cycles that so many tokens hold, with nothing for older ones."""
    chance = random.Random(seed)
    places = chance.sample(range(cycles), planted)
    cycle = estimate(f"{TALK[0]} {PADDING}") + estimate(PADDING) // 2 + 60  # inbox, call, result and last words
    held = cycles - tokens // cycle
    return {"kept": round(sum(place >= held for place in places) / planted, 3), "tokens": tokens}


async def measure(cycles: int, count: int, window: int, seed: int) -> dict[str, Any]:
    planted = plant(random.Random(seed), count)
    with tempfile.TemporaryDirectory() as folder:
        found = {strategy: await live(strategy, cycles, planted, window, seed, Path(folder)) for strategy in STRATEGIES}
    tokens = int(found["layered"]["tokens"])
    return {
        "bench": "compaction",
        "cycles": cycles,
        "planted": count,
        "window": window,
        "strategies": {**found, "sliding": sliding(cycles, count, tokens, seed)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=1_000)
    parser.add_argument("--planted", type=int, default=50)
    parser.add_argument("--window", type=int, default=100_000, help="window.max_tokens")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.cycles, given.planted, given.window, given.seed))))


if __name__ == "__main__":
    main()
