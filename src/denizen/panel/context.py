"""What an advisor is shown. Pure: no clock, no storage, no model.

Its system prompt; every message of people, with its time; its own replies, and no one else's, in the assistant role;
the last words of the others in the turn before, in one bracketed message of the user's; then the new message. Errors,
thinking and messages of the system never enter. Where it is too much, the oldest turns go first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from denizen.clock import moment
from denizen.shapes.vocabulary import LineRole as Role

FRAME: Final = """\
## Where you are
Someone is thinking something through and has asked several independent voices to test their thinking. You are one of \
them. All of you answer at the same time, each on your own."""

MANNER: Final = """\
Speak plainly and in your own voice. Do not put a name or a label before your answer, do not write JSON, and do not \
mention that you are a voice, a perspective or an advisor. Times in brackets before messages say when they were \
written: never write one yourself. You may be shown what the others said last: use it where it helps, otherwise \
ignore it."""

HOW_TO_ANSWER: Final = "## How to answer"
PRECEDENCE: Final = """\
If "What to do in this turn" and "How to answer" disagree, "What to do in this turn" wins."""
"""Told only where there is something on how to answer."""

ASSISTANT: Final = """\
You are a helpful assistant. Answer plainly and to the point. Times in brackets before messages say when they \
were written: never write one yourself."""

REFERENCE: Final = "For reference, this is what the other voices said in the last turn:"
ANSWERED: Final = "This is what the other voices answered:"
TALKED: Final = "The voices answered one another."


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a person."""

    id: str
    text: str
    at: int
    seq: int = field(default=0, compare=False)
    """Its number in the space."""
    outside: bool = field(default=False, compare=False)
    """Whether it is text from outside."""


@dataclass(frozen=True, slots=True)
class Words:
    """What one voice said, under the name that it has."""

    name: str
    text: str
    outside: bool = False
    """Whether its request held text from outside."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What another voice said, and in which round."""

    round_id: str
    voice: str
    name: str
    text: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """One round of a turn: what each voice said in it, by the voice's id. Only what was finished."""

    round_id: str
    words: Mapping[str, Words] = field(default_factory=dict[str, Words])


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, the replies to it, and the cross-talk that followed."""

    message: Said | None
    """None where it was deleted: what was answered stays."""
    exchanges: tuple[Exchange, ...] = ()

    def last_words(self) -> dict[str, Heard]:
        """The last that each voice said in it."""
        return {
            voice: Heard(exchange.round_id, voice, words.name, words.text, words.outside)
            for exchange in self.exchanges
            for voice, words in exchange.words.items()
        }


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a request."""

    role: Role
    text: str
    source: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """Where its text is kept, so that the request can be built again."""
    outside: bool = field(default=False, compare=False)
    """Whether it holds text from outside, or made from such."""


@dataclass(frozen=True, slots=True)
class Persona:
    """Whom the model speaks as."""

    voice: str
    system: str
    upto: int = 0
    """Turns up to the message of this number are summed up in the system prompt, and not shown."""
    outside: bool = False
    """Whether what it remembers in the system prompt was made from text from outside."""


def fitting(lines: Sequence[Line], characters: int) -> list[Line]:
    """The lines without the oldest ones that do not fit. What the voice is told of itself and the last line stay."""
    first = next((at for at, line in enumerate(lines) if line.role != "system"), len(lines))
    head, rest = list(lines[:first]), list(lines[first:])
    left = characters - sum(len(line.text) for line in head)
    while len(rest) > 1 and sum(len(line.text) for line in rest) > left:
        del rest[0]
    return [*head, *rest]


def system_prompt(name: str, description: str, instructions: str, *, memory: str = "", profile: str = "") -> str:
    """Who an advisor is, where, and what it has to do now."""
    who = f"You are {name}." + (f" {description.strip()}" if description.strip() else "")
    how = f"{HOW_TO_ANSWER}\n{profile.strip()}" if profile.strip() else ""
    wins = PRECEDENCE if how and instructions else ""
    return "\n\n".join(each for each in (who, FRAME, memory.strip(), how, instructions, wins, MANNER) if each)


def assistant_prompt(*, memory: str = "", profile: str = "") -> str:
    """What the plain assistant is told, who answers where there are no advisors."""
    how = f"{HOW_TO_ANSWER}\n{profile.strip()}" if profile.strip() else ""
    return "\n\n".join(each for each in (ASSISTANT, memory.strip(), how) if each)


def context(
    persona: Persona,
    past: Sequence[Turn],
    present: Turn,
    *,
    characters: int,
    reference_characters: int,
    task: str = "",
) -> list[Line]:
    """The whole request for a voice to answer the `present` turn.

    With exchanges in the present turn the voice talks with the others: it sees all of them, and `task` says what to do.
    """
    system = Line("system", persona.system, outside=persona.outside)
    end = [
        *_reference(persona.voice, past, reference_characters),
        *_present(persona.voice, present, reference_characters),
    ]
    end += [literal(f"[{task}]")] if task else []
    left = characters - len(system.text) - sum(len(line.text) for line in end)
    shown = after(past, persona.upto)
    return [system, *_fitting([_thread(persona.voice, turn) for turn in shown], left), *end]


