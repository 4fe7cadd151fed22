"""What reading feelings by the lexicon costs, and how often it agrees with people.

    python -m bench.sentiment [--rounds N]

The sentences are our own, with a label each: negative, positive, neutral, confused. `bench/data/support.tsv` has 300
sentences of support talk in English and German: the lexicon was developed on every other one (`developed_on`) and is
judged on those between (`agreement`), with the default thresholds of agents. `bench/data/sentiment.tsv` has 200 older
English ones of all kinds, judged in the same way (`general`). Told are CPU milliseconds for a message, the median over
rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from denizen.reflection.sentiment import Sentiment, by_lexicon
from denizen.reflection.settings import SentimentSettings
from denizen.reflection.signals import is_confused

DATA = Path(__file__).parent / "data"
USUAL = SentimentSettings()


class Sentence(NamedTuple):
    label: str
    language: str
    text: str


def support_sentences() -> list[Sentence]:
    lines = (DATA / "support.tsv").read_text(encoding="utf-8").splitlines()
    return [Sentence(*line.split("\t", 2)) for line in lines]


def general_sentences() -> list[Sentence]:
    lines = (DATA / "sentiment.tsv").read_text(encoding="utf-8").splitlines()
    return [Sentence(label, "en", text) for label, _, text in (line.partition("\t") for line in lines)]


def verdict(reading: Sentiment, settings: SentimentSettings) -> str:
    """What is counted of a turn, in one word: confusion is told by words, so it goes first."""
    if reading.confusion:
        return "confused"
    if reading.score < settings.frustration_threshold:
        return "negative"
    if reading.score > settings.satisfaction_threshold:
        return "positive"
    return "confused" if is_confused(reading, settings) else "neutral"


def agreement(sentences: Sequence[Sentence]) -> float:
    return round(sum(verdict(by_lexicon(each.text), USUAL) == each.label for each in sentences) / len(sentences), 3)


def by(sentences: Sequence[Sentence], field: str) -> dict[str, float]:
    """The agreement for each value of this field."""
    values = dict.fromkeys(getattr(each, field) for each in sentences)
    return {value: agreement([each for each in sentences if getattr(each, field) == value]) for value in values}


def milliseconds(texts: Sequence[str], rounds: int) -> float:
    figures: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        for text in texts:
            by_lexicon(text)
        figures.append((time.process_time() - began) * 1_000 / len(texts))
    return round(statistics.median(figures), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds: int = parser.parse_args().rounds
    support, general = support_sentences(), general_sentences()
    held_out, general_held_out = support[1::2], general[1::2]
    result = {
        "bench": "sentiment",
        "sentences": len(support),
        "agreement": agreement(held_out),
        "agreement_by_label": by(held_out, "label"),
        "agreement_by_language": by(held_out, "language"),
        "developed_on": agreement(support[::2]),
        "general": agreement(general_held_out),
        "general_by_label": by(general_held_out, "label"),
        "ms_per_message": milliseconds([each.text for each in support], rounds),
        "ms_of_a_long_message": milliseconds(["I am not happy with this at all. " * 100], rounds),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
