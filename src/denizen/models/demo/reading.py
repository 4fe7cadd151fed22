"""Parses the demo model's prompt: who it is, its spaces and their members, its history, its new events.

Pure. It relies on the formats of the self and of the inbox message, which text from outside cannot imitate, and skips
what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

Kind = Literal["human", "agent", "service"]

_NAME = r'"[^"]*"|[^"(),:|\[\]]+?'
_ID = r'(?P<id>"[^"]*"|[^"|\]]+?)'
_SPEAKER = rf"(?P<sender>{_NAME})(?: \((?P<kind>human|agent|service)(?:, @[^)]+)?\))?:(?P<said>.*)"
_IDENTITY = re.compile(rf"\AIDENTITY:\n  name: (?P<name>{_NAME})\n  handle: @(?P<handle>\S+)")
_ROLE = re.compile(r"\n\nYOUR ROLE:\n(.*)\Z", re.DOTALL)
_NOTES = re.compile(r"\n\n(?:YOUR )?(?:NOTES|MEMORIES):\n((?:  - .*\n?)+)")
_SPACE = re.compile(r'"(?P<name>[^"]*)" \(id: (?P<id>[^,)]+)(?P<private>, private)?\) — (?P<members>.*)')
_MEMBER = re.compile(
    rf"(?:^|, )(?:(?P<me>You)(?=, |$)|(?P<name>{_NAME}) \((?P<kind>human|agent|service), @(?P<handle>[^)]+)\))"
)
_NOW = re.compile(r"^Now: \w+ (\d{4}-\d\d-\d\d \d\d:\d\d) UTC$", re.MULTILINE)
_MESSAGE = re.compile(
    rf'\d+\. \[Space "(?P<space>[^"]*)" \| spaceId: {_ID}(?P<marks>(?: \| (?:"[^"]*"|[^"|\]])+)*)\] {_SPEAKER}'
)
_OTHER = re.compile(
    r'\d+\. \[(?P<kind>Plan|Timer|Service|Tool result|Notice)(?: "(?P<name>[^"]*)")?'
    r'(?P<marks>(?:"[^"]*"|[^"\]])*)\](?P<said>.*)'
)
_ITS_SPACE = re.compile(rf'\| space "(?P<space>[^"]*)" \| spaceId: {_ID}(?: \||\Z)')
_ASKED = re.compile(
    rf"(?P<sender>{_NAME})(?: \(@[^)]+\))? "
    r"(?:(?P<me>asks you for (?:an|another) answer to what [^\n]+ wrote)|"
    r"changed a message and asks you to answer it as it is now):"
    r"\n(?P<said>.*?)(?:\n\nYour earlier answer \(message [^\n]+\) stays where it is\. Answer anew\.)?",
    re.DOTALL,
)
_LINE = re.compile(rf"\d+\. (?P<at>\d{{4}}-\d\d-\d\d \d\d:\d\d) {_SPEAKER}")
_GUTTERS = ("   | ", "   > ")
_FILE = re.compile(r'   → file "([^"]*)" \(')
_GONE = re.compile(r'You are no longer in the space "[^"]*" \(id: (?P<id>[^,)]+)')
_MEMBERS = re.compile(r"(?:Members of (?P<space>.*?\)): |New space: |Space changed: )(?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class Member:
    """Someone in a space."""

    name: str
    kind: Kind
    handle: str
    me: bool = False


@dataclass(frozen=True, slots=True)
class DemoSpace:
    """A space that the agent is in."""

    id: str
    name: str
    private: bool
    members: tuple[Member, ...]

    @property
    def others(self) -> tuple[Member, ...]:
        return tuple(each for each in self.members if not each.me)

    @property
    def agents(self) -> tuple[Member, ...]:
        return tuple(each for each in self.members if each.kind == "agent")


@dataclass(frozen=True, slots=True)
class DemoEvent:
    """One event of an inbox message, or one line of a transcript."""

    what: str
    """`Message`, `Plan`, `Timer`, `Service`, `Tool result` or `Notice`."""
    text: str
    space_id: str = ""
    space: str = ""
    sender: str = ""
    kind: Kind | None = None
    mentions_me: bool = False
    at: datetime | None = None
    asked: bool = False
    """Whether somebody asks this agent, and no other, for an answer to it."""
    files: tuple[str, ...] = ()
    """The names of the files that came with it."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """One inbox message."""

    now: datetime | None
    changes: tuple[str, ...]
    events: tuple[DemoEvent, ...]


@dataclass(frozen=True, slots=True)
class PastCalls:
    """The calls of one response, and their results."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that the agent itself has sent."""

    space_id: str
    text: str


