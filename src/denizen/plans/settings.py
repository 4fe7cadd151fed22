"""Settings of an agent's heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from typing import Final

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from denizen.errors import InvalidInput
from denizen.plans.schedule import WEEKDAYS, Heartbeat, Weekday, named_zone

STORED: Final[Mapping[str, bool]] = {"stored": True}
"""The validation context for values that were checked before they were stored."""


def was_stored(info: ValidationInfo) -> bool:
    """For validators: whether this comes from the database, and not from outside."""
    return info.context is STORED


class HeartbeatSettings(BaseModel, frozen=True, extra="forbid"):
    """A regular waking within active hours, whether or not anything has happened."""

    every_minutes: int = Field(ge=1, le=1440)
    """Reckoned anew from the beginning of the active hours each day."""
    active_from: time = time(0, 0)
    active_until: time = time(0, 0)
    """Hours that end before they begin go on past midnight; those that end as they begin last the whole day."""
    weekdays: tuple[Weekday, ...] = Field(default=WEEKDAYS, min_length=1)
    """The days on which the active hours begin."""
    zone: str | None = None
    """By default that of the agent."""
    instruction: str = Field(
        default="Look at your goals and plans. If there is nothing to do, skip.", min_length=1, max_length=4_000
    )

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, zone: str | None, info: ValidationInfo) -> str | None:
        return zone if zone is None or was_stored(info) else checked_zone(zone)

    def schedule(self, zone: str) -> Heartbeat:
        """The schedule of the heartbeat, for an agent in this zone."""
        return Heartbeat(
            minutes=self.every_minutes,
            start=self.active_from.replace(tzinfo=None),
            end=self.active_until.replace(tzinfo=None),
            weekdays=self.weekdays,
            zone=self.zone or zone,
        )


def checked_zone(zone: str) -> str:
    """For validators: the zone, or a `ValueError` that suggests the nearest one."""
    try:
        return named_zone(zone).key
    except InvalidInput as error:
        raise ValueError(str(error)) from error
