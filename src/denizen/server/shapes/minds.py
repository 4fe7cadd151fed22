"""What an agent has in mind: its inbox, its cycles, its window, its log, what it recalls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart

from denizen.agents.inspection import Inspection, Lane
from denizen.agents.registry import Status
from denizen.clock import moment
from denizen.consciousness.layers import Block, blocks
from denizen.consciousness.layers import Lived as Told
from denizen.consciousness.log import Dated, Entry, EntryKind, text_of
from denizen.consciousness.privacy import Run
from denizen.consciousness.recall.fetching import Found
from denizen.consciousness.replay import Rebuilt, as_object
from denizen.consciousness.selfhood import Era
from denizen.cycles.records import CycleRecord, OpenRecord, calls_of
from denizen.cycles.rethinking import Rethought
from denizen.cycles.unkept import Unkept
from denizen.cycles.usage import Answers
from denizen.inbox.delivery import Listed, OpenState
from denizen.inbox.events import Event, EventType, SenderKind
from denizen.inbox.events import Lane as LaneName
from denizen.models import codec
from denizen.models.prices import Usage, usage_of
from denizen.models.tokens import estimate
from denizen.server.schemas import CallOut
from denizen.server.shapes.agents import RestingOut
from denizen.server.shapes.examples import ADA, KITCHEN, NINE, NOOR, THING, asked, given
from denizen.server.shapes.plans import GoalOut, NoteOut, PlanOut
from denizen.server.shapes.stances import StandingOut
from denizen.server.shapes.usage import Limits, UsedOut
from denizen.spaces.source_names import label
from denizen.tools.guard import Crossing

_EVENT: dict[str, Any] = {
    "id": THING,
    "number": 4711,
    "type": "mention",
    "lane": "normal",
    "wakes": True,
    "hop": 0,
    "attempts": 0,
    "created_at": NINE,
    "text": "Good morning, @ada.",
    "space_id": KITCHEN,
    "space": "Kitchen",
    "sender_id": NOOR,
    "sender": "Noor",
    "sender_kind": "human",
    "message_id": THING,
    "payload": {},
}


_OUTSIDE = (
    "Where its text from outside came from, such as `from outside: get_page`; of a response, that its request held "
    "such text. Empty: nothing in it is from outside."
)


class EventOut(BaseModel):
    """Something that reached an agent's inbox."""

    model_config = given(**_EVENT)

    id: str
    number: Annotated[int, Field(description="The order in which it came.")]
    type: EventType
    lane: LaneName
    wakes: Annotated[bool, Field(description="Whether it wakes the agent, or only waits to be read along.")]
    hop: Annotated[int, Field(description="How many agents in a row led to it.")]
    attempts: Annotated[int, Field(description="How many cycles took it and failed.")]
    created_at: datetime
    text: str
    space_id: str | None
    space: str | None
    sender_id: str | None
    sender: str | None
    sender_kind: SenderKind | None
    message_id: str | None
    payload: Mapping[str, JsonValue]
    outside: Annotated[bool, Field(description="Whether its text is from outside, or made from such text.")] = False

    @classmethod
    def of(cls, event: Event) -> EventOut:
        return cls(**_event(event))


def _event(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "number": event.number,
        "type": event.type,
        "lane": event.lane,
        "wakes": event.wakes,
        "hop": event.hop,
        "attempts": event.attempts,
        "created_at": moment(event.created_at),
        "text": event.text,
        "space_id": event.space_id,
        "space": event.space_name,
        "sender_id": event.sender_id,
        "sender": event.sender_name,
        "sender_kind": event.sender_kind,
        "message_id": event.message_id,
        "payload": event.payload,
        "outside": event.outside,
    }


class InboxEvent(EventOut):
    """An event that is not done, and how it stands with it."""

    model_config = given(**_EVENT, state="pending", not_before=None, cycle_id=None)

    state: OpenState
    not_before: Annotated[datetime | None, Field(description="Before that it is not tried again; null: at once.")]
    cycle_id: Annotated[str | None, Field(description="Of the cycle that has taken it.")]

    @classmethod
    def listed(cls, each: Listed) -> InboxEvent:
        return cls(
            **_event(each.event),
            state=each.state,
            not_before=moment(each.not_before) if each.not_before else None,
            cycle_id=each.cycle_id,
        )


class InboxPage(BaseModel):
    """Events in the order in which they are taken: urgent ones first."""

    events: list[InboxEvent]
    next: Annotated[str | None, Field(description="Give it as `after` for the next page; null: there is none.")]


