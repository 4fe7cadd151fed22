"""Which prompt profile an agent has, as its owner says."""

from __future__ import annotations

from pydantic import BaseModel, Field

NAME_CHARACTERS = 100


class ProfileSettings(BaseModel, frozen=True, extra="forbid"):
    """How prompt profiles are chosen for an agent, if the server has a file of presets."""

    enabled: bool = True
    """Whether profiles are chosen for it at all."""
    mode: str = Field(default="", max_length=NAME_CHARACTERS)
    """What rules and defaults know it by; empty: its handle."""
    preset: str = Field(default="", max_length=NAME_CHARACTERS)
    """One preset for all its conversations, whatever the rules say; empty: the rules decide."""
