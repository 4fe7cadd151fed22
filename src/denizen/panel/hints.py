"""What other instances say of panels, heard here."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from denizen.bus.hearing import hearing
from denizen.bus.port import Bus, Frame, Gap
from denizen.bus.streams import PANEL
from denizen.panel.moderator import Moderator


def overhearing(bus: Bus, moderator: Moderator, instance: str) -> AbstractAsyncContextManager[None]:
    """Inside, what another instance has changed about panels is looked at here at once."""

    def hear(item: Frame | Gap) -> None:
        if isinstance(item, Gap) or item.payload.get("by") != instance:
            moderator.hint()

    return hearing(bus, PANEL, hear)
