"""Conditions on events, set by an owner, to decide without a model. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, Field

from denizen.inbox.events import Event, EventType, SenderKind
from denizen.inbox.format import entry_text

Word = Annotated[str, Field(min_length=1, max_length=200)]


class Condition(BaseModel, frozen=True, extra="forbid"):
    """All that is said here must be true of an event. What is not said does not matter; nothing said is always true."""

    types: tuple[EventType, ...] = ()
    """It is of one of these types."""
    senders: tuple[SenderKind, ...] = ()
    """It comes from one of these kinds: human, agent, service."""
    mentioned: bool | None = None
    """Whether it mentions the agent."""
    urgent: bool | None = None
    """Whether it is in the urgent lane."""
    words: tuple[Word, ...] = ()
    """Its text has one of these, as whole words, in capitals or not."""
    shorter_than: int | None = Field(default=None, ge=1)
    """Its text has fewer characters."""
    longer_than: int | None = Field(default=None, ge=0)
    """Its text has more characters."""
    spaces: tuple[Word, ...] = ()
    """It comes from a space of one of these names."""

    def holds_for(self, event: Event) -> bool:
        """Whether the whole condition is true of this event."""
        return self._fits_origin(event) and self._fits_text(event)

    def _fits_origin(self, event: Event) -> bool:
        return (
            (not self.types or event.type in self.types)
            and (not self.senders or _sender(event) in self.senders)
            and (self.mentioned is None or self.mentioned == (event.type == "mention"))
            and (self.urgent is None or self.urgent == (event.lane == "urgent"))
            and (not self.spaces or event.space_name in self.spaces)
        )

    def _fits_text(self, event: Event) -> bool:
        text = entry_text(event)
        return (
            (self.shorter_than is None or len(text) < self.shorter_than)
            and (self.longer_than is None or len(text) > self.longer_than)
            and (not self.words or any(_whole(word).search(text) for word in self.words))
        )


def holds(condition: Condition, events: Iterable[Event]) -> bool:
    """Whether the condition is true of each event that wakes; there must be at least one."""
    waking = [event for event in events if event.wakes]
    return bool(waking) and all(map(condition.holds_for, waking))


def _sender(event: Event) -> SenderKind | None:
    # A service trigger has no author: the sender is the service.
    return "service" if event.type == "service_trigger" else event.sender_kind


@lru_cache(maxsize=1024)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
