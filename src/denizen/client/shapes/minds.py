"""Cycles of an agent, one by one, and its window."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from denizen.client.shapes.agents import Call, Event, Goal, Note, Plan, Resting
from denizen.client.shapes.costs import Limits, Used
from denizen.client.shapes.stances import Standing
from denizen.client.shapes.value import Value


class Cycle(Value):
    """One think cycle of an agent."""

    id: str
    number: int | None
    outcome: str
    reason: str
    summary: str
    steps: int | None
    started_at: datetime | None
    ended_at: datetime | None
    input_tokens: int
    output_tokens: int
    dollars: float
    outside: bool = False
    """Whether a request of it held text from outside."""


class Cycles(Value):
    """Cycles, the newest first."""

    cycles: tuple[Cycle, ...]
    next: int | None = None


class CycleDetail(Cycle):
    """One cycle, step by step."""

    each_step: tuple[dict[str, JsonValue], ...]
    after: tuple[dict[str, JsonValue], ...] = ()


class Request(Value):
    """One request to a model, exactly, and what came back."""

    cycle: int
    step: int
    model: str
    settings: dict[str, JsonValue]
    tools: tuple[JsonValue, ...] | None
    messages: tuple[JsonValue, ...]
    tokens: int
    response: JsonValue
    results: JsonValue = None
    outside: str = ""
    """Where its text from outside came from; empty: it held none."""


class UsageOfCall(Value):
    """What one model call read and wrote, in tokens."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class AnswerAgain(Value):
    """What another model answers to the same request."""

    step: int
    model: str
    response: JsonValue
    difference: tuple[str, ...]
    usage: UsageOfCall
    dollars: float | None = None


class LogEntry(Value):
    """One message of an agent's life."""

    seq: int
    cycle: int | None
    kind: str
    at: datetime
    tokens: int
    message: JsonValue
    outside: str = ""
    """Where its text from outside came from; empty: nothing in it is from outside."""


class LogPage(Value):
    """A page of an agent's life."""

    entries: tuple[LogEntry, ...]
    next: int | None = None


class Recalled(Value):
    """Something that an agent recalls."""

    cycle: int
    at: datetime
    kind: str
    space_id: str
    space: str
    who: str
    text: str
    score: float


class WindowPart(Value):
    """One part of what the next request would hold; `free` is what is left."""

    part: str
    tokens: int
    first_cycle: int | None = None
    last_cycle: int | None = None
    text: str | None = None
    outside: bool = False
    """Of the layers: whether they were made from text from outside."""


class Window(Value):
    """What the next request would hold, in estimated tokens."""

    limit: int
    used: int
    era: int
    parts: tuple[WindowPart, ...]


class Lane(Value):
    """One lane of an inbox, and the events that will be taken first."""

    name: str
    waiting: int
    taken: int
    first: tuple[Event, ...]


class Lived(Cycle):
    """A cycle, and how much of what it read the provider had kept."""

    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class Mind(Value):
    """An agent at one moment: its window, its inbox, what it means to do, what it has used."""

    id: str
    handle: str
    name: str
    model: str = ""
    at: datetime
    status: str
    holder: str | None = None
    """The instance that may think for it now."""
    held_until: datetime | None = None
    resting: Resting | None = None
    cycles: int
    window: Window
    inbox: tuple[Lane, ...]
    dead: tuple[Event, ...]
    goals: tuple[Goal, ...]
    notes: tuple[Note, ...]
    plans: tuple[Plan, ...]
    stances: tuple[Standing, ...] = ()
    waiting_calls: tuple[Call, ...] = ()
    budget: Limits | None = None
    organization_budget: Limits | None = None
    today: Used
    seven_days: Used
    last_cycles: tuple[Lived, ...]
