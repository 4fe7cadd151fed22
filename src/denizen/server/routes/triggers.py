"""Sends an event of another service to an agent."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from denizen.agents import managing
from denizen.ids import AgentId, new_id
from denizen.server.auth import Authenticated, Caller
from denizen.server.idempotency import IdempotencyKey
from denizen.server.inline_files import file_in, store_all
from denizen.server.router import new_router
from denizen.server.shapes.agents import TriggerAgent
from denizen.shapes.webhooks import TriggerAccepted
from denizen.storage.database import storable

router = new_router()

_KEYS: Final = UUID("0a5a3c0e-6a0b-4f6e-9a57-5d2f4f1f7c3b")
"""Under which idempotency keys, and ids of services, become the ids of events."""


@router.post(
    "/api/agents/{agent_id}/trigger",
    status_code=202,
    summary="Send an event to an agent",
    openapi_extra={"x-who": "everyone with a token, except guests"},
)
async def trigger(
    caller: Authenticated, agent_id: str, event: TriggerAgent, key: IdempotencyKey = None
) -> TriggerAccepted:
    """When this returns, the event is in the agent's inbox and wakes it. `agent_id` is an id or an `@handle`."""
    runtime = caller.runtime
    managing.check_may_trigger(caller.requester)
    chosen = _event_id(caller, event, key)
    given = [file_in(f"files[{at}]", each) for at, each in enumerate(event.files)]
    await caller.read(managing.find, agent_id)  # Before anything is stored for it.
    files = await store_all(runtime, caller.entity.id, given, chosen)
    await runtime.agents.trigger(
        AgentId(agent_id),
        event.service,
        event.data,
        text=event.text,
        id=chosen,
        urgent=event.urgent,
        must_match=key is not None and event.id is None,
        files=files,
        by=caller.requester,
    )
    return TriggerAccepted(id=chosen)


def _event_id(caller: Caller, event: TriggerAgent, key: str | None) -> str:
    """Made from what the caller calls it, so that nobody can take another's id."""
    if event.id is not None:
        return str(uuid5(_KEYS, storable(f"{caller.entity.id} id {event.service}\n{event.id}")))
    return new_id() if key is None else str(uuid5(_KEYS, f"{caller.entity.id} key {key}"))
