"""What an agent is, as its owner defines it: checked at the border, kept in the database."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from denizen.consciousness.settings import WindowSettings
from denizen.cycles.settings import CycleSettings
from denizen.inbox.urgency import UrgentRule
from denizen.plans.settings import HeartbeatSettings, checked_zone


class AgentDefinition(BaseModel):
    """Everything that makes this agent this agent, but for its name and its past."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(default="default", min_length=1)
    """`provider:name`, the name of a model registered with the runtime, or `default`: whatever the house uses."""
    instructions: str = ""
    """Its role, in its owner's words."""
    tools: tuple[str, ...] = ()
    """Names of tools registered with the runtime, beside those that every agent has."""
    cycle: CycleSettings = CycleSettings()
    window: WindowSettings = WindowSettings()
    urgent: UrgentRule = UrgentRule()
    zone: str = "UTC"
    """Its time zone, such as `Europe/Berlin`: what it means by nine o'clock."""
    heartbeat: HeartbeatSettings | None = None
    """A regular waking, whether or not anything has happened."""

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, zone: str) -> str:
        return checked_zone(zone)

    @model_validator(mode="after")
    def _fits(self) -> AgentDefinition:
        limit = self.window.max_tokens
        if len(self.instructions) // 4 > limit // 4:
            raise ValueError(
                f"instructions have {len(self.instructions):,} characters; a quarter of the window "
                f"(window.max_tokens = {limit:,}) holds about {limit:,}. Shorten them or enlarge the window"
            )
        return self
