"""The port for what an advisor is told in addition: its profile, its state of mind, its memories.

The panel knows neither how a profile is chosen nor where memories are stored. Without a background, requests have none
of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from denizen.ids import SpaceId
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A turn of a panel to be answered."""

    panel_id: SpaceId
    turn: int
    message_id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class VoiceTurn:
    """A voice that is about to answer a turn."""

    said: PendingTurn
    voice: str
    handle: str
    answered: int
    """How many turns it has answered before this one."""
    before: Mapping[str, Any]
    """What was stored with its last answered turn; empty if there was none."""


@dataclass(frozen=True, slots=True)
class VoiceBackground:
    """What a voice is told in addition."""

    memory: str = ""
    upto: int = 0
    """The number of the last message that the memory covers: messages up to it are not shown."""
    profile: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is stored with the reply, for people and for the next turn."""
    outside: bool = False
    """Whether its memories are based on text from outside."""


Brought = Mapping[str, Any]
"""What was looked up for some panels, by panel id, in the background's own form."""


class Background(Protocol):
    """Provides what voices are told in addition."""

    async def bring(self, turns: Sequence[PendingTurn]) -> Brought:
        """Looks up, outside any transaction, what these turns may need. The result has an entry for each panel."""
        ...

    def tell(self, tx: Tx, ask: VoiceTurn, brought: Any) -> VoiceBackground:
        """Returns what the voice is told. Only reads."""
        ...
