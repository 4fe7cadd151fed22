"""Identifiers: UUIDv7, so that rows created together lie together. Not in commit order: never use one as a cursor.

Their random bytes, and those of salts, are fetched from the system for many at once.
"""

from __future__ import annotations

import os
import time
from typing import Final, NewType

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


_RANDOM_BYTES: Final = 16
_FETCHED_AT_ONCE: Final = 64


class _RandomPool:
    """Random bytes of the system. Each call of `os.urandom` lets go of the interpreter's lock, and with a busy thread
    beside this one it takes up to milliseconds to get it back.
    """

    def __init__(self) -> None:
        self._process = 0
        self._parts: list[bytes] = []

    def take(self) -> bytes:
        if self._process != os.getpid():  # A process that was forked has the same ones.
            self._process, self._parts = os.getpid(), []
        try:
            return self._parts.pop()
        except IndexError:
            fetched = os.urandom(_RANDOM_BYTES * _FETCHED_AT_ONCE)
            first, *others = (fetched[at : at + _RANDOM_BYTES] for at in range(0, len(fetched), _RANDOM_BYTES))
            self._parts += others
            return first


_pool: Final = _RandomPool()


def random_bytes() -> bytes:
    """Returns sixteen random bytes that nobody can predict and no other caller gets."""
    return _pool.take()


def new_id() -> str:
    """Returns a new UUIDv7 in its usual 36 characters."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    # The twelve bits after the version count up within the millisecond, so that ids of one process sort in order.
    value = milliseconds << 80 | 0x7 << 76 | rest * 4096 // 1_000_000 << 64 | 0x2 << 62
    value |= int.from_bytes(random_bytes()[:8], "big") >> 2
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
