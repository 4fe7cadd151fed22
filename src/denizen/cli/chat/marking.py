"""Reactions and pins in `denizen chat`: the line that shows them, and which message a command means. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from denizen.cli.chat.rendering import printable
from denizen.client import Message
from denizen.errors import InvalidInput

LOOKED_AT: Final = 100
"""How many messages are looked through for the one that a command means."""
_SHOWN: Final = 60


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
    text = " ".join(printable(message.plain or message.text).split())
    return f'"{text[:_SHOWN]}{"…" if len(text) > _SHOWN else ""}"'
