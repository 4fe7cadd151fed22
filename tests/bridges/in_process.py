"""A service elsewhere, in this process: rooms with accounts, events with ids, and sending that can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from denizen.bridges.port import (
    AccessRevoked,
    Adapter,
    Batch,
    BridgeKind,
    BridgeSettings,
    Incoming,
    IncomingDeletion,
    IncomingEdit,
    IncomingMessage,
    IncomingReaction,
    Later,
    Means,
    NotReadable,
    Outcome,
    Outgoing,
    Revoked,
    Sent,
    Writer,
)
from denizen.bridges.registry import Bridge
from tests.world import World


class HarbourSettings(BridgeSettings):
    token: str = "good"


@dataclass
class Harbour:
    """The service. It has transaction ids: what is sent twice with the same id is there once."""

    rooms: dict[str, list[Incoming]] = field(default_factory=dict[str, list[Incoming]])
    taken: dict[str, str] = field(default_factory=dict[str, str])
    """The ids that it gave, by transaction id."""
    said: list[str] = field(default_factory=list[str])
    """What it has, in order: `room: Author: text`."""
    codes: dict[str, str] = field(default_factory=dict[str, str])
    """By account."""
    reads: int = 0
    """How often it was asked what was written."""
    sent: int = 0
    """How often something was sent to it, again too."""
    answers: list[Outcome] = field(default_factory=list[Outcome])
    """What it answers next, instead of taking it."""
    defects: int = 0
    """How often sending ends in a defect from now on."""
    tokens: set[str] = field(default_factory=lambda: {"good"})
    unreachable: bool = False
    broken: bool = False
    """Whether a bridge to it cannot even be opened, by a defect."""
    first_cursor: str = "0"
    tells_deletions: bool = True
    sends_once: bool = True
    rooms_held: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    """Which rooms waited at each read."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    slow: set[str] = field(default_factory=set[str])
    """Rooms that take what is sent only when it is `released`."""
    held: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def has(self, line: str) -> None:
        """Returns when this was said."""
        while line not in self.said:
            self.arrived.clear()
            await self.arrived.wait()

    @property
    def kind(self) -> BridgeKind:
        def opened(settings: BridgeSettings, means: Means) -> Adapter:
            assert isinstance(settings, HarbourSettings)
            if self.broken:
                raise KeyError("harbour")
            return HarbourAdapter(self, settings, means)

        return BridgeKind("harbour", HarbourSettings, opened)

    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    async def attach(self, world: World) -> Bridge:
        """Create the bridge to it."""
        bridge, _ = await world.denizen.bridges.create("Harbour", "harbour", self.settings)
        return bridge

    def room_id(self, name: str) -> str:
        return name

    async def settle(self) -> None:
        return

    async def close(self) -> None:
        return

    def forbid(self) -> None:
        """Accept the bridge no more."""
        self.tokens.clear()

    def permit(self) -> None:
        self.tokens.add("good")

    # What people there do

    async def write(
        self, room: str, who: str, text: str, *, bot: bool = False, verified: bool = True, **more: Any
    ) -> str:
        id = self._next(room)
        self.add(room, IncomingMessage(id, writer(who, bot=bot, verified=verified), text, **more))
        return id

    async def edit(self, room: str, who: str, of: str, text: str) -> None:
        self.add(room, IncomingEdit(self._next(room), writer(who), of, text))

    async def delete(self, room: str, who: str, of: str) -> None:
        self.add(room, IncomingDeletion(self._next(room), writer(who), of))

    async def react(self, room: str, who: str, of: str, emoji: str, *, removed: bool = False) -> str:
        id = self._next(room)
        self.add(room, IncomingReaction(id, writer(who), of, emoji, removed))
        return id

    def _next(self, room: str) -> str:
        return f"{room}-{len(self.rooms.setdefault(room, [])) + 1}"

    def add(self, room: str, event: Incoming) -> None:
        self.rooms[room].append(event)
        self.news.set()


class HarbourAdapter:
    """The connection to it."""

    def __init__(self, harbour: Harbour, settings: HarbourSettings, means: Means) -> None:
        self.harbour, self.settings, self.means = harbour, settings, means

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        self.harbour.reads += 1
        if self.harbour.unreachable:
            raise NotReadable("The harbour cannot be reached.")
        if self.settings.token not in self.harbour.tokens:
            raise AccessRevoked("The harbour does not accept the token.")
        batches: list[Batch] = []
        for room, cursor in rooms.items():
            events = self.harbour.rooms.setdefault(room, [])
            if cursor is None:
                batches.append(Batch(room, (), str(len(events))))
            elif int(cursor) < len(events):
                batches.append(Batch(room, tuple(events[int(cursor) :]), str(len(events))))
        return batches

    def hold(self, rooms: Collection[str]) -> None:
        self.harbour.rooms_held.append(frozenset(rooms))

    async def news(self) -> None:
        await self.harbour.news.wait()
        self.harbour.news.clear()

    async def close(self) -> None:
        return

    async def send(self, what: Outgoing) -> Outcome:
        harbour = self.harbour
        harbour.sent += 1
        if self.settings.token not in harbour.tokens:
            return Revoked("The harbour does not accept the token.")
        if harbour.unreachable:
            return Later("The harbour cannot be reached.")
        if harbour.defects:
            harbour.defects -= 1
            raise KeyError("harbour")
        if harbour.answers:
            return harbour.answers.pop(0)
        if what.target in harbour.slow:
            harbour.held.set()
            await harbour.released.wait()
        if what.id not in harbour.taken:
            harbour.taken[what.id] = f"out-{len(harbour.taken) + 1}"
            harbour.said.append(await self._told(what))
            harbour.arrived.set()
        return Sent(harbour.taken[what.id])

    async def _told(self, what: Outgoing) -> str:
        if what.action == "code":
            self.harbour.codes[what.target] = what.text
            return f"{what.target}: code"
        files = "".join([f" [{each.name}: {(await self.means.read_file(each.id)).decode()}]" for each in what.files])
        about = f" ({what.of})" if what.of else f" (to {what.reply_to})" if what.reply_to else ""
        match what.action:
            case "post":
                by = f"{what.author}: " if what.author else ""
                return f"{what.target}: {by}{what.text}{files}{about}"
            case "edit":
                return f"{what.target}: edit{about}: {what.text}"
            case "delete":
                return f"{what.target}: delete{about}"
            case _:
                return f"{what.target}: {what.action} {what.emoji}{about}"


def writer(who: str, *, bot: bool = False, verified: bool = True) -> Writer:
    return Writer(f"@{who.split()[0].lower()}:harbour", who, bot, verified)