Outcome = Literal["open", "paused", "acted", "failed", "skipped", "undone"]

_CYCLE = {
    "id": THING,
    "number": 12,
    "outcome": "acted",
    "kept": True,
    "reason": "done",
    "summary": "Told Noor that the build passed.",
    "steps": 2,
    "started_at": NINE,
    "ended_at": NINE,
    "input_tokens": 8_400,
    "output_tokens": 120,
    "cache_read_tokens": 7_900,
    "cache_write_tokens": 0,
    "dollars": 0.0271,
    "tools": ["send_message"],
    "people": ["Noor"],
    "spaces": ["Kitchen"],
}


class CycleOut(BaseModel):
    """One think cycle of an agent."""

    model_config = given(**_CYCLE)

    id: str
    number: Annotated[int | None, Field(description="Null while it is open, and where nothing of it is kept.")]
    outcome: Annotated[
        Outcome,
        Field(
            description="`skipped`: the agent had nothing to do. `undone`: it failed before it had done anything, and "
            "its events wait again. Of these two nothing is kept but this."
        ),
    ]
    kept: Annotated[bool, Field(description="Whether it is part of the agent's life, and can be looked into.")]
    reason: Annotated[str, Field(description="Why it ended; of a skipped or undone one, why it came to nothing.")]
    summary: str
    steps: Annotated[int | None, Field(description="How often the model answered; null where that is not known yet.")]
    started_at: datetime | None
    ended_at: datetime | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: Annotated[int, Field(description="Of those read, what the provider had kept.")] = 0
    cache_write_tokens: Annotated[int, Field(description="Of those read, what it was told to keep.")] = 0
    dollars: Annotated[float, Field(description="0 where the price is unknown.")]
    tools: Annotated[list[str], Field(description="That its model called, each once, in the order of the calls.")] = []
    people: Annotated[list[str], Field(description="Whom it heard, by name: people, agents, services.")] = []
    spaces: Annotated[list[str], Field(description="Where something was said, by name.")] = []
    private: Annotated[
        int,
        Field(description="How many of its entries are not shown: they come from a private space that you are not in."),
    ] = 0
    private_spaces: Annotated[
        list[str], Field(description="For owners: the ids of these spaces, which they can open for an hour.")
    ] = []
    outside: Annotated[bool, Field(description="Whether a request of it held text from outside.")] = False

    @classmethod
    def of(
        cls,
        record: CycleRecord,
        answers: Answers | None = None,
        told: Told | None = None,
        private: int = 0,
        private_spaces: Sequence[str] = (),
    ) -> CycleOut:
        return cls(**_cycle(record, answers, told, private), private_spaces=list(private_spaces))

    @classmethod
    def of_open(cls, record: OpenRecord) -> CycleOut:
        return cls(
            id=record.id,
            number=None,
            outcome=record.outcome,
            kept=False,
            reason="",
            summary="",
            steps=None,
            started_at=moment(record.started_at),
            ended_at=None,
            input_tokens=0,
            output_tokens=0,
            dollars=0.0,
        )

    @classmethod
    def of_unkept(cls, each: Unkept) -> CycleOut:
        return cls(
            id=each.cycle_id,
            number=None,
            outcome=each.outcome,
            kept=False,
            reason=each.reason,
            summary="",
            steps=None,
            started_at=None,
            ended_at=moment(each.at),
            input_tokens=each.input_tokens,
            output_tokens=each.output_tokens,
            dollars=each.cost_micros / 1_000_000,
        )


def _cycle(record: CycleRecord, answers: Answers | None, told: Told | None, private: int) -> dict[str, Any]:
    return {
        "id": record.id,
        "number": record.number,
        "outcome": record.outcome,
        "kept": True,
        "reason": record.stop_reason or "",
        "summary": record.summary or "",
        "steps": record.steps,
        "started_at": moment(record.started_at),
        "ended_at": moment(record.ended_at),
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "cache_read_tokens": 0 if answers is None else answers.usage.cache_read,
        "cache_write_tokens": 0 if answers is None else answers.usage.cache_write,
        "dollars": record.cost_micros / 1_000_000,
        "tools": [] if answers is None or private else list(answers.tools),
        "people": [] if told is None or private else list(told.people.values()),
        "spaces": [] if told is None or private else list(told.places.values()),
        "private": private,
        "outside": record.outside,
    }


