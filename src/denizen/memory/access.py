"""Memories as people see and change them, with permission checks. People reach memories only through these functions.

The HTTP API and `denizen.memory` call the same ones; this process may see and change everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.access import audit, openings
from denizen.access.requesters import Requester, find_agent, find_space
from denizen.consciousness.privacy import stand_in
from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId, SpaceId
from denizen.memory import history as history_of
from denizen.memory import items, rolling, stored_policies
from denizen.memory.audience import Owner
from denizen.memory.history import MemoryVersion
from denizen.memory.items import SNAPSHOT, Correction, MemoryItem
from denizen.memory.policy import OrganizationMemory, Policy, Scope
from denizen.spaces import directory
from denizen.storage.database import Tx, storable


def may_see(tx: Tx, memory: MemoryItem, who: Requester) -> bool:
    """Whether this person may see the memory.

    Members of a conversation see its memories, and a person sees their own. A memory between a person and an agent is
    seen by that person, and by those who manage agents unless it was learned in a private space they may not read.
    Everybody in an organization sees the organization's memories.
    """
    if not who.is_limited:
        return True
    if who.organization_id not in (None, memory.organization_id):
        return False
    match memory.scope:
        case "conversation":
            return directory.is_member(tx, memory.space_id, who.entity_id)
        case "user":
            return memory.user_id == who.entity_id
        case "persona":
            if memory.user_id == who.entity_id or not who.reaches("admin"):
                return memory.user_id == who.entity_id
            return openings.may_read_what_came_from(tx, SpaceId(memory.space_id), who.entity_id)
        case "organization":
            return who.reaches("member")


def may_change(tx: Tx, memory: MemoryItem, who: Requester) -> bool:
    """Whether this person may change the memory: everybody who may see it; for the organization's memories only its
    admins.
    """
    return may_see(tx, memory, who) and (memory.scope != "organization" or who.reaches("admin"))


def find(tx: Tx, who: Requester, memory_id: str) -> MemoryItem:
    """Returns the memory. Raises `NotFound` if this person may not see it."""
    memory = items.get(tx, storable(memory_id))
    if not may_see(tx, memory, who):
        raise NotFound("memory", memory_id)
    return memory


def find_changeable(tx: Tx, who: Requester, memory_id: str) -> MemoryItem:
    """Returns the memory if this person may change it."""
    memory = find(tx, who, memory_id)
    if not may_change(tx, memory, who):
        raise NotFound("memory", memory_id)
    return memory


def readable_owners(tx: Tx, who: Requester, scope: Scope, agent: str | None = None) -> list[str]:
    """Returns the owners of this scope whose memories the person may see: themselves, alone or with the agent; the
    organization; or each conversation they are in.
    """
    who.require("member")
    person = directory.get_entity(tx, who.entity_id)
    home = person.organization_id
    match scope:
        case "conversation":
            return [Owner(scope, home, space_id=each.id).key for each in directory.spaces_of(tx, person.id)]
        case "persona":
            if agent is None:
                raise InvalidInput("agent: say between you and which agent.")
            return [Owner(scope, home, user_id=person.id, agent_id=find_agent(tx, who, agent)).key]
        case "user" | "organization":
            return [Owner(scope, home, user_id=person.id).key]


def of_space(tx: Tx, who: Requester, space_id: str, *, before: int | None, limit: int) -> list[MemoryItem]:
    """Returns the conversation's own memories, the newest first, for people in it."""
    return items.owned(tx, f"conversation:{find_space(tx, who, space_id).id}", before=before, limit=limit)


def of_agent(tx: Tx, who: Requester, agent: str, *, before: int | None, limit: int) -> list[MemoryItem]:
    """Returns what the agent remembers of the person; for admins, of everyone, with stand-ins for what they may not
    see.
    """
    who.require("member")
    agent_id = find_agent(tx, who, agent)
    if who.reaches("admin"):
        found = items.of_agent(tx, agent_id, before=before, limit=limit)
        return [each if may_see(tx, each, who) else replace(each, text=stand_in(1)) for each in found]
    [owner] = readable_owners(tx, who, "persona", agent_id)
    return items.owned(tx, owner, before=before, limit=limit)


