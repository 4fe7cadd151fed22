"""Filters the live text of panels that one reader of a stream is sent. Pure.

The bus may lose, repeat and overlap frames; the reader must not notice. A reply is first sent as running; then the
deltas of its epoch follow from the beginning without a gap, answer and thinking separately, until it is sent in another
state. A higher epoch begins anew. If a piece is missing, nothing more is sent until the text has been repeated from its
beginning: `wanted` names the panels for which that has to be requested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from denizen.bus.streams import PanelDelta
from denizen.ids import SpaceId
from denizen.panel.rounds import Reply
from denizen.server.live import Payload
from denizen.storage.database import storable

Key = tuple[str, str, str]


@dataclass(slots=True)
class _Speaking:
    epoch: int
    length: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    """The offsets of the next pieces of the answer and of the thinking."""


class PanelLive:
    """What this reader has been sent, which decides what a piece means to it."""

    def __init__(self) -> None:
        self._speaking: dict[Key, _Speaking] = {}
        self._missed: set[SpaceId] = set()

    @property
    def told(self) -> object:
        """What the reader has of replies in progress. Equal for readers that have the same."""
        return {key: (each.epoch, dict(each.length)) for key, each in self._speaking.items()}

    def seen(self, replies: Iterable[Reply]) -> bool:
        """Notes that these replies are sent as they are now; returns whether a running one is new to the reader."""
        new = False
        for reply in replies:
            key = reply.round_id, reply.voice, reply.part
            known = self._speaking.get(key)
            if reply.state != "running":
                self._speaking.pop(key, None)
            elif known is None or known.epoch < reply.epoch:
                self._speaking[key] = _Speaking(reply.epoch)
                new = True
        return new

    def hear(self, frame: PanelDelta) -> Payload | None:
        """Returns the event for the reader because of this piece."""
        speaking = self._speaking.get((frame.round, frame.voice, frame.part))
        if speaking is None or frame.epoch < speaking.epoch:
            return None
        if frame.epoch > speaking.epoch:
            # Its attempt was begun again, and the frame that says so is still under way.
            speaking.epoch, speaking.length = frame.epoch, {False: 0, True: 0}
        length = speaking.length[frame.thinking]
        if frame.offset > length:
            self._missed.add(frame.space)
            return None
        new = frame.text[length - frame.offset :]
        if not new:
            return None
        speaking.length[frame.thinking] = length + len(new)
        return {
            "type": "panel.delta",
            "panel": frame.space,
            "round": frame.round,
            "advisor": frame.voice,
            "part": frame.part,
            "epoch": frame.epoch,
            "offset": length,
            "text": storable(new),
            "thinking": frame.thinking,
        }

    def wanted(self) -> set[SpaceId]:
        """Returns the panels with a missing piece that was not requested yet."""
        missed, self._missed = self._missed, set()
        return missed
