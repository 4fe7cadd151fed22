"""Metrics and traces of a cycle for operators: numbers, and a span for the cycle, each step and each tool.

Names and attributes follow OpenTelemetry's conventions for generative AI (`gen_ai.*`); what those lack is `denizen.*`.
Texts are recorded only if the operator wants it (`content`). If nobody watches, each of these methods returns at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model

from denizen.clock import SECOND
from denizen.consciousness.mind import Mind
from denizen.cycles.call_results import REFUSED
from denizen.cycles.ledger import NOTHING, Charge
from denizen.cycles.outcome import Acted, CycleOutcome, Failed, Paused, Rested, Skipped
from denizen.cycles.records import OpenCycle
from denizen.errors import DenizenError
from denizen.masking import masked
from denizen.shortening import shortened
from denizen.telemetry.metrics import Metrics
from denizen.telemetry.telemetry import Telemetry
from denizen.telemetry.traces import Attribute, fail, under
from denizen.tools.effects import EffectRecord
from denizen.tools.tool import AskTool, OutsideTool, OwnTool, Toolbox

if TYPE_CHECKING:
    from opentelemetry.trace import Span

LONGEST: Final = 8_000
"""Maximum characters of one text in a span, if texts are recorded at all."""

ToolKind = Literal["own", "outside", "asked", "unknown"]


class Watch:
    """One cycle, or the part of it that runs in this process, from `with` to its end."""

    def __init__(
        self, telemetry: Telemetry, mind: Mind, cycle: OpenCycle, toolbox: Toolbox, *, content: bool = False
    ) -> None:
        self._metrics, self._tracer, self._content = telemetry.metrics, telemetry.tracer, content
        self._mind, self._cycle, self._tools = mind, cycle, toolbox.by_name
        self._began = time.perf_counter()
        self._answers = 0
        self._paid = NOTHING
        self._outcome = "interrupted"
        self._span: Span | None = None

    def __enter__(self) -> Watch:
        if self._metrics is not None and not self._cycle.steps:
            wakers = [each.created_at for each in self._cycle.events if each.wakes and not each.attempts]
            if wakers:
                self._metrics.wake_seconds.observe(max(self._cycle.started_at - min(wakers), 0) / SECOND)
        if self._tracer is not None:
            entity = self._mind.identity.entity
            causes = self._tracer.causes(event.id for event in self._cycle.events)
            # Several requests may have woken it: then it is part of the first one's trace, and links to the others.
            self._span = self._tracer.begin(
                f"invoke_agent {entity.handle}",
                self._described(),
                parent=causes[0] if causes else None,
                links=causes[1:],
            )
        return self

    def _described(self) -> dict[str, Attribute]:
        mind, cycle = self._mind, self._cycle
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.id": mind.identity.entity.id,
            "gen_ai.agent.name": mind.identity.entity.handle,
            "denizen.organization.id": mind.identity.entity.organization_id,
            "denizen.instance.id": mind.lease.holder,
            "denizen.cycle.id": cycle.id,
            "denizen.cycle.resumed": cycle.steps > 0,
            "denizen.cycle.attempts": cycle.attempts,
            "denizen.inbox.events": len(cycle.events),
        }
        if cycle.active_space_id is not None:
            attributes["gen_ai.conversation.id"] = cycle.active_space_id
        return attributes

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if self._metrics is not None:
            self._metrics.cycles.add(1, self._outcome)
            self._metrics.cycle_seconds.observe(time.perf_counter() - self._began)
            self._metrics.window_tokens.observe(self._mind.tokens)
        if self._span is not None:
            if error is not None:
                fail(self._span, error_type(error))
            self._span.set_attributes(
                {
                    "denizen.cycle.outcome": self._outcome,
                    "denizen.cycle.steps": self._answers,
                    "denizen.window.tokens": self._mind.tokens,
                    "denizen.cost.dollars": (self._paid.cost_micros or 0) / 1_000_000,
                    **_usage(self._paid),
                }
            )
            self._span.end()

    def failed(self, error: BaseException) -> None:
        """The cycle is about to be undone, postponed or closed because of this error."""
        if self._span is not None:
            fail(self._span, error_type(error))

    def ended(self, outcome: CycleOutcome) -> None:
        """The cycle ended with this outcome."""
        self._outcome = _word(outcome)
        if self._metrics is not None:
            if isinstance(outcome, Skipped):
                self._metrics.skips.add(1, "agent")
            elif isinstance(outcome, Acted):
                self._metrics.stops.add(1, outcome.stop_reason)
        if self._span is not None and isinstance(outcome, Acted):
            self._span.set_attributes(
                {"denizen.cycle.number": outcome.number, "denizen.cycle.stop_reason": outcome.stop_reason}
            )

    def paid(self, charge: Charge) -> None:
        """A model call of this cycle was answered, at this cost."""
        if self._tracer is not None:
            self._paid += charge
            self._answers += 1
        if self._metrics is not None:
            count(self._metrics, charge)

    # Steps

    def ask(self, model: Model, name: str, step: int, attempt: int) -> WatchedRequest:
        """A model is about to be asked."""
        span = None
        if self._tracer is not None:
            assert self._span is not None
            self._span.set_attributes({"gen_ai.provider.name": model.system, "gen_ai.request.model": model.model_name})
            span = self._tracer.begin(
                f"chat {model.model_name}",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": model.system,
                    "gen_ai.request.model": model.model_name,
                    "gen_ai.request.stream": True,
                    "gen_ai.request.max_tokens": self._mind.budget.output,
                    "denizen.model": name,
                    "denizen.step": step,
                    "denizen.attempt": attempt,
                    "denizen.window.tokens": self._mind.tokens,
                    **self._of_the_cycle(),
                },
                kind="client",
                parent=self._span,
            )
            if self._content:
                span.set_attribute("gen_ai.input.messages", in_words([each.message for each in self._mind.present]))
        return WatchedRequest(self._metrics, span, name, content=self._content)

    def _of_the_cycle(self) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {
            "gen_ai.agent.id": self._mind.identity.entity.id,
            "denizen.cycle.id": self._cycle.id,
        }
        if self._cycle.active_space_id is not None:
            attributes["gen_ai.conversation.id"] = self._cycle.active_space_id
        return attributes

    # Tools

    def carried_out(
        self, calls: Sequence[ToolCallPart], effects: Iterable[EffectRecord], outside: Iterable[int], began: float
    ) -> None:
        """These calls were recorded in a transaction that began then; those in `outside` have recorded themselves."""
        if self._metrics is None and self._tracer is None:
            return
        known, seconds = frozenset(outside), time.perf_counter() - began
        for effect in effects:
            if effect.state != "intent" and effect.position not in known:
                kind = self._kind(effect.tool)
                doing = Doing(self, calls[effect.position], kind, effect.step, seconds)
                doing.ends(_how(kind, effect), effect.result)

    def outside(self, call: ToolCallPart, step: int) -> Doing:
        """An outside tool is about to be called: use it as `with watch.outside(...) as doing`."""
        return Doing(self, call, self._kind(call.tool_name), step)

    def unknown(self, call: ToolCallPart, step: int) -> None:
        """A call may or may not have been made before a crash, and will not be repeated."""
        Doing(self, call, self._kind(call.tool_name), step).ends("unknown")

    def _kind(self, tool: str) -> ToolKind:
        match self._tools.get(tool):
            case OwnTool():
                return "own"
            case OutsideTool():
                return "outside"
            case AskTool():
                return "asked"
            case _:
                return "unknown"

    def begin_tool(self, call: ToolCallPart, kind: ToolKind, step: int, seconds: float) -> Span | None:
        """The span of a call that began this long ago, if spans are recorded."""
        if self._tracer is None:
            return None
        # The name of a tool that does not exist is text of the model.
        name = call.tool_name if kind != "unknown" else "unknown"
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call.tool_call_id,
            "gen_ai.tool.type": "extension" if kind == "outside" else "function",
            "denizen.tool.kind": kind,
            "denizen.step": step,
            **self._of_the_cycle(),
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = _short(call.args_as_json_str())
        at = time.time_ns() - int(seconds * 1e9)
        return self._tracer.begin(f"execute_tool {name}", attributes, parent=self._span, at=at)

    def end_tool(self, span: Span | None, kind: ToolKind, outcome: str, seconds: float, result: str | None) -> None:
        """A call has ended, or is no longer waited for."""
        if self._metrics is not None:
            self._metrics.tool_calls.add(1, kind, outcome)
            self._metrics.tool_seconds.observe(seconds, kind)
        if span is not None:
            span.set_attribute("denizen.tool.outcome", outcome)
            if self._content and result is not None:
                span.set_attribute("gen_ai.tool.call.result", _short(result))
            span.end()


class WatchedRequest:
    """One request to a model."""

    __slots__ = ("_began", "_content", "_metrics", "_model", "first", "span")

    def __init__(self, metrics: Metrics | None, span: Span | None, model: str, *, content: bool) -> None:
        self.span = span
        self.first: float | None = None
        """The seconds until the first part of the answer."""
        self._metrics = metrics
        self._model = model
        self._content = content
        self._began = time.perf_counter()

    def heard(self) -> None:
        """The answer has begun."""
        self.first = time.perf_counter() - self._began

    def answered(self, response: ModelResponse) -> None:
        """The answer is complete."""
        if self._metrics is not None:
            self._metrics.steps.add(1, label(self._model))
            if self.first is not None:
                self._metrics.first_chunk_seconds.observe(self.first)
        if self.span is not None:
            self.span.set_attributes(self._of(response))
            self.span.end()

    def failed(self, error: BaseException) -> None:
        """There is no answer."""
        if self._metrics is not None:
            self._metrics.model_errors.add(1, label(self._model), error_type(error))
        if self.span is not None:
            fail(self.span, error_type(error))
            self.span.end()

    def _of(self, response: ModelResponse) -> dict[str, Attribute]:
        usage, seconds = response.usage, time.perf_counter() - self._began
        attributes: dict[str, Attribute] = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "denizen.tokens_per_second": round(usage.output_tokens / seconds, 3) if seconds else 0.0,
        }
        if self.first is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = self.first
        if response.model_name:
            attributes["gen_ai.response.model"] = response.model_name
        if response.provider_response_id:
            attributes["gen_ai.response.id"] = response.provider_response_id
        if response.finish_reason:
            attributes["gen_ai.response.finish_reasons"] = [response.finish_reason]
        if self._content:
            attributes["gen_ai.output.messages"] = in_words([response])
        return attributes


class Doing:
    """One call of a tool. Inside `with`, everything it does is part of its span."""

    __slots__ = ("_ago", "_began", "_inside", "_kind", "_watch", "result", "span")

    def __init__(self, watch: Watch, call: ToolCallPart, kind: ToolKind, step: int, ago: float = 0.0) -> None:
        self._watch = watch
        self._kind: ToolKind = kind
        self._began = time.perf_counter() - ago
        self.span = watch.begin_tool(call, kind, step, ago)
        self.result: str | None = None
        """The result, for readers who may see it."""

    def __enter__(self) -> Doing:
        self._inside = under(self.span)
        self._inside.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        self._inside.__exit__(kind, error, traceback)
        if error is not None and self.span is not None:
            fail(self.span, error_type(error))
        # Cancelled: the process ends, or nobody waits for it any more.
        how = "done" if error is None else "failed" if isinstance(error, Exception) else "cancelled"
        self.ends(how, self.result)

    def ends(self, outcome: str, result: str | None = None) -> None:
        seconds = time.perf_counter() - self._began
        self._watch.end_tool(self.span, self._kind, outcome, seconds, result)


def count(metrics: Metrics, charge: Charge) -> None:
    """Add the usage of a model call to the metrics."""
    if charge.model is None:
        return
    model = label(charge.model)
    metrics.tokens.add(charge.input_tokens, model, "input")
    metrics.tokens.add(charge.output_tokens, model, "output")
    metrics.tokens.add(charge.cache_read_tokens, model, "cache_read")
    metrics.tokens.add(charge.cache_write_tokens, model, "cache_write")
    metrics.cost.add((charge.cost_micros or 0) / 1_000_000, model)


def label(model: str) -> str:
    """The model as a label. A model registered as a Python object is named after its agent: that is left out."""
    return "python" if model.startswith("python:") else model


def error_type(error: BaseException) -> str:
    """The kind of the error, without its message."""
    return error.code if isinstance(error, DenizenError) else type(error).__name__


def in_words(messages: Sequence[ModelMessage]) -> str:
    """Messages as JSON, in the form of OpenTelemetry's conventions; secrets hidden, long texts cut."""
    return json.dumps([_message(each) for each in messages], ensure_ascii=False)


