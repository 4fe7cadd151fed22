"""Sentiment of people's messages: by a lexicon, by a model, or by the operator's own classifier.

The lexicon is VADER's with words and phrases of our own. It knows English and German, and no irony. It is loaded when
it is first needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol, cast

from denizen.errors import InvalidInput
from denizen.inbox.format import one_line
from denizen.reflection import lexicon

LOOKED_AT: Final = 280
"""Characters that the lexicon reads: the beginning of a message and its end. It was made for short texts: in longer
ones its sums go to the extremes, and its time grows with the square of the length.
"""

_NOT: Final = (
    r"(?:don't|do not|dont|didn't|did not|can't|cannot|can not|couldn't|could not|doesn't|does not|not|am not|i'm not)"
)
_WHAT: Final = r"(?:what|how|why|where|which|when|who|whether|if)"
CONFUSION: Final = (
    rf"{_NOT}(?: really| quite| fully)? (?:understand|understanding|follow|following)",
    rf"{_NOT}(?: really| quite)? get (?:it|this|that|{_WHAT}|the (?:point|idea|logic|difference))",
    rf"{_NOT} (?:see|know|tell|figure out|find out) {_WHAT}",
    rf"not sure (?:i (?:understand|follow|get)|{_WHAT})",
    rf"no idea {_WHAT}",
    rf"{_WHAT} (?:am i|are we|is that|is this) supposed to",
    rf"(?:unclear|(?:not|isn't|wasn't) (?:really |very |quite )?clear)(?: to me)?(?: {_WHAT})?",
    r"(?:confused|confusing|confuses|confuse|puzzled|puzzling|puzzles|baffled|baffling|bewildered|perplexed)",
    rf"(?:makes? no sense|{_NOT} make (?:any |much )?sense)",
    r"what (?:do you mean|does (?:that|this|it) mean|is that supposed to mean)|what (?:does|do|is) [^.!?\n]{1,60} mean",
    r"do you mean|(?:are|were) (?:we|you) talking about",
    r"(?:what(?:'s| is)|where is) the difference|how is (?:that|this|it) different",
    r"what exactly (?:is|are|does|do)|which (?:one )?is (?:right|correct)|contradict(?:s|ing)?",
    r"(?:i'm|i am|you(?:'ve| have)?) lost(?: me)?|missing something",
    r"(?:can|could|would|please) (?:you )?(?:please )?(?:clarify|rephrase|elaborate|explain)",
    r"explain (?:\w+ ){0,3}(?:again|once more|like|differently)",
    r"in simple(?:r)? (?:words|terms)",
    r"wait,? (?:so|what|why|how)",
    r"why (?:would|do|should) i (?:need|have)",
    r"i thought [^.!?\n]{1,100}\?|or not\?|do i [^.!?\n]{1,80} or [^.!?\n]{1,80}\?",
    r"huh",
)
"""English phrases that show confusion, as whole words; so do two question marks."""
_WIE: Final = r"(?:was|wie|wo|ob|warum|wieso|wann|wer|welche[rsnm]?|woher|wozu|wofür)"
GERMAN_CONFUSION: Final = (
    r"versteh\w* (?:\w+ ){0,4}?nicht|nicht (?:\w+ ){0,2}?(?:versteh\w*|verstanden)|unverständlich\w*",
    r"versteh\w* ich (?:das )?richtig|missverst\w*|widerspr\w*",
    rf"wei(?:ß|ss) (?:\w+ ){{0,3}}?nicht,? {_WIE}|nicht (?:ganz |wirklich )?sicher,? {_WIE}|keine ahnung",
    r"verwirr\w*|unklar\w*|nicht (?:ganz |so |wirklich )?klar|rätsel\w*",
    r"was (?:bedeutet|heißt|heisst|meinen|meinst|soll|ist mit|genau)|(?:meinen sie|meinst du|meint ihr)",
    r"(?:wie ist das|ist) gemeint|(?:was ist|worin (?:besteht|liegt)) der unterschied|reden wir",
    r"blick\w* (?:\w+ ){0,2}?nicht|komm\w* (?:\w+ ){0,2}?nicht (?:mehr )?mit|kapier\w*|auf dem schlauch",
    r"kein(?:en)? sinn|erläutern",
    r"(?:einfacher|nochmals?|noch ?einmal|noch mal|genauer) (?:\w+ ){0,2}?(?:erklär\w*|erläuter\w*)",
    r"moment,? (?:also|zahle|muss|was|wie)|(?:warum|wieso|wozu|wofür) (?:brauch\w*|muss|soll|gibt)|woher kommt",
    r"oder nicht\?|(?:muss|soll|darf|kann) ich [^.!?\n]{1,80} oder [^.!?\n]{1,80}\?|ich dachte,? [^.!?\n]{1,100}\?",
    rf"find\w* (?:\w+ ){{0,3}}?nicht, {_WIE}|hä",
)
"""The same in German."""
_CONFUSION: Final = re.compile(
    rf"(?<!\w)(?:{'|'.join(CONFUSION)}|{'|'.join(GERMAN_CONFUSION)})(?!\w)|\?\?+", re.IGNORECASE
)
_APOSTROPHES: Final = str.maketrans("\u2019\u02bc\u2018", "'''")


@dataclass(frozen=True, slots=True)
class Sentiment:
    """The sentiment of one message."""

    score: float
    """From -1 (very negative) to 1."""
    intensity: float
    """The strength, from 0 to 1."""
    negative_words: int = 0
    confusion: tuple[str, ...] = ()
    """The words that show confusion."""


Classifier = Callable[[str], float | Mapping[str, Any]]
"""Takes a message; returns a score from -1 to 1, or a mapping with `score` and, if known, `intensity`."""


def confusion_in(text: str) -> tuple[str, ...]:
    """Returns the words in the text that show confusion, each once."""
    found = _CONFUSION.findall(text.translate(_APOSTROPHES))
    return tuple(dict.fromkeys(one_line(each).lower() for each in found))


def by_lexicon(text: str) -> Sentiment:
    """Reads the text, in English or German, with VADER's rules."""
    # VADER only knows "don't" with a straight apostrophe.
    looked_at = excerpt(text, LOOKED_AT).translate(_APOSTROPHES)
    language = lexicon.language_of(looked_at)
    analyzer, prepared = _analyzer(language), lexicon.prepared(looked_at, language)
    score = float(analyzer.polarity_scores(prepared)["compound"])
    return Sentiment(score, abs(score), _negative_words(analyzer, prepared), confusion_in(looked_at))


