"""An agent's inbox, cycles, window and log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from denizen.shapes.agents import RestingOut
from denizen.shapes.calls import CallOut
from denizen.shapes.examples import ADA, KITCHEN, example
from denizen.shapes.plans import GoalOut, NoteOut, PlanOut
from denizen.shapes.stances import StandingOut
from denizen.shapes.usage import Limits, UsedOut
from denizen.shapes.value import NextAfter, NextBefore, NextEitherWay, Open, Value
from denizen.shapes.vocabulary import AgentState, EntryKind, EventType, Lane, OpenState, SenderKind

_OUTSIDE = (
    "Where its text from outside came from, such as `from outside: get_page`; of a response, that its request held "
    "such text. Empty: nothing in it is from outside."
)


class EventOut(Value):
    """Something that reached an agent's inbox."""

    id: str
    number: Annotated[int, Field(description="The order in which it came.")]
    type: Open[EventType]
    lane: Open[Lane]
    wakes: Annotated[bool, Field(description="Whether it wakes the agent, or only waits to be read along.")]
    hop: Annotated[int, Field(description="How many agents in a row led to it.")]
    attempts: Annotated[int, Field(description="How many cycles took it and failed.")]
    created_at: datetime
    text: str
    space_id: str | None
    space: str | None
    sender_id: str | None
    sender: str | None
    sender_kind: Open[SenderKind] | None
    message_id: str | None
    payload: Mapping[str, JsonValue]
    outside: Annotated[bool, Field(description="Whether its text is from outside, or made from such text.")] = False


class InboxEvent(EventOut):
    """An unfinished event and its state."""

    state: Open[OpenState]
    not_before: Annotated[datetime | None, Field(description="The time of the next attempt; null: at once.")]
    cycle_id: Annotated[str | None, Field(description="The cycle that has taken it.")]


class InboxPage(Value):
    """Events in the order in which they are taken: urgent ones first."""

    events: list[InboxEvent]
    next: NextAfter[str]


Outcome = Literal["open", "paused", "acted", "failed", "skipped", "undone"]


class CycleOut(Value):
    """One think cycle of an agent."""

    model_config = example(outcome="acted")

    id: str
    number: Annotated[int | None, Field(description="Null for a running cycle, and for one without a record.")]
    outcome: Annotated[
        Open[Outcome],
        Field(
            description="`skipped`: the agent had nothing to do. `undone`: it failed before it had done anything, and "
            "its events wait again. Neither is part of the agent's history."
        ),
    ]
    kept: Annotated[bool, Field(description="Whether it is part of the agent's history, with details.")]
    reason: Annotated[str, Field(description="Why it ended, or why it was skipped or undone.")]
    summary: str
    steps: Annotated[int | None, Field(description="The number of model responses; null: not known yet.")]
    started_at: datetime | None
    ended_at: datetime | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: Annotated[int, Field(description="Input tokens that the provider read from its cache.")] = 0
    cache_write_tokens: Annotated[int, Field(description="Input tokens that the provider wrote to its cache.")] = 0
    dollars: Annotated[float, Field(description="0 where the price is unknown.")]
    tools: Annotated[list[str], Field(description="The tools that its model called, each once, in order.")] = []  # noqa: RUF012  Pydantic copies it
    people: Annotated[list[str], Field(description="Names of the people, agents and services that it heard.")] = []  # noqa: RUF012  Pydantic copies it
    spaces: Annotated[list[str], Field(description="Names of the spaces with messages.")] = []  # noqa: RUF012  Pydantic copies it
    private: Annotated[
        int,
        Field(description="How many of its entries are not shown: they come from a private space that you are not in."),
    ] = 0
    private_spaces: Annotated[
        list[str], Field(description="For owners: the ids of these spaces, which they can open for an hour.")
    ] = []  # noqa: RUF012  Pydantic copies it
    outside: Annotated[bool, Field(description="Whether a request of it held text from outside.")] = False


