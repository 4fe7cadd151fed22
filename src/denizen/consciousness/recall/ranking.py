"""Ranks passages for a question, from the scores of each passage. Pure.

What was said just before and after something relevant is relevant too, the less the more was said in between: for each
search term, a passage has its own score or, if that is more, its best neighbour's, reduced by distance. Then come the
cues: who is named, which time is meant, whether someone speaks of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from denizen.consciousness.recall.cues import Period

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

SOURCES: Final = 40
"""How many of the best passages have their neighbours examined."""
REACH: Final = 400
"""How many characters away a neighbour may be."""
_FADES_AFTER = 400
_SHARE = 0.8
"""The part of a neighbour's score that counts if nothing stands between."""
_SHARE_OF_OWN = 0.4
"""The same if the agent itself said the neighbour: an answer has words of its own about much that nobody asked."""
_MOST_NEIGHBOURS = 32
"""On either side. Passages without text between them share a position, so there can be any number."""
_NAMED = 1.0
_PRESENT = 1.0
_HERE = 4.0
_SAID_ITSELF = 2.0
_WISHED = 3.0
_LONG = 400
"""How many characters a passage may have before its length counts against it."""
_LONGEST_WISH = 400
_LENGTH = 2.0
_TIME = 2.0
_OWN_WORDS = 0.2


class PassagePosition(NamedTuple):
    """The position of a passage, and the other inputs of its rank."""

    number: int
    space_id: str
    place: int
    characters: int
    """The characters between what comes before and after it: 0 for anything that was not said."""
    speaker: str
    """The id of the speaker or, if there is none, the name."""
    own_words: int
    at: int


def deviation(scores: NDArray[float64], passages: int) -> float:
    """The standard deviation of the scores among all passages, of which the others have 0; 1 if there is none."""
    mean = float(scores.sum()) / max(passages, 1)
    squares = float((scores * scores).sum()) / max(passages, 1)
    return math.sqrt(max(squares - mean * mean, 0.0)) or 1.0


def reaches(sources: Iterable[PassagePosition]) -> dict[str, list[tuple[int, int]]]:
    """The ranges of each space in which neighbours of these passages may be, in order and disjoint."""
    by_space: dict[str, list[tuple[int, int]]] = {}
    for each in sorted(sources, key=lambda each: (each.space_id, each.place)):
        stretches = by_space.setdefault(each.space_id, [])
        first, last = each.place - REACH, each.place + each.characters + REACH
        if stretches and first <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], last))
        else:
            stretches.append((first, last))
    return by_space


def with_neighbours(shares: NDArray[float64], places: Sequence[PassagePosition], own: str = "") -> NDArray[float64]:
    """The scores, a row for each search term, with those of neighbours where they are more.

    The places, a column each, are ordered by space and position. `own` is the agent itself: what is beside its messages
    gets less of their scores, unless the question asks what it said.
    """
    import numpy

    most = shares.copy()
    _, space_ids, stand_at, characters, speakers, *_ = zip(*places, strict=True)
    ids = {space_id: at for at, space_id in enumerate(dict.fromkeys(space_ids))}
    spaces = numpy.array([ids[space_id] for space_id in space_ids])
    begins = numpy.array(stand_at, numpy.int64)
    ends = begins + numpy.array(characters, numpy.int64)
    given = numpy.full(len(places), _SHARE)
    if own:
        said = [at for at, each in enumerate(speakers) if each == own and characters[at]]
        given[said] = _SHARE_OF_OWN
    for apart in range(1, min(len(places), _MOST_NEIGHBOURS + 1)):
        between = numpy.maximum(begins[apart:] - ends[:-apart], 0)
        near = (spaces[apart:] == spaces[:-apart]) & (between <= REACH)
        if not near.any():
            break
        left = numpy.where(near, numpy.exp(between / -_FADES_AFTER), 0.0)
        numpy.maximum(most[:, apart:], shares[:, :-apart] * (given[:-apart] * left), out=most[:, apart:])
        numpy.maximum(most[:, :-apart], shares[:, apart:] * (given[apart:] * left), out=most[:, :-apart])
    return most


def with_cues(
    scores: Sequence[float],
    places: Sequence[PassagePosition],
    named: frozenset[str],
    period: Period | None,
    here: frozenset[str] = frozenset(),
    own: str = "",
    wishes: frozenset[int] = frozenset(),
) -> dict[int, float]:
    """The scores by number of the passage, including the cues. `named` are ids and names of speakers.

    `here` are the current spaces: what is asked there is mostly about what was said there. A long passage takes the
    room of several others. `own` is the agent itself, unless the question asks what it said: its answers repeat the
    words of what they answer, and the length of its long ones counts twice. `wishes` are the passages in which people
    say how they want things to be done: what they ask for next need not share a word with it.
    """
    present = {place.space_id for place in places if place.speaker in named} - {""}
    ranked: dict[int, float] = {}
    for place, scored in zip(places, scores, strict=True):
        score = scored + _OWN_WORDS * place.own_words
        if place.speaker in named:
            score += _NAMED
        if place.space_id in present:
            score += _PRESENT
        if place.space_id in here:
            score += _HERE
        if place.number in wishes:
            score += _WISHED
        long = _LENGTH * math.log2(place.characters / _LONG) if place.characters > _LONG else 0.0
        if own and place.characters and place.speaker == own:
            score -= _SAID_ITSELF + long
        score -= long
        if period is not None:
            score += _TIME * period.fit(place.at)
        ranked[place.number] = score
    return ranked


def may_be_wish(place: PassagePosition, own: str) -> bool:
    """Whether a passage with a word of `terms.WISHES` may be a wish: a short message to the agent."""
    return 0 < place.characters <= _LONGEST_WISH and place.speaker != own


def best_first(numbers: NDArray[int64], scores: NDArray[float64], limit: int) -> NDArray[int64]:
    """The numbers of the best, the best first; of equals, the newest."""
    import numpy

    if len(scores) > limit:
        least = numpy.partition(scores, -limit)[-limit]
        numbers, scores = numbers[scores >= least], scores[scores >= least]
    return numbers[numpy.lexsort((-numbers, -scores))][:limit]
