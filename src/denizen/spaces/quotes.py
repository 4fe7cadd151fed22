"""Finds quotations of one text in another, whatever their punctuation, spelling or spacing. Pure.

Words are compared as `denizen.folding` has them: without case, punctuation, markup, invisible characters and accents,
and with look-alike letters unified. In scripts that put no space between words, each letter is a word. Letters with a
space between each two are one word; and a quotation is also found by its letters alone, wherever the spaces stand.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from denizen.folding import fold_word, hidden_letters, seen, seen_with_places, visible, without_hidden_letters

QUOTED_WORDS: Final = 8
"""This many words in a row are a quotation: hardly anybody writes the same ones by chance."""
FORGOTTEN: Final = "[forgotten]"

# Han, Kana, and the scripts of South-East Asia.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
)
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+(?:['’][^\\W_{_UNSPACED}]+)*")

_PLAIN_WORD = re.compile("[a-z0-9]+(?:'[a-z0-9]+)*")
"""The same for small Latin letters, several times as fast."""
_SPACED_LETTERS = re.compile(r"(?<![^\W_])[^\W_](?:[\W_]{1,2}[^\W_]){2}(?![^\W_])")
"""At least three words of one letter in a row."""
_SPACED_AT_LEAST: Final = 3
_SPACE_BETWEEN: Final = 2
"""How many characters may stand between letters that are one word."""
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")

Gram = tuple[str, ...]
"""Words in a row, in the compared form."""


class Word(NamedTuple):
    """A word and its position."""

    said: str
    """The compared form."""
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words of `text`, in order."""
    if text.isascii() and seen(text) == text:
        return _found_in(text)
    plain, places = seen_with_places(text)
    return [Word(word.said, places[word.start], places[word.end - 1] + 1) for word in _found_in(plain)]


def _found_in(plain: str) -> list[Word]:
    """The words of a text that was `seen`, or of one in plain letters."""
    found = [Word(_folded(match[0]), match.start(), match.end()) for match in _WORD.finditer(plain)]
    return _joined(found) if _SPACED_LETTERS.search(plain) else found


def _folded(word: str) -> str:
    return fold_word(word.replace("’", "'"))


def _joined(found: Sequence[Word]) -> list[Word]:
    """The same words, but with three or more single letters in a row joined into one word."""
    joined: list[Word] = []
    at = 0
    while at < len(found):
        end = at + 1
        while end < len(found) and _is_letter(found[end - 1]) and _follows(found[end - 1], found[end]):
            end += 1
        if end - at >= _SPACED_AT_LEAST:
            said = "".join(word.said for word in found[at:end])
            joined.append(Word(said, found[at].start, found[end - 1].end))
        else:
            joined += found[at:end]
        at = end
    return joined


def _follows(before: Word, word: Word) -> bool:
    return _is_letter(word) and word.start - before.end <= _SPACE_BETWEEN


def _is_letter(word: Word) -> bool:
    return word.end - word.start == 1 and not _UNSPACED_LETTER.match(word.said)


def said(text: str) -> list[str]:
    """The words of `text` in the compared form."""
    plain = seen(text)
    if _SPACED_LETTERS.search(plain):
        return [word.said for word in words(text)]
    if plain.isascii():
        return _PLAIN_WORD.findall(plain.lower())
    return [_folded(word) for word in _WORD.findall(plain)]


def spelled(text: str) -> list[str]:
    """The words of `text` without case, punctuation and invisible characters: as an index or a hash has them.

    This form is stored as hashes, so it must not change.
    """
    plain = visible(text)
    if plain.isascii():
        return _PLAIN_WORD.findall(plain.lower())
    return [unicodedata.normalize("NFKC", word).casefold().replace("’", "'") for word in _WORD.findall(plain)]


def grams(said: Sequence[str], length: int) -> Iterator[Gram]:
    """Every run of `length` words."""
    for at in range(len(said) - length + 1):
        yield tuple(said[at : at + length])


LETTERS: Final = 16
"""A run of words with fewer letters is found by its words only."""
MANY_LETTERS: Final = 24
"""A text of fewer than eight words that has this many letters is found by them as well."""


MOST_SEARCHES: Final = 1_000
"""How often the letters of a text are searched through for a run of others whose parts all occur in it."""


