"""The search terms of a text. Pure.

Words are folded (case, accents and other marks make no difference) and, if that leaves plain Latin letters, stemmed;
stop words are left out. A name in camelCase and a word with a hyphen are found as a whole and by their parts, an Arabic
word without its article. Scripts that put no space between words are cut into pairs of letters, so that they can be
searched at all.

Whoever changes the terms of a text raises `VERSION`: then the index is made again in the background (`settling`).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from string import ascii_letters
from typing import Final, Protocol, cast

VERSION: Final = 2
"""The version of the terms: what an older one has indexed is indexed again."""
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
_SMALL_TALK = frozenset(
    """
    ah aha alright awesome bye cheers cool done else exactly fine good goodbye got great ha haha hallo hello hey hi hm
    hmm huh indeed k kk know lol maybe mean mhm morning nah nice night nope oh ok okay one ooh oops perfect please
    really right say says said see sorry sure thank thanks thing think thx uh um understood well welcome wow
    yay yeah yep yes yup bitte danke gerne genau gut ja klar nein na super tschuss
    aber auch das der die es ist und war was wie wo ich
    du ciao grazie prego si va bene merci non oui d accord voila gracias hola vale bueno adios obrigado obrigada sim nao
    ola bedankt hoi nee tak nej ano хорошо да нет ок спасибо привет пока ладно شكرا نعم لا はい いいえ
    ありがとう おはよう こんにちは 谢谢 謝謝 好的 好 是 是的 你好 네 아니요 감사합니다 안녕하세요
    """.split()  # noqa: SIM905
)
"""Words that say nothing that could be looked for."""
WISHES: Final = ("alwai", "prefer", "immer", "bevorzug", "lieber", "toujour", "siempr", "prefiero", "sempr", "altijd")
"""Terms with which people say how they want things to be done from then on: "always use metric units"."""
_WISH = re.compile(
    # Of folded words: "Please always use …", "Verwende bitte immer …", "I'd prefer …"; not "as I always do".
    r"(?:^|[.!?;:,\n]\s*|\band )\W*(?:please |make sure (?:to|you) |you (?:should|must) )?always\b|"
    r"\balways\b.{0,60}\bwhen(?:ever)?\b|"
    r"(?:^|[.!?;:,\n]\s*)\W*(?:\w+ ){0,3}(?:immer|toujours|siempre|sempre|altijd)\b|"
    r"\bi(?:'d| would)?(?: \w+)? prefer\b|\b(?:bevorzuge|lieber|prefiero)\b|\bje (?:\w+ )?prefere\b"
)
_ASKING = re.compile(
    r"\bhow (?:many|much|long|often)\b|"
    r"\b(?:i|you|we) (?:say|said|mention(?:ed)?|tell|told|ask(?:ed)?|discuss(?:ed)?|talk(?:ed)? about|"
    r"recommend(?:ed)?|suggest(?:ed)?)\b"
)
"""Of folded words: what a question has, and the answer has not."""
_ANSWERED = re.compile(
    # Of folded words: "did you recommend", "what you told me", "my advice to Noor"; not "can you recommend".
    r"\b(?:(?:did|have|had) you|you (?:described|gave|listed|mentioned|offered|provided|said|told|wrote)|"
    r"(?:i|you) (?:advised|answered|explained|proposed|recommended|replied|suggested)|"
    r"did i (?:advise|answer|propose|recommend|reply|suggest)|"
    r"(?:my|your) (?:advice|answer|explanation|recommendation|reply|response|suggestion|tip)s?|"
    r"(?:hast|hattest) du|[md]ein(?:e|en|em|er)? (?:antwort|empfehlung|rat|tipp|vorschlag)|"
    r"as-tu|avez-vous|tu m'as|[mt]on conseil|[mt]a reponse|dijiste|recomendaste|sugeriste|has dicho|"
    r"hai (?:detto|consigliato|suggerito)|voce (?:disse|recomendou|sugeriu)|(?:heb|had) je|(?:je|mijn) advies)\b"
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
_HUMP = re.compile("[a-z][A-Z]")
# The same for plain letters, ten times as fast: each small letter as "a", each capital as "A".
_CASES = str.maketrans(ascii_letters, "a" * 26 + "A" * 26)
_LONGEST_NAME = 40
"""A longer word with capitals inside is data rather than a name."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_LONGEST_HYPHENATED = 20
"""What is longer is rather a name of a file or a phrase."""
_MARKS = re.compile("[\u0300-\u036f]")
# Letters that no decomposition makes plain; the vowel signs of Arabic and Hebrew, and the spellings of a letter there;
# hyphens and joiners that are not seen; the hyphen at which no line ends.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
    | dict.fromkeys(map(chr, (0xAD, 0x200C, 0x200D, *range(0x5B0, 0x5C8), 0x640, *range(0x64B, 0x653), 0x670)), "")
    | dict.fromkeys("\u0622\u0623\u0625\u0671", "\u0627")
    | {"\u0649": "\u064a", "\u0629": "\u0647", "\u2010": "-"}
)
_ARTICLE = re.compile(
    # "and", then "the" alone or after "by", "like", "so"; or "to the": if enough of a word is left.
    "^(?:\u0648?(?:\u0627\u0644|\u0628\u0627\u0644|\u0643\u0627\u0644|\u0641\u0627\u0644|\u0644\u0644)(?=.{3})|\u0648(?=.{4}))"
)
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


