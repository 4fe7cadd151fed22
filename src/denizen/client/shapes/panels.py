"""Panels, their advisors and rounds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from denizen.client.shapes.value import Value


class Advisor(Value):
    """A voice of a panel."""

    id: str
    handle: str
    name: str
    description: str = ""
    colour: str = ""
    group: str = ""
    active: bool = True
    position: int = 0
    model: str | None = None
    max_tokens: int | None = None
    reasoning: bool = False
    assertions: tuple[str, ...] = ()
    reflection: Mapping[str, JsonValue] | None = None
    """Its own; None: the panel's."""


class Panel(Value):
    """A space whose advisors answer. Its id is that of the space."""

    id: str
    name: str
    private: bool
    turns: int
    settings: Mapping[str, JsonValue]
    advisors: tuple[Advisor, ...]


class Suggestion(Value):
    """An advisor that might be of use."""

    name: str
    kind: str
    description: str
    reason: str


class ReplyError(Value):
    """Why a voice has not answered."""

    code: str
    message: str


class ReplyPhase(Value):
    """Where an advisor is in its phases."""

    name: str
    turn: int
    of: int | None


class ReplyProfile(Value):
    """The prompt profile that an advisor had in a turn, and why."""

    preset: str | None
    reason: str


class Reply(Value):
    """What one voice answers in one round."""

    advisor: str
    part: str
    name: str
    state: str
    completed: bool
    content: str
    thinking: str | None = None
    error: ReplyError | None = None
    phase: ReplyPhase | None = None
    profile: ReplyProfile | None = None
    memories: Mapping[str, int] = {}
    result: Mapping[str, JsonValue] | None = None
    epoch: int = 0
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None


class Camp(Value):
    """Those of one position."""

    position: str
    advisors: tuple[str, ...]
    confidence: float
    weight: float


class Tally(Value):
    """What a vote came to."""

    leading: str | None
    camps: tuple[Camp, ...]
    dissent: Mapping[str, Mapping[str, float]]


class Round(Value):
    """One time that the voices of a panel were asked."""

    id: str
    panel: str
    turn: int
    step: int
    kind: str
    message_id: str
    asked_by: str
    question: str | None
    advisor_responses: Mapping[str, Reply]
    all_completed: bool
    synthesis: Reply | None
    checks: Mapping[str, Reply]
    tally: Tally | None
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
    completed_at: datetime | None


class Rounds(Value):
    """Rounds, the oldest first."""

    rounds: tuple[Round, ...]
    next: int | None
    """Give it as `before` for older ones."""


class ContextLine(Value):
    """One message of a request."""

    role: str
    text: str


class ReplyContext(Value):
    """What a voice was shown when it answered."""

    lines: tuple[ContextLine, ...]
    exact: bool


class VoiceCost(Value):
    """What asking one voice would cost."""

    advisor: str
    name: str
    model: str
    input_tokens: int
    output_tokens: int
    most_output_tokens: int
    cost_micros: int | None
    most_micros: int | None


class PanelCost(Value):
    """What a message would cost."""

    advisors: tuple[VoiceCost, ...]
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    most_micros: int | None
