"""Webhooks and accepted triggers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import WebhookScheme


class TriggerAccepted(Value):
    """The event is in the agent's inbox."""

    id: Annotated[str, Field(description="The id of the event; the same if it was sent again.")]


class WebhookOut(Value):
    """A webhook of an agent."""

    model_config = example(name="GitHub, website", path="/hooks/019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d")

    id: str
    name: str
    scheme: Open[WebhookScheme]
    urgent: bool
    path: Annotated[str, Field(description="The path on this server that the service sends to.")]
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="To the minute.")]


class WebhookCreated(Value):
    """A new webhook with its secret, which is shown only once."""

    webhook: WebhookOut
    secret: Annotated[str, Field(description="Give it to the service.")]


class WebhookList(Value):
    """The webhooks of an agent, including revoked ones."""

    webhooks: list[WebhookOut]
