"""Identifiers: UUIDv7, so that rows created together lie together. Not in commit order: never use one as a cursor."""

from __future__ import annotations

import os
import time
from typing import NewType

OrganizationId = NewType("OrganizationId", str)
EntityId = NewType("EntityId", str)
"""A person, an agent or a service."""
SpaceId = NewType("SpaceId", str)
MessageId = NewType("MessageId", str)
FileId = NewType("FileId", str)
CycleId = NewType("CycleId", str)
CallId = NewType("CallId", str)
BridgeId = NewType("BridgeId", str)
ChannelId = NewType("ChannelId", str)

AgentId = EntityId
"""An agent is an entity, so its id is an entity's."""


def new_id() -> str:
    """Returns a new UUIDv7 in its usual 36 characters."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    # The twelve bits after the version count up within the millisecond, so that ids of one process sort in order.
    value = milliseconds << 80 | 0x7 << 76 | rest * 4096 // 1_000_000 << 64 | 0x2 << 62
    value |= int.from_bytes(os.urandom(8), "big") >> 2
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
