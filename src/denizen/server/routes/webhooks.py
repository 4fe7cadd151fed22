"""Creates, lists and revokes webhooks, and receives the requests of services."""

from __future__ import annotations

from fastapi import Request, Response

from denizen.access import webhooks
from denizen.access.requesters import find_agent
from denizen.access.webhooks import Webhook
from denizen.agents import managing
from denizen.errors import NotFound
from denizen.server.auth import Admin, Caller
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.webhooks import CreateWebhook, webhook_out
from denizen.shapes.examples import text_answer
from denizen.shapes.webhooks import WebhookCreated, WebhookList
from denizen.storage.database import Tx, storable

router = new_router()


@router.get("/api/agents/{agent_id}/webhooks", summary="List the webhooks of an agent")
async def list_webhooks(caller: Admin, agent_id: str) -> WebhookList:
    found = await caller.runtime.db.read(_list, agent_id, caller)
    return WebhookList(webhooks=[webhook_out(each) for each in found])


@router.post("/api/agents/{agent_id}/webhooks", status_code=201, summary="Create a webhook")
async def create_webhook(caller: Admin, agent_id: str, wanted: CreateWebhook) -> WebhookCreated:
    """The secret is shown only once: give it to the service, which signs its requests with it."""
    agent = await caller.read(managing.find, agent_id)
    webhook, secret = await caller.runtime.webhooks.create(
        agent, wanted.name, scheme=wanted.scheme, secret=wanted.secret, urgent=wanted.urgent, by=caller.actor
    )
    return WebhookCreated(webhook=webhook_out(webhook), secret=secret)


@router.delete("/api/webhooks/{webhook_id}", status_code=204, summary="Revoke a webhook")
async def revoke_webhook(caller: Admin, webhook_id: str) -> None:
    """Requests to its address are no longer accepted. Repeating the request changes nothing."""
    runtime = caller.runtime
    await runtime.webhooks.revoke(await runtime.db.read(_one, webhook_id, caller), by=caller.actor)


@router.post(
    "/hooks/{webhook_id}",
    summary="Receive a request of a service; signed, no token needed",
    response_class=Response,
    responses=text_answer("text/plain", "Received; a service that asks for it has its greeting back.", ""),
)
async def receive_webhook(request: Request, webhook_id: str) -> Response:
    """When this returns 200, the event is in the agent's inbox. The same content sent again is delivered once."""
    runtime = context_of(request).runtime
    greeting = await runtime.webhooks.receive(webhook_id, request.headers, await request.body())
    return Response(None if greeting is None else greeting.answer, media_type="text/plain")


def _list(tx: Tx, agent_id: str, caller: Caller) -> list[Webhook]:
    return webhooks.webhooks_of(tx, find_agent(tx, caller.requester, agent_id))


def _one(tx: Tx, webhook_id: str, caller: Caller) -> Webhook:
    """The webhook, if its agent is one of the caller's organization."""
    webhook = webhooks.get(tx, storable(webhook_id))
    try:
        find_agent(tx, caller.requester, webhook.agent_id, also_dead=True)
    except NotFound:
        raise NotFound("webhook", webhook_id) from None
    return webhook
