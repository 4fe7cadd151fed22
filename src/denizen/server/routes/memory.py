"""What is remembered, and what is settled about it. Each memory has one door: `denizen.memory.access`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import Query, Request

from denizen.errors import InvalidInput
from denizen.memory import access, hygiene, items, rolling, settled, sinks
from denizen.memory.items import MemoryItem
from denizen.server.auth import Admin, Caller, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.routes.spaces import enter
from denizen.server.shapes.memory import (
    MemoryChange,
    OrganizationMemoryChange,
    PolicyChange,
    conversation_memory_out,
    memory_out,
    organization_memory_out,
    report_out,
)
from denizen.shapes.memory import ConversationMemory, MemoryOut, MemoryPage, OrganizationMemoryOut, ReportOut
from denizen.storage.database import Tx, storable

router = new_router()

Before = Annotated[str | None, Query(max_length=100, description="What `next` of the page before said.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Asked = Annotated[str | None, Query(alias="q", max_length=2_000, description="Only what fits this, the best first.")]
_EXTRA: Final = {"x-who": "people: what they may see"}


_Scope: TypeAlias = Literal["user", "persona", "organization", "conversation"]


@router.get("/api/memory", summary="What is remembered of you, or for everyone", openapi_extra=_EXTRA)
async def list_memories(
    request: Request,
    caller: Person,
    scope: _Scope = "user",
    agent: Annotated[
        str | None, Query(max_length=100, description="Of `persona`: which agent, by id or handle.")
    ] = None,
    query: Asked = None,
    before: Before = None,
    limit: Limit = 50,
) -> MemoryPage:
    """`user`: what is remembered of you. `persona`: between you and an agent. `organization`: for all its people.
    `conversation`: of the conversations that you are in."""
    runtime = context_of(request).runtime
    owners = await runtime.db.read(access.readable_owners, caller.requester, scope, agent)
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


@router.get("/api/memory/report", summary="What is wrong with what is remembered")
async def memory_report(request: Request, caller: Admin) -> ReportOut:
    """Doubles, junk, what nobody was ever reminded of, contradictions, by scope; by id, never what they say."""
    report = await context_of(request).runtime.db.read(hygiene.report, caller.entity.organization_id)
    return report_out(report)


@router.get("/api/memory/{memory_id}", summary="One memory", openapi_extra=_EXTRA)
async def get_memory(request: Request, caller: Person, memory_id: str) -> MemoryOut:
    return memory_out(await context_of(request).runtime.db.read(access.find, caller.requester, memory_id))


@router.patch("/api/memory/{memory_id}", summary="Correct a memory", openapi_extra=_EXTRA)
async def change_memory(request: Request, caller: Person, memory_id: str, change: MemoryChange) -> MemoryOut:
    """What it said before is linked to what it says now, and is not found any more."""
    runtime = context_of(request).runtime
    return memory_out(await runtime.memory.correct(memory_id, change.text, by=caller.requester))


@router.delete("/api/memory/{memory_id}", status_code=204, summary="Forget a memory", openapi_extra=_EXTRA)
async def forget_memory(request: Request, caller: Person, memory_id: str) -> None:
    """It is gone, whoever else has it, and does not come again. The messages it rests on stay."""
    await context_of(request).runtime.memory.forget(memory_id, by=caller.requester)


@router.get("/api/spaces/{space_id}/memory", summary="What a conversation came to")
async def get_conversation_memory(request: Request, caller: Person, space_id: str) -> ConversationMemory:
    """Its summary, up to which message it reaches, and what is settled about remembering it."""
    return await context_of(request).runtime.db.read(_conversation, caller, space_id)


@router.patch("/api/spaces/{space_id}/memory", summary="Settle what is remembered of a conversation")
async def change_conversation_memory(
    request: Request, caller: Person, space_id: str, change: PolicyChange
) -> ConversationMemory:
    """Opt out with `{"enabled": false}`. What is not sent stays as it is."""
    return await context_of(request).runtime.db.write(_settle, caller, space_id, change)


@router.get("/api/spaces/{space_id}/memories", summary="What was learned in a conversation")
async def list_conversation_memories(
    request: Request, caller: Person, space_id: str, before: Before = None, limit: Limit = 50
) -> MemoryPage:
    """What is the conversation's own."""
    read = context_of(request).runtime.db.read
    found = await read(access.of_space, caller.requester, space_id, before=_number(before), limit=limit + 1)
    return _page(found, limit)


def _conversation(tx: Tx, caller: Caller, space_id: str) -> ConversationMemory:
    space = enter(tx, space_id, caller.entity.id)
    return conversation_memory_out(rolling.find(tx, space.id), settled.policy_of(tx, space.id))


def _settle(tx: Tx, caller: Caller, space_id: str, change: PolicyChange) -> ConversationMemory:
    access.set_policy(tx, caller.requester, space_id, change.as_policy())
    return _conversation(tx, caller, space_id)


@router.get("/api/agents/{agent_id}/memories", summary="What an agent remembers of people", openapi_extra=_EXTRA)
async def list_agent_memories(
    request: Request, caller: Person, agent_id: str, before: Before = None, limit: Limit = 50
) -> MemoryPage:
    """Between it and you; for admins, between it and anyone."""
    read = context_of(request).runtime.db.read
    found = await read(access.of_agent, caller.requester, agent_id, before=_number(before), limit=limit + 1)
    return _page(found, limit)


@router.get("/api/organization/memory", summary="What is switched off of long-term memory")
async def get_organization_memory(request: Request, caller: Person) -> OrganizationMemoryOut:
    settings = await context_of(request).runtime.db.read(settled.organization_of, caller.entity.organization_id)
    return organization_memory_out(settings)


@router.patch("/api/organization/memory", summary="Switch long-term memory off, or on again")
async def change_organization_memory(
    request: Request, caller: Admin, change: OrganizationMemoryChange
) -> OrganizationMemoryOut:
    """It holds at once, for what is remembered and for what is brought back. What is not sent stays as it is."""
    changes, home = change.model_dump(exclude_unset=True), caller.entity.organization_id
    memory = context_of(request).runtime.memory
    return organization_memory_out(await memory.change_switches(changes, organization=home, by=caller.requester))
