"""The requester of a change, for permission checks: a member of an organization with a role, or this process itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from denizen.access import roles
from denizen.access.audit import OPERATOR, Actor
from denizen.access.roles import Role
from denizen.errors import NotAllowed, NotFound
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.spaces import directory
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, select_where, storable
from denizen.storage.schema import agents


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester of a change: the actor in the audit log, the organization, the role there, and the entity."""

    actor: Actor
    organization_id: OrganizationId | None = None
    """None: not of a particular organization, and allowed in all of them."""
    role: Role | None = None
    """None: not limited by a role."""
    acts_as: EntityId | None = None
    """The person, agent or service that it acts as, where the audit log does not name it; see `entity_id`."""

    @property
    def entity_id(self) -> EntityId:
        """The person, agent or service that speaks and joins. Raises `NotAllowed` if the requester is none."""
        if self.optional_entity_id is None:
            raise NotAllowed("Only a person, an agent or a service can do this. Say in whose name.")
        return self.optional_entity_id

    @property
    def optional_entity_id(self) -> EntityId | None:
        """The same, or None."""
        return self.acts_as or self.actor.entity_id

    @property
    def is_limited(self) -> bool:
        """Whether the requester has the permissions of a role in an organization, not those of this process."""
        return self.organization_id is not None or self.role is not None

    def acting_as(self, entity_id: EntityId) -> Requester:
        """The same requester, acting as this person, agent or service."""
        return replace(self, acts_as=entity_id)

    def require(self, wanted: Role) -> None:
        """Raises `NotAllowed` unless the requester's role reaches this one."""
        if not self.reaches(wanted):
            whose = "people" if wanted == "member" else f"{wanted}s"
            raise NotAllowed(f"Only {whose} of the organization can do this. Your role is {self.role}.")

    def require_organization(self, organization_id: OrganizationId) -> None:
        """Raises `NotFound` for another organization than the requester's."""
        if self.organization_id not in (None, organization_id):
            raise NotFound("organization", organization_id)

    def home(self, tx: Tx) -> OrganizationId:
        """The requester's organization; of this process, that of the one whom it acts as."""
        return self.organization_id or directory.get_entity(tx, self.entity_id).organization_id

    def reaches(self, wanted: Role) -> bool:
        """Whether the requester has the permissions of this role."""
        return self.role is None or roles.reaches(self.role, wanted)


THIS_PROCESS: Final = Requester(OPERATOR)
"""The program that opened the runtime: it has the database, and may do everything."""


_agent = select_where(agents, "organization_id, status", "id")


def find_agent(tx: Tx, by: Requester, named: str, *, also_dead: bool = False) -> AgentId:
    """The agent of this id or, in the requester's organization, of this `@handle`.

    Raises `NotFound` for an agent of another organization as for one that does not exist. A deleted agent is found only
    with `also_dead`.
    """
    wanted, home = storable(named), by.organization_id
    if home is None or not wanted.startswith("@"):
        return _agent_of_id(tx, by, wanted, also_dead)
    try:
        return _agent_of_id(tx, by, directory.find_entity(tx, home, wanted).id, also_dead)
    except NotFound:
        raise directory.no_such_handle(tx, home, wanted, "agent") from None


def _agent_of_id(tx: Tx, by: Requester, id: str, also_dead: bool) -> AgentId:
    row = tx.one(_agent, id=id)
    if row is not None:
        organization_id, status = row
        if by.organization_id in (None, organization_id) and (also_dead or status != "dead"):
            return AgentId(id)
    raise NotFound("agent", id)


def agent_id_of(tx: Tx, by: Requester, named: str) -> str:
    """What `find_agent` understands: programs and models write the handle without its `@`."""
    try:
        return (
            named if by.organization_id is None else directory.find_entity(tx, by.organization_id, storable(named)).id
        )
    except NotFound:
        return named


def find_managed_agent(tx: Tx, by: Requester, named: str) -> AgentId:
    """The same for admins only, who may change agents. Raises `NotAllowed` for others."""
    by.require("admin")
    return find_agent(tx, by, named)


def find_space(tx: Tx, by: Requester, space_id: str) -> Space:
    """The space, if the requester is in it; this process finds every space.

    Raises the same `NotFound` for a space that does not exist and for one that the requester is not in.
    """
    wanted = SpaceId(storable(space_id))
    if by == THIS_PROCESS:
        return directory.get_space(tx, wanted)
    return directory.require_member(tx, wanted, by.entity_id)