class CyclePage(BaseModel):
    """Cycles, the newest first; between those that are kept, the ones that came to nothing."""

    model_config = given(cycles=[_CYCLE], next=12, complete=True)

    cycles: list[CycleOut]
    next: Annotated[int | None, Field(description="Give it as `before` for the next page; null: there is none.")]
    complete: Annotated[
        bool, Field(description="False where more were skipped or undone in this time than were looked for.")
    ]


class UsageOfCall(BaseModel):
    """What one model call read and wrote, in tokens."""

    model_config = given(input_tokens=4_200, output_tokens=60, cache_read_tokens=3_900, cache_write_tokens=0)

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int

    @classmethod
    def of(cls, used: Usage) -> UsageOfCall:
        return cls(
            input_tokens=used.input,
            output_tokens=used.output,
            cache_read_tokens=used.cache_read,
            cache_write_tokens=used.cache_write,
        )


class ToolCall(BaseModel):
    """A tool that the model called, and what came of it."""

    model_config = given(tool="send_message", arguments={"text": "It did."}, result='{"success": true}')

    tool: str
    arguments: JsonValue
    result: Annotated[str | None, Field(description="Null where there is none yet, or it was forgotten.")]


class Shown(BaseModel):
    """Something that the agent was shown."""

    kind: EntryKind
    text: str
    outside: Annotated[str, Field(description=_OUTSIDE)] = ""


_STEP = {
    "step": 0,
    "model": "anthropic:claude-sonnet-5-5",
    "shown": [{"kind": "inbox", "text": "[INBOX] …"}],
    "text": "",
    "thinking": "",
    "calls": [{"tool": "send_message", "arguments": {"text": "It did."}, "result": '{"success": true}'}],
    "usage": {"input_tokens": 4_200, "output_tokens": 60, "cache_read_tokens": 3_900, "cache_write_tokens": 0},
}


class StepOut(BaseModel):
    """One step of a cycle: what was new to the model, what it answered, and what came of it."""

    model_config = given(**_STEP)

    step: Annotated[int, Field(description="The first is 0.")]
    model: Annotated[str, Field(description="As which it was asked.")]
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

    model_config = given(**_CYCLE, each_step=[_STEP], after=[])

    each_step: list[StepOut]
    after: Annotated[list[Shown], Field(description="What was noted behind the last step.")]

    @classmethod
    def made_of(
        cls,
        record: CycleRecord,
        entries: list[Entry],
        answers: Answers | None,
        told: Told | None,
        private: int,
        private_spaces: Sequence[str],
    ) -> CycleDetail:
        steps, rest = _steps(entries)
        return cls(
            **_cycle(record, answers, told, private),
            private_spaces=list(private_spaces),
            each_step=steps,
            after=rest,
        )


def _steps(entries: list[Entry]) -> tuple[list[StepOut], list[Shown]]:
    steps: list[StepOut] = []
    shown: list[Shown] = []
    for at, each in enumerate(entries):
        if isinstance(each.message, ModelResponse):
            results = entries[at + 1] if at + 1 < len(entries) and entries[at + 1].kind == "results" else None
            steps.append(_step(len(steps), each, each.message, results, shown))
            shown = []
        elif each.kind != "results":
            shown.append(Shown(kind=each.kind, text=text_of(each), outside=label(each.outside)))
    return steps, shown


def _step(number: int, entry: Entry, response: ModelResponse, results: Entry | None, shown: list[Shown]) -> StepOut:
    told = [] if results is None else [str(getattr(part, "content", "")) for part in results.message.parts]
    calls = calls_of(response)
    return StepOut(
        step=number,
        model=json.loads(entry.request or "{}").get("model", response.model_name or ""),
        shown=shown,
        text="\n\n".join(part.content for part in response.parts if isinstance(part, TextPart)),
        thinking="\n\n".join(part.content for part in response.parts if isinstance(part, ThinkingPart)),
        calls=[
            # By its place: the ids that providers give to calls repeat.
            ToolCall(
                tool=call.tool_name,
                arguments=call.args_as_dict(raise_if_invalid=False),
                result=told[at] if at < len(told) else None,
            )
            for at, call in enumerate(calls)
        ],
        usage=UsageOfCall.of(usage_of(response)),
        outside=entry.outside is not None,
        results_outside="" if results is None else label(results.outside),
    )


