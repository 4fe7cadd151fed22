"""One think cycle from opening to end: ask the model and carry out its calls, until it is done.

Every step is in the database before the next begins, so a cycle that was cut off resumes at the step it had reached:
`think` is given an open cycle and does not care whether it was just opened or comes from a dead process.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Final, Literal, cast

import structlog
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_json

from denizen import failpoints
from denizen.clock import SECOND
from denizen.consciousness import log, privacy
from denizen.consciousness.compaction import FULL
from denizen.consciousness.log import Entry
from denizen.consciousness.mind import Mind
from denizen.consciousness.summary import Effect, derived_summary, exchange_summary, last_words
from denizen.consciousness.window import budget as budget_for
from denizen.consciousness.window import result_characters
from denizen.cycles import alerts, answering, awareness, budgets, calling, ending, requested, seeing, stopped_answers
from denizen.cycles.answering import (
    LAST_STEP_TOKENS,
    LAST_STEP_TOOLS,
    REPEATED_FAILURE,
    CheckedText,
    UncalledText,
    Waiting,
    Why,
)
from denizen.cycles.budgets import Amount, Refusal
from denizen.cycles.call_results import has_failed
from denizen.cycles.calling import FinishedCall, Progress, ResponseStep
from denizen.cycles.deps import CycleDeps
from denizen.cycles.ending import Ending
from denizen.cycles.ledger import NOTHING, Charge, charge_of
from denizen.cycles.opening import event_characters
from denizen.cycles.outcome import Acted, CycleOutcome, Failed, Paused, Rested, Skipped
from denizen.cycles.outside_calls import OutsideCalls
from denizen.cycles.phases import phase_at
from denizen.cycles.records import OpenCycle, calls_of
from denizen.cycles.routing import choose, model_of
from denizen.cycles.server_budget import ServerCall
from denizen.cycles.settings import SilentReply
from denizen.cycles.speaking import Doubt, LiveResponse
from denizen.cycles.steps import NextStep, StepContext, StepPlan, allowed_in, allowed_tools, decide_step, plan_step
from denizen.cycles.stopping import stop_reason
from denizen.cycles.troubles import Trouble, classify
from denizen.cycles.watching import Watch
from denizen.cycles.written_calls import with_written_calls
from denizen.errors import (
    InvalidInput,
    LeaseLost,
    ModelError,
    ModelRejected,
    ModelUnsuitable,
    RequestTooLarge,
    StepFunctionFailed,
    StorageError,
    explained,
)
from denizen.ids import SpaceId
from denizen.inbox import stop_requests
from denizen.inbox.delivery import DEAD_AFTER, INTERRUPTED_AT_MOST
from denizen.inbox.format import sender_name
from denizen.leased_tasks import let_go
from denizen.models import caching, forced_tools, learned, overflow, request, thinking
from denizen.models.pictures import sees
from denizen.models.prices import Usage, expected_cost
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.telemetry.logs import get_logger
from denizen.telemetry.traces import under
from denizen.tools import argument_parsing, hops, privacy_guard
from denizen.tools.background_calls import is_being_cancelled
from denizen.tools.calls import UNKNOWN_OUTCOME
from denizen.tools.effects import EffectRecord
from denizen.tools.hops import SeenMessages
from denizen.tools.prebuilt import SEND_MESSAGE, SKIP, EnterSpace, SendMessage, prepare_send
from denizen.tools.private_word_search import forms_of_message
from denizen.tools.tool import AskTool, OutsideTool, OwnTool, spaces_of

log_line = get_logger(__name__)

MODEL_ANSWERED = failpoints.declare("model.answered")

PREVIEW_TOKENS: Final = 1_000
"""About how many tokens a preview of the inbox has at most."""
SMALLEST_UPDATE_TOKENS: Final = 300
"""With less room than this, events that arrive in the middle of a cycle wait for the next."""

LONG_MESSAGE_TOKENS: Final = 500
"""If fewer tokens than this were said and the request is too large, the cause is what the agent remembers."""
MOST_SHRINKS: Final = 6
"""How often in a cycle a request that is too large is made smaller and sent again."""
SAME_FAILURES: Final = 3
"""After the same call has failed this often, the cycle takes its last step."""
SHOWN_AFTER_SECONDS: Final = 3
"""After retrying a model for this long, waiting people are shown that there is trouble."""

HAND_BACK_SECONDS: Final = 2.0
"""How long an interrupted cycle waits until that is recorded."""

Pausing = Literal["paused"] | None
"""Whether the cycle waits for people: then this process no longer holds it."""


async def think(
    deps: CycleDeps,
    mind: Mind,
    cycle: OpenCycle,
    arrived: Callable[[], bool],
    pause: Callable[[float], Awaitable[None]],
) -> CycleOutcome:
    """Run the cycle to its end. Raises only when this process lost the agent, or when the database fails.

    `arrived` says whether there may be something new in the inbox, so that it need not be read before each step.
    `pause` waits so many seconds before a model is asked again.
    """
    toolbox = requested.toolbox_for(deps.toolboxes[mind.era.profile], cycle.events)
    if toolbox is not deps.toolbox:
        deps = replace(deps, toolbox=toolbox)
    if first := requested.first_phase(cycle.events):
        phases = (first, *deps.settings.phases)
        deps = replace(deps, settings=deps.settings.model_copy(update={"phases": phases}))
    content = deps.telemetry.content
    if content:
        # Readers of traces are in no space: for an agent that knows private things they get numbers only.
        content = not await deps.db.read(privacy.knows_private_spaces, mind.identity.entity.id)
    watch = Watch(deps.telemetry, mind, cycle, deps.toolbox, content=content)
    # Not `bound_contextvars`, which copies everything that is bound.
    bound = structlog.contextvars.bind_contextvars(cycle=cycle.id)
    try:
        with watch:
            outcome = await _live_through(_Thinking(deps, mind, cycle, arrived, pause, watch), watch)
            watch.ended(outcome)
            return outcome
    finally:
        structlog.contextvars.reset_contextvars(**bound)


class StoppedByPerson(Exception):
    """A person has stopped what the model is writing."""


async def _live_through(thinking: _Thinking, watch: Watch) -> CycleOutcome:
    try:
        return await thinking.run()
    except (LeaseLost, StorageError):
        raise
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            await thinking.hand_back()
            raise
        return await _fail(thinking, watch, error)
    except Exception as error:  # noqa: BLE001  the loop's boundary: whatever failed, the events must not be lost
        return await _fail(thinking, watch, error)
    finally:
        thinking.let_go()


def _may_be_about_tool_choice(error: ModelRejected) -> bool:
    """Whether a provider may have rejected a request only because it names the tool to call."""
    return type(error) is ModelRejected or (isinstance(error, ModelUnsuitable) and "tool" in str(error).lower())


def _fails_again_and_again(present: Sequence[Entry]) -> bool:
    """Whether the same call has failed so often in this cycle that another try would not help."""
    failed: Counter[tuple[str, str]] = Counter()
    for asked, answered in pairwise(present):
        results = answered.message.parts if answered.kind == "results" else ()
        for call, result in zip(calls_of(asked.message), results, strict=False):
            told = str(result.content) if isinstance(result, ToolReturnPart) else ""
            if has_failed(call.tool_name, told):
                failed[call.tool_name, call.args_as_json_str()] += 1
    return any(times >= SAME_FAILURES for times in failed.values())


async def _fail(thinking: _Thinking, watch: Watch, error: BaseException) -> CycleOutcome:
    log_line.warning("cycle failed", agent=thinking.agent_id, error=repr(error))
    watch.failed(error)
    return await thinking.fail(error)


class _Thinking:
    """A running cycle."""

    def __init__(
        self,
        deps: CycleDeps,
        mind: Mind,
        cycle: OpenCycle,
        arrived: Callable[[], bool],
        pause: Callable[[float], Awaitable[None]],
        watch: Watch,
    ) -> None:
        self._with = deps
        self._watch = watch
        self.agent_id = mind.lease.agent_id
        self._arrived, self._pause = arrived, pause
        self._resumed = cycle.steps > 0
        self._plan = StepPlan()
        """The plan for the next step."""
        self._note_tokens = 0
        self._sent_settings = ModelSettings()
        """The settings of the newest request."""
        self._preview: str | None = None
        self._preview_tokens = 0
        self._previewed = 0
        self._mind = mind
        self._cycle = cycle
        self._steps = cycle.steps
        self._spent = NOTHING
        self._server_call: ServerCall | None = None
        self._reserved = deps.allowance is not None
        """Whether a budget may hold a reservation for it."""
        self._unpaid: tuple[Charge, ...] = ()
        """The usage of attempts that broke off, until it is in the ledger."""
        self._model_name = deps.model_name
        for entry in cycle.entries:
            if isinstance(entry.message, ModelResponse):
                self._model_name = model_of(entry) or deps.model_name
                self._spent += self._price(entry.message)
        self._routed = self._model_name
        """The model of the cycle, unless a function has chosen another for a step."""
        self._effects = {(effect.step, effect.position): effect for effect in cycle.effects}
        self._sent_to = list(cycle.sent_to)
        self._spoke_in: frozenset[str] = frozenset()
        """Spaces in which this process has sent something in this cycle since the last of its events there."""
        self._awaited = bool(answering.waiting_spaces(cycle.events))
        """Whether somebody waits, or waited, for an answer in this cycle."""
        self._in_last_step = False
        self._shrunk = 0
        """How often in this cycle the request was made smaller because the provider found it too large."""
        self._guessed: int | None = None
        """The guessed context size, if the provider does not give one; confirmed when such a request is answered."""
        self._sizes = mind.budget, mind.correction
        """The known sizes when the cycle began."""
        self._unforced = False
        """Whether its server has rejected a forced tool call."""
        self._told_cut_off = 0
        """How often in this cycle the model was told that its answer was cut off."""
        self._stopped_response: ModelResponse | None = None
        """What the model had written when a person stopped it."""
        self._outside = OutsideCalls(deps, mind.lease, cycle.id, watch)
        mind.add(*cycle.entries)

    async def run(self) -> CycleOutcome:
        if self._cycle.interruptions >= INTERRUPTED_AT_MOST:
            why = "it was cut off too often"
            crashed = Trouble("interrupted", {"count": INTERRUPTED_AT_MOST})
            return await self._close_honestly(why, crashed) if self._changed else await self._interrupt(why)
        self._spare_layers()
        if await self._take_up() == "paused":
            return Paused()
        while True:
            if (stopped := await self._heed_stops()) is not None:
                return stopped
            if (reason := await self._stop_reason()) is not None or (reason := await self._prepare_step()) is not None:
                return await self._stop(reason)
            # Before anything more is taken from the inbox: without budget, it must stay there.
            if (refused := await self._reserve()) is not None:
                return await self._rest(refused)
            await self._look_around()
            self._make_room()
            response, speaker = await self._ask()
            if response is None:
                await self._keep_stopped(speaker)
                continue
            calls = calls_of(response)
            skip = next((call for call in calls if call.tool_name == SKIP), None)
            if skip is not None:
                speaker.abort("skipped")
                return await self._skip(response, calls, skip)
            if calls:
                if await self._carry_out(self._new_step(response, calls, speaker), speaker) == "paused":
                    return Paused()
                if await self._is_small_and_done(calls):
                    return await self._end("answered", summary=self._exchange())
            elif response.finish_reason == "length" and self._told_cut_off < calling.MOST_CUT_OFF:
                await self._tell_cut_off(response)
            elif (outcome := await self._finish(response)) is not None:
                return outcome
            self._spare_layers()

    # Sizes

    @property
    def _history_tokens(self) -> int:
        """The tokens that a request may hold besides the self, layers, tools and what is only in this request."""
        fixed = self._mind.standing_tokens + self._with.toolbox.tokens + self._preview_tokens + self._note_tokens
        return int(self._mind.budget.request / self._mind.correction) - fixed

    def _over_budget(self) -> bool:
        return self._mind.tokens - self._mind.standing_tokens > self._history_tokens

    async def _stop_reason(self) -> str | None:
        self._plan, self._note_tokens = StepPlan(), 0
        if self._steps == 0:
            if self._history_tokens <= self._mind.present_tokens:
                raise RequestTooLarge("The model's context is too small for this agent's self, tools and inbox.")
            return None
        if _fails_again_and_again(self._mind.present):
            return REPEATED_FAILURE
        return await stop_reason(self._with.settings, self._context(), self._with.stops)

    def _context(self) -> StepContext:
        """The view of this cycle for the agent's functions."""
        phase = phase_at(self._with.settings.phases, self._steps)
        allowed = allowed_tools(phase, self._with.toolbox)
        return StepContext(
            step=self._steps,
            events=self._cycle.events,
            model=self._model_name,
            phase=phase.name,
            tools=tuple(name for name in self._with.toolbox.by_name if allowed is None or name in allowed),
            tokens=self._mind.present_tokens,
            # In a small window a cycle gets at most half of it, so that the past is not pushed out altogether.
            allowed_tokens=min(self._with.settings.token_budget, self._history_tokens // 2),
            room=self._room,
            cost_micros=self._spent.cost_micros or 0,
            seconds=(self._with.clock.now() - self._cycle.started_at - self._cycle.waited) / SECOND,
            sent=len(self._sent_to),
            entries=tuple(self._mind.present),
        )

    async def _prepare_step(self) -> str | None:
        """Plan the next step: by its route and phase, then by the agent's own function.

        Returns the reason to stop, if the function wants to.
        """
        self._route()
        settings, toolbox = self._with.settings, self._with.toolbox
        name, decided = settings.prepare_step, NextStep()
        if name is not None:
            models = dict.fromkeys((self._with.model_name, *settings.models))
            decided = await decide_step(name, self._with.steps[name], self._context(), models, toolbox.by_name)
            if decided.stop:
                return name
            if decided.model is not None:
                self._model_name = self._real_name(decided.model)
        if name is None and not settings.phases:
            return None
        self._plan = plan_step(phase_at(settings.phases, self._steps), toolbox, decided)
        self._note_tokens = estimate(self._plan.note) + PER_MESSAGE if self._plan.note else 0
        if name is not None and self._history_tokens - self._mind.present_tokens < self._note_tokens:
            raise StepFunctionFailed(name, f"its context has {self._note_tokens:,} tokens, too many for the window")
        return None

    def _real_name(self, model: str) -> str:
        return self._with.default_model if model == "default" else model

    @property
    def _room(self) -> int:
        """The tokens that this cycle may still add. While somebody waits, room for the last step's note is kept."""
        kept = min(LAST_STEP_TOKENS, self._history_tokens // 10) if self._awaited else 0
        return self._history_tokens - self._mind.present_tokens - kept

    async def _look_around(self) -> None:
        """Before each step except the first: take urgent events, and preview the others."""
        self._preview, self._preview_tokens, self._previewed = None, 0, 0
        if self._steps == 0 or self._with.settings.awareness == "none":
            return
        # Events that arrived before the cycle was resumed have woken nobody here.
        if not self._resumed and not self._arrived():
            return
        self._resumed = False
        # At most half of the room: the answer must fit as well. With hardly any room, events wait.
        budget = min(self._mind.budget.inbox, (self._history_tokens - self._mind.present_tokens) // 2)
        if budget < SMALLEST_UPDATE_TOKENS:
            return
        noticed = await self._with.db.write(
            awareness.notice,
            self._mind.lease,
            self._cycle,
            self._with.settings.awareness,
            seq=self._mind.next_seq,
            max_tokens=budget,
            text_chars=event_characters(budget),
        )
        if noticed.preview is not None:
            # With hardly any room, the preview of the inbox is the first thing to leave out.
            tokens = estimate(noticed.preview) + PER_MESSAGE
            if tokens < (self._history_tokens - self._mind.present_tokens) // 4:
                self._preview, self._preview_tokens, self._previewed = noticed.preview, tokens, noticed.previewed
        if noticed.outside and self._cycle.outside_from is None:
            self._cycle = replace(self._cycle, outside_from=self._mind.next_seq)
        if noticed.update is not None:
            self._cycle = replace(self._cycle, events=(*self._cycle.events, *noticed.taken))
            self._spoke_in -= {event.space_id for event in noticed.taken if event.space_id is not None}
            self._awaited = bool(answering.waiting_spaces(self._cycle.events))
            self._mind.add(noticed.update)

    def _make_room(self) -> None:
        """Before every request: if it would be over the budget, old cycles leave the window, many at once.

        Compaction, after the cycle, summarizes what has left.
        """
        if self._over_budget():
            room, present = self._history_tokens, self._mind.present_tokens
            target = int(room * self._mind.window.target_share) - present
            self._mind.make_room(target=target, half=min(room // 2, int(room * FULL) - present))

    def _spare_layers(self) -> None:
        """Drop the layers if another model or token count leaves little room: the present matters more."""
        if self._mind.layer_tokens > self._history_tokens - self._mind.present_tokens:
            self._mind.leave_out_layers()

    def _result_characters(self, calls: int) -> int:
        limit = self._mind.window.result_characters
        return result_characters(limit=limit, room_tokens=self._room, results=calls)

    def _learn_size(self, response: ModelResponse) -> None:
        """Adopt the provider's token count, which differs from our estimate."""
        if not response.usage.details.get("estimated"):
            estimated = self._mind.tokens + self._with.toolbox.tokens
            self._mind.correction = max(self._mind.correction, min(response.usage.input_tokens / estimated, 4.0))

    # Model and payment

    def _route(self) -> None:
        """Choose the model of the next request: once per cycle, unless its owner wants it chosen for each step."""
        own, routing = self._with.model_name, self._with.settings.routing
        chosen_before = self._steps > 0 and self._with.settings.routing_per == "cycle"
        if not routing:
            self._routed = own
        elif not chosen_before or self._routed not in self._with.models:
            self._routed = self._real_name(choose(routing, self._context(), own, self._with.routes))
        self._model_name = self._routed

    @property
    def _model(self) -> Model:
        return self._with.models.get(self._model_name, self._with.model)

    async def _reserve(self, *, last: bool = False) -> Refusal | None:
        """Reserve the next request in the budgets, if there are any. Without limits, no transaction.

        While somebody waits, the last step is reserved along with it, so that it can be paid when a limit is reached.
        """
        server, under = self._with.server_budget, self._with.allowance
        if under is None and server is None:
            return None
        tokens, most = self._mind.tokens + self._with.toolbox.tokens + self._note_tokens, self._mind.budget
        asked = self._most_used(tokens)
        if self._steps > 0 and self._with.settings.awareness != "none" and not last:
            asked = self._most_used(tokens + most.inbox + PREVIEW_TOKENS)
        if server is not None:
            self._server_call = await server.begin(
                self._with.db, self._with.clock, self._model_name, self._model, asked
            )
            under = self._server_call.allowance(under, self._with.organization_id)
        if under is None:
            return None
        self._reserved = True
        last_step: Amount | None = None
        if last:
            last_step = Amount()  # this is the call that the last step was reserved for
        elif self._awaited and self._with.settings.silent_reply != "ignore":
            last_step = self._amount(self._most_used(tokens + most.output + LAST_STEP_TOKENS))
        need, lease = self._amount(asked), self._mind.lease
        return await budgets.reserve_soon(self._with.db, self._with.clock, lease, under, need, last_step)

    def _most_used(self, prompt_tokens: int) -> Usage:
        """The most that a request may use, with a prompt of this many estimated tokens."""
        most = self._mind.budget
        return Usage(min(int(prompt_tokens * self._mind.correction), most.request), most.output)

    def _amount(self, used: Usage) -> Amount:
        dollars = expected_cost(self._model, used, self._with.prices, asked=self._model_name) or 0
        return Amount(used.input + used.output, ceil(dollars * 1_000_000))

    async def _rest(self, refused: Refusal) -> Rested:
        """The budget is used up: suspend the agent. Events that it has not begun to think about wait."""
        lease, cycle = self._mind.lease, self._cycle
        if self._steps == 0:
            await self._with.db.write(ending.undo_and_hold, lease, cycle, refused)
        else:
            why: Why = ("budget", {"scope": refused.scope})
            await self._end("budget", sending=await self._written(), unanswered=why, retry_at=refused.until)
            await self._with.db.write(budgets.hold, lease, refused)
        log_line.info("budget used up", agent=lease.agent_id, scope=refused.scope)
        return Rested(refused.scope)

    # Model requests

    async def _ask(self) -> tuple[ModelResponse | None, LiveResponse]:
        """The model's next response, retried as often as its errors allow. None: a person stopped it."""
        attempt, waited = 0, 0.0
        while True:
            attempt += 1
            speaker = self._speaker()
            try:
                with self._with.voices.speaking(speaker):
                    async with self._stoppable(speaker) as until_stopped:
                        response = await self._ask_once(speaker, attempt, until_stopped)
            except StoppedByPerson:
                return None, speaker
            except ModelError as error:
                speaker.abort("error")
                await self._pay_broken_off()
                if isinstance(error, RequestTooLarge) and self._shrink(error):
                    attempt -= 1
                    continue
                if self._must_call and isinstance(error, ModelRejected) and _may_be_about_tool_choice(error):
                    # Not every server supports a tool choice.
                    self._unforced = True
                    continue
                if self._can_do_without_tools(error):
                    log_line.info("model cannot use tools", agent=self._mind.lease.agent_id, model=self._model_name)
                    self._mind.toolless = True
                    continue
                delay = request.retry_delay(error, attempt, key=self._mind.lease.agent_id)
                if delay is None:
                    raise
                log_line.info("model asked again", agent=self._mind.lease.agent_id, error=error.code, seconds=delay)
                waited += delay
                if waited >= SHOWN_AFTER_SECONDS:
                    await self._show_trouble(error, delay)
                try:
                    async with self._stoppable(speaker):
                        await self._pause(delay)
                except StoppedByPerson:
                    return None, speaker
            except BaseException:
                speaker.abort("interrupted")
                raise
            else:
                if self._guessed is not None:
                    learned.learn_context(self._model, self._guessed, overflow.SOURCE)
                    self._guessed, self._sizes = None, (self._mind.budget, self._mind.correction)
                return self._with_written_calls(response), speaker

    def _can_do_without_tools(self, error: ModelError) -> bool:
        """Whether the model rejects tools as such: then it is asked without them, and its text is the answer."""
        said = str(error).lower()
        about_tools = isinstance(error, ModelUnsuitable) and "tool" in said and "tool_choice" not in said
        return about_tools and not self._mind.toolless and not self._in_last_step

    def _with_written_calls(self, response: ModelResponse) -> ModelResponse:
        """The response, with calls that the model wrote as text because it has no other way."""
        names = self._with.toolbox.argument_names
        offered = names if self._only is None else {each: names[each] for each in self._only}
        past = (*self._mind.past, *self._mind.present)
        return with_written_calls(response, offered, past, self._mind.era.layers)

    def _shrink(self, error: RequestTooLarge) -> bool:
        """Make the request smaller after the provider found it too large; False if it cannot be made smaller."""
        mind, fixed = self._mind, self._with.toolbox.tokens
        self._shrunk += 1
        if self._shrunk > MOST_SHRINKS:
            return False
        context, self._guessed = error.context_tokens, None
        if context is not None:
            told = alerts.context_too_large(mind.window.context_tokens, context, self._model_name)
            alerts.give(self._with.bus, mind.lease.agent_id, told)
        else:
            # It does not say how much it accepts. Some count the room for the answer, so that is cut first.
            context = self._guessed = int((mind.tokens + fixed) * mind.correction) + mind.budget.output // 4
        smaller = budget_for(mind.window.model_copy(update={"context_tokens": None}), context, fixed)
        if smaller.request < mind.budget.request:
            mind.budget = smaller
        else:
            # We expected it to fit, so the provider counts more tokens than we do.
            mind.correction *= 1.25
        self._preview, self._preview_tokens, self._previewed = None, 0, 0
        self._spare_layers()
        self._make_room()
        log_line.info("request made smaller", agent=mind.lease.agent_id, tokens=mind.tokens, context=context)
        if self._history_tokens > mind.present_tokens:
            return True
        if self._guessed is not None:
            # Rejected whatever was left out: nothing is known of the context size, and other messages may well fit.
            mind.budget, mind.correction = self._sizes
        return False

    async def _pay_broken_off(self) -> None:
        """Enter the usage of attempts that broke off into the ledger."""
        if self._unpaid:
            await self._with.db.write(ending.pay_broken_off, self._mind.lease, self._unpaid)
            self._unpaid = ()

    async def _show_trouble(self, error: ModelError, retry_in: float) -> None:
        """Show waiting people that the model has trouble, and when it is asked again."""
        if not any(event.waits for event in self._cycle.events):
            return
        detail = classify(error, self._model_name).detail
        await self._with.db.write(ending.show_trouble, self._mind.lease, self._cycle, detail, retry_in=retry_in)
        self._cycle = replace(self._cycle, troubled=True)

    async def _may_be_shown(self, doubt: Doubt) -> bool:
        """Whether the text being streamed holds nothing that is private elsewhere."""
        await self._is_guarded(doubt.space_id)
        agent_id, cycle = self._mind.lease.agent_id, self._cycle
        shown = (doubt.space_id, doubt.text, cycle.events, cycle.remembered)
        return await self._with.db.read(privacy_guard.passes, agent_id, cycle.id, *shown)

    def _speaker(self) -> LiveResponse:
        return LiveResponse(
            self._with.bus,
            self._mind.lease,
            self._cycle.active_space_id,
            visible=self._with.toolbox.visible,
            spaces={event.space_id for event in self._cycle.events if event.space_id is not None},
            may_speak=self._plan.allows(SEND_MESSAGE),
            caution=self._cycle.caution,
            stopped=self._cycle.stopped,
        )

    async def _ask_once(self, speaker: LiveResponse, attempt: int, until_stopped: asyncio.Timeout) -> ModelResponse:
        settings = self._sent_settings = self._settings()
        only = self._only
        tools = self._with.toolbox.definitions
        if only is not None:
            tools = tuple(each for each in tools if each.name in only)
        # Cached by the provider: the past and the events that woke the agent; and the whole prompt, for the next step.
        woken_at, last = len(self._mind.prompt) - len(self._mind.present), len(self._mind.prompt) - 1
        prompt = caching.marked(
            self._model, await seeing.shown(self._with.db, self._mind, self._model), (woken_at, last)
        )
        if (tail := self._tail) is not None:
            # Not stored, and so at the very end: everything before it is the prefix of the next request.
            prompt = [*prompt, ModelRequest(parts=[UserPromptPart(tail)])]
        asking = self._watch.ask(self._model, self._model_name, self._steps, attempt)
        answer: request.RunningAnswer | None = None
        try:
            with under(asking.span):
                async with request.stream(self._model, prompt, tools=tools, settings=settings) as answer:
                    async for event in answer:
                        if asking.first is None:
                            asking.heard()
                        speaker.hear(event)
                        for doubt in speaker.doubts():
                            speaker.settle(doubt, await self._may_be_shown(doubt))
        except BaseException as error:
            asking.failed(error)
            if answer is not None and until_stopped.expired() and speaker.writing_to is not None:
                self._stopped_response = answer.response
            elif answer is not None:
                # Not settled: the reservation of this step is for the attempt that succeeds.
                charge = replace(self._price(answer.response), reserved=False)
                self._watch.paid(charge)
                self._unpaid = (*self._unpaid, charge)
            raise
        failpoints.reach(MODEL_ANSWERED)
        response = answer.response
        asking.answered(response)
        self._learn_size(response)
        return response

    @property
    def _tail(self) -> str | None:
        """The end of this one request: the phase, what a function adds, and a preview of the inbox."""
        return "\n\n".join(filter(None, (self._plan.note, self._preview))) or None

    @property
    def _allowed(self) -> list[str] | None:
        """The tools that may be called, in the order of the toolbox; None means all."""
        if self._plan.tools is None:
            return None
        return [tool for tool in self._with.toolbox.by_name if self._plan.allows(tool)]

    @property
    def _only(self) -> list[str] | None:
        """The tools that are sent, if not all of them."""
        if self._mind.toolless:
            return []
        return self._allowed if self._plan.strict else None

    def _settings(self) -> ModelSettings:
        own = thinking.settings(self._model, self._mind.budget.output)
        decided = dict(self._plan.settings)
        if "max_tokens" in decided:
            decided["max_tokens"] = min(decided["max_tokens"], own["max_tokens"])
        settings = cast(ModelSettings, {**own, **decided})
        if self._mind.toolless:
            return cast(ModelSettings, {**settings, **caching.settings(self._model, self._mind.lease.agent_id)})
        if self._plan.tool_choice != "auto":
            settings["tool_choice"] = self._plan.tool_choice
        forced = forced_tools.settings(self._model, SEND_MESSAGE) if self._in_last_step else {}
        if (allowed := self._allowed) is not None and not (self._in_last_step or self._plan.strict):
            forced = forced_tools.among(self._model, allowed, self._plan.tool_choice)
        if self._must_call:
            forced = forced_tools.any_tool(self._model)
        return cast(ModelSettings, {**settings, **forced, **caching.settings(self._model, self._mind.lease.agent_id)})

    @property
    def _must_call(self) -> bool:
        """Whether a small model has just written nothing at all and is asked again: now it has to call a tool.

        Servers of local models then generate the call by a grammar, so that a model that fails at the format can call
        as well.
        """
        small = self._mind.era.profile == "small" and not self._in_last_step
        return small and not self._unforced and answering.was_silent(self._mind.present)

    def _charge(self, response: ModelResponse) -> Charge:
        charge = self._price(response)
        self._spent += charge
        self._watch.paid(charge)
        return charge

    def _price(self, response: ModelResponse) -> Charge:
        return charge_of(response, self._model_name, self._with.prices, reserved=self._reserved)

    def _response_entry(self, response: ModelResponse) -> Entry:
        """The response, with what its request was made of, so that the request can be rebuilt."""
        made_of: dict[str, object] = {
            "era": self._mind.era.number,
            "from": self._mind.past[0].seq if self._mind.past else self._cycle.first_seq,
            "to": self._mind.next_seq - 1,
            "tools": self._with.toolbox.digest,
            "model": self._model_name,
            "settings": {"tool_choice": "auto", **self._sent_settings},
            "budget": self._mind.budget.request,
        }
        if self._only is not None:
            made_of["only"] = self._only
        if self._in_last_step or self._with.settings.phases or self._with.settings.prepare_step:
            made_of["allowed"] = self._allowed
        if (tail := self._tail) is not None:
            made_of["preview"] = tail
        if self._preview is not None:
            made_of[hops.PREVIEWED] = self._previewed
        if not self._mind.layered:
            made_of["layers"] = False
        if self._mind.views:
            made_of["shortened"] = self._mind.views
        if self._mind.pictured:
            made_of["pictures"] = sees(self._model)
        encoded = to_json(made_of).decode()
        outside = None if self._cycle.outside_from is None else ()
        return log.entry(self._mind.next_seq, self._cycle.id, "response", response, request=encoded, outside=outside)

    # Tool calls

    @property
    def _changed(self) -> bool:
        """Whether this cycle has changed something outside itself: then it can no longer be undone."""
        return any(effect.changes for effect in self._effects.values())

    def _shown(self, calls: tuple[ToolCallPart, ...], *entries: Entry) -> SeenMessages:
        """What the cycle has seen besides its events, if the calls send something."""
        if not any(call.tool_name == SEND_MESSAGE for call in calls):
            return hops.NOTHING
        return hops.shown_in((*self._mind.present, *entries))

    def _new_step(
        self, response: ModelResponse, calls: tuple[ToolCallPart, ...], speaker: LiveResponse
    ) -> ResponseStep:
        entry = self._response_entry(response)
        return ResponseStep(
            number=self._steps,
            response=entry,
            calls=calls,
            results={},
            stored=False,
            characters=self._result_characters(len(calls)),
            allowed=self._plan.tools,
            streamed=speaker.ids,
            charge=self._charge(response),
            shown=self._shown(calls, entry),
            sees=sees(self._model),
        )

    async def _take_up(self) -> Pausing:
        """Finish the calls of a response that was stored before the process died, or before the cycle paused."""
        last = self._cycle.entries[-1]
        calls = calls_of(last.message)
        if not calls:
            return None
        number = self._steps - 1
        known = [effect for effect in self._effects.values() if effect.step == number]
        done = {effect.position: effect.result or "" for effect in known if effect.state == "done"}
        if (allowed := allowed_in(last)) == "unsaid":
            # Stored by an earlier version, without the allowed tools.
            allowed = allowed_tools(phase_at(self._with.settings.phases, number), self._with.toolbox)
            if answering.last_step_at(self._cycle.entries) is not None:
                allowed = LAST_STEP_TOOLS
        asked = frozenset(effect.position for effect in known if effect.state == "asked")
        step = ResponseStep(
            number,
            last,
            calls,
            done,
            stored=True,
            characters=self._result_characters(len(calls)),
            allowed=allowed,
            streamed={at: id for (of, at), id in self._cycle.call_ids.items() if of == number},
            asked=asked,
            shown=self._shown(calls),
            sees=sees(self._model),
        )
        cut_off = [effect.position for effect in known if effect.state == "intent"]
        return await self._carry_out(step, None, {at: await self._after_crash(step, at) for at in cut_off})

    async def _after_crash(self, step: ResponseStep, at: int) -> FinishedCall:
        """The result of an outside call that may or may not have happened."""
        tool = self._with.toolbox.by_name.get(step.calls[at].tool_name)
        retry = isinstance(tool, OutsideTool) and tool.on_crash == "retry"
        if retry:
            return await self._outside.call(step, at)
        self._watch.unknown(step.calls[at], step.number)
        return FinishedCall(UNKNOWN_OUTCOME)

    async def _carry_out(
        self, step: ResponseStep, speaker: LiveResponse | None, finished: Mapping[int, FinishedCall] | None = None
    ) -> Pausing:
        """Run all calls of one response, our own inside transactions, outside ones between them.

        Where people's answers are missing, the cycle is paused: this process no longer holds it.
        """
        finished = finished or {}
        if prepared := await self._prepare(step):
            step = replace(step, prepared=prepared)
        while True:
            began = time.perf_counter()
            with self._with.background_calls.expecting(self._cycle.id):
                progress = await self._with.db.write(
                    calling.carry_on, self._mind.lease, self._cycle, step, self._with.toolbox, finished
                )
                self._outside.run_in_background(step, progress.background_calls)
            if not step.stored:
                self._mind.add(step.response)
                self._steps += 1
            self._note(progress)
            self._watch.carried_out(step.calls, progress.effects, finished, began)
            if self._cycle.attempts or self._cycle.interruptions:
                self._cycle = replace(self._cycle, attempts=0, interruptions=0)
            if progress.paused:
                return "paused"
            if progress.results is not None:
                self._mind.add(progress.results)
                break
            done = {effect.position: effect.result or "" for effect in progress.effects if effect.state == "done"}
            asked = step.asked.union(effect.position for effect in progress.effects if effect.state == "asked")
            step = replace(step, stored=True, results={**step.results, **done}, asked=asked)
            finished = await self._outside.call_all(step, progress.intended)
        if speaker is not None:
            speaker.abort("refused", {at for at in step.streamed if not self._effects[step.number, at].changes})
        return None

    async def _prepare(self, step: ResponseStep) -> dict[int, object]:
        """Let own tools prepare what they need when they run, and check which calls would show private words."""
        prepared: dict[int, object] = {}
        active, agent_id, cycle = self._cycle.active_space_id, self._mind.lease.agent_id, self._cycle
        for at, call in enumerate(step.calls):
            tool = self._with.toolbox.by_name.get(call.tool_name)
            own = tool.prepare if isinstance(tool, OwnTool) else None
            if at in step.results or tool is None or (own is None and cycle.caution is None):
                continue
            try:
                arguments = argument_parsing.check(tool, call.args)
                if own is not None:
                    prepared[at] = await own(agent_id, arguments, spaces_of(cycle.events, cycle.active_space_id))
                elif isinstance(arguments, EnterSpace):
                    active = SpaceId(arguments.space_id)
                elif isinstance(arguments, SendMessage):
                    to = SpaceId(arguments.space_id) if arguments.space_id else active
                    if to is not None and await self._is_guarded(to):
                        sending = (agent_id, cycle.id, to, arguments, cycle.events)
                        prepared[at] = await self._with.db.read(prepare_send, *sending)
                elif isinstance(tool, AskTool | OutsideTool) and tool.visible and await self._is_guarded(active):
                    shown = (agent_id, cycle.id, active, call.args_as_json_str(), cycle.events)
                    prepared[at] = await self._with.db.read(privacy_guard.check_call_ahead, *shown)
            except InvalidInput:
                continue  # the model is told when the call is carried out
        return prepared

    async def _is_guarded(self, space_id: SpaceId | None) -> bool:
        """Whether what is shown in this space has to be checked for private words; their index is complete then."""
        caution = self._cycle.caution
        if caution is None or space_id in caution.free:
            return False
        if caution.unindexed:
            await privacy_guard.index_words(self._with.db, self._mind.lease.agent_id)
            self._cycle = replace(self._cycle, caution=replace(caution, unindexed=False))
        return True

    async def _outgoing(self, words: UncalledText | None) -> CheckedText | None:
        """The words as a message that is ready to be sent."""
        sending = await answering.outgoing(words)
        if sending is None or not await self._is_guarded(sending.space_id):
            return sending
        cycle, forms = self._cycle, forms_of_message(sending.what)
        told = (self._mind.lease.agent_id, cycle.id, sending.space_id, forms, cycle.events)
        return replace(sending, checked=await self._with.db.read(privacy_guard.check_ahead, *told))

    def _note(self, progress: Progress) -> None:
        self._effects.update({(effect.step, effect.position): effect for effect in progress.effects})
        self._sent_to.extend(progress.sent_to)
        self._spoke_in |= progress.spoke_in
        if progress.active_space_id != self._cycle.active_space_id:
            self._cycle = replace(self._cycle, active_space_id=progress.active_space_id)
        if progress.outside_from != self._cycle.outside_from:
            self._cycle = replace(self._cycle, outside_from=progress.outside_from)

    # Ending

    async def _finish(self, response: ModelResponse) -> CycleOutcome | None:
        """End with the model's last words; None if instead it was reminded that somebody waits without an answer."""
        entry, text = self._response_entry(response), (response.text or "").strip()
        waiting, reminded = await self._unanswered(), answering.reminders(self._mind.present)
        silent_reply = self._silent_reply
        move = answering.next_move(silent_reply, self._cycle.open_events, waiting, reminded, text, self._steps)
        if move.remind is None:
            sending = await self._outgoing(move.deliver)
            return await self._end("answered", last=response, entries=(entry,), sending=sending)
        note = answering.reminder(entry.seq + 1, self._cycle.id, move.remind, offers=move.offers)
        await self._nudge(response, (entry, note), move.deliver)
        return None

    async def _tell_cut_off(self, response: ModelResponse) -> None:
        """Tell the model that its answer reached the limit, and ask it again."""
        self._told_cut_off += 1
        entry = self._response_entry(response)
        note = calling.cut_off_note(entry.seq + 1, self._cycle.id, thinking.most_output(self._sent_settings))
        await self._nudge(response, (entry, note), None)

    @property
    def _silent_reply(self) -> SilentReply:
        """How text without a call is handled. From a small model, or one without tools, it is the answer."""
        wanted = self._with.settings.silent_reply
        plain = self._mind.toolless or self._mind.era.profile == "small"
        return "deliver" if wanted == "nudge" and plain else wanted

    # Stopping what a person does not want to read

    @asynccontextmanager
    async def _stoppable(self, speaker: LiveResponse) -> AsyncGenerator[asyncio.Timeout]:
        """Raises `StoppedByPerson` in the block when a person stops what it writes."""
        until_stopped = asyncio.timeout(None)

        def hear(space_id: SpaceId) -> None:
            if self._concerns_only(space_id, speaker):
                until_stopped.reschedule(0)

        try:
            async with until_stopped:
                with self._with.stop_hints.listening(self.agent_id, hear):
                    yield until_stopped
        except TimeoutError as error:
            if until_stopped.expired():
                raise StoppedByPerson from error
            raise

    def _concerns_only(self, space_id: SpaceId, speaker: LiveResponse) -> bool:
        """Whether a stop in this space ends the model call: it writes there now, or nowhere yet and works for no other
        space. Otherwise it goes on for the others."""
        if speaker.writing_to is not None:
            return speaker.writing_to == space_id
        left = {event.space_id for event in self._cycle.open_events}
        return left <= {space_id}

    async def _heed_stops(self) -> CycleOutcome | None:
        """Tell the model where people have stopped it. Where nothing else is left to do, the cycle ends."""
        cycle = self._cycle
        if self._with.stop_hints.take(self.agent_id):
            cycle = await self._read_stops()
        if not cycle.stopped:
            return None
        told = self._mind.present
        untold = [each for each in cycle.stopped.values() if not stopped_answers.told_in(told, each)]
        seq = self._mind.next_seq
        notes = tuple(stopped_answers.stop_note(seq + at, cycle.id, each) for at, each in enumerate(untold))
        if stopped_answers.is_all_stopped(cycle.events, cycle.stopped):
            summary = stopped_answers.stopped_summary(cycle.stopped.values(), self._derived_summary())
            return await self._end("stopped", entries=notes, summary=summary)
        for note in notes:
            await self._with.db.write(calling.store_note, self._mind.lease, cycle, note)
            self._mind.add(note)
        return None

    async def _read_stops(self) -> OpenCycle:
        cycle = self._cycle
        found = await self._with.db.read(stop_requests.of_cycle, self.agent_id, cycle.id, cycle.events)
        self._cycle = replace(cycle, stopped=found)
        return self._cycle

    async def _keep_stopped(self, speaker: LiveResponse) -> None:
        """Keep what people were shown of a response that was stopped: as the message that it is, and in the log."""
        response, self._stopped_response = self._stopped_response, None
        space_id = speaker.writing_to
        stopped = (await self._read_stops()).stopped
        request = None if space_id is None else stopped.get(space_id)
        cut = None if response is None else stopped_answers.cut_answer(response, speaker.shown)
        if request is None or cut is None:
            if response is not None:
                self._unpaid = (*self._unpaid, replace(self._price(response), reserved=False))
            speaker.abort("stopped")
            await self._pay_broken_off()
            return
        calls = calls_of(cut.response)
        speaker.abort("stopped", {at for at in speaker.ids if at >= len(calls)})
        step = self._new_step(cut.response, calls, speaker)
        streamed = {at: id for at, id in step.streamed.items() if at < len(calls)}
        step = replace(step, streamed=streamed, stopped_by=request, stopped_at=cut.cut)
        await self._carry_out(step, speaker)

    async def _is_small_and_done(self, calls: Sequence[ToolCallPart]) -> bool:
        """Whether a small model has answered everyone who waits: it is not asked for a summary."""
        if self._mind.era.profile != "small" or not self._awaited:
            return False
        if any(call.tool_name != SEND_MESSAGE for call in calls):
            return False
        agent_id, cycle = self._mind.lease.agent_id, self._cycle
        return not await self._with.db.read(answering.unanswered_here, agent_id, cycle.id, cycle.open_events)

    def _exchange(self) -> str:
        """A summary made from the messages received and sent."""
        calls = [call for entry in self._mind.present for call in calls_of(entry.message)]
        sent = [
            str(call.args_as_dict(raise_if_invalid=False).get("text", ""))
            for call in calls
            if call.tool_name == SEND_MESSAGE
        ]
        heard = [(sender_name(event), event.text) for event in self._cycle.events if event.sender_name]
        return exchange_summary(heard, sent)

    async def _unanswered(self) -> list[Waiting]:
        """The spaces with waiting people whom this cycle has not answered, if the settings want that handled."""
        if not self._awaited or self._with.settings.silent_reply == "ignore":
            return []
        agent_id, cycle = self._mind.lease.agent_id, self._cycle
        if answering.is_all_answered(cycle.open_events, self._spoke_in):
            return []
        return await self._with.db.read(answering.unanswered_here, agent_id, cycle.id, cycle.open_events)

    async def _nudge(self, response: ModelResponse, entries: tuple[Entry, Entry], deliver: UncalledText | None) -> None:
        charge, sending = self._charge(response), await self._outgoing(deliver)
        sent = await self._with.db.write(
            calling.store_reminder, self._mind.lease, self._cycle, entries, charge, sending
        )
        if sent is not None and deliver is not None:
            self._effects[sent.step, sent.position] = sent
            self._sent_to.append(deliver.waiting.space_name)
        self._mind.add(*entries)
        self._steps += 1

    async def _stop(self, reason: str) -> CycleOutcome:
        """End because a limit is reached; while somebody waits, after one last step to answer them."""
        noted = answering.last_step_at(self._mind.present)
        taken = noted is not None and any(entry.kind == "response" for entry in self._mind.present[noted:])
        if reason in answering.STRETCHED and not taken:
            waiting = await self._unanswered()
            if waiting:
                return await self._take_last_step(reason, waiting, noted=noted is not None)
        return await self._end(reason, sending=await self._written())

    async def _take_last_step(self, reason: str, waiting: Sequence[Waiting], *, noted: bool) -> CycleOutcome:
        note = answering.last_step_note(self._mind.next_seq, self._cycle.id, reason, waiting)
        if not noted and self._mind.present_tokens + note.tokens < self._history_tokens:
            await self._with.db.write(calling.store_note, self._mind.lease, self._cycle, note)
            self._mind.add(note)
        elif not noted:
            return await self._end(reason, sending=await self._written())
        self._route()
        if (refused := await self._reserve(last=True)) is not None:
            return await self._rest(refused)
        self._preview, self._preview_tokens = None, 0
        self._make_room()
        self._in_last_step, self._plan = True, StepPlan(LAST_STEP_TOOLS)
        try:
            response, speaker = await self._ask()
        except ModelRejected as error:
            if not _may_be_about_tool_choice(error):
                raise
            # Not every server supports a tool choice by name. The cycle has reached its limit anyway.
            log_line.warning("last step rejected", agent=self._mind.lease.agent_id, error=repr(error))
            return await self._end(reason, sending=await self._written())
        if response is None:
            await self._keep_stopped(speaker)
            return await self._heed_stops() or await self._end(reason, sending=await self._written())
        calls = calls_of(response)
        skip = next((call for call in calls if call.tool_name == SKIP), None)
        if skip is not None:
            speaker.abort("skipped")
            return await self._skip(response, calls, skip)
        if calls:
            await self._carry_out(self._new_step(response, calls, speaker), speaker)
            return await self._end(reason, sending=await self._written())
        text = (response.text or "").strip()
        entry, sending = self._response_entry(response), await self._written(text)
        return await self._end(reason, last=response, entries=(entry,), sending=sending)

    async def _written(self, text: str = "") -> CheckedText | None:
        """The model's text for the people who still wait, if it was reminded of them or they are the only ones."""
        waiting, reminded = await self._unanswered(), answering.reminders(self._mind.present)
        words = answering.words_for(waiting, reminded, text, self._steps)
        if words is None and text and len(waiting) == 1 == len(answering.waiting_spaces(self._cycle.open_events)):
            words = UncalledText(waiting[0], text, self._steps)
        return await self._outgoing(words)

    async def _skip(self, response: ModelResponse, calls: tuple[ToolCallPart, ...], skip: ToolCallPart) -> CycleOutcome:
        """End without a trace; or, if something was done already or somebody waits, end as a normal cycle.

        The other calls of the response do not run.
        """
        reason = str(skip.args_as_dict(raise_if_invalid=False).get("reason") or "")
        if not self._changed and await self._skip_without_trace(response, reason):
            return Skipped(reason)
        entry = self._response_entry(response)
        results = {
            at: "The cycle ends here." if call is skip else "Not run: the cycle was skipped."
            for at, call in enumerate(calls)
        }
        answered = calling.results_entry(entry.seq + 1, self._cycle.id, calls, results)
        silent = "" if self._changed else answering.no_reply_summary(self._cycle.events, reason)
        return await self._end("skipped", last=response, entries=(entry, answered), summary=silent)

    async def _skip_without_trace(self, response: ModelResponse, reason: str) -> bool:
        """Undo the cycle; False if somebody waits for its answer and no other agent takes over."""
        before = self._spent
        charge = self._charge(response)
        if not await self._with.db.write(ending.skip_cycle, self._mind.lease, self._cycle, reason, charge):
            self._spent = before  # it is charged when the cycle ends
            return False
        self._mind.roll_back()
        return True

    async def _end(
        self,
        reason: str,
        *,
        last: ModelResponse | None = None,
        entries: tuple[Entry, ...] = (),
        sending: CheckedText | None = None,
        outcome: Literal["acted", "failed"] = "acted",
        unanswered: Why | None = None,
        retry_at: int | None = None,
        summary: str = "",
    ) -> Acted:
        """Store the cycle as ended. Its summary is its last words, otherwise `summary`, otherwise what it did."""
        words = last_words(last.text or "") if last is not None else ""
        if not words and sending is not None:
            words = last_words(sending.what.text)
        charge = NOTHING if last is None else self._charge(last)
        how = Ending(
            stop_reason=reason,
            summary=words or summary or self._derived_summary(),
            entries=entries,
            steps=self._steps + (last is not None),
            charge=charge,
            spent=self._spent,
            reserved=self._reserved,
            outcome=outcome,
            window_from=self._mind.window_from,
            sending=sending,
            unanswered=unanswered,
            retry_at=retry_at,
            answered=self._spoke_in,
        )
        whole = replace(self._cycle, entries=tuple(self._mind.present), effects=tuple(self._effects.values()))
        number = await self._with.db.write(ending.end_cycle, self._mind.lease, whole, how)
        self._mind.add(*entries)
        self._mind.window_from = None
        self._mind.commit()
        dear = alerts.dear_cycle(number, self._spent.cost_micros or 0, self._with.settings.alert_dollars)
        alerts.give(self._with.bus, self._mind.lease.agent_id, dear)
        return Acted(number, how.summary, reason)

    def _derived_summary(self) -> str:
        targets = iter(self._sent_to)
        changes = [effect for effect in self._effects.values() if effect.changes]
        return derived_summary([self._told(effect, targets) for effect in changes])

    @staticmethod
    def _told(effect: EffectRecord, targets: Iterator[str]) -> Effect:
        space = next(targets, None) if effect.tool == SEND_MESSAGE else None
        return Effect(effect.tool, {"space": space} if space else {}, effect.state == "done")

    def let_go(self) -> None:
        """Cancel calls that were no longer waited for and that nobody took over."""
        for space_id in self._cycle.stopped:
            # If the cycle is undone, the one that takes its events again must look for the requests as well.
            self._with.stop_hints.hint(self.agent_id, space_id)
        self._outside.cancel()

    async def hand_back(self) -> None:
        """Record that this cycle was interrupted, not failed. Best effort: if it is lost, that costs one attempt."""
        with suppress(LeaseLost):
            await let_go(
                self._with.db.write(ending.hand_back, self._mind.lease, self._cycle, self._unpaid), HAND_BACK_SECONDS
            )

    async def fail(self, error: BaseException) -> CycleOutcome:
        """Undo the cycle if it has changed nothing; otherwise keep it, and retry from its last step."""
        told, trouble = explained(error), self._trouble(error)
        db, where, changed = self._with.db, (self._mind.lease, self._cycle, told), self._changed
        if (cause := trouble.parks) is not None:
            await db.write(ending.park_cycle, *where, cause, trouble.detail, keep=changed)
        elif (event_cause := trouble.sets_aside) is not None:
            if changed:
                return await self._close_honestly(told, trouble)
            await db.write(ending.set_aside_cycle, *where, event_cause, trouble.detail)
        elif not changed:
            await db.write(ending.undo_cycle, *where, detail=trouble.detail)
        elif await db.write(ending.postpone_cycle, *where, trouble.detail) >= DEAD_AFTER:
            return await self._close_honestly(told, trouble)
        if not changed:
            self._mind.roll_back()
        return Failed(told, undone=not changed)

    def _trouble(self, error: BaseException) -> Trouble:
        trouble = classify(error, self._model_name)
        if trouble.cause == "too_large" and self._mind.present_tokens < LONG_MESSAGE_TOKENS:
            # The new message is not too long; what the agent remembers is.
            return Trouble("model", {**trouble.detail, "reason": "what it has to remember does not fit"})
        return trouble

    async def _interrupt(self, why: str) -> Failed:
        await self._with.db.write(ending.interrupt_cycle, self._mind.lease, self._cycle, why)
        self._mind.roll_back()
        return Failed(why, undone=True)

    async def _close_honestly(self, why: str, trouble: Trouble) -> Acted:
        """End the cycle with what it did, and a note that says what it did not."""
        as_it_is = replace(self._cycle, entries=tuple(self._mind.present), effects=tuple(self._effects.values()))
        answered = calling.answer_open_calls(as_it_is, self._mind.next_seq, UNKNOWN_OUTCOME)
        entries = [answered] if answered is not None else []
        note = f"[NOTE] This cycle was cut short: {why.rstrip('.')}. What is recorded above was done; nothing else was."
        seq = self._mind.next_seq + len(entries)
        entries.append(log.entry(seq, self._cycle.id, "note", ModelRequest(parts=[UserPromptPart(note)])))
        shown = "interrupted" if trouble.cause == "interrupted" else trouble.sets_aside or "gave_up"
        unanswered = (shown, {"count": DEAD_AFTER, **trouble.detail})
        return await self._end("failed", entries=tuple(entries), outcome="failed", unanswered=unanswered)
