"""Usage and budgets."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BaseModel, Field

from denizen.shapes.examples import ADA, body_example, example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import UsageBy, UsageKind


class UsedOut(Value):
    """Model calls, the tokens they read and wrote, and what they cost."""

    calls: int
    input_tokens: Annotated[int, Field(description="Read, those from the provider's cache among them.")]
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cached_share: Annotated[
        float | None, Field(description="The share of input tokens from the provider's cache; null: no input.")
    ]
    dollars: Annotated[float, Field(description="Without the calls whose price is unknown.")]
    unpriced_calls: Annotated[int, Field(description="How many calls have a price that is unknown.")] = 0


class DayOut(UsedOut):
    """The usage of one day, which ends at 00:00 UTC."""

    day: date


class GroupOut(UsedOut):
    """The usage of one agent, panel or model."""

    model_config = example(key=ADA)

    key: Annotated[str, Field(description="The id of the agent or panel, or the name of the model.")]
    name: str
    kind: Open[UsageKind]
    days: Annotated[list[DayOut], Field(description="Each day of the period, also without usage.")]


class UsageOut(Value):
    """The usage of your organization's agents and panels."""

    since: date
    until: date
    by: Open[UsageBy]
    total: UsedOut
    days: Annotated[list[DayOut], Field(description="Each day from `since` to `until`, also without usage.")]
    groups: Annotated[list[GroupOut], Field(description="By agent or panel, or by model, the most expensive first.")]
    others: Annotated[int, Field(description="The number of groups that are not shown.")]


class Limits(BaseModel):
    """The limits for all agents of an organization together; null: no limit. A day ends at 00:00 UTC."""

    model_config = body_example(dollars_per_day=5, tokens_per_day=None, dollars=None, tokens=None)

    dollars_per_day: Annotated[float | None, Field(gt=0, le=1e12)] = None
    tokens_per_day: Annotated[int | None, Field(gt=0, le=2**53)] = None
    dollars: Annotated[float | None, Field(gt=0, le=1e12, description="For life.")] = None
    tokens: Annotated[int | None, Field(gt=0, le=2**53, description="For life.")] = None


class ServerUsed(Value):
    """What all organizations of the server used today, as far as its daily limit counts it."""

    dollars: float
    tokens: int


class BudgetOut(Value):
    """The budget, and what was used today."""

    limits: Limits
    today: UsedOut
    server: Annotated[
        Limits | None,
        Field(description="What all organizations of the server may use in a day; null: that is not limited."),
    ] = None
    server_today: Annotated[
        ServerUsed | None,
        Field(description="What they used today, for the organization that was made first; null for others."),
    ] = None
