"""Runs a think cycle of the demo model: a script that is replayed from its beginning at each request.

The script is a generator: it yields the calls of a response and receives their results. Since it depends on the prompt
alone, replaying it with the results in the prompt leads to the next response; nothing is stored between requests, so a
cycle may continue in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from denizen.models.demo.addressing import addressees, is_only_agent, whose_turn
from denizen.models.demo.answering import SAID_IN_PRIVATE, Answer, Remember, Remind, Reply, answer
from denizen.models.demo.passing import Relay, answer_to_bring_back
from denizen.models.demo.reading import (
    DemoEvent,
    DemoSpace,
    Inbox,
    Scene,
    read_transcript,
    shares_private_words,
    succeeded,
)
from denizen.models.demo.recalling import Moment, essence, fact_in
from denizen.models.demo.reminding import memory_arguments, reminder_in, timer_arguments, timer_text
from denizen.models.demo.wording import NOTHING_PENDING, listed, one_of, quoted
from denizen.models.scripted import Call, Say, call, skip
from denizen.shortening import shortened

T = TypeVar("T")
Script = Generator[list[Call], Sequence[str], T]
Relation = Literal["mine", "unsure", "heard", "not mine"]
Tools = Mapping[str, Mapping[str, Any]]
"""The schemas of the offered tools, by name."""

Words = Callable[[Sequence[bool]], str]
"""Returns the text to say, given which of the earlier messages were sent."""

_LONGEST = 4_000
_PAGE = 30
_UNSAID = "Could not say something."


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message for a space."""

    space_id: str
    text: Words
    told: str
    """What the summary says about it, once it is sent."""
    instead: str = ""
    """What to say if it is refused for words said in private, because somebody waits for an answer there."""


@dataclass
class _Cycle:
    """The progress of the script."""

    scene: Scene
    tools: Tools
    active: str | None
    done: list[str] = field(default_factory=list[str])
    """The sentences of the summary."""
    pending: list[str] = field(default_factory=list[str])
    silent: list[str] = field(default_factory=list[str])
    """The reasons for not answering, if it did not."""


def decide(scene: Scene, tools: Tools) -> list[Call] | Say:
    """Returns the next response: calls, or the final text."""
    script = _live(scene, tools)
    try:
        calls = next(script)
        for step in scene.present.steps:
            calls = script.send(step.results)
    except StopIteration as end:
        words: Call | Say = end.value
        # Nudged that someone waits, it has nothing else to say: its script is at its end.
        return [skip("nothing more to say")] if scene.present.reminded and "skip" in tools else _as_turn(words)
    return calls


def _as_turn(words: Call | Say) -> list[Call] | Say:
    return [words] if isinstance(words, Call) else words


def _live(scene: Scene, tools: Tools) -> Script[Call | Say]:
    present = scene.present
    cycle = _Cycle(scene, tools, present.began_in)
    before = [event for past in scene.past for event in past.events]
    for inbox in (present.inbox, *present.updates):
        yield from _attend(cycle, inbox, before)
        before += inbox.events
    if cycle.done:
        pending = f"Pending: {listed(cycle.pending)}." if cycle.pending else NOTHING_PENDING
        return Say(f"{' '.join(cycle.done)} {pending}")
    reason = cycle.silent[0] if cycle.silent else "nothing to do"
    return skip(reason) if "skip" in tools else Say(f"Did nothing: {reason}.")


def _attend(cycle: _Cycle, inbox: Inbox, before: Sequence[DemoEvent]) -> Script[None]:
    """Handles everything in one inbox message."""
    elsewhere = [_not_a_message(cycle, event) for event in inbox.events if event.what != "Message"]
    relations = yield from _sort(cycle, inbox)
    answers: list[tuple[Moment, Answer]] = []
    for at, (event, relation) in enumerate(zip(inbox.events, relations, strict=True)):
        if event.what != "Message":
            continue
        moment = Moment(cycle.scene, _place(cycle.scene, event), event, [*before, *inbox.events[:at]])
        found = _answer(cycle, moment, relation)
        if found is not None:
            answers.append((moment, found))
    yield from _speak(cycle, [*filter(None, elsewhere), *(yield from _compose(cycle, answers))])


def _place(scene: Scene, event: DemoEvent) -> DemoSpace:
    return scene.places.get(event.space_id) or DemoSpace(event.space_id, event.space, False, ())


# Whose message it is


