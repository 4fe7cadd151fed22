"""What makes an event urgent: its sender says so, or the agent has a rule for who and which words. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field


class UrgentRule(BaseModel):
    """When an agent wants to be interrupted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    people: tuple[str, ...] = ()
    """Handles whose every message is urgent."""
    words: tuple[str, ...] = Field(default=("stop", "cancel"))
    """Whole words or phrases that make a message urgent when whoever the agent works for says them."""
    works_for: tuple[str, ...] = ()
    """Handles of the people it works for; empty means every person."""

    def applies(self, *, handle: str, kind: str, plain: str) -> bool:
        """Whether a message by this sender, with this plain text, is urgent."""
        if handle in self.people:
            return True
        if kind != "human" or (self.works_for and handle not in self.works_for):
            return False
        return any(_has(word, plain) for word in self.words if word.strip())


def _has(word: str, text: str) -> bool:
    if word.isascii() and text.isascii() and word.lower() not in text.lower():
        return False  # most texts, and a pattern takes fifty times as long to find that out
    return _whole(word).search(text) is not None


@lru_cache(maxsize=1024)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def rule_from(stored: str | None) -> UrgentRule:
    """The rule kept with an agent; every post reads it, so equal ones are decoded once."""
    return UrgentRule.model_validate_json(stored) if stored else UrgentRule()
