"""Sets timers and takes notes for the demo model, with whatever tools of that name are offered. Pure.

The arguments are built from the tool's schema; a tool whose schema requires more is not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from denizen.models.demo.reading import DemoSpace

_REMINDER = re.compile(r"Remind @(?P<handle>\S+) in the space (?P<space>\S+): (?P<what>.*)", re.DOTALL)


def timer_text(handle: str, place: DemoSpace, what: str) -> str:
    """Returns the text of a timer, which `reminder_in` can parse."""
    return f"Remind @{handle} in the space {place.id}: {what}"


def reminder_in(text: str) -> tuple[str, str, str] | None:
    """Returns whom to remind, in which space, of what; None if `text` is not a reminder."""
    found = _REMINDER.search(text)
    return (found["handle"], found["space"], found["what"].strip()) if found else None


def timer_arguments(schema: Mapping[str, Any], seconds: int, text: str, space_id: str) -> dict[str, Any] | None:
    """Returns the arguments of a timer tool; None if its schema is not understood."""
    times: dict[str, Any] = dict.fromkeys(("seconds", "in_seconds", "delay_seconds", "after_seconds"), seconds)
    times["after"] = f"{seconds} seconds"
    texts = dict.fromkeys(("text", "instruction", "note", "message", "what", "reason"), text)
    known = {**times, **texts, "name": "Reminder", "space_id": space_id}
    # An optional name would make it a plan that replaces another.
    wanted = _properties(schema).keys() - ({"name"} - _required(schema))
    filled = {key: value for key, value in known.items() if key in wanted}
    complete = _required(schema) <= filled.keys() and filled.keys() & times.keys() and filled.keys() & texts.keys()
    return filled if complete else None


def memory_arguments(schema: Mapping[str, Any], facts: Sequence[str]) -> dict[str, Any] | None:
    """Returns the arguments of a tool that replaces all notes by a list of texts; None if its schema is not
    understood.
    """
    for key, described in _properties(schema).items():
        items: Any = cast("dict[str, Any]", described).get("items") if isinstance(described, dict) else None
        if items == {"type": "string"} and _required(schema) <= {key}:
            return {key: list(facts)}
    return None


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return schema.get("properties") or {}


def _required(schema: Mapping[str, Any]) -> set[str]:
    return set(schema.get("required") or ())
