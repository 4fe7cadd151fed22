"""Recalls the demo model's own past, and decides who may hear it. Pure.

What was said in one space is repeated in another only if everyone there could have heard it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from denizen.models.demo.addressing import calls_by_name, leading_mentions
from denizen.models.demo.reading import Cycle, DemoEvent, DemoSpace, Scene
from denizen.models.demo.wording import NOTHING_PENDING, counted, listed, quoted
from denizen.shortening import short_line

_SHOWN = 4
_LONGEST = 2_000
"""Longer texts are not read to the end."""
_POLITE = re.compile(
    r"\s*(?:(?:please|kindly|can you|could you|would you|will you|i want you to|i would like you to|now|then|so|and"
    r"|tell me|show me|do you know)\b[\s,:]*)+",
    re.IGNORECASE,
)
_GREETED = re.compile(
    r"\A\s*(?:hi|hello|hey|good (?:morning|afternoon|evening|day))(?: \w+)?\s*[,!.;:–—-]+\s+(?=\w+\W+\w)",
    re.IGNORECASE,
)
"""A greeting before the request; alone it is the request."""
_REPORTED = re.compile(r"\A[^:\n]{1,130} (?:asks|asks me to tell you): ", re.IGNORECASE)
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "what which who whom whose where when why how are was were does did has have had can could will would should "
        "the and not for with about from that this there here you your our his her their its called name named",
    )
)
_REMEMBER = re.compile(
    r"(?:remember|don['’]?t forget|do not forget|note|keep in mind|memori[sz]e)\b(?: this| that)?[\s,:]*(?P<fact>.+)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Moment:
    """A message to answer, and what is known at that time."""

    scene: Scene
    place: DemoSpace
    event: DemoEvent
    before: Sequence[DemoEvent]
    """Every event before it, as far as the window reaches."""

    @cached_property
    def asked(self) -> str:
        """The request, without names and politeness around it."""
        return essence(self.event.text, self.scene.name)

    @property
    def from_agent(self) -> bool:
        return self.event.kind == "agent"

    @property
    def handle(self) -> str:
        """The author's handle; their name if they are not among the members."""
        return next((each.handle for each in self.place.others if each.name == self.event.sender), self.event.sender)


def essence(text: str, name: str) -> str:
    """Returns the request in `text`, without the addressee and without politeness."""
    _, rest = leading_mentions(text[:_LONGEST])
    rest = _GREETED.sub("", _REPORTED.sub("", rest.strip()), count=1)
    for word in sorted({name, name.partition(" ")[0]}, key=len, reverse=True):
        if word and calls_by_name(rest, word):
            rest = re.sub(
                rf"(?:\A\s*{re.escape(word)}[\s,:;!–—-]*|[\s,]*{re.escape(word)}(?=\s*+[.!?]*+\s*+\Z))",
                "",
                rest,
                flags=re.I,
            )
    rest = re.sub(r"(?:,\s*|\s+)@[\w.-]+(?=[\s.!?]*\Z)", "", rest) if rest.count("@") == 1 and "?" in rest else rest
    return _POLITE.sub("", rest, count=1).strip() if _POLITE.match(rest) else rest.strip()


def fact_in(asked: str) -> str | None:
    """Returns what is to be remembered, if anything."""
    found = _REMEMBER.fullmatch(asked)
    return None if found is None or asked.rstrip().endswith("?") else found["fact"].strip()


def recall_facts(moment: Moment, about: str = "") -> str:
    """Returns the facts it was told to remember, and by whom."""
    return _as_remembered([each.told for each in _known_facts(moment) if _is_about(each.fact, about)])


def recall_answer(moment: Moment) -> str:
    """Returns the facts that share the most words with the question."""
    asked = _telling_words(moment.asked)
    shared = [(len(asked & _telling_words(each.fact)), each.told) for each in _known_facts(moment)]
    most = max((many for many, _ in shared), default=0)
    return _as_remembered([told for many, told in shared if many == most]) if most else ""


class _KnownFact(NamedTuple):
    fact: str
    told: str
    """The fact, and who told it."""


def _known_facts(moment: Moment) -> list[_KnownFact]:
    found = [
        _KnownFact(fact, f"{_whom(moment, event)} told me: {quoted(fact)}")
        for event in _tellable(moment)
        if (fact := fact_in(essence(event.text, moment.scene.name)))
    ]
    if len(moment.place.members) == 2:
        found += [_KnownFact(note, f"I noted: {quoted(note)}") for note in moment.scene.notes]
    return found


