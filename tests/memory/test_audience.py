"""Retrieval never returns what the audience may not see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.memory.audience import Audience, Owner

HOME = OrganizationId("home")
PEOPLE = [EntityId(name) for name in ("noor", "sam")]
AGENTS = [AgentId(name) for name in ("ada", "bee")]
SPACES = [SpaceId(name) for name in ("kitchen", "study")]
OWNERS = [
    *(Owner("conversation", HOME, space_id=each) for each in SPACES),
    *(Owner("user", HOME, user_id=each) for each in PEOPLE),
    *(Owner("persona", HOME, user_id=each, agent_id=agent) for each in PEOPLE for agent in AGENTS),
    Owner("organization", HOME),
    Owner("organization", OrganizationId("elsewhere")),
]

audiences = st.builds(
    Audience,
    st.frozensets(st.sampled_from(SPACES), min_size=1),
    st.sampled_from([frozenset({HOME}), frozenset({HOME, OrganizationId("elsewhere")})]),
    st.frozensets(st.sampled_from(PEOPLE)),
    st.frozensets(st.sampled_from(AGENTS)),
    st.booleans(),
)


def may_know(owner: Owner, audience: Audience, agent_id: AgentId) -> bool:
    """Whether everyone there may know it, asked of each of them."""
    if audience.organizations != {owner.organization_id}:
        return False
    if owner.scope == "conversation":
        return audience.spaces == {owner.space_id}
    if audience.services:
        return False
    if owner.scope == "organization":
        return True
    everyone_is_them = bool(audience.people) and all(person == owner.user_id for person in audience.people)
    if owner.scope == "user":
        return everyone_is_them
    return everyone_is_them and owner.agent_id == agent_id and all(agent == agent_id for agent in audience.agents)


@given(audience=audiences, agent_id=st.sampled_from(AGENTS))
def test_exactly_what_everyone_may_know_is_looked_at(audience: Audience, agent_id: AgentId) -> None:
    looked_at = {each.key for each in audience.owners(agent_id)}
    assert looked_at == {each.key for each in OWNERS if may_know(each, audience, agent_id)}
