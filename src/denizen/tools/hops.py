"""How far a chain of agents answering each other has come. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.ids import SpaceId
from denizen.inbox.events import Event


def hop_of_send(events: Sequence[Event], space_id: SpaceId) -> int:
    """One more than the hop of the newest event from that space in this cycle; a human message has hop 0.

    Where none came from that space, one more than the highest hop in the cycle: a chain that wanders from space to
    space is still one chain.
    """
    from_there = [event for event in events if event.space_id == space_id]
    if from_there:
        return max(from_there, key=lambda event: event.number).hop + 1
    return max((event.hop for event in events), default=0) + 1


def hop_of_plan(events: Sequence[Event]) -> int:
    """The hop of the cycle that makes a plan: the highest among the events that woke it.

    What only lay in the inbox, past the budget of its chain, does not count: it mutes no plan made for a person.
    """
    return max((event.hop for event in events if event.wakes), default=0)
