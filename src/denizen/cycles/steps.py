"""What an agent's own Python functions see of a cycle before each step, and what they may decide about the step.

Phases give each step its tools; a function named by `prepare_step` may then change the model, the tools, the tool
choice, the settings and the context, for this step only, or end the cycle. Pure except for calling it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, TypeVar, cast

from pydantic_ai.messages import ModelResponse, ToolReturnPart
from pydantic_core import PydanticSerializationError, to_json

from denizen.consciousness.log import Entry
from denizen.cycles.call_results import Outcome, outcome_of
from denizen.cycles.phases import FREE, Phase
from denizen.cycles.records import calls_of
from denizen.errors import StepFunctionFailed, explained
from denizen.inbox.events import Event
from denizen.models.forced_tools import ToolChoice
from denizen.tools.prebuilt import SKIP
from denizen.tools.tool import Toolbox

FUNCTION_SECONDS: Final = 30
"""How long an asynchronous function may take to decide about a step."""
_NOT_SETTINGS: Final = {
    "tool_choice": "give it as NextStep(tool_choice=...)",
    "extra_headers": "settings are stored, and headers may hold secrets",
}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call of this cycle and its result."""

    tool: str
    arguments: Mapping[str, Any]
    result: str
    """The result that the model got."""
    outcome: Outcome
    """`succeeded`; `failed` also if it was refused or its outcome is unknown; `pending` if the result comes later."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of this cycle that has ended."""

    number: int
    model: str
    text: str
    """The text that the model wrote besides its calls."""
    calls: tuple[ToolUse, ...]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class StepContext:
    """The view of the cycle for an agent's functions: for `prepare_step`, `stop_when` and `routing`."""

    step: int
    """The number of the next step, starting at 0; also how many have ended."""
    events: tuple[Event, ...]
    """The events that the cycle was woken by or shown."""
    model: str = ""
    """The model that answers the next step unless the function chooses another."""
    phase: str = ""
    """The name of the phase of the next step; empty if no phase has a name."""
    tools: tuple[str, ...] = ()
    """The tools that may be called in the next step unless the function says otherwise."""
    tokens: int = 0
    """Tokens that this cycle has added: written by the model, or new for it to read. Never the past."""
    allowed_tokens: int = 0
    """How many tokens it may add: the setting, or what the window leaves."""
    room: int = 1
    """Tokens that the window still has for this cycle, if everything older leaves it."""
    cost_micros: int = 0
    """The cost so far, in millionths of a dollar, if the price is known."""
    seconds: float = 0.0
    sent: int = 0
    """How many messages it has sent."""
    entries: Sequence[Entry] = field(default=(), repr=False)
    """The log entries of the cycle."""

    @cached_property
    def steps(self) -> tuple[StepRecord, ...]:
        """The steps that have ended, with their calls and results."""
        return _records(self.entries)

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """Every call of the cycle that has a result, in order."""
        return tuple(use for step in self.steps for use in step.calls)

    def called(self, tool: str) -> int:
        """How often the tool was called."""
        return sum(use.tool == tool for use in self.calls)

    def succeeded(self, tool: str) -> int:
        """How often the tool was called with success."""
        return sum(use.tool == tool and use.outcome == "succeeded" for use in self.calls)


def _records(entries: Sequence[Entry]) -> tuple[StepRecord, ...]:
    found: list[StepRecord] = []
    for at, entry in enumerate(entries):
        response = entry.message
        if not isinstance(response, ModelResponse):
            continue
        after = entries[at + 1] if at + 1 < len(entries) else None
        results = after.message.parts if after is not None and after.kind == "results" else ()
        uses = tuple(
            ToolUse(call.tool_name, call.args_as_dict(raise_if_invalid=False), told, outcome_of(call.tool_name, told))
            for call, result in zip(calls_of(response), results, strict=False)
            if isinstance(result, ToolReturnPart) and isinstance(told := result.content, str)
        )
        usage = response.usage
        made_of = json.loads(entry.request or "{}")
        record = StepRecord(
            len(found), made_of.get("model", ""), response.text or "", uses, usage.input_tokens, usage.output_tokens
        )
        found.append(record)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class NextStep:
    """What a function of `prepare_step` decides about the next step; fields that are not set stay as they are."""

    model: str | None = None
    """The agent's own model, one of its routes, or one of `step_models`."""
    tools: Sequence[str] | None = None
    """The tools that may be called, in place of those of the phase; `skip` always may."""
    tool_choice: ToolChoice | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the model, such as `temperature`, `thinking` or fewer `max_tokens`."""
    context: str = ""
    """Text at the end of this one request. The model trusts it like the agent's instructions."""
    stop: bool = False
    """End the cycle instead."""


