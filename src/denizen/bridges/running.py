"""Carries the messages of bridges in this process: a task for each bridge whose lease it holds.

A task reads what was written elsewhere while it sends what waits in the outbox: rooms side by side, each in order, so
that a slow one holds up no other. Hints say when to look; a sweep finds what hints missed and what dead instances held.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import ValidationError

from denizen import failpoints
from denizen.access import secrets
from denizen.access.vault import Vault
from denizen.bridges import addresses, receiving, registry, sending, told_statuses
from denizen.bridges.live import LiveRooms
from denizen.bridges.managing import BridgePolicy
from denizen.bridges.port import (
    AccessRevoked,
    Adapter,
    Batch,
    BridgeSettings,
    Incoming,
    IncomingMessage,
    Later,
    LiveAdapter,
    Means,
    NotReadable,
    OrderedAdapter,
    Outcome,
    Outgoing,
    PushedAdapter,
    RoomwiseAdapter,
    Unfetched,
    Writer,
)
from denizen.bridges.receiving import Origin, Receiver, StoreFile
from denizen.bridges.registry import Bridge, BridgeLease
from denizen.bus.port import Bus
from denizen.clock import SECOND, Clock
from denizen.errors import BridgeUnusable, DenizenError, LeaseLost, NotFound, StorageError
from denizen.ids import BridgeId, FileId
from denizen.leased_tasks import LeasedTasks, LeasePace, let_go
from denizen.storage.database import Database, Tx
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from denizen.tools.outbound import Outbound

log_line = get_logger(__name__)

LOOK_SECONDS: Final = 30.0
"""A room is read at least so often, whatever the service tells."""
DEFECT: Final = "Something went wrong in the bridge. The log of the server says what."
DEFECT_TRIES: Final = 20
"""How often a message is sent, or an event is taken in, that ends in a defect each time. With the pauses between, this
takes more than an hour.
"""
FETCH_TRIES: Final = 5
"""How often the files of an event are asked for before it is taken in without those that fail: some eight minutes."""
UNREADABLE: Final = "Something went wrong while the bridge was reading. The log of the server says what."
ROOM_UNREADABLE: Final = "Something went wrong while the bridge was reading a room. The log of the server says what."
MOST_HELD: Final = 200
"""So much is read behind events that ended in a defect, where the service has one order for all rooms; more stays there
until they were taken in or left out.
"""
LONGEST_PAUSE_SECONDS: Final = 300.0
"""After a defect in reading, the next look is at most so far away."""
BEGUN: Final = failpoints.declare("bridge.begun")
"""Between counting an attempt and sending."""
SENT: Final = failpoints.declare("bridge.sent")
"""Between sending and storing that it was sent."""


@dataclass(frozen=True, slots=True)
class BridgeDeps:
    """What bridges work with."""

    db: Database
    bus: Bus
    clock: Clock
    vault: Vault
    outbound: Callable[[], Awaitable[Outbound]]
    policy: BridgePolicy
    store_file: StoreFile
    read_file: Callable[[FileId], Awaitable[bytes]]


class _Looking:
    """One of the two things that are done for a bridge: reading or sending."""

    def __init__(self) -> None:
        self.hinted = asyncio.Event()
        self.begun = 0
        """How often it was done."""
        self.idle = 0
        """The last time that it found nothing more to do, by that count."""

    def begin(self) -> None:
        """It sees whatever was hinted so far."""
        self.hinted.clear()
        self.begun += 1


@dataclass
class _Held:
    """A room, or one conversation in it, that waits because one of its events ended in a defect."""

    room: str
    batches: deque[Batch] = field(default_factory=deque[Batch])
    """What was read there and is not stored, from that event on."""
    ids: set[str] = field(default_factory=set[str])
    """The ids of its mails and of those that they refer to, if it is a conversation. Empty: the whole room waits."""
    defects: int = 0
    """How often in a row."""
    at: int = 0
    """When it is tried again."""


@dataclass(eq=False)
class _Carrier:
    """A bridge whose messages this process carries."""

    lease: BridgeLease
    reading: _Looking = field(default_factory=_Looking)
    sending: _Looking = field(default_factory=_Looking)
    parked: bool = False
    problem: str | None = None
    """Why the service could not be read, or what was wrong when this process took over."""
    defects: int = 0
    """How often in a row reading all rooms ended in a defect."""
    taking: tuple[str, str] | None = None
    """The room and the id of the event that is being taken in."""
    taken: int = 0
    """How many of the events before it in its batch are stored."""
    failures: Counter[tuple[str, str] | None] = field(default_factory=Counter["tuple[str, str] | None"])
    """How often they ended in a defect, since everything was read."""
    held: list[_Held] = field(default_factory=list[_Held])
    """The other rooms are read meanwhile."""
    ahead: dict[str, str] = field(default_factory=dict[str, str])
    """How far the rooms are read beyond the first held event, where the service has one order for all of them. It is
    stored when nothing is held any more: until then, another process would begin at that event."""
    read_at: int = 0
    """Not before this the service is read again, whatever is hinted."""
    tells_statuses: bool = True
    statuses_at: int = 0
    """When to look for statuses that are to be told elsewhere."""
    adapter: Adapter | None = None
    live: LiveRooms | None = None
    """Shows what happens, if the service can."""
    task: asyncio.Task[None] | None = None

    @property
    def epoch(self) -> int:
        return self.lease.epoch

    def hint(self) -> None:
        self.reading.hinted.set()
        self.sending.hinted.set()


class BridgeRunner:
    """Carries messages in this process, from `__aenter__` to `__aexit__`."""

    def __init__(
        self,
        deps: BridgeDeps,
        *,
        instance: str,
        pace: LeasePace,
    ) -> None:
        self._deps = deps
        self._db, self._clock = deps.db, deps.clock
        self._instance = instance
        self._lease_seconds = pace.lease_seconds
        self._receiver = Receiver(deps.db, deps.store_file)
        self._tasks: LeasedTasks[BridgeId, _Carrier] = LeasedTasks(
            "bridges",
            deps.clock,
            renew=self._renew,
            sweep=self.look,
            pace=pace,
        )
        self._taking = asyncio.Lock()

    async def __aenter__(self) -> BridgeRunner:
        await self._tasks.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def stop(self, within: float | None = None) -> None:
        """Finish what is being sent, or give it up after a while, at most `within` so many seconds; and hand the
        bridges back.
        """
        if not self._tasks.stopping:
            self._tasks.stopping = True
            for carrier in self._tasks.running.values():
                carrier.hint()
            await self._tasks.stop(within)

    def hurry(self) -> None:
        """Make `stop` wait for nothing, now or later."""
        self._tasks.hurry()

    def hint(self, bridge_id: str) -> None:
        """Note that there may be something to carry for the bridge, or that it has changed."""
        carrier = self._tasks.running.get(BridgeId(bridge_id))
        if carrier is not None:
            carrier.hint()
        self._tasks.hint()

    def hear(self, told: Mapping[str, Any]) -> None:
        """Take a hint of this or another process: there may be something to carry, or somebody types elsewhere."""
        typing, carrier = told.get("typing"), self._tasks.running.get(BridgeId(str(told["bridge"])))
        if typing is None:
            self.hint(str(told["bridge"]))
        elif carrier is not None and isinstance(carrier.adapter, PushedAdapter):
            carrier.adapter.hear_push(typing)

    def hint_all(self) -> None:
        """The same for all bridges."""
        for bridge_id in list(self._tasks.running):
            self.hint(bridge_id)

    async def settled(self) -> None:
        """Returns when everything that can be carried now was carried by this process."""
        await self.look()
        for carrier in list(self._tasks.running.values()):
            carrier.hint()
            # The looks that are under way may have begun before; the next ones have not.
            both = [(each, each.begun) for each in (carrier.reading, carrier.sending)]
            while carrier.task is not None and not carrier.task.done() and any(each.idle <= at for each, at in both):
                self._tasks.changed.clear()
                await self._tasks.changed.wait()

    async def look(self) -> None:
        """Take the bridges that nobody carries messages for."""
        async with self._taking:
            if self._tasks.stopping or not await self._db.read(registry.any_free):
                return
            for lease in await self._db.write(registry.take_leases, self._instance, self._lease_seconds):
                self._tasks.cancel([lease.bridge_id])
                carrier = _Carrier(lease)
                self._tasks.begin(lease.bridge_id, carrier, self._carry(carrier), name=f"bridge {lease.bridge_id}")

    async def _renew(self) -> Mapping[BridgeId, int]:
        if not self._tasks.running:
            return {}
        carried = [each.lease for each in self._tasks.running.values()]
        return await self._db.write_first(registry.renew_leases, carried, self._lease_seconds)

    async def _carry(self, carrier: _Carrier) -> None:
        lease = carrier.lease
        try:
            adapter = await self._open(carrier)
            if adapter is not None:
                try:
                    await self._keep_carrying(carrier, adapter)
                finally:
                    await adapter.close()
        except* (LeaseLost, NotFound):
            log_line.info("bridge given up", bridge=lease.bridge_id)
        except* StorageError as errors:
            log_line.warning("bridge interrupted", bridge=lease.bridge_id, error=str(errors.exceptions[0]))
        except* Exception:  # The loop's boundary: one bridge must not end the others.
            log_line.exception("bridge interrupted by a defect", bridge=lease.bridge_id)
            with suppress(DenizenError):
                await self._db.write(sending.park_held, lease, DEFECT)
        finally:
            if not await let_go(self._db.write(registry.release_lease, lease)):
                log_line.warning("bridge not handed back", bridge=lease.bridge_id)
            self._tasks.end(lease.bridge_id, carrier)

    async def _open(self, carrier: _Carrier) -> Adapter | None:
        """The connection; None if the bridge cannot be opened, and waits."""
        deps, lease = self._deps, carrier.lease
        try:
            bridge, settings, secret = await self._db.read(opened, deps.vault, deps.policy, lease.bridge_id)
            kind = deps.policy.kinds[bridge.kind]
            if kind.reads:
                carrier.problem = bridge.error
            # Not by mail: programs answer it, and so they would talk with each other.
            carrier.tells_statuses = not kind.holds_threads
            return kind.open(settings, await self._means(carrier, secret))
        except (NotFound, StorageError):
            raise
        except DenizenError as error:
            await self._db.write(sending.park_held, lease, str(error))
            return None

    async def _means(self, carrier: _Carrier, secret: str | None) -> Means:
        deps, bridge_id = self._deps, carrier.lease.bridge_id

        async def handles(accounts: Collection[str]) -> Mapping[str, str]:
            return await self._db.read(addresses.handles_of, bridge_id, accounts) if accounts else {}

        async def accounts(handles: Collection[str]) -> Mapping[str, str]:
            return await self._db.read(addresses.accounts_of, bridge_id, handles) if handles else {}

        def heard_typing(room: str, who: Writer) -> None:
            if carrier.live is not None:
                carrier.live.hear_typing(room, who)

        return Means(deps.clock, await deps.outbound(), secret, deps.read_file, handles, accounts, heard_typing)

    async def _keep_carrying(self, carrier: _Carrier, adapter: Adapter) -> None:
        id = carrier.lease.bridge_id
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(self._hear(carrier, adapter), name=f"news of {id}")]
            carrier.adapter = adapter
            if isinstance(adapter, LiveAdapter):
                deps, hint = self._deps, carrier.sending.hinted.set
                carrier.live = LiveRooms(deps.db, deps.bus, deps.clock, carrier.lease, adapter, hint)
                beside.append(tasks.create_task(self._show_life(carrier.live, id), name=f"life in {id}"))
            async with asyncio.TaskGroup() as carrying:
                carrying.create_task(self._keep_reading(carrier, adapter), name=f"reading {id}")
                await self._keep_sending(carrier, adapter, carrying)
            for each in beside:
                each.cancel()

    async def _show_life(self, live: LiveRooms, bridge_id: BridgeId) -> None:
        try:
            await live.run()
        except Exception:  # Messages are carried all the same.
            log_line.warning("bridge shows no typing", bridge=bridge_id, exc_info=True)

    async def _hear(self, carrier: _Carrier, adapter: Adapter) -> None:
        while True:
            try:
                await adapter.news()
            except NotReadable:
                await self._clock.sleep(LOOK_SECONDS)
            except Exception:  # A defect of an adapter must not end the bridge: it looks by itself.
                log_line.exception("bridge hears of no news, by a defect", bridge=carrier.lease.bridge_id)
                return
            if carrier.defects:
                await self._clock.sleep(max((carrier.read_at - self._clock.now()) / SECOND, 0.0))
            carrier.reading.hinted.set()
            await asyncio.sleep(0)

    def _goes_on(self, carrier: _Carrier) -> bool:
        return not self._tasks.stopping and not carrier.parked

    async def _keep_reading(self, carrier: _Carrier, adapter: Adapter) -> None:
        while self._goes_on(carrier):
            carrier.reading.begin()
            if self._clock.now() >= carrier.read_at:
                await self._read_all(carrier, adapter)
            await self._note_parked(carrier)
            self._note_idle(carrier.reading)
            pause = (carrier.read_at - self._clock.now()) / SECOND
            await self._clock.wait(carrier.reading.hinted, pause if pause > 0 else LOOK_SECONDS)

    async def _keep_sending(self, carrier: _Carrier, adapter: Adapter, tasks: asyncio.TaskGroup) -> None:
        """Send the oldest of each room, and the next when it was sent."""
        lease, busy = carrier.lease, dict[int, asyncio.Task[None]]()

        async def send(number: int) -> None:
            await self._send(carrier, adapter, number)
            del busy[number]
            carrier.sending.hinted.set()

        while self._goes_on(carrier):
            carrier.sending.begin()
            await self._tell_statuses(carrier)
            for number in await self._db.read(sending.due, lease.bridge_id):
                if number not in busy:
                    busy[number] = tasks.create_task(send(number), name=f"sending {number}")
            await self._note_parked(carrier)
            if not busy:
                self._note_idle(carrier.sending)
            await self._clock.wait(carrier.sending.hinted, await self._pause(carrier, busy))

    async def _tell_statuses(self, carrier: _Carrier) -> None:
        """Put what people elsewhere have to be told of their waiting into the outbox."""
        now, bridge_id = self._clock.now(), carrier.lease.bridge_id
        if 0 < carrier.statuses_at - now <= LOOK_SECONDS * SECOND:  # Otherwise the clock was set back.
            return
        found = await self._db.read(told_statuses.untold, bridge_id) if carrier.tells_statuses else []
        if any(each.is_due(now) for each in found):
            await self._db.write(told_statuses.tell, carrier.lease)
        later = [each.at for each in found if not each.is_due(now)]
        carrier.statuses_at = min([now + int(LOOK_SECONDS * SECOND), *later])

    async def _note_parked(self, carrier: _Carrier) -> None:
        if await self._db.read(registry.is_parked, carrier.lease.bridge_id):
            carrier.parked = True
            carrier.hint()

    def _note_idle(self, looking: _Looking) -> None:
        looking.idle = looking.begun
        self._tasks.changed.set()

    async def _pause(self, carrier: _Carrier, busy: Container[int]) -> float:
        # Whichever is sent first ends the pause.
        next_at = None if busy else await self._db.read(sending.next_at, carrier.lease.bridge_id)
        at = carrier.statuses_at if next_at is None else min(next_at, carrier.statuses_at)
        return min(max((at - self._clock.now()) / SECOND, 0.05), LOOK_SECONDS)

    async def _read_all(self, carrier: _Carrier, adapter: Adapter) -> None:
        lease = carrier.lease
        try:
            await self._take_held(carrier)
            while (batches := await self._read(carrier, adapter)) or _in_the_way(carrier, adapter):
                for batch in batches:
                    if not await self._take_or_hold(carrier, adapter, batch):
                        await self._put_off_reading(carrier)
                        return
                if not batches:
                    await self._hurry(carrier, _in_the_way(carrier, adapter))
            if carrier.problem is not None and not carrier.held:
                was_told = carrier.problem == UNREADABLE
                await self._db.write(sending.note_readable, lease, carrier.problem, is_told=was_told)
                carrier.problem = None
            carrier.defects = 0
            if not carrier.held:
                carrier.failures.clear()
        except AccessRevoked as error:
            await self._db.write(sending.park_held, lease, str(error))
        except NotReadable as error:
            carrier.problem = str(error)
            await self._db.write(sending.note_unreachable, lease, carrier.problem)
        except (LeaseLost, NotFound, StorageError):
            raise
        except Exception:  # A defect of an adapter must not end the bridge, nor be met again at once.
            if carrier.defects == 0:
                log_line.exception("bridge not read, by a defect", bridge=lease.bridge_id)
            await self._put_off_reading(carrier)

    async def _read(self, carrier: _Carrier, adapter: Adapter) -> Sequence[Batch]:
        """What was written in the rooms that are not held, or after what is held."""
        rooms = await self._db.read(_cursors, carrier.lease.bridge_id)
        held = frozenset(each.room for each in carrier.held)
        if isinstance(adapter, OrderedAdapter):
            adapter.keep_unread(holds=bool(held))
            if _is_full(carrier, adapter):
                return ()
            return await adapter.read({room: carrier.ahead.get(room, cursor) for room, cursor in rooms.items()})
        if isinstance(adapter, RoomwiseAdapter):
            adapter.hold(held)
        return await adapter.read({room: cursor for room, cursor in rooms.items() if room not in held})

    async def _take_or_hold(self, carrier: _Carrier, adapter: Adapter, batch: Batch) -> bool:
        """Take the events in, or keep them behind those of their room that wait. False if nothing more can be read."""
        ordered = isinstance(adapter, OrderedAdapter)
        read_to = batch.cursor
        if ordered and carrier.held:
            batch = replace(batch, cursor=None)
        if (held := _that_holds(carrier.held, batch)) is not None:
            held.batches.append(batch)
            held.ids |= _conversation_of(batch) if held.ids else frozenset()
        elif (left := await self._take(carrier, batch)) is not None:
            if not ordered and not isinstance(adapter, RoomwiseAdapter):
                return False
            left = replace(left, cursor=None) if ordered else left
            held = _Held(batch.room, deque([left]), set(_conversation_of(batch)))
            carrier.held.append(held)
            await self._put_off_room(carrier, held)
        if ordered and carrier.held and read_to is not None:
            carrier.ahead[batch.room] = read_to
        return True

    async def _take_held(self, carrier: _Carrier) -> None:
        """Take in again what ended in a defect, where it is time; and then what follows in its room."""
        for held in list(carrier.held):
            if self._clock.now() < held.at:
                continue
            while held.batches:
                left = await self._take(carrier, held.batches[0])
                if left is not None:
                    held.batches[0] = left
                    await self._put_off_room(carrier, held)
                    break
                held.batches.popleft()
            else:
                carrier.held.remove(held)
                if not any(each.room == held.room for each in carrier.held):
                    await self._db.write(sending.note_room_readable, carrier.lease, held.room)
        if not carrier.held:
            for room, cursor in carrier.ahead.items():
                await self._db.write(receiving.move_on, Origin(carrier.lease.bridge_id, room, cursor, carrier.lease))
            carrier.ahead.clear()

    async def _hurry(self, carrier: _Carrier, in_the_way: Sequence[_Held]) -> None:
        """Take these in once more, and then leave them out: nothing behind them can be read otherwise."""
        for held in in_the_way:
            held.at = 0
            waiting = held.room, held.batches[0].events[0].id
            carrier.failures[waiting] = max(carrier.failures[waiting], DEFECT_TRIES - 1)
        await self._take_held(carrier)

    async def _put_off_room(self, carrier: _Carrier, held: _Held) -> None:
        """Try the room again after a pause that grows. Its space is told of the first of such defects."""
        held.defects += 1
        held.at = self._clock.now() + int(_pause_after(held.defects) * SECOND)
        carrier.problem = ROOM_UNREADABLE
        others = [each for each in carrier.held if each.room == held.room and each is not held]
        is_first = held.defects == 1 and not others
        await self._db.write(sending.note_room_unreadable, carrier.lease, held.room, ROOM_UNREADABLE, is_told=is_first)

    async def _put_off_reading(self, carrier: _Carrier) -> None:
        """Read again after a pause that grows. The spaces are told of the first of such defects."""
        carrier.defects += 1
        carrier.read_at = self._clock.now() + int(_pause_after(carrier.defects) * SECOND)
        carrier.problem = UNREADABLE
        is_first = carrier.defects == 1
        await self._db.write(sending.note_unreachable, carrier.lease, UNREADABLE, is_told=is_first)

    async def _take(self, carrier: _Carrier, batch: Batch) -> Batch | None:
        """Take the events of a room in. Returns what is left of them if one ended in a defect."""
        carrier.taken, carrier.taking = 0, None
        try:
            await self._receive(carrier, batch)
        except (AccessRevoked, LeaseLost, NotFound, StorageError):
            raise
        except Exception as error:  # A defect must not end the bridge, nor be met again at once.
            if isinstance(error, NotReadable):
                log_line.warning("event from elsewhere not fetched", bridge=carrier.lease.bridge_id, error=str(error))
            elif not carrier.failures[carrier.taking]:
                log_line.exception("event from elsewhere not taken in, by a defect", bridge=carrier.lease.bridge_id)
            carrier.failures[carrier.taking] += 1
            return replace(batch, events=batch.events[carrier.taken :])
        return None

    async def _receive(self, carrier: _Carrier, batch: Batch) -> None:
        """Take the events of a room in, the cursor with the last one."""
        lease = carrier.lease
        passed = Origin(lease.bridge_id, batch.room, batch.cursor, lease)
        if not batch.events:
            await self._db.write(receiving.move_on, passed)
        for at, event in enumerate(batch.events, start=1):
            origin = passed if at == len(batch.events) else replace(passed, cursor=None)
            carrier.taking = batch.room, event.id
            if carrier.failures[carrier.taking] >= DEFECT_TRIES:
                log_line.error("event from elsewhere left out, by a defect", bridge=lease.bridge_id, id=event.id)
                await self._db.write(receiving.give_up, origin, event.id)
            elif isinstance(event, Unfetched):
                await self._receive_all(origin, await event.fetch(carrier.failures[carrier.taking] >= FETCH_TRIES))
            else:
                await self._receive_all(origin, [event])
            carrier.taken = at

    async def _receive_all(self, origin: Origin, events: Sequence[Incoming]) -> None:
        if not events:
            await self._db.write(receiving.move_on, origin)
        for at, event in enumerate(events, start=1):
            await self._receiver.receive(origin if at == len(events) else replace(origin, cursor=None), event)

    async def _send(self, carrier: _Carrier, adapter: Adapter, number: int) -> None:
        lease, live = carrier.lease, carrier.live
        if live is not None and live.has_drafts:
            # First: what is still being shown of a message must not be written over it.
            await live.finish(await self._db.read(sending.message_of, number) or "")
        what = await self._db.write(sending.begin_sending, lease, number, self._deps.vault)
        if what is None:
            return
        failpoints.reach(BEGUN)
        if live is not None and what.action == "post":
            live.note_spoken(what.target, what.author_handle)
        outcome = await _sent(adapter, what)
        failpoints.reach(SENT)
        await self._db.write(sending.end_sending, lease, number, outcome, is_read=carrier.problem is None)


async def _sent(adapter: Adapter, what: Outgoing) -> Outcome:
    try:
        return await adapter.send(what)
    except Exception:  # A defect of an adapter must not end the bridge.
        log_line.exception("message not sent, by a defect", id=what.id)
        return Later(DEFECT, tries=DEFECT_TRIES)


def _is_full(carrier: _Carrier, adapter: Adapter) -> bool:
    """Whether nothing more can be read before what waits is taken in or left out."""
    if not carrier.held or not isinstance(adapter, OrderedAdapter):
        return False
    return adapter.is_full or sum(len(each.batches) for each in carrier.held) >= MOST_HELD


def _in_the_way(carrier: _Carrier, adapter: Adapter) -> Sequence[_Held]:
    """What has waited for long already, while nothing more can be read behind it."""
    return [each for each in carrier.held if each.defects >= FETCH_TRIES] if _is_full(carrier, adapter) else ()


def _that_holds(held: Sequence[_Held], batch: Batch) -> _Held | None:
    """What waits in the room of the batch and has to be taken in before it. Pure."""
    ids = _conversation_of(batch)
    return next((each for each in held if each.room == batch.room and (not each.ids or each.ids & ids)), None)


def _conversation_of(batch: Batch) -> frozenset[str]:
    """The ids of the messages and of those that they refer to, where a room holds many conversations. Pure."""
    found = [each for each in batch.events if isinstance(each, IncomingMessage) and each.thread is not None]
    alone = [each.id for each in batch.events if isinstance(each, Unfetched) and each.alone]
    return frozenset([*alone, *(id for each in found if each.thread for id in (each.id, *each.thread.refers_to))])


def _pause_after(defects: int) -> float:
    return min(LOOK_SECONDS * 2 ** min(defects - 1, 10), LONGEST_PAUSE_SECONDS)


def _cursors(tx: Tx, bridge_id: BridgeId) -> dict[str, str | None]:
    return {each.room: each.cursor for each in registry.channels_of(tx, bridge_id) if each.joined}


def opened(
    tx: Tx, vault: Vault, policy: BridgePolicy, bridge_id: BridgeId
) -> tuple[Bridge, BridgeSettings, str | None]:
    """The bridge with its settings, secrets filled in, and its own secret."""
    bridge = registry.get(tx, bridge_id)
    wanted = secrets.names_in(json.dumps(bridge.settings))
    found = secrets.resolve_all(tx, vault, bridge.organization_id, wanted)
    if missing := sorted(wanted - found.keys()):
        raise BridgeUnusable(f"The secret {missing[0]} is missing. Add it under Administration › Keys.")
    if bridge.kind not in policy.kinds:
        raise BridgeUnusable(f"This server has no bridges of the kind {bridge.kind!r}.")
    try:
        settings = policy.kinds[bridge.kind].settings.model_validate(_filled(dict(bridge.settings), found))
    except ValidationError as error:
        raise BridgeUnusable("Its settings are not valid. Change them.") from error
    if settings.allow_private and not policy.allows(tx, bridge.organization_id, settings):
        raise BridgeUnusable("It reaches a private address, which this server does not allow to the organization.")
    return bridge, settings, None if bridge.sealed is None else vault.open(bridge.sealed, bridge.purpose)


def _filled(value: Any, found: Mapping[str, str]) -> Any:
    match value:
        case str():
            for name, secret in found.items():
                value = value.replace(f"${{{name}}}", secret)
            return value
        case dict():
            return {name: _filled(each, found) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_filled(each, found) for each in cast("list[Any]", value)]
        case _:
            return value
