"""The kinds of bridges that every server has."""

from __future__ import annotations

from typing import Final

from denizen.bridges.discord.kind import DISCORD
from denizen.bridges.email.kind import EMAIL
from denizen.bridges.matrix.kind import MATRIX
from denizen.bridges.port import BridgeKind
from denizen.bridges.slack.kind import SLACK
from denizen.bridges.telegram.kind import TELEGRAM
from denizen.bridges.webhook.kind import WEBHOOK

BUILT_IN: Final[tuple[BridgeKind, ...]] = (DISCORD, EMAIL, MATRIX, SLACK, TELEGRAM, WEBHOOK)
