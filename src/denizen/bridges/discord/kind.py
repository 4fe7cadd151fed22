"""The settings of a Discord bridge, and how it is opened."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from denizen.bridges.port import SECRET, Adapter, BridgeKind, BridgeSettings, Means


class DiscordSettings(BridgeSettings):
    """The bot."""

    token: Annotated[str, Field(min_length=1, max_length=500), SECRET]
    """The token of the bot."""
    speaker: Annotated[str, Field(max_length=40)] = ""
    """The handle of the agent that the bot is: its messages have no name before them."""
    api: Annotated[str, Field(pattern=r"^https?://", max_length=2_000)] = "https://discord.com/api/v10"
    """The address of the REST API."""
    streaming: bool = False
    """Whether what agents write is shown while they write it, in a message that changes."""


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    from denizen.bridges.discord.adapter import DiscordAdapter

    assert isinstance(settings, DiscordSettings)
    return DiscordAdapter(settings, means)


DISCORD: Final = BridgeKind("discord", DiscordSettings, _open)
