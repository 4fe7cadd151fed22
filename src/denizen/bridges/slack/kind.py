"""The settings of a Slack bridge, and how it is opened."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from denizen.bridges.port import SECRET, Adapter, BridgeKind, BridgeSettings, Means


class SlackSettings(BridgeSettings):
    """The app."""

    bot_token: Annotated[str, Field(min_length=1, max_length=500), SECRET]
    """The bot token of the app (`xoxb-…`)."""
    app_token: Annotated[str, Field(min_length=1, max_length=500), SECRET]
    """The app-level token (`xapp-…`) with the scope `connections:write`."""
    speaker: Annotated[str, Field(max_length=40)] = ""
    """The handle of the agent that the app is: its messages have the app's own name and icon."""
    icons: Annotated[dict[str, str], Field(max_length=200, default_factory=dict)]
    """Icons of others, by handle: an `https` address, or an emoji such as `:robot_face:`."""
    api: Annotated[str, Field(pattern=r"^https?://", max_length=2_000)] = "https://slack.com/api"
    """The address of the Web API."""
    streaming: bool = False
    """Whether what agents write is shown while they write it, in a message that changes."""


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    from denizen.bridges.slack.adapter import SlackAdapter

    assert isinstance(settings, SlackSettings)
    return SlackAdapter(settings, means)


SLACK: Final = BridgeKind("slack", SlackSettings, _open)
