"""To whom what a pass found belongs: each item to the conversation, to the person who said it, to the two who talked,
to the organization. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from denizen.consciousness.recall.terms import count_terms
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.memory.audience import Owner
from denizen.memory.documents import CATEGORIES, Memory
from denizen.memory.items import Candidate
from denizen.memory.sinks import Share

_ALIKE = 0.5
"""Something new takes the place of something that is gone if so much of their words is the same."""


def candidates(before: Memory, now: Memory, ids: Mapping[int, str]) -> list[Candidate]:
    """What is to be remembered, with the messages it rests on (`ids` by number) and what it takes the place of."""
    found: list[Candidate] = []
    for category in CATEGORIES:
        kept = {each.text for each in now.of(category)}
        gone = [(each.text, _terms(each.text)) for each in before.of(category) if each.text not in kept]
        old = {each.text for each in before.of(category)}
        for each in now.of(category):
            sources = tuple(ids[number] for number in each.sources if number in ids)
            replaced = [each.replaces] if each.replaces else []
            if gone and each.text not in old:
                terms = _terms(each.text)
                replaced += [text for text, its_terms in gone if _alike(its_terms, terms)]
            sure = round(each.confidence * 100)
            found.append(Candidate(category, each.text, sources, sure, tuple(dict.fromkeys(replaced))))
    return found


def _terms(text: str) -> frozenset[str]:
    return frozenset(count_terms(text))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared > 0 and shared >= _ALIKE * min(len(one), len(other))


def shares(
    organization_id: OrganizationId,
    space_id: SpaceId,
    what: Sequence[Candidate],
    said_by: Mapping[str, EntityId],
    people: frozenset[EntityId],
    agents: Sequence[AgentId],
) -> Iterator[Share]:
    """What each owner is to remember. `said_by`: the people among the authors, by message.

    Always in the same order: passes over several conversations of one person lock one owner after the other.
    """
    everything = tuple(what)
    yield Share(Owner("conversation", organization_id, space_id=space_id), everything)
    by_person: defaultdict[EntityId, list[Candidate]] = defaultdict(list)
    for each in everything:
        # Where one person talks with agents it is about them; among several, about whoever said it.
        authors = {said_by[source] for source in each.sources if source in said_by}
        whose = people if len(people) == 1 else authors
        if len(whose) == 1:
            by_person[next(iter(whose))].append(each)
    for person, theirs in sorted(by_person.items()):
        yield Share(Owner("user", organization_id, user_id=person), tuple(theirs))
        for agent_id in sorted(agents):
            yield Share(Owner("persona", organization_id, user_id=person, agent_id=agent_id), tuple(theirs))
    yield Share(Owner("organization", organization_id), everything)
