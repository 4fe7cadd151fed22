"""What other instances say of panels, heard here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from denizen.bus.port import Bus, Gap, Subscription
from denizen.bus.streams import PANEL
from denizen.panel.moderator import Moderator


@asynccontextmanager
async def overhearing(bus: Bus, moderator: Moderator, instance: str) -> AsyncGenerator[None]:
    """Inside, what another instance has changed about panels is looked at here at once."""
    async with bus.subscribe(PANEL, limit=100_000) as told:
        # No task group: what goes wrong inside is not this task's, and shall be raised as it is.
        task = asyncio.create_task(_listen(told, moderator, instance), name="hints of panels")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


async def _listen(told: Subscription, moderator: Moderator, instance: str) -> None:
    async for item in told:
        if isinstance(item, Gap) or item.payload.get("by") != instance:
            moderator.hint()
