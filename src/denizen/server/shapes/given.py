"""The base of all request bodies: an unknown field is an error that names the nearest known one."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, model_validator

from denizen.nearest import nearest


class Given(BaseModel):
    """A body that someone sent."""

    model_config = ConfigDict(extra="forbid")

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
