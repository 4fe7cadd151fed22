"""Normalizes text for comparison as a reader sees it: without invisible characters, with lookalikes unified. Pure.

Invisible characters, accents and other marks on letters, full-width, circled and mathematical letters, and letters of
other scripts that look like Latin ones make no difference. The result is for comparison only; it is never shown. Takes
time in proportion to the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

_ALSO_INVISIBLE: Final = re.compile(
    # The combining grapheme joiner, fillers of Hangul, inherent vowels of Khmer, variation selectors, and a range that
    # Unicode defines as invisible.
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_MARKS: Final = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
"""Accents, strokes and rings on any letter. The vowel signs of Indic, Arabic and Hebrew are not among them."""

_LOOK_LIKE: Final = {
    "a": "аαɑᴀ",
    "b": "вβʙьⲃ",
    "c": "сςᴄⲥ",
    "d": "ԁɗᴅ",
    "e": "еєεҽᴇ℮",
    "f": "ƒꞙ",
    "g": "ɡɢԍց",
    "h": "нһηʜհ",
    "i": "іιıɩɪӏ",
    "j": "јʝȷᴊ",
    "k": "кκᴋқ",
    "l": "ʟ",
    "m": "мμᴍ",
    "n": "νոɴп",
    "o": "оοσօᴏⲟ",
    "p": "рρᴘⲣ",
    "q": "ԛգ",
    "r": "гᴦʀ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υսᴜ",
    "v": "ѵᴠ",
    "w": "ԝωᴡա",
    "x": "хχⲭ",
    "y": "уүγʏ",
    "z": "ζᴢ",
}
_LETTERS: Final = str.maketrans({other: latin for latin, others in _LOOK_LIKE.items() for other in others})
"""After case folding: one table for small and capital letters, so that a whole text of another script compares in any
case.
"""
_AS_SEEN: Final = str.maketrans("ηΗνΝυΥμΜ", "nhvnuyum")
"""Greek letters whose small and capital forms look like different Latin letters; used if scripts are mixed."""
_LATIN: Final = re.compile("[A-Za-z]")
_GREEK: Final = re.compile("[\u0370-\u03ff]")
_CONTROLS: Final = {code: None for code in (*range(32), 127) if not chr(code).isspace()}


@lru_cache(maxsize=65_536)
def seen_character(character: str) -> str:
    """Returns what a reader sees of one character: nothing, or the letters that it is a form of."""
    if unicodedata.category(character) == "Cf" or _ALSO_INVISIBLE.match(character):
        return ""
    if unicodedata.category(character) == "Cc":
        return character if character.isspace() else ""
    return _MARKS.sub("", unicodedata.normalize("NFKD", character))


class _Seen(dict[int, str]):
    """For `str.translate`; filled as characters occur, with at most as many as Unicode has."""

    def __missing__(self, code: int) -> str:
        found = self[code] = seen_character(chr(code))
        return found


_SEEN: Final = _Seen()


class _Visible(dict[int, str]):
    """The same, for invisible characters only."""

    def __missing__(self, code: int) -> str:
        found = self[code] = chr(code) if seen_character(chr(code)) or _MARKS.match(chr(code)) else ""
        return found


_VISIBLE: Final = _Visible()


def visible(text: str) -> str:
    """Removes invisible characters; everything else stays as it is."""
    return text.translate(_CONTROLS if text.isascii() else _VISIBLE)


_HIDDEN: Final = re.compile("[\U000e0020-\U000e007e]")
"""ASCII characters as invisible tags: programs read them, people do not see them."""


def hidden_letters(text: str) -> str:
    """Returns the text that is written in invisible letters."""
    return "" if text.isascii() else "".join(chr(ord(tag) - 0xE0000) for tag in _HIDDEN.findall(text))


def without_hidden_letters(text: str) -> str:
    return _HIDDEN.sub("", text)


def seen(text: str) -> str:
    """Removes invisible characters and converts each letter to its plain form. Case and script stay."""
    return text.translate(_CONTROLS if text.isascii() else _SEEN)


def seen_with_places(text: str) -> tuple[str, list[int]]:
    """The same, with the position in `text` that each of its characters comes from."""
    found = [_SEEN[ord(character)] for character in text]
    return "".join(found), [place for place, letters in enumerate(found) for _ in letters]


def fold_word(word: str) -> str:
    """Folds a word of a text that went through `seen`."""
    if word.isascii():
        return word.lower()
    if _GREEK.search(word) and _LATIN.search(word):
        word = word.translate(_AS_SEEN)
    return word.casefold().translate(_LETTERS)


def fold(text: str) -> str:
    """Folds the text: texts that look alike become equal."""
    return fold_word(seen(text))
