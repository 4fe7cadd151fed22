"""Runs the rounds of all panels in this process: takes open replies, asks the models, writes the results.

Hints say when to look; a sweep finds what hints missed and what dead instances held. Everything runs in one task group.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from denizen import failpoints
from denizen.bus.port import Gap
from denizen.bus.streams import WANTED, wanted
from denizen.cycles import budgets
from denizen.cycles.budgets import ServerLimit
from denizen.cycles.ledger import Charge
from denizen.cycles.server_budget import ServerCall
from denizen.errors import DenizenError, LeaseLost, PriceUnknown, RequestTooLarge, StorageError
from denizen.leased_tasks import LeasedTasks, LeasePace, let_go
from denizen.models import context_size
from denizen.models.location import patience
from denizen.models.prices import Usage
from denizen.models.thinking import most_output
from denizen.panel import assertions, claims, costs, voting
from denizen.panel.asking import AdvisorRequest, PanelDeps, Speaking, TooLate, ask, in_time, said_in, settings_for
from denizen.panel.attached import picture_bytes
from denizen.panel.claims import Claim, Key, Outcome, Work
from denizen.panel.context import RequestMessage, fitting
from denizen.telemetry.logs import get_logger
from denizen.tools.background_calls import is_being_cancelled

log_line = get_logger(__name__)

MOST_AT_ONCE: Final = 256
"""The most replies that this process works on at the same time; the others wait."""
ADVISOR_ANSWERED: Final = failpoints.declare("advisor.answered")
"""Between an answer and writing it."""


MOST_SHRINKS: Final = 3
"""How often a request that is too large for a model is shortened and sent again."""
CHARACTERS_PER_TOKEN: Final = 3.5
UNUSABLE: Final = "Your last answer could not be used. Answer with {tool}, and with every field that it needs."


class _Voice:
    """One reply in progress: publishes its text, and keeps its usage until it is recorded."""

    def __init__(self, deps: PanelDeps, claim: Claim, tasks: LeasedTasks[Key, _Voice]) -> None:
        self._panel_deps, self._tasks = deps, tasks
        self.speaking = Speaking(deps.bus, claim)
        # Nobody reads the text beside groups of positions.
        self.hear = _ignore if claim.part == "camps" else self.speaking.hear
        self.model = ""
        """The name of the model that is being asked."""
        self.charges: list[Charge] = []
        """The usage of its model calls that is not recorded yet."""
        self.task: asyncio.Task[None] | None = None

    @property
    def claim(self) -> Claim:
        return self.speaking.claim

    @property
    def epoch(self) -> int:
        return self.claim.epoch

    def used(self, response: ModelResponse) -> None:
        self.charges.append(self._panel_deps.charge(response, self.model))

    async def pause(self, seconds: float) -> None:
        await self._tasks.pause(self, seconds)

    async def again(self) -> None:
        beginning = asyncio.ensure_future(self._begin_again())
        try:
            await asyncio.shield(beginning)
        finally:
            # A reply that is cancelled meanwhile may have begun again: it ends under its present epoch.
            await asyncio.wait((beginning,))

    async def _begin_again(self) -> None:
        claim = await self._panel_deps.db.write(claims.begin_again, self.claim, tuple(self.charges))
        self.charges.clear()
        self.speaking.begin_again(claim)


class Moderator:
    """Works on the replies of panels in this process, from `__aenter__` to `__aexit__`."""

    def __init__(
        self,
        deps: PanelDeps,
        *,
        instance: str,
        pace: LeasePace,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._panel_deps = deps
        self._db, self._clock = deps.db, deps.clock
        self._instance = instance
        self._lease_seconds = pace.lease_seconds
        self._most = most
        self._tasks: LeasedTasks[Key, _Voice] = LeasedTasks(
            "panels",
            deps.clock,
            renew=self._renew,
            sweep=self._look,
            pace=pace,
        )
        self._voices = self._tasks.running
        self._ended = 0
        """How many replies have ended here."""
        self._in_doubt = 0
        """How many writes failed that may have left us a reply on which nothing works, until it is looked for."""
        self._taking = asyncio.Lock()

    async def __aenter__(self) -> Moderator:
        await self._tasks.open(latecomers=self._repeat())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def hint(self) -> None:
        """Notes that there may be replies to take, or to stop."""
        self._tasks.hint()

    async def stop(self) -> None:
        """Lets replies in progress finish, or hands them back after a while; begins no other."""
        if not self._tasks.stopping:
            await self._tasks.stop()

    def hurry(self) -> None:
        """Makes `stop` wait for nothing, now or later."""
        self._tasks.hurry()

    async def run_until_idle(self) -> bool:
        """Returns when nothing is left to answer here now; returns whether there was anything."""
        begun, ended = self._ended, -1
        while self._voices or ended != self._ended:
            # A reply that ends while we look may have left work that we did not see.
            ended = self._ended
            await self._look()
            self._tasks.changed.clear()
            if self._voices:
                await self._tasks.changed.wait()
        return ended != begun

    @property
    def speaking(self) -> int:
        """How many replies are in progress here."""
        return len(self._voices)

    async def _look(self) -> None:
        """Takes open replies, and stops those that should not continue."""
        async with self._taking:
            if self._voices or self._in_doubt:
                await self._compare()
            room = self._most - len(self._voices)
            if self._tasks.stopping or room <= 0 or not (due := await self._db.read(claims.turns_due)):
                return
            background = self._panel_deps.background
            brought = None if background is None else await background.bring(due)
            lease = self._lease_seconds
            try:
                taken = await self._db.write(claims.take, self._instance, lease, room, background, brought)
            except StorageError:
                self._in_doubt += 1
                raise
            for work in taken:
                self._begin(work)

    async def _compare(self) -> None:
        """Stops replies that are no longer ours, and releases those that nothing works on."""
        in_doubt = self._in_doubt
        held = await self._db.read(claims.held_by, self._instance)
        self._tasks.cancel(self._voices.keys() - held)
        # A reply that could not be written is still held, and holds up its round: it is asked again.
        if left := held - self._voices.keys():
            await self._db.write(claims.release, self._instance, left)
        self._in_doubt -= in_doubt

    def _begin(self, work: Work) -> None:
        claim = work.claim
        self._tasks.cancel([claim.key])
        voice = _Voice(self._panel_deps, claim, self._tasks)
        self._tasks.begin(claim.key, voice, self._speak(work, voice), name=f"{claim.part} of {claim.voice}")

    async def _renew(self) -> dict[Key, int]:
        if not self._voices:
            return {}
        return await self._db.write_first(claims.renew, self._instance, self._lease_seconds)

    async def _repeat(self) -> None:
        async with self._panel_deps.bus.subscribe(WANTED, limit=100_000) as asked:
            async for item in asked:
                if isinstance(item, Gap):
                    continue
                spaces = set(wanted(item.payload))
                for voice in self._voices.values():
                    if voice.claim.panel_id in spaces:
                        voice.speaking.say_again()

    async def _speak(self, work: Work, voice: _Voice) -> None:
        try:
            outcome = await self._answer(work, voice)
            failpoints.reach(ADVISOR_ANSWERED)
            await self._db.write(claims.end_reply, voice.claim, outcome, tuple(voice.charges))
        except LeaseLost:
            log_line.info("a voice was given up", voice=work.claim.voice, part=work.claim.part)
            await self._let_go(voice)
        except DenizenError as error:
            # It is asked again, here or elsewhere: at the next look, or, if that would fail again, when its lease has
            # expired.
            self._in_doubt += isinstance(error, StorageError)
            log_line.warning("reply not written", voice=work.claim.voice, error=error.code)
        except asyncio.CancelledError:
            await self._let_go(voice)
            raise
        except Exception:  # An error of one advisor must not end the others.
            log_line.exception("reply not written, by a defect", voice=work.claim.voice)
        finally:
            self._ended += 1
            self._tasks.end(work.claim.key, voice)
            self._tasks.hint()

    async def _let_go(self, voice: _Voice) -> None:
        """Hands the reply back, and records the usage here, even if another holds it now."""
        if not await let_go(self._db.write(claims.hand_back, voice.claim, tuple(voice.charges))):
            self._in_doubt += 1
            log_line.warning("reply not handed back", voice=voice.claim.voice)

    async def _answer(self, work: Work, voice: _Voice) -> Outcome:
        """Returns the result of asking, good or bad. Raises only if there is no answer at all."""
        try:
            return await self._ask(work, voice)
        except (LeaseLost, StorageError):
            raise
        except DenizenError as error:
            return Outcome(error_code=error.code, error=str(error))
        except (Exception, asyncio.CancelledError) as error:  # An error of one advisor must not end the others.
            if is_being_cancelled():
                raise
            # Also if its provider's client was cancelled, and nobody had cancelled the reply: handed back, it would be
            # asked again at once, for ever.
            log_line.exception("advisor failed by a defect", voice=work.claim.voice)
            return Outcome(error_code="internal", error=f"Something is wrong here: {type(error).__name__}.")

    async def _ask(self, work: Work, voice: _Voice) -> Outcome:
        claim, settings = work.claim, work.panel.settings
        if claim.part == "camps" and not self._panel_deps.has_utility_model(settings):
            return Outcome(result={"groups": []})
        wanted = self._panel_deps.utility_model_of(settings) if claim.part in ("check", "camps") else work.model
        voice.model, model = await self._panel_deps.model_for(claim.organization_id, wanted)
        seconds = patience(model, work.panel.settings.total_seconds)
        try:
            return await in_time(self._clock, seconds, self._ask_model(work, voice, model))
        except TooLate:
            return Outcome(error_code="timed_out", error=f"There was no answer within {seconds:g} seconds.")

    async def _ask_model(self, work: Work, voice: _Voice, model: Model) -> Outcome:
        await context_size.ask_server(model)
        context = context_size.size_of(model, voice.model, self._panel_deps.contexts).tokens
        output_tokens = most_output(_settings(work, model, context))
        call = await self._begin_call(work, voice.model, model, output_tokens)
        refused = await self._reserve(work, voice.model, model, output_tokens, None if call is None else call.near)
        if refused is not None:
            return Outcome(error_code="budget_spent", error=refused)
        for shrunk in range(MOST_SHRINKS):
            try:
                return await self._ask_once(work, voice, model, context, shrunk)
            except RequestTooLarge as error:
                found = error.context_tokens or costs.tokens_of(work.lines)
                context = min(found, context or found)
                await voice.again()
        return await self._ask_once(work, voice, model, context, MOST_SHRINKS)

    async def _ask_once(self, work: Work, voice: _Voice, model: Model, context: int | None, shrunk: int) -> Outcome:
        """Asks with as many lines as fit the context; with fewer after each overflow."""
        sent, lines, claim = _settings(work, model, context), list(work.lines), work.claim
        if context is not None:
            room = max(context - most_output(sent), context // 3)
            lines = fitting(lines, int(room * CHARACTERS_PER_TOKEN / 1.5**shrunk))
        key = f"{claim.round_id}:{claim.voice}"
        seen = await picture_bytes(self._db, model, lines)
        asked = AdvisorRequest(model, lines, sent, work.tool, work.panel.settings.first_byte_seconds, key, seen)
        found = _read(work, await ask(self._clock, asked, voice), most_output(sent))
        if work.tool is not None and found.error_code == "no_answer":
            # An unusable answer is asked for once more.
            again = replace(asked, lines=[*lines, RequestMessage("user", UNUSABLE.format(tool=work.tool.name))])
            found = _read(work, await ask(self._clock, again, voice), most_output(sent))
        return found

    async def _begin_call(self, work: Work, name: str, model: Model, output_tokens: int) -> ServerCall | None:
        if self._panel_deps.server_budget is None:
            return None
        most = Usage(costs.tokens_of(work.lines), output_tokens)
        return await self._panel_deps.server_budget.begin(self._db, self._clock, name, model, most)

    async def _reserve(
        self, work: Work, name: str, model: Model, output_tokens: int, server: ServerLimit | None
    ) -> str | None:
        """Returns why there is no room in the budgets, if so. Without limits it writes nothing."""
        own = work.panel.settings.budget
        shared = await self._db.read(budgets.organization_budget, work.claim.organization_id)
        limits = [each for each in (own, shared) if each is not None]
        if not limits and server is None:
            return None
        need = costs.most(work.lines, output_tokens, model, self._panel_deps.prices, name)
        if any(each.in_dollars for each in limits) and not costs.is_priced(model, self._panel_deps.prices, name):
            raise PriceUnknown(name)
        claim, under = work.claim, costs.allowance(work.panel, server)
        refused = await self._db.write(costs.reserve, claim.key, claim.epoch, claim.panel_id, under, need)
        return None if refused is None else costs.refusal(refused.scope)


def _ignore(event: ModelResponseStreamEvent) -> None:
    pass


def _settings(work: Work, model: Model, context: int | None) -> ModelSettings:
    reply_tokens = work.max_tokens if context is None else min(work.max_tokens, context // 3)
    return settings_for(model, reply_tokens, reasoning=work.reasoning, tool=work.tool)


def _read(work: Work, response: ModelResponse, output_tokens: int) -> Outcome:
    text, thinking = said_in(response)
    cut_off = response.finish_reason == "length"
    result = None
    if work.claim.part == "vote" and work.tool is not None:
        result = voting.read(response, work.tool)
    elif work.claim.part == "check":
        result = assertions.read(response, work.expected)
    elif work.claim.part == "camps":
        result = voting.read_groups(response, work.expected)
    if (work.tool is not None and result is None) or (work.tool is None and not text):
        if cut_off:
            said = f"The model used up its limit of {output_tokens:,} tokens before it had answered."
            return Outcome(error_code="no_answer", error=f"{said} Raise max_tokens, or turn reasoning off.")
        return Outcome(error_code="no_answer", error="The model gave no answer that could be used.")
    if cut_off and text:
        text = f"{text}\n\n[Cut off at the limit of {output_tokens:,} tokens.]"
    return Outcome(text or None, thinking, result)
