"""Panels, their advisors and rounds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from denizen.shapes.examples import KITCHEN, NINE, NOOR, THING, given
from denizen.shapes.spaces import MessageOut
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import AdvisorSort, LineRole, OmissionReason, ReplyPart, ReplyState, RoundKind

BUBER = "019b8d40-1a00-7e35-9d4c-6f7a8b9c0d1e"


class Advisor(Value):
    """A voice of a panel. The server's `AdvisorOut` describes the settings to the field."""

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
    """A space whose advisors answer. The server's `PanelOut` describes the settings to the field."""

    id: Annotated[str, Field(description="Also the id of its space.")]
    name: str
    private: bool
    turns: Annotated[int, Field(description="How many messages were put to it.")]
    settings: Mapping[str, JsonValue]
    advisors: list[Advisor]


class SuggestionOut(Value):
    """An advisor that might be of use. Post it to `…/advisors` to have it."""

    model_config = given(
        name="A baker of thirty years", kind="role", description="You get up at two.", reason="Knows the nights."
    )

    name: str
    kind: Open[AdvisorSort]
    description: str
    reason: str


class SuggestionList(Value):
    """What a model proposes."""

    suggestions: list[SuggestionOut]


class PhaseOut(Value):
    """Where an advisor is in its phases: "question 2 of 3"."""

    name: str
    turn: int
    of: int | None


class ReplyProfile(Value):
    """The [prompt profile](profiles.md) that an advisor had in a turn, and why."""

    preset: str | None
    reason: str


class ReplyError(Value):
    """Why a voice has not answered. Decide by `code`."""

    code: str
    message: str


class ReplyOut(Value):
    """What one voice answers in one round."""

    model_config = given(
        advisor=BUBER, part="reply", name="Martin Buber", state="done", completed=True, content="Whom did you ask?",
        thinking=None, error=None, phase={"name": "question", "turn": 2, "of": 3},
        profile={"preset": "short", "reason": "default"}, memories={"user": 1}, result=None, epoch=1, model="demo",
        input_tokens=412, output_tokens=9, cost_micros=0, started_at=NINE, ended_at=NINE,
    )  # fmt: skip

    advisor: Annotated[str, Field(description="The id of the advisor; or `assistant`, `synthesis`.")]
    part: Open[ReplyPart]
    name: Annotated[str, Field(description="What it was called then.")]
    state: Open[ReplyState]
    completed: Annotated[bool, Field(description="Whether it is done, failed or cancelled.")]
    content: Annotated[
        str, Field(description="What it said; empty until it is done. While it runs, see `panel.delta`.")
    ]
    thinking: Annotated[
        str | None, Field(description="What a reasoning model thought before it; never shown to others.")
    ]
    error: ReplyError | None
    phase: PhaseOut | None
    profile: Annotated[ReplyProfile | None, Field(description="Null where there are no profiles.")]
    memories: Annotated[
        dict[str, int], Field(description="How many memories of which scope it was told; never what they say.")
    ]
    result: Annotated[
        dict[str, Any] | None,
        Field(description="Of a vote: position, confidence, reason. Of a check: verdicts, passed."),
    ]
    epoch: Annotated[int, Field(description="Of the deltas that belong to it; goes up with each new attempt.")]
    model: str | None
    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="Millionths of a dollar; null: the price is unknown.")]
    started_at: datetime | None
    ended_at: datetime | None


class CampOut(Value):
    """Those of one position."""

    position: str
    advisors: list[str]
    confidence: float
    weight: float


class TallyOut(Value):
    """What a vote came to."""

    leading: Annotated[str | None, Field(description="null: there is none, or several are as strong.")]
    camps: list[CampOut]
    dissent: Annotated[
        dict[str, dict[str, float]],
        Field(description="How far each advisor stands from each other: 0 the same position, 1 both sure of another."),
    ]


class RoundOut(Value):
    """One time that the voices of a panel were asked: the answer to a message, cross-talk, or a vote."""

    model_config = given(
        type="panel.round", id=THING, panel=KITCHEN, turn=4, step=0, kind="ask", message_id=THING, message=None,
        asked_by=NOOR, question=None, advisor_responses={}, all_completed=True, synthesis=None, checks={}, tally=None,
        input_tokens=0, output_tokens=0, cost_micros=0, created_at=NINE, completed_at=NINE,
    )  # fmt: skip

    type: Literal["panel.round"] = "panel.round"
    id: str
    panel: str
    turn: Annotated[int, Field(description="A message of a person begins one.")]
    step: Annotated[int, Field(description="Within the turn: 0 is the message itself.")]
    kind: Open[RoundKind]
    message_id: Annotated[str, Field(description="Of the message that began the turn.")]
    message: Annotated[MessageOut | None, Field(description="That message, in the round of step 0.")]
    asked_by: str
    question: Annotated[str | None, Field(description="What is voted on; null: what the turn was about.")]
    advisor_responses: Annotated[dict[str, ReplyOut], Field(description="By the id of the advisor, in order.")]
    all_completed: Annotated[bool, Field(description="Whether each is done, failed or cancelled.")]
    synthesis: ReplyOut | None
    checks: Annotated[dict[str, ReplyOut], Field(description="What came of assertions, by the id of the advisor.")]
    tally: TallyOut | None
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
    completed_at: datetime | None


class RoundPage(Value):
    """Rounds, the oldest first."""

    rounds: list[RoundOut]
    next: Annotated[int | None, Field(description="Give it as `before` for older ones; null: there are none.")]


class LineOut(Value):
    """One message of a request."""

    role: Open[LineRole]
    text: str


class OmissionOut(Value):
    """Something that a voice was not shown, and why."""

    model_config = given(reason="too_long", count=2, advisors=[], text="2 earlier turns were left out.")

    reason: Open[OmissionReason]
    count: Annotated[int, Field(description="How many turns, advisors or messages.")]
    advisors: Annotated[list[str], Field(description="The names of the advisors that it is about.")]
    text: Annotated[str, Field(description="What was left out and why, as a sentence.")]


class ContextOut(Value):
    """What a voice was shown when it answered, message by message."""

    model_config = given(
        lines=[{"role": "system", "text": "You are Martin Buber."}], exact=True, characters=21, model="demo",
        omitted=[],
    )  # fmt: skip

    lines: list[LineOut]
    omitted: Annotated[list[OmissionOut], Field(description="What it does not contain, and why.")]
    exact: Annotated[bool, Field(description="Whether nothing of it was edited, forgotten or answered anew since.")]
    characters: int
    model: str | None


class ForetoldOut(Value):
    """What one voice will use."""

    model_config = given(
        advisor=BUBER, name="Martin Buber", model="openai:gpt-5.2", input_tokens=812, output_tokens=250,
        most_output_tokens=4_000, cost_micros=4_920, most_micros=57_421,
    )  # fmt: skip

    advisor: str
    name: str
    model: str
    input_tokens: int
    output_tokens: Annotated[int, Field(description="Of a reply of usual length.")]
    most_output_tokens: int
    cost_micros: Annotated[int | None, Field(description="null: the price is unknown.")]
    most_micros: int | None


class CostOut(Value):
    """What a message would cost."""

    model_config = given(
        advisors=[], input_tokens=812, output_tokens=250, cost_micros=4_920, most_micros=57_421,
    )  # fmt: skip

    advisors: list[ForetoldOut]
    input_tokens: int
    output_tokens: int
    cost_micros: Annotated[int | None, Field(description="null: the price of some model is unknown.")]
    most_micros: int | None
