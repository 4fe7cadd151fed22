"""The agents that live in this process. A sleeping agent is rows in the database; an event activates it on some
instance.

A life: take the lease, load the mind, think cycles until nothing wakes it, stay warm for a while, release. Hints say
when to look; a sweep finds what hints missed and what dead instances held. Everything runs in one task group.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import structlog
from pydantic import ValidationError

from denizen.agents import registry
from denizen.agents.alarm import Alarm
from denizen.agents.instance_lock import InstanceLock, Neighbours
from denizen.agents.pace import Pace
from denizen.agents.recent_minds import RecentMinds
from denizen.agents.registry import Agent
from denizen.clock import SECOND, Clock, Instant
from denizen.consciousness import compaction
from denizen.consciousness import lease as leases
from denizen.consciousness import mind as minds
from denizen.consciousness.compaction import WITH_A_WRITER, CompactedMind, FullMind, Unfinished
from denizen.consciousness.lease import Lease
from denizen.consciousness.mind import Mind
from denizen.consciousness.system_prompt import Identity
from denizen.consciousness.window import Budget
from denizen.cycles import alerts
from denizen.cycles.budgets import release_due
from denizen.cycles.cycle import think
from denizen.cycles.deps import CycleDeps
from denizen.cycles.ending import undo_cycle
from denizen.cycles.opening import OpenedCycle, Stale, Waking, open_cycle, resume_cycle
from denizen.cycles.outcome import Acted, Failed, Paused, Rested
from denizen.cycles.pausing import stays_paused
from denizen.cycles.recalling import remind
from denizen.cycles.records import OpenCycle, open_cycle_id
from denizen.cycles.seeing import Unread
from denizen.cycles.triage import sift
from denizen.errors import DenizenError, LeaseLost, StorageError
from denizen.files.cleanup import tidy
from denizen.files.extracting import wait_until_read
from denizen.ids import AgentId, SpaceId
from denizen.inbox import stop_requests
from denizen.inbox.stop_requests import StopHints
from denizen.leased_tasks import LeasedTasks, let_go
from denizen.memory.reminding import Reminder, shown_in
from denizen.models.pictures import sees
from denizen.panel import reflection_cursor
from denizen.profiles import choosing
from denizen.reflection import records as reflection
from denizen.reflection.afterthoughts import Afterthoughts
from denizen.reflection.cursor import Claimant
from denizen.spaces import sizes
from denizen.spaces.sizes import DAY
from denizen.storage.database import Database, Tx
from denizen.telemetry.logs import get_logger
from denizen.tools import calls, privacy_guard, running_calls
from denizen.tools.background_calls import BackgroundCalls, again, is_being_cancelled
from denizen.tools.calls import Call
from denizen.tools.results import Result
from denizen.tools.tool import spaces_of

log_line = get_logger(__name__)

SWEEPS_BETWEEN_TRIES: Final = 30
"""How many sweeps skip an agent that could not live here, unless something new arrives for it."""
LOOK_BACK_SECONDS: Final = 60
"""How often to look for cycles that were never reflected on, because their process ended unnoticed."""
TAKE_OVER_PAUSES: Final = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds between tries to take a lease that is free while a write of its last holder is running."""
MOST_LIVES: Final = 1_000
"""How many agents may be awake here at once; the others wait for the next sweep."""

Equip = Callable[[Agent], Awaitable[tuple[CycleDeps, Budget]]]
"""Builds what an agent thinks with, by its definition. Raises a `ModelError` if its model is not available."""


@dataclass
class _Life:
    """One agent that is awake here."""

    woken: asyncio.Event = field(default_factory=asyncio.Event)
    resting: bool = False
    leaving: bool = False
    """Told to make room for another agent."""
    lease: Lease | None = None
    task: asyncio.Task[None] | None = None
    kept: set[int] = field(default_factory=set[int])
    """The numbers of events that triage has found worth thinking about."""
    hints: int = 0
    """How often it was told that there may be something to do."""
    hints_then: int = 0
    """How often that was when a cycle was opened by the write that woke it."""

    @property
    def epoch(self) -> int | None:
        return None if self.lease is None else self.lease.epoch

    def wake(self) -> None:
        self.hints += 1
        self.woken.set()

    def called_up(self) -> None:
        """Its cycle was opened by the write that woke it."""
        self.woken.set()
        self.hints_then = self.hints


