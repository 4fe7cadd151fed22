"""One line for one cycle: its last words or, if the model wrote none, what it did. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from denizen.inbox.format import one_line, quoted_name

_UNWRITTEN = "(No summary was written.)"
_MOST_SENTENCES = 8

# The words for one call and for several calls of our own tools; other tools keep their names.
_DEEDS = {
    "send_message": ("Sent a message", "Sent {count} messages"),
    "set_timer": ("Set a timer", "Set {count} timers"),
    "set_plans": ("Changed its plans", "Changed its plans {count} times"),
    "set_goals": ("Changed its goals", "Changed its goals {count} times"),
    "set_memories": ("Changed its notes", "Changed its notes {count} times"),
}


@dataclass(frozen=True, slots=True)
class Effect:
    """A tool call that a cycle made."""

    tool: str
    arguments: Mapping[str, JsonValue]
    """The arguments. For a message, `space_name`, `space` or `space_id` (the first there is) says where it went."""
    ok: bool
    """Whether the call succeeded."""


def derived_summary(effects: Sequence[Effect]) -> str:
    """A summary of `effects`, in the order of their first occurrence, with what failed; always one line."""
    counted = Counter((effect.ok, effect.tool, _target(effect)) for effect in effects)
    sentences = [_sentence(ok, tool, target, count) for (ok, tool, target), count in counted.items()]
    if len(sentences) > _MOST_SENTENCES:
        left = len(sentences) - _MOST_SENTENCES + 1
        sentences[_MOST_SENTENCES - 1 :] = [f"And {left} other things."]
    return " ".join([*(sentences or ["Did nothing."]), _UNWRITTEN])


def is_derived(summary: str) -> bool:
    """Whether the summary was derived because the model wrote none."""
    return summary.endswith(_UNWRITTEN)


def exchange_summary(heard: Sequence[tuple[str, str]], sent: Sequence[str]) -> str:
    """One line for a cycle in which messages were answered: the beginnings of each message and of the answers."""
    asked = [f"{who} wrote: {_beginning(text)}" for who, text in heard[:3]]
    answered = [f"Answered: {_beginning(text)}" for text in sent[-2:]]
    return last_words(" ".join([*asked, *answered]))


def _beginning(text: str, characters: int = 120) -> str:
    line = one_line(text)
    return quoted_name(line) if len(line) <= characters else f"{quoted_name(line[: characters - 1])}…"


def last_words(text: str, limit: int = 500) -> str:
    """The model's final text on one line of at most `limit` characters."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _target(effect: Effect) -> str:
    """The space a message went to, if given."""
    if effect.tool != "send_message":
        return ""
    named = (effect.arguments.get(key) for key in ("space_name", "space", "space_id"))
    return next((name for name in named if isinstance(name, str) and name), "")


def _sentence(ok: bool, tool: str, target: str, count: int) -> str:
    to = f" to {quoted_name(target)}" if target else ""
    if not ok:
        return f"Failed at {quoted_name(tool)}{to}{_times(count)}."
    if tool not in _DEEDS:
        return f"Called {quoted_name(tool)}{_times(count)}."
    once, several = _DEEDS[tool]
    return f"{once if count == 1 else several.format(count=count)}{to}."


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"
