"""The settings of a webhook bridge, and how it is opened."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from denizen.bridges.port import Adapter, BridgeKind, BridgeSettings, Means


class WebhookSettings(BridgeSettings):
    """Where the messages of a webhook bridge go."""

    url: Annotated[str, Field(pattern=r"^https?://", max_length=2_000)]
    """The address that gets what is said."""


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    from denizen.bridges.webhook.adapter import WebhookAdapter

    assert isinstance(settings, WebhookSettings)
    return WebhookAdapter(settings, means)


WEBHOOK: Final = BridgeKind("webhook", WebhookSettings, _open, has_secret=True, reads=False)
