"""Chooses the model for a step. Pure except for the owner's own functions; one that fails is ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, Field, JsonValue, model_validator

from denizen.cycles.conditions import Condition, holds
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from denizen.consciousness.log import Entry
    from denizen.cycles.steps import Choose, StepContext

log_line = get_logger(__name__)

RoutingPer = Literal["cycle", "step"]


class Route(BaseModel, frozen=True, extra="forbid"):
    """A model for certain events: named here, or by a function of the runtime's."""

    model: str | None = Field(default=None, min_length=1)
    """The model, named as an agent's own is."""
    by: str | None = Field(default=None, min_length=1)
    """Instead: the name of a function of `Runtime(routes={...})` or of the setting `functions.routes`, which names one
    of `among`."""
    among: tuple[str, ...] = ()
    """The models that the function may name."""
    when: Condition = Condition()
    """What must be true of each event that wakes."""
    from_step: int = Field(default=0, ge=0)
    """The first step for which it applies, the first of a cycle being 0."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.model is None) == (self.by is None):
            raise ValueError("a route names a `model`, or a function with `by`: one of the two")
        if bool(self.among) != (self.by is not None):
            raise ValueError("`among` lists the models that the function of `by` may name: give both or neither")
        return self

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may choose."""
        return self.among if self.model is None else (self.model,)


def choose(routes: Sequence[Route], context: StepContext, own: str, functions: Mapping[str, Choose]) -> str:
    """The model of the first route that applies, otherwise the agent's own."""
    for route in routes:
        if context.step >= route.from_step and holds(route.when, context.events):
            return route.model or _ask(route, context, own, functions)
    return own


def _ask(route: Route, context: StepContext, own: str, functions: Mapping[str, Choose]) -> str:
    name = route.by or ""
    try:
        chosen = functions[name](context)
    except Exception as error:  # noqa: BLE001  the owner's function must not cost the agent its cycle
        log_line.warning("route failed", route=name, error=repr(error))
        return own
    if chosen in route.among:
        return chosen
    log_line.warning("route names a model that it may not", route=name, model=str(chosen))
    return own


def model_of(response: Entry) -> str | None:
    """The model that gave this response, by the name in the request."""
    made_of: dict[str, JsonValue] = json.loads(response.request) if response.request else {}
    name = made_of.get("model")
    return name if isinstance(name, str) else None
