"""What of its past an agent is shown in the next request. Pure: no clock, no storage, no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from denizen.consciousness.log import Entry
from denizen.consciousness.settings import WindowSettings
from denizen.ids import CycleId

SMALLEST_RESULT_CHARACTERS: Final = 400


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens a request may have."""

    request: int
    """All of it: the self, the tools, the past and the present."""
    output: int
    """What the model may answer."""
    inbox: int
    """What one inbox message may have."""


def budget(settings: WindowSettings, context_tokens: int | None) -> Budget:
    """The least of what the owner allows and what the model takes, with room for its answer."""
    context = context_tokens or settings.max_tokens + settings.output_tokens
    output = min(settings.output_tokens, context // 4)
    request = min(settings.max_tokens, context - output)
    return Budget(request, output, int(request * settings.inbox_share))


def sizes_by_cycle(entries: Sequence[Entry]) -> list[tuple[CycleId, int]]:
    """The cycles of the window in order, each with its tokens."""
    return [
        (cycle_id, sum(each.tokens for each in group))
        for cycle_id, group in groupby(entries, key=lambda each: each.cycle_id)
    ]


def first_that_fits(entries: Sequence[Entry], tokens: int) -> int:
    """The index of the first entry to keep so that the rest, in whole cycles, has at most `tokens`.

    Cycles are never parted, so no tool call is parted from its result. May keep nothing.
    """
    kept, spent = len(entries), 0
    for cycle_id, size in reversed(sizes_by_cycle(entries)):
        if spent + size > tokens:
            break
        spent += size
        while kept > 0 and entries[kept - 1].cycle_id == cycle_id:
            kept -= 1
    return kept


def result_characters(*, limit: int, room_tokens: int, results: int) -> int:
    """How many characters each of this many tool results may have, so that together they fit the room there is."""
    return max(min(limit, room_tokens * 4 // max(results, 1)), SMALLEST_RESULT_CHARACTERS)
