"""Chooses the preset for a turn of a conversation, and says why. Pure: the same for an agent's cycle and a panel's
round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from denizen.profiles.presets import Presets, Rule


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """A preset, and why it was chosen. Without an id: no preset."""

    preset: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class CachedChoice:
    """The choice in force in a conversation."""

    choice: PresetChoice
    turns: int
    """Turns of the conversation so far."""
    reviewed: int
    """The number of the turn of the last choice; turns are counted from 1."""
    asked: bool = False
    """Whether the conversation was compacted since."""


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The choice for a turn."""

    choice: PresetChoice
    turn: int
    """The number of this turn."""
    reviewed: int
    """The number of the turn in which it was chosen."""

    @property
    def is_new(self) -> bool:
        """Whether the choice was made in this turn, even if it is the same."""
        return self.turn == self.reviewed


def choose(presets: Presets, mode: str, message: str, cached: CachedChoice | None) -> ProfileChoice:
    """Returns the choice for the next turn: the cached one, unless a new one is due."""
    turn = 1 if cached is None else cached.turns + 1
    why = why_review(presets, cached)
    if why is None and cached is not None:
        return ProfileChoice(cached.choice, turn, cached.reviewed)
    found = route(presets, mode, message)
    return ProfileChoice(PresetChoice(found.preset, f"{found.reason} ({why})"), turn, turn)


def why_review(presets: Presets, cached: CachedChoice | None) -> str | None:
    """Returns why a new choice is due; None if the cached one stays."""
    if cached is None or cached.reviewed == 0:
        return "first turn"
    if cached.choice.preset is not None and cached.choice.preset not in presets.presets:
        return "the preset is no more"
    if cached.asked and presets.review_on_compaction:
        return "compacted"
    if presets.review_every and cached.turns + 1 - cached.reviewed >= presets.review_every:
        return f"every {presets.review_every} turns"
    return None


def route(presets: Presets, mode: str, message: str) -> PresetChoice:
    """Applies the rules to this message; if none applies, takes the default of the mode."""
    for rule in presets.rules:
        if applies(rule, mode, message):
            return PresetChoice(rule.preset, f"rule {rule.id!r}{_because(rule, message)}")
    return default(presets, mode)


def applies(rule: Rule, mode: str, message: str) -> bool:
    """Whether all conditions of the rule hold."""
    if len(message) < rule.least or (rule.most is not None and len(message) > rule.most):
        return False
    if rule.modes and not any(each == mode or each in mode for each in rule.modes):
        return False
    if rule.any and not any(occurs(each, message) for each in rule.any):
        return False
    return all(occurs(each, message) for each in rule.all)


def occurs(keyword: str, message: str) -> bool:
    """Whether the word or phrase occurs as a whole: `plan` does not occur in `explanation`."""
    return _whole(keyword).search(message) is not None


@lru_cache(maxsize=4_096)
def _whole(keyword: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in keyword.split())
    # Only letters, digits and underscores can continue a word.
    before, after = (r"(?<!\w)" if re.match(r"\w", words) else "", r"(?!\w)" if re.search(r"\w\Z", words) else "")
    return re.compile(f"{before}{words}{after}", re.IGNORECASE)


def _because(rule: Rule, message: str) -> str:
    found = [each for each in (*rule.all, *rule.any) if occurs(each, message)]
    if found:
        return f": the message has {found[0]!r}"
    return f": the message has {len(message):,} characters" if rule.least or rule.most is not None else ""


def default(presets: Presets, mode: str) -> PresetChoice:
    """Returns the preset of exactly this mode, otherwise of the longest matching pattern, otherwise the general one."""
    by_mode = presets.by_mode
    if mode in by_mode:
        return PresetChoice(by_mode[mode], f"default of the mode {mode!r}")
    if (pattern := _longest(by_mode, mode)) is not None:
        return PresetChoice(by_mode[pattern], f"default of modes with {pattern!r}")
    if presets.default is not None:
        return PresetChoice(presets.default, "default")
    if "default" in by_mode:
        return PresetChoice(by_mode["default"], "default")
    return PresetChoice(None, "no rule applies, and there is no default")


def _longest(by_mode: Mapping[str, str], mode: str) -> str | None:
    return max((key for key in by_mode if key in mode), key=len, default=None)


def panel_text(presets: Presets, mode: str, message: str, cached: CachedChoice | None) -> tuple[ProfileChoice, str]:
    """Returns the choice for an advisor's next turn in a panel, and the instructions it adds; empty if none.

    Pass the choice as `cached` for the turn after, with its number of turns increased.
    """
    chosen = choose(presets, mode, message, cached)
    return chosen, "" if chosen.choice.preset is None else presets.text(chosen.choice.preset)
