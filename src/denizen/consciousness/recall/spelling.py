"""Other spellings of a word that occurs nowhere: one letter off, or the parts of a compound. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

FEWEST_LETTERS: Final = 5
"""A shorter word is too like others."""
MOST_LETTERS: Final = 20
_FEWEST_OF_A_PART: Final = 4
_LINKS: Final = ("", "s", "n", "en", "es")
"""What German puts between the parts of a compound."""
_ALPHABETS: Final = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρσςτυφχψω")


def one_letter_off(word: str) -> list[str]:
    """Every word with one letter less, more or different, or with two letters swapped; the first stays as it is."""
    alphabet = next((each for each in _ALPHABETS if word[:1] in each), "")
    if not alphabet or not word.isalpha() or not FEWEST_LETTERS <= len(word) <= MOST_LETTERS:
        return []
    found: dict[str, None] = {}
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        if after:
            found[before + after[1:]] = None
            found |= dict.fromkeys(before + letter + after[1:] for letter in alphabet)
        if len(after) > 1:
            found[before + after[1] + after[0] + after[2:]] = None
        found |= dict.fromkeys(before + letter + after for letter in alphabet)
    found.pop(word, None)
    return list(found)


def compounds(word: str) -> Iterator[tuple[str, str]]:
    """The ways to part a long word into two, without what links them."""
    if not word.isalpha() or len(word) > 3 * MOST_LETTERS:
        return
    for at in range(_FEWEST_OF_A_PART, len(word) - _FEWEST_OF_A_PART + 1):
        for link in _LINKS:
            if word[:at].endswith(link) and len(word[: at - len(link)]) >= _FEWEST_OF_A_PART:
                yield word[: at - len(link)], word[at:]
