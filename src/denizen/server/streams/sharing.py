"""One feed for all readers of a space: it reads the database once and encodes once, however many follow it.

A reader begins with a feed of its own, which sends what it missed. When that feed and the shared one have sent the
same, and neither has a frame to handle, the reader leaves its own and follows the shared one. A reader that never gets
there keeps its own feed: it costs more, and sends the same. A space with one reader has no shared feed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from functools import partial

import structlog

from denizen.errors import DenizenError, NotAMember, SubscriberTooSlow
from denizen.ids import SpaceId
from denizen.server.context import Context
from denizen.server.sse import MOST_GATHERED, Ear, Say, run_feed
from denizen.server.streams.audience import OneReader, SpaceReader
from denizen.server.streams.space import SpaceFeed
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)


async def read_space(context: Context, reader: SpaceReader, space_id: SpaceId, after: int, say: Say) -> None:
    """Sends one reader the stream of a space from the message after `after` on, until the bus is closed. Raises if the
    reader loses access or is too slow.
    """
    async with _entered(context, space_id) as shared:
        follower = Follower(reader, context.limits.stream_frames)
        own = partial(SpaceFeed, context, OneReader(reader), space_id, after)
        try:
            if await run_feed(context, own, say, rests=partial(shared.take_over, follower)):
                await follower.relay(say)
        finally:
            shared.leave(follower)


@asynccontextmanager
async def _entered(context: Context, space_id: SpaceId) -> AsyncGenerator[SharedFeed]:
    """Counts a reader of the space inside the block. The last one ends the shared feed."""
    shared = context.shared_feeds.setdefault(space_id, SharedFeed(context, space_id))
    shared.readers_present += 1
    try:
        yield shared
    finally:
        shared.readers_present -= 1
        if not shared.readers_present:
            del context.shared_feeds[space_id]
            await shared.end()


class Follower:
    """A reader of a shared feed, and what it was not sent yet. It is cut off rather than buffered for ever."""

    def __init__(self, reader: SpaceReader, limit: int) -> None:
        self.reader = reader
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._over = False
        self._error: DenizenError | None = None
        self._relaying: asyncio.Task[None] | None = None

    def put(self, data: bytes) -> None:
        if self._error is not None:
            return
        self._waiting.append(data)
        self._arrived.set()
        if len(self._waiting) > self._limit:
            self._waiting.clear()
            self._error = SubscriberTooSlow()
            if self._relaying is not None:
                # It waits for a reader that does not read.
                self._relaying.cancel()

    def end(self, error: DenizenError | None = None) -> None:
        """Nothing more comes. What was sent before belongs to the reader."""
        self._over = True
        self._error = self._error or error
        self._arrived.set()

    async def relay(self, say: Say) -> None:
        """Sends what arrives until there is no more. Raises the reason if it is not that the feed ended."""
        task = self._relaying = asyncio.current_task()
        assert task is not None
        try:
            while self._waiting or not self._over:
                await self._arrived.wait()
                while self._waiting:
                    await say(self._next())
                if not self._over:
                    self._arrived.clear()
        except asyncio.CancelledError:
            if isinstance(self._error, SubscriberTooSlow) and task.uncancel() == 0:
                raise self._error from None
            raise
        finally:
            self._relaying = None
        if self._error is not None:
            raise self._error

    def _next(self) -> bytes:
        """Returns what is sent at once."""
        data = self._waiting.popleft()
        if not self._waiting:
            return data
        gathered, size = [data], len(data)
        while self._waiting and size < MOST_GATHERED:
            gathered.append(self._waiting.popleft())
            size += len(gathered[-1])
        return b"".join(gathered)


class SharedFeed:
    """The shared feed of a space, if several read it; its followers; and the readers that have a feed of their own."""

    def __init__(self, context: Context, space_id: SpaceId) -> None:
        self.readers_present = 0
        self._context = context
        self._space_id = space_id
        self._followers: dict[Follower, None] = {}
        self._newcomers: dict[Follower, Ear] = {}
        """Readers whose own feed has nothing to do."""
        self._feed: SpaceFeed | None = None
        self._ear: Ear | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def readers_following(self) -> int:
        return len(self._followers)

    @property
    def readers(self) -> Collection[SpaceReader]:
        return {each.reader for each in self._followers}

    def dismiss(self, readers: Collection[SpaceReader]) -> None:
        for each in [each for each in self._followers if each.reader in readers]:
            del self._followers[each]
            each.end(NotAMember("The reader can no longer read this space."))

    def take_over(self, follower: Follower, feed: SpaceFeed, ear: Ear) -> bool:
        """Whether the reader follows the shared feed from now on. `feed` and `ear` are its own, which rest."""
        if self._task is None and self.readers_present > 1:
            self._task = asyncio.create_task(self._run(feed.after), name=f"shared feed of {self._space_id}")
        if self._rests and self._feed is not None and self._feed.told == feed.told:
            self._newcomers.pop(follower, None)
            self._followers[follower] = None
            return True
        self._newcomers[follower] = ear
        return False

    def leave(self, follower: Follower) -> None:
        self._followers.pop(follower, None)
        self._newcomers.pop(follower, None)

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def _rests(self) -> bool:
        return self._ear is not None and self._ear.is_waited_for and self._ear.is_empty

    async def _run(self, after: int) -> None:
        try:
            write = partial(SpaceFeed, self._context, self, self._space_id, after)
            await run_feed(self._context, write, self._say, rests=self._note)
        except* Exception as failures:  # noqa: BLE001
            # Its followers come back, each with a feed of its own, and are told what is wrong.
            log.warning("shared stream ended early", error=repr(failures.exceptions[0]))
        finally:
            self._feed = self._ear = self._task = None
            for each in self._followers:
                each.end()

    async def _say(self, data: bytes) -> None:
        for each in self._followers:
            each.put(data)

    def _note(self, feed: SpaceFeed, ear: Ear) -> bool:
        """The shared feed rests: readers that rest as well may follow it now."""
        self._feed, self._ear = feed, ear
        for each in self._newcomers.values():
            each.arrived.set()
        return False
