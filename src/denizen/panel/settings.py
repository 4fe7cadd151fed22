"""The settings of a panel and of its advisors. Validated at the border, stored as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypedDict, TypeVar

from pydantic import BaseModel, Field, ValidationError

from denizen.cycles.budgets import BudgetSettings
from denizen.errors import InvalidInput
from denizen.panel.phases import DEFAULT_PHASES, Phase
from denizen.reflection.settings import ReflectionSettings

MOST_ADVISORS: Final = 50
MOST_CROSSTALK: Final = 5
CONTEXT_CHARACTERS: Final = 150_000
REFERENCE_CHARACTERS: Final = 4_000
FIRST_BYTE_SECONDS: Final = 15
TOTAL_SECONDS: Final = 240
OUTPUT_TOKENS: Final = 4_000

Model = TypeVar("Model", bound=BaseModel)


class PanelFields(TypedDict, total=False):
    """The fields of `PanelSettings`, as keyword arguments of `denizen.panels.create` and `edit`. Settings with parts of
    their own can be given as dictionaries."""

    model: str
    max_tokens: int
    phases: Iterable[Phase | Mapping[str, Any]]
    context_characters: int
    show_others: bool
    reference_characters: int
    first_byte_seconds: float
    total_seconds: float
    at_once: int
    synthesis: Literal["on_demand", "always"]
    crosstalk: int
    utility_model: str
    budget: BudgetSettings | Mapping[str, Any] | None
    reflection: ReflectionSettings | Mapping[str, Any]


class PanelSettings(BaseModel, frozen=True, extra="forbid"):
    """What holds for a whole panel."""

    model: str = Field(default="default", min_length=1)
    """What answers for advisors that name no model of their own, and for the panel itself."""
    max_tokens: int = Field(default=OUTPUT_TOKENS, ge=1, le=200_000)
    """How long a reply may be."""
    phases: tuple[Phase, ...] = Field(default=DEFAULT_PHASES, max_length=20)
    context_characters: int = Field(default=CONTEXT_CHARACTERS, ge=1_000, le=4_000_000)
    """How much an advisor is shown; the oldest turns go first, the last words of the others and the question never."""
    show_others: bool = True
    """Whether an advisor is shown what the others said in the previous turn."""
    reference_characters: int = Field(default=REFERENCE_CHARACTERS, ge=100, le=100_000)
    """How much of each other advisor's last words an advisor is shown."""
    first_byte_seconds: float = Field(default=FIRST_BYTE_SECONDS, gt=0, le=600)
    """How long a model may take to begin."""
    total_seconds: float = Field(default=TOTAL_SECONDS, gt=0, le=3_600)
    """How long a reply may take in all, however often it is tried."""
    at_once: int = Field(default=16, ge=1, le=MOST_ADVISORS)
    """How many voices of this panel answer at the same time; the others wait."""
    synthesis: Literal["on_demand", "always"] = "on_demand"
    """Whether what was said is put together after each turn, or only when someone asks."""
    crosstalk: int = Field(default=0, ge=0, le=MOST_CROSSTALK)
    """How many rounds the advisors answer each other after each message."""
    utility_model: str = Field(default="", max_length=200)
    """What suggests advisors, puts together and checks; empty: the panel's own model."""
    budget: BudgetSettings | None = None
    """What this panel may use. The organization's limits hold as well."""
    reflection: ReflectionSettings = Field(default_factory=ReflectionSettings)
    """How its voices think a turn over once it is answered: sentiment and metaprompts. By default they do not."""


class AdvisorSettings(BaseModel, frozen=True, extra="forbid"):
    """What one advisor answers with."""

    model: str | None = Field(default=None, min_length=1, max_length=200)
    """None: the panel's."""
    max_tokens: int | None = Field(default=None, ge=1, le=200_000)
    reasoning: bool = False
    """Whether a model that can think before it speaks does so."""
    phases: tuple[Phase, ...] | None = Field(default=None, max_length=20)
    """Its own, instead of the panel's."""
    assertions: tuple[str, ...] = Field(default=(), max_length=20)
    """What is expected of each of its replies: checked when it is there."""
    reflection: ReflectionSettings | None = None
    """Its own, instead of the panel's."""


def checked(kind: type[Model], given: Mapping[str, Any], what: str) -> Model:
    """Validates settings from outside. Raises `InvalidInput` that says which of them is wrong."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or what}: {each['msg']}" for each in error.errors(include_url=False)
        )
        raise InvalidInput(f"Invalid settings of {what}. {problems}.") from error
