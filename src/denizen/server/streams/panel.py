"""What one reader is told of voices of panels that are still speaking. Pure.

The bus may lose, repeat and overlap; the reader is spared that. A reply is first told as running; the deltas of its
epoch then follow each other from the beginning and without a hole, apart for what is said and what is thought, until
it is told again in another state. A higher epoch begins anew. Where a piece is missing, nothing more is told until the
text was told again from its beginning: `wanted` says of which panels that has to be asked.
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
    """Where the next piece of what is said, and of what is thought, has to begin."""


class PanelLive:
    """What this reader has been told, and so what a piece means to it."""

    def __init__(self) -> None:
        self._speaking: dict[Key, _Speaking] = {}
        self._missed: set[SpaceId] = set()

    def seen(self, replies: Iterable[Reply]) -> bool:
        """The reader is told of these as they are now; whether one of them is running that it had not heard of."""
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
        """What the reader is to be told because of this piece."""
        speaking = self._speaking.get((frame.round, frame.voice, frame.part))
        if speaking is None or frame.epoch < speaking.epoch:
            return None
        if frame.epoch > speaking.epoch:
            # Its attempt was begun again, and the word of that is still on its way.
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
        """Where a piece is missing that nobody was asked for yet."""
        missed, self._missed = self._missed, set()
        return missed
