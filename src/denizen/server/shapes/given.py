"""The base of all request bodies: an unknown field is an error that names the nearest known one."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, JsonValue, model_validator

from denizen.errors import InvalidInput
from denizen.inbox.outside import check_data
from denizen.nearest import nearest


class RequestBody(BaseModel, extra="forbid"):
    """The body of a request."""

    @model_validator(mode="before")
    @classmethod
    def _has_only_fields_that_exist(cls, given: Any) -> Any:
        known = [each.alias or name for name, each in cls.model_fields.items()]
        names = cast("dict[str, Any]", given) if isinstance(given, dict) else ()
        for name in names:
            if name not in known:
                near = next(iter(nearest(name, known)), None)
                hint = f"; did you mean {near!r}?" if near else f". There are: {', '.join(known)}"
                raise ValueError(f"there is no field {name[:60]!r}{hint}")
        return cast("Any", given)


DATA_CHARACTERS = 256 * 1024


def _storable(data: JsonValue) -> JsonValue:
    try:
        check_data(data, DATA_CHARACTERS)
    except InvalidInput as error:
        raise ValueError(str(error).removeprefix("data: ")) from error
    return data


OutsideData = Annotated[JsonValue, AfterValidator(_storable)]
"""JSON from outside that can be stored: neither too long nor nested too deeply."""
