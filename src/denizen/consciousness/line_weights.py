"""How much a line holds that is needed again: decisions, promises, facts, dates, numbers, names, what is pending.

Pure, and quick: a few patterns, no model. It reads English and German. A line in another language is still judged by
its dates, numbers and names.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_FLAGS: Final = re.IGNORECASE


def _words(patterns: str) -> re.Pattern[str]:
    """Finds any of these words and phrases, written with commas between."""
    return re.compile(rf"\b(?:{'|'.join(patterns.split(', '))})\b", _FLAGS)


_KINDS: Final = (
    (
        30,
        _words(
            r"deci(?:ded?|sions?), agreed, chose[n]?, settled on, approved?, rejected, confirmed, cancel(?:led|ed), "
            r"switch(?:ed)? to, instead of, rather than, no longer, from now on, never, always, rule, entschieden, "
            r"entscheidung, beschlossen, vereinbart, genehmigt, abgelehnt, bestätigt, abgesagt, stattdessen, ab jetzt, "
            r"ab sofort, nie, immer, regel"
        ),
    ),  # decisions
    (
        20,
        _words(
            r"promised?, will, must, deadline, due, until, owes?, remind(?:ed|er)?, booked, ordered, signed, paid, "
            r"launch(?:ed|es)?, deploy(?:ed|s)?, released?, versprochen, zugesagt, muss, frist, fällig, bis, gebucht, "
            r"bestellt, unterschrieben, bezahlt"
        ),
    ),  # promises and obligations
    (
        15,
        _words(
            r"prefers?, likes?, hates?, allergic, birthday, lives? in, moved to, works? (?:at|for|as), password, "
            r"address, account, called, named, is the, are the, costs?, budget, price, mag, hasst, allergisch, "
            r"geburtstag, wohnt, arbeitet, heißt, adresse, kostet, preis"
        ),
    ),  # facts about people and things
    (
        15,
        re.compile(
            r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}\b|\b\d{1,2}:\d\d\b|\b\d{1,2}(?:st|nd|rd|th)\b"
            r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b"
            r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
            r"|\b(?:januar|februar|märz|mai|juni|juli|oktober|dezember)\b|\btomorrow\b|\bmorgen\b|\bQ[1-4]\b",
            _FLAGS,
        ),
    ),  # dates
    (
        10,
        re.compile(r"https?://|\b[\w.+-]+@[\w-]+\.\w+|\b\w+[_/]\w[\w./-]*\b|[\"“„][^\"”“]{2,}[\"”“]"),
    ),  # literal things
)
_PENDING: Final = _words(r"pending, waiting for, waits? for, still open, open question, offen, wartet auf")
_NOTHING_PENDING: Final = _words(
    r"nothing (?:is |else is |else )?(?:pending|open), nichts (?:ist |mehr )?offen, no(?:thing)? open questions?"
)
_CONTRAST: Final = re.compile(r"(?:,|;| –| -) ?(?:not|but not|nicht)\b", _FLAGS)
_NUMBER: Final = re.compile(r"(?<![\w-])[$€£]?\d[\d.,]*(?:\s?[%€$£]|\s?[kKMG]?[gmB]\b)?")
_NAME: Final = re.compile(r"(?<![.!?:;\"“(\[] )(?<!^)\b(?:[A-ZÄÖÜ][\w’'-]+|\w*[a-z][A-Z]\w*|[A-Z]{2,}\w*)")
_WORD: Final = re.compile(r"\w+")
_MOST_NUMBERS: Final = 3
_MOST_NAMES: Final = 4


def line_weight(text: str, known: Collection[str] = ()) -> int:
    """How much the text holds, about 0 to 150. Names in `known`, which every line has, do not count."""
    found = sum(points for points, pattern in _KINDS if pattern.search(text))
    if _PENDING.search(text) and not _NOTHING_PENDING.search(text):
        found += 15
    if _CONTRAST.search(text):
        found += 20
    familiar = {word.casefold() for name in known for word in _WORD.findall(name)}
    names = {name for name in _NAME.findall(text) if name.casefold() not in familiar}
    numbers = set(_NUMBER.findall(text))
    return found + 6 * min(len(numbers), _MOST_NUMBERS) + 6 * min(len(names), _MOST_NAMES)
