"""Assigns memories to their owners: the conversation, the person who said it, a person and an agent, the organization.
Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.memory.audience import Owner
from denizen.memory.documents import Memory
from denizen.memory.items import Candidate
from denizen.memory.sinks import Share


def candidates(now: Memory, ids: Mapping[int, str]) -> list[Candidate]:
    """Returns what to remember, with its source messages (`ids` by number) and the items it replaces.

    An item is replaced only if the model says so. What a pass leaves out is not false: there may have been no room for
    it.
    """
    return [
        Candidate(
            category,
            each.text,
            tuple(ids[number] for number in each.sources if number in ids),
            round(each.confidence * 100),
            () if each.replaces is None else (each.replaces,),
        )
        for category, each in now.items()
    ]


def shares(
    organization_id: OrganizationId,
    space_id: SpaceId,
    what: Sequence[Candidate],
    said_by: Mapping[str, EntityId],
    people: frozenset[EntityId],
    agents: Sequence[AgentId],
) -> Iterator[Share]:
    """Yields what each owner is to remember. `said_by`: the people among the authors, by message.

    The order is always the same: passes over several conversations of one person lock the owners in this order.
    """
    everything = tuple(what)
    yield Share(Owner("conversation", organization_id, space_id=space_id), everything)
    by_person: defaultdict[EntityId, list[Candidate]] = defaultdict(list)
    for each in everything:
        # If one person talks with agents, it is about them; among several people, about the one who said it.
        authors = {said_by[source] for source in each.sources if source in said_by}
        whose = people if len(people) == 1 else authors
        if len(whose) == 1:
            by_person[next(iter(whose))].append(each)
    for person, theirs in sorted(by_person.items()):
        yield Share(Owner("user", organization_id, user_id=person), tuple(theirs))
        for agent_id in sorted(agents):
            yield Share(Owner("persona", organization_id, user_id=person, agent_id=agent_id), tuple(theirs))
    yield Share(Owner("organization", organization_id), everything)
