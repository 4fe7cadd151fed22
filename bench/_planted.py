"""Lives of small talk with planted decisions, promises and facts, for `bench.compaction`.

The weights of the layers were chosen with the `dev` lives in view. The `held-out` lives have other words, other ways to
say what was decided, promised or is so, names without numbers, and small talk that is put together from more parts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

Lives = Literal["dev", "held-out"]

_PEOPLE: Final = ("Mira", "Jonas", "Aylin", "Pavel", "Ines", "Tomas", "Ruth", "Emre")
_THINGS: Final = (
    "GraphQL", "PostgreSQL", "Kubernetes", "the blue logo", "the Lyon office", "the night train", "Terraform",
    "the second vendor", "the red sofa", "Rust", "the small hall", "Redis", "solar panels", "oat milk", "linen",
)  # fmt: skip
_PLANTED: Final = (
    ("Let us take {thing}, {x} is out.", "What did we take in the matter of {x}?"),
    ("{who} gets the keys of {thing} on the {day}th.", "When does {who} get the keys?"),
    ("{who} cannot eat {x}, it makes her ill.", "What does {who} not eat?"),
    ("Invoice {number} belongs to {who}.", "Whose invoice is {number}?"),
    ("We go with {thing}; {who} was against it.", "What was {who} against, and what did we do?"),
    ("I told {who} we would have {thing} ready before the {day}th.", "What did I tell {who} we would have ready?"),
    ("The limit for {thing} is {number} a month.", "What is the limit for {thing}?"),
)
_TALK: Final = (
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

_OTHER_PLANTED: Final = (
    ("The board picked {thing} over {x} in the end.", "What did the board pick over {x}?"),
    ("{who} asked me to hold {thing} for her till the {day}th, and I said yes.", "What do I hold for {who}?"),
    ("Keep {x} away from {who}, last time she went straight to the hospital.", "What is {who} to be kept away from?"),
    ("The code of the locker of {who} is {number}.", "What is the locker code of {who}?"),
    (
        "{who} still has no slides about {thing} from me, she hopes for the {day}th.",
        "Which slides does {who} hope for?",
    ),
    ("Nobody touches {thing} while {who} is abroad.", "What does nobody touch while {who} is abroad?"),
    ("The contract of {thing} ends with number {number}.", "With which number does the contract of {thing} end?"),
    ("{who} took over {thing} from me today.", "What did {who} take over?"),
    ("We are done with {x}; {thing} it is.", "What is it, now that we are done with {x}?"),
    ("{who} grew up in {x} and speaks the dialect.", "Where did {who} grow up?"),
)
_OPENINGS: Final = (
    "What a day", "Hello again", "Quick break here", "You will laugh", "Well, well", "Back from the shop", "Hm",
    "Just sat down", "Small news", "Long queue at the bakery", "The radio is on", "Still at my desk",
)  # fmt: skip
_MIDDLES: Final = (
    "the lift stood still for {n} minutes and {who} sang until it moved",
    "{who} brought plum cake, and {n} of us fought over the last piece",
    "my bicycle squeaks so loudly that {who} heard me from the bridge",
    "on the tram a man read out all {n} stops, nobody knew why",
    "{who} tells the story of the goat for the {n}th time",
    "the plants on the sill look better than I do, says {who}",
    "I dreamt of {x} and {n} lighthouses, do not ask",
    "someone called {who} rang at the wrong door, we talked about {x} for a while",
    "the printer ate {n} pages and then went to sleep",
    "{who} wears the green coat again although it is warm",
    "it smells of {x} in the whole staircase",
    "the swimming pool was full, {n} people in one lane",
    "{who} says Tuesday feels like Thursday, and I agree",
    "on May mornings like this one {who} whistles",
)
_ENDINGS: Final = (
    "so much for that", "anyhow", "and that was it", "you know how it is", "tea now", "nothing else from me",
    "the sun came out after all", "my feet hurt", "the usual", "otherwise quiet", "more tomorrow perhaps",
)  # fmt: skip
_HEADS: Final = (
    "Tav",
    "Kel",
    "Bru",
    "Ilm",
    "Sor",
    "Wen",
    "Dar",
    "Ost",
    "Fen",
    "Mar",
    "Lyk",
    "Gol",
    "Pir",
    "Hes",
    "Nad",
)
_BODIES: Final = ("or", "ma", "eli", "un", "isko", "ane", "abe", "uri", "ost", "ille", "enda", "ogra")
_TAILS: Final = ("in", "os", "a", "ek", "ut", "ela", "ard", "is", "on", "ya")
_KINDS: Final = ("bridge", "orchard", "archive", "kiln", "ferry", "choir", "loft", "well", "press", "stall", "barn")


@dataclass(frozen=True)
class Planted:
    """Something said once that is needed later: the words that an answer needs, and the question."""

    text: str
    question: str
    needed: tuple[str, ...]


class _Names:
    """Made-up names, each once."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._used: set[str] = set()

    def __call__(self) -> str:
        while True:
            name = "".join(self._chance.choice(part) for part in (_HEADS, _BODIES, _TAILS))
            if name not in self._used:
                self._used.add(name)
                return name


def plant(lives: Lives, seed: int, many: int) -> list[Planted]:
    """Each has words of its own, so that nothing else can be taken for it."""
    chance = random.Random(f"{lives} {seed}")
    named, made = _Names(chance), list[Planted]()
    for at in range(many):
        if lives == "dev":
            text, question = _PLANTED[at % len(_PLANTED)]
            who, thing = chance.choice(_PEOPLE), chance.choice(_THINGS)
            values = {"who": f"{who} {at}", "thing": f"{thing} {at}", "x": f"beta-{at}", "number": str(4_000 + at)}
        else:
            text, question = _OTHER_PLANTED[at % len(_OTHER_PLANTED)]
            thing = f"the {named()} {chance.choice(_KINDS)}"
            values = {"who": named(), "thing": thing, "x": named(), "number": str(chance.randint(100, 99_999))}
        values["day"] = str(chance.randint(4, 20))
        needed = tuple(values[name] for name in ("who", "thing", "x", "number") if f"{{{name}}}" in text)
        made.append(Planted(text.format(**values), question.format(**values), needed))
    return made


def small_talk(lives: Lives, seed: int) -> Iterator[str]:
    """Messages that nobody needs again, with names, numbers and days as well."""
    chance = random.Random(f"talk {lives} {seed}")
    named = _Names(random.Random(f"others {seed}"))
    known = [named() for _ in range(8)]
    for _ in count():
        n = chance.randint(2, 40)
        if lives == "dev":
            yield chance.choice(_TALK).format(who=chance.choice(_PEOPLE), n=n)
            continue
        # Some of the names are new in small talk, too.
        who = chance.choice(known) if chance.random() < 0.8 else named()
        x = chance.choice(known) if chance.random() < 0.5 else named()
        middle = chance.choice(_MIDDLES).format(who=who, n=n, x=x)
        yield f"{chance.choice(_OPENINGS)}, {middle}, {chance.choice(_ENDINGS)}."
