"""What a panel needs of memory. Pure: an advisor's long conversation with a person, without the other advisors.

An advisor remembers what people said and its own replies, nothing else: the summary of a panel is each advisor's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from denizen.memory import reminding
from denizen.memory.items import Remembered
from denizen.memory.rolling import Rolled, seen_by
from denizen.spaces.posting import Message


@dataclass(frozen=True, slots=True)
class Windowed:
    """What an advisor is shown of a long conversation."""

    summary: str
    """What stands for the older messages; empty: there are none."""
    messages: tuple[Message, ...]
    """Those that are shown as they are."""


def windowed(said: Sequence[Message], advisor_id: str, state: Rolled | None) -> Windowed:
    """The conversation of one advisor: its summary up to a message, and all after it. Each is in one of the two."""
    theirs = seen_by(said, advisor_id)
    if state is None or not state.upto or state.reader_id != advisor_id:
        return Windowed("", tuple(theirs))
    return Windowed(state.summary, tuple(each for each in theirs if each.seq > state.upto))


def reminded(found: Sequence[Remembered], characters: int = 2_800) -> str:
    """What long-term memory says to an advisor's next turn, as text; empty: nothing."""
    chosen = reminding.fitting(found, characters)
    return f"{reminding.HEADER}\n\n{reminding.render(chosen)}" if chosen else ""
