"""The header by which a request that is made twice is done once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

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
