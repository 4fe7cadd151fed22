"""Which messages of a conversation are summarized next. Pure.

The summary covers the messages up to a cursor, and the messages after it are shown as they are: every message is in one
of the two, whatever the settings and whatever fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from denizen.memory.settings import CompactionProfile

T = TypeVar("T")


def wanted(profile: CompactionProfile) -> int:
    """How many messages after the cursor are needed to decide what to summarize."""
    return profile.tail_turns + max(profile.min_turns, profile.max_turns)


def head(unsummed: Sequence[T], profile: CompactionProfile, failures: int = 0) -> Sequence[T]:
    """Returns the messages after the cursor to summarize next, in order; none if they are too few.

    The newest `tail_turns` are never included. The cursor moves to the last one returned. Their number is halved after
    each failure: a model may manage in parts what it cannot take at once.
    """
    beyond = len(unsummed) - profile.tail_turns
    most = max(profile.max_turns >> failures, 1)
    return unsummed[: min(beyond, most)] if beyond >= profile.min_turns else unsummed[:0]


def due_at(upto: int, profile: CompactionProfile) -> int:
    """The number of the message at which a pass becomes due, if all messages count."""
    return upto + profile.tail_turns + profile.min_turns
