"""Builds the request that an advisor is sent. Pure: no clock, no storage, no model.

Its system prompt; every message of people, with its time; its own replies, and no others', in the assistant role; the
last words of the others in the turn before, in one bracketed user message; then the new message. Errors, thinking and
system messages are never included. If it is too long, the oldest turns are dropped first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, get_args

from denizen.clock import moment
from denizen.models.pictures import Picture
from denizen.shapes.vocabulary import LineRole as Role
from denizen.shapes.vocabulary import OmissionReason
from denizen.shortening import shortened

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
"""Included only if there is something on how to answer."""

ASSISTANT: Final = """\
You are a helpful assistant. Answer plainly and to the point. Times in brackets before messages say when they \
were written: never write one yourself."""

REFERENCE: Final = "For reference, this is what the other voices said in the last turn:"
ANSWERED: Final = "This is what the other voices answered:"
TALKED: Final = "The voices answered one another."


@dataclass(frozen=True, slots=True)
class PersonMessage:
    """A message of a person."""

    id: str
    text: str
    at: int
    seq: int = field(default=0, compare=False)
    """Its number in the space."""
    outside: bool = field(default=False, compare=False)
    """Whether it is text from outside."""
    files: str = ""
    """What its files are and say."""
    pictures: tuple[Picture, ...] = field(default=(), compare=False)
    """Those of its files that a model can see."""


@dataclass(frozen=True, slots=True)
class VoiceText:
    """What one voice said, under its present name."""

    name: str
    text: str
    outside: bool = False
    """Whether its request held text from outside."""


@dataclass(frozen=True, slots=True)
class OtherReply:
    """What another voice said, and in which round."""

    round_id: str
    voice: str
    name: str
    text: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """One round of a turn: what each voice said, by its id. Only finished replies."""

    round_id: str
    words: Mapping[str, VoiceText] = field(default_factory=dict[str, VoiceText])


@dataclass(frozen=True, slots=True)
class PanelTurn:
    """A message, the replies to it, and the cross-talk that followed."""

    message: PersonMessage | None
    """None if it was deleted: the replies stay."""
    exchanges: tuple[Exchange, ...] = ()

    def last_words(self) -> dict[str, OtherReply]:
        """Returns the last words of each voice in the turn."""
        return {
            voice: OtherReply(exchange.round_id, voice, words.name, words.text, words.outside)
            for exchange in self.exchanges
            for voice, words in exchange.words.items()
        }


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """One message of a request."""

    role: Role
    text: str
    source: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """Where its text is stored, so that the request can be rebuilt."""
    outside: bool = field(default=False, compare=False)
    """Whether it holds text from outside, or based on such."""
    shortened: tuple[str, ...] = field(default=(), compare=False)
    """The names of those whose words are not complete in it."""
    pictures: tuple[Picture, ...] = field(default=(), compare=False)
    """Pictures that a model is shown with it, if it sees."""


@dataclass(frozen=True, slots=True)
class Persona:
    """The voice that the model speaks for."""

    voice: str
    system: str
    upto: int = 0
    """Turns up to the message with this number are summarized in the system prompt, and not shown."""
    outside: bool = False
    """Whether the memories in the system prompt are based on text from outside."""


def fitting(lines: Sequence[RequestMessage], characters: int) -> list[RequestMessage]:
    """Drops the oldest lines until the rest fits. The system prompt and the last line stay."""
    first = next((at for at, line in enumerate(lines) if line.role != "system"), len(lines))
    head, rest = list(lines[:first]), list(lines[first:])
    left = characters - sum(len(line.text) for line in head)
    while len(rest) > 1 and sum(len(line.text) for line in rest) > left:
        del rest[0]
    return [*head, *rest]


def system_prompt(name: str, description: str, instructions: str, *, memory: str = "", profile: str = "") -> str:
    """The system prompt of an advisor: who it is, where it is, and what to do now."""
    who = f"You are {name}." + (f" {description.strip()}" if description.strip() else "")
    how = f"{HOW_TO_ANSWER}\n{profile.strip()}" if profile.strip() else ""
    wins = PRECEDENCE if how and instructions else ""
    return "\n\n".join(each for each in (who, FRAME, memory.strip(), how, instructions, wins, MANNER) if each)


def assistant_prompt(*, memory: str = "", profile: str = "") -> str:
    """The system prompt of the plain assistant, which answers if there are no advisors."""
    how = f"{HOW_TO_ANSWER}\n{profile.strip()}" if profile.strip() else ""
    return "\n\n".join(each for each in (ASSISTANT, memory.strip(), how) if each)


def context(
    persona: Persona,
    past: Sequence[PanelTurn],
    present: PanelTurn,
    *,
    characters: int,
    reference_characters: int,
    show_others: bool = True,
    task: str = "",
) -> list[RequestMessage]:
    """Builds the whole request for a voice to answer the `present` turn. Without `show_others` it does not contain what
    the others said in the turn before.

    With exchanges in the present turn the voice talks with the others: it sees all of them, and `task` says what to do.
    """
    system = RequestMessage("system", persona.system, outside=persona.outside)
    end = [
        *(_reference(persona.voice, past, reference_characters) if show_others else ()),
        *_present(persona.voice, present, reference_characters),
    ]
    end += [literal(f"[{task}]")] if task else []
    left = characters - len(system.text) - sum(len(line.text) for line in end)
    shown = after(past, persona.upto)
    return [system, *_fitting([_thread(persona.voice, turn) for turn in shown], left), *end]


def after(past: Sequence[PanelTurn], upto: int) -> Sequence[PanelTurn]:
    """Returns the turns after the last one whose message has at most this number."""
    summed = [at for at, turn in enumerate(past) if turn.message is not None and turn.message.seq <= upto]
    return past[summed[-1] + 1 :] if upto and summed else past


def literal(text: str) -> RequestMessage:
    """A user message whose text is not stored elsewhere."""
    return RequestMessage("user", text, {"text": text})


def _fitting(threads: Sequence[Sequence[RequestMessage]], characters: int) -> list[RequestMessage]:
    """Returns the last whole turns that fit."""
    kept: list[Sequence[RequestMessage]] = []
    for thread in reversed(threads):
        characters -= sum(len(line.text) for line in thread)
        if characters < 0:
            break
        kept.append(thread)
    return [line for thread in reversed(kept) for line in thread]


def _thread(voice: str, turn: PanelTurn) -> list[RequestMessage]:
    """Returns a past turn as this voice sees it: the message, and its own replies."""
    lines = [] if turn.message is None else [_asked(turn.message)]
    for at, exchange in enumerate(turn.exchanges):
        own = exchange.words.get(voice)
        if own is not None:
            # Most providers would merge two assistant messages in a row.
            lines += [literal(f"[{TALKED}]")] if at else []
            lines.append(_own(exchange.round_id, voice, own.text, outside=own.outside))
    return lines


def _asked(message: PersonMessage) -> RequestMessage:
    text = f"[{moment(message.at):%Y-%m-%dT%H:%M}] {message.text}{message.files}"
    return RequestMessage("user", text, {"message": message.id}, message.outside or bool(message.files))


def _own(round_id: str, voice: str, text: str, *, outside: bool = False) -> RequestMessage:
    return RequestMessage("assistant", text, {"reply": [round_id, voice]}, outside)


def _reference(voice: str, past: Sequence[PanelTurn], characters: int) -> Iterator[RequestMessage]:
    """Yields what the others said last in the turn before, if anything."""
    if others := _others(voice, past):
        yield bracketed(REFERENCE, others, characters)


def _others(voice: str, past: Sequence[PanelTurn]) -> list[OtherReply]:
    """Returns the last words of the others in the last turn of the past."""
    return [words for each, words in past[-1].last_words().items() if each != voice] if past else []


def _present(voice: str, present: PanelTurn, characters: int) -> Iterator[RequestMessage]:
    if present.message is not None:
        # Pictures are seen with the question that they belong to, once.
        yield replace(_asked(present.message), pictures=present.message.pictures)
    for exchange in present.exchanges:
        if voice in exchange.words:
            own = exchange.words[voice]
            yield _own(exchange.round_id, voice, own.text, outside=own.outside)
        others = [
            OtherReply(exchange.round_id, each, words.name, words.text, words.outside)
            for each, words in exchange.words.items()
            if each != voice
        ]
        if others:
            yield bracketed(ANSWERED, others, characters)


def bracketed(heading: str, heard: Sequence[OtherReply], characters: int) -> RequestMessage:
    """Puts the words of several voices into one user message, each shortened."""
    told = "\n\n".join(f"{each.name}: {shortened(each.text, characters)}" for each in heard)
    kept = [[each.round_id, each.voice, each.name] for each in heard]
    outside = any(each.outside for each in heard)
    cut_short = tuple(each.name for each in heard if len(each.text) > characters)
    return RequestMessage("user", f"[{heading}\n\n{told}]", {"heading": heading, "heard": kept}, outside, cut_short)


# What a request does not contain


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that an advisor was not shown, and why."""

    reason: OmissionReason
    count: int
    names: tuple[str, ...] = ()
    """The advisors that it is about, if it is about some."""

    def sentence(self) -> str:
        """Says what was left out, and why."""
        turns = "1 earlier turn was" if self.count == 1 else f"{self.count:,} earlier turns were"
        match self.reason:
            case "summarized":
                return f"{turns} left out: the memory in the system prompt summarizes them."
            case "too_long":
                return f"{turns} left out: the request would have been too long. The oldest go first."
            case "others_hidden":
                return f"What {_listed(self.names)} said last was left out: the panel's settings hide it."
            case "others_earlier":
                return "Replies of the others in earlier turns were left out: only their previous turn is ever shown."
            case "shortened":
                return f"What {_listed(self.names)} said was shortened."
            case "deleted":
                what = "1 message was" if self.count == 1 else f"{self.count:,} messages were"
                return f"{what} deleted or forgotten after the request was sent."


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def omissions(
    persona: Persona,
    past: Sequence[PanelTurn],
    lines: Sequence[RequestMessage],
    *,
    turns: int,
    show_others: bool,
) -> list[Omission]:
    """Returns what the request does not contain, and why. `turns` is how many turns there were before, of which `past`
    may hold only the last.
    """
    remaining = after(past, persona.upto)
    threads = [thread for turn in remaining if (thread := _thread(persona.voice, turn))]
    shown = {_stored_at(line) for line in lines}
    dropped = sum(_stored_at(thread[0]) not in shown for thread in threads)
    summarized, not_loaded = len(past) - len(remaining), turns - len(past)
    hidden = () if show_others else tuple(each.name for each in _others(persona.voice, past))
    shortened = tuple(dict.fromkeys(name for line in lines for name in line.shortened))
    earlier = sum(any(voice != persona.voice for voice in turn.last_words()) for turn in past[:-1])
    found = [
        Omission("summarized", summarized + (not_loaded if persona.upto else 0)),
        Omission("too_long", dropped + (0 if persona.upto else not_loaded)),
        Omission("others_hidden", len(hidden), hidden),
        Omission("shortened", len(shortened), shortened),
        Omission("others_earlier", earlier),
    ]
    return [each for each in found if each.count]


