"""Phases of a cycle: which tools may be called at which step. Pure.

All tools are sent with every request, so that the prompt's prefix stays the same. The model is told the phase and its
tools at the end of the request; if the provider supports a list of allowed tools, the others cannot be called, and
otherwise such a call is refused. A `strict` phase leaves the others out of the request instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from denizen.models.forced_tools import ToolChoice


class Phase(BaseModel, frozen=True, extra="forbid"):
    """What an agent may do until a certain step."""

    name: str = Field(default="", max_length=50)
    """What the model is told that this phase is called."""
    until_step: int | None = Field(default=None, ge=0)
    """The last step of this phase, the first being 0; None is to the end."""
    tools: tuple[str, ...] | None = None
    """The tools that may be called; None is all, or with `reads` none besides. `skip` always may."""
    reads: bool = False
    """Also every tool that only reads: `recall`, `read_entry`, `read_messages`, and those without effects."""
    tool_choice: ToolChoice = "auto"
    strict: bool = False
    """Leave the other tools out of the request, at the price of the provider's prompt cache."""


FREE: Final = Phase()
"""The default phase: everything is allowed."""

OBSERVE_THINK_RESPOND: Final = (
    Phase(name="observe", until_step=1, tools=("enter_space",), reads=True, tool_choice="required"),
    Phase(name="think", until_step=6),
    Phase(name="respond", tools=("send_message", "enter_space", "set_memories", "set_goals")),
)
"""First gather information, then think and act, finally only answer."""

PRESETS: Final = {"observe-think-respond": OBSERVE_THINK_RESPOND}


def phase_at(phases: Sequence[Phase], step: int) -> Phase:
    """The phase of this step."""
    return next((phase for phase in phases if phase.until_step is None or step <= phase.until_step), FREE)
