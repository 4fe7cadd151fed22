"""The statuses that a space shows of its agents: the stored ones, agents that are busy elsewhere while somebody waits
here, and why nobody has answered in a panel.

The latter two are not stored: they follow from the events in an inbox, and from the replies of a panel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from sqlalchemy import bindparam, select

from denizen.agents import registry
from denizen.agents.registry import Presence
from denizen.ids import AgentId, EntityId, MessageId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.statuses import Action, SpaceStatus
from denizen.panel import unanswered
from denizen.panel.unanswered import PanelStatus
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities, events

LOOKED_AT: Final = 1000
"""How many open events of an agent are read; with more, it is busy for a long time anyway."""


@dataclass(frozen=True, slots=True)
class QueuedStatus:
    """An agent is busy elsewhere, and takes up the messages here after that."""

    space_id: SpaceId
    agent_id: AgentId
    agent_name: str
    behind: int
    """How many events it takes up before the first one that waits here."""
    message_id: MessageId | None
    created_at: int
    cause: Literal["queued"] = "queued"
    actions: tuple[Action, ...] = ()
    retry_at: None = None

    @property
    def text(self) -> str:
        before = "1 message waits" if self.behind == 1 else f"{self.behind:,} messages wait"
        return f"{self.agent_name} is busy; {before} before yours."


ShownStatus: TypeAlias = SpaceStatus | QueuedStatus | PanelStatus


@dataclass(frozen=True, slots=True)
class OpenEvent:
    """The parts of an agent's open event that matter for its queue."""

    space_id: SpaceId | None
    message_id: MessageId | None
    taken: bool
    waits: bool
    created_at: int


def queue_of(agent_id: AgentId, agent_name: str, open_events: Sequence[OpenEvent]) -> list[QueuedStatus]:
    """The spaces where somebody waits for this agent while it is busy elsewhere, from its open events in order."""
    at_work = {each.space_id for each in open_events if each.taken}
    if not at_work:
        return []
    found: dict[SpaceId, QueuedStatus] = {}
    for position, each in enumerate(open_events):
        if not each.waits or each.taken or each.space_id is None or each.space_id in at_work | found.keys():
            continue
        behind = sum(1 for other in open_events[:position] if other.space_id != each.space_id)
        # Events that are being worked on come first, wherever they stand.
        behind += sum(1 for other in open_events[position:] if other.taken)
        found[each.space_id] = QueuedStatus(
            each.space_id, agent_id, agent_name, behind, each.message_id, each.created_at
        )
    return list(found.values())


_open = statement(
    select(entities.c.name, events.c.space_id, events.c.message_id, events.c.state, events.c.waits, events.c.created_at)
    .join(entities, entities.c.id == events.c.agent_id)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.state.in_(("pending", "taken")),
        events.c.wakes == 1,
    )
    .order_by(events.c.number)
    .limit(LOOKED_AT)
)


def _queues(tx: Tx, agents: Iterable[Presence]) -> Iterable[QueuedStatus]:
    for agent in agents:
        if agent.status == "alive":
            rows = tx.all(_open, agent_id=agent.agent_id)
            if rows:
                yield from queue_of(agent.agent_id, rows[0][0], [_open_event(row[1:]) for row in rows])


def _open_event(row: tuple[Any, ...]) -> OpenEvent:
    space_id, message_id, state, waits, created_at = row
    return OpenEvent(space_id, message_id, state == "taken", bool(waits), created_at)


def in_space(tx: Tx, space_id: SpaceId, present: Sequence[Presence] | None = None) -> list[ShownStatus]:
    """The statuses of the space, oldest first, then agents busy elsewhere; `present` are its agents, if known."""
    agents = registry.present(tx, space_id) if present is None else present
    queued = [each for each in _queues(tx, agents) if each.space_id == space_id]
    return [*_shown(statuses.of_space(tx, space_id), queued), *unanswered.in_space(tx, space_id)]


def in_spaces_of(tx: Tx, entity_id: EntityId, around: Iterable[Presence]) -> Mapping[SpaceId, list[ShownStatus]]:
    """The same for every space of this entity that has a status; `around` are the agents in its spaces."""
    stored: defaultdict[SpaceId, list[SpaceStatus]] = defaultdict(list)
    for status in statuses.in_spaces_of(tx, entity_id):
        stored[status.space_id].append(status)
    queued: defaultdict[SpaceId, list[QueuedStatus]] = defaultdict(list)
    for each in _queues(tx, around):
        queued[each.space_id].append(each)
    found = {space_id: _shown(stored[space_id], queued[space_id]) for space_id in {*stored, *queued}}
    for panel in unanswered.in_spaces_of(tx, entity_id):
        found[panel.space_id] = [*found.get(panel.space_id, ()), panel]
    return found


def _shown(stored: Sequence[SpaceStatus], queued: Iterable[QueuedStatus]) -> list[ShownStatus]:
    """An agent that has trouble is not shown as busy."""
    in_trouble = {each.agent_id for each in stored}
    return [*stored, *(each for each in queued if each.agent_id not in in_trouble)]
