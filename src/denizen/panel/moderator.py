"""Keeps the rounds of all panels going in this process: takes what is to be answered, asks, writes what came of it.

Hints say when to look; a sweep finds what hints missed and what dead instances held. Everything runs in one task group.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model

from denizen import failpoints
from denizen.bus.port import Gap
from denizen.bus.streams import WANTED, wanted
from denizen.cycles import budgets
from denizen.errors import DenizenError, InvalidInput, LeaseLost, ModelError, StorageError
from denizen.panel import assertions, costs, taking, voting
from denizen.panel.asking import Asked, Kit, Speaking, TooLate, ask, in_time, said_in, settings_for
from denizen.panel.taking import Claim, Outcome, Work

log_line = structlog.get_logger(__name__)

MOST_AT_ONCE: Final = 256
"""Voices that this process lets speak at the same time; the others wait."""
ADVISOR_ANSWERED: Final = failpoints.declare("advisor.answered")
"""Between an answer and its being written."""


@dataclass
class _Voice:
    """One voice that is being asked here."""

    speaking: Speaking
    task: asyncio.Task[None] | None = None


class Moderator:
    """Lets the voices of panels speak in this process, from `__aenter__` to `__aexit__`."""

    def __init__(
        self,
        kit: Kit,
        *,
        instance: str,
        lease_seconds: float,
        sweep_seconds: float,
        grace_seconds: float,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._kit = kit
        self._db, self._clock = kit.db, kit.clock
        self._instance = instance
        self._speaking = asyncio.Event()
        """Someone may be: there are leases to keep."""
        self._lease_seconds, self._sweep_seconds, self._grace_seconds = lease_seconds, sweep_seconds, grace_seconds
        self._most = most
        self._voices: dict[tuple[str, str, str], _Voice] = {}
        self._hinted = asyncio.Event()
        self._changed = asyncio.Event()
        self._taking = asyncio.Lock()
        self._stopping = False
        self._tasks = asyncio.TaskGroup()
        self._loops: list[asyncio.Task[None]] = []
        self._context = contextvars.Context()

    async def __aenter__(self) -> Moderator:
        await self._tasks.__aenter__()
        self._context = contextvars.copy_context()
        self._loops = [
            self._tasks.create_task(self._keep_looking(), name="panels"),
            self._tasks.create_task(self._keep_leases(), name="lease renewal of panels"),
            self._tasks.create_task(self._repeat(), name="repeating panels for latecomers"),
        ]
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def hint(self) -> None:
        """There may be something to answer, or something not to answer any more."""
        self._hinted.set()

    async def stop(self) -> None:
        """Voices that speak finish, or are handed back after a while; no other is begun."""
        if self._stopping:
            return
        self._stopping = True
        speaking = [each.task for each in self._voices.values() if each.task is not None]
        if speaking and self._grace_seconds > 0:
            await asyncio.wait(speaking, timeout=self._grace_seconds)
        for task in [*speaking, *self._loops]:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)

    def hurry(self) -> None:
        """Whoever is in `stop`, or will be, waits for nobody."""
        self._grace_seconds = 0
        if self._stopping:
            for each in self._voices.values():
                if each.task is not None:
                    each.task.cancel()

    async def run_until_idle(self) -> bool:
        """Return when nothing is left to answer here now; whether there was anything."""
        anything = False
        while True:
            await self._look()
            if not self._voices:
                return anything
            anything = True
            self._changed.clear()
            if self._voices:
                await self._changed.wait()

    @property
    def speaking(self) -> int:
        """How many voices speak here now."""
        return len(self._voices)

    async def _keep_looking(self) -> None:
        while True:
            await self._clock.wait(self._hinted, self._sweep_seconds)
            self._hinted.clear()
            try:
                await self._look()
            except StorageError as error:
                log_line.warning("panels not looked after", error=error.code)

    async def _look(self) -> None:
        """What may be answered is being answered, and nobody goes on who should not."""
        async with self._taking:
            if self._voices:
                self._stop_all_but(await self._db.read(taking.held_by, self._instance))
            room = self._most - len(self._voices)
            if self._stopping or room <= 0 or not await self._db.read(taking.is_due):
                return
            background, brought = self._kit.background, None
            if background is not None:
                brought = await background.bring(await self._db.read(taking.turns_due))
            lease = self._lease_seconds
            for work in await self._db.write(taking.take, self._instance, lease, room, background, brought):
                self._begin(work)

    def _begin(self, work: Work) -> None:
        before = self._voices.get(work.claim.key)
        if before is not None and before.task is not None:
            before.task.cancel()
        voice = _Voice(Speaking(self._kit.bus, work.claim))
        self._voices[work.claim.key] = voice
        self._speaking.set()
        # Whatever request asked, answering is no part of that.
        voice.task = self._tasks.create_task(
            self._speak(work, voice), name=f"{work.claim.part} of {work.claim.voice}", context=self._context.copy()
        )

    def _stop_all_but(self, held: Container[tuple[str, str, str]]) -> None:
        for key, voice in list(self._voices.items()):
            if key not in held and voice.task is not None:
                voice.task.cancel()

    async def _keep_leases(self) -> None:
        while True:
            await self._speaking.wait()
            await self._clock.sleep(self._lease_seconds / 3)
            before = set(self._voices)
            if not before:
                self._speaking.clear()
                continue
            try:
                held = await self._db.write_first(taking.renew, self._instance, self._lease_seconds)
            except StorageError as error:
                log_line.warning("leases of panels not renewed", error=error.code)
                continue
            for key in before - held.keys():
                voice = self._voices.get(key)
                if voice is not None and voice.task is not None:
                    voice.task.cancel()

    async def _repeat(self) -> None:
        async with self._kit.bus.subscribe(WANTED, limit=100_000) as asked:
            async for item in asked:
                if isinstance(item, Gap):
                    continue
                spaces = set(wanted(item.payload))
                for voice in self._voices.values():
                    if voice.speaking.claim.panel_id in spaces:
                        voice.speaking.say_again()

    async def _speak(self, work: Work, voice: _Voice) -> None:
        try:
            outcome = await self._answer(work, voice.speaking)
            failpoints.reach(ADVISOR_ANSWERED)
            await self._db.write(taking.end_reply, voice.speaking.claim, outcome)
        except LeaseLost:
            log_line.info("another voice was given up", voice=work.claim.voice, part=work.claim.part)
        except StorageError as error:
            # When its lease has run out, it is taken up again, here or elsewhere.
            log_line.warning("reply not written", voice=work.claim.voice, error=error.code)
        except asyncio.CancelledError:
            await self._hand_back(voice.speaking.claim)
            raise
        finally:
            if self._voices.get(work.claim.key) is voice:
                del self._voices[work.claim.key]
            self._changed.set()
            self._hinted.set()

    async def _hand_back(self, claim: Claim) -> None:
        # Where it is another's by now, or nobody's, this changes nothing.
        try:
            async with asyncio.timeout(5):
                await asyncio.shield(asyncio.ensure_future(self._db.write(taking.hand_back, claim)))
        except (StorageError, TimeoutError):
            log_line.warning("reply not handed back", voice=claim.voice)

    async def _answer(self, work: Work, speaking: Speaking) -> Outcome:
        """What came of asking, good or bad. Only what is no answer at all is raised."""
        settings = work.panel.settings
        try:
            return await in_time(self._clock, settings.total_seconds, self._ask(work, speaking))
        except TooLate:
            return Outcome(
                error_code="timed_out", error=f"There was no answer within {settings.total_seconds:g} seconds."
            )
        except (LeaseLost, StorageError):
            raise
        except ModelError as error:
            return Outcome(error_code=error.code, error=str(error))
        except DenizenError as error:
            return Outcome(error_code=error.code, error=str(error))
        except Exception as error:  # one advisor's misfortune must not end the others
            log_line.exception("advisor failed by a defect", voice=work.claim.voice)
            return Outcome(error_code="internal", error=f"Something is wrong here: {type(error).__name__}.")

    async def _ask(self, work: Work, speaking: Speaking) -> Outcome:
        claim = work.claim
        name, model = await self._kit.model_for(claim.organization_id, work.model)
        refused = await self._reserve(work, name, model)
        if refused is not None:
            return Outcome(error_code="budget_spent", error=refused)
        sent = settings_for(work.max_tokens, reasoning=work.reasoning, tool=work.tool)
        asked = Asked(model, work.lines, sent, work.tool, work.panel.settings.first_byte_seconds)

        async def again() -> None:
            speaking.begin_again(await self._db.write(taking.begin_again, speaking.claim))

        key = f"{claim.round_id}:{claim.voice}"
        response = await ask(self._clock, asked, speaking.hear, again, key)
        return _read(work, response, self._kit, name)

    async def _reserve(self, work: Work, name: str, model: Model) -> str | None:
        """Why there is no room in the budgets, if there is none. No limits, no transaction."""
        own = work.panel.settings.budget
        shared = await self._db.read(budgets.organization_budget, work.claim.organization_id)
        limits = [each for each in (own, shared) if each is not None]
        if not limits:
            return None
        need = costs.most(work.lines, work.max_tokens, model, self._kit.prices, name)
        if any(each.in_dollars for each in limits) and not costs.is_priced(model, self._kit.prices, name):
            raise InvalidInput(
                f"There is a budget in dollars, and nobody here knows what {name!r} costs: give its price, or set the "
                "budget in tokens."
            )
        claim = work.claim
        scope = await self._db.write(
            costs.reserve, claim.key, claim.epoch, claim.organization_id, claim.panel_id, own, need
        )
        return None if scope is None else costs.refusal(scope)


def _read(work: Work, response: ModelResponse, kit: Kit, name: str) -> Outcome:
    text, thinking = said_in(response)
    charge = kit.charge(response, name)
    result = None
    if work.claim.part == "vote":
        result = voting.read(response)
    elif work.claim.part == "check":
        result = assertions.read(response, work.expected)
    if (work.tool is not None and result is None) or (work.tool is None and not text):
        return Outcome(error_code="no_answer", error="The model gave no answer that could be used.", charge=charge)
    return Outcome(text or None, thinking, result, charge=charge)