def _as_remembered(told: Sequence[str]) -> str:
    return f"I remember this. {_last(told)}" if told else ""


def recall_words(moment: Moment, of: str, about: str = "") -> str:
    """Returns what someone has said to it."""
    found = [event for event in _tellable(moment) if _is_by(moment, event, of)]
    told = [quoted(event.text) for event in found if _is_about(event.text, about)]
    if not told:
        return ""
    who = _whom(moment, found[-1])
    return f"{who} wrote {counted(len(told), 'message')} that I remember{' of it' if about else ''}: " + _joined(told)


def recall_deeds(moment: Moment) -> str:
    """Returns what it has done, from its own summaries."""
    past = [cycle for cycle in moment.scene.past if cycle.words]
    done = [cycle.words.removesuffix(NOTHING_PENDING).strip() for cycle in past if _may_be_told(moment, cycle)]
    hidden = len(past) - len(done)
    text = "Nothing here yet that I remember."
    if done:
        last = f"; the last {_SHOWN}" if len(done) > _SHOWN else ""
        lines = "".join(f"\n- {short_line(each, 200)}" for each in done[-_SHOWN:])
        text = f"I remember {counted(len(done), 'thing')} that I did{last}:{lines}".replace("@", "")
    return f"{text}\n\nWhat I did elsewhere ({hidden}) I keep to those who were there." if hidden else text


def hides_words(moment: Moment, of: str) -> bool:
    """Whether that person has said something to it that cannot be repeated here."""
    heard = (each for each in moment.before if each.what == "Message" and _is_by(moment, each, of))
    return any(not may_hear(moment.scene, moment.place, each.space_id) for each in heard)


def recall_own_words(moment: Moment) -> str:
    """Returns what it has said in the space of the question."""
    said = [each.text for cycle in moment.scene.past for each in cycle.said if each.space_id == moment.place.id]
    return f"The last thing I said here was {quoted(said[-1], 160)}." if said else "I have said nothing here yet."


def count_messages(moment: Moment) -> str:
    """Returns how often the person who asks has written to it."""
    mine = [each for each in moment.before if each.sender == moment.event.sender and each.kind == moment.event.kind]
    return f"I remember {counted(len(mine) + 1, 'message')} from you, this one included."


def said_before(moment: Moment, start: str) -> bool:
    """Whether it has said something there that begins like this."""
    said = (each for cycle in moment.scene.past for each in cycle.said)
    return any(each.space_id == moment.place.id and each.text.startswith(start) for each in said)


def may_hear(scene: Scene, place: DemoSpace, space_id: str) -> bool:
    """Whether everyone in `place` is also in that space."""
    if place.id == space_id:
        return True
    source = scene.places.get(space_id)
    return source is not None and {each.handle for each in place.members} <= {each.handle for each in source.members}


def _tellable(moment: Moment) -> Iterator[DemoEvent]:
    return (
        each for each in moment.before if each.what == "Message" and may_hear(moment.scene, moment.place, each.space_id)
    )


def _may_be_told(moment: Moment, cycle: Cycle) -> bool:
    spaces = {event.space_id for event in cycle.events} | {said.space_id for said in cycle.said}
    return all(may_hear(moment.scene, moment.place, each) for each in spaces)


def _whom(moment: Moment, event: DemoEvent) -> str:
    return "You" if (event.sender, event.kind) == (moment.event.sender, moment.event.kind) else event.sender


def _is_by(moment: Moment, event: DemoEvent, name: str) -> bool:
    """Whether someone of that name or handle said it."""
    if event.sender.casefold() == name.casefold():
        return True
    place = moment.scene.places.get(event.space_id, moment.place)
    return any(each.name == event.sender and each.handle == name.casefold().lstrip("@") for each in place.others)


def _is_about(text: str, about: str) -> bool:
    words = re.findall(r"\w+", about.casefold())
    return all(word in text.casefold() for word in words)


def _telling_words(text: str) -> set[str]:
    """Returns the words that say what a question or a fact is about."""
    return {word for word in re.findall(r"\w{3,}", text.casefold()) if word not in _COMMON_WORDS}


def _last(things: Sequence[str]) -> str:
    left = f"(The last {_SHOWN} of {len(things)}.) " if len(things) > _SHOWN else ""
    return left + " ".join(f"{each}." for each in things[-_SHOWN:])


def _joined(things: Sequence[str]) -> str:
    left = f"; these are the last {_SHOWN}" if len(things) > _SHOWN else ""
    return f"{listed(things[-_SHOWN:])}{left}."
