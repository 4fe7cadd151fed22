"""Panels, their advisors and rounds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from denizen.shapes.examples import example
from denizen.shapes.spaces import MessageOut
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import AdvisorSort, LineRole, OmissionReason, ReplyPart, ReplyState, RoundKind

BUBER = "019b8d40-1a00-7e35-9d4c-6f7a8b9c0d1e"


class Advisor(Value):
    """An advisor of a panel. The server's `AdvisorOut` has typed settings."""

    id: str
    handle: str
    name: str
    description: str
    colour: str
    group: str
    active: bool
    position: int
    model: str | None
    max_tokens: int | None
    reasoning: bool
    phases: list[Mapping[str, JsonValue]] | None
    assertions: list[str]
    reflection: Mapping[str, JsonValue] | None


class Panel(Value):
    """A panel. The server's `PanelOut` has typed settings."""

    id: Annotated[str, Field(description="Also the id of its space.")]
    name: str
    private: bool
    turns: Annotated[int, Field(description="The number of messages that were sent to it.")]
    settings: Mapping[str, JsonValue]
    advisors: list[Advisor]


class SuggestionOut(Value):
    """A suggested advisor. Post it to `…/advisors` to add it."""

    model_config = example(
        name="A baker of thirty years", kind="role", description="You get up at two.", reason="Knows the nights."
    )

    name: str
    kind: Open[AdvisorSort]
    description: str
    reason: str


class SuggestionList(Value):
    """The suggestions of a model."""

    suggestions: list[SuggestionOut]


class PhaseOut(Value):
    """The position of an advisor in its phases: "question 2 of 3"."""

    name: str
    turn: int
    of: int | None


class ReplyProfile(Value):
    """The [prompt profile](profiles.md) that an advisor had in a turn, and why."""

    preset: str | None
    reason: str


class ReplyError(Value):
    """Why an advisor has not answered. Programs use `code`."""

    model_config = example(code="model_timeout", message="The model did not answer in time.")

    code: str
    message: str


class ReplyOut(Value):
    """The reply of one advisor in one round."""

    model_config = example(
        advisor="019b8d40-1a00-7e35-9d4c-6f7a8b9c0d1e",
        name="Martin Buber",
        state="done",
        content="Whom did you ask?",
        memories={"user": 1},
        model="demo",
    )

    advisor: Annotated[str, Field(description="The id of the advisor; or `assistant`, `synthesis`.")]
    part: Open[ReplyPart]
    name: Annotated[str, Field(description="Its name at that time.")]
    state: Open[ReplyState]
    completed: Annotated[bool, Field(description="Whether it is done, failed or cancelled.")]
    content: Annotated[str, Field(description="The text; empty until it is done. While it runs, see `panel.delta`.")]
    thinking: Annotated[str | None, Field(description="The reasoning of the model; never shown to other advisors.")]
    error: ReplyError | None
    phase: PhaseOut | None
    profile: Annotated[ReplyProfile | None, Field(description="Null: profiles are off.")]
    memories: Annotated[
        dict[str, int], Field(description="How many memories of which scope it was told; never what they say.")
    ]
    result: Annotated[
        dict[str, Any] | None,
        Field(description="Of a vote: position, confidence, reason. Of a check: verdicts, passed."),
    ]
    epoch: Annotated[int, Field(description="The epoch of its deltas; each new attempt increases it.")]
    model: str | None
    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="Millionths of a dollar; null: the price is unknown.")]
    started_at: datetime | None
    ended_at: datetime | None


class CampOut(Value):
    """The advisors with one position."""

    position: str
    advisors: list[str]
    confidence: float
    weight: float


class TallyOut(Value):
    """The result of a vote."""

    leading: Annotated[str | None, Field(description="Null: none, or a tie.")]
    camps: list[CampOut]
    dissent: Annotated[
        dict[str, dict[str, float]],
        Field(description="How far each advisor stands from each other: 0 the same position, 1 both sure of another."),
    ]


class RoundOut(Value):
    """One round of a panel: the replies to a message, cross-talk, or a vote."""

    type: Literal["panel.round"] = "panel.round"
    id: str
    panel: str
    turn: Annotated[int, Field(description="A message of a person begins one.")]
    step: Annotated[int, Field(description="The position in the turn: 0 is the reply to the message itself.")]
    kind: Open[RoundKind]
    message_id: Annotated[str, Field(description="Of the message that began the turn.")]
    message: Annotated[MessageOut | None, Field(description="That message, in the round of step 0.")]
    asked_by: str
    question: Annotated[str | None, Field(description="What is voted on; null: what the turn was about.")]
    advisor_responses: Annotated[dict[str, ReplyOut], Field(description="By the id of the advisor, in order.")]
    all_completed: Annotated[bool, Field(description="Whether each is done, failed or cancelled.")]
    synthesis: ReplyOut | None
    checks: Annotated[dict[str, ReplyOut], Field(description="The results of assertions, by the id of the advisor.")]
    tally: TallyOut | None
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
    completed_at: datetime | None


class RoundPage(Value):
    """Rounds, oldest first."""

    rounds: list[RoundOut]
    next: Annotated[int | None, Field(description="Send it as `before` for older ones; null: there are none.")]


class LineOut(Value):
    """One message of a request."""

    role: Open[LineRole]
    text: str


class OmissionOut(Value):
    """Something that an advisor was not shown, and why."""

    model_config = example(reason="too_long", text="2 earlier turns were left out.")

    reason: Open[OmissionReason]
    count: Annotated[int, Field(description="How many turns, advisors or messages.")]
    advisors: Annotated[list[str], Field(description="The names of the advisors that it is about.")]
    text: Annotated[str, Field(description="What was left out and why, as a sentence.")]


class ContextOut(Value):
    """The context of a reply, message by message."""

    model_config = example(model="demo")

    lines: list[LineOut]
    omitted: Annotated[list[OmissionOut], Field(description="What it does not contain, and why.")]
    exact: Annotated[bool, Field(description="Whether none of it was edited, forgotten or answered again since then.")]
    characters: int
    model: str | None


class ForetoldOut(Value):
    """The estimated usage of one advisor."""

    model_config = example(advisor="019b8d40-1a00-7e35-9d4c-6f7a8b9c0d1e", name="Martin Buber", model="openai:gpt-5.2")

    advisor: str
    name: str
    model: str
    input_tokens: int
    output_tokens: Annotated[int, Field(description="Of a reply of usual length.")]
    most_output_tokens: int
    cost_micros: Annotated[int | None, Field(description="null: the price is unknown.")]
    most_micros: int | None


class CostOut(Value):
    """The estimated cost of a message."""

    advisors: list[ForetoldOut]
    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="null: the price of some model is unknown.")]
    most_micros: int | None
