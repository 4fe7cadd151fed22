"""Search over an agent's history: shared words, neighbours, cues and, if passages have vectors, meaning.

A passage has a score for each word of the question and for its meaning; or its best neighbour's (`ranking`).

The order is the same on every database: a database only stores and fetches, the ranking is ours. The work of a query is
bounded however long the history is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, select

from denizen.clock import Instant
from denizen.consciousness.recall import full_text, settling, wording
from denizen.consciousness.recall.cues import Period, without_period
from denizen.consciousness.recall.embedding import Meaning
from denizen.consciousness.recall.fetching import Filter, PassageAccess, RecalledPassage
from denizen.consciousness.recall.full_text import Scored
from denizen.consciousness.recall.postings import rarity, shape, weigh
from denizen.consciousness.recall.ranking import (
    SOURCES,
    PassagePosition,
    best_first,
    deviation,
    may_be_wish,
    with_cues,
    with_neighbours,
)
from denizen.consciousness.recall.settling import Extent
from denizen.consciousness.recall.terms import (
    WISHES,
    asking_terms,
    asks_what_was_answered,
    count_terms,
    fold,
    is_small_talk,
    is_wish,
)
from denizen.ids import AgentId
from denizen.storage.database import Tx, select_where, statement
from denizen.storage.schema import entities, notes

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

FOUND: Final = 200
"""How many passages a search returns at most."""
SOURCES_WITH_MEANING: Final = 200
"""How many passages have their neighbours examined in a search with meaning, which finds more that shares no word."""
EXAMINED: Final = 400
"""How many of the passages with the best scores of their own are ranked at least: by cues, any may be the first."""
MOST_COMPARED: Final = 400
"""How many of the best passages have their words compared with those of the question."""
_UNIT: Final = 1.5
"""Divides the scores of words, to weigh them against cues."""
_UNIT_WITH_MEANING: Final = 2.4
MOST_LOOKED_AT: Final = 1_000
"""How many of the passages that share words with the question are examined to find those that may be seen."""
MOST_FILTERED: Final = 20_000
"""The same with a filter on more than privacy: then the matching passages may be few."""
MOST_WISHES: Final = 32
"""How many wishes of the current space, the newest, are considered."""
_MOST_LIKE_WISHES: Final = 200
"""Among how many passages with their words."""
_MOST_WITH_WORDS_OF_WISHES: Final = 5_000
MOST_AROUND: Final = 4_000
"""How many passages are examined because they are near others."""
EVERYTHING: Final = Filter()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked passages for a question and one audience, without the texts."""

    audience: frozenset[str]
    only: Filter
    scores: Mapping[int, float]
    """By number of the passage, the best first."""
    limit: int
    rarity: Mapping[str, float]
    mean: float
    """The mean number of terms of a passage."""
    unit: float
    """Divides the scores of words."""
    covered: float = 0.0
    """The most of the question's information, a share, that one of the best passages has with its neighbours."""
    named: bool = False
    """Whether the question names somebody who speaks in them."""


def search(
    tx: Tx,
    agent_id: AgentId,
    query: str,
    *,
    audience: Iterable[str] = (),
    only: Filter = EVERYTHING,
    zone: str = "UTC",
    now: Instant | None = None,
    meaning: Meaning | None = None,
    limit: int = FOUND,
) -> list[RecalledPassage]:
    """The passages and notes most relevant to `query`, the best first.

    `audience` are the spaces of the current cycle: passages from a private space are found only if that space is the
    only one. `now` is what "yesterday" in the query is relative to. `meaning` (of `embedding.meaning`) adds the meaning
    of the query to its words.
    """
    ranking = rank(tx, agent_id, query, audience=audience, only=only, zone=zone, now=now, meaning=meaning, limit=limit)
    return read(tx, agent_id, ranking)


