"""The statuses of spaces in the streams of a space and of a person: each list is sent when it differs from the last."""

from __future__ import annotations

from collections.abc import Iterable

from denizen.agents.space_statuses import ShownStatus
from denizen.bus.streams import CycleChanged, MessageDeleted, RoundChanged, StreamFrame
from denizen.ids import SpaceId
from denizen.server.shapes.spaces import status_out
from denizen.server.streams.events import typed_event
from denizen.shapes.events import SpaceStatuses
from denizen.shapes.spaces import StatusOut


class StatusFeed:
    """The statuses that one reader was last sent, by space."""

    def __init__(self) -> None:
        self._told: dict[SpaceId, list[StatusOut]] = {}

    @property
    def told(self) -> object:
        """The statuses that the reader has. Equal for readers that have the same."""
        return {space_id: told for space_id, told in self._told.items() if told}

    def news(self, space_id: SpaceId, shown: Iterable[ShownStatus]) -> bytes:
        """Returns the event with what the space shows now; empty if the reader has it already."""
        now = [status_out(each) for each in shown]
        if now == self._told.get(space_id, []):
            return b""
        self._told[space_id] = now
        return typed_event(SpaceStatuses(space=space_id, statuses=now))

    def leave(self, space_id: SpaceId) -> None:
        """Notes that the reader is no longer in the space."""
        self._told.pop(space_id, None)

    def moved_by(self, frame: StreamFrame) -> list[SpaceId]:
        """Returns the spaces whose statuses may have changed: those waiting for an agent that began or ended a cycle,
        and a panel whose round ended or whose message is gone.
        """
        if isinstance(frame, RoundChanged):
            return [frame.space]
        if isinstance(frame, MessageDeleted):
            told = self._told.get(frame.space, [])
            return [frame.space] if any(each.round_id and each.message_id == frame.id for each in told) else []
        if not isinstance(frame, CycleChanged) or frame.what == "step":
            return []
        return [
            space_id
            for space_id, told in self._told.items()
            if any(each.cause == "queued" and each.agent_id == frame.agent for each in told)
        ]