def after(past: Sequence[Turn], upto: int) -> Sequence[Turn]:
    """The turns after the last one whose message has at most this number."""
    summed = [at for at, turn in enumerate(past) if turn.message is not None and turn.message.seq <= upto]
    return past[summed[-1] + 1 :] if upto and summed else past


def literal(text: str) -> Line:
    """A message of the user's that is kept nowhere else."""
    return Line("user", text, {"text": text})


def _fitting(threads: Sequence[Sequence[Line]], characters: int) -> list[Line]:
    """The last turns that fit, whole."""
    kept: list[Sequence[Line]] = []
    for thread in reversed(threads):
        characters -= sum(len(line.text) for line in thread)
        if characters < 0:
            break
        kept.append(thread)
    return [line for thread in reversed(kept) for line in thread]


def _thread(voice: str, turn: Turn) -> list[Line]:
    """A past turn as this voice remembers it: what was asked, and what it said itself."""
    lines = [] if turn.message is None else [_asked(turn.message)]
    for at, exchange in enumerate(turn.exchanges):
        own = exchange.words.get(voice)
        if own is not None:
            # Two answers in a row would be one to most providers.
            lines += [literal(f"[{TALKED}]")] if at else []
            lines.append(_own(exchange.round_id, voice, own.text, outside=own.outside))
    return lines


def _asked(message: Said) -> Line:
    text = f"[{moment(message.at):%Y-%m-%dT%H:%M}] {message.text}"
    return Line("user", text, {"message": message.id}, message.outside)


def _own(round_id: str, voice: str, text: str, *, outside: bool = False) -> Line:
    return Line("assistant", text, {"reply": [round_id, voice]}, outside)


def _reference(voice: str, past: Sequence[Turn], characters: int) -> Iterator[Line]:
    """What the others said last in the turn before, if they said anything."""
    others = [words for each, words in past[-1].last_words().items() if each != voice] if past else []
    if others:
        yield bracketed(REFERENCE, others, characters)


def _present(voice: str, present: Turn, characters: int) -> Iterator[Line]:
    if present.message is not None:
        yield _asked(present.message)
    for exchange in present.exchanges:
        if voice in exchange.words:
            own = exchange.words[voice]
            yield _own(exchange.round_id, voice, own.text, outside=own.outside)
        others = [
            Heard(exchange.round_id, each, words.name, words.text, words.outside)
            for each, words in exchange.words.items()
            if each != voice
        ]
        if others:
            yield bracketed(ANSWERED, others, characters)


def bracketed(heading: str, heard: Sequence[Heard], characters: int) -> Line:
    """What several voices said, as one message of the user's, each capped."""
    told = "\n\n".join(f"{each.name}: {capped(each.text, characters)}" for each in heard)
    kept = [[each.round_id, each.voice, each.name] for each in heard]
    outside = any(each.outside for each in heard)
    return Line("user", f"[{heading}\n\n{told}]", {"heading": heading, "heard": kept}, outside)


def capped(text: str, characters: int) -> str:
    """The text, or as much of its beginning as that, with a sign that there was more."""
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"


# The same request once more


def digest(lines: Sequence[Line]) -> str:
    """The same for the same request, and for no other."""
    whole = json.dumps([[line.role, line.text] for line in lines], ensure_ascii=False)
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def recipe(lines: Sequence[Line], reference_characters: int, memory: str = "") -> dict[str, Any]:
    """What a request is made of: its system prompt, and where everything else is kept.

    What is remembered in the system prompt stands by itself, so that it can be forgotten.
    """
    before, told, rest = lines[0].text.partition(memory) if memory else (lines[0].text, "", "")
    return {
        "system": before,
        **({"memory": told, "after": rest} if told else {}),
        "cap": reference_characters,
        "lines": [line.source for line in lines[1:]],
        "digest": digest(lines),
    }


def rebuilt(
    made_of: Mapping[str, Any], message: Callable[[str], Said | None], words: Callable[[str, str], str | None]
) -> list[Line]:
    """The request of a recipe, from what is kept now. What is gone is left out."""
    lines = [Line("system", made_of["system"] + made_of.get("memory", "") + made_of.get("after", ""))]
    for source in made_of["lines"]:
        match source:
            case {"text": text}:
                lines.append(literal(text))
            case {"message": id}:
                said = message(id)
                lines += [] if said is None else [_asked(said)]
            case {"reply": [round_id, voice]}:
                text = words(round_id, voice)
                lines += [] if text is None else [_own(round_id, voice, text)]
            case {"heading": heading, "heard": heard}:
                there = [(round_id, voice, name, words(round_id, voice)) for round_id, voice, name in heard]
                known = [Heard(*each[:3], text) for each in there if (text := each[3]) is not None]
                lines += [bracketed(heading, known, made_of["cap"])] if known else []
            case _:
                raise ValueError(f"unknown source {source!r}")
    return lines
