"""What a server tells, as values. Fields that are not known here are left out: a newer server may tell more."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """Something that a server tells."""

    # Built when first used: a program uses a few of a hundred shapes.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
