"""What is remembered, and what is settled about it. Each memory has one door: `denizen.memory.access`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Query, Request

from denizen.access import audit
from denizen.access.roles import reaches
from denizen.consciousness.privacy import stand_in
from denizen.errors import InvalidInput
from denizen.ids import SpaceId
from denizen.memory import access, hygiene, items, rolling, settled, sinks
from denizen.memory.access import Correction, Visitor
from denizen.memory.audience import Owner
from denizen.memory.items import MemoryItem
from denizen.memory.policy import OrganizationMemory
from denizen.server.auth import Admin, Caller, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.routes.spaces import enter
from denizen.server.routes.triggers import find_agent
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
from denizen.spaces import directory
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
    owners = await runtime.db.read(_owners, caller, scope, agent)
    if query is not None:
        found = await sinks.look(runtime.db, runtime.embedder, storable(query), owners, limit)
        return MemoryPage(memories=[memory_out(each.item) for each in found], next=None)
    return _page(await runtime.db.read(_newest, owners, _number(before), limit + 1), limit)


def _owners(tx: Tx, caller: Caller, scope: _Scope, agent: str | None) -> list[str]:
    home, who = caller.entity.organization_id, caller.entity.id
    if scope == "conversation":
        return [Owner(scope, home, space_id=each.id).key for each in directory.spaces_of(tx, who)]
    if scope == "persona":
        if agent is None:
            raise InvalidInput("agent: say between you and which agent.")
        return [Owner(scope, home, user_id=who, agent_id=find_agent(tx, agent, caller).id).key]
    return [Owner(scope, home, user_id=who).key]


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
    return memory_out(await context_of(request).runtime.db.read(access.find, storable(memory_id), _visitor(caller)))


@router.patch("/api/memory/{memory_id}", summary="Correct a memory", openapi_extra=_EXTRA)
async def change_memory(request: Request, caller: Person, memory_id: str, change: MemoryChange) -> MemoryOut:
    """What it said before is linked to what it says now, and is not found any more."""
    runtime = context_of(request).runtime
    text = storable(change.text)
    vectors = await sinks.vectors_of(runtime.embedder, [text])
    what = Correction(text, vectors.get(text), "" if runtime.embedder is None else runtime.embedder.name)
    return memory_out(await runtime.db.write(access.correct, storable(memory_id), _visitor(caller), what))


@router.delete("/api/memory/{memory_id}", status_code=204, summary="Forget a memory", openapi_extra=_EXTRA)
async def forget_memory(request: Request, caller: Person, memory_id: str) -> None:
    """It is gone, whoever else has it, and does not come again. The messages it rests on stay."""
    visitor = _visitor(caller)
    await context_of(request).runtime.memory.forget(storable(memory_id), by=visitor.id, visitor=visitor)


def _visitor(caller: Caller) -> Visitor:
    return Visitor(caller.entity.id, caller.entity.organization_id, caller.role)


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
    owner = await context_of(request).runtime.db.read(_owner_of_space, caller, space_id)
    found = await context_of(request).runtime.db.read(items.owned, owner, before=_number(before), limit=limit + 1)
    return _page(found, limit)


def _owner_of_space(tx: Tx, caller: Caller, space_id: str) -> str:
    return f"conversation:{enter(tx, space_id, caller.entity.id).id}"


def _conversation(tx: Tx, caller: Caller, space_id: str) -> ConversationMemory:
    space = enter(tx, space_id, caller.entity.id)
    return conversation_memory_out(rolling.find(tx, space.id), settled.policy_of(tx, space.id))


def _settle(tx: Tx, caller: Caller, space_id: str, change: PolicyChange) -> ConversationMemory:
    space = enter(tx, space_id, caller.entity.id)
    settled.settle(tx, SpaceId(space.id), change.as_policy())
    return _conversation(tx, caller, space_id)


@router.get("/api/agents/{agent_id}/memories", summary="What an agent remembers of people", openapi_extra=_EXTRA)
async def list_agent_memories(
    request: Request, caller: Person, agent_id: str, before: Before = None, limit: Limit = 50
) -> MemoryPage:
    """Between it and you; for admins, between it and anyone."""
    found = await context_of(request).runtime.db.read(_of_agent, caller, agent_id, _number(before), limit + 1)
    return _page(found, limit)


def _of_agent(tx: Tx, caller: Caller, agent_id: str, before: int | None, limit: int) -> list[MemoryItem]:
    agent = find_agent(tx, agent_id, caller)
    if reaches(caller.role, "admin"):
        visitor = _visitor(caller)
        found = items.of_agent(tx, agent.id, before=before, limit=limit)
        return [each if access.may_see(tx, each, visitor) else replace(each, text=stand_in(1)) for each in found]
    owner = Owner("persona", caller.entity.organization_id, user_id=caller.entity.id, agent_id=agent.id)
    return items.owned(tx, owner.key, before=before, limit=limit)


@router.get("/api/organization/memory", summary="What is switched off of long-term memory")
async def get_organization_memory(request: Request, caller: Person) -> OrganizationMemoryOut:
    settings = await context_of(request).runtime.db.read(settled.organization_of, caller.entity.organization_id)
    return organization_memory_out(settings)


@router.patch("/api/organization/memory", summary="Switch long-term memory off, or on again")
async def change_organization_memory(
    request: Request, caller: Admin, change: OrganizationMemoryChange
) -> OrganizationMemoryOut:
    """It holds at once, for what is remembered and for what is brought back. What is not sent stays as it is."""
    changes = change.model_dump(exclude_unset=True)
    return organization_memory_out(await context_of(request).runtime.db.write(_change_organization, caller, changes))


def _change_organization(tx: Tx, caller: Caller, changes: dict[str, Any]) -> OrganizationMemory:
    home = caller.entity.organization_id
    audit.record(tx, home, caller.actor, "change_organization_memory", fields=[*sorted(changes)])
    return settled.change_organization(tx, home, changes)
