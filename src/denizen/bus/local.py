"""The bus within one process. Also the last part of the Redis bus, which hands arriving frames to local readers."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

from denizen.bus.port import Frame, Gap
from denizen.errors import SubscriberTooSlow

if TYPE_CHECKING:
    from collections.abc import KeysView, Mapping
    from types import TracebackType

    from pydantic import JsonValue

    from denizen.bus.port import Deliver

_GAP = Gap()


class LocalBus:
    """Hands each frame straight to the queues of its readers; a topic without readers costs one dict lookup."""

    def __init__(self) -> None:
        # Dicts instead of sets: readers are served in the order in which they came.
        self._readers: dict[str, dict[LocalSubscription, None]] = {}
        self._subscriptions: dict[LocalSubscription, None] = {}
        self._closed = False

    @property
    def is_connected(self) -> bool:
        """Always: there is no other process to reach."""
        return not self._closed

    async def open(self) -> None:
        """Nothing is needed."""

    async def close(self) -> None:
        self._closed = True
        for subscription in tuple(self._subscriptions):
            subscription.finish()

    def publish(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        readers = self._readers.get(topic)
        if readers is None:
            return
        frame = Frame(topic, dict(payload))
        for reader in tuple(readers):
            reader.put(frame)

    def subscribe(self, *topics: str, limit: int = 1000, deliver: Deliver | None = None) -> LocalSubscription:
        return LocalSubscription(self, topics, limit, deliver)

    def attention(self, topic: str) -> bool:
        return topic in self._readers

    def topics(self) -> KeysView[str]:
        """The topics that have readers, as they change."""
        return self._readers.keys()

    def gap(self, topic: str | None = None) -> None:
        """Tell the readers of a topic, or all readers, that frames may have been lost."""
        for reader in tuple(self._subscriptions if topic is None else self._readers.get(topic, ())):
            reader.put(_GAP)

    def add(self, subscription: LocalSubscription, topics: tuple[str, ...]) -> None:
        """Deliver what is published to these topics to the subscription; on a closed bus it ends."""
        if self._closed:
            subscription.finish()
            return
        self._subscriptions[subscription] = None
        for topic in topics:
            self._readers.setdefault(topic, {})[subscription] = None

    def remove(self, subscription: LocalSubscription, topics: tuple[str, ...]) -> None:
        """Stop delivering to the subscription. It may have been removed before."""
        self._subscriptions.pop(subscription, None)
        for topic in topics:
            readers = self._readers.get(topic)
            if readers is not None:
                readers.pop(subscription, None)
                if not readers:
                    del self._readers[topic]


class LocalSubscription:
    """A bounded queue between the bus and one reader."""

    def __init__(self, bus: LocalBus, topics: tuple[str, ...], limit: int, deliver: Deliver | None = None) -> None:
        self._bus = bus
        self._topics = topics
        self._limit = limit
        self._deliver = self._enqueue if deliver is None else deliver
        self._queue: deque[Frame | Gap] = deque()
        self._arrived = asyncio.Event()
        self._over = False
        self._too_slow = False

    async def __aenter__(self) -> Self:
        self._bus.add(self, self._topics)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.clear()
        self.finish()

    async def follow(self, *topics: str) -> None:
        if self._over:
            return
        before, self._topics = self._topics, topics
        self._bus.remove(self, tuple({*before} - {*topics}))
        self._bus.add(self, topics)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Frame | Gap:
        while not self._queue:
            if self._too_slow:
                raise SubscriberTooSlow
            if self._over:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.popleft()

    def put(self, item: Frame | Gap) -> None:
        """Hand the item over, or cut the reader off if it is too far behind."""
        if not self._deliver(item):
            # The reader has to start over from the database anyway, so its unread frames are dropped at once.
            self._queue.clear()
            self._too_slow = True
            self.finish()

    def _enqueue(self, item: Frame | Gap) -> bool:
        if isinstance(item, Gap) and self._queue and isinstance(self._queue[-1], Gap):
            return True
        self._queue.append(item)
        self._arrived.set()
        return len(self._queue) <= self._limit

    def finish(self) -> None:
        """Nothing more arrives; queued items may still be read."""
        self._bus.remove(self, self._topics)
        self._over = True
        self._arrived.set()
