"""How an agent's think cycles are bounded."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SilentReply = Literal["nudge", "deliver", "ignore"]


class CycleSettings(BaseModel):
    """Limits of one think cycle, and what happens when someone waits and nothing is said."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: int = Field(default=20, ge=1)
    """Model calls in one cycle."""
    token_budget: int = Field(default=50_000, ge=500)
    """Tokens that one cycle may add: what the model writes and what it reads anew, never the past."""
    max_dollars: Decimal | None = Field(default=None, gt=0)
    """What one cycle may cost, where the price of the model is known."""
    silent_reply: SilentReply = "nudge"
    """When the model ends with text and a person waits: remind it once, send the text as it is, or leave it."""