def rank(
    tx: Tx,
    agent_id: AgentId,
    query: str,
    *,
    audience: Iterable[str] = (),
    only: Filter = EVERYTHING,
    zone: str = "UTC",
    now: Instant | None = None,
    meaning: Meaning | None = None,
    limit: int = FOUND,
    judged: int = 0,
) -> Ranking:
    """The result of `search` without the texts: the slow part, which needs no write transaction.

    `judged` is among how many of the best the one is looked for that says most about the question (`Ranking.covered`).
    """
    import numpy

    here = frozenset(audience)
    period, rest = without_period(query, now=now or tx.now, zone=zone)
    if period is None and only.period is None and only.speakers is None and is_small_talk(query):
        return Ranking(here, only, {}, limit, {}, 1.0, 1.0)
    door = PassageAccess(tx, agent_id, here, only)
    life = settling.extent(tx, agent_id)
    scored = full_text.score(tx, agent_id, life, query, only.period)
    unit = deviation(scored.scores, life.there)
    sources = SOURCES if meaning is None else SOURCES_WITH_MEANING
    everywhere = _best(scored, unit, meaning)
    order = everywhere[: MOST_LOOKED_AT if only == EVERYTHING else MOST_FILTERED].tolist()
    seen = _sources(door, order, only, max(sources, limit, EXAMINED))
    in_space = _numbers_of(door, here)
    ours = door.places(everywhere[numpy.isin(everywhere, in_space)][: len(seen)].tolist())
    wishes = _wishes(tx, agent_id, life, door, in_space)
    places = _with_others(door, [*ours[:sources], *seen[:sources]], [*ours, *wishes, *seen], period)
    own = "" if asks_what_was_answered(query) else agent_id
    # What it said may well begin with "I recommend".
    asking = asking_terms(query) if own else frozenset[str]()
    sought = replace(scored, terms=[each for each in scored.terms if each.term not in asking])
    scores = _scores(tx, agent_id, places, sought, unit, meaning, own)
    named = _named(tx, places, query)
    if only.speakers is not None:
        kept = [at for at, place in enumerate(places) if place.speaker in only.speakers]
        places, scores = [places[at] for at in kept], [scores[at] for at in kept]
    wished = frozenset(each.number for each in wishes)
    ranked = with_cues(scores, places, named, period, here, own, wished)
    first = sorted(((score, number) for number, score in ranked.items()), reverse=True)[:limit]
    best = {number: score for score, number in first}
    # Words that name a time are hardly ever said.
    times = count_terms(query).keys() - count_terms(rest).keys()
    # Wishes come first whatever is asked, and leave no fewer others to be judged.
    covered = _covered(places, scored, times, list(best)[: judged + len(wished)], life.there) if judged else 0.0
    return Ranking(here, only, best, limit, scored.rarity, scored.mean, unit, covered, bool(named))


def read(tx: Tx, agent_id: AgentId, ranking: Ranking) -> list[RecalledPassage]:
    """The passages and notes with their texts, without those that may not be seen now, or have been forgotten."""
    door = PassageAccess(tx, agent_id, ranking.audience, ranking.only)
    found = list(door.texts(list(ranking.scores), ranking.scores))
    if ranking.only == EVERYTHING:
        found += _noted(tx, agent_id, ranking)
    return sorted(found, key=lambda each: (-each.score, -each.number))[: ranking.limit]


def _best(scored: Scored, unit: float, meaning: Meaning | None) -> NDArray[int64]:
    """The passages with the best scores of their own, the best first."""
    import numpy

    numbers, scores = scored.numbers, scored.scores / unit
    if meaning is not None:
        numbers = numpy.union1d(numbers, meaning.nearest())
        scores = _among(numbers, scored.numbers, scores) + meaning.of(numbers)
    return best_first(numbers, scores, MOST_FILTERED)


