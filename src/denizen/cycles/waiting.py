"""Whether a person waits for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from denizen.ids import AgentId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.format import plain_name, quoted_name
from denizen.spaces import directory
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Waiting:
    """A person who spoke to the agent, and where."""

    space_id: SpaceId
    space: str
    who: str


def whom_to_answer(tx: Tx, agent_id: AgentId, events: Sequence[Event]) -> Waiting | None:
    """The last person who spoke to this agent: in a space of the two of them, or by mentioning it."""
    for event in reversed(events):
        if event.sender_kind != "human" or event.space_id is None:
            continue
        members = directory.members(tx, SpaceId(event.space_id))
        here = any(member.entity.id == agent_id for member in members)
        if here and (event.type == "mention" or len(members) == 2):
            name = quoted_name(event.space_name or "")
            return Waiting(
                SpaceId(event.space_id), f"{name} (id: {event.space_id})", plain_name(event.sender_name or "")
            )
    return None