def _sort(cycle: _Cycle, inbox: Inbox) -> Script[list[Relation]]:
    """Returns how each event concerns this agent; if the message does not tell, the messages before it do."""
    relations: list[Relation] = [_relation(cycle.scene, event) for event in inbox.events]
    unsure = [event for event, each in zip(inbox.events, relations, strict=True) if each == "unsure"]
    spaces = list(dict.fromkeys(event.space_id for event in unsure))
    pages: dict[str, list[DemoEvent]] = {}
    if spaces and "read_messages" in cycle.tools:
        results = yield [call("read_messages", space_id=each, limit=_PAGE) for each in spaces]
        pages = {each: read_transcript(result) for each, result in zip(spaces, results, strict=False)}
    for at, event in enumerate(inbox.events):
        if relations[at] == "unsure":
            relations[at] = _settled(cycle.scene, event, pages.get(event.space_id, []))
    return relations


def _relation(scene: Scene, event: DemoEvent) -> Relation:
    if event.asked:
        return "mine"
    place = _place(scene, event)
    meant = addressees(event.text, place)
    if event.kind == "agent":
        # Only a mention counts, and answers to agents have none: so no exchange between agents continues by itself.
        if event.mentions_me and (scene.handle in meant or not meant):
            return "mine"
        return "heard" if len(place.members) <= 2 or answer_to_bring_back(scene, event) else "not mine"
    if scene.handle in meant:
        return "mine"
    if meant & {each.handle for each in place.others}:
        return "not mine"
    return "mine" if is_only_agent(place) else "unsure"


def _settled(scene: Scene, event: DemoEvent, page: Sequence[DemoEvent]) -> Relation:
    place, start = _place(scene, event), event.text[:200]
    for at in range(len(page) - 1, -1, -1):
        if page[at].sender == event.sender and page[at].text.startswith(start):
            event, page = page[at], page[:at]
            break
    else:
        page = []
    return "mine" if whose_turn(event, place, page) == scene.handle else "not mine"


# What to say


def _answer(cycle: _Cycle, moment: Moment, relation: Relation) -> Answer | None:
    event = moment.event
    if moment.from_agent and (brought := answer_to_bring_back(cycle.scene, event)) is not None:
        return brought
    found = answer(moment) if relation == "mine" else None
    if found is None and relation in ("mine", "heard"):
        cycle.done.append(f"Heard from {event.sender} in {quoted(event.space)}: {quoted(event.text, 120)}.")
    elif found is None:
        cycle.silent.append("not addressed to me")
    return found


def _not_a_message(cycle: _Cycle, event: DemoEvent) -> Utterance | None:
    """Returns what to say for a timer or a plan; other events are only noted."""
    named = f"{event.what} {quoted(event.sender)}" if event.sender else event.what
    if (reminder := reminder_in(event.text)) is not None and reminder[1] in cycle.scene.places:
        handle, space_id, what = reminder
        return _plainly(
            space_id, f"@{handle}, you asked me to remind you: {what}", f"Reminded {handle}: {quoted(what)}."
        )
    if event.what in ("Timer", "Plan") and event.space_id in cycle.scene.places:
        return _plainly(event.space_id, f"{named} is due: {quoted(event.text, 200)}.", f"Told that {named} is due.")
    cycle.done.append(f"Noted: {named}: {quoted(event.text, 120)}.")
    return None