def fold(text: str) -> str:
    """`text` in small letters without accents and other marks: how words are compared."""
    if text.isascii():
        return text.lower()
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", plain).casefold().translate(_LETTERS)


def count_terms(text: str) -> dict[str, int]:
    """The terms of `text`, each with its count, in the order of their first occurrence."""
    folded = fold(text)
    words = folded.translate(_BETWEEN_WORDS).split() if folded.isascii() else _WORD.findall(folded)
    if _has_hump(text):
        words += _parts_of_names(text)
    if "-" in folded:
        words += _without_hyphens(folded)
    counts: dict[str, int] = {}
    for word, count in Counter(words).items():
        stem = _stems.get(word)
        if stem is not None:
            counts[stem] = counts.get(stem, 0) + count
        elif word not in _STOP_WORDS:
            for term in _new_terms(word):
                counts[term] = counts.get(term, 0) + count
    return counts


def older_terms(text: str) -> list[str]:
    """The terms that version 0 made of words that it did not fold, for indexes that still have them."""
    if text.isascii():
        return []
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    runs = [run for word in words if not word.isascii() for run in _RUN.finditer(word)]
    return list(dict.fromkeys(run[0][:TERM_CHARACTERS] for run in runs if not run[1]))


def is_small_talk(text: str) -> bool:
    """Whether `text` has no word that could be looked for: "ok, thanks", "what was it?"."""
    return all(word in _STOP_WORDS or word in _SMALL_TALK for word in _WORD.findall(fold(text)))


def asks_what_was_answered(text: str) -> bool:
    """Whether a question asks what the agent said itself: "What did you recommend?", or by itself "my advice"."""
    return _ANSWERED.search(fold(text)) is not None


def is_wish(text: str) -> bool:
    """Whether `text`, with a word of `WISHES`, says how somebody wants things to be done."""
    return _WISH.search(fold(text)) is not None


def asking_terms(question: str) -> frozenset[str]:
    """The terms with which a question only asks: "how many", "did I mention". None if it has no others."""
    folded = fold(question)
    terms = count_terms(folded).keys()
    others = count_terms(_ASKING.sub(" ", folded)).keys()
    return frozenset(terms - others if others else ())


def words_by_term(text: str) -> dict[str, str]:
    """The folded words of `text` that are one term each, by that term."""
    return {term_of(word): word for word in _WORD.findall(fold(text)) if word not in _STOP_WORDS}


def term_of(word: str) -> str:
    """The term of a folded word; not cached, for words that may not exist."""
    return (_stem(word) if word.isascii() else _ARTICLE.sub("", word, count=1))[:TERM_CHARACTERS]


def _has_hump(text: str) -> bool:
    return "aA" in text.translate(_CASES) if text.isascii() else _HUMP.search(text) is not None


def _parts_of_names(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if len(word) <= _LONGEST_NAME and _HUMP.search(word):
            yield from map(str.lower, _PART.findall(word))


def _without_hyphens(folded: str) -> Iterator[str]:
    # Splitting takes a third of the time that matching takes, and few words have a hyphen.
    for part in [part for part in folded.split() if "-" in part]:
        for word in _HYPHENATED.findall(part):
            if len(word) <= _LONGEST_HYPHENATED:
                yield word.replace("-", "")


def _new_terms(word: str) -> Iterator[str]:
    if not word.isascii():
        for run in _RUN.finditer(word):
            yield from _pairs(run[0]) if run[1] else (_ARTICLE.sub("", run[0], count=1)[:TERM_CHARACTERS],)
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
