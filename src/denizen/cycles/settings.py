"""Settings and limits of an agent's think cycles."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from denizen.cycles.conditions import Condition
from denizen.cycles.phases import PRESETS, Phase
from denizen.cycles.routing import Route, RoutingPer

RESPONDED_TO_ALL: Final = "responded_to_all"
"""The name of the built-in condition in `stop_when`; other names are functions."""
Awareness = Literal["none", "preview", "urgent", "combined", "all"]
SilentReply = Literal["nudge", "deliver", "ignore"]
"""What happens when the model ends with text and has answered nobody."""


class Triage(BaseModel, frozen=True, extra="forbid"):
    """What decides that events need not be thought about: a rule, a function, a small model; each that is given."""

    skip_when: Condition | None = None
    """Skip what this is true of: each event that wakes."""
    by: str | None = Field(default=None, min_length=1)
    """The name of a function of `Runtime(triages={...})` or of the setting `functions.triages`: it gives the reason to
    skip, or None."""
    model: str | None = Field(default=None, min_length=1)
    """A small model to ask, named as an agent's own is."""
    instructions: str = Field(default="", max_length=4_000)
    """What the small model has to know to decide, in the owner's words."""

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if self.skip_when is None and self.by is None and self.model is None:
            raise ValueError("triage needs something that decides: `skip_when`, `by` or `model`")
        if self.instructions and self.model is None:
            raise ValueError("`instructions` are for the small model: name it with `model`")
        return self


class StopAfter(BaseModel, frozen=True, extra="forbid"):
    """Stop once a tool has been called with success."""

    after: str = Field(min_length=1)
    """The name of the tool."""
    times: int = Field(default=1, ge=1)
    """How many calls of it have to succeed."""


class CycleSettings(BaseModel, frozen=True, extra="forbid"):
    """Limits of one think cycle, what it is told on the way, and what happens when someone waits in vain."""

    awareness: Awareness = "combined"
    """What it is told of events that arrive meanwhile: nothing, a preview, what is urgent, both (`combined`), or every
    event whole (`all`)."""
    phases: tuple[Phase, ...] = ()
    """Which tools may be called until which step; or the name of a preset, such as `observe-think-respond`."""
    routing: tuple[Route, ...] = ()
    """Other models for certain events or steps; the first that applies, else the agent's own."""
    routing_per: RoutingPer = "cycle"
    """Whether the model is chosen once for a cycle, which keeps the provider's prompt cache, or before each step."""
    prepare_step: str | None = Field(default=None, min_length=1)
    """The name of a function of `Runtime(steps={...})` or of the setting `functions.steps`. It is called before each
    step, sees the steps so far, and may set the model, tools, tool choice, settings and extra context of this step, or
    stop."""
    step_models: tuple[str, ...] = ()
    """The models that the function of `prepare_step` may choose, beside the agent's own and those of `routing`."""
    triage: Triage | Literal["auto", "off"] = "auto"
    """What decides, before anything is loaded, that events need not be thought about. `auto`: in spaces with several
    agents, the small model of the agent's provider is asked about what nobody waits to have answered."""
    max_steps: int = Field(default=20, ge=1)
    """Model calls in one cycle."""
    token_budget: int = Field(default=50_000, ge=500)
    """Tokens that one cycle may add: what the model writes, and new text that it reads. The past does not count."""
    max_dollars: Decimal | None = Field(default=None, gt=0)
    """What one cycle may cost, where the price of the model is known."""
    alert_dollars: Decimal | None = Field(default=None, gt=0)
    """Cycles that cost more are reported in the log, and to people who watch the agent."""
    max_seconds: float | None = Field(default=None, gt=0)
    """How long one cycle may take, by the clock on the wall; looked at between steps."""
    stop_when: tuple[str | StopAfter, ...] = ()
    """Further reasons to stop: `responded_to_all`, `{"after": "book_hotel"}` (the tool has succeeded), or the name of a
    function of `Runtime(stops={...})` or of the setting `functions.stops`."""
    silent_reply: SilentReply = "nudge"
    """When the model ends with text and a person waits: remind it once and then send what it wrote (`nudge`), send the
    text at once (`deliver`), or leave it (`ignore`): then the space shows that there was no reply."""

    @field_validator("phases", mode="before")
    @classmethod
    def _preset(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        if given not in PRESETS:
            raise ValueError(f"there is no preset {given!r}; there is {', '.join(PRESETS)}")
        return PRESETS[given]

    @field_validator("triage", mode="before")
    @classmethod
    def _no_triage_is_the_default(cls, given: Any) -> Any:
        return "auto" if given is None else given

    @property
    def own_triage(self) -> Triage | None:
        """The triage that its owner has configured."""
        return None if isinstance(self.triage, str) else self.triage

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may answer a step, besides the agent's own."""
        return (*(name for route in self.routing for name in route.models), *self.step_models)

    @model_validator(mode="after")
    def _models_have_a_function(self) -> Self:
        if self.step_models and self.prepare_step is None:
            raise ValueError("`step_models` are for the function of `prepare_step`: name it, or leave them out")
        return self

    @model_validator(mode="after")
    def _steps_are_looked_at(self) -> Self:
        if self.routing_per == "cycle" and any(route.from_step for route in self.routing):
            raise ValueError('a route with `from_step` needs `routing_per` = "step": otherwise the first step decides')
        return self