def _plainly(space_id: str, text: str, told: str) -> Utterance:
    return Utterance(space_id, lambda _said: text, told)


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the answers that go to the same space."""

    sender: str
    words: Words
    told: str
    in_short: str = SAID_IN_PRIVATE


def _compose(cycle: _Cycle, answers: Sequence[tuple[Moment, Answer]]) -> Script[list[Utterance]]:
    """Composes messages for other spaces first, then one message for each space that waits for an answer."""
    relays: list[Utterance] = []
    parts: dict[str, list[_Part]] = {}
    for moment, each in answers:
        here = parts.setdefault(moment.place.id, [])
        if isinstance(each, Relay):
            relays.append(_plainly(each.place.id, each.text, _passed_on(moment, each)))
            cycle.pending += [each.awaits] if each.awaits else []
            if each.confirmation:
                here.append(_Part(moment.event.sender, _confirming(each, len(relays) - 1), ""))
        else:
            words, told = yield from _carry_out(cycle, moment, each)
            in_short = each.in_short if isinstance(each, Reply) else SAID_IN_PRIVATE
            here.append(_Part(moment.event.sender, lambda _said, words=words: words, told, in_short))
    return relays + [_together(space_id, said) for space_id, said in parts.items() if said]


def _passed_on(moment: Moment, relay: Relay) -> str:
    deed = "Brought the answer of" if moment.from_agent else "Passed on for"
    return f"{deed} {moment.event.sender} to {quoted(relay.place.name)}: {quoted(relay.text)}."


def _confirming(relay: Relay, at: int) -> Words:
    failed = f"I could not say that in the space {quoted(relay.place.name)}."
    return lambda said: relay.confirmation if at < len(said) and said[at] else failed


def _together(space_id: str, parts: Sequence[_Part]) -> Utterance:
    several = len({part.sender for part in parts}) > 1

    def join(said: Sequence[bool]) -> str:
        return "\n\n".join(f"{each.sender}: {each.words(said)}" if several else each.words(said) for each in parts)

    instead = parts[0].in_short if len(parts) == 1 else SAID_IN_PRIVATE
    return Utterance(space_id, join, " ".join(filter(None, (part.told for part in parts))), instead)


def _carry_out(cycle: _Cycle, moment: Moment, answer: Reply | Remember | Remind) -> Script[tuple[str, str]]:
    """Performs the actions of an answer; returns its text, and the sentence for the summary."""
    who = moment.event.sender
    match answer:
        case Reply(text, about):
            words = text.replace("@", "") if moment.from_agent else text
            return words, f"Answered {who} in {quoted(moment.place.name)}: {about}."
        case Remember(fact):
            yield from _keep(cycle, moment, fact)
            words = one_of(("I will remember: {}.", "Noted: {}.", "I keep that in mind: {}."), fact)
            return words.format(quoted(fact)), f"{who} told me to remember: {quoted(fact)}."
        case Remind(seconds, span, what):
            return (yield from _set_timer(cycle, moment, seconds, span, what))


def _keep(cycle: _Cycle, moment: Moment, fact: str) -> Script[None]:
    """Stores a note if there is a tool for notes. Otherwise the message itself stays in the history."""
    told = [fact_in(essence(each.text, cycle.scene.name)) for each in moment.before]
    facts = [*cycle.scene.notes, *filter(None, told), fact]
    arguments = memory_arguments(cycle.tools.get("set_memories", {}), list(dict.fromkeys(facts)))
    if arguments is not None:
        yield [call("set_memories", **arguments)]


def _set_timer(cycle: _Cycle, moment: Moment, seconds: int, span: str, what: str) -> Script[tuple[str, str]]:
    who = moment.event.sender
    text = timer_text(moment.handle, moment.place, what)
    arguments = timer_arguments(cycle.tools.get("set_timer", {}), seconds, text, moment.place.id)
    if arguments is None:
        return "I have no timers here, so I cannot remind you.", f"Could not remind {who}: no timers here."
    results = yield [call("set_timer", **arguments)]
    if not (results and succeeded(results[0])):
        return "I tried to set a timer, but it was refused.", f"Failed to set a timer for {who}."
    cycle.pending.append(f"to remind {who}")
    return f"I will remind you in {span}: {quoted(what)}.", f"Set a timer for {who}: {quoted(what)}."


# Sending


def _speak(cycle: _Cycle, utterances: Sequence[Utterance]) -> Script[None]:
    """Sends all messages, each in its space. One response sends a message and enters the space of the next."""
    said: list[bool] = []
    for at, each in enumerate(utterances):
        yield from _enter(cycle, each.space_id)
        if cycle.active != each.space_id or "send_message" not in cycle.tools:
            said.append(False)
            cycle.done.append(_UNSAID)
            continue
        following = utterances[at + 1].space_id if at + 1 < len(utterances) else each.space_id
        calls = [call("send_message", text=_sayable(each.text(said)))]
        if following != each.space_id and "enter_space" in cycle.tools:
            calls.append(call("enter_space", space_id=following))
        results = yield calls
        said.append(bool(results) and succeeded(results[0]))
        cycle.done += [told] if (told := each.told if said[-1] else _UNSAID) else []
        if len(calls) > 1 and len(results) > 1 and succeeded(results[1]):
            cycle.active = following
        if each.instead and results and shares_private_words(results[0]):
            yield from _enter(cycle, each.space_id)
            if cycle.active == each.space_id:
                yield [call("send_message", text=each.instead)]


def _enter(cycle: _Cycle, space_id: str) -> Script[None]:
    if cycle.active == space_id or "enter_space" not in cycle.tools:
        return
    results = yield [call("enter_space", space_id=space_id)]
    if results and succeeded(results[0]):
        cycle.active = space_id


def _sayable(text: str) -> str:
    return shortened(text.strip() or "(nothing)", _LONGEST)
