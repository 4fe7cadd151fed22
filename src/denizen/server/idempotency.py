"""The `Idempotency-Key` header: a repeated request is executed once."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Header

from denizen.server.auth import Caller

_KEYS: Final = UUID("3d1b7a90-52c4-4e8f-9c1d-8e7f6a5b4c3d")

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Your own name for this request: asking again with the same key is asking once.",
        examples=["3f0c2f57-1d5e-4c1a-9f0e-1b2c3d4e5f60"],
    ),
]


def id_for(caller: Caller, what: str, key: str | None) -> str | None:
    """Returns the id for what is created with this key, so that a repeated request finds it; None without a key."""
    return None if key is None else str(uuid5(_KEYS, f"{caller.entity.id} {what} {key}"))
