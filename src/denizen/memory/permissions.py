"""What may be remembered and recalled now, by the conversation's policy, its organization's settings and the
speakers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from denizen.access.roles import PERSONAL, Role, reaches
from denizen.ids import AgentId, SpaceId
from denizen.memory import audience, stored_policies
from denizen.memory.audience import MessageAuthor, Owner
from denizen.memory.documents import SHARED
from denizen.memory.items import Candidate
from denizen.memory.policy import SCOPES, Circumstances, Decision, OrganizationMemory, Scope, decide
from denizen.spaces import directory
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Grant:
    """The scopes that a conversation may write to or read from, and why not the others."""

    decisions: Mapping[Scope, Decision]
    categories: tuple[str, ...] = SHARED
    """The categories that may be shared with the organization."""

    def may_write(self, scope: Scope) -> bool:
        return self.decisions[scope].write == "yes"


def for_writing(tx: Tx, space_id: SpaceId, message_ids: Sequence[str]) -> Grant:
    """Decides what may be remembered from these messages of a conversation."""
    return _grant(tx, [space_id], audience.speakers(tx, message_ids))


def could_write(tx: Tx, space_id: SpaceId) -> bool:
    """Whether anything of the conversation might be remembered, if the right person says it."""
    home = directory.get_space(tx, space_id).organization_id
    given = Circumstances(True, True, "owner", stored_policies.organization_of(tx, home))
    policy = stored_policies.policy_of(tx, space_id)
    return any(decide(policy, scope, given).write == "yes" for scope in SCOPES)


def publishable(tx: Tx, grant: Grant, given: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates that may be shared with the organization: in its categories, and said by an admin who
    named it.

    So nobody can publish what others said by speaking in the same conversation.
    """
    heard = audience.speakers(tx, list(dict.fromkeys(source for each in given for source in each.sources)))
    theirs = {
        each.message_id for each in heard if each.kind == "human" and each.asserted and reaches(each.role, "admin")
    }
    return [each for each in given if each.category in grant.categories and theirs.intersection(each.sources)]


def for_reading(tx: Tx, space_ids: Sequence[SpaceId], message_ids: Sequence[str]) -> Grant:
    """Decides what may be recalled in these spaces to answer these messages: only what all of them allow."""
    return _grant(tx, space_ids, audience.speakers(tx, message_ids))


def _grant(tx: Tx, space_ids: Sequence[SpaceId], heard: Sequence[MessageAuthor]) -> Grant:
    people = [each for each in heard if each.kind == "human"]
    asserting = [each for each in people if each.asserted]
    decisions: dict[Scope, Decision] = {}
    settings: OrganizationMemory | None = None
    for space_id in space_ids:
        home = directory.get_space(tx, space_id).organization_id
        settings = stored_policies.organization_of(tx, home)
        given = Circumstances(bool(people), bool(asserting), _mightiest(asserting), settings)
        policy = stored_policies.policy_of(tx, space_id)
        for scope in SCOPES:
            decisions[scope] = _both(decisions.get(scope), decide(policy, scope, given))
    return Grant(decisions, settings.categories if settings is not None else ())


def _mightiest(asserting: Sequence[MessageAuthor]) -> Role | None:
    roles = {each.role for each in asserting}
    return next((role for role in PERSONAL if role in roles), None)


def _both(one: Decision | None, other: Decision) -> Decision:
    if one is None:
        return other
    write = one.write if one.write != "yes" else other.write
    return Decision(write, one.read if one.read != "yes" else other.read)


@dataclass(frozen=True, slots=True)
class Readable:
    """The owners whose memories an agent may be shown, with the decisions behind it."""

    owners: tuple[Owner, ...]
    grant: Grant


def readable(tx: Tx, agent_id: AgentId, space_ids: Sequence[SpaceId], message_ids: Sequence[str]) -> Readable:
    """Returns the owners whose memories this agent may be shown in a cycle with these spaces and messages."""
    hearing = audience.audience(tx, space_ids)
    if hearing is None:
        return Readable((), Grant({scope: Decision("opted_out", "opted_out") for scope in SCOPES}))
    grant = for_reading(tx, sorted(hearing.spaces), message_ids)
    owners = [each for each in hearing.owners(agent_id) if grant.decisions[each.scope].read == "yes"]
    return Readable(tuple(owners), grant)