def excerpt(text: str, characters: int) -> str:
    """Returns the text if it is short enough; otherwise its beginning and its end."""
    half = characters // 2
    return text if len(text) <= characters else f"{text[:half]} {text[-half:]}"


def _negative_words(analyzer: _Analyzer, text: str) -> int:
    weights = analyzer.lexicon
    return sum(weights.get(word.strip('.,;:!?"()[]').lower(), 0.0) < 0 for word in text.split())


class _Analyzer(Protocol):
    """The part of VADER that we use; it has no types."""

    lexicon: dict[str, float]

    def polarity_scores(self, text: str) -> Mapping[str, float]: ...


@cache
def _analyzer(language: lexicon.Language) -> _Analyzer:
    vader: Any = import_module("vaderSentiment.vaderSentiment")
    analyzer = cast("_Analyzer", vader.SentimentIntensityAnalyzer())
    if language == "de":
        # English words mean something else in German: "die", "war", "hat".
        analyzer.lexicon = dict(lexicon.GERMAN)
    else:
        analyzer.lexicon.update(lexicon.ENGLISH)
    return analyzer


def by_classifier(classifier: Classifier, text: str) -> Sentiment:
    """Asks the operator's classifier. Raises `InvalidInput` if its answer is invalid."""
    return checked(classifier(text), text)


def checked(answer: object, text: str) -> Sentiment:
    """Validates the answer of a classifier or a model. Raises `InvalidInput`."""
    given: Mapping[str, Any] = cast("Any", answer) if isinstance(answer, Mapping) else {"score": answer}
    score = _number(given.get("score"), -1)
    if score is None:
        raise InvalidInput("A sentiment has a `score` from -1 to 1.")
    intensity = abs(score) if given.get("intensity") is None else _number(given["intensity"], 0)
    if intensity is None:
        raise InvalidInput("The `intensity` of a sentiment is a number from 0 to 1.")
    said = confusion_in(text)
    if given.get("confused") is True and not said:
        said = ("(as the model sees it)",)
    return Sentiment(score, intensity, 0, said)


def _number(value: object, least: float) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and least <= value <= 1 else None


def load_classifier(place: str) -> Classifier:
    """Imports the function at `package.module:function`. Raises `InvalidInput` if there is none."""
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(f"reflection.classifier: there is no function at {place!r}: {error}.") from error
    if not callable(found):
        raise InvalidInput(f"reflection.classifier: {place!r} is not a function.")
    return cast("Classifier", found)
