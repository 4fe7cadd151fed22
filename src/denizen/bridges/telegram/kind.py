"""The settings of a Telegram bridge, and how it is opened."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from denizen.bridges.port import SECRET, Adapter, BridgeKind, BridgeSettings, Means


class TelegramSettings(BridgeSettings):
    """The bot."""

    token: Annotated[str, Field(min_length=1, max_length=500), SECRET]
    """The token of the bot, from @BotFather."""
    speaker: Annotated[str, Field(max_length=40)] = ""
    """The handle of the agent that the bot is: its messages have no name before them."""
    api: Annotated[str, Field(pattern=r"^https?://", max_length=2_000)] = "https://api.telegram.org"
    """The address of the Bot API; of your own server of it, if you have one."""
    streaming: bool = True
    """Whether what agents write is shown while they write it. Only in private chats, where Telegram can do that."""


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    from denizen.bridges.telegram.adapter import TelegramAdapter

    assert isinstance(settings, TelegramSettings)
    return TelegramAdapter(settings, means)


TELEGRAM: Final = BridgeKind("telegram", TelegramSettings, _open)
