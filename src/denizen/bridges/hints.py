"""Listens to hints about bridges from other instances: what is to be sent, what is to be read, and who types."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from denizen.bridges.running import BridgeRunner
from denizen.bus.hearing import hearing
from denizen.bus.port import Bus, Frame, Gap
from denizen.spaces.outbox import TO_SEND


def hearing_bridges(bus: Bus, runner: BridgeRunner, instance: str) -> AbstractAsyncContextManager[None]:
    """Inside the block, what other instances have put into the outbox or were told of is carried at once."""

    def hear(item: Frame | Gap) -> None:
        if isinstance(item, Gap):
            runner.hint_all()
        elif item.payload.get("by") != instance:
            runner.hear(item.payload)

    return hearing(bus, TO_SEND, hear)
