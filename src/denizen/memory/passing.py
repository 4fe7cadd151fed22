"""Which messages of a conversation are summed up next. Pure.

A conversation is told by its summary up to a cursor, and by its messages after it: every message is in one of the two,
whatever is set and whatever fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from denizen.memory.settings import CompactionProfile

T = TypeVar("T")


def wanted(profile: CompactionProfile) -> int:
    """How many messages after the cursor have to be looked at to know what is to be summed up."""
    return profile.tail_turns + max(profile.min_turns, profile.max_turns)


def head(unsummed: Sequence[T], profile: CompactionProfile, failures: int = 0) -> Sequence[T]:
    """Of the messages after the cursor, in order, those that are summed up next; none if they are too few.

    The newest `tail_turns` never are. The cursor moves to the last of these, and no further. After each failure they
    are half as many: what a model cannot take at once it may take in parts.
    """
    beyond = len(unsummed) - profile.tail_turns
    most = max(profile.max_turns >> failures, 1)
    return unsummed[: min(beyond, most)] if beyond >= profile.min_turns else unsummed[:0]


def due_at(upto: int, profile: CompactionProfile) -> int:
    """The number of the message with which a pass becomes due, where all messages count."""
    return upto + profile.tail_turns + profile.min_turns
