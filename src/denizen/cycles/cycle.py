"""One think cycle, from its opening to its end: ask the model, carry out its calls, until it is done.

Every step is in the database before the next begins, so a cycle that was cut off is taken up at the step it had
reached: `think` is given an open cycle and does not care whether it was just opened or comes from a dead process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import structlog
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_json

from denizen import failpoints
from denizen.bus.port import Bus
from denizen.bus.streams import AgentStatus, agent_topic
from denizen.clock import SECOND, Clock
from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.consciousness.mind import Mind
from denizen.consciousness.summary import Effect, derived_summary, last_words
from denizen.consciousness.window import result_characters
from denizen.cycles import awareness, calling, ending
from denizen.cycles.calling import UNKNOWN_OUTCOME, Progress, Step
from denizen.cycles.ending import Ending
from denizen.cycles.ledger import NOTHING, Charge
from denizen.cycles.opening import event_characters
from denizen.cycles.outcome import Acted, CycleOutcome, Failed, Skipped
from denizen.cycles.phases import Phase, phase_at
from denizen.cycles.records import OpenCycle, calls_of
from denizen.cycles.settings import CycleSettings
from denizen.cycles.speaking import Speaker
from denizen.cycles.stopping import BUILT_IN, Spent, Stop, stop_reason
from denizen.cycles.waiting import Waiting, whom_to_answer
from denizen.errors import LeaseLost, ModelError, ModelRejected, ModelUnknown, StorageError
from denizen.ids import SpaceId
from denizen.inbox.delivery import DEAD_AFTER
from denizen.models import request
from denizen.models.prices import Price, cost, usage_of
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.spaces import posting
from denizen.storage.database import Database
from denizen.tools.effects import EffectRecord
from denizen.tools.prebuilt import SEND_MESSAGE, SKIP
from denizen.tools.tool import OutsideTool, Toolbox

log_line = structlog.get_logger(__name__)

MODEL_ANSWERED = failpoints.declare("model.answered")
TOOL_CALLED = failpoints.declare("tool.called")

SMALLEST_UPDATE_TOKENS: Final = 300
"""With less room than this, what arrives in the middle of a cycle waits for the next."""

REMINDER: Final = (
    "[REMINDER] Nobody has seen that text: plain text is internal. {who} is waiting in the space {space}. "
    "Call send_message to answer, or skip if no answer is needed."
)


@dataclass(frozen=True, slots=True)
class Faculties:
    """What an agent thinks with."""

    db: Database
    bus: Bus
    clock: Clock
    model: Model
    model_name: str
    toolbox: Toolbox
    settings: CycleSettings
    prices: Mapping[str, Price]
    stops: Mapping[str, Stop] = field(default_factory=lambda: BUILT_IN)


async def think(
    faculties: Faculties, mind: Mind, cycle: OpenCycle, arrived: Callable[[], bool] = lambda: True
) -> CycleOutcome:
    """Live the cycle to its end. Raises only when the agent is ours no more, or when the database fails.

    `arrived` says whether there may be something new in the inbox, so that it need not be looked at before each step.
    """
    thinking = _Thinking(faculties, mind, cycle, arrived)
    try:
        return await thinking.run()
    except (LeaseLost, StorageError):
        raise
    except asyncio.CancelledError:
        await thinking.hand_back()
        raise
    except Exception as error:  # noqa: BLE001  the loop's boundary: whatever failed, the events must not be lost
        log_line.warning("cycle failed", agent=mind.lease.agent_id, cycle=cycle.id, error=repr(error))
        return await thinking.fail(error)


class _Thinking:
    """A cycle under way."""

    def __init__(self, faculties: Faculties, mind: Mind, cycle: OpenCycle, arrived: Callable[[], bool]) -> None:
        self._with = faculties
        self._arrived = arrived
        self._preview: str | None = None
        self._preview_tokens = 0
        self._mind = mind
        self._cycle = cycle
        self._steps = cycle.steps
        self._spent = NOTHING
        for response in cycle.responses:
            self._charge(response)
        self._effects = {(effect.step, effect.position): effect for effect in cycle.effects}
        self._sent_to = list(cycle.sent_to)
        mind.add(*cycle.entries)

    async def run(self) -> CycleOutcome:
        if self._cycle.attempts >= DEAD_AFTER:
            return await self._close_honestly("it was cut off too often")
        await self._take_up()
        while (reason := self._stop_reason()) is None:
            await self._look_around()
            self._make_room()
            response, speaker = await self._ask()
            calls = calls_of(response)
            skip = next((call for call in calls if call.tool_name == SKIP), None)
            if skip is not None:
                speaker.abort("skipped")
                return await self._skip(response, calls, skip)
            if calls:
                await self._carry_out(self._new_step(response, calls, speaker), speaker)
            elif (outcome := await self._finish(response)) is not None:
                return outcome
        return await self._end(reason)

    # How much there may be

    @property
    def _history_tokens(self) -> int:
        """What a request may hold beside the self, the tools and the preview."""
        fixed = self._mind.self_tokens + self._with.toolbox.tokens + self._preview_tokens
        return int(self._mind.budget.request / self._mind.correction) - fixed

    def _over_budget(self, more_tokens: int = 0) -> bool:
        return self._mind.tokens - self._mind.self_tokens + more_tokens > self._history_tokens

    def _stop_reason(self) -> str | None:
        present = self._mind.present_tokens
        room = self._history_tokens - present
        if self._steps == 0:
            if room <= 0:
                raise ModelRejected("The model's context is too small for this agent's self, tools and inbox.")
            return None
        # A small window leaves a cycle at most half of it, so that the past is not pushed out altogether.
        allowed = min(self._with.settings.token_budget, self._history_tokens // 2)
        spent = Spent(
            steps=self._steps,
            tokens=present,
            allowed_tokens=allowed,
            cost_micros=self._spent.cost_micros or 0,
            room=room,
            seconds=(self._with.clock.now() - self._cycle.started_at) / SECOND,
            events=len(self._cycle.events),
            sent=len(self._sent_to),
        )
        return stop_reason(self._with.settings, spent, self._with.stops)

    async def _look_around(self) -> None:
        """Before each step but the first: take what is urgent, and see what else waits."""
        self._preview, self._preview_tokens = None, 0
        if self._steps == 0 or self._with.settings.awareness == "none" or not self._arrived():
            return
        # At most half of what room there is: the answer to it must fit as well. With hardly any, it waits.
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
            # Where there is hardly room, a glance at the inbox is the first thing to do without.
            tokens = estimate(noticed.preview) + PER_MESSAGE
            if tokens < (self._history_tokens - self._mind.present_tokens) // 4:
                self._preview, self._preview_tokens = noticed.preview, tokens
        if noticed.update is not None:
            self._cycle = replace(self._cycle, events=(*self._cycle.events, *noticed.taken))
            self._mind.add(noticed.update)

    def _make_room(self) -> None:
        """Before every request: if it would be over the budget, old cycles leave the window, many at once."""
        if self._over_budget():
            self._mind.begin_at(self._mind.start_within(self._target_tokens))

    @property
    def _target_tokens(self) -> int:
        return int(self._history_tokens * self._mind.window.target_share)

    def _result_characters(self, calls: int) -> int:
        room = self._history_tokens - self._mind.present_tokens
        return result_characters(limit=self._mind.window.result_characters, room_tokens=room, results=calls)

    def _learn_size(self, response: ModelResponse) -> None:
        """Providers count differently than we estimate: from now on their count decides."""
        if not response.usage.details.get("estimated"):
            estimated = self._mind.tokens + self._with.toolbox.tokens
            self._mind.correction = max(self._mind.correction, min(response.usage.input_tokens / estimated, 4.0))

    # Asking

    async def _ask(self) -> tuple[ModelResponse, Speaker]:
        """The model's next response, asked again as often as its errors allow."""
        attempt = 0
        while True:
            attempt += 1
            may_speak = self._phase.allows(SEND_MESSAGE)
            space_id = self._cycle.active_space_id if may_speak else None
            speaker = Speaker(self._with.bus, self._mind.lease, space_id)
            try:
                response = await self._ask_once(speaker)
            except ModelError as error:
                speaker.abort("error")
                delay = request.retry_delay(error, attempt, key=self._mind.lease.agent_id)
                if delay is None:
                    raise
                log_line.info("model asked again", agent=self._mind.lease.agent_id, error=error.code, seconds=delay)
                await self._with.clock.sleep(delay)
            except BaseException:
                speaker.abort("interrupted")
                raise
            else:
                return response, speaker

    async def _ask_once(self, speaker: Speaker) -> ModelResponse:
        phase = self._phase
        settings = ModelSettings(max_tokens=self._mind.budget.output)
        if phase.tool_choice != "auto":
            settings["tool_choice"] = phase.tool_choice
        tools = self._with.toolbox.definitions
        if phase.strict:
            tools = tuple(each for each in tools if phase.allows(each.name))
        prompt = self._mind.prompt
        if self._preview is not None:
            # Ephemeral, and so at the very end: what stands before it is the prefix of the next request.
            prompt = [*prompt, ModelRequest(parts=[UserPromptPart(self._preview)])]
        async with request.stream(self._with.model, prompt, tools=tools, settings=settings) as answer:
            async for event in answer:
                speaker.hear(event)
        failpoints.reach(MODEL_ANSWERED)
        response = answer.response
        self._learn_size(response)
        return response

    @property
    def _phase(self) -> Phase:
        return phase_at(self._with.settings.phases, self._steps)

    def _charge(self, response: ModelResponse) -> Charge:
        usage = usage_of(response)
        dollars = cost(response, self._with.prices, asked=self._with.model_name)
        micros = None if dollars is None else int(dollars * 1_000_000)
        name = self._with.model_name
        charge = Charge(name, usage.input, usage.output, usage.cache_read, usage.cache_write, micros)
        self._spent += charge
        return charge

    def _response_entry(self, response: ModelResponse) -> Entry:
        """The response, with what its request was made of, so that the request can be built again."""
        made_of: dict[str, object] = {
            "era": self._mind.era.number,
            "from": self._mind.past[0].seq if self._mind.past else self._cycle.first_seq,
            "to": self._mind.next_seq - 1,
            "tools": self._with.toolbox.digest,
            "model": self._with.model_name,
            "settings": {"max_tokens": self._mind.budget.output, "tool_choice": self._phase.tool_choice},
        }
        if self._phase.strict:
            made_of["only"] = [tool for tool in self._with.toolbox.by_name if self._phase.allows(tool)]
        if self._preview is not None:
            made_of["preview"] = self._preview
        encoded = to_json(made_of).decode()
        return log.entry(self._mind.next_seq, self._cycle.id, "response", response, request=encoded)

    # Acting

    @property
    def _changed(self) -> bool:
        """Whether the world is different because of this cycle: then it can no longer be undone."""
        return any(effect.changes for effect in self._effects.values())

    def _new_step(self, response: ModelResponse, calls: tuple[ToolCallPart, ...], speaker: Speaker) -> Step:
        return Step(
            number=self._steps,
            response=self._response_entry(response),
            calls=calls,
            results={},
            stored=False,
            characters=self._result_characters(len(calls)),
            phase=self._phase,
            streamed=speaker.ids,
            charge=self._charge(response),
        )

    async def _take_up(self) -> None:
        """Finish the calls of a response that was stored before the process died."""
        last = self._cycle.entries[-1]
        calls = calls_of(last.message)
        if not calls:
            return
        number = self._steps - 1
        known = [effect for effect in self._effects.values() if effect.step == number]
        done = {effect.position: effect.result or "" for effect in known if effect.state == "done"}
        phase = phase_at(self._with.settings.phases, number)
        step = Step(number, last, calls, done, True, self._result_characters(len(calls)), phase)
        cut_off = [effect.position for effect in known if effect.state == "intent"]
        await self._carry_out(step, None, {at: await self._after_crash(calls[at]) for at in cut_off})

    async def _after_crash(self, call: ToolCallPart) -> str:
        """The result of an outside call that may or may not have happened."""
        tool = self._with.toolbox.by_name.get(call.tool_name)
        retry = isinstance(tool, OutsideTool) and tool.on_crash == "retry"
        return await self._call(call) if retry else UNKNOWN_OUTCOME

    async def _carry_out(self, step: Step, speaker: Speaker | None, finished: Mapping[int, str] | None = None) -> None:
        """Run the calls of one response to the last, our own inside transactions, outside ones between them."""
        finished = finished or {}
        while True:
            progress = await self._with.db.write(
                calling.carry_on, self._mind.lease, self._cycle, step, self._with.toolbox, finished
            )
            if not step.stored:
                self._mind.add(step.response)
                self._steps += 1
            self._note(progress)
            if self._cycle.attempts:
                self._cycle = replace(self._cycle, attempts=0)
            if progress.results is not None:
                self._mind.add(progress.results)
                break
            done = {effect.position: effect.result or "" for effect in progress.effects if effect.state == "done"}
            step = replace(step, stored=True, results={**step.results, **done})
            finished = await self._call_all([(at, step.calls[at]) for at in progress.intended])
        if speaker is not None:
            speaker.abort("refused", {at for at in step.streamed if not self._effects[step.number, at].changes})

    def _note(self, progress: Progress) -> None:
        self._effects.update({(effect.step, effect.position): effect for effect in progress.effects})
        self._sent_to.extend(progress.sent_to)
        if progress.active_space_id != self._cycle.active_space_id:
            self._cycle = replace(self._cycle, active_space_id=progress.active_space_id)

    def _tell_doing(self, tools: Sequence[str]) -> None:
        """Whoever watches sees with what the agent is busy. A hint: it says nothing of what is stored."""
        agent_id, epoch = self._mind.lease.agent_id, self._mind.lease.epoch
        status = AgentStatus(agent_id, "alive", epoch, ", ".join(tools) or None)
        self._with.bus.publish(agent_topic(agent_id), status.to_payload())

    async def _call_all(self, calls: Sequence[tuple[int, ToolCallPart]]) -> dict[int, str]:
        self._tell_doing([call.tool_name for _, call in calls])
        async with asyncio.TaskGroup() as tasks:
            running = {at: tasks.create_task(self._call(call), name=f"tool {call.tool_name}") for at, call in calls}
        self._tell_doing([])
        return {at: task.result() for at, task in running.items()}

    async def _call(self, call: ToolCallPart) -> str:
        """What an outside tool answers; what goes wrong in it is told to the model, never raised."""
        tool = self._with.toolbox.by_name[call.tool_name]
        assert isinstance(tool, OutsideTool)
        limit = asyncio.timeout(tool.seconds)
        try:
            async with limit:
                result = await tool.call(tool.check(call.args))
        except Exception as error:  # noqa: BLE001  the model decides what to make of it
            log_line.info("tool failed", tool=tool.name, error=repr(error))
            # A tool's own TimeoutError is a failure like any other.
            if not limit.expired():
                return f"{tool.name} failed: {type(error).__name__}: {error}"
            return f"{tool.name} did not answer within {tool.seconds:g} seconds. Whether it did its work is unknown."
        failpoints.reach(TOOL_CALLED)
        return result

    # Ending

    async def _finish(self, response: ModelResponse) -> CycleOutcome | None:
        """End with the model's last words; None if instead it was reminded that a person waits who heard nothing."""
        waiting = await self._unanswered()
        entry = self._response_entry(response)
        reminded = any(each.kind == "nudge" for each in self._mind.present)
        if waiting is not None and self._with.settings.silent_reply == "nudge" and not reminded:
            await self._remind(response, entry, waiting)
            return None
        delivering = None
        text = (response.text or "").strip()
        if waiting is not None and self._with.settings.silent_reply == "deliver" and text:
            delivering = (waiting.space_id, posting.draft(text))
        return await self._end("answered", last=response, entries=(entry,), delivering=delivering)

    async def _unanswered(self) -> Waiting | None:
        """The person who waits for an answer, if nothing was said in this cycle."""
        said = any(effect.tool == SEND_MESSAGE and effect.changes for effect in self._effects.values())
        if said or self._with.settings.silent_reply == "ignore":
            return None
        return await self._with.db.read(whom_to_answer, self._mind.lease.agent_id, self._cycle.events)

    async def _remind(self, response: ModelResponse, entry: Entry, waiting: Waiting) -> None:
        reminder = ModelRequest(parts=[UserPromptPart(REMINDER.format(who=waiting.who, space=waiting.space))])
        entries = (entry, log.entry(entry.seq + 1, self._cycle.id, "nudge", reminder))
        await self._with.db.write(
            calling.store_reminder, self._mind.lease, self._cycle, entries, self._charge(response)
        )
        self._mind.add(*entries)
        self._steps += 1

    async def _skip(self, response: ModelResponse, calls: tuple[ToolCallPart, ...], skip: ToolCallPart) -> CycleOutcome:
        """Leave no trace; or, where something was done already, end here without running the other calls."""
        reason = str(skip.args_as_dict(raise_if_invalid=False).get("reason") or "")
        if not self._changed:
            charge = self._charge(response)
            await self._with.db.write(ending.skip_cycle, self._mind.lease, self._cycle, reason, charge)
            self._mind.roll_back()
            return Skipped(reason)
        entry = self._response_entry(response)
        results = {
            at: "The cycle ends here." if call is skip else "Not run: the cycle was skipped."
            for at, call in enumerate(calls)
        }
        answered = calling.results_entry(entry.seq + 1, self._cycle.id, calls, results)
        return await self._end("skipped", last=response, entries=(entry, answered))

    async def _end(
        self,
        reason: str,
        *,
        last: ModelResponse | None = None,
        entries: tuple[Entry, ...] = (),
        delivering: tuple[SpaceId, posting.Draft] | None = None,
        outcome: Literal["acted", "failed"] = "acted",
    ) -> Acted:
        """The cycle is part of the agent's life."""
        words = last_words(last.text or "") if last is not None else ""
        charge = NOTHING if last is None else self._charge(last)
        how = Ending(
            stop_reason=reason,
            summary=words or self._derived_summary(),
            entries=entries,
            steps=self._steps + (last is not None),
            charge=charge,
            spent=self._spent,
            outcome=outcome,
            window_from=self._window_from(sum(entry.tokens for entry in entries)),
            delivering=delivering,
        )
        number = await self._with.db.write(ending.end_cycle, self._mind.lease, self._cycle, how)
        self._mind.add(*entries)
        if how.window_from is not None:
            self._mind.begin_at(how.window_from)
            self._mind.window_from = None
        self._mind.commit()
        return Acted(number, how.summary, reason)

    def _window_from(self, more_tokens: int) -> int | None:
        """Where the window begins from now on, if it has moved, or has to because of what is added last."""
        if self._over_budget(more_tokens):
            return self._mind.start_within(self._target_tokens - more_tokens)
        return self._mind.window_from

    def _derived_summary(self) -> str:
        targets = iter(self._sent_to)
        changes = [effect for effect in self._effects.values() if effect.changes]
        return derived_summary([self._told(effect, targets) for effect in changes])

    @staticmethod
    def _told(effect: EffectRecord, targets: Iterator[str]) -> Effect:
        space = next(targets, None) if effect.tool == SEND_MESSAGE else None
        return Effect(effect.tool, {"space": space} if space else {}, effect.state == "done")

    async def hand_back(self) -> None:
        """Say that this cycle was interrupted, not failed. As far as there is time: a lost word costs one attempt."""
        saying = asyncio.ensure_future(self._with.db.write(ending.hand_back, self._mind.lease, self._cycle))
        try:
            async with asyncio.timeout(2):
                await asyncio.shield(saying)
        except (LeaseLost, StorageError, TimeoutError):
            return

    async def fail(self, error: Exception) -> CycleOutcome:
        """Undo the cycle if it has changed nothing; else keep it, and try again from its last step."""
        told = f"{type(error).__name__}: {error}"
        if not self._changed:
            # A model that is not configured is nobody's fault: the events wait until it is.
            counts = not isinstance(error, ModelUnknown)
            await self._with.db.write(ending.undo_cycle, self._mind.lease, self._cycle, told, counts=counts)
            self._mind.roll_back()
            return Failed(told, undone=True)
        tries = await self._with.db.write(ending.postpone_cycle, self._mind.lease, self._cycle, told)
        if tries >= DEAD_AFTER:
            return await self._close_honestly(told)
        return Failed(told, undone=False)

    async def _close_honestly(self, why: str) -> Acted:
        """The cycle ends with what it did, and a note that says what it did not."""
        as_it_is = replace(self._cycle, entries=tuple(self._mind.present), effects=tuple(self._effects.values()))
        answered = calling.answer_open_calls(as_it_is, self._mind.next_seq, UNKNOWN_OUTCOME)
        entries = [answered] if answered is not None else []
        note = f"[NOTE] This cycle was cut short: {why}. What is recorded above was done; nothing else was."
        seq = self._mind.next_seq + len(entries)
        entries.append(log.entry(seq, self._cycle.id, "note", ModelRequest(parts=[UserPromptPart(note)])))
        return await self._end("failed", entries=tuple(entries), outcome="failed")
