"""Listens to hints about panels from other instances."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from denizen.bus.hearing import hearing
from denizen.bus.port import Bus, Frame, Gap
from denizen.bus.streams import PANEL
from denizen.panel.moderator import Moderator


def overhearing(bus: Bus, moderator: Moderator, instance: str) -> AbstractAsyncContextManager[None]:
    """Inside the block, changes of panels by other instances are looked at at once."""

    def hear(item: Frame | Gap) -> None:
        if isinstance(item, Gap) or item.payload.get("by") != instance:
            moderator.hint()

    return hearing(bus, PANEL, hear)
