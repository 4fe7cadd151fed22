"""Finds problems in stored memories: duplicates, junk, memories that were never used, contradictions.

It reports; it removes nothing. `examine` is pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from denizen.clock import SECOND
from denizen.consciousness.recall.terms import count_terms
from denizen.memory import items
from denizen.memory.contradictions import contradiction
from denizen.memory.items import SNAPSHOT, MemoryItem
from denizen.storage.database import Tx

Problem = Literal["duplicate", "junk", "never used", "contradiction"]
PROBLEMS: Final[tuple[Problem, ...]] = ("duplicate", "junk", "never used", "contradiction")

OLD_DAYS: Final = 30
"""Younger memories are not reported as unused."""
UNSURE: Final = 30
"""Per cent: memories with less confidence are junk."""
_ALIKE: Final = 0.6
_RARE: Final = 40
"""A word that occurs in more items of an owner is too common to pair two of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem with one or two memories."""

    problem: Problem
    scope: str
    memories: tuple[MemoryItem, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """The number of memories, and their problems."""

    counts: Mapping[str, int]
    """By scope, without superseded memories."""
    superseded: int
    findings: tuple[Finding, ...]


def report(tx: Tx, organization_id: str) -> Report:
    """Returns the problems in this organization's memories."""
    return examine((each for each, _ in items.each_of(tx, organization_id)), tx.now)


def examine(remembered: Iterable[MemoryItem], now: int) -> Report:
    live, superseded = list[MemoryItem](), 0
    for each in remembered:
        if each.superseded_by is not None:
            superseded += 1
        elif each.kind != SNAPSHOT:
            live.append(each)
    by_owner: defaultdict[tuple[str, str], list[MemoryItem]] = defaultdict(list)
    for each in live:
        by_owner[each.owner, each.category].append(each)
    findings = [*_junk(live), *_unused(live, now)]
    for some in by_owner.values():
        findings += _pairs(some)
    return Report(Counter(each.scope for each in live), superseded, tuple(findings))


def _junk(live: Sequence[MemoryItem]) -> Iterator[Finding]:
    for each in live:
        terms = count_terms(each.text)
        if not terms:
            yield Finding("junk", each.scope, (each,), "it says nothing")
        elif not each.sources:
            yield Finding("junk", each.scope, (each,), "nobody knows where it comes from")
        elif each.confidence < UNSURE:
            yield Finding("junk", each.scope, (each,), f"it is only {each.confidence} % certain")


def _unused(live: Sequence[MemoryItem], now: int) -> Iterator[Finding]:
    for each in live:
        days = (now - each.created_at) // (86_400 * SECOND)
        if each.uses == 0 and days >= OLD_DAYS:
            yield Finding("never used", each.scope, (each,), f"in {days} days nobody was reminded of it")


def _pairs(some: Sequence[MemoryItem]) -> Iterator[Finding]:
    """Yields duplicates and contradictions among the memories of one owner and category."""
    terms = {each.number: frozenset(count_terms(each.text)) for each in some}
    by_number = {each.number: each for each in some}
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for number, found in terms.items():
        for term in found:
            holding[term].append(number)
    pairs = {pair for numbers in holding.values() if len(numbers) <= _RARE for pair in combinations(numbers, 2)}
    for one, other in sorted(pairs):
        shared, most = terms[one] & terms[other], max(len(terms[one]), len(terms[other]))
        two = by_number[one], by_number[other]
        if len(shared) < _ALIKE * most:
            continue
        if (why := contradiction(two[0].text, two[1].text)) is not None:
            yield Finding("contradiction", two[0].scope, two, why)
        elif terms[one] == terms[other]:
            yield Finding("duplicate", two[0].scope, two, "they have the same words")