def _among(wanted: NDArray[int64], numbers: NDArray[int64], values: NDArray[float64]) -> NDArray[float64]:
    """The values of the wanted numbers, where `values` has one; the numbers ascend."""
    import numpy

    if not len(numbers):
        return numpy.zeros(len(wanted))
    at = numpy.minimum(numpy.searchsorted(numbers, wanted), len(numbers) - 1)
    return numpy.where(numbers[at] == wanted, values[at], 0.0)


_by_space_and_place = itemgetter(1, 2, 0)


def _with_others(
    door: PassageAccess, sources: Sequence[PassagePosition], seen: Sequence[PassagePosition], period: Period | None
) -> list[PassagePosition]:
    """All passages to rank, by space and position: these, neighbours of the sources, and those of the period."""
    found = {each.number: each for each in (*door.around(sources, MOST_AROUND), *seen)}
    if period is not None:
        found |= {each.number: each for each in door.of_period(period)}
    return sorted(found.values(), key=_by_space_and_place)


def _scores(
    tx: Tx,
    agent_id: AgentId,
    places: Sequence[PassagePosition],
    scored: Scored,
    unit: float,
    meaning: Meaning | None,
    own: str,
) -> list[float]:
    """The score of each of the places before the cues; `own` as in `with_neighbours`."""
    import numpy

    if not places:
        return []
    numbers = numpy.array([each.number for each in places], numpy.int64)
    shares = [_among(numbers, each.numbers, each.weights) / unit for each in scored.terms]
    if meaning is not None:
        shares.append(meaning.of(numbers))
    scores = with_neighbours(numpy.stack(shares), places, own).sum(axis=0) if shares else numpy.zeros(len(places))
    if meaning is None:
        return (scores / _UNIT).tolist()
    more = _by_words(tx, agent_id, places, numbers, scores, scored, meaning, own)
    return ((scores + more) / _UNIT_WITH_MEANING).tolist()


def _covered(
    places: Sequence[PassagePosition], scored: Scored, without: Container[str], best: Sequence[int], passages: int
) -> float:
    """The most of the information in the question's terms that one of the best passages has with its neighbours."""
    import numpy

    # A word that never occurred weighs no more than one that occurred once: in a short life these are many.
    told = {term: min(each, rarity(1, passages)) for term, each in scored.rarity.items() if term not in without}
    terms = [each for each in scored.terms if each.term in told]
    if not terms or not best:
        return 0.0
    numbers = numpy.array([each.number for each in places], numpy.int64)
    there = numpy.stack([numpy.isin(numbers, each.numbers).astype(numpy.float64) for each in terms])
    weights = numpy.array([told[each.term] for each in terms])
    covered = (weights[:, None] * with_neighbours(there, places)).sum(axis=0)
    return float(covered[numpy.isin(numbers, best)].max()) / sum(told.values())


def _by_words(
    tx: Tx,
    agent_id: AgentId,
    places: Sequence[PassagePosition],
    numbers: NDArray[int64],
    scores: NDArray[float64],
    scored: Scored,
    meaning: Meaning,
    own: str,
) -> NDArray[float64]:
    """The additional scores for passages whose words are near to those of the question; only the best are compared."""
    import numpy

    more = numpy.zeros(len(places))
    if meaning.words is None:
        return more
    best = best_first(numbers, scores, MOST_COMPARED)
    known, near = wording.compare(tx, agent_id, meaning.embedder, meaning.words, best.tolist())
    at = numpy.flatnonzero(numpy.isin(numbers, known))
    weights = wording.weights_of(meaning.words, scored.rarity)
    if not len(at) or not weights.any():
        return more
    here = near[:, numpy.searchsorted(known, numbers[at])]
    reached = (weights[:, None] * with_neighbours(here, [places[each] for each in at.tolist()], own)).sum(axis=0)
    more[at] = ((reached - reached.mean()) / (float(reached.std()) or 1.0)).round(6)
    # Passages that were not compared are not better than any that were; those without word vectors stay as they are.
    more[~numpy.isin(numbers, best)] = more[at].min()
    return more