class RequestOut(BaseModel):
    """A request exactly as the model was sent it, and what came back. What was forgotten shows as `[forgotten]`."""

    model_config = given(
        cycle=12,
        step=0,
        model="anthropic:claude-sonnet-5-5",
        settings={"max_tokens": 8_192},
        tools=[{"name": "send_message", "description": "Say something in a space.", "parameters": {}}],
        messages=[{"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "You are Ada."}]}],
        tokens=4_100,
        response={"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
        results=None,
    )

    cycle: int
    step: int
    model: Annotated[str, Field(description="As which it was asked.")]
    settings: Mapping[str, JsonValue]
    tools: Annotated[list[JsonValue] | None, Field(description="Null where they were not kept.")]
    messages: Annotated[list[JsonValue], Field(description="In the form of Pydantic AI.")]
    tokens: Annotated[int, Field(description="Of the messages, estimated.")]
    response: JsonValue
    results: Annotated[JsonValue, Field(description="What the calls of the response gave; null: it made none.")]
    private: Annotated[
        bool, Field(description="Whether something from private spaces that you are not in is left out.")
    ] = False
    outside: Annotated[str, Field(description="Where its text from outside came from; empty: it held none.")] = ""

    @classmethod
    def of(cls, rebuilt: Rebuilt) -> RequestOut:
        return cls(**as_object(rebuilt))


class Rethink(BaseModel):
    """Which model shall be asked the same."""

    model_config = asked(model="openai:gpt-6.1-terra", step=0)

    model: Annotated[str, Field(min_length=1, max_length=200)]
    step: Annotated[int | None, Field(ge=0, le=10_000, description="Only this step; by default all of them.")] = None


class AnswerAgain(BaseModel):
    """What another model answers to a request that was made before."""

    model_config = given(
        step=0,
        model="openai:gpt-6.1-terra",
        response={"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
        difference=["--- anthropic:claude-sonnet-5-5", "+++ openai:gpt-6.1-terra", "-Yes.", "+It did."],
        usage={"input_tokens": 4_200, "output_tokens": 60, "cache_read_tokens": 0, "cache_write_tokens": 0},
        dollars=0.01,
    )

    step: int
    model: str
    response: JsonValue
    difference: Annotated[list[str], Field(description="As `diff -u` tells it; empty: the same.")]
    usage: UsageOfCall
    dollars: Annotated[float | None, Field(description="Null where the price is unknown.")]

    @classmethod
    def of(cls, again: Rethought) -> AnswerAgain:
        return cls(
            step=again.asked.step,
            model=again.model,
            response=json.loads(codec.dump(again.response)),
            difference=again.difference,
            usage=UsageOfCall.of(usage_of(again.response)),
            dollars=None if again.dollars is None else float(again.dollars),
        )


class AnswersAgain(BaseModel):
    """The answers, by step. No tool was run, and nothing was written."""

    answers: list[AnswerAgain]


class LogEntry(BaseModel):
    """One message of an agent's life."""

    model_config = given(
        seq=41,
        cycle=12,
        cycle_id=THING,
        kind="inbox",
        at=NINE,
        tokens=96,
        message={"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "[INBOX] …"}]},
        private=0,
        outside="",
    )

    seq: Annotated[int, Field(description="Its place in the agent's life: 1, 2, 3, without holes.")]
    cycle: Annotated[int | None, Field(description="The number of its cycle; null while that is open.")]
    cycle_id: str
    kind: EntryKind | Literal["private"]
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

    @classmethod
    def of_private(cls, first: Dated, run: Run) -> LogEntry:
        """One that stands for all entries of the run."""
        entry = first.entry
        return cls(
            seq=entry.seq,
            cycle=first.cycle,
            cycle_id=entry.cycle_id,
            kind="private",
            at=moment(first.at),
            tokens=sum(each.tokens for each in run.entries),
            message=None,
            private=len(run.entries),
        )

    @classmethod
    def of(cls, each: Dated) -> LogEntry:
        entry = each.entry
        return cls(
            seq=entry.seq,
            cycle=each.cycle,
            cycle_id=entry.cycle_id,
            kind=entry.kind,
            at=moment(each.at),
            outside=label(entry.outside),
            tokens=entry.tokens,
            message=json.loads(entry.encoded),
        )


class LogPage(BaseModel):
    """Some entries of an agent's log, oldest first."""

    entries: list[LogEntry]
    next: Annotated[
        int | None,
        Field(description="Give it as `after` (or as `before`, going back) for the next page; null: there is none."),
    ]


class Recalled(BaseModel):
    """Something of an agent's life that was found."""

    model_config = given(
        cycle=3,
        at=NINE,
        kind="heard",
        space_id=KITCHEN,
        space="Kitchen",
        who="Noor",
        text="I take my tea without sugar.",
        pointer="",
        score=7.1,
    )

    cycle: Annotated[int, Field(description="The number of its cycle; 0 for a note.")]
    at: datetime
    kind: Annotated[str, Field(description="heard, said, did, summary, note")]
    space_id: str
    space: str
    who: Annotated[str, Field(description="Who or what said it; empty: the agent itself.")]
    text: str
    pointer: Annotated[str, Field(description="What it is a part of; empty: this is all.")]
    score: float

    @classmethod
    def of(cls, found: Found) -> Recalled:
        return cls(
            cycle=found.cycle,
            at=moment(found.at),
            kind=found.kind,
            space_id=found.space_id,
            space=found.space,
            who=found.who,
            text=found.text,
            pointer=found.pointer,
            score=round(found.score, 4),
        )


class RecallOut(BaseModel):
    """What was found, the best first."""

    found: list[Recalled]


class CrossingOut(BaseModel):
    """A message that was stopped, because it would have carried private words elsewhere; never the words."""

    model_config = given(
        from_space_id=KITCHEN, from_space="Diary", to_space_id=KITCHEN, cycle_id=THING, words=9, at=NINE
    )

    from_space_id: str
    from_space: str
    to_space_id: str
    cycle_id: str
    words: Annotated[int, Field(description="How many in a row.")]
    at: datetime

    @classmethod
    def of(cls, crossing: Crossing) -> CrossingOut:
        return cls(
            from_space_id=crossing.from_space_id,
            from_space=crossing.from_space,
            to_space_id=crossing.to_space_id,
            cycle_id=crossing.cycle_id,
            words=crossing.words,
            at=moment(crossing.created_at),
        )


class CrossingPage(BaseModel):
    """Stopped messages, the newest first."""

    crossings: list[CrossingOut]
    next: Annotated[int | None, Field(description="Give it as `before` for the next page; null: there is none.")]


Part = Literal["self", "tools", "layers", "recalled", "recent", "open", "free"]


class WindowSection(BaseModel):
    """What the layers say of some cycles."""

    model_config = given(
        kind="group", first_cycle=1, last_cycle=10, tokens=210, text="10 cycles, 2026-01-05. With Noor (9)."
    )

    kind: Annotated[
        Literal["group", "lines"], Field(description="What several cycles came to, or a line for each of them.")
    ]
    first_cycle: int
    last_cycle: int
    tokens: Annotated[int, Field(description="Estimated.")]
    text: str

    @classmethod
    def of(cls, block: Block) -> WindowSection:
        return cls(
            kind="lines" if block.lines else "group",
            first_cycle=block.first,
            last_cycle=block.last,
            tokens=estimate(block.text),
            text=block.text,
        )


class WindowPart(BaseModel):
    """One part of what the next request would hold."""

    model_config = given(part="layers", tokens=2_100, first_cycle=1, last_cycle=80, text="[EARLIER CYCLES …]")

    part: Annotated[Part, Field(description="In the order of the request; `free` is what is left.")]
    tokens: Annotated[int, Field(description="Estimated.")]
    first_cycle: int | None = None
    last_cycle: int | None = None
    text: Annotated[
        str | None, Field(description="Of the self, the layers and what was recalled, as the model reads them.")
    ] = None
    sections: Annotated[list[WindowSection], Field(description="Of the layers, oldest first.")] = []
    outside: Annotated[bool, Field(description="Of the layers: whether they were made from text from outside.")] = False


class WindowOut(BaseModel):
    """What the next request would hold."""

    limit: Annotated[int, Field(description="The most tokens it may have.")]
    used: int
    era: Annotated[int, Field(description="Of the self that is in force.")]
    parts: list[WindowPart]


class LaneOut(BaseModel):
    """One lane of the inbox."""

    name: Annotated[str, Field(description="urgent, normal")]
    waiting: int
    taken: Annotated[int, Field(description="By the cycle that is being thought.")]
    first: Annotated[list[EventOut], Field(description="Those that will be taken first.")]

    @classmethod
    def of(cls, lane: Lane) -> LaneOut:
        return cls(
            name=lane.name, waiting=lane.waiting, taken=lane.taken, first=[EventOut.of(each) for each in lane.first]
        )


_USED = {
    "calls": 3,
    "input_tokens": 12_000,
    "output_tokens": 200,
    "cache_read_tokens": 9_000,
    "cache_write_tokens": 0,
    "cached_share": 0.75,
    "dollars": 0.02,
}


class MindOut(BaseModel):
    """An agent at one moment: what it has in mind, what waits for it, what it means to do, what it has used."""

    model_config = given(
        id=ADA,
        handle="ada",
        name="Ada",
        model="anthropic:claude-sonnet-5-5",
        at=NINE,
        status="sleeping",
        holder=None,
        held_until=None,
        resting=None,
        cycles=12,
        window={"limit": 100_000, "used": 9_400, "era": 3, "parts": [{"part": "self", "tokens": 900, "text": "You …"}]},
        inbox=[{"name": "urgent", "waiting": 0, "taken": 0, "first": []}],
        dead=[],
        goals=[],
        notes=[],
        plans=[],
        stances=[],
        waiting_calls=[],
        budget=None,
        organization_budget=None,
        today=_USED,
        seven_days=_USED,
        last_cycles=[_CYCLE],
    )

    id: str
    handle: str
    name: str
    model: Annotated[str, Field(description="What it thinks with, as its definition says it.")]
    at: datetime
    status: Status
    holder: Annotated[str | None, Field(description="The instance that may think for it now.")]
    held_until: datetime | None
    resting: RestingOut | None
    cycles: Annotated[int, Field(description="How many it has lived.")]
    window: WindowOut
    inbox: list[LaneOut]
    dead: Annotated[list[EventOut], Field(description="Those that were given up; at most 200.")]
    goals: list[GoalOut]
    notes: list[NoteOut]
    plans: list[PlanOut]
    stances: Annotated[list[StandingOut], Field(description="Profiles and states of mind, the newest first.")]
    waiting_calls: Annotated[list[CallOut], Field(description="What it waits for others to answer.")]
    budget: Limits | None
    organization_budget: Limits | None
    today: UsedOut
    seven_days: UsedOut
    last_cycles: list[CycleOut]

    @classmethod
    def of(cls, found: Inspection) -> MindOut:
        agent = found.agent
        return cls(
            id=agent.id,
            handle=agent.entity.handle,
            name=agent.name,
            model=agent.definition.model,
            at=moment(found.at),
            status=found.status,
            holder=found.holder,
            held_until=None if found.held_until is None else moment(found.held_until),
            resting=RestingOut.of(found.resting),
            cycles=found.cycle_count,
            window=_window(found, found.era),
            inbox=[LaneOut.of(each) for each in found.lanes],
            dead=[EventOut.of(each) for each in found.dead],
            goals=[GoalOut.of(each) for each in found.goals],
            notes=[NoteOut.of(each) for each in found.notes],
            plans=[PlanOut.of(each) for each in found.plans],
            stances=[StandingOut.standing(each) for each in found.standings],
            waiting_calls=[CallOut.of(each) for each in found.calls],
            budget=None if found.budget is None else Limits.of(found.budget),
            organization_budget=None if found.shared_budget is None else Limits.of(found.shared_budget),
            today=UsedOut.of(found.today),
            seven_days=UsedOut.of(found.week),
            last_cycles=[CycleOut.of(each.record, each.answers, None, each.private) for each in found.cycles],
        )


def _window(found: Inspection, era: Era) -> WindowOut:
    window, lived = found.window, found.cycle_count
    first = window.first_cycle
    before = lived if first is None else first - 1
    parts = [
        WindowPart(part="self", tokens=window.self, text=era.text or None),
        WindowPart(part="tools", tokens=window.tools),
    ]
    if window.layers:
        sections = [WindowSection.of(each) for each in blocks(era.layers or "")]
        parts.append(
            WindowPart(
                part="layers",
                tokens=window.layers,
                first_cycle=1,
                last_cycle=before,
                text=era.layers,
                sections=sections,
                outside=era.outside,
            )
        )
    if window.recalled:
        parts.append(WindowPart(part="recalled", tokens=window.recalled, text="\n\n".join(window.recalled_texts)))
    if first is not None:
        parts.append(
            WindowPart(part="recent", tokens=window.recent - window.recalled, first_cycle=first, last_cycle=lived)
        )
    if window.open:
        parts.append(WindowPart(part="open", tokens=window.open))
    parts.append(WindowPart(part="free", tokens=window.free))
    return WindowOut(limit=window.limit, used=window.used, era=window.era, parts=parts)
