"""Public agents for agents and programs elsewhere, by A2A (Agent2Agent): their cards, and tasks for them."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request, Response

from denizen.agents import public_tasks
from denizen.agents.registry import Agent
from denizen.server import a2a
from denizen.server.auth import Authenticated
from denizen.server.bodies import parse_json
from denizen.server.context import context_of
from denizen.server.reach import Visit
from denizen.server.router import new_router
from denizen.server.shapes.a2a import card_of
from denizen.spaces import directory
from denizen.storage.database import Tx

router = new_router()


# Not in the OpenAPI document: the protocol describes its own requests.
@router.get("/a2a/{agent_id}/.well-known/agent-card.json", include_in_schema=False)
async def get_agent_card(request: Request, agent_id: str) -> Response:
    """The card of an agent that was made public. No token is needed."""
    context = context_of(request)
    agent, organization = await context.runtime.db.read(_public, agent_id)
    visit = request.scope["visit"]
    assert isinstance(visit, Visit)
    base_url = visit.origin if context.reach.origin is None else context.runtime.public_url
    card = json.dumps(card_of(agent, base_url, organization))
    return Response(card, media_type="application/json", headers={"Cache-Control": "public, max-age=60"})


def _public(tx: Tx, agent_id: str) -> tuple[Agent, str]:
    agent = public_tasks.find_public(tx, agent_id)
    return agent, directory.get_organization(tx, agent.entity.organization_id).name


@router.post("/a2a/{agent_id}", include_in_schema=False)
async def answer_a2a(request: Request, caller: Authenticated, agent_id: str) -> Response:
    """Answers a JSON-RPC request of A2A: gives the agent a task, or returns, lists, cancels or follows tasks."""
    await context_of(request).runtime.db.read(public_tasks.find_public, agent_id)
    try:
        asked: Any = parse_json(await request.body())
    except ValueError:
        return a2a.invalid_json()
    return await a2a.answer(request, caller, agent_id, asked)
