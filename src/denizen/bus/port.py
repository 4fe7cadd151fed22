"""The interface of the bus: publish a hint, subscribe to hints. Nothing may depend on a hint arriving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Frame:
    """One hint, as it was published. All subscribers of a process share the payload: read it, do not change it."""

    topic: str
    payload: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames may have been lost: read the database, then continue."""


Deliver: TypeAlias = "Callable[[Frame | Gap], bool]"
"""Takes a frame at once, without waiting; returns whether the reader keeps up. If not, it is cut off."""


class Subscription(Protocol):
    """A reader of some topics, from the moment it is entered until it is left.

    Everything published after `__aenter__` returned is seen, as long as the bus keeps its connection; after each lost
    connection a `Gap` is seen. Iteration stops when the bus is closed or the subscription is left, and raises
    `SubscriberTooSlow` once more than `limit` frames wait to be read. It is entered once and read by one task.

    With `deliver`, frames and gaps are handed to it as they come, and iteration only waits for the end.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def follow(self, *topics: str) -> None:
        """Switch to these topics. Nothing of those that stay is lost or repeated."""
        ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Frame | Gap: ...


class Bus(Protocol):
    """Carries frames to the subscribers of their topic, in this process and in others."""

    def publish(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        """Hand the frame over. Never waits, never raises; frames of one publisher and topic keep their order.

        Only to be called on the event loop. The payload must not be changed afterwards.
        """
        ...

    def subscribe(self, *topics: str, limit: int = 1000, deliver: Deliver | None = None) -> Subscription:
        """A subscription to these topics, to be entered with `async with`."""
        ...

    def attention(self, topic: str) -> bool:
        """Whether anyone may be listening, so that a publisher can skip work. True when unknown."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether frames reach the other processes now, as far as is known."""
        ...

    async def open(self) -> None:
        """Make the bus ready. Raises `BusError` if it never can be; not if the server is only unreachable."""
        ...

    async def close(self) -> None:
        """End every subscription and every task of the bus. Frames published later are dropped."""
        ...
