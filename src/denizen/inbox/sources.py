"""The sources of text from outside, as log entries, tool results and events record them. Pure.

A source names an entity by its id, so that a forgotten person is not named here; `spaces/source_names.py` has handles.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from denizen.inbox.events import Event

SourceKind = Literal["guest", "service", "tool", "agent", "memory", "layer", "plan", "file"]
_KINDS: Final = get_args(SourceKind)


@dataclass(frozen=True, slots=True)
class Source:
    """Where text from outside came from."""

    kind: SourceKind
    name: str
    """The name of a tool, service, plan, note or file; the handle of a guest or agent, or its id where it is stored."""


EARLIER: Final = Source("layer", "earlier cycles")
"""The source of text from outside that has left the window."""


def source_of_event(event: Event) -> Source | None:
    """The source of an event's text, if it is from outside or was made from such text."""
    if not event.outside:
        return None
    match event.type:
        case "space_message" | "mention":
            return source_of_author(event.sender_kind, event.sender_id or "")
        case "service_trigger":
            return Source("service", _named(event, "service"))
        case "tool_result":
            return Source("tool", _named(event, "tool"))
        case "plan_trigger":
            return Source("plan", _named(event, "plan_name"))
        case "timer":
            return Source("plan", "timer")
        case "notice":
            return Source("service", "notice")


def source_of_author(kind: str | None, id: str) -> Source:
    """The source of a message from outside, by its author. A person who is not vouched for, such as the author of an
    imported or bridged message, counts as a guest."""
    return Source("agent" if kind == "agent" else "service" if kind == "service" else "guest", id)


def sources_of_events(events: Iterable[Event]) -> tuple[Source, ...]:
    """The sources of these events, each once, in their order."""
    return distinct(found for event in events if (found := source_of_event(event)) is not None)


def distinct(sources: Iterable[Source]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(sources))


def dump(sources: Iterable[Source] | None) -> str | None:
    """The sources as JSON for storage; None: no text from outside."""
    return None if sources is None else json.dumps([{each.kind: each.name} for each in sources], ensure_ascii=False)


def load(stored: str | None) -> tuple[Source, ...] | None:
    """The stored sources; one whose kind was removed by forgetting counts as a service."""
    if stored is None:
        return None
    found = cast("list[dict[str, str]]", json.loads(stored))
    return tuple(
        Source(cast("SourceKind", kind) if kind in _KINDS else "service", name)
        for each in found
        for kind, name in each.items()
    )


def checked(stored: str | None) -> None:
    """Raises `ValueError` unless this can be loaded."""
    found = cast("list[dict[str, object]]", [] if stored is None else json.loads(stored))
    for each in found:
        for kind, name in each.items():
            if kind not in _KINDS or not isinstance(name, str):
                raise ValueError(f"{kind!r} is not a kind of source")


def _named(event: Event, key: str) -> str:
    value = event.payload.get(key)
    return value if isinstance(value, str) else ""