def set_policy(tx: Tx, who: Requester, space_id: str, policy: Policy) -> Policy:
    """Changes what may be remembered of a conversation, for people in it. Values that the policy does not set stay."""
    who.require("member")
    return stored_policies.settle(tx, find_space(tx, who, space_id).id, policy)


def change_switches(
    tx: Tx, who: Requester, organization_id: OrganizationId, changes: Mapping[str, object]
) -> OrganizationMemory:
    """Changes the organization's switches for long-term memory, for its admins. None resets one to its default."""
    who.require("admin")
    who.require_organization(organization_id)
    audit.record(tx, organization_id, who.actor, "change_organization_memory", fields=[*sorted(changes)])
    return stored_policies.change_organization(tx, organization_id, changes)


def owner_of(memory: MemoryItem) -> Owner:
    return Owner(memory.scope, memory.organization_id, SpaceId(memory.space_id), memory.user_id, memory.agent_id)


def correct(tx: Tx, by: Requester, memory_id: str, what: Correction) -> MemoryItem:
    """Corrects the memory, and its copies that belong to other owners as far as this person may change them.

    The old text is linked to the new one and is no longer found; the summary of the conversation is corrected as well.
    """
    return _correct(tx, by, find_changeable(tx, by, memory_id), what)


def _correct(tx: Tx, by: Requester, memory: MemoryItem, what: Correction) -> MemoryItem:
    if memory.kind == SNAPSHOT:
        raise InvalidInput("This is the summary of a whole conversation. Correct one of its items instead.")
    what = replace(what, by_id=by.optional_entity_id)
    for copy in items.copies_of(tx, memory):
        # What the owner of a copy has forgotten does not come back to them.
        if may_change(tx, copy, by) and not items.keeping_out(tx, copy.owner)(what.text):
            items.correct(tx, owner_of(copy), copy, what)
    rolling.reword(tx, memory.space_id, memory.text, what.text)
    return items.correct(tx, owner_of(memory), memory, what)


def history(tx: Tx, by: Requester, memory_id: str) -> list[MemoryVersion]:
    """Returns the versions of the memory, the oldest first, with stand-ins for those that this person may not see."""
    found = history_of.read(tx, find(tx, by, memory_id))
    hidden = [each for each in found if not may_see(tx, each.memory, by)]
    texts = {each.text for each in hidden}
    # What a version replaced may be hidden although the version itself is not.
    told = [replace(each, before="") if each.before in texts else each for each in found]
    return [_stood_in(each) if each.text in texts else each for each in told]


def _stood_in(version: MemoryVersion) -> MemoryVersion:
    change = replace(version.change, text=stand_in(1), by_id=None, sources=())
    return replace(version, change=change, before="", memory=replace(version.memory, text=stand_in(1), sources=()))


def revert(tx: Tx, by: Requester, memory_id: str, version_id: str) -> MemoryItem:
    """Makes the text of an earlier version hold again, as a correction of what holds now: nothing is undone.

    A version that was forgotten is gone. Raises `NotFound` then, or if this person may not see it.
    """
    found = history_of.read(tx, find_changeable(tx, by, memory_id))
    version = next((each for each in found if each.id == version_id), None)
    if version is None or not may_see(tx, version.memory, by):
        raise NotFound("version", version_id)
    now = next((each.memory for each in found if each.memory.superseded_by is None), None)
    if now is None or not may_change(tx, now, by):
        raise NotFound("memory", memory_id)
    if now.text == version.text:
        raise InvalidInput("This version is the current text. Choose an earlier one.")
    return _correct(tx, by, now, Correction(version.text, kind="reverted"))
