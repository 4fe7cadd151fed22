"""The requester of a change, for permission checks: a member of an organization with a role, or this process itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from denizen.access import roles
from denizen.access.audit import OPERATOR, Actor
from denizen.access.roles import Role
from denizen.errors import NotAllowed
from denizen.ids import OrganizationId


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester of a change: the actor in the audit log, the organization, and the role there."""

    actor: Actor
    organization_id: OrganizationId | None = None
    """None: not of a particular organization, and allowed in all of them."""
    role: Role | None = None
    """None: not limited by a role."""

    def require(self, wanted: Role) -> None:
        """Raises `NotAllowed` unless the requester's role reaches this one."""
        if self.role is not None and not roles.reaches(self.role, wanted):
            whose = "people" if wanted == "member" else f"{wanted}s"
            raise NotAllowed(f"Only {whose} of the organization can do this. Your role is {self.role}.")


THIS_PROCESS: Final = Requester(OPERATOR)
"""The program that opened the runtime: it has the database, and may do everything."""
