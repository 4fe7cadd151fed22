"""Window settings: how much of its past an agent is shown."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, Field

Strategy: TypeAlias = Literal["self_summary", "layered", "semantic", "rolling", "written"]


Profile: TypeAlias = Literal["normal", "small"]
"""How much of its self and its tools is sent with each request."""
SMALL_CONTEXT_TOKENS: Final = 16_000
"""A model with a smaller context gets the small profile, unless its owner says otherwise."""


def profile_for(wanted: Literal["auto", "normal", "small"], context_tokens: int | None) -> Profile:
    """The profile that the owner wants, or that suits the model's context size."""
    if wanted != "auto":
        return wanted
    return "small" if context_tokens is not None and context_tokens < SMALL_CONTEXT_TOKENS else "normal"


class WindowSettings(BaseModel, frozen=True, extra="forbid"):
    """The window's size and how it is kept."""

    max_tokens: int = Field(default=100_000, ge=2_000)
    """No request is larger, whatever the model could take."""
    target_share: float = Field(default=0.6, gt=0.1, lt=0.95)
    """How full the window is after older cycles have left it."""
    strategy: Strategy = "layered"
    """What stands for the cycles that have left the window. `self_summary`: a line for each, as many as there is room
    for. `layered`: lines, then groups of ten, of a hundred, of a thousand. `semantic`: besides, what was said and done
    then that matters to the present inbox. `rolling`: besides, what a utility model wrote of its conversations.
    `written`: the same layers, of notes that a utility model wrote from the log, tool results included."""
    writer_model: str | None = None
    """The model that writes with `written`. Default: the cheap model of the provider of the agent's model."""
    min_recent_cycles: int = Field(default=10, ge=1, le=1_000)
    """So many cycles stay whole as far as half of the window holds them; for that, old tool results are shortened."""
    layer_share: float = Field(default=0.15, gt=0, le=0.25)
    """How much of the window the cycles before it may take."""
    inbox_share: float = Field(default=0.1, gt=0, le=0.5)
    """How much of the window one inbox message may take."""
    result_characters: int = Field(default=16_000, ge=500)
    """A longer tool result is cut, with a pointer to the rest."""
    context_tokens: int | None = Field(default=None, ge=1_024)
    """How many tokens the model takes, where that is not what its provider or server says."""
    output_tokens: int = Field(default=8_192, ge=256)
    """Kept free for what the model answers."""
