"""The base class of everything that the server sends as JSON."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

EXAMPLE: Final = "x-example"
"""In the JSON schema of a shape: values of its example. The others are made (`server/examples.py`)."""


class Value(BaseModel):
    """Something that a server sends. Unknown fields are ignored: a newer server may send more."""

    # Built when first used: a program uses a few of a hundred shapes.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, json_schema_extra={EXAMPLE: {}})


class _Open:
    """Accepts any text, and describes only the known values in the JSON schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.str_schema(metadata={"known": handler(source)})

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema.get("metadata", {})["known"])


T = TypeVar("T", bound=str)
Open = Annotated[T, _Open()]
"""`Open[Literal["a", "b"]]`: the server sends `a` or `b`; a client also accepts what a newer server sends."""

_Cursor = TypeVar("_Cursor", int, str)
_LAST: Final = "for the next page; null: this is the last one."
NextBefore = Annotated[_Cursor | None, Field(description=f"Send it as `before` {_LAST}")]
NextAfter = Annotated[_Cursor | None, Field(description=f"Send it as `after` {_LAST}")]
NextEitherWay = Annotated[_Cursor | None, Field(description=f"Send it as `after` (or as `before`, going back) {_LAST}")]
"""Where the next page of a list begins."""