class Residents:
    """Keeps agents alive in this process, from `__aenter__` to `__aexit__`."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        instance: str,
        equip: Equip,
        is_outdated: Callable[[CycleDeps], bool],
        refresh: Callable[[], Awaitable[None]],
        pace: Pace,
        background_calls: BackgroundCalls,
        afterthoughts: Afterthoughts[AgentId],
        panel_afterthoughts: Afterthoughts[SpaceId],
        chapters: Afterthoughts[AgentId],
        stop_hints: StopHints,
        free_leases_of: Callable[[Tx, str], None],
        lock: InstanceLock | None = None,
        read_files: Callable[[], None] = lambda: None,
        remove_expired: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._read_files = read_files
        self._remove_expired = remove_expired
        self._removed_at: int | None = None
        self._recent = RecentMinds()
        self._background_calls = background_calls
        self._stop_hints = stop_hints
        self._afterthoughts = afterthoughts
        self._chapters = chapters
        """Writes what agents with the strategy `written` are shown of earlier cycles."""
        self.panel_afterthoughts = panel_afterthoughts
        """For reflection of panels, which have no life here that could trigger it."""
        self._clock = clock
        self._instance = instance
        self._equip = equip
        self._is_outdated = is_outdated
        self._refresh = refresh
        self._pace = pace
        self._free_leases_of = free_leases_of
        self._lock = lock
        self._alarm = Alarm(db, clock)
        self._tasks: LeasedTasks[AgentId, _Life] = LeasedTasks(
            "agents",
            clock,
            renew=self._renew,
            sweep=self._sweep_regularly,
            pace=pace,
        )
        self._lives = self._tasks.running
        self._peers: list[str] = [instance]
        self._sweeps = 0
        self._looked_back, self._known_peers = clock.now(), self._peers
        """When cycles that were never reflected on were last looked for, and which instances were alive then."""
        self._ahead: dict[tuple[str, int], Instant] = {}
        """Instances with a time in the future, by that time: when this was first noticed."""
        self._unable: dict[AgentId, Exception] = {}
        """Why agents could not live here when they last tried."""
        self._attending = asyncio.Lock()

    async def __aenter__(self) -> Residents:
        self._peers = await self._db.write(leases.appear, self._instance, self._pace.lease_seconds)
        self._known_peers, self._looked_back = self._peers, self._clock.now()
        await self._look_for_stops()
        await self._tasks.open(alarm=self._keep_time())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Finish the running cycles, or hand them back, and release every lease. No new cycle begins."""
        if self._tasks.stopping:
            return
        for life in self._lives.values():
            life.woken.set()
        await self._tasks.stop()
        await self._background_calls.stop()
        await self._afterthoughts.stop()
        await self._chapters.stop()
        await self.panel_afterthoughts.stop()
        # Only now: other instances repeat the calls of an instance that has left.
        await let_go(self._db.write(leases.vanish, self._instance))

    def hurry(self) -> None:
        """Make `stop`, now or later, hand back running cycles at once instead of waiting for them."""
        self._tasks.hurry()

    def hint(self, agent_id: AgentId) -> None:
        """This agent may have something to do. Unless it lives here, it is left to the instance that ranks first."""
        life = self._lives.get(agent_id)
        if life is not None:
            life.wake()
        elif first_to_try(agent_id, self._peers) == self._instance:
            self.wake(agent_id)

    @property
    def awake(self) -> int:
        """How many agents live here now."""
        return len(self._lives)

    def expect(self, at: Instant) -> None:
        """A plan or timer will be due then."""
        self._alarm.expect(at)

    def wake(self, agent_id: AgentId) -> None:
        """Activate this agent here, unless it lives here already or this instance is full."""
        life = self._lives.get(agent_id)
        if life is not None:
            life.wake()
        elif len(self._lives) >= MOST_LIVES:
            self._let_one_go()
        elif not self._tasks.stopping:
            life = _Life()
            self._tasks.begin(agent_id, life, self._live(agent_id, life), name=f"life of {agent_id}")

    def _let_one_go(self) -> None:
        """Put a resting agent to sleep: the next sweep brings the one that waits."""
        resting = next((life for life in self._lives.values() if life.resting and not life.leaving), None)
        if resting is not None:
            resting.leaving = True
            resting.woken.set()

    async def run_until_idle(self) -> None:
        """Return when no agent that this process may run has anything to do now.

        Where work is left for agents that cannot live here, raises the reason.
        """
        self._unable.clear()
        while True:
            await self.sweep()
            await self._settled()
            if self._background_calls.busy:
                await self._background_calls.settled()
                continue
            if self._afterthoughts.busy or self._chapters.busy:
                await self._afterthoughts.settled()
                await self._chapters.settled()
                continue
            mine = [
                each.agent_id for each in await self._db.read(registry.due) if each.holder in (None, self._instance)
            ]
            if not mine:
                return
            if all(agent_id in self._unable for agent_id in mine):
                raise self._unable[mine[0]]

    async def _settled(self) -> None:
        while any(not life.resting or life.woken.is_set() for life in self._lives.values()):
            self._tasks.changed.clear()
            await self._tasks.changed.wait()

    async def sweep(self, without: Container[AgentId] = ()) -> None:
        """Find what hints missed: due plans, waiting work, and cycles whose holder is gone."""
        await self._take_over_from_gone()
        await self._alarm.ring()
        await self._refresh()
        await self._attend_calls()
        await release_due(self._db)
        for each in await self._db.read(registry.due):
            if each.holder in (None, self._instance) and each.agent_id not in without:
                self.wake(each.agent_id)

    async def _take_over_from_gone(self) -> None:
        """Take over from instances that are known to be gone: their locks are free, or they were seen with a time in
        the future and not again for the time of a lease."""
        found = Neighbours() if self._lock is None else await asyncio.to_thread(self._lock.look)
        now, ahead = await self._db.read(leases.seen_ahead)
        self._ahead = {(each, at): self._ahead.get((each, at), now) for each, at in ahead.items()}
        waited = now - int(self._pace.lease_seconds * SECOND)
        silent = {each for (each, _), noticed in self._ahead.items() if noticed < waited}
        for instance in sorted(found.gone | silent - found.alive - {self._instance}):
            try:
                await self._db.write(self._free_leases_of, instance)
            except StorageError as error:
                log_line.warning("nothing taken over", instance=instance, error=error.code)
                continue
            if self._lock is not None:
                self._lock.remove(instance)
            self._peers = [each for each in self._peers if each != instance]

    async def _attend_calls(self) -> None:
        """Expire overdue calls, and take over those that a dead instance was carrying out."""
        # One sweep at a time: a call that one has taken over and not started yet would look abandoned to another.
        async with self._attending:
            await self._finish_own_calls()
            if not await self._db.read(running_calls.unattended, self._instance, self._pace.lease_seconds):
                return
            for call in await self._db.write(running_calls.attend, self._instance, self._pace.lease_seconds):
                self._background_calls.start(self._db, call.id, self._again(call))

    async def _finish_own_calls(self) -> None:
        """Carry out the calls assigned to this instance, also where the caller was gone before it heard that the call
        was stored, or the database did not get the result."""
        self._background_calls.tell_again(self._db)
        for call_id, cycle_id in await self._db.read(running_calls.in_hands_of, self._instance):
            if self._background_calls.knows(call_id, cycle_id):
                continue
            # It may have been started and finished since it was read.
            if not await self._db.read(running_calls.is_in_hands_of, call_id, self._instance):
                continue
            begun = self._background_calls.began(call_id)
            call = await self._db.write(running_calls.left_undone, call_id, self._instance, begun=begun)
            if call is not None:
                self._background_calls.start(self._db, call.id, self._again(call))

    async def _again(self, call: Call) -> Result:
        """The result of the call when it is repeated here; unknown if its agent lacks something here."""
        try:
            agent = await self._db.read(registry.get, call.agent_id)
            deps, _ = await self._equip(agent)
        except DenizenError as error:
            log_line.warning("call not made again", agent=call.agent_id, tool=call.tool, error=error.code)
            return Result(calls.UNKNOWN_OUTCOME)
        return await again(call, deps.toolbox, deps.store_file)

    @property
    def _misconfigured(self) -> set[AgentId]:
        """The agents that lack something here, a model or a tool: trying again at each sweep would not help."""
        return {agent_id for agent_id, why in self._unable.items() if not isinstance(why, StorageError)}

    async def look_back(self) -> None:
        """Reflect on what an earlier or dead process left unreflected; remove files that nobody uses; and end back-offs
        set by a clock that has been set back since."""
        if await self._db.read(registry.far_back_offs):
            await self._db.write(registry.end_far_back_offs)
        if first_to_try("files", self._peers) == self._instance:
            await tidy(self._db)
            # Another process may have died while it read some, or run no agents.
            self._read_files()
        by = Claimant(self._instance, self._pace.lease_seconds)
        for agent_id in await self._db.read(reflection.behind, by):
            if agent_id in self._lives or first_to_try(agent_id, self._peers) == self._instance:
                self._afterthoughts.found(agent_id)
        for panel_id in await self._db.read(reflection_cursor.behind, by):
            if first_to_try(panel_id, self._peers) == self._instance:
                self.panel_afterthoughts.found(panel_id)

    async def measure(self) -> None:
        """Store once a day what organizations use, and remove what has expired. It goes through all spaces, so a start
        does not do it.
        """
        if first_to_try("files", self._peers) == self._instance:
            await sizes.keep_daily(self._db)
            if self._removed_at is None or abs(self._clock.now() - self._removed_at) >= DAY:
                self._removed_at = self._clock.now()
                self._remove_expired()

    async def _sweep_regularly(self) -> None:
        self._sweeps += 1
        if self._sweeps % SWEEPS_BETWEEN_TRIES == 0:
            self._unable.clear()
        self._recent.drop_old(self._clock.now())
        await self.sweep(without=self._misconfigured)
        self._afterthoughts.try_again()
        self._chapters.try_again()
        self.panel_afterthoughts.try_again()
        # The clock may have been set back in between.
        late = abs(self._clock.now() - self._looked_back) >= LOOK_BACK_SECONDS * SECOND
        if late or not set(self._known_peers) <= set(self._peers):
            await self.look_back()
            await self.measure()
            self._looked_back = self._clock.now()
        self._known_peers = self._peers

    async def _keep_time(self) -> None:
        while True:
            if not await self._alarm.wait(self._pace.sweep_seconds):
                continue
            try:
                await self._alarm.ring()
            except StorageError as error:
                log_line.warning("plans not fired", error=error.code)
                await self._clock.sleep(self._pace.sweep_seconds)
            except Exception:  # as with the sweep
                log_line.exception("plans not fired by a defect")
                await self._clock.sleep(self._pace.sweep_seconds)

    async def _renew(self) -> dict[AgentId, int]:
        before = set(self._lives)
        held = await self._db.write_first(leases.renew, self._instance, self._pace.lease_seconds)
        self._peers = await self._db.write_first(leases.appear, self._instance, self._pace.lease_seconds)
        for agent_id in held.keys() - before - self._lives.keys():
            await self._let_go_of(Lease(agent_id, self._instance, held[agent_id]))
        await self._look_for_stops()
        return held

    async def _look_for_stops(self) -> None:
        """Find the requests to stop whose hint was lost."""
        found = await self._db.read(stop_requests.pending)
        if found:
            await self._db.write(stop_requests.delete_late)
        for agent_id, space_id in found:
            self._stop_hints.hint(agent_id, space_id)

    async def _let_go_of(self, lease: Lease) -> None:
        """Release a lease that no life here uses: an acquisition or release was not confirmed. Renewed, it would keep
        the agent from living anywhere. A later lease, of a life that begins meanwhile, stays."""
        log_line.warning("lease that nobody uses let go of", agent=lease.agent_id)
        try:
            await self._db.write(leases.release, lease)
        except StorageError:
            return  # at the next renewal

    async def _live(self, agent_id: AgentId, life: _Life) -> None:
        structlog.contextvars.bind_contextvars(agent=agent_id)
        try:
            await self._live_leased(agent_id, life)
        except LeaseLost:
            log_line.info("another process took over", agent=agent_id)
        except DenizenError as error:
            self._unable[agent_id] = error
            log_line.warning("life ended early", agent=agent_id, error=error.code, message=str(error))
            await self._tell_unable(agent_id, error)
        except ValidationError as error:
            # Another version has stored it. This one cannot help it, and a traceback at every try would help nobody.
            self._unable[agent_id] = error
            found = error.errors(include_url=False, include_input=False, include_context=False)
            where = [".".join(map(str, each["loc"])) for each in found]
            log_line.warning("stored settings cannot be read", agent=agent_id, model=error.title, fields=where)
            await self._tell_unable(agent_id, error)
        except Exception as error:  # one agent's failure must not stop the others
            self._unable[agent_id] = error
            log_line.exception("life ended by a defect", agent=agent_id)
            await self._tell_unable(agent_id, error)
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            # Something that it waited for was cancelled, not the life itself: do not retry at each sweep.
            self._unable[agent_id] = RuntimeError("Something that the agent waited for was cancelled, and not by us.")
            log_line.exception("life ended by a defect", agent=agent_id)
        finally:
            self._tasks.end(agent_id, life)
            if life.woken.is_set():
                # Something arrived between the last look at the inbox and the release.
                self.wake(agent_id)

    async def _tell_unable(self, agent_id: AgentId, error: Exception) -> None:
        if isinstance(error, StorageError):
            return  # what cannot be read now cannot be written either
        try:
            await self._db.write(registry.tell_unable, agent_id, error)
        except StorageError as failed:
            log_line.warning("trouble not shown", agent=agent_id, error=failed.code)

    async def _live_leased(self, agent_id: AgentId, life: _Life) -> None:
        lease = await self._acquire(agent_id)
        if lease is None and await self._db.write(leases.let_go_of, agent_id, self._instance):
            # This process was given it before without hearing so, or its release was not received.
            lease = await self._acquire(agent_id)
        if lease is None:
            life.woken.clear()
            return
        life.lease = lease
        try:
            life.woken.clear()
            if await self._db.read(stays_paused, agent_id):
                return
            await self._think_until_idle(lease, life)
        finally:
            life.lease = None
            await let_go(self._db.write(leases.release, lease))

    async def _acquire(self, agent_id: AgentId) -> Lease | None:
        """The lease, if it is available. If a write of the last holder is running, wait a moment for it to end.

        If it does not end, the next sweep tries again; meanwhile nobody here waits for a lock.
        """
        for pause in (*TAKE_OVER_PAUSES, None):
            lease = await self._db.write(leases.acquire, agent_id, self._instance, self._pace.lease_seconds)
            if lease is not None or pause is None or not await self._db.read(leases.is_free, agent_id):
                return lease
            await asyncio.sleep(pause)  # real time, whatever the clock says: a transaction is running
        return None

    async def _think_until_idle(self, lease: Lease, life: _Life) -> None:
        agent, deps, budget = await self._meet(lease)
        if not await self._worth_thinking(deps, lease, _identity(agent), agent.version, life):
            return
        mind = self._recent.take(lease, _identity(agent), agent.version, budget, self._clock.now())
        if mind is None:
            mind = await self._db.read(_load_mind, lease, agent, budget)
        if self._tasks.stopping:
            return
        self._look_for_chapters(mind)
        resumed = await self._db.write(resume_cycle, lease)
        if resumed == "later":
            return
        if resumed is not None and not await self._one(deps, mind, resumed, life):
            return
        mind = await self._compact(deps, mind, life)
        opened: OpenedCycle | None = None
        while opened is not None or not self._tasks.stopping:
            if opened is None:
                life.woken.clear()
            if self._is_outdated(deps):
                if opened is not None:
                    await self._db.write(undo_cycle, lease, opened.cycle, "opened too early", counts=False, delay=False)
                    opened = None
                mind, deps = await self._load(lease)
                mind = await self._compact(deps, mind, life)
            if opened is None and await self._worth_thinking(deps, lease, mind.identity, mind.version, life):
                if mind.window.strategy in WITH_A_WRITER and await self._db.read(compaction.is_outdated, mind):
                    mind = await self._compact(deps, mind, life, anew=True)
                waking = await self._waking(mind, deps)
                if self._tasks.stopping:
                    return
                found = await self._open(mind, deps.reminder, waking)
                if found == "stale":
                    mind, deps = await self._load(lease)
                    mind = await self._compact(deps, mind, life)
                    continue
                opened = found
            if opened is not None:
                if deps.reminder is not None:
                    deps.reminder.passed(mind, opened.cycle.events)
                if opened.era is not None:
                    mind.begin_era(opened.era)
                deps.toolboxes[mind.era.profile].archived = True
                if opened.more:
                    life.woken.set()
                if not await self._one(deps, mind, opened.cycle, life):
                    return
                mind = await self._compact(deps, mind, life)
                if mind.tokens > mind.window.target_share * mind.window.max_tokens:
                    self._look_for_chapters(mind)
                opened = None
            if not life.woken.is_set():
                rested = await self._rest(life, _ready_waking(mind, deps))
                if rested is False:
                    self._recent.keep(mind, self._clock.now())
                    return
                opened = rested if isinstance(rested, OpenedCycle) else None

    async def _waking(self, mind: Mind, deps: CycleDeps) -> Waking:
        waking = _plain_waking(mind, deps)
        if mind.window.strategy == "semantic":
            return replace(waking, recalling=await remind(self._db, deps.embedder, mind))
        return waking

    async def _open(self, mind: Mind, reminder: Reminder | None, waking: Waking) -> OpenedCycle | Stale | None:
        """Open the next cycle; where a memory lookup is due, recall memories first."""
        opened = await self._db.write(open_cycle, mind.lease, waking)
        if isinstance(opened, Unread):
            await wait_until_read(self._db, opened.content_ids)
            waking = replace(waking, looked=True)
            opened = await self._db.write(open_cycle, mind.lease, waking)
        if opened == "remind":
            assert reminder is not None
            reminded = replace(waking, looked=True, is_lookup_due=None, reminding=await reminder.before_cycle(mind))
            opened = await self._db.write(open_cycle, mind.lease, reminded)
            assert opened != "remind"
        assert not isinstance(opened, Unread)
        assert opened != "untriaged"
        return opened

    async def _one(self, deps: CycleDeps, mind: Mind, cycle: OpenCycle, life: _Life) -> bool:
        """Think one cycle; False if it stays open and must wait, so that there is nothing to do until then."""
        if deps.reminder is not None and cycle.steps > 0:
            # A resumed cycle: its memories are guarded as before.
            remembered = shown_in([*mind.past, *cycle.entries])
            there = spaces_of(cycle.events, cycle.active_space_id)
            caution = await self._db.read(privacy_guard.caution, mind.lease.agent_id, there, remembered)
            cycle = replace(cycle, remembered=remembered, caution=caution)
        outcome = await think(deps, mind, cycle, life.woken.is_set, partial(self._tasks.pause, life))
        if deps.reflects and isinstance(outcome, Acted):
            self._afterthoughts.hint(mind.lease.agent_id)
        if isinstance(outcome, Failed) and not outcome.undone:
            life.woken.clear()
            return False
        # A paused cycle may have been answered meanwhile: the event that woke it must not be lost.
        return not isinstance(outcome, Paused | Rested)

    async def _compact(self, deps: CycleDeps, mind: Mind, life: _Life, *, anew: bool = False) -> Mind:
        """The mind with room for the next cycle. If compaction takes long, waiting events come first.

        With `anew`, it is compacted in any case.
        """
        tools, profile = deps.toolboxes[mind.era.profile].tokens, deps.profile
        try:
            while anew or compaction.is_due(mind, tools):
                work = compaction.compact if deps.profiling() is None else compact_and_review
                tools = deps.toolboxes[profile].tokens
                # New summaries of conversations take the place of cycles; new chapters, that of older layers.
                has_room = mind.window.strategy == "written" and not compaction.is_due(mind, tools)
                crowded = compaction.crowded(mind, tools, profile, has_room=has_room)
                done = await self._db.write(work, mind.lease, crowded)
                _count_compaction(deps, "unfinished" if done == "unfinished" else "done")
                if done != "unfinished":
                    mind.settle(*done)
                    self._look_for_chapters(mind)
                    full = alerts.window_full(mind.tokens + tools, mind.budget.request)
                    alerts.give(deps.bus, mind.lease.agent_id, full)
                    if mind.window.strategy == "rolling" and deps.reminder is None:
                        alerts.give(deps.bus, mind.lease.agent_id, alerts.NO_SUMMARIES)
                    break
                if life.woken.is_set():
                    break
        except (LeaseLost, StorageError):
            raise
        except Exception:  # what does not fit leaves the window unsummarized: the agent must go on
            log_line.exception("compaction failed", agent=mind.lease.agent_id)
            _count_compaction(deps, "failed")
            alerts.give(deps.bus, mind.lease.agent_id, alerts.COMPACTION_FAILED)
            mind, _ = await self._load(mind.lease)
            mind.unsettled = False
        return mind

    def _look_for_chapters(self, mind: Mind) -> None:
        """Have written what is missing of the cycles that have left the window, or will at the next compaction."""
        if mind.window.strategy == "written":
            self._chapters.hint(mind.lease.agent_id)

    async def _rest(self, life: _Life, waking: Waking | None) -> bool | OpenedCycle:
        """Stay warm; True when woken, False when it is time to release the lease.

        With `waking`, the write that wakes the agent may open its cycle in the same commit, which is then returned.
        """
        if life.leaving or self._tasks.stopping:
            return False
        life.resting = True
        self._tasks.changed.set()
        lease, early = life.lease, None
        if waking is not None and lease is not None:
            early = self._db.stand_by(lease.agent_id, life.called_up, open_cycle, lease, waking)
        try:
            await self._clock.wait(life.woken, self._pace.warm_seconds)
        finally:
            life.resting = False
            if early is not None and lease is not None and self._db.withdraw(lease.agent_id):
                early = None  # nothing called it up
        if early is not None:
            opened = await early
            if life.hints == life.hints_then:
                life.woken.clear()  # every hint so far was about what the cycle has taken
            if isinstance(opened, OpenedCycle):
                return opened
            life.woken.set()
        if life.leaving:
            life.woken.clear()
        return life.woken.is_set() and not self._tasks.stopping

    async def _worth_thinking(
        self, deps: CycleDeps, lease: Lease, identity: Identity, version: int, life: _Life
    ) -> bool:
        """Whether something is left to think about after triage."""
        sieve = deps.sieve
        return sieve is None or await sift(sieve, self._db, lease, identity, version, life.kept)

    async def _meet(self, lease: Lease) -> tuple[Agent, CycleDeps, Budget]:
        """The agent and what it thinks with; nothing of its history."""
        agent = await self._db.read(registry.get, lease.agent_id)
        return agent, *await self._equip(agent)

    async def _load(self, lease: Lease) -> tuple[Mind, CycleDeps]:
        agent, deps, budget = await self._meet(lease)
        mind = await self._db.read(_load_mind, lease, agent, budget)
        return mind, deps


