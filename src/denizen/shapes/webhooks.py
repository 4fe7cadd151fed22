"""Webhooks and accepted triggers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import THING, given
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import WebhookScheme


class TriggerAccepted(Value):
    """The event is in the agent's inbox."""

    model_config = given(id=THING)

    id: Annotated[str, Field(description="The id of the event; the same if it was sent again.")]


class WebhookOut(Value):
    """A webhook of an agent."""

    model_config = given(
        id=THING,
        name="GitHub, website",
        scheme="github",
        urgent=False,
        path=f"/hooks/{THING}",
        created_at="2026-01-05T09:00:00Z",
        revoked_at=None,
        last_used_at=None,
    )

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

    model_config = given(
        webhook={"id": THING, "name": "GitHub, website", "scheme": "github", "urgent": False, "path": f"/hooks/{THING}",
                 "created_at": "2026-01-05T09:00:00Z", "revoked_at": None, "last_used_at": None},
        secret="shown-this-once",  # noqa: S106  an example
    )  # fmt: skip

    webhook: WebhookOut
    secret: Annotated[str, Field(description="Give it to the service.")]


class WebhookList(Value):
    """The webhooks of an agent, including revoked ones."""

    webhooks: list[WebhookOut]
