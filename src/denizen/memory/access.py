"""Who may see a memory, and who may change it: the one door to them for people."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.access import openings
from denizen.access.roles import Role, reaches
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.memory import items, rolling
from denizen.memory.audience import Owner
from denizen.memory.items import SNAPSHOT, Remembered
from denizen.spaces import directory
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever wants to see a memory."""

    id: EntityId
    organization_id: OrganizationId
    role: Role
    """What they may do now: of themselves, and of the token they came with."""


def may_see(tx: Tx, memory: Remembered, who: Visitor) -> bool:
    """A conversation's those in it; a person's that person; between a person and an agent that person, and whoever
    looks after agents, unless it was learned in a private space that they may not read; the organization's its people.
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


def may_change(tx: Tx, memory: Remembered, who: Visitor) -> bool:
    """Whoever may see it; the organization's only its admins."""
    return may_see(tx, memory, who) and (memory.scope != "organization" or reaches(who.role, "admin"))


def find(tx: Tx, memory_id: str, who: Visitor) -> Remembered:
    """The memory, if they may see it."""
    memory = items.get(tx, memory_id)
    if not may_see(tx, memory, who):
        raise NotFound("memory", memory_id)
    return memory


def find_changeable(tx: Tx, memory_id: str, who: Visitor) -> Remembered:
    """The memory, if they may change it."""
    memory = find(tx, memory_id, who)
    if not may_change(tx, memory, who):
        raise NotFound("memory", memory_id)
    return memory


def owner_of(memory: Remembered) -> Owner:
    return Owner(memory.scope, memory.organization_id, SpaceId(memory.space_id), memory.user_id, memory.agent_id)


@dataclass(frozen=True, slots=True)
class Correction:
    """What a memory shall say, and what that means where an embedder says so."""

    text: str
    vector: bytes | None = None
    embedder: str = ""


def correct(tx: Tx, memory_id: str, by: Visitor, what: Correction) -> Remembered:
    """The memory says this from now on, whoever else has it, as far as they may change that.

    What it said before is linked to it, and is not found any more; what the conversation came to says it as well.
    """
    memory = find_changeable(tx, memory_id, by)
    if memory.kind == SNAPSHOT:
        raise InvalidInput("This is the summary of a whole conversation. Correct one of its items instead.")
    for copy in items.copies_of(tx, memory):
        if may_change(tx, copy, by):
            items.correct(tx, owner_of(copy), copy, what.text, what.vector, what.embedder)
    rolling.reword(tx, memory.space_id, memory.text, what.text)
    return items.correct(tx, owner_of(memory), memory, what.text, what.vector, what.embedder)
