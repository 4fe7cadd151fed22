"""The port to services elsewhere: what an adapter reads and sends, and what may become of it. Values only.

An adapter connects one bridge to one service. It decides nothing: what becomes of an event is decided in `receiving`,
what is sent and when in `sending`. `tests/bridges/conformance.py` says what every adapter must do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from denizen.clock import Clock, Instant
from denizen.ids import FileId
from denizen.spaces.outbox import Action

if TYPE_CHECKING:  # Slow to import, and not needed by a process without bridges.
    from denizen.tools.outbound import Outbound


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote something elsewhere."""

    account: str
    """The id of the account."""
    name: str
    bot: bool = False
    """Whether a program writes with it: its messages count as an agent's."""
    verified: bool = False
    """Whether the service vouches that this account wrote it. Otherwise it is a guest's, even if it is linked."""


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file of a message from elsewhere."""

    name: str
    media_type: str | None
    data: bytes
    problem: str | None = None
    """Why it could not be read: a sentence that is said in its place."""


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """Something was written in a room elsewhere."""

    id: str
    """The id of the event there: it becomes a message once."""
    writer: Writer
    text: str
    sent_at: Instant | None = None
    """When it was written. None: now."""
    reply_to: str | None = None
    """The id, elsewhere, of the message that it replies to."""
    files: tuple[IncomingFile, ...] = ()
    addressed: bool = False
    """Whether it is said to the bridge itself: it names it, or they are alone in the room."""


@dataclass(frozen=True, slots=True)
class IncomingEdit:
    """The text of a message was changed elsewhere."""

    id: str
    writer: Writer
    of: str
    text: str


@dataclass(frozen=True, slots=True)
class IncomingDeletion:
    """A message or a reaction was deleted elsewhere."""

    id: str
    writer: Writer
    of: str


@dataclass(frozen=True, slots=True)
class IncomingReaction:
    """Somebody elsewhere reacted to a message, or took that back."""

    id: str
    writer: Writer
    of: str
    emoji: str
    removed: bool = False


Incoming: TypeAlias = IncomingMessage | IncomingEdit | IncomingDeletion | IncomingReaction


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one room, oldest first, and how far it is read with them."""

    room: str
    events: Sequence[Incoming]
    cursor: str | None
    """None: the service has none, or it stays where it is."""


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file of a message that is sent elsewhere."""

    id: FileId
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Something to be sent elsewhere."""

    id: str
    """The transaction id: the same each time it is sent, and never that of anything else."""
    action: Action
    target: str
    """The room; for a code, the account."""
    text: str = ""
    author: str = ""
    author_handle: str = ""
    author_kind: str = ""
    of: str | None = None
    """The id, elsewhere, of the message or reaction that it changes."""
    also: tuple[str, ...] = ()
    """The ids of the other parts of that message, where it was sent in several."""
    reply_to: str | None = None
    emoji: str | None = None
    files: tuple[OutgoingFile, ...] = ()
    again: bool = False
    """Whether it may have been sent before: a process died between sending and knowing."""
    created_at: Instant | None = None
    """Since when it waits to be sent; None for a code."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The service has it, under this id; None if it gives none."""

    id: str | None
    also: tuple[str, ...] = ()
    """The ids of its other parts, where the service takes a message only in several."""


@dataclass(frozen=True, slots=True)
class Later:
    """It cannot be sent now. It is sent again after so many seconds, or after a while that grows."""

    reason: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The service will never take it: it is too large, or the room is gone. What follows is sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Revoked:
    """The service does not accept the bridge any more: nothing can be sent until somebody changes something."""

    reason: str


Outcome: TypeAlias = Sent | Later | Refused | Revoked


class NotReadable(Exception):
    """The service could not be read now."""


class AccessRevoked(NotReadable):
    """The service does not accept the bridge any more."""


class Adapter(Protocol):
    """The connection of one bridge to a service."""

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        """What was written in these rooms after their cursors, in the order in which it is to be stored.

        Returns nothing when all is read. A room without a cursor begins now: its first batch is empty. Never returns
        what the bridge itself has sent. Raises `NotReadable`.
        """
        ...

    async def news(self) -> None:
        """Returns when there may be something to read. May return too often, and may miss something."""
        ...

    async def send(self, what: Outgoing) -> Outcome:
        """Sends it. Sent again with the same id, it is there once, if the service can do that."""
        ...

    async def close(self) -> None: ...


class BridgeSettings(BaseModel):
    """The settings of every bridge. Each kind adds its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    history_minutes: int = Field(60, ge=1, le=1_000_000)
    """Messages that are older when they arrive are read as history: they wake no agent."""
    allow_private: tuple[str, ...] = ()
    """Hosts (`name` or `name:port`) with private addresses that it may reach."""


@dataclass(frozen=True, slots=True)
class Means:
    """What an adapter works with."""

    clock: Clock
    outbound: Outbound
    secret: str | None
    """The secret that was made for the bridge."""
    read_file: Callable[[FileId], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class BridgeKind:
    """A kind of bridge: its settings, and how one is opened."""

    name: str
    settings: type[BridgeSettings]
    open: Callable[[BridgeSettings, Means], Adapter]
    """The settings hold the values of secrets where they named them."""
    has_secret: bool = False
    """Whether a secret is made for each bridge, for both sides to sign with."""
    reads: bool = True
    """Whether it reads from the service. Otherwise the service sends, and reading nothing says nothing about it."""


def secret_fields(settings: type[BridgeSettings]) -> list[str]:
    """The settings that may only name a secret, as `${NAME}`. Pure."""
    return [name for name, field in settings.model_fields.items() if SECRET in field.metadata]


SECRET: Final = "may only name a secret"  # noqa: S105  a mark
"""Marks a setting, in its `Annotated` type, that may only name a secret."""
