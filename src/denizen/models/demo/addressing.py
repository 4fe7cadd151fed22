"""Decides whom a message is meant for, so that one agent answers and not all at once. Pure.

Addressed are those whose handles a message begins or ends with, or whose name it calls; then those it mentions anywhere
else. If it addresses nobody, the agent that its writer last addressed there answers; if there is none, the first agent
of the space. Every agent of a space comes to the same conclusion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from denizen.models.demo.reading import DemoEvent, DemoSpace

EXCHANGE = timedelta(minutes=10)
"""How long an agent that was addressed stays the one who is meant."""

_HANDLE = r"@[A-Za-z0-9](?:[._-]*[A-Za-z0-9])*"
_MENTION = re.compile(rf"(?<![\w@/.]){_HANDLE}")
_LEADING = re.compile(
    rf"\s*(?:(?:hi|hello|hey|dear|ok|okay|so|and)[ ,]+)?((?:{_HANDLE}[\s,:;!.]*(?:and\s+)?)+)", re.IGNORECASE
)
_TRAILING = re.compile(rf"(?<![\w@/.])({_HANDLE})[\s.!?]*\Z")
_PASSED_ON = re.compile(
    r"(?:please\s+|can you\s+|could you\s+|would you\s+)*"
    r"(?:tell|ask|greet|remind|inform|let|say|send|post|write|relay|pass)\b",
    re.IGNORECASE,
)
_GREETING = r"(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|good \w+|thanks|thank you|dear|ok|okay)"


def leading_mentions(text: str) -> tuple[set[str], str]:
    """Returns the handles that `text` begins with, and what follows them; otherwise those it ends with: `Hello @bo`."""
    found = _LEADING.match(text)
    if found is None:
        return set(), text
    return _handles(found[1]), text[found.end() :] or text[: found.start(1)]


def addressees(text: str, place: DemoSpace) -> set[str]:
    """Returns the handles of those whom `text` itself addresses; empty if none."""
    leading, _ = leading_mentions(text)
    if leading:
        return leading
    if called := {each.handle for each in place.members if calls_by_name(text, each.name)}:
        return called
    if (found := _TRAILING.search(text)) and not _PASSED_ON.match(text.strip()):
        return _handles(found[1])
    return set() if _PASSED_ON.match(text.strip()) else _handles(text)


def calls_by_name(text: str, name: str) -> bool:
    """Whether `text` addresses someone of that name: `Ada, …`, `Hello Ada`, `…, Ada?`"""
    return any(_calling(word).search(text) for word in {name, name.partition(" ")[0]} if word)


def _calling(name: str) -> re.Pattern[str]:
    called = re.escape(name)
    first = rf"\A\s*(?:{_GREETING}[ ,]+)?{called}\s*(?:[,:;!?–—-]|\Z)"
    last = rf",\s*{called}\s*+[.!?]*+\s*+\Z"
    return re.compile(rf"{first}|{last}|\A\s*{_GREETING}[ ,]+{called}\b", re.IGNORECASE)


def _handles(text: str) -> set[str]:
    return {found[0][1:].lower() for found in _MENTION.finditer(text)}


def is_only_agent(place: DemoSpace) -> bool:
    """Whether there is no other agent to answer."""
    return all(each.me for each in place.agents)


def whose_turn(event: DemoEvent, place: DemoSpace, before: Sequence[DemoEvent]) -> str:
    """Returns the handle of the agent who answers a message that addresses nobody, by the messages before it in the
    space.
    """
    agents = {each.handle for each in place.agents}
    if not agents:
        return ""
    for earlier in reversed(before):
        if earlier.sender != event.sender or earlier.kind != event.kind:
            continue
        if earlier.at is not None and event.at is not None and event.at - earlier.at > EXCHANGE:
            break
        if meant := addressees(earlier.text, place) & agents:
            return next(each.handle for each in place.agents if each.handle in meant)
    return place.agents[0].handle
