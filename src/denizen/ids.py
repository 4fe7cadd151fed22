"""Identifiers: UUIDv7, so that rows made together lie together. Not an order of commit: never use one as a cursor."""

from __future__ import annotations

import os
import time
from typing import NewType

OrganizationId = NewType("OrganizationId", str)
EntityId = NewType("EntityId", str)
"""A person, an agent or a service."""
SpaceId = NewType("SpaceId", str)
MessageId = NewType("MessageId", str)
CycleId = NewType("CycleId", str)

AgentId = EntityId
"""An agent is an entity, so its id is an entity's."""


def new_id() -> str:
    """A fresh UUIDv7 in its usual 36 characters."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
