"""Who may see a memory, and who may change it: the one door to them for people."""

from __future__ import annotations

from denizen.access.roles import Role, reaches
from denizen.errors import NotFound
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, Remembered
from denizen.spaces import directory
from denizen.storage.database import Tx


def may_see(tx: Tx, memory: Remembered, who: EntityId, home: OrganizationId, role: Role) -> bool:
    """A conversation's those in it; a person's that person; between a person and an agent that person, and whoever
    looks after agents; the organization's its people."""
    if memory.organization_id != home:
        return False
    match memory.scope:
        case "conversation":
            return directory.is_member(tx, memory.space_id, who)
        case "user":
            return memory.user_id == who
        case "persona":
            return memory.user_id == who or reaches(role, "admin")
        case "organization":
            return reaches(role, "member")


def may_change(tx: Tx, memory: Remembered, who: EntityId, home: OrganizationId, role: Role) -> bool:
    """Whoever may see it; the organization's only its admins."""
    allowed = may_see(tx, memory, who, home, role)
    return allowed and (memory.scope != "organization" or reaches(role, "admin"))


def find(tx: Tx, memory_id: str, who: EntityId, home: OrganizationId, role: Role) -> Remembered:
    """The memory, if they may see it."""
    memory = items.get(tx, memory_id)
    if not may_see(tx, memory, who, home, role):
        raise NotFound("memory", memory_id)
    return memory


def owner_of(memory: Remembered) -> Owner:
    return Owner(memory.scope, memory.organization_id, SpaceId(memory.space_id), memory.user_id, memory.agent_id)


def correct(tx: Tx, memory: Remembered, text: str) -> Remembered:
    """The memory says this from now on; what it said before is linked to it, and is not found any more."""
    what = Candidate(memory.category, text, memory.sources, 100, (memory.text,))
    owner = owner_of(memory)
    items.remember(tx, owner, memory.space_id, [what])
    return items.by_text(tx, owner.key, text) or memory
