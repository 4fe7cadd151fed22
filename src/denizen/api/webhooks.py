"""`denizen.webhooks`: addresses at which services outside tell agents what happened."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping

from denizen.access import audit, webhooks
from denizen.access.audit import OPERATOR, Actor
from denizen.access.payloads import Greeting
from denizen.access.signatures import Scheme
from denizen.access.webhooks import Webhook
from denizen.agents import registry
from denizen.api.subject import AgentRef, Subject, id_of
from denizen.ids import AgentId
from denizen.storage.database import Tx


class Webhooks(Subject):
    """The webhooks of agents.

    ```python
    webhook, secret = await denizen.webhooks.create(ada, "deploys", scheme="github")
    assert [each.name for each in await denizen.webhooks.list(ada)] == ["deploys"]
    await denizen.webhooks.revoke(webhook)
    ```
    """

    async def create(
        self,
        agent: AgentRef,
        name: str,
        *,
        scheme: Scheme = "generic",
        secret: str | None = None,
        urgent: bool = False,
        by: Actor = OPERATOR,
    ) -> tuple[Webhook, str]:
        """Create a webhook. Returns it with its secret, which cannot be read again. Slack chooses its own secret."""
        what = webhooks.draft(name, scheme, secret=secret, urgent=urgent)
        sealed = await asyncio.to_thread(self._runtime.vault.seal, what.secret, what.purpose)
        return await self._runtime.db.write(_create_webhook, id_of(agent), what, sealed, by), what.secret

    async def list(self, agent: AgentRef) -> builtins.list[Webhook]:
        """Every webhook the agent ever had, revoked ones too."""
        return await self._read_agent(agent, webhooks.webhooks_of)

    async def revoke(self, webhook: Webhook | str, *, by: Actor = OPERATOR) -> None:
        """The webhook no longer receives anything."""
        await self._runtime.db.write(_revoke_webhook, id_of(webhook), by)

    async def receive(self, webhook_id: str, headers: Mapping[str, str], body: bytes) -> Greeting | None:
        """Deliver what a service sent to `/hooks/{webhook_id}`. Raises `SignatureWrong` where it is not signed with the
        webhook's secret."""
        runtime = self._runtime
        return await webhooks.receive(
            runtime.db, runtime.vault, runtime.clock.now(), webhook_id, headers, body, runtime.store_file
        )


def _create_webhook(tx: Tx, agent_id: AgentId, what: webhooks.Draft, sealed: str, by: Actor) -> Webhook:
    made = webhooks.create(tx, agent_id, what, sealed)
    home = registry.get(tx, agent_id).entity.organization_id
    audit.record(tx, home, by, "create_webhook", agent_id, webhook=made.id, scheme=made.scheme)
    return made


def _revoke_webhook(tx: Tx, webhook_id: str, by: Actor) -> None:
    webhook = webhooks.get(tx, webhook_id)
    webhooks.revoke(tx, webhook_id)
    if webhook.revoked_at is None:
        home = registry.get(tx, webhook.agent_id).entity.organization_id
        audit.record(tx, home, by, "revoke_webhook", webhook.agent_id, webhook=webhook_id)
