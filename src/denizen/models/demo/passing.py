"""Relays messages for the demo model: to whom, where, in which words; and brings the answer back. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from denizen.models.demo.reading import Cycle, DemoEvent, DemoSpace, Member, Scene
from denizen.models.demo.recalling import Moment
from denizen.models.demo.wording import quoted

_TELL = re.compile(r"(?P<verb>tell|inform|ask|let)\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_SAY = re.compile(
    r"(?:say|post|write|send|repeat)\s+(?P<text>.+)\s(?:in|to|at|into)\s+(?P<target>\S.*?)[\s.!]*",
    re.IGNORECASE | re.DOTALL,
)
_GREET = re.compile(r"greet\s+(?P<target>.+?)[\s.!]*", re.IGNORECASE)
_JOINT = re.compile(r"\s*(?:know\b\s*)?(?:that\b|to\b|about\b|whether\b|if\b)?[\s,:]*", re.IGNORECASE)
_ASKED = re.compile(r"@(?P<handle>\S+), [^:\n]+ asks: ")


@dataclass(frozen=True, slots=True)
class Relay:
    """A message for another space, and its confirmation."""

    place: DemoSpace
    text: str
    confirmation: str
    """Said in the space of the request, once it is done; empty if the message itself was said there."""
    awaits: str = ""
    """The answer that is expected."""


def relay_in(moment: Moment) -> Relay | None:
    """Returns what is to be relayed, if anything, and its target is known."""
    asked = moment.asked
    if (found := _TELL.fullmatch(asked)) is not None:
        return _tell(moment, found["verb"].lower(), found["rest"])
    if (found := _SAY.fullmatch(asked)) is not None:
        return _say(moment, found["text"].strip(), found["target"])
    if (found := _GREET.fullmatch(asked)) is not None:
        return _say(moment, "hello", found["target"])
    return None


def _tell(moment: Moment, verb: str, rest: str) -> Relay | None:
    target, left = _find(moment, rest)
    said = left[_joint_end(left) :].strip()
    place = _where(moment, target)
    if target is None or place is None or not said:
        return None
    asks = verb == "ask"
    words = (
        f"{moment.event.sender} asks: {said.rstrip('?. ')}?"
        if asks
        else f"{moment.event.sender} asks me to tell you: {said}"
    )
    if isinstance(target, DemoSpace):
        return Relay(place, words, _elsewhere(moment, place, "I have passed it on"))
    done = f"I have {'asked' if asks else 'told'} {target.name}"
    awaits = f"the answer of {target.name}" if asks and place.id != moment.place.id else ""
    return Relay(place, f"@{target.handle}, {words}", _elsewhere(moment, place, done), awaits)


def _joint_end(text: str) -> int:
    found = _JOINT.match(text)
    return found.end() if found else 0


def _say(moment: Moment, text: str, named: str) -> Relay | None:
    target, left = _find(moment, named)
    place = _where(moment, target)
    if target is None or place is None or left.strip(" .!?"):
        return None
    words = text if isinstance(target, DemoSpace) else f"@{target.handle} {text}"
    if place.id != moment.place.id:
        words = f"{words} (from {moment.event.sender})"
    return Relay(place, words, _elsewhere(moment, place, "I have said it"))


def _elsewhere(moment: Moment, place: DemoSpace, done: str) -> str:
    """Returns the confirmation of a message in another space; one in this space needs none."""
    return "" if place.id == moment.place.id else f"{done}, in the space {quoted(place.name)}."


def _find(moment: Moment, text: str) -> tuple[Member | DemoSpace | None, str]:
    """Returns the member or space that `text` begins with, and what follows; the longest name wins."""
    text = re.sub(r"\A(?:the\s+)?(?:space\s+)?[\"'“]?@?", "", text.strip(), flags=re.IGNORECASE)
    best: Member | DemoSpace | None = None
    length = 0
    for name, known in _known(moment.scene, moment.place):
        if len(name) > length and re.match(rf"{re.escape(name)}(?![\w-])", text, re.IGNORECASE):
            best, length = known, len(name)
    return best, text[length:].lstrip("\"'”")


def _known(scene: Scene, here: DemoSpace) -> list[tuple[str, Member | DemoSpace]]:
    places = [here, *scene.places.values()]
    known: list[tuple[str, Member | DemoSpace]] = [(place.name, place) for place in places]
    for each in (member for place in places for member in place.others):
        known += [(each.handle, each), (each.name, each), (each.name.partition(" ")[0], each)]
    return known


def _where(moment: Moment, target: Member | DemoSpace | None) -> DemoSpace | None:
    """Returns the space in which to speak to someone: the smallest one with both, and this one only if there is no
    other.
    """
    if not isinstance(target, Member):
        return target
    shared = [
        place for place in moment.scene.places.values() if any(each.handle == target.handle for each in place.members)
    ]
    return min(shared, key=lambda place: (place.id == moment.place.id, len(place.members)), default=None)


def answer_to_bring_back(scene: Scene, event: DemoEvent) -> Relay | None:
    """If `event` is the first answer to a relayed question, returns what to tell the asker, and where."""
    for cycle in reversed(scene.past):
        if any(_same_source(each, event) for each in cycle.events):
            return None
        asked = next((said for said in cycle.said if said.space_id == event.space_id), None)
        if asked is not None:
            return _bring_back(scene, event, cycle, asked.text)
    return None


def _same_source(one: DemoEvent, other: DemoEvent) -> bool:
    return (one.space_id, one.sender) == (other.space_id, other.sender)


def _bring_back(scene: Scene, event: DemoEvent, cycle: Cycle, words: str) -> Relay | None:
    asked = _ASKED.match(words)
    place = scene.places.get(event.space_id)
    author = next((each for each in place.others if each.name == event.sender), None) if place else None
    origin = scene.places.get(cycle.began_in or "")
    if asked is None or author is None or author.handle != asked["handle"] or origin is None or origin is place:
        return None
    said = event.text.replace("@", "").strip()
    return Relay(origin, f"{event.sender} answers: {said}", "")
