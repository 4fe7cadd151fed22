"""Uploads and files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Value


class FileOut(Value):
    """An upload, or a file of a message."""

    model_config = example(name="photo.jpg")

    id: str
    name: str
    media_type: str
    size: Annotated[int, Field(description="In bytes.")]
    arrived: Annotated[int, Field(description="How many bytes are stored: an upload that broke off continues here.")]
    complete: Annotated[bool, Field(description="Whether all bytes have arrived, so that a message can have it.")]
    message_id: Annotated[str | None, Field(description="The message that it is attached to; null: none yet.")]
    alt: Annotated[str | None, Field(description="What the picture shows, for those who cannot see it.")] = None
    created_at: datetime


class FileUsage(Value):
    """How much room the files of an organization take."""

    used: Annotated[int, Field(description="In bytes. The same content counts once, unfinished uploads count whole.")]
    limit: Annotated[int, Field(description="What all files of the organization together may take.")]
    file_limit: Annotated[int, Field(description="What one file may take.")]


class FileLink(Value):
    """An address that shows a file without a token, for an hour."""

    model_config = example(
        url="/files/019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d/1767607200-3f0a/photo.jpg",
        thumbnail="/files/019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d/1767607200-3f0a/photo.jpg?size=320",
    )

    url: Annotated[
        str,
        Field(description="Relative to this server. With `?download=true`, browsers save it instead of showing it."),
    ]
    thumbnail: Annotated[
        str | None, Field(description="The picture made smaller, at most 320 pixels wide and high; null: no picture.")
    ]
    expires_at: datetime
