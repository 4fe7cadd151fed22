"""What was used, and what may be."""

from __future__ import annotations

from datetime import date

from denizen.client.shapes.value import Value


class Used(Value):
    """Model calls, the tokens they read and wrote, and what they cost."""

    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cached_share: float | None = None
    dollars: float


class UsedOnDay(Used):
    day: date


class UsedBy(Used):
    """What one agent or panel used, or what was used with one model: `kind` says which."""

    key: str
    name: str
    kind: str = ""
    days: tuple[UsedOnDay, ...]


class Usage(Value):
    """What the organization's agents used."""

    since: date
    until: date
    by: str
    total: Used
    days: tuple[UsedOnDay, ...]
    groups: tuple[UsedBy, ...]


class Limits(Value):
    """What all agents together may use; None is no limit."""

    dollars_per_day: float | None = None
    tokens_per_day: int | None = None
    dollars: float | None = None
    tokens: int | None = None


class Budget(Value):
    limits: Limits
    today: Used
