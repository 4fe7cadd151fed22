"""The JSON of webhooks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from denizen.access.signatures import Scheme
from denizen.access.webhooks import Webhook
from denizen.server.shapes.filling import filled
from denizen.shapes.examples import body_example
from denizen.shapes.webhooks import WebhookOut


class CreateWebhook(BaseModel):
    """A new webhook, for a service that sends events to an agent."""

    model_config = body_example(name="GitHub, website", scheme="github")

    name: Annotated[str, Field(description="The name of the service, as the agent sees it.")]
    scheme: Annotated[Scheme, Field(description="How the service signs.")] = "generic"
    secret: Annotated[
        str | None, Field(description="If the service chooses it, as Slack does; by default a new one.")
    ] = None
    urgent: Annotated[bool, Field(description="The agent sees events at its next step.")] = False


def webhook_out(webhook: Webhook) -> WebhookOut:
    return filled(WebhookOut, webhook)
