"""Permission checks on memories: who may see one, and who may change it. People reach memories only through these."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.access import openings
from denizen.access.roles import Role, reaches
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.memory import items, rolling
from denizen.memory.audience import Owner
from denizen.memory.items import SNAPSHOT, MemoryItem
from denizen.spaces import directory
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Visitor:
    """The person who asks for a memory."""

    id: EntityId
    organization_id: OrganizationId
    role: Role
    """Their effective role: their own, limited by the token they used."""


def may_see(tx: Tx, memory: MemoryItem, who: Visitor) -> bool:
    """Whether this person may see the memory.

    Members of a conversation see its memories, and a person sees their own. A memory between a person and an agent is
    seen by that person, and by those who manage agents unless it was learned in a private space they may not read.
    Everybody in an organization sees the organization's memories.
    """
    if memory.organization_id != who.organization_id:
        return False
    match memory.scope:
        case "conversation":
            return directory.is_member(tx, memory.space_id, who.id)
        case "user":
            return memory.user_id == who.id
        case "persona":
            if memory.user_id == who.id or not reaches(who.role, "admin"):
                return memory.user_id == who.id
            return openings.may_read_what_came_from(tx, SpaceId(memory.space_id), who.id)
        case "organization":
            return reaches(who.role, "member")


def may_change(tx: Tx, memory: MemoryItem, who: Visitor) -> bool:
    """Whether this person may change the memory: whoever may see it; for the organization's memories only its
    admins.
    """
    return may_see(tx, memory, who) and (memory.scope != "organization" or reaches(who.role, "admin"))


def find(tx: Tx, memory_id: str, who: Visitor) -> MemoryItem:
    """Returns the memory. Raises `NotFound` if this person may not see it."""
    memory = items.get(tx, memory_id)
    if not may_see(tx, memory, who):
        raise NotFound("memory", memory_id)
    return memory


def find_changeable(tx: Tx, memory_id: str, who: Visitor) -> MemoryItem:
    """Returns the memory if this person may change it."""
    memory = find(tx, memory_id, who)
    if not may_change(tx, memory, who):
        raise NotFound("memory", memory_id)
    return memory


def owner_of(memory: MemoryItem) -> Owner:
    return Owner(memory.scope, memory.organization_id, SpaceId(memory.space_id), memory.user_id, memory.agent_id)


@dataclass(frozen=True, slots=True)
class Correction:
    """The corrected text of a memory, with its vector if there is an embedder."""

    text: str
    vector: bytes | None = None
    embedder: str = ""


def correct(tx: Tx, memory_id: str, by: Visitor, what: Correction) -> MemoryItem:
    """Corrects the memory, and its copies that belong to other owners as far as this person may change them.

    The old text is linked to the new one and is no longer found; the summary of the conversation is corrected as well.
    """
    memory = find_changeable(tx, memory_id, by)
    if memory.kind == SNAPSHOT:
        raise InvalidInput("This is the summary of a whole conversation. Correct one of its items instead.")
    for copy in items.copies_of(tx, memory):
        if may_change(tx, copy, by):
            items.correct(tx, owner_of(copy), copy, what.text, what.vector, what.embedder)
    rolling.reword(tx, memory.space_id, memory.text, what.text)
    return items.correct(tx, owner_of(memory), memory, what.text, what.vector, what.embedder)
