"""Search over an agent's life: shared words, neighbours, cues and, where passages have vectors, meaning.

The same order on every database: a database only keeps and fetches, the ranking is ours. The work of a query is
bounded however long the life is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, select

from denizen.clock import Instant
from denizen.consciousness.recall import full_text, settling
from denizen.consciousness.recall.cues import Period, period_in
from denizen.consciousness.recall.embedding import Meaning
from denizen.consciousness.recall.fetching import Door, Filter, Found
from denizen.consciousness.recall.postings import Weights, shape
from denizen.consciousness.recall.ranking import SOURCES, Place, best_first, deviation, spread, standardised, with_cues
from denizen.consciousness.recall.terms import count_terms
from denizen.ids import AgentId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities, notes

FOUND: Final = 200
"""Passages that a search gives at most."""
SOURCES_WITH_MEANING: Final = 100
"""From so many relevance spreads where meaning is asked for too, which finds more that shares no word."""
MOST_LOOKED_AT: Final = 1_000
"""Of the passages that share words with the question, so many are looked at to find those that may be seen."""
MOST_FILTERED: Final = 20_000
"""So many where a filter leaves out others than private ones: then those asked for may be few."""
MOST_AROUND: Final = 4_000
"""Passages to which relevance may spread."""
EVERYTHING: Final = Filter()


@dataclass(frozen=True, slots=True)
class Ranking:
    """What matters most to a question, for one audience; not the texts."""

    audience: frozenset[str]
    only: Filter
    scores: Mapping[int, float]
    """By number of the passage, the best first."""
    limit: int
    weights: Weights
    """What terms weigh in a note."""
    rarity: Mapping[str, float]
    unit: float
    """What the scores of words are divided by."""


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
) -> list[Found]:
    """The passages and notes that matter most to `query`, the best first.

    `audience` are the spaces of the present cycle: what comes from a private space is found only where that space is
    all of them. `now` is what "yesterday" in the query is relative to. `meaning` (of `embedding.meaning`) adds what the
    query means to the words it has.
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
) -> Ranking:
    """What `search` finds, without the texts: the long part of it, which needs no transaction that writes."""
    here = frozenset(audience)
    door = Door(tx, agent_id, here, only)
    life = settling.extent(tx, agent_id)
    scored = full_text.score(tx, agent_id, life, list(count_terms(query)), only.period)
    base = standardised(scored.scores, life.there)
    if meaning is not None:
        for number, near in meaning(base).items():
            base[number] = base.get(number, 0.0) + near
    period = period_in(query, now=now or tx.now, zone=zone)
    sources = _sources(door, base, only, SOURCES if meaning is None else SOURCES_WITH_MEANING)
    ranked = _rank(tx, door, base, life.there, query, period, only, sources)
    best = {number: ranked[number] for number in best_first(ranked, limit)}
    unit = deviation(scored.scores.values(), life.there)
    return Ranking(here, only, best, limit, Weights(scored.mean), scored.rarity, unit)


def read(tx: Tx, agent_id: AgentId, ranking: Ranking) -> list[Found]:
    """The passages and notes with their texts, without what may not be seen now, or is forgotten by now."""
    door = Door(tx, agent_id, ranking.audience, ranking.only)
    found = list(door.texts(list(ranking.scores), ranking.scores))
    if ranking.only == EVERYTHING:
        found += _noted(tx, agent_id, ranking)
    return sorted(found, key=lambda each: (-each.score, -each.number))[: ranking.limit]


def _rank(
    tx: Tx,
    door: Door,
    base: Mapping[int, float],
    there: int,
    query: str,
    period: Period | None,
    only: Filter,
    sources: Sequence[Place],
) -> dict[int, float]:
    around = door.around(sources, MOST_AROUND)
    spread_to = spread(base, frozenset(each.number for each in sources), around)
    places = {each.number: each for each in (*sources, *around)}
    if period is not None:
        places |= {each.number: each for each in door.of_period(period) if each.number not in places}
    if only.speakers is not None:
        places = {number: each for number, each in places.items() if _speaks(each, only.speakers)}
    return with_cues(spread_to, there, places, _named(tx, places.values(), query), period)


def _sources(door: Door, base: Mapping[int, float], only: Filter, many: int) -> list[Place]:
    """The best passages that may be seen; of whoever is asked for, as many."""
    order = best_first(base, MOST_LOOKED_AT if only == EVERYTHING else MOST_FILTERED)
    sources: list[Place] = []
    by_them = 0
    for at in range(0, len(order), many):
        seen = door.places(order[at : at + many])
        wanted = seen if only.speakers is None else [each for each in seen if _speaks(each, only.speakers)]
        by_them += len(wanted)
        sources += seen if len(sources) < many else wanted
        if by_them >= many:
            break
    return sources


def _speaks(place: Place, speakers: frozenset[str]) -> bool:
    return place.speaker in speakers


_WORD = re.compile(r"[^\W_]+")
_FEWEST_LETTERS = 2
_names = statement(select(entities.c.name, entities.c.handle).where(entities.c.id == bindparam("id")))


def _named(tx: Tx, places: Iterable[Place], query: str) -> frozenset[str]:
    """Those among the speakers whom the question names, by id or, if they have none, by name."""
    asked = set(_WORD.findall(query.casefold()))
    named: set[str] = set()
    for speaker in {each.speaker for each in places}:
        row = tx.one(_names, id=speaker) or (speaker,)
        called = _WORD.findall(" ".join(row).casefold())
        if any(word in asked for word in called if len(word) >= _FEWEST_LETTERS):
            named.add(speaker)
    return frozenset(named)


_notes = statement(
    select(notes.c.key, notes.c.text, notes.c.updated_at).where(notes.c.agent_id == bindparam("agent_id"))
)


def _noted(tx: Tx, agent_id: AgentId, ranking: Ranking) -> list[Found]:
    """The agent's notes that share words with the question. They are few, and read as they are."""
    rare, weights = ranking.rarity, ranking.weights
    found: list[Found] = []
    for key, text, at in tx.all(_notes, agent_id=agent_id):
        counts = count_terms(f"{key} {text}")
        length = sum(counts.values())
        score = sum(rare[term] * weights[shape(counts[term], length)] for term in rare if term in counts)
        if score > 0:
            found.append(Found(0, 0, at, "note", "", "", "", f"{key}: {text}", "", score / ranking.unit))
    return found
