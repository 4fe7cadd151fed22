"""What an advisor is told besides who it is and what was said: profile, state of mind, what is remembered. A port.

The panel knows neither how a profile is chosen nor where memories are kept. Where there is no background, requests are
as they are without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from denizen.ids import SpaceId
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Turned:
    """A turn of a panel that is to be answered."""

    panel_id: SpaceId
    turn: int
    message_id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A voice that is to be told something in a turn."""

    said: Turned
    voice: str
    handle: str
    answered: int
    """How many turns it has answered before this one."""
    before: Mapping[str, Any]
    """What was kept of the last turn that it answered; empty: there was none."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a voice is told."""

    memory: str = ""
    upto: int = 0
    """The number of the last message that the memory tells of: it and those before it are not shown themselves."""
    profile: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is kept with the reply, for people and for the next turn."""
    outside: bool = False
    """Whether what it remembers was made from text from outside."""


Brought = Mapping[str, Any]
"""What was looked up for some panels, by their ids, as the background understands it."""


class Background(Protocol):
    """Tells voices what they should know."""

    async def bring(self, turns: Sequence[Turned]) -> Brought:
        """Look up, outside any transaction, what these turns may need. Each panel is in what is given back."""
        ...

    def tell(self, tx: Tx, ask: Ask, brought: Any) -> Told:
        """What the voice is told. Only reads."""
        ...
