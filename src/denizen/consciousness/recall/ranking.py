"""Which passages matter to a question, from what each scores by itself. Pure.

Relevance spreads: what was said just before and after something relevant is relevant too, the less the more was said
in between. Then come the cues: who is named, which time is meant, whether someone speaks of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from typing import Final, NamedTuple

from denizen.consciousness.recall.cues import Period

SOURCES: Final = 60
"""The best passages, from which relevance spreads."""
REACH: Final = 700
"""How many characters away it spreads: by then, little more than a sixth is left."""
_FADES_AFTER = 400
_SHARE = 0.4
_FAINTEST = 1e-6
_NAMED = 1.0
_PRESENT = 1.0
_TIME = 2.0
_OWN_WORDS = 0.2


class Place(NamedTuple):
    """Where a passage stands, and what else its rank depends on."""

    number: int
    space_id: str
    place: int
    characters: int
    """That stand between what comes before and after it: none of what was not said."""
    speaker: str
    """The id of who said it or, if it has none, the name."""
    own_words: int
    at: int


def standardised(scores: Mapping[int, float], passages: int) -> dict[int, float]:
    """The scores in units of how much they differ among all passages; those without one have scored nothing."""
    unit = deviation(scores.values(), passages)
    return {number: score / unit for number, score in scores.items()}


def deviation(scores: Iterable[float], passages: int) -> float:
    """How much the scores differ among all passages; 1 if not at all."""
    all_scores = list(scores)
    mean = sum(all_scores) / max(passages, 1)
    squares = sum(map(mul, all_scores, all_scores))
    return math.sqrt(max(squares / max(passages, 1) - mean * mean, 0.0)) or 1.0


def reaches(sources: Iterable[Place]) -> dict[str, list[tuple[int, int]]]:
    """The stretches of each space over which relevance may spread from these passages, in order and apart."""
    by_space: dict[str, list[tuple[int, int]]] = {}
    for each in sorted(sources, key=lambda each: (each.space_id, each.place)):
        stretches = by_space.setdefault(each.space_id, [])
        first, last = each.place - REACH, each.place + each.characters + REACH
        if stretches and first <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], last))
        else:
            stretches.append((first, last))
    return by_space


def spread(scores: Mapping[int, float], sources: frozenset[int], around: Sequence[Place]) -> dict[int, float]:
    """The scores with what each source gives to those around it, which are in the order of their spaces and places."""
    spread_to = dict(scores)
    given = [_SHARE * scores[each.number] if each.number in sources else 0.0 for each in around]
    _spread_on(spread_to, around, given, [(each.place, each.place + each.characters) for each in around])
    # And the same backwards, with every distance turned round.
    back = [(-each.place - each.characters, -each.place) for each in reversed(around)]
    _spread_on(spread_to, around[::-1], given[::-1], back)
    return spread_to


def _spread_on(
    spread_to: dict[int, float], around: Sequence[Place], given: Sequence[float], spans: Sequence[tuple[int, int]]
) -> None:
    # It fades exponentially, so what has come as far as one passage is all there is to know for the next.
    carried = 0.0
    for at in range(1, len(around)):
        before, here = around[at - 1], around[at]
        if before.space_id != here.space_id:
            carried = 0.0
            continue
        (began, ended), (begins, _) = spans[at - 1], spans[at]
        carried *= math.exp((began - begins) / _FADES_AFTER)
        if given[at - 1]:
            carried += given[at - 1] * math.exp((ended - begins) / _FADES_AFTER)
        if carried > _FAINTEST:
            spread_to[here.number] = spread_to.get(here.number, 0.0) + carried


def with_cues(
    scores: Mapping[int, float],
    passages: int,
    places: Mapping[int, Place],
    named: frozenset[str],
    period: Period | None,
) -> dict[int, float]:
    """The scores of those whose places are known, and what the cues add. `named` are ids and names of speakers."""
    unit = deviation(scores.values(), passages)
    present = {place.space_id for place in places.values() if place.speaker in named} - {""}
    ranked: dict[int, float] = {}
    for number, place in places.items():
        score = scores.get(number, 0.0) / unit + _OWN_WORDS * place.own_words
        if place.speaker in named:
            score += _NAMED
        if place.space_id in present:
            score += _PRESENT
        if period is not None:
            score += _TIME * period.fit(place.at)
        ranked[number] = score
    return ranked


def best_first(scores: Mapping[int, float], limit: int) -> list[int]:
    """The best first; of equals, the newest."""
    least = -math.inf
    if len(scores) > limit:
        # Most are far below the best: these few are enough to tell, if there are so many.
        high = max(scores.values()) / 3
        some = [score for score in scores.values() if score > high]
        least = sorted(some if len(some) >= limit else scores.values(), reverse=True)[limit - 1]
    kept = sorted((-score, -number) for number, score in scores.items() if score >= least)
    return [-number for _, number in kept[:limit]]