class CyclePage(Value):
    """Cycles, newest first, including skipped and undone ones."""

    cycles: list[CycleOut]
    next: NextBefore[int]
    complete: Annotated[
        bool, Field(description="False where more were skipped or undone in this time than were looked for.")
    ]


class UsageOfCall(Value):
    """The tokens of one model call."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class ToolCall(Value):
    """A tool call of the model, and its result."""

    model_config = example(result='{"success": true}')

    tool: str
    arguments: JsonValue
    result: Annotated[str | None, Field(description="Null: none yet, or forgotten.")]


class Shown(Value):
    """Something that the agent was shown."""

    kind: Open[EntryKind]
    text: str
    outside: Annotated[str, Field(description=_OUTSIDE)] = ""


class StepOut(Value):
    """One step of a cycle: new input, the response of the model, and the results of its calls."""

    step: Annotated[int, Field(description="The first is 0.")]
    model: Annotated[str, Field(description="The model that was asked.")]
    shown: Annotated[list[Shown], Field(description="What it was shown since the step before.")]
    text: str
    thinking: str
    calls: list[ToolCall]
    usage: UsageOfCall
    outside: Annotated[bool, Field(description="Whether its request held text from outside.")] = False
    results_outside: Annotated[
        str, Field(description="Where text from outside in the results of its calls came from; empty: there is none.")
    ] = ""


class CycleDetail(CycleOut):
    """One cycle, step by step."""

    each_step: list[StepOut]
    after: Annotated[list[Shown], Field(description="Entries after the last step.")]


class RequestOut(Value):
    """The exact request to a model, and its response. Forgotten text is shown as `[forgotten]`."""

    cycle: int
    step: int
    model: Annotated[str, Field(description="The model that was asked.")]
    settings: Mapping[str, JsonValue]
    tools: Annotated[list[JsonValue] | None, Field(description="Null: not stored.")]
    messages: Annotated[list[JsonValue], Field(description="In the form of Pydantic AI.")]
    tokens: Annotated[int, Field(description="Of the messages, estimated.")]
    response: JsonValue
    results: Annotated[JsonValue, Field(description="The results of the calls in the response; null: no calls.")]
    private: Annotated[
        bool, Field(description="Whether something from private spaces that you are not in is left out.")
    ] = False
    outside: Annotated[str, Field(description="Where its text from outside came from; empty: it held none.")] = ""


class AnswerAgain(Value):
    """The answer of another model to an earlier request."""

    model_config = example(
        model="openai:gpt-6.1-terra",
        difference=["--- anthropic:claude-sonnet-5-5", "+++ openai:gpt-6.1-terra", "-Yes.", "+It did."],
    )

    step: int
    model: str
    response: JsonValue
    difference: Annotated[list[str], Field(description="In the format of `diff -u`; empty: no difference.")]
    usage: UsageOfCall
    dollars: Annotated[float | None, Field(description="Null where the price is unknown.")]


class AnswersAgain(Value):
    """The answers, by step. No tool ran, and they are not stored."""

    answers: list[AnswerAgain]


class LogEntry(Value):
    """One entry of an agent's log."""

    seq: Annotated[int, Field(description="Its number in the agent's log: 1, 2, 3, without gaps.")]
    cycle: Annotated[int | None, Field(description="The number of its cycle; null while that is open.")]
    cycle_id: str
    kind: Open[EntryKind] | Open[Literal["private"]]
    at: datetime
    tokens: Annotated[int, Field(description="Estimated.")]
    message: Annotated[JsonValue, Field(description="In the form of Pydantic AI; null where it is private.")]
    private: Annotated[
        int,
        Field(
            description="How many entries this one stands for, itself among them: they come from a private space that "
            "you are not in. 0: it is an entry itself."
        ),
    ] = 0
    outside: Annotated[str, Field(description=_OUTSIDE)] = ""


class LogPage(Value):
    """Some entries of an agent's log, oldest first."""

    entries: list[LogEntry]
    next: NextEitherWay[int]


