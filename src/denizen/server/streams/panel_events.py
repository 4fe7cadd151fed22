"""Events of panels in the streams of a space and of a person. The states of replies come from the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from denizen.bus.streams import PanelChanged, PanelDelta, PanelFrame, ReplyChanged, RoundChanged
from denizen.errors import NotFound
from denizen.ids import SpaceId
from denizen.panel import rounds
from denizen.panel.rounds import OVER, Reply, Round
from denizen.server.shapes.panels import reply_out, round_out
from denizen.server.streams.events import payload_event, round_event, typed_event
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
        self._told = ToldRounds()

    @property
    def told(self) -> object:
        """What the reader has of rounds and replies in progress."""
        return self._live.told, self._told.told

    async def look(self, places: Sequence[SpaceId]) -> bytes:
        """Returns the events of the rounds in these panels that the reader has not as they are now: those in progress,
        and those that have begun or ended since it was last told. Of the past it is told nothing.
        """
        found = await self._db.read(_current, [(each, *self._told.position(each)) for each in places])
        told = b""
        for place, turn, rounds_now in found:
            for each, out in rounds_now:
                if self._told.is_new(each):
                    self._live.seen(each.replies)
                    told += round_event(out)
            self._told.upto(place, turn)
        return told

    @property
    def wants(self) -> set[SpaceId]:
        """Returns the spaces with a text that this reader lacks a piece of."""
        return self._live.wanted()

    async def hear(self, frame: PanelFrame) -> bytes:
        """Returns the events for the reader because of this frame."""
        match frame:
            case PanelDelta():
                piece = self._live.hear(frame)
                return b"" if piece is None else payload_event(piece)
            case PanelChanged():
                await self._read_in(frame.space, _nothing)
                return typed_event(PanelChangedEvent(panel=frame.space))
            case RoundChanged():
                found = await self._read_in(frame.space, _round, frame)
                if found is None:
                    return b""
                self._live.seen(found[0].replies)
                self._told.is_new(found[0])
                return round_event(found[1])
            case ReplyChanged():
                found = await self._read_in(frame.space, _reply, frame)
                if found is None:
                    return b""
                reply, round_now = found
                self._live.seen([reply])
                self._told.reply(round_now, reply)
                return typed_event(_event(frame, reply, round_now.all_completed))


Known = dict[tuple[str, str], tuple[str, int]]
"""The state and epoch of each reply, by voice and part; with `COMPLETED`, that the round is complete."""
COMPLETED: Final = {("", ""): ("done", 0)}


class ToldRounds:
    """The rounds in progress as the reader was sent them, and the last turn of each panel that it knows of. Pure."""

    def __init__(self) -> None:
        self._rounds: dict[str, tuple[SpaceId, Known]] = {}
        self._turns: dict[SpaceId, int] = {}

    @property
    def told(self) -> object:
        """Equal for readers that were sent the same."""
        return dict(self._rounds), dict(self._turns)

    def position(self, panel: SpaceId) -> tuple[int | None, list[str]]:
        """Returns the last turn that the reader knows of, and the rounds that it has as in progress."""
        return self._turns.get(panel), [id for id, (where, _) in self._rounds.items() if where == panel]

    def upto(self, panel: SpaceId, turn: int) -> None:
        """Notes that the reader knows of the panel's rounds up to this turn."""
        self._turns[panel] = max(turn, self._turns.get(panel, 0))

    def is_new(self, now: Round) -> bool:
        """Whether the reader has the round in another state, or not at all; notes it as sent."""
        known = {(each.voice, each.part): (each.state, each.epoch) for each in now.replies}
        return self._note(now, known | (COMPLETED if now.all_completed else {}))

    def reply(self, now: Round, reply: Reply) -> None:
        """Notes that the reader was sent this reply of the round, which says nothing of the others, or of the round."""
        _, known = self._rounds.get(now.id, (now.panel_id, {}))
        if not reply.is_over:
            known = {each: state for each, state in known.items() if each not in COMPLETED}
        self._note(now, {**known, (reply.voice, reply.part): (reply.state, reply.epoch)})

    def _note(self, now: Round, known: Known) -> bool:
        before = self._rounds.pop(now.id, None)
        self.upto(now.panel_id, now.turn)
        # A round that is over is not looked at again, unless somebody has a reply repeated: that is in progress then.
        told = known.keys() >= COMPLETED.keys() and all(state in OVER for state, _ in known.values())
        if not told or not all(each.is_over for each in now.replies):
            self._rounds[now.id] = now.panel_id, known
        return before is None or before[1] != known


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


def _current(
    tx: Tx, known: Sequence[tuple[SpaceId, int | None, Sequence[str]]]
) -> list[tuple[SpaceId, int, list[tuple[Round, RoundOut]]]]:
    """Returns for each panel its last turn, and the rounds that a reader with these positions may not have."""
    return [
        (place, turn, [(each, read_round_out(tx, each)) for each in found])
        for place, after, ids in known
        for turn, found in [rounds.current(tx, place, after, ids)]
    ]


def _nothing(tx: Tx) -> None:
    """For events without contents: only the access is checked."""


def _round(tx: Tx, frame: RoundChanged) -> tuple[Round, RoundOut] | None:
    try:
        found = rounds.get(tx, frame.space, frame.round)
    except NotFound:
        return None
    return found, read_round_out(tx, found)


def _reply(tx: Tx, frame: ReplyChanged) -> tuple[Reply, Round] | None:
    try:
        return rounds.reply(tx, frame.round, frame.voice, frame.part), rounds.get(tx, frame.space, frame.round)
    except NotFound:
        return None
