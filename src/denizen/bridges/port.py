"""The port to other services: what an adapter reads and sends, and the possible results. Values only.

An adapter connects one bridge to one service. It decides nothing: what becomes of an event is decided in `receiving`,
what is sent and when in `sending`. `tests/bridges/conformance.py` says what every adapter must do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue

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
class Thread:
    """The conversation that a message begins or goes on with, in a room that holds many, such as a mailbox."""

    title: str
    refers_to: tuple[str, ...] = ()
    """The ids, elsewhere, of its earlier messages, newest first."""
    readers: tuple[str, ...] = ()
    """The accounts that read it, the writer among them: what is said in it goes to them."""


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
    thread: Thread | None = None
    """It belongs to this conversation, which is a space of its own."""
    automatic: bool = False
    """Whether a program has sent it by itself, such as a bounce: it wakes no agent, and begins no conversation."""
    provenance: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the service tells of where it comes from; kept with the message."""


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
class Unfetched:
    """Something that happened elsewhere, and is fetched and read only when it is taken in: if that fails, only its room
    waits.
    """

    id: str
    fetch: Callable[[bool], Awaitable[Sequence[Incoming]]]
    """Returns what happened. The last time, with True, it leaves out what cannot be fetched. Raises `NotReadable`."""
    alone: bool = False
    """Whether the rest of its room need not wait for it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one room, oldest first, and how far it is read with them."""

    room: str
    events: Sequence[Incoming | Unfetched]
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
    """Empty: the bridge itself says it."""
    author_handle: str = ""
    author_kind: str = ""
    of: str | None = None
    """The id, elsewhere, of the message or reaction that it changes. None, to delete: whatever was sent under `id`."""
    also: tuple[str, ...] = ()
    """The ids of the other parts of that message, where it was sent in several."""
    reply_to: str | None = None
    emoji: str | None = None
    files: tuple[OutgoingFile, ...] = ()
    again: bool = False
    """Whether it may have been sent before: a process died between sending and knowing."""
    last_sent: str | None = None
    """If it may have been sent before: the newest message of ours that is known to be there."""
    created_at: Instant | None = None
    """Since when it waits to be sent; None for a code."""
    draft: str | None = None
    """The message there that shows the beginning of this text, and becomes the message."""
    thread: Thread | None = None
    """The conversation that it goes on with: what it is called, what was said in it before, and who reads it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The service has it, under this id; None if it gives none."""

    id: str | None
    also: tuple[str, ...] = ()
    """The ids of its other parts, where the service takes a message only in several."""
    missed: str = ""
    """Who does not get it, and why, where others do."""


@dataclass(frozen=True, slots=True)
class Later:
    """It cannot be sent now. It is sent again after so many seconds, or after a while that grows."""

    reason: str
    seconds: float | None = None
    tries: int | None = None
    """After so many it is as if it were refused: what follows waits no longer."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The service will never take it: it is too large, or the room is gone. What follows is sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Revoked:
    """The service no longer accepts the bridge: nothing can be sent until somebody changes something."""

    reason: str


Outcome: TypeAlias = Sent | Later | Refused | Revoked


class NotReadable(Exception):
    """The service could not be read now."""


class AccessRevoked(NotReadable):
    """The service no longer accepts the bridge."""


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


@runtime_checkable
class RoomwiseAdapter(Adapter, Protocol):
    """An adapter that reads each room by itself: where one has to wait, the others are read."""

    def hold(self, rooms: Collection[str]) -> None:
        """The next reads do not ask for these rooms, although they are connected, because one of their events is taken
        in again. What is written there meanwhile is returned when they are asked for again.
        """
        ...


@runtime_checkable
class OrderedAdapter(Adapter, Protocol):
    """An adapter that reads all rooms, or all conversations of a room, in one order: how far it is read is one place
    for all of them.
    """

    def keep_unread(self, *, holds: bool) -> None:
        """While `holds`, an event waits to be taken in again, and the next reads get cursors that are beyond it: they
        return what comes after those, and the service is not told that anything was read.
        """
        ...

    @property
    def is_full(self) -> bool:
        """Whether the service shows no more behind the event that waits."""
        ...


@dataclass(frozen=True, slots=True)
class Author:
    """Somebody here who speaks."""

    name: str
    handle: str
    kind: str


@runtime_checkable
class LiveAdapter(Adapter, Protocol):
    """An adapter that can also show what is happening now. Nothing depends on it: it raises nothing, and may do
    nothing.
    """

    drafts: Literal["none", "kept", "vanishing"]
    """Whether it shows text that is being written: in messages that are changed, or in a way that ends by itself."""

    async def show_typing(self, room: str, who: Author, *, typing: bool) -> None:
        """Shows for a few seconds that somebody types, or no longer."""
        ...

    async def show_draft(self, draft: Outgoing) -> str | None:
        """Shows text that is being written: in the message `of`, otherwise in a new one, whose id it returns. None if
        that is not known.
        """
        ...


@runtime_checkable
class PushedAdapter(LiveAdapter, Protocol):
    """An adapter whose service tells this server who types. Any process may be told; only that which carries the
    bridge's messages knows the rooms.
    """

    def hear_push(self, typing: Mapping[str, Sequence[str]]) -> None:
        """Passes on who types: accounts, by the id that rooms have in what the service pushes."""
        ...


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
    handles: Callable[[Collection[str]], Awaitable[Mapping[str, str]]]
    """The handles here of accounts that have written through the bridge, by account."""
    accounts: Callable[[Collection[str]], Awaitable[Mapping[str, str]]]
    """The other way: the accounts of handles."""
    heard_typing: Callable[[str, Writer], None]
    """To be called when somebody types in a room there: people here see it for a few seconds."""


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
    holds_threads: bool = False
    """Whether a room holds many conversations: each becomes a space, with the agents of the one that was connected."""


def secret_fields(settings: type[BridgeSettings]) -> list[str]:
    """The settings that may only name a secret, as `${NAME}`. Pure."""
    return [name for name, field in settings.model_fields.items() if SECRET in field.metadata]


SECRET: Final = "may only name a secret"  # noqa: S105  a mark
"""Marks a setting, in its `Annotated` type, that may only name a secret."""
