"""How much of the database is used, and how fast that grows."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Value


class DaySize(Value):
    """What an organization used on one day, which ends at 00:00 UTC."""

    day: date
    bytes: Annotated[int, Field(description="Its share of the database, files included. An estimate.")]
    file_bytes: int
    messages: Annotated[int, Field(description="How many were ever posted.")]
    cycles: Annotated[int, Field(description="How many its agents have ended.")]


class OrganizationSize(Value):
    """What one organization uses, and how fast that grows."""

    model_config = example(name="Lighthouse")

    name: str
    bytes: int
    bytes_per_day: Annotated[
        int | None, Field(description="The average of the last 30 days; null until the second day.")
    ]


class SizeOut(Value):
    """How much of the database your organization uses. Measured once a day."""

    model_config = example(name="Lighthouse")

    name: str
    bytes: Annotated[int, Field(description="Its share of the database, files included. An estimate.")]
    bytes_per_day: Annotated[
        int | None, Field(description="The average growth of the last 30 days; null until the second day.")
    ]
    days: Annotated[list[DaySize], Field(description="The days on which it was measured, the last 30 at most.")]
    may_see_all: Annotated[bool, Field(description="Whether you may ask for `all_organizations`.")]
    database_bytes: Annotated[
        int | None, Field(description="The size of the whole database, with `all_organizations`; otherwise null.")
    ]
    organizations: Annotated[
        list[OrganizationSize],
        Field(description="All organizations, the largest first, with `all_organizations`; otherwise empty."),
    ]