class Recalled(Value):
    """A passage of an agent's history that was found."""

    model_config = example(kind="heard", who="Noor", text="I take my tea without sugar.", pointer="")

    cycle: Annotated[int, Field(description="The number of its cycle; 0 for a note.")]
    at: datetime
    kind: Annotated[str, Field(description="heard, said, did, summary, note")]
    space_id: str
    space: str
    who: Annotated[str, Field(description="Who or what said it; empty: the agent itself.")]
    text: str
    pointer: Annotated[str, Field(description="A pointer to the whole text; empty: this is all of it.")]
    score: float


class RecallOut(Value):
    """The results, best first."""

    found: list[Recalled]


class CrossingOut(Value):
    """A message that the privacy guard stopped, without its words."""

    model_config = example(from_space_id=KITCHEN, from_space="Diary", to_space_id=KITCHEN)

    from_space_id: str
    from_space: str
    to_space_id: str
    cycle_id: str
    words: Annotated[int, Field(description="How many in a row.")]
    at: datetime


class CrossingPage(Value):
    """Stopped messages, newest first."""

    crossings: list[CrossingOut]
    next: NextBefore[int]


Part = Literal["self", "tools", "layers", "recalled", "recent", "open", "free"]


class WindowSection(Value):
    """A part of the layers, about some cycles."""

    model_config = example(text="10 cycles, 2026-01-05. With Noor (9).")

    kind: Annotated[
        Open[Literal["group", "lines"]], Field(description="A summary of several cycles, or a line for each.")
    ]
    first_cycle: int
    last_cycle: int
    tokens: Annotated[int, Field(description="Estimated.")]
    text: str


class WindowPart(Value):
    """One part of the next request."""

    model_config = example(part="layers", text="[EARLIER CYCLES …]")

    part: Annotated[Open[Part], Field(description="In the order of the request; `free` is what is left.")]
    tokens: Annotated[int, Field(description="Estimated.")]
    first_cycle: int | None = None
    last_cycle: int | None = None
    text: Annotated[
        str | None, Field(description="Of the self, the layers and what was recalled, as the model reads them.")
    ] = None
    sections: Annotated[list[WindowSection], Field(description="Of the layers, oldest first.")] = []  # noqa: RUF012  Pydantic copies it
    outside: Annotated[bool, Field(description="Of the layers: whether they were made from text from outside.")] = False


class WindowOut(Value):
    """The content of the next request."""

    limit: Annotated[int, Field(description="The most tokens it may have.")]
    used: int
    era: Annotated[int, Field(description="The present era.")]
    parts: list[WindowPart]


class LaneOut(Value):
    """One lane of the inbox."""

    model_config = example(name="urgent")

    name: Annotated[str, Field(description="urgent, normal")]
    waiting: int
    taken: Annotated[int, Field(description="Taken by the running cycle.")]
    first: Annotated[list[EventOut], Field(description="Those that will be taken first.")]


class MindOut(Value):
    """The state of an agent's mind at one moment."""

    model_config = example(id=ADA)

    id: str
    handle: str
    name: str
    model: Annotated[str, Field(description="Its model, as in its definition.")]
    at: datetime
    status: Open[AgentState]
    holder: Annotated[str | None, Field(description="The instance that holds its lease.")]
    held_until: datetime | None
    resting: RestingOut | None
    cycles: Annotated[int, Field(description="The number of cycles.")]
    window: WindowOut
    inbox: list[LaneOut]
    dead: Annotated[list[EventOut], Field(description="Events that were given up; at most 200.")]
    goals: list[GoalOut]
    notes: list[NoteOut]
    plans: list[PlanOut]
    stances: Annotated[list[StandingOut], Field(description="Profiles and states of mind, the newest first.")]
    waiting_calls: Annotated[list[CallOut], Field(description="The calls that wait for an answer.")]
    budget: Limits | None
    organization_budget: Limits | None
    today: UsedOut
    seven_days: UsedOut
    last_cycles: list[CycleOut]
