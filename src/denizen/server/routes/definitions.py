"""Applies definition files to the caller's organization, and writes an agent as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from denizen.agents import applying, managing
from denizen.agents.documents import plain
from denizen.agents.files import declare
from denizen.portability.hiding import DefinitionWithoutSecrets
from denizen.server.auth import Admin, Caller
from denizen.server.router import new_router
from denizen.server.shapes.definitions import Apply, applied_out
from denizen.shapes.definitions import Applied, DocumentOut
from denizen.storage.database import Tx

router = new_router()


@router.post(
    "/api/apply",
    summary="Apply definitions of agents, spaces and people",
    openapi_extra={"x-who": "admins and owners; some parts of definitions: see below"},
)
async def apply(caller: Admin, wanted: Apply) -> Applied:
    """Applies all documents or, if there is an error, none. What the documents do not name stays unchanged.

    You are a member of spaces that are created. You must be a member of spaces that exist; a private space without you
    is treated as if it did not exist.
    """
    runtime = caller.runtime
    declared = declare((each.place, each.document) for each in wanted.documents)
    changes = await runtime.agents.apply(
        declared,
        dry_run=wanted.dry_run,
        creator=caller.entity,
        organization=caller.entity.organization_id,
        by=caller.requester,
    )
    return applied_out(changes, declared, runtime.tool_names, dry_run=wanted.dry_run)


@router.get("/api/agents/{agent_id}/document", summary="Get an agent as a definition document")
async def get_document(caller: Admin, agent_id: str) -> DocumentOut:
    """Its definition, spaces, goals and plans, in the format of a definition file, without private spaces that you are
    not a member of.

    A secret in the definition is replaced by a name such as `${WEATHER_AUTHORIZATION}`.
    """
    return DocumentOut(document=await caller.runtime.db.read(_document, agent_id, caller))


def _document(tx: Tx, agent_id: str, caller: Caller) -> Mapping[str, Any]:
    agent = managing.find(tx, caller.requester, agent_id)
    document = applying.document_of(tx, caller.entity.organization_id, agent.entity.handle, caller.entity.id)
    hidden = DefinitionWithoutSecrets(agent.definition).definition
    return {name: hidden.get(name, each) for name, each in cast("dict[str, Any]", plain(document)).items()}
