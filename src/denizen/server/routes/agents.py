"""The agents of the caller's organization."""

from __future__ import annotations

from fastapi import APIRouter, Request

from denizen.agents import registry
from denizen.server.auth import Authenticated
from denizen.server.context import context_of
from denizen.server.schemas import AgentList, AgentOut

router = APIRouter()


@router.get("/api/agents", summary="The agents of your organization")
async def list_agents(request: Request, caller: Authenticated) -> AgentList:
    db = context_of(request).runtime.db
    found = await db.read(registry.living_agents, caller.entity.organization_id)
    return AgentList(agents=[AgentOut.of(agent, status) for agent, status in found])
