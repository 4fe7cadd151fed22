"""The search terms of a text. Pure.

Words are folded and, if they are written in plain Latin letters, stemmed; stop words are left out. Scripts that put no
space between words are cut into pairs of letters, so that they can be searched at all.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, cast

TERM_CHARACTERS: Final = 64
"""A longer word is indexed by its beginning."""

_STOP_WORDS = frozenset(  # one string, because so many quotation marks would be unreadable
    """
    a about above after again against all am an and any are aren as at be because been before being below between both
    but by can could couldn d did didn do does doesn doing don down during each few for from further had hadn has hasn
    have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m me
    mightn more most mustn my myself needn no nor not now o of off on once only or other our ours ourselves out over
    own re s same shan she should shouldn so some such t than that the their theirs them themselves then there these
    they this those through to too under until up ve very was wasn we were weren what when where which while who whom
    why will with won would wouldn y you your yours yourself yourselves
    """.split()  # noqa: SIM905
)
_OWN_WORDS = frozenset(("i", "me", "my", "mine", "we", "our", "us"))
_LATIN_WORD = re.compile(r"[a-z]+")
# Blanks for everything that the patterns leave out: for plain letters, splitting is several times as fast as matching.
_BETWEEN_LATIN_WORDS = {code: " " for code in range(128) if not chr(code).isalpha()}
_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}
_MOST_OWN_WORDS = 3
_WORD = re.compile(r"[^\W_]+")
# Han, Kana, and the scripts of South-East Asia.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
)
_RUN = re.compile(f"([{_UNSPACED}]+)|[^{_UNSPACED}]+")
_KNOWN_WORDS = 50_000
"""How many stems are cached: an agent hardly uses more words repeatedly."""


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


class _Local(threading.local):
    """A stemmer is not safe to share between threads."""

    def __init__(self) -> None:
        import Stemmer  # pyright: ignore[reportMissingTypeStubs]

        # We cache stems ourselves; the library's cache would be redundant.
        self.stemmer = cast("_Stemmer", Stemmer.Stemmer("porter", 0))  # pyright: ignore[reportUnknownMemberType]


_stems: dict[str, str] = {}
_local: list[_Local] = []


def count_terms(text: str) -> dict[str, int]:
    """The terms of `text`, each with its count, in the order of their first occurrence."""
    if text.isascii():
        words = text.lower().translate(_BETWEEN_WORDS).split()
    else:
        words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    counts: dict[str, int] = {}
    for word, count in Counter(words).items():
        stem = _stems.get(word)
        if stem is not None:
            counts[stem] = counts.get(stem, 0) + count
        elif word not in _STOP_WORDS:
            for term in _new_terms(word):
                counts[term] = counts.get(term, 0) + count
    return counts


def _new_terms(word: str) -> Iterator[str]:
    if not word.isascii():
        for run in _RUN.finditer(word):
            yield from _pairs(run[0]) if run[1] else (run[0][:TERM_CHARACTERS],)
        return
    if len(_stems) >= _KNOWN_WORDS:
        _stems.clear()
    stem = _stems[word] = _stem(word)[:TERM_CHARACTERS]
    yield stem


def _stem(word: str) -> str:
    if not _local:
        _local.append(_Local())
    return _local[0].stemmer.stemWord(word)


def _pairs(run: str) -> Iterable[str]:
    return (run,) if len(run) == 1 else (run[at : at + 2] for at in range(len(run) - 1))


def own_words(text: str) -> int:
    """How often the speaker refers to themselves, up to three."""
    small = text.lower()
    words = small.translate(_BETWEEN_LATIN_WORDS).split() if small.isascii() else _LATIN_WORD.findall(small)
    return min(sum(map(_OWN_WORDS.__contains__, words)), _MOST_OWN_WORDS)
