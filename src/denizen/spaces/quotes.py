"""Which words of one text stand in another: quotations, however they are punctuated. Pure.

Words are compared without case, punctuation and markup. In scripts that put no space between words, each letter is one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

QUOTED_WORDS: Final = 8
"""So many words in a row are a quotation: hardly anybody finds the same ones by chance."""
FORGOTTEN: Final = "[forgotten]"

# Han, Kana, and the scripts of South-East Asia.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
)
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+(?:['’][^\\W_{_UNSPACED}]+)*")

_PLAIN_WORD = re.compile("[a-z0-9]+(?:'[a-z0-9]+)*")
"""The same for what is written in small Latin letters, several times as fast."""
_BETWEEN_LETTERS = re.compile(f"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])")

Gram = tuple[str, ...]
"""Words in a row, as they are compared."""


class Word(NamedTuple):
    """A word and where it stands."""

    said: str
    """As it is compared."""
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words of `text`, in order."""
    return [Word(_folded(match[0]), match.start(), match.end()) for match in _WORD.finditer(text)]


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold().replace("’", "'")


def said(text: str) -> list[str]:
    """The words of `text` as they are compared."""
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    return [_folded(word) for word in _WORD.findall(text)]


def grams(said: Sequence[str], length: int) -> Iterator[Gram]:
    """Every run of so many words."""
    for at in range(len(said) - length + 1):
        yield tuple(said[at : at + length])


def spelt(gram: Gram) -> str:
    """The words as a text again: with no space between letters that are written without."""
    return _BETWEEN_LETTERS.sub("", " ".join(gram))


class Quotes:
    """Texts that are looked for in others: a long one by any eight words in a row of it, a short one as a whole."""

    def __init__(self, *, least: int = 3) -> None:
        self._least = least
        """A text of fewer words says nothing by itself."""
        self._grams: dict[Gram, tuple[set[str], set[str]]] = {}
        """Of the long texts, each with the words that come before it and after it."""
        self._short: dict[str, set[tuple[Gram, str]]] = {}
        """By their first word; with the exact spelling, where only that counts."""

    def __bool__(self) -> bool:
        return bool(self._grams or self._short)

    def copy(self) -> Quotes:
        """The same texts, to which more can be added."""
        other = Quotes(least=self._least)
        other._grams = {gram: (set(before), set(after)) for gram, (before, after) in self._grams.items()}
        other._short = {word: set(found) for word, found in self._short.items()}
        return other

    def add(self, text: str) -> None:
        """Look for what quotes this text."""
        found = said(text)
        if len(found) >= QUOTED_WORDS:
            self._add_long(found)
        elif len(found) >= self._least:
            self._short.setdefault(found[0], set()).add((tuple(found), ""))

    def add_long(self, text: str) -> None:
        """Look for what quotes this text, unless it is short."""
        found = said(text)
        if len(found) >= QUOTED_WORDS:
            self._add_long(found)

    def add_name(self, name: str, *, exactly: bool = False) -> None:
        """Look for this name, however short it is; `exactly` as it is spelt, or in any case."""
        found = said(name)
        if found:
            self._short.setdefault(found[0], set()).add((tuple(found), name if exactly else ""))

    def _add_long(self, found: Sequence[str]) -> None:
        for at, gram in enumerate(grams(found, QUOTED_WORDS)):
            before, after = self._grams.setdefault(gram, (set(), set()))
            before.update(found[at - 1 : at] if at else ())
            after.update(found[at + QUOTED_WORDS : at + QUOTED_WORDS + 1])

    def occur_in(self, text: str) -> bool:
        """Whether anything of what is looked for stands in `text`."""
        return next(self._spans(text), None) is not None

    def redacted(self, text: str) -> str:
        """`text` with `[forgotten]` in the place of each quotation; the very same text if there is none."""
        pieces: list[str] = []
        end = 0
        for start, stop in _merged(self._spans(text)):
            pieces += [text[end:start], FORGOTTEN]
            end = stop
        return "".join([*pieces, text[end:]]) if pieces else text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        found = words(text)
        compared = [word.said for word in found]
        for at, word in enumerate(found):
            for short, spelt in self._short.get(word.said, ()):
                last = at + len(short) - 1
                if tuple(compared[at : last + 1]) == short:
                    start, end = word.start, found[last].end
                    if not spelt or text[start:end] == spelt:
                        yield start, end
            known = self._grams.get(tuple(compared[at : at + QUOTED_WORDS])) if self._grams else None
            if known is not None:
                first, last = _with_cut_words(compared, at, known)
                yield found[first].start, found[last].end


def _with_cut_words(compared: Sequence[str], at: int, around: tuple[set[str], set[str]]) -> tuple[int, int]:
    """From where to where a quotation goes, with the halves of words at which a long text was cut."""
    first, last = at, at + QUOTED_WORDS - 1
    before, after = around
    if first and any(word.endswith(compared[first - 1]) for word in before):
        first -= 1
    if last + 1 < len(compared) and any(word.startswith(compared[last + 1]) for word in after):
        last += 1
    return first, last


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans in order, those that overlap made one."""
    start = end = -1
    for first, last in sorted(spans):
        if first > end:
            if start >= 0:
                yield start, end
            start, end = first, last
        else:
            end = max(end, last)
    if start >= 0:
        yield start, end
