"""Which dates, names and numbers of the original a text that a model wrote leaves out: its receipt. Pure.

A model that summarizes leaves things out without saying so. What can be recognized by its form is appended by rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from denizen.consciousness.recall.terms import is_small_talk
from denizen.folding import fold
from denizen.inbox.format import one_line

MOST: Final = 12
"""How many things a receipt names at most."""
MOST_CHARACTERS: Final = 200
READ_CHARACTERS: Final = 4_000
"""How much of one text is read: a long tool result may have thousands of numbers."""
_LONGEST: Final = 40
"""A longer word is an id or an encoded value: nobody asks for it by heart."""

_MONTHS: Final = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)"
)
_DATE: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}\.\d{1,2}\.(?:\d{2,4}\b)?|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{1,2}:\d\d\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s(?:of\s)?{_MONTHS}\b(?:\s\d{{4}}\b)?"
    rf"|\b{_MONTHS}\s\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}}\b)?"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(
    r"(?<![\w.,:/-])[$€£]?\d[\d.,]*\d(?:\s?(?:[%€$£]|[kKMG]?[gmBW]\b))?(?![\w-])"
    r"|(?<![\w.,:/-])(?:[$€£]\d+|\d+\s?[%€$£])(?!\w)"
)
_LARGE: Final = r"[A-ZÄÖÜ][\w’-]+"
_NAME: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.\w+|(?<![.!?:;\"“„(\[|] )(?<![\"“„(\[{])(?<!^)"
    rf"\b(?:{_LARGE}(?: {_LARGE}){{0,3}}|\w*[a-z][A-Z]\w*)",
    re.MULTILINE,
)


def missing(original: Iterable[str], told: str) -> str:
    """What the texts of the original have and the told text has not, as one line; empty if nothing is missing.

    Dates come first, then names, then numbers, each in the order of the original.
    """
    texts = [text[:READ_CHARACTERS] for text in original]
    known = _plain(told)
    found: dict[str, str] = {}
    for each in _things(texts):
        plain = _plain(each)
        if plain and not _occurs(plain, known):
            found.setdefault(plain, each)
    return _listed(found.values())


def _things(texts: Iterable[str]) -> Iterator[str]:
    given = list(texts)
    for text in given:
        yield from (one_line(match[0]) for match in _DATE.finditer(text))
    # Parts of a date are neither names nor numbers of their own.
    rest = [_DATE.sub(" ", text) for text in given]
    for text in rest:
        yield from (match[0] for match in _NAME.finditer(text) if _is_name(match[0]))
    for text in rest:
        yield from (match[0].rstrip(".,") for match in _NUMBER.finditer(text))


def _is_name(word: str) -> bool:
    """Whether it may be one: words such as "The" and "OK" are written large as well."""
    return len(word) <= _LONGEST and not is_small_talk(word)


def _plain(text: str) -> str:
    return fold(one_line(text)).removesuffix("'s").removesuffix("’s").strip(".,")


def _occurs(plain: str, known: str) -> bool:
    return re.search(rf"(?<![^\W_]){re.escape(plain)}(?!\d)", known) is not None


def _listed(things: Iterable[str]) -> str:
    told = ""
    for count, each in enumerate(things):
        longer = f"{told}; {each}" if told else each
        if count == MOST or len(longer) > MOST_CHARACTERS:
            break
        told = longer
    return told
