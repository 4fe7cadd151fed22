"""The JSON of an agent's mind: inbox, cycles, window, log, recall."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from denizen.clock import moment
from denizen.consciousness.layers import Block, blocks
from denizen.consciousness.layers import LayerCycle as Told
from denizen.consciousness.log import DatedEntry, Entry, text_of
from denizen.consciousness.privacy import Run
from denizen.consciousness.replay import as_object
from denizen.consciousness.system_prompt import Era
from denizen.cycles.records import calls_of
from denizen.inbox.delivery import InboxEntry
from denizen.inbox.events import Event
from denizen.models import codec
from denizen.models.prices import Usage, usage_of
from denizen.models.tokens import estimate
from denizen.server.shapes.agents import resting_out
from denizen.server.shapes.calls import call_out
from denizen.server.shapes.filling import filled
from denizen.server.shapes.plans import goal_out, note_out, plan_out
from denizen.server.shapes.stances import standing_out
from denizen.server.shapes.usage import limits_out, used_out
from denizen.shapes.examples import body_example
from denizen.shapes.minds import (
    AnswerAgain,
    CrossingOut,
    CycleDetail,
    CycleOut,
    EventOut,
    InboxEvent,
    LaneOut,
    LogEntry,
    MindOut,
    Recalled,
    RequestOut,
    Shown,
    StepOut,
    ToolCall,
    UsageOfCall,
    WindowOut,
    WindowPart,
    WindowSection,
)
from denizen.spaces.source_names import label

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from denizen.agents.inspection import Inspection, Lane
    from denizen.consciousness.recall.fetching import RecalledPassage
    from denizen.consciousness.replay import RebuiltRequest
    from denizen.cycles.records import CycleRecord, OpenRecord
    from denizen.cycles.rethinking import NewAnswer
    from denizen.cycles.skipped_cycles import SkippedCycle
    from denizen.cycles.usage import Answers
    from denizen.tools.privacy_guard import Crossing


def event_out(event: Event) -> EventOut:
    return filled(EventOut, event, space=event.space_name, sender=event.sender_name)


def inbox_event_out(each: InboxEntry) -> InboxEvent:
    event = each.event
    not_before = moment(each.not_before) if each.not_before else None
    return filled(InboxEvent, each, event, space=event.space_name, sender=event.sender_name, not_before=not_before)


def cycle_out(
    record: CycleRecord,
    answers: Answers | None = None,
    told: Told | None = None,
    private: int = 0,
    private_spaces: Sequence[str] = (),
) -> CycleOut:
    return CycleOut(**_cycle(record, answers, told, private), private_spaces=list(private_spaces))


def open_cycle_out(record: OpenRecord) -> CycleOut:
    return CycleOut(
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


def unkept_cycle_out(each: SkippedCycle) -> CycleOut:
    return CycleOut(
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


def usage_of_call_out(used: Usage) -> UsageOfCall:
    return UsageOfCall(
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
    )


def cycle_detail_out(
    record: CycleRecord,
    entries: list[Entry],
    answers: Answers | None,
    told: Told | None,
    private: int,
    private_spaces: Sequence[str],
) -> CycleDetail:
    steps, rest = _steps(entries)
    return CycleDetail(
        **_cycle(record, answers, told, private),
        private_spaces=list(private_spaces),
        each_step=steps,
        after=rest,
    )


def _steps(entries: list[Entry]) -> tuple[list[StepOut], list[Shown]]:
    steps: list[StepOut] = []
    shown: list[Shown] = []
    for at, each in enumerate(entries):
        if each.message.kind == "response":
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
        text="\n\n".join(part.content for part in response.parts if part.part_kind == "text"),
        thinking="\n\n".join(part.content for part in response.parts if part.part_kind == "thinking"),
        calls=[
            # By its position: the call ids of providers repeat.
            ToolCall(
                tool=call.tool_name,
                arguments=call.args_as_dict(raise_if_invalid=False),
                result=told[at] if at < len(told) else None,
            )
            for at, call in enumerate(calls)
        ],
        usage=usage_of_call_out(usage_of(response)),
        outside=entry.outside is not None,
        results_outside="" if results is None else label(results.outside),
    )


def request_out(rebuilt: RebuiltRequest) -> RequestOut:
    return RequestOut(**as_object(rebuilt))


class Rethink(BaseModel):
    """The model to ask the same requests."""

    model_config = body_example(model="openai:gpt-6.1-terra", step=0)

    model: Annotated[str, Field(min_length=1, max_length=200)]
    step: Annotated[int | None, Field(ge=0, le=10_000, description="Only this step; by default all steps.")] = None


def answer_again_out(again: NewAnswer) -> AnswerAgain:
    return AnswerAgain(
        step=again.asked.step,
        model=again.model,
        response=json.loads(codec.dump(again.response)),
        difference=again.difference,
        usage=usage_of_call_out(usage_of(again.response)),
        dollars=None if again.dollars is None else float(again.dollars),
    )


def private_log_entry_out(first: DatedEntry, run: Run) -> LogEntry:
    """One entry that stands for all entries of the run."""
    tokens, private = sum(each.tokens for each in run.entries), len(run.entries)
    fields = {"kind": "private", "tokens": tokens, "message": None, "private": private, "outside": ""}
    return filled(LogEntry, first, first.entry, **fields)


def log_entry_out(each: DatedEntry) -> LogEntry:
    entry = each.entry
    message, outside = json.loads(entry.encoded), label(entry.outside)
    return filled(LogEntry, each, entry, message=message, outside=outside, private=0)


def recalled_out(found: RecalledPassage) -> Recalled:
    return filled(Recalled, found, score=round(found.score, 4))


def crossing_out(crossing: Crossing) -> CrossingOut:
    return filled(CrossingOut, crossing, at=moment(crossing.created_at))


def window_section_out(block: Block) -> WindowSection:
    return WindowSection(
        kind="lines" if block.lines else "group",
        first_cycle=block.first,
        last_cycle=block.last,
        tokens=estimate(block.text),
        text=block.text,
    )


def lane_out(lane: Lane) -> LaneOut:
    return filled(LaneOut, lane, first=[event_out(each) for each in lane.first])


def mind_out(found: Inspection) -> MindOut:
    agent = found.agent
    return filled(
        MindOut,
        found,
        id=agent.id,
        handle=agent.entity.handle,
        name=agent.name,
        model=agent.definition.model,
        resting=resting_out(found.resting),
        cycles=found.cycle_count,
        window=_window(found, found.era),
        inbox=[lane_out(each) for each in found.lanes],
        dead=[event_out(each) for each in found.dead],
        goals=[goal_out(each) for each in found.goals],
        notes=[note_out(each) for each in found.notes],
        plans=[plan_out(each) for each in found.plans],
        stances=[standing_out(each) for each in found.standings],
        waiting_calls=[call_out(each) for each in found.calls],
        budget=None if found.budget is None else limits_out(found.budget),
        organization_budget=None if found.shared_budget is None else limits_out(found.shared_budget),
        today=used_out(found.today),
        seven_days=used_out(found.week),
        last_cycles=[cycle_out(each.record, each.answers, None, each.private) for each in found.cycles],
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
        sections = [window_section_out(each) for each in blocks(era.layers or "")]
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
    return filled(WindowOut, window, parts=parts)
