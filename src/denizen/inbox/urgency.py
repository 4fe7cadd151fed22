"""Decides whether an event is urgent: its sender says so, or the agent has a rule for people, commands and words. Pure.

A command is distinguished from a sentence that only contains the word: "Please stop that" is one, "Where is the bus
stop?" is not. It stands at the beginning of a clause, perhaps after a few words such as *please* or a mention, or after
a request such as *can you*. The forms are those of English and German. A command that is not recognized waits for the
next cycle, with a preview.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, Field

COMMANDS: Final = (
    *("stop", "cancel", "abort", "hold on"),
    *("stopp", "halt", "abbrechen", "abbruch", "stoppen", "aufhören", "brich … ab", "hör … auf"),
)


class UrgentRule(BaseModel, frozen=True, extra="forbid"):
    """When an agent wants to be interrupted."""

    people: tuple[str, ...] = ()
    """Handles whose every message is urgent."""
    commands: tuple[str, ...] = Field(default=COMMANDS)
    """What makes a message urgent when someone it works for says it as a command: "Stop!" but not "the bus stop". `…`
    stands for words in between."""
    words: tuple[str, ...] = ()
    """Whole words or phrases that make a message urgent wherever they stand in it, said by someone it works for."""
    works_for: tuple[str, ...] = ()
    """Handles of the people it works for; empty means every person."""

    def is_for(self, *, handle: str, kind: str) -> bool:
        """Whether the agent works for this sender."""
        return kind == "human" and (not self.works_for or handle in self.works_for)

    def applies(self, *, handle: str, kind: str, plain: str) -> bool:
        """Whether a message by this sender, with this plain text, is urgent."""
        if handle in self.people:
            return True
        if not self.is_for(handle=handle, kind=kind):
            return False
        return any(_has(word, plain) for word in self.words if word.strip()) or _commands(self.commands, plain)


_STOPS: Final = frozenset(
    (
        *("stop", "/stop", "stop it", "stop that", "stop now", "stop writing", "stop talking", "abort", "cancel"),
        *("stopp", "halt", "abbrechen", "aufhören", "hör auf"),
    )
)
_AROUND: Final = re.compile(r"@\S+|[^\w\s/]|\b(?:please|bitte|ok|okay)\b")


def says_only_stop(plain: str) -> bool:
    """Whether a message says nothing but "stop": then what is being written is stopped, and nothing else is to do."""
    return len(plain) <= 100 and " ".join(_AROUND.sub(" ", plain.lower()).split()) in _STOPS


def _has(word: str, text: str) -> bool:
    if word.isascii() and text.isascii() and word.lower() not in text.lower():
        return False  # most texts, and a pattern takes fifty times as long to find this out
    return _whole(word).search(text) is not None


@lru_cache(maxsize=1024)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)


_CLAUSE: Final = re.compile(r"(?P<words>[^.!?;:,\n…—–]+)(?P<end>[.!?;:,\n…—–]*)")
_TOKEN: Final = re.compile(r"[@\w]+(?:['’-]\w+)*|\S")
_BEFORE: Final = (
    "please|pls|no|nope|ok|okay|oh|hey|wait|sorry|actually|just|now|and|but|so|then|well|yes|immediately|everyone|quick|"
    "again|bitte|nein|nee|warte|moment|ja|doch|also|und|aber|jetzt|sofort|mal|schnell|damit|alle"
)
"""Words that may precede a command in its clause."""
_ASKED: Final = (
    "(?:can|could|would|will) (?:you|u)|you (?:should|must|need to|have to|can|may)|(?:i|we) (?:want|need) you to|"
    "(?:i|we) would like you to|(?:i|we)['’]d like you to|let us|let['’]?s|i (?:said|say|told you to)|better"
)
"""Words that turn the command after them into a request."""
_ASKED_GERMAN: Final = (
    "bitte|(?:kannst|könntest|würdest|willst) du|(?:können|könnten|würden) sie|du (?:sollst|musst|kannst|solltest)"
)
"""Words that turn a command at the end of the clause into a request."""
_NOUNS: Final = (
    "signs?|buttons?|words?|lights?|motion|loss(?:es)?|bits?|codons?|culture|keys?|fees?|polic(?:y|ies)|orders?|"
    "is|are|was|were|has|means|at(?! once)|by|near|off|over"
)
"""Words after it that show that the word is not a command: "stop words", "stop by tomorrow"."""
_NEGATED: Final = re.compile(r"\b(?:nicht|nie|niemals|kein\w*)\b")
_ALONE: Final = frozenset(("halt",))
"""Commands that mean something else when words follow them: "Halt die Tür auf"."""


def _commands(commands: tuple[str, ...], text: str) -> bool:
    lower = text.lower()
    said = [each for each in commands if (first := each.lower().partition(" ")[0]) and first in lower]
    return bool(said) and any(
        _is_command(tuple(said), " ".join(_TOKEN.findall(clause["words"])), is_question="?" in clause["end"])
        for clause in _CLAUSE.finditer(lower)
    )


def _is_command(commands: tuple[str, ...], clause: str, *, is_question: bool) -> bool:
    forms = [_forms(command.lower()) for command in commands]
    return any(
        (not is_question and direct.match(clause) is not None)
        or asked.match(clause) is not None
        or (asked_german.match(clause) is not None and _NEGATED.search(clause) is None)
        for direct, asked, asked_german in forms
    )


@lru_cache(maxsize=1024)
def _forms(command: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """The patterns for the command itself, after a request, and at the end of a German request."""
    said = r"(?: \S+){0,6}? ".join(re.escape(part.strip()) for part in command.split("…"))
    before = rf"(?:(?:{_BEFORE}|@\S+) )*"
    rest = "$" if command in _ALONE else rf"(?: (?!(?:{_NOUNS})\b)|$)"
    return (
        re.compile(rf"{before}{said}{rest}"),
        re.compile(rf"{before}(?:{_ASKED}) {before}{said}{rest}"),
        re.compile(rf"{before}(?:{_ASKED_GERMAN}) (?:\S+ ){{0,8}}{said}$"),
    )


@lru_cache(maxsize=4096)
def rule_from(stored: str | None) -> UrgentRule:
    """The rule stored with an agent. Every post reads it, so equal rules are decoded once."""
    return UrgentRule.model_validate_json(stored) if stored else UrgentRule()
