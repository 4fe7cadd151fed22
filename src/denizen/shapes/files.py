"""Uploads and files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import THING, given
from denizen.shapes.value import Value


class FileOut(Value):
    """An upload, or a file of a message."""

    model_config = given(
        id=THING,
        name="photo.jpg",
        media_type="image/jpeg",
        size=48213,
        arrived=48213,
        complete=True,
        message_id=None,
        created_at="2026-01-05T09:00:00Z",
    )

    id: str
    name: str
    media_type: str
    size: Annotated[int, Field(description="In bytes.")]
    arrived: Annotated[int, Field(description="How many bytes are stored: an upload that broke off continues here.")]
    complete: Annotated[bool, Field(description="Whether all bytes have arrived, so that a message can have it.")]
    message_id: Annotated[str | None, Field(description="The message that it is attached to; null: none yet.")]
    created_at: datetime


class FileLink(Value):
    """An address that shows a file without a token, for an hour."""

    model_config = given(url=f"/files/{THING}/1767607200-3f0a/photo.jpg", expires_at="2026-01-05T10:00:00Z")

    url: Annotated[str, Field(description="Relative to this server.")]
    expires_at: datetime
