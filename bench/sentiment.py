"""What reading feelings by the lexicon costs, and how often it agrees with people.

    python -m bench.sentiment [--rounds N]

The 200 sentences of `bench/data/sentiment.tsv` are our own, with a label each: negative, positive, neutral, confused.
The thresholds are set on every other one (`set_on`) and judged on those between (`agreement`); beside it stands what
thresholds of agents by default come to there. Told are CPU milliseconds for a message, the median over rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from denizen.reflection.sentiment import Reading, by_lexicon
from denizen.reflection.settings import SentimentSettings
from denizen.reflection.signals import is_confused

DATA = Path(__file__).parent / "data" / "sentiment.tsv"
TRIED = [round(each / 20, 2) for each in range(1, 13)]

Labelled = tuple[str, Reading]


def sentences() -> list[tuple[str, str]]:
    """Each sentence with its label."""
    lines = DATA.read_text(encoding="utf-8").splitlines()
    return [(label, text) for label, _, text in (line.partition("\t") for line in lines)]


def verdict(reading: Reading, settings: SentimentSettings) -> str:
    """What is counted of a turn, in one word: confusion is told by words, so it goes first."""
    if reading.confusion:
        return "confused"
    if reading.score < settings.frustration_threshold:
        return "negative"
    if reading.score > settings.satisfaction_threshold:
        return "positive"
    return "confused" if is_confused(reading, settings) else "neutral"


def agreement(labelled: Sequence[Labelled], settings: SentimentSettings) -> float:
    return sum(verdict(reading, settings) == label for label, reading in labelled) / len(labelled)


def best(labelled: Sequence[Labelled]) -> SentimentSettings:
    """The thresholds that agree most often; among equals those that are nearest to nothing."""
    tried = (SentimentSettings(frustration_threshold=-low, satisfaction_threshold=high) for low, high in _pairs())
    return max(tried, key=lambda settings: agreement(labelled, settings))


def _pairs() -> list[tuple[float, float]]:
    return sorted(product(TRIED, TRIED), key=sum)


def milliseconds(texts: Sequence[str], rounds: int) -> float:
    figures: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        for text in texts:
            by_lexicon(text)
        figures.append((time.process_time() - began) * 1_000 / len(texts))
    return statistics.median(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds: int = parser.parse_args().rounds
    found = sentences()
    labelled = [(label, by_lexicon(text)) for label, text in found]
    set_on, judged = labelled[::2], labelled[1::2]
    chosen, usual = best(set_on), SentimentSettings()
    by_label = {
        name: round(agreement([each for each in judged if each[0] == name], chosen), 3)
        for name in ("negative", "positive", "neutral", "confused")
    }
    result = {
        "bench": "sentiment",
        "sentences": len(found),
        "ms_per_message": round(milliseconds([text for _, text in found], rounds), 4),
        "ms_of_a_long_message": round(milliseconds(["I am not happy with this at all. " * 100], rounds), 4),
        "thresholds": [chosen.frustration_threshold, chosen.satisfaction_threshold],
        "agreement": round(agreement(judged, chosen), 3),
        "agreement_by_label": by_label,
        "agreement_where_set": round(agreement(set_on, chosen), 3),
        "agreement_with_default_thresholds": round(agreement(judged, usual), 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
