"""How people feel about what they write: by VADER's lexicon, by what a model answers, or by a classifier of the house.

The lexicon knows English, and nothing of irony. It is loaded when it is first needed.
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

LOOKED_AT: Final = 280
"""Characters that the lexicon looks at: the beginning of what is said, and its end. It was made for texts so short:
in longer ones its sums come to all or nothing, and take the square of the time."""

_NOT: Final = r"(?:don't|do not|dont|didn't|did not|can't|cannot|can not|couldn't|doesn't|does not|not)"
_WHAT: Final = r"(?:what|how|why|where|which|when|who)"
CONFUSION: Final = (
    rf"{_NOT}(?: really| quite| fully)? (?:understand|understanding|follow|following)",
    rf"{_NOT}(?: really| quite)? get (?:it|this|that|{_WHAT}|the (?:point|idea|logic|difference))",
    rf"{_NOT} (?:see|know) {_WHAT}",
    rf"not sure (?:i (?:understand|follow|get)|if|whether|{_WHAT})",
    rf"no idea {_WHAT}",
    rf"{_WHAT} (?:am i|are we|is that|is this) supposed to",
    r"(?:unclear|(?:not|isn't|wasn't) (?:really |very |quite )?clear)",
    r"(?:confused|confusing|confuses|confuse|puzzled|puzzling|puzzles|baffled|baffling|bewildered|perplexed)",
    rf"(?:makes? no sense|{_NOT} make (?:any |much )?sense)",
    r"what (?:do you mean|does (?:that|this|it) mean|is that supposed to mean)",
    r"(?:i'm|i am|you(?:'ve| have)?) lost(?: me)?",
    r"(?:can|could|would|please) (?:you )?(?:please )?(?:clarify|rephrase|elaborate)",
    r"explain (?:\w+ ){0,3}(?:again|once more|like|differently)",
    r"in simple(?:r)? (?:words|terms)",
    r"wait,? (?:so|what|why|how)",
    r"i thought [^.!?\n]{1,100}\?",
    r"huh",
)
"""What people say who are confused, as whole words; two question marks say it as well."""
_CONFUSION: Final = re.compile(rf"(?<!\w)(?:{'|'.join(CONFUSION)})(?!\w)|\?\?+", re.IGNORECASE)
_APOSTROPHES: Final = str.maketrans("\u2019\u02bc\u2018", "'''")


@dataclass(frozen=True, slots=True)
class Reading:
    """How somebody seems to feel."""

    score: float
    """From -1, as bad as can be, to 1."""
    intensity: float
    """How strongly, from 0 to 1."""
    negative_words: int = 0
    confusion: tuple[str, ...] = ()
    """The words by which confusion is told."""


Classifier = Callable[[str], float | Mapping[str, Any]]
"""Takes what was said; gives a score from -1 to 1, or a mapping with `score` and, if known, `intensity`."""


def confusion_in(text: str) -> tuple[str, ...]:
    """The words in the text by which confusion is told, each once."""
    found = _CONFUSION.findall(text.translate(_APOSTROPHES))
    return tuple(dict.fromkeys(one_line(each).lower() for each in found))


def by_lexicon(text: str) -> Reading:
    """What VADER's lexicon and rules make of the text."""
    # VADER knows "don't" with a straight apostrophe only.
    looked_at = excerpt(text, LOOKED_AT).translate(_APOSTROPHES)
    analyzer = _analyzer()
    score = float(analyzer.polarity_scores(looked_at)["compound"])
    return Reading(score, abs(score), _negative_words(analyzer, looked_at), confusion_in(looked_at))


def excerpt(text: str, characters: int) -> str:
    """The text, if it is not longer than that; else how it begins and how it ends."""
    half = characters // 2
    return text if len(text) <= characters else f"{text[:half]} {text[-half:]}"


def _negative_words(analyzer: _Analyzer, text: str) -> int:
    lexicon = analyzer.lexicon
    return sum(lexicon.get(word.strip('.,;:!?"()[]').lower(), 0.0) < 0 for word in text.split())


class _Analyzer(Protocol):
    """What is used of VADER, which has no types."""

    lexicon: Mapping[str, float]

    def polarity_scores(self, text: str) -> Mapping[str, float]: ...


@cache
def _analyzer() -> _Analyzer:
    vader: Any = import_module("vaderSentiment.vaderSentiment")
    return cast("_Analyzer", vader.SentimentIntensityAnalyzer())


def by_classifier(classifier: Classifier, text: str) -> Reading:
    """What the classifier of the house says. Raises `InvalidInput` if that is no reading."""
    return checked(classifier(text), text)


def checked(answer: object, text: str) -> Reading:
    """What a classifier or a model answered, as a reading. Raises `InvalidInput` where it is none."""
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
    return Reading(score, intensity, 0, said)


def _number(value: object, least: float) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and least <= value <= 1 else None


def load_classifier(place: str) -> Classifier:
    """The function at `package.module:function`. Raises `InvalidInput` where there is none."""
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(f"reflection.classifier: there is no function at {place!r}: {error}.") from error
    if not callable(found):
        raise InvalidInput(f"reflection.classifier: {place!r} is not a function.")
    return cast("Classifier", found)