def _sources(door: PassageAccess, order: Sequence[int], only: Filter, many: int) -> list[PassagePosition]:
    """The best passages that may be seen; with a filter on speakers, as many of theirs."""
    sources: list[PassagePosition] = []
    by_them = 0
    for at in range(0, len(order), many):
        seen = door.places(order[at : at + many])
        wanted = seen if only.speakers is None else [each for each in seen if each.speaker in only.speakers]
        by_them += len(wanted)
        sources += seen if len(sources) < many else wanted
        if by_them >= many:
            break
    return sources


def _numbers_of(door: PassageAccess, here: frozenset[str]) -> NDArray[int64]:
    """The newest passages of the current spaces: in a life of many spaces they may be few among the best of all."""
    import numpy

    return numpy.array([number for space_id in sorted(here) for number in door.of_space(space_id)], numpy.int64)


def _wishes(
    tx: Tx, agent_id: AgentId, life: Extent, door: PassageAccess, in_space: NDArray[int64]
) -> list[PassagePosition]:
    """The newest of these passages in which people say how they want things to be done."""
    import numpy

    if not len(in_space):
        return []
    worded = full_text.newest_with(tx, agent_id, life, WISHES, _MOST_WITH_WORDS_OF_WISHES)
    like = numpy.intersect1d(worded, in_space)[-_MOST_LIKE_WISHES:]
    short = {each.number: each for each in door.places(like.tolist()[::-1]) if may_be_wish(each, agent_id)}
    worded_so = (each.number for each in door.texts(list(short), dict.fromkeys(short, 0.0)) if is_wish(each.text))
    return [short[number] for number in islice(worded_so, MOST_WISHES)]


_WORD = re.compile(r"[^\W_]+")
_FEWEST_LETTERS = 2
_SPEAKERS = [f"id{at}" for at in range(50)]
_names = statement(
    select(entities.c.id, entities.c.name, entities.c.handle).where(
        entities.c.id.in_([bindparam(name, type_=entities.c.id.type) for name in _SPEAKERS])
    )
)


def _named(tx: Tx, places: Iterable[PassagePosition], query: str) -> frozenset[str]:
    """The speakers whom the question names, by id or, if they have none, by name."""
    asked = set(_WORD.findall(fold(query)))
    speakers = sorted({each.speaker for each in places})
    called = {speaker: speaker for speaker in speakers}
    for first in range(0, len(speakers), len(_SPEAKERS)):
        some = speakers[first : first + len(_SPEAKERS)]
        spelled = {name: some[at] if at < len(some) else None for at, name in enumerate(_SPEAKERS)}
        called |= {id: f"{name} {handle}" for id, name, handle in tx.all(_names, **spelled)}
    return frozenset(speaker for speaker, names in called.items() if _names_of(names) & asked)


def _names_of(text: str) -> set[str]:
    return {word for word in _WORD.findall(fold(text)) if len(word) >= _FEWEST_LETTERS}


_notes = select_where(notes, "key, text, updated_at", "agent_id")


def _noted(tx: Tx, agent_id: AgentId, ranking: Ranking) -> list[RecalledPassage]:
    """The agent's notes that share words with the question. They are few, and need no index."""
    import numpy

    found: list[RecalledPassage] = []
    for key, text, at in tx.all(_notes, agent_id=agent_id):
        counts = count_terms(f"{key} {text}")
        length = sum(counts.values())
        shared = [term for term in ranking.rarity if term in counts]
        weights = weigh(numpy.array([shape(counts[term], length) for term in shared], numpy.uint16), ranking.mean)
        score = sum(ranking.rarity[term] * float(weight) for term, weight in zip(shared, weights, strict=True))
        if score > 0:
            found.append(RecalledPassage(0, 0, at, "note", "", "", "", f"{key}: {text}", "", score / ranking.unit))
    return found
