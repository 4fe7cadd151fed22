"""Signals of how people feel over several turns: frustration, confusion, disengagement, repeated errors. Pure.

Each kind of turn has its own counter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from denizen.reflection.settings import SentimentSettings, Signal

if TYPE_CHECKING:
    from denizen.reflection.sentiment import Sentiment

STRONG_FRUSTRATION: Final = 0.6
STRONG_SATISFACTION: Final = 0.5
MANY_NEGATIVE_WORDS: Final = 2
NEUTRAL_TURNS: Final = 4
SHORT_CHARACTERS: Final = 50
ERRORS: Final = 2
ENTRIES: Final = 10
"""How many of the last tool results are checked for errors."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one person in one conversation: numbers only."""

    turns: int = 0
    frustration: int = 0
    """Consecutive negative turns, up to the last."""
    confusion: int = 0
    satisfaction: int = 0
    neutral: int = 0
    scores: tuple[float, ...] = ()
    """The scores of the last turns, newest last."""
    lengths: tuple[int, ...] = ()
    """The lengths of these turns in characters."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, stored: str) -> Counters:
        found: dict[str, Any] = json.loads(stored)
        scores, lengths = found.pop("scores"), found.pop("lengths")
        return cls(**found, scores=tuple(scores), lengths=tuple(lengths))


@dataclass(frozen=True, slots=True)
class DetectedSignal:
    """A signal, and the rule that detected it."""

    name: Signal
    rule: str


def count(before: Counters, reading: Sentiment, characters: int, settings: SentimentSettings) -> Counters:
    """Returns the counters after one more turn. A turn is negative, positive or neither; and confused or not."""
    negative, positive = reading.score < settings.frustration_threshold, reading.score > settings.satisfaction_threshold
    confused = is_confused(reading, settings)
    neutral = not (negative or positive or confused)
    kept = settings.history_window
    return Counters(
        turns=before.turns + 1,
        frustration=before.frustration + 1 if negative else 0,
        confusion=before.confusion + 1 if confused else 0,
        satisfaction=before.satisfaction + 1 if positive else 0,
        neutral=before.neutral + 1 if neutral else 0,
        scores=(*before.scores, round(reading.score, 4))[-kept:],
        lengths=(*before.lengths, characters)[-kept:],
    )


def is_confused(reading: Sentiment, settings: SentimentSettings) -> bool:
    """Whether the person says so, or uses many negative words with a neutral score."""
    neutral = settings.frustration_threshold <= reading.score <= settings.satisfaction_threshold
    return bool(reading.confusion) or (neutral and reading.negative_words >= MANY_NEGATIVE_WORDS)


def detect(after: Counters, reading: Sentiment, settings: SentimentSettings) -> Iterator[DetectedSignal]:
    """Yields the signals of a person's turn after it was counted."""
    score, enough = reading.score, settings.consecutive_turns_for_trigger
    if score < settings.frustration_threshold and reading.intensity > STRONG_FRUSTRATION:
        yield DetectedSignal("user_frustrated", f"score {score:.2f}, strongly")
    elif after.frustration >= enough:
        yield DetectedSignal("user_frustrated", f"{after.frustration} negative turns in a row")
    if reading.confusion:
        yield DetectedSignal("user_confused", f"says {', '.join(reading.confusion)}")
    elif is_confused(reading, settings):
        yield DetectedSignal("user_confused", f"{reading.negative_words} negative words, and neutral")
    if score > settings.satisfaction_threshold and reading.intensity > STRONG_SATISFACTION:
        yield DetectedSignal("user_satisfied", f"score {score:.2f}, strongly")
    elif after.satisfaction >= enough:
        yield DetectedSignal("user_satisfied", f"{after.satisfaction} positive turns in a row")
    if (short := is_disengaged(after)) is not None:
        yield DetectedSignal(
            "low_engagement", f"{after.neutral} neutral turns in a row, {short:.0f} characters on average"
        )


def is_disengaged(counters: Counters) -> float | None:
    """Returns the average length of the answers if four or more neutral ones in a row are short."""
    if counters.neutral < NEUTRAL_TURNS:
        return None
    recent = counters.lengths[-counters.neutral :]
    average = sum(recent) / len(recent)
    return average if average < SHORT_CHARACTERS else None


def errors_exceed(failed: list[bool], in_this_cycle: int) -> DetectedSignal | None:
    """Detects too many errors among the last results, newest first, at least one of them from this cycle.

    So an old pair of errors is a signal once, not after every cycle until ten results have pushed it out.
    """
    looked_at = failed[:ENTRIES]
    if sum(looked_at) >= ERRORS and any(looked_at[:in_this_cycle]):
        return DetectedSignal(
            "error_threshold_exceeded", f"{sum(looked_at)} errors in the last {len(looked_at)} results"
        )
    return None
