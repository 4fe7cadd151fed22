"""The demo model's answers to reflection: by the first word in the question that it knows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pydantic_ai.messages import ModelMessage, UserPromptPart

from denizen.models.scripted import Call, call

ADJUST: Final = "adjust"
FEEL: Final = "feel"

_MOODS: Final = (
    ("frustrated", "empathetic"),
    ("confused", "patient"),
    ("satisfied", "encouraging"),
    ("failed", "analytical"),
    ("shortly", "curious"),
)
_GOOD: Final = ("thank", "great", "perfect", "love", "good")
_BAD: Final = ("hate", "terrible", "awful", "wrong", "broken", "bad")


def reflection(messages: list[ModelMessage], tools: Collection[str]) -> Call | None:
    """Answers a metaprompt, or the question how somebody feels; None if it is asked neither."""
    if set(tools) == {ADJUST}:
        asked = _asked(messages).partition("\n|")[0]
        mood = next((mood for word, mood in _MOODS if word in asked), None)
        reason = "The demo model only looks for words that it knows."
        return call(ADJUST, reason=reason) if mood is None else call(ADJUST, mood=mood, reason=reason)
    if set(tools) == {FEEL}:
        said = _asked(messages)
        score = 0.6 * (any(word in said for word in _GOOD) - any(word in said for word in _BAD))
        return call(FEEL, score=score, intensity=abs(score))
    return None


def _asked(messages: list[ModelMessage]) -> str:
    parts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return str(parts[-1].content).lower() if parts else ""