def _stored_at(line: RequestMessage) -> tuple[str, ...]:
    return tuple(line.source.get("reply") or [line.source.get("message", "")])


def omissions_in(made_of: Mapping[str, Any]) -> list[Omission]:
    """Reads the omissions that are stored with a recipe."""
    return [
        Omission(each["reason"], int(each["count"]), tuple(map(str, each["names"])))
        for each in made_of.get("omitted", ())
        if each["reason"] in get_args(OmissionReason)
    ]


# Rebuilding a request


def digest(lines: Sequence[RequestMessage]) -> str:
    """A digest that identifies the request."""
    whole = json.dumps([[line.role, line.text] for line in lines], ensure_ascii=False)
    return sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def recipe(lines: Sequence[RequestMessage], reference_characters: int, memory: str = "") -> dict[str, Any]:
    """Returns the parts of a request: its system prompt, and where everything else is stored.

    The memories in the system prompt are a part of their own, so that they can be forgotten.
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
    made_of: Mapping[str, Any], message: Callable[[str], PersonMessage | None], words: Callable[[str, str], str | None]
) -> list[RequestMessage]:
    """Rebuilds the request of a recipe from what is stored now. What is gone is left out."""
    lines = [RequestMessage("system", made_of["system"] + made_of.get("memory", "") + made_of.get("after", ""))]
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
                known = [OtherReply(*each[:3], text) for each in there if (text := each[3]) is not None]
                lines += [bracketed(heading, known, made_of["cap"])] if known else []
            case _:
                raise ValueError(f"unknown source {source!r}")
    return lines
