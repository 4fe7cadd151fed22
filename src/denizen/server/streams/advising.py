"""Events of panels in the streams of a space and of a person. The states of replies come from the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from denizen.bus.streams import PanelChanged, PanelDelta, PanelFrame, ReplyChanged, RoundChanged
from denizen.errors import NotFound
from denizen.ids import SpaceId
from denizen.panel import rounds
from denizen.panel.rounds import Reply, Round
from denizen.server.shapes.panels import reply_out, round_out
from denizen.server.streams.events import live_event, round_event, typed_event
from denizen.server.streams.panel import PanelLive
from denizen.shapes.events import PanelChanged as PanelChangedEvent
from denizen.shapes.events import PanelReply
from denizen.shapes.panels import RoundOut
from denizen.spaces import posting
from denizen.storage.database import Database, Tx

P = ParamSpec("P")
T = TypeVar("T")


class ReadIn(Protocol):
    """Reads something of a space for those who may read it. Raises if nobody may."""

    async def __call__(
        self, space_id: SpaceId, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...


class Advising:
    """The panel events for one reader, or for several that have the same. Every look checks their access."""

    def __init__(self, db: Database, read_in: ReadIn) -> None:
        self._db = db
        self._read_in = read_in
        self._live = PanelLive()

    @property
    def told(self) -> object:
        """What the reader has of replies in progress."""
        return self._live.told

    async def begin(self, places: Sequence[SpaceId]) -> bytes:
        """Returns the events of the rounds in progress in these spaces."""
        told = await self._db.read(_under_way, list(places))
        self._live.seen([reply for each, _ in told for reply in each.replies])
        return b"".join(round_event(out) for _, out in told)

    @property
    def wants(self) -> set[SpaceId]:
        """Returns the spaces with a text that this reader lacks a piece of."""
        return self._live.wanted()

    async def hear(self, frame: PanelFrame) -> bytes:
        """Returns the events for the reader because of this frame."""
        match frame:
            case PanelDelta():
                piece = self._live.hear(frame)
                return b"" if piece is None else live_event(piece)
            case PanelChanged():
                await self._read_in(frame.space, _nothing)
                return typed_event(PanelChangedEvent(panel=frame.space))
            case RoundChanged():
                found = await self._read_in(frame.space, _round, frame)
                if found is None:
                    return b""
                self._live.seen(found[0].replies)
                return round_event(found[1])
            case ReplyChanged():
                reply = await self._read_in(frame.space, _reply, frame)
                if reply is None:
                    return b""
                self._live.seen([reply[0]])
                return typed_event(_event(frame, *reply))


def _event(frame: ReplyChanged, reply: Reply, all_completed: bool) -> PanelReply:
    return PanelReply(panel=frame.space, round=frame.round, all_completed=all_completed, reply=reply_out(reply))


def read_round_out(tx: Tx, told: Round) -> RoundOut:
    """Reads the round as clients see it, with the message that began it."""
    if told.step:
        return round_out(told)
    try:
        return round_out(told, posting.get_message(tx, told.message_id))
    except NotFound:
        return round_out(told)


def _under_way(tx: Tx, places: Sequence[SpaceId]) -> list[tuple[Round, RoundOut]]:
    return [(each, read_round_out(tx, each)) for place in places for each in rounds.under_way(tx, place)]


def _nothing(tx: Tx) -> None:
    """For events without contents: only the access is checked."""


def _round(tx: Tx, frame: RoundChanged) -> tuple[Round, RoundOut] | None:
    try:
        found = rounds.get(tx, frame.space, frame.round)
    except NotFound:
        return None
    return found, read_round_out(tx, found)


def _reply(tx: Tx, frame: ReplyChanged) -> tuple[Reply, bool] | None:
    try:
        reply = rounds.reply(tx, frame.round, frame.voice, frame.part)
    except NotFound:
        return None
    return reply, rounds.get(tx, frame.space, frame.round).all_completed