@dataclass
class Cycle:
    """One think cycle as the window shows it."""

    inbox: Inbox
    updates: list[Inbox] = field(default_factory=list[Inbox])
    steps: list[PastCalls] = field(default_factory=list[PastCalls])
    words: str = ""
    """Its final text."""
    reminded: bool = False

    @property
    def events(self) -> tuple[DemoEvent, ...]:
        return sum((each.events for each in self.updates), self.inbox.events)

    @property
    def began_in(self) -> str | None:
        """The agent's space when the cycle begins: the one that all its events come from."""
        found = {event.space_id for event in self.inbox.events if event.space_id}
        return found.pop() if len(found) == 1 else None

    @property
    def said(self) -> Iterator[SentMessage]:
        """Yields the messages sent in it, in order."""
        active = self.began_in or ""
        for step in self.steps:
            for (tool, arguments), result in zip(step.calls, step.results, strict=True):
                if not succeeded(result):
                    continue
                if tool == "enter_space":
                    active = str(arguments.get("space_id", ""))
                elif tool == "send_message":
                    yield SentMessage(active, str(arguments.get("text", "")))


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything in the prompt."""

    name: str
    handle: str
    role: str
    notes: tuple[str, ...]
    places: dict[str, DemoSpace]
    """The spaces by their ids, in the order of the self."""
    past: tuple[Cycle, ...]
    present: Cycle
    layers: tuple[str, ...]
    """Lines about cycles before the window."""


def succeeded(result: str) -> bool:
    """Whether one of our tools reports success."""
    return '"success":true' in result


def shares_private_words(result: str) -> bool:
    """Whether a message was refused because it shares words with something said in private."""
    return "consecutive words with" in result


def read(messages: Sequence[ModelMessage]) -> Scene:
    """Parses the messages of a prompt."""
    selves: list[str] = []
    layers: list[str] = []
    cycles: list[Cycle] = []
    for message in messages:
        cycle = cycles[-1] if cycles else None
        if not isinstance(message, ModelRequest):
            if cycle is not None:
                _respond(cycle, message.parts)
            continue
        if cycle is not None:
            _add_results(cycle, message.parts)
        for part in message.parts:
            if isinstance(part, SystemPromptPart):
                selves.append(part.content)
            elif isinstance(part, UserPromptPart):
                _hear(_plain(part.content), cycles, layers)
    present = cycles.pop() if cycles else Cycle(Inbox(None, (), ()))
    return _scene(selves[-1] if selves else "", cycles, present, layers)


def _scene(self_text: str, past: list[Cycle], present: Cycle, layers: list[str]) -> Scene:
    identity = _IDENTITY.search(self_text)
    head, _, spaces = self_text.rpartition("\n\nYOUR SPACES:\n")
    role = _ROLE.search(head)
    notes = _NOTES.search(spaces)
    name, handle = (unquoted(identity["name"]), identity["handle"]) if identity else ("", "")
    return Scene(
        name=name or "a demo agent",
        handle=handle.lower(),
        role=role[1].strip() if role else "",
        notes=tuple(line[4:] for line in notes[1].splitlines()) if notes else (),
        places=_places(spaces.partition("\n\n")[0], [*past, present], name, handle),
        past=tuple(past),
        present=present,
        layers=tuple(layers),
    )


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(each for each in content if isinstance(each, str))


def _hear(text: str, cycles: list[Cycle], layers: list[str]) -> None:
    if text.startswith("[INBOX - "):
        cycles.append(Cycle(read_inbox(text)))
    elif text.startswith("[MID-CYCLE UPDATE") and cycles:
        cycles[-1].updates.append(read_inbox(text))
    elif text.startswith("[REMINDER]") and cycles:
        cycles[-1].reminded = True
    elif text.startswith(("[EARLIER CYCLES", "[COMPACTED MEMORY")):
        layers.extend(line.strip() for line in text.splitlines()[1:] if line.strip())


def _respond(cycle: Cycle, parts: Sequence[Any]) -> None:
    calls: list[Any] = [part for part in parts if isinstance(part, ToolCallPart)]
    cycle.words = " ".join(part.content for part in parts if isinstance(part, TextPart)).strip() or cycle.words
    if calls:
        made = tuple((part.tool_name, part.args_as_dict(raise_if_invalid=False)) for part in calls)
        cycle.steps.append(PastCalls(made, ("",) * len(calls)))


def _add_results(cycle: Cycle, parts: Sequence[Any]) -> None:
    """Results are in the order of their calls, in the next message; their ids may repeat, so they do not help."""
    results: list[Any] = [part for part in parts if isinstance(part, ToolReturnPart)]
    if not results or not cycle.steps:
        return
    calls = cycle.steps[-1].calls
    told = [part.content if isinstance(part.content, str) else str(part.content) for part in results]
    told += [""] * len(calls)
    cycle.steps[-1] = PastCalls(calls, tuple(told[: len(calls)]))


@lru_cache(maxsize=4096)
def read_inbox(text: str) -> Inbox:
    """Parses an inbox message."""
    head, *blocks = text.split("\n\n")
    now = _NOW.search(head)
    _, _, changes = head.partition("\n[CHANGES]\n")
    lines = [line for block in blocks for line in block.split("\n")]
    events = tuple(
        replace(event, files=files)
        for said, below, files in _entries(lines)
        if (event := _event(said, below)) is not None
    )
    return Inbox(
        _moment(now[1]) if now else None,
        tuple(line.removeprefix("- ") for line in changes.split("\n") if line),
        events,
    )


def read_transcript(text: str) -> list[DemoEvent]:
    """Parses the messages of a page of `read_messages`, oldest first."""
    found: list[DemoEvent] = []
    for first, below, _ in _entries(text.split("\n")):
        if (line := _LINE.fullmatch(first)) is not None:
            said, sender = _said(line["said"], below), unquoted(line["sender"])
            found.append(DemoEvent("Message", said, sender=sender, kind=_kind(line["kind"]), at=_moment(line["at"])))
    return found


def _entries(lines: Sequence[str]) -> Iterator[tuple[str, list[str], tuple[str, ...]]]:
    """Yields each numbered line with the quoted lines below it, and the names of its files."""
    first, below, files = "", list[str](), list[str]()
    for line in lines:
        if line[:1].isdigit():
            if first:
                yield first, below, tuple(files)
            first, below, files = line, [], []
        elif line.startswith(_GUTTERS):
            below.append(line[len(_GUTTERS[0]) :])
        elif (file := _FILE.match(line)) is not None:
            files.append(file[1])
    if first:
        yield first, below, tuple(files)


def _event(first: str, below: list[str]) -> DemoEvent | None:
    if (found := _MESSAGE.fullmatch(first)) is not None:
        return DemoEvent(
            "Message",
            _said(found["said"], below),
            unquoted(found["id"]),
            found["space"],
            unquoted(found["sender"]),
            _kind(found["kind"]),
            "mentions you" in found["marks"].split(" | "),
        )
    if (found := _OTHER.fullmatch(first)) is not None:
        place = _ITS_SPACE.search(found["marks"])
        space_id, space = (unquoted(place["id"]).strip(), place["space"]) if place else ("", "")
        said = _said(found["said"], below)
        if found["kind"] == "Notice" and (asked := _ASKED.fullmatch(said)) is not None:
            sender = unquoted(asked["sender"])
            return DemoEvent("Message", asked["said"], space_id, space, sender, "human", asked=asked["me"] is not None)
        return DemoEvent(found["kind"], said, space_id, space, found["name"] or "")
    return None


def _said(rest: str, below: list[str]) -> str:
    return "\n".join(below) if below else unquoted(rest.strip())


def _kind(word: str | None) -> Kind | None:
    return word if word in ("human", "agent", "service") else None


def _moment(text: str) -> datetime | None:
    try:
        return datetime.strptime(f"{text} +0000", "%Y-%m-%d %H:%M %z")
    except ValueError:
        return None


def unquoted(text: str) -> str:
    """`text` without the quotation marks around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _places(listed: str, cycles: Sequence[Cycle], name: str, handle: str) -> dict[str, DemoSpace]:
    """Returns the spaces of the self, with the changes since."""
    places: dict[str, DemoSpace] = {}
    for line in listed.split("\n"):
        _note_place(places, line.removeprefix("  - "), name, handle)
    for cycle in _since_the_self(cycles):
        for change in cycle.inbox.changes:
            if (gone := _GONE.match(change)) is not None:
                places.pop(gone["id"], None)
            elif (told := _MEMBERS.fullmatch(change)) is not None:
                line = f"{told['space']} — {told['rest']}" if told["space"] else told["rest"]
                _note_place(places, line, name, handle)
    return places


def _since_the_self(cycles: Sequence[Cycle]) -> Sequence[Cycle]:
    """Returns the cycles after the self was rendered. After a long sleep it is rendered anew, and includes all that
    came before.
    """
    for index in range(len(cycles) - 1, 0, -1):
        before, after = cycles[index - 1].inbox.now, cycles[index].inbox.now
        if before is not None and after is not None and (after - before).total_seconds() > 300:
            return cycles[index:]
    return cycles


def _note_place(places: dict[str, DemoSpace], line: str, name: str, handle: str) -> None:
    found = _SPACE.fullmatch(line)
    if found is None:
        return
    members = tuple(
        Member(name, "agent", handle.lower(), me=True)
        if each["me"]
        else Member(unquoted(each["name"]), _kind(each["kind"]) or "human", each["handle"].lower())
        for each in _MEMBER.finditer(found["members"])
    )
    places[found["id"]] = DemoSpace(found["id"], found["name"], bool(found["private"]), members)
