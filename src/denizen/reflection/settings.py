"""How an agent reflects, as its owner defines it: sentiment tracking and metaprompts. Off unless it is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from denizen.errors import InvalidInput
from denizen.reflection.names import reflection_fields
from denizen.reflection.templates import check_template

Signal = Literal["user_frustrated", "user_confused", "user_satisfied", "error_threshold_exceeded", "low_engagement"]
Method = Literal["lexicon_based", "llm", "trained_classifier"]

ALL: Final = "all"
"""Stands for every preset there is."""
OFF: Final = "off"

Name = Annotated[str, Field(min_length=1, max_length=100)]
Score = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class SentimentSettings(BaseModel, frozen=True, extra="forbid"):
    """How it is found out how people feel, and what follows from it."""

    enabled: bool = False
    """The master switch."""
    method: Method = "lexicon_based"
    """`lexicon_based`: by a word list, in English and German, free; `llm`: a model is asked; `trained_classifier`: the
    function that `reflection.classifier` of denizen.toml names."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """The model that is asked with `llm`, as provider:name; by default that of the reflection."""
    history_window: int = Field(default=10, ge=1, le=1_000)
    """How many turns of a person are looked back on."""
    frustration_threshold: Score = -0.3
    """A turn that scores below this is negative."""
    satisfaction_threshold: Score = 0.3
    """A turn that scores above this is positive."""
    consecutive_turns_for_trigger: int = Field(default=2, ge=1, le=1_000)
    """So many turns in a row are a signal, however mild each is."""
    presets: tuple[Name, ...] = ()
    """Which of the metaprompts of the configuration are enabled; `all` is all of them."""


class TurnInterval(BaseModel, frozen=True, extra="forbid"):
    """After every so many turns of a conversation."""

    type: Literal["turn_interval"]
    """After every so many turns of a conversation."""
    interval_turns: int = Field(ge=1, le=1_000_000)
    """How many."""


class EventBased(BaseModel, frozen=True, extra="forbid"):
    """When there is a signal."""

    type: Literal["event_based"]
    """When there is a signal."""
    event_name: Signal
    """`user_frustrated`, `user_confused`, `user_satisfied`, `error_threshold_exceeded` or `low_engagement`."""


class Manual(BaseModel, frozen=True, extra="forbid"):
    """Only when someone asks for it."""

    type: Literal["manual"]
    """Only when someone asks for it."""


Trigger = Annotated[TurnInterval | EventBased | Manual, Field(discriminator="type")]


class Metaprompt(BaseModel, frozen=True, extra="forbid"):
    """A question that the agent asks itself after a cycle. The answer may change its state of mind."""

    id: Name
    """One with the id of a preset replaces it."""
    description: str = Field(default="", max_length=500)
    """What it is for."""
    prompt_template: str = Field(min_length=1, max_length=8_000)
    """What is asked; `{{current_mood}}` and the other variables are filled in, once."""
    trigger: Trigger
    """When it is asked."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """How freely the model answers; by default as it does."""
    max_output_tokens: int = Field(default=256, ge=16, le=8_192)
    """How long its answer may be."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """What answers, as provider:name; by default the model of the reflection."""

    @field_validator("prompt_template")
    @classmethod
    def _has_known_variables(cls, template: str) -> str:
        try:
            return check_template(template)
        except InvalidInput as error:
            raise ValueError(str(error).rstrip(".")) from error


class ReflectionSettings(BaseModel, frozen=True, extra="forbid"):
    """What an agent does after its cycles to understand the people it talks with. By default nothing."""

    profile: str = Field(default=OFF, min_length=1, max_length=100)
    """A quick-start profile of the configuration: `off`, `basic`, `standard`, `advanced`, `tutor`, or one of yours."""
    sentiment: SentimentSettings | None = None
    """Sentiment tracking in full, instead of the profile's."""
    metaprompts: tuple[Metaprompt, ...] = Field(default=(), max_length=50)
    """Further ones. Those by interval work whether or not sentiment is tracked."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """The model that answers metaprompts, as provider:name; by default the cheap one of its provider."""

    @model_validator(mode="before")
    @classmethod
    def _may_have_json_names(cls, given: Any) -> Any:
        return reflection_fields(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else given

    @field_validator("metaprompts")
    @classmethod
    def _named_once(cls, given: tuple[Metaprompt, ...]) -> tuple[Metaprompt, ...]:
        ids = [each.id for each in given]
        if twice := next((id for at, id in enumerate(ids) if id in ids[:at]), None):
            raise ValueError(f"there are two metaprompts with the id {twice!r}")
        return given

    @property
    def is_on(self) -> bool:
        """Whether anything may happen after a cycle."""
        if self.sentiment is None:
            return self.profile != OFF or bool(self.metaprompts)
        return self.sentiment.enabled or bool(self.sentiment.presets) or bool(self.metaprompts)