class Lettered:
    """Texts in which quotations are searched by their letters alone, wherever the spaces stand."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        self._texts = list(dict.fromkeys("".join(each) for each in texts))
        self._searches = 0
        self._begins: set[str] = set()
        for letters in self._texts:
            self._begins.update(letters[at : at + LETTERS] for at in range(len(letters) - LETTERS + 1))

    def candidates(self, letters: str, starts: Sequence[int]) -> list[int]:
        """The positions in a text that begin with letters that occur in one of the texts: indices into `starts`."""
        begins = self._begins
        return [at for at, start in enumerate(starts) if letters[start : start + LETTERS] in begins]

    def holds(self, letters: str) -> bool:
        """Whether one of the texts has these letters in a row, at least `LETTERS` of them.

        In a text that repeats itself so much that most searches are in vain, its parts decide after some time: else
        the work could grow with the square of its length.
        """
        last = len(letters) - LETTERS
        if any(letters[at : at + LETTERS] not in self._begins for at in (*range(0, last, LETTERS), last)):
            return False
        self._searches += 1
        return self._searches > MOST_SEARCHES or any(letters in each for each in self._texts)


def quoted_grams(source: Sequence[str], length: int, wanted: set[Gram], written: Lettered) -> set[Gram]:
    """The runs of `length` words of the source that occur in one of the texts, wherever its spaces are.

    `wanted` are the runs of the texts, for those that have too few letters to be found by them.
    """
    found: set[Gram] = set()
    letters = "".join(source)
    starts = [0, *accumulate(map(len, source))]
    # What occurs in a text word for word occurs there by its letters as well.
    for at in written.candidates(letters, starts[: max(len(source) - length + 1, 0)]):
        start, end = starts[at], starts[at + length]
        if end - start >= LETTERS and written.holds(letters[start:end]):
            found.add(tuple(source[at : at + length]))
    for at in range(len(source) - length + 1):
        if starts[at + length] - starts[at] < LETTERS and (gram := tuple(source[at : at + length])) in wanted:
            found.add(gram)
    return found


class Quotes:
    """Texts to search for in others: a long one by any eight words in a row of it, a short one as a whole."""

    def __init__(self, *, least: int = 3) -> None:
        self._least = least
        """A text of fewer words is too short to search for."""
        self._grams: dict[Gram, tuple[set[str], set[str]]] = {}
        """For the long texts, each run with the words before and after it."""
        self._letters: dict[str, set[str]] = {}
        """The letters of each run of words, and of each text that has many letters, by the first of them."""
        self._short: dict[str, set[tuple[Gram, str]]] = {}
        """By their first word; with the exact spelling, where only that counts."""

    def __bool__(self) -> bool:
        return bool(self._grams or self._short or self._letters)

    def copy(self) -> Quotes:
        """A copy to which more texts can be added."""
        other = Quotes(least=self._least)
        other._grams = {gram: (set(before), set(after)) for gram, (before, after) in self._grams.items()}
        other._letters = {first: set(found) for first, found in self._letters.items()}
        other._short = {word: set(found) for word, found in self._short.items()}
        return other

    def add(self, text: str) -> None:
        """Search for quotations of this text."""
        found = said(text)
        if len(found) >= QUOTED_WORDS:
            self._add_long(found)
            return
        if len(found) >= self._least:
            self._short.setdefault(found[0], set()).add((tuple(found), ""))
        self._add_letters(found, least=MANY_LETTERS)

    def add_long(self, text: str) -> None:
        """Search for quotations of this text, unless it is short."""
        found = said(text)
        if len(found) >= QUOTED_WORDS:
            self._add_long(found)

    def add_name(self, name: str, *, exactly: bool = False) -> None:
        """Search for this name, however short it is; `exactly` as it is spelt, or in any case."""
        found = said(name)
        if found:
            self._short.setdefault(found[0], set()).add((tuple(found), name if exactly else ""))

    def _add_long(self, found: Sequence[str]) -> None:
        for at, gram in enumerate(grams(found, QUOTED_WORDS)):
            before, after = self._grams.setdefault(gram, (set(), set()))
            self._add_letters(gram, least=LETTERS)
            before.update(found[at - 1 : at] if at else ())
            after.update(found[at + QUOTED_WORDS : at + QUOTED_WORDS + 1])

    def _add_letters(self, found: Sequence[str], *, least: int) -> None:
        letters = "".join(found)
        if len(letters) >= least:
            self._letters.setdefault(letters[:LETTERS], set()).add(letters)

    def occur_in(self, text: str) -> bool:
        """Whether `text` contains any of the texts."""
        return next(self._spans(text), None) is not None or self._is_hidden_in(text)

    def _is_hidden_in(self, text: str) -> bool:
        hidden = hidden_letters(text)
        return hidden != "" and next(self._spans(hidden), None) is not None

    def redacted(self, text: str) -> str:
        """`text` with `[forgotten]` in place of each quotation; the very same text if there is none."""
        if self._is_hidden_in(text):
            text = without_hidden_letters(text)
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
        if self._letters:
            yield from self._spans_of_letters(found)

    def _spans_of_letters(self, found: Sequence[Word]) -> Iterator[tuple[int, int]]:
        letters = "".join(word.said for word in found)
        ends = list(accumulate(len(word.said) for word in found))
        for at in range(len(letters) - LETTERS + 1):
            for run in self._letters.get(letters[at : at + LETTERS], ()):
                if letters.startswith(run, at):
                    first, last = bisect_right(ends, at), bisect_left(ends, at + len(run))
                    yield found[first].start, found[last].end


def _with_cut_words(compared: Sequence[str], at: int, around: tuple[set[str], set[str]]) -> tuple[int, int]:
    """The start and end of a quotation, including the halves of words at which a long text was cut."""
    first, last = at, at + QUOTED_WORDS - 1
    before, after = around
    if first and any(word.endswith(compared[first - 1]) for word in before):
        first -= 1
    if last + 1 < len(compared) and any(word.startswith(compared[last + 1]) for word in after):
        last += 1
    return first, last


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans in order, with overlapping ones merged."""
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
