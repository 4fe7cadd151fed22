"""Reads rooms of services that tell of events by a socket, and have a history for the time without one.

A message is read from the history of its room where the socket was not connected, and from the socket otherwise. What
came by the socket is confirmed to the service when it was stored, which is when it is read the next time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from denizen.bridges.http_service import ServiceError
from denizen.bridges.pacing import Pace
from denizen.bridges.port import Batch, NotReadable
from denizen.bridges.sockets import Socket, SocketEnded
from denizen.clock import Clock

FRAMES_AT_ONCE: Final = 100
READ_AT_ONCE: Final = 8
MOST_WAITING: Final = 10_000
RECONNECT_SECONDS: Final = 5.0
"""A service that ends the connection again and again is connected to so often."""


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """An event that came by the socket."""

    room: str
    body: Mapping[str, Any]
    tag: str = ""
    """What the service knows it by, to have it confirmed."""


class LiveService(Protocol):
    """What differs between services. All raise `ServiceError`, and `SocketEnded` where they use the socket."""

    @property
    def is_connected(self) -> bool: ...

    async def connect(self) -> bool:
        """Open the socket. Returns whether something may have been missed, which the history has."""
        ...

    async def confirm(self, frames: Sequence[LiveFrame]) -> None:
        """Tell the service that these were stored, or need not be."""
        ...

    async def barrier(self) -> None:
        """Returns when all has come that the service sent before."""
        ...

    async def newest(self, room: str) -> str:
        """The cursor of a room that is read from now on."""
        ...

    async def history(self, room: str, cursor: str) -> Batch | None:
        """What was written after the cursor, oldest first; None if nothing was."""
        ...

    async def changes(self, room: str, cursor: str) -> Batch | None:
        """Edits, while the socket was not connected, of messages before the cursor. It moves no cursor."""
        ...

    async def batch(self, frame: LiveFrame, cursor: str) -> Batch | None:
        """What a frame is here; None for what is not carried."""
        ...


@dataclass(frozen=True, slots=True)
class EventContext:
    """What is known when events of such a service are read."""

    user: str = ""
    """The user that the bridge is at the service."""
    speaker: str = ""
    """The handle of the agent that this user is."""
    handles: Mapping[str, str] = field(default_factory=dict[str, str])
    """The handles here of users there."""


class LiveReader:
    """Reads for one bridge."""

    def __init__(self, service: LiveService, clock: Clock) -> None:
        self._connecting = Pace(clock, RECONNECT_SECONDS, burst=5)
        self._service = service
        self._waiting: deque[LiveFrame] = deque()
        self._handed: list[LiveFrame] = []
        """Frames that were returned by the last read, and are stored when there is a next one."""
        self._caught_up: set[str] = set()
        """Rooms whose history was read since the socket was connected."""
        self._edits_read: set[str] = set()
        """Rooms of which edits were read since then, which comes first: the cursor moves with the history."""
        self._slots = asyncio.Semaphore(READ_AT_ONCE)
        self._held: Collection[str] = ()
        """Rooms that wait: their frames are kept."""

    def hold(self, rooms: Collection[str]) -> None:
        self._held = rooms

    def hear(self, frame: LiveFrame) -> None:
        """Take a frame that came by the socket."""
        if len(self._waiting) >= MOST_WAITING:
            # The history has it, if it is a message.
            self._caught_up.discard(frame.room)
        else:
            self._waiting.append(frame)

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        try:
            try:
                return await self._read(rooms)
            except SocketEnded:
                return await self._read(rooms)
        except SocketEnded:
            raise NotReadable("The connection ended twice in a row.") from None
        except ServiceError as error:
            raise error.as_unreadable() from error

    async def _read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        if not self._service.is_connected:
            await self._connecting.turn("")
            if await self._service.connect():
                self._caught_up.clear()
                self._edits_read.clear()
        handed, self._handed = self._handed, []
        await self._service.confirm(handed)
        problems: list[str] = []
        if batches := await self._read_rooms(rooms, problems):
            return batches
        known = {room: cursor for room, cursor in rooms.items() if cursor is not None}
        batches = await self._drain(known)
        if not batches:
            await self._service.barrier()
            batches = await self._drain(known)
        if not batches and problems:
            raise NotReadable(problems[0])
        return batches

    async def _read_rooms(self, rooms: Mapping[str, str | None], problems: list[str]) -> list[Batch]:
        """What was written in rooms while the socket was not connected; and where new ones begin."""

        async def read(room: str, cursor: str | None) -> Batch | None:
            async with self._slots:
                try:
                    if cursor is None:
                        return Batch(room, (), await self._service.newest(room))
                    if room not in self._edits_read:
                        batch = await self._service.changes(room, cursor)
                        self._edits_read.add(room)
                        if batch is not None:
                            return batch
                    batch = await self._service.history(room, cursor)
                    if batch is None:
                        self._caught_up.add(room)
                except ServiceError as error:
                    if error.means == "revoked":
                        raise
                    problems.append(f"{room} cannot be read: {error}")
                    return None
                return batch

        behind = [read(room, cursor) for room, cursor in rooms.items() if cursor is None or room not in self._caught_up]
        return [each for each in await asyncio.gather(*behind) if each is not None]

    async def _drain(self, rooms: Mapping[str, str]) -> list[Batch]:
        """What came by the socket, of rooms whose history was read."""
        cursors, batches = dict(rooms), list[Batch]()
        handed, needless, later = list[LiveFrame](), list[LiveFrame](), list[LiveFrame]()
        while self._waiting and len(handed) < FRAMES_AT_ONCE:
            frame = self._waiting[0]
            if frame.room in self._held or (frame.room in cursors and frame.room not in self._caught_up):
                later.append(frame)
            else:
                try:
                    batch = await self._service.batch(frame, cursors[frame.room]) if frame.room in cursors else None
                except ServiceError:
                    if not batches:
                        self._waiting.extendleft(reversed(later))
                        raise
                    break  # It is tried again after those before it were stored.
                (needless if batch is None else handed).append(frame)
                if batch is not None:
                    batches.append(batch)
                    cursors[frame.room] = batch.cursor or cursors[frame.room]
            self._waiting.popleft()
        self._waiting.extendleft(reversed(later))
        self._handed = handed
        await self._service.confirm(needless)
        return batches


class SocketAdapter(LiveService):
    """The part of a bridge's adapter that is the same for all such services."""

    _socket: Socket
    _reader: LiveReader

    @property
    def is_connected(self) -> bool:
        return self._socket.is_open

    async def close(self) -> None:
        await self._socket.close()

    async def news(self) -> None:
        await self._socket.news.wait()
        self._socket.news.clear()

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        return await self._reader.read(rooms)

    def hold(self, rooms: Collection[str]) -> None:
        self._reader.hold(rooms)