def _message(message: ModelMessage) -> dict[str, Any]:
    parts = [_part(each) for each in message.parts]
    if isinstance(message, ModelRequest):
        results = any(isinstance(each, ToolReturnPart) for each in message.parts)
        return {"role": "tool" if results else "user", "parts": parts}
    return {"role": "assistant", "parts": parts, "finish_reason": message.finish_reason or ""}


def _part(part: Any) -> dict[str, Any]:
    match part:
        case ToolCallPart():
            arguments = _short(part.args_as_json_str())
            return {"type": "tool_call", "id": part.tool_call_id, "name": part.tool_name, "arguments": arguments}
        case ToolReturnPart():
            return {"type": "tool_call_response", "id": part.tool_call_id, "response": _short(str(part.content))}
        case _:
            kind = "reasoning" if part.part_kind == "thinking" else "text"
            return {"type": kind, "content": _short(str(getattr(part, "content", "")))}


def _short(text: str) -> str:
    return masked(shortened(text, LONGEST))


def _usage(paid: Charge) -> dict[str, Attribute]:
    return {
        "gen_ai.usage.input_tokens": paid.input_tokens,
        "gen_ai.usage.output_tokens": paid.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": paid.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": paid.cache_write_tokens,
    }


def _word(outcome: CycleOutcome) -> str:
    match outcome:
        case Acted():
            return "failed" if outcome.stop_reason == "failed" else "acted"
        case Skipped():
            return "skipped"
        case Failed():
            return "undone" if outcome.undone else "postponed"
        case Paused():
            return "paused"
        case Rested():
            return "rested"


def _how(kind: ToolKind, effect: EffectRecord) -> str:
    if effect.state == "asked":
        return "asked"
    if (effect.result or "").startswith(REFUSED):
        return "refused"
    match kind:
        case "asked":
            return "answered"
        case "outside":
            return "started"
        case _:
            return "done"
