"""The audience of recalled memories: everyone in all the spaces of a cycle. Only what all of them may know is recalled.

A person's memory is for that person alone; one between a person and an agent, for the two; a conversation's, for its
members; the organization's, for its people. A service in the audience may know nothing: it may pass things on to
others. The same for a guest, who writes and reads through a bridge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from denizen.access.roles import Role
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.memory.policy import Scope
from denizen.memory.stored_policies import ASSERTED
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities, memberships, messages, spaces


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a memory."""

    scope: Scope
    organization_id: OrganizationId
    space_id: SpaceId | None = None
    user_id: EntityId | None = None
    agent_id: AgentId | None = None

    @property
    def key(self) -> str:
        match self.scope:
            case "conversation":
                return f"conversation:{self.space_id}"
            case "user":
                return f"user:{self.user_id}"
            case "persona":
                return f"persona:{self.user_id}:{self.agent_id}"
            case "organization":
                return f"organization:{self.organization_id}"


@dataclass(frozen=True, slots=True)
class Audience:
    """Everyone in some spaces."""

    spaces: frozenset[SpaceId]
    organizations: frozenset[OrganizationId]
    people: frozenset[EntityId]
    agents: frozenset[AgentId]
    services: bool
    """Whether a service or a guest is among them."""

    def owners(self, agent_id: AgentId) -> Iterator[Owner]:
        """Yields the owners whose memories this agent may be shown."""
        if len(self.organizations) != 1:
            return
        (home,) = self.organizations
        if len(self.spaces) == 1:
            yield Owner("conversation", home, space_id=next(iter(self.spaces)))
        if self.services:
            return
        if len(self.people) == 1:
            (person,) = self.people
            yield Owner("user", home, user_id=person)
            if self.agents <= {agent_id}:
                yield Owner("persona", home, user_id=person, agent_id=agent_id)
        yield Owner("organization", home)


_SPACES = [f"s{at}" for at in range(30)]
_there = statement(
    select(memberships.c.space_id, spaces.c.organization_id, entities.c.id, entities.c.kind, entities.c.role)
    .join(spaces, spaces.c.id == memberships.c.space_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(memberships.c.space_id.in_([bindparam(name, type_=spaces.c.id.type) for name in _SPACES]))
)


def audience(tx: Tx, space_ids: Iterable[str]) -> Audience | None:
    """Returns everyone in these spaces; None if there are no spaces, too many, or one without members."""
    wanted = sorted(set(space_ids))
    if not wanted or len(wanted) > len(_SPACES):
        return None
    rows = tx.all(_there, **{name: wanted[at] if at < len(wanted) else None for at, name in enumerate(_SPACES)})
    if {space_id for space_id, *_ in rows} != set(wanted):
        return None  # A space without members, or one that is gone: its audience is unknown.
    return Audience(
        frozenset(SpaceId(each) for each in wanted),
        frozenset(organization_id for _, organization_id, *_ in rows),
        frozenset(id for _, _, id, kind, _ in rows if kind == "human"),
        frozenset(id for _, _, id, kind, _ in rows if kind == "agent"),
        any(kind == "service" or role == "guest" for *_, kind, role in rows),
    )


@dataclass(frozen=True, slots=True)
class MessageAuthor:
    """The author of a message, and whether their request named the organization."""

    message_id: str
    """Their message."""
    id: EntityId
    kind: str
    role: Role
    asserted: bool


_MESSAGES = [f"m{at}" for at in range(50)]
_spoken = statement(
    select(messages.c.id, entities.c.id, entities.c.kind, entities.c.role, messages.c.metadata)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(
        messages.c.id.in_([bindparam(name, type_=messages.c.id.type) for name in _MESSAGES]),
        entities.c.left_at.is_(None),
    )
)


def speakers(tx: Tx, message_ids: Sequence[str]) -> list[MessageAuthor]:
    """Returns the authors of these messages, with their present roles."""
    rows: list[tuple[Any, ...]] = []
    for first in range(0, len(message_ids), len(_MESSAGES)):
        some = message_ids[first : first + len(_MESSAGES)]
        rows += tx.all(_spoken, **{name: some[at] if at < len(some) else None for at, name in enumerate(_MESSAGES)})
    return [MessageAuthor(message, id, kind, role, asserts(metadata)) for message, id, kind, role, metadata in rows]


def asserts(metadata: str | None) -> bool:
    """Whether the metadata of a message say that its request named the organization."""
    if not metadata or ASSERTED not in metadata:
        return False
    found: Any = json.loads(metadata).get(ASSERTED)
    return isinstance(found, dict) and found.get("organization") is True  # pyright: ignore[reportUnknownMemberType]
