"""The JSON of errors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from denizen.shapes.examples import example


class Problem(BaseModel):
    """Why a request failed (RFC 9457). Programs use `code`; `detail` is for people."""

    model_config = example(
        type="about:blank",
        title="Not found",
        status=404,
        code="not_found",
        detail="There is no space '019b8d3e-5c02-7c13-b2aa-0a1b2c3d4e5f'.",
    )

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FieldError] | None = None
    size: Annotated[int | None, Field(description="How large the file is that is refused, in bytes.")] = None
    used: Annotated[int | None, Field(description="How much the files of the organization take, in bytes.")] = None
    limit: Annotated[int | None, Field(description="How large it may be at most, in bytes.")] = None


class FieldError(BaseModel):
    """What is wrong with one field of a request."""

    in_: Annotated[str, Field(alias="in")]
    field: str
    message: str
