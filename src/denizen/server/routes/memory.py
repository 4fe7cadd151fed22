"""Memories and memory policies. All access to memories goes through `denizen.memory.access`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import Query

from denizen.access.requesters import find_space
from denizen.errors import InvalidInput
from denizen.memory import access, hygiene, items, rolling, sinks, stored_policies
from denizen.memory.items import MemoryItem
from denizen.server.auth import Admin, Caller, Person
from denizen.server.router import new_router
from denizen.server.shapes.memory import (
    MemoryChange,
    OrganizationMemoryChange,
    PolicyChange,
    RevertMemory,
    conversation_memory_out,
    history_out,
    memory_out,
    organization_memory_out,
    report_out,
)
from denizen.shapes.memory import (
    ConversationMemory,
    MemoryHistory,
    MemoryOut,
    MemoryPage,
    OrganizationMemoryOut,
    ReportOut,
)
from denizen.storage.database import Tx, storable

router = new_router()

Before = Annotated[str | None, Query(max_length=100, description="What `next` of the page before said.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Asked = Annotated[str | None, Query(alias="q", max_length=2_000, description="Only what fits this, the best first.")]
_EXTRA: Final = {"x-who": "people: what they may see"}


_Scope: TypeAlias = Literal["user", "persona", "organization", "conversation"]


@router.get("/api/memory", summary="List memories", openapi_extra=_EXTRA)
async def list_memories(
    caller: Person,
    scope: _Scope = "user",
    agent: Annotated[
        str | None, Query(max_length=100, description="Of `persona`: which agent, by id or handle.")
    ] = None,
    query: Asked = None,
    before: Before = None,
    limit: Limit = 50,
) -> MemoryPage:
    """`user`: about you. `persona`: between you and an agent. `organization`: for everyone in it. `conversation`:
    of the conversations that you are in.
    """
    runtime = caller.runtime
    owners = await caller.read(access.readable_owners, scope, agent)
    if query is not None:
        found = await sinks.look(runtime.db, runtime.embedder, storable(query), owners, limit)
        return MemoryPage(memories=[memory_out(each.item) for each in found], next=None)
    return _page(await runtime.db.read(_newest, owners, _number(before), limit + 1), limit)


def _newest(tx: Tx, owners: Sequence[str], before: int | None, limit: int) -> list[MemoryItem]:
    found = [each for owner in owners for each in items.owned(tx, owner, before=before, limit=limit)]
    return sorted(found, key=lambda each: -each.number)[:limit]


def _number(before: str | None) -> int | None:
    if before is None:
        return None
    if not before.isdecimal() or len(before) > 18:
        raise InvalidInput("before: use the value of `next` from the previous page.")
    return int(before)


def _page(found: Sequence[MemoryItem], limit: int) -> MemoryPage:
    page = found[:limit]
    more = str(page[-1].number) if len(found) > limit else None
    return MemoryPage(memories=[memory_out(each) for each in page], next=more)


@router.get("/api/memory/report", summary="Get a report on the quality of memories")
async def memory_report(caller: Admin) -> ReportOut:
    """Duplicates, junk, unused memories and contradictions, by scope. It contains ids, never texts."""
    report = await caller.runtime.db.read(hygiene.report, caller.entity.organization_id)
    return report_out(report)


@router.get("/api/memory/{memory_id}", summary="Get a memory", openapi_extra=_EXTRA)
async def get_memory(caller: Person, memory_id: str) -> MemoryOut:
    return memory_out(await caller.read(access.find, memory_id))


@router.patch("/api/memory/{memory_id}", summary="Correct a memory", openapi_extra=_EXTRA)
async def change_memory(caller: Person, memory_id: str, change: MemoryChange) -> MemoryOut:
    """The old text is linked to the new one, and is no longer found."""
    return memory_out(await caller.runtime.memory.correct(memory_id, change.text, by=caller.requester))


@router.get("/api/memory/{memory_id}/history", summary="Get the history of a memory", openapi_extra=_EXTRA)
async def get_memory_history(caller: Person, memory_id: str) -> MemoryHistory:
    """Its versions, the oldest first: what changed it, when, and why. What was forgotten is not in it."""
    return history_out(await caller.runtime.memory.history(memory_id, by=caller.requester))


@router.post("/api/memory/{memory_id}/revert", summary="Revert a memory to an earlier version", openapi_extra=_EXTRA)
async def revert_memory(caller: Person, memory_id: str, wanted: RevertMemory) -> MemoryOut:
    """The text of that version holds again, as one more change of the memory."""
    reverted = await caller.runtime.memory.revert(memory_id, wanted.version, by=caller.requester)
    return memory_out(reverted)


@router.delete("/api/memory/{memory_id}", status_code=204, summary="Forget a memory", openapi_extra=_EXTRA)
async def forget_memory(caller: Person, memory_id: str) -> None:
    """Removes it and its copies; it is not learned again. The messages that it came from stay."""
    await caller.runtime.memory.forget(memory_id, by=caller.requester)


@router.get("/api/spaces/{space_id}/memory", summary="Get the summary of a conversation")
async def get_conversation_memory(caller: Person, space_id: str) -> ConversationMemory:
    """The summary, the last message that it covers, and the memory settings of the conversation."""
    return await caller.runtime.db.read(_conversation, caller, space_id)


@router.patch("/api/spaces/{space_id}/memory", summary="Change the memory settings of a conversation")
async def change_conversation_memory(caller: Person, space_id: str, change: PolicyChange) -> ConversationMemory:
    """`{"enabled": false}` opts out. Fields that are not sent stay unchanged."""
    return await caller.runtime.db.write(_settle, caller, space_id, change)


@router.get("/api/spaces/{space_id}/memories", summary="List the memories of a conversation")
async def list_conversation_memories(
    caller: Person, space_id: str, before: Before = None, limit: Limit = 50
) -> MemoryPage:
    """Only memories that belong to the conversation itself."""
    found = await caller.read(access.of_space, space_id, before=_number(before), limit=limit + 1)
    return _page(found, limit)


def _conversation(tx: Tx, caller: Caller, space_id: str) -> ConversationMemory:
    space = find_space(tx, caller.requester, space_id)
    return conversation_memory_out(rolling.find(tx, space.id), stored_policies.policy_of(tx, space.id))


def _settle(tx: Tx, caller: Caller, space_id: str, change: PolicyChange) -> ConversationMemory:
    access.set_policy(tx, caller.requester, space_id, change.as_policy())
    return _conversation(tx, caller, space_id)


@router.get(
    "/api/agents/{agent_id}/memories", summary="List the memories of an agent about people", openapi_extra=_EXTRA
)
async def list_agent_memories(caller: Person, agent_id: str, before: Before = None, limit: Limit = 50) -> MemoryPage:
    """Those between the agent and you; for admins, between the agent and anyone."""
    found = await caller.read(access.of_agent, agent_id, before=_number(before), limit=limit + 1)
    return _page(found, limit)


@router.get("/api/organization/memory", summary="Get the long-term memory settings of your organization")
async def get_organization_memory(caller: Person) -> OrganizationMemoryOut:
    settings = await caller.runtime.db.read(stored_policies.organization_of, caller.entity.organization_id)
    return organization_memory_out(settings)


@router.patch("/api/organization/memory", summary="Change the long-term memory settings of your organization")
async def change_organization_memory(caller: Admin, change: OrganizationMemoryChange) -> OrganizationMemoryOut:
    """Takes effect at once, for storing and for recalling. Fields that are not sent stay unchanged."""
    changes, home = change.model_dump(exclude_unset=True), caller.entity.organization_id
    memory = caller.runtime.memory
    return organization_memory_out(await memory.change_switches(changes, organization=home, by=caller.requester))
