"""Reactions and pins in `denizen chat`: what changed, in words, and which message a command means. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from denizen.cli.console import printable
from denizen.client import Message
from denizen.errors import InvalidInput
from denizen.shortening import short_line

LOOKED_AT: Final = 100
"""How many messages are looked through for the one that a command means."""
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Mark:
    """A reaction or the pin of a message, which was added or removed."""

    message: Message
    emoji: str | None
    """None: it is the pin."""
    by: str | None
    removed: bool


def marks_since(before: Message, now: Message) -> tuple[Mark, ...]:
    """Which marks the message got and lost in between. Of a deleted one, nothing is said."""
    if now.deleted_at is not None:
        return ()
    old, new = _reactions(before), _reactions(now)
    marks = [Mark(now, emoji, by, removed=(emoji, by) in old) for emoji, by in sorted(old ^ new)]
    if (before.pinned_at is None) != (now.pinned_at is None):
        marks.append(Mark(now, None, None, removed=now.pinned_at is None))
    return tuple(marks)


def _reactions(message: Message) -> set[tuple[str, str]]:
    return {(each.emoji, by) for each in message.reactions for by in each.by}


def in_words(mark: Mark, names: Mapping[str, str]) -> str:
    """What happened, in one line; `names` are those of the members, by id."""
    message = quoted(mark.message)
    if mark.emoji is None:
        return f"{'Unpinned' if mark.removed else 'Pinned'} {message}."
    who = names.get(mark.by or "", "Someone")
    return (
        f"{who} removed {mark.emoji} from {message}."
        if mark.removed
        else f"{who} reacted with {mark.emoji} to {message}."
    )


def message_meant(messages: Sequence[Message], words: str, *, not_by: str | None = None) -> Message:
    """The newest message with these words; without any, the newest one of somebody else than `not_by`."""
    there = [each for each in messages if each.deleted_at is None]
    if words:
        wanted = words.casefold()
        found = [each for each in there if wanted in each.text.casefold()]
    else:
        found = [each for each in there if each.author.id != not_by]
    if not found:
        missing = f"has the words {words!r}" if words else "is there to react to"
        raise InvalidInput(f"None of the last {LOOKED_AT} messages {missing}. Name words of the message that you mean.")
    return found[-1]


def has_reacted(message: Message, emoji: str, who: str) -> bool:
    return any(each.emoji == emoji and who in each.by for each in message.reactions)


def quoted(message: Message) -> str:
    """The beginning of a message, for a sentence about it."""
    return f'"{short_line(printable(message.plain or message.text), _SHOWN)}"'
