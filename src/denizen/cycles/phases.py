"""Phases of a cycle: which tools may be called at which step. Pure.

All tools are sent with every request, so that the prompt's prefix stays the same; a phase acts by the tool choice it
asks for and by refusing calls. A `strict` phase leaves the others out of the request instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from denizen.tools.prebuilt import SKIP

ToolChoice = Literal["auto", "required", "none"]


class Phase(BaseModel):
    """What an agent may do until a certain step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    until_step: int | None = Field(default=None, ge=0)
    """The last step of this phase, the first being 0; None is to the end."""
    tools: tuple[str, ...] | None = None
    """The tools that may be called; None is all. `skip` always may."""
    tool_choice: ToolChoice = "auto"
    strict: bool = False
    """Leave the other tools out of the request, at the price of the provider's prompt cache."""

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool == SKIP or tool in self.tools


FREE: Final = Phase()
"""Where no phase says otherwise, everything is allowed."""

OBSERVE_THINK_RESPOND: Final = (
    Phase(
        until_step=1,
        tools=("enter_space", "read_messages", "read_entry"),
        tool_choice="required",
    ),
    Phase(until_step=6),
    Phase(tools=("send_message", "enter_space", "set_memories", "set_goals")),
)
"""First gather what there is to know, then think and act, in the end only answer."""

PRESETS: Final = {"observe-think-respond": OBSERVE_THINK_RESPOND}


def phase_at(phases: Sequence[Phase], step: int) -> Phase:
    """The phase that this step belongs to."""
    return next((phase for phase in phases if phase.until_step is None or step <= phase.until_step), FREE)