Choose = Callable[[StepContext], str]
"""Returns the name of the model for the next step."""
PrepareStep = Callable[[StepContext], NextStep | Awaitable[NextStep | None] | None]
"""Decides about the next step; None leaves it as it is. May be asynchronous."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The plan for the next step."""

    tools: frozenset[str] | None = None
    """The tools that may be called; None means all."""
    tool_choice: ToolChoice = "auto"
    strict: bool = False
    """Whether the other tools are left out of the request."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    note: str = ""
    """Text at the end of this one request."""

    def allows(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools


def allowed_tools(phase: Phase, toolbox: Toolbox) -> frozenset[str] | None:
    """The tools of the toolbox that may be called in this phase; None means all."""
    if phase.tools is None and not phase.reads:
        return None
    named = {SKIP, *(phase.tools or ()), *(toolbox.reading if phase.reads else ())}
    return frozenset(named.intersection(toolbox.by_name))


def plan_step(phase: Phase, toolbox: Toolbox, decided: NextStep | None = None) -> StepPlan:
    """The plan of the phase, changed by what the agent's function decided."""
    decided = decided or NextStep()
    tools = allowed_tools(phase, toolbox)
    if decided.tools is not None:
        tools = frozenset({SKIP, *decided.tools}.intersection(toolbox.by_name))
    choice = decided.tool_choice or phase.tool_choice
    restricted = tools is not None or choice != "auto"
    label = f"PHASE {phase.name.upper()}".rstrip() if phase is not FREE else "THIS STEP"
    told = _tools_note(label, tools, choice, toolbox) if phase is not FREE or restricted else ""
    note = "\n\n".join(filter(None, (told, decided.context.strip())))
    return StepPlan(tools, choice, phase.strict, decided.settings, note)


def _tools_note(label: str, tools: frozenset[str] | None, choice: ToolChoice, toolbox: Toolbox) -> str:
    if choice == "none":
        return f"[{label}] Call no tool in this step: write text."
    must = " Call one now." if choice == "required" else ""
    if tools is None:
        return f"[{label}] You may call every tool.{must}"
    return f"[{label}] You may call only: {', '.join(name for name in toolbox.by_name if name in tools)}.{must}"


T = TypeVar("T")


async def call_function(name: str, function: Callable[[StepContext], T | Awaitable[T]], context: StepContext) -> T:
    """The result of the function. Raises `StepFunctionFailed` for any error in it."""
    try:
        async with asyncio.timeout(FUNCTION_SECONDS):
            answer = function(context)
            return await answer if inspect.isawaitable(answer) else cast("T", answer)
    except TimeoutError as error:
        raise StepFunctionFailed(name, f"it took longer than {FUNCTION_SECONDS} seconds") from error
    except Exception as error:
        raise StepFunctionFailed(name, explained(error)) from error


async def decide_step(
    name: str, function: PrepareStep, context: StepContext, models: Collection[str], tools: Collection[str]
) -> NextStep:
    """The decision of the agent's function about the next step. Raises `StepFunctionFailed` if it is not possible."""
    answer = cast("object", await call_function(name, function, context))
    if answer is None:
        return NextStep()
    if not isinstance(answer, NextStep):
        raise StepFunctionFailed(name, f"it gave {type(answer).__name__}; it must give a NextStep or None")
    if (problem := _problem(answer, models, tools)) is not None:
        raise StepFunctionFailed(name, problem)
    return answer


def _problem(answer: NextStep, models: Collection[str], tools: Collection[str]) -> str | None:
    if answer.model is not None and answer.model not in models:
        return f"it chose the model {answer.model!r}; it may choose {', '.join(models)}. List others in step_models"
    if isinstance(answer.tools, str):
        return "its `tools` are a text; they must be a list of names"
    if unknown := [each for each in answer.tools or () if each not in tools]:
        return f"it named tools that the agent does not have: {', '.join(map(str, unknown))}"
    if answer.tool_choice not in (None, "auto", "required", "none"):
        return f"its tool_choice is {answer.tool_choice!r}; it must be auto, required or none"
    for name in _NOT_SETTINGS.keys() & answer.settings.keys():
        return f"its settings have {name}: {_NOT_SETTINGS[name]}"
    try:
        to_json(dict(answer.settings))
    except (PydanticSerializationError, TypeError, ValueError):
        return "its settings cannot be stored as JSON"
    return None


def allowed_in(response: Entry) -> frozenset[str] | Literal["unsaid"] | None:
    """The tools that could be called in this response, from its stored request; None means all."""
    made_of: dict[str, Any] = json.loads(response.request or "{}")
    if "allowed" not in made_of:
        return "unsaid"
    stored = made_of["allowed"]
    return None if stored is None else frozenset(stored)