def first_to_try(id: str, instances: list[str]) -> str:
    """The instance that should try first to activate an agent, or to look after a panel or the files: evenly spread.

    Every instance computes the same answer.
    """
    return max(instances, key=lambda each: hashlib.blake2b(f"{each}/{id}".encode(), digest_size=8).digest())


def compact_and_review(tx: Tx, lease: Lease, mind: FullMind) -> CompactedMind | Unfinished:
    """`compaction.compact`, after which profiles are chosen anew."""
    done = compaction.compact(tx, lease, mind)
    if done != "unfinished":
        choosing.ask_review(tx, lease.agent_id)
    return done


def _count_compaction(deps: CycleDeps, outcome: str) -> None:
    if deps.telemetry.metrics is not None:
        deps.telemetry.metrics.compactions.add(1, outcome)


def _plain_waking(mind: Mind, deps: CycleDeps) -> Waking:
    """The input of the next cycle, except what has to be searched for. Triage has decided."""
    reminder = deps.reminder
    return Waking(
        mind.identity,
        mind.version,
        mind.era,
        mind.budget.inbox,
        deps.toolboxes,
        mind.next_seq,
        find_profiling=deps.profiling,
        is_lookup_due=None if reminder is None else partial(reminder.is_due, mind),
        remembered=frozenset() if reminder is None else shown_in(mind.past),
        profile=deps.profile,
        sees=sees(deps.model),
    )


LOOKS_BACK: Final = ("semantic", *WITH_A_WRITER)
"""The strategies with which something is read before a cycle opens."""


def _ready_waking(mind: Mind, deps: CycleDeps) -> Waking | None:
    """The input of the next cycle if it does not depend on what will wake the agent, or on when.

    Where memories have to be looked up for what wakes it, or triage has to decide, the cycle is not opened with it.
    """
    if mind.window.strategy in LOOKS_BACK:
        return None
    waking = _plain_waking(mind, deps)
    return waking if deps.sieve is None else replace(waking, untriaged=deps.sieve.where)


def _identity(agent: Agent) -> Identity:
    definition = agent.definition
    skills = [(name, each.description) for name, each in definition.skills.items()]
    return Identity(agent.entity, definition.instructions, definition.zone, skills)


def _load_mind(tx: Tx, lease: Lease, agent: Agent, budget: Budget) -> Mind:
    open_id = open_cycle_id(tx, lease.agent_id)
    return minds.load(tx, lease, _identity(agent), agent.version, agent.definition.window, budget, open_id)
