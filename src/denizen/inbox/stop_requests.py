"""Requests of people to stop what an agent is writing to a space. Durable: another process may be thinking for it.

A request is a row, and a hint on the bus. It is about the open cycle of the agent, as far as that answers what was said
in the space until then; if that cycle is undone, about the one that takes the same messages again. The transaction that
ends the cycle deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from sqlalchemy import bindparam, delete, exists, or_, select

from denizen.ids import AgentId, CycleId, EntityId, SpaceId
from denizen.inbox.events import Event
from denizen.inbox.format import plain_name, quoted_name
from denizen.storage.database import Tx, delete_where, insert_or_update, select_where, statement, value
from denizen.storage.schema import cycles, entities, events, memberships, messages, spaces, stop_requests

STOP: Final = "stop"
"""The topic that tells every instance which agent was told to stop, and in which space."""

STOPPED: Final = "stopped"
"""Key in the result of `send_message`, and in the metadata of the message: a person stopped it."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A person has told an agent to stop what it writes to a space."""

    space_id: SpaceId
    space_name: str
    by_id: EntityId
    by_name: str


def told_to_agent(request: StopRequest) -> str:
    """What the agent reads in the result of a message that was stopped."""
    who = plain_name(request.by_name)
    return f"{who} stopped you here. The text above was sent as it is. Do not continue it unless someone asks."


def refusal(request: StopRequest) -> str:
    """What the agent reads if it sends something there in the same cycle."""
    who, space = plain_name(request.by_name), quoted_name(request.space_name)
    return f"{who} stopped your answer in the space {space}. Send nothing there until someone writes again."


_takes_from_space = exists().where(
    events.c.agent_id == cycles.c.agent_id,
    events.c.state != "done",  # must match the condition of the partial index exactly
    events.c.state == "taken",
    events.c.cycle_id == cycles.c.id,
    events.c.space_id == bindparam("space_id"),
)
_writing = statement(
    select(cycles.c.agent_id, cycles.c.id)
    .join(memberships, memberships.c.entity_id == cycles.c.agent_id)
    .where(
        memberships.c.space_id == bindparam("space_id"),
        cycles.c.number.is_(None),
        # A paused cycle writes nothing: it waits for people.
        cycles.c.outcome == "open",
        or_(cycles.c.active_space_id == bindparam("space_id"), _takes_from_space),
    )
    .order_by(cycles.c.agent_id)
)
_ask = insert_or_update(stop_requests)


def ask(tx: Tx, space_id: SpaceId, by: EntityId, seq: int, agents: Collection[str] | None = None) -> list[AgentId]:
    """Tell these agents, otherwise all, to stop what they write to the space in answer to its messages up to `seq`.

    Returns those that were at it. The caller checks whether the person may.
    """
    told: list[AgentId] = []
    for agent_id, cycle_id in tx.all(_writing, space_id=space_id):
        if agents is None or agent_id in agents:
            made = {"cycle_id": cycle_id, "seq": seq, "by_id": by, "created_at": tx.now}
            tx.run(_ask, agent_id=agent_id, space_id=space_id, **made)
            tx.announce(STOP, {"agent": agent_id, "space": space_id})
            told.append(AgentId(agent_id))
    return told


_of_agent = statement(
    select(
        stop_requests.c.space_id,
        spaces.c.name,
        stop_requests.c.by_id,
        entities.c.name,
        stop_requests.c.cycle_id,
        cycles.c.id,
        stop_requests.c.seq,
        stop_requests.c.created_at,
    )
    .join(spaces, spaces.c.id == stop_requests.c.space_id)
    .join(entities, entities.c.id == stop_requests.c.by_id)
    .join(cycles, cycles.c.id == stop_requests.c.cycle_id, isouter=True)
    .where(stop_requests.c.agent_id == bindparam("agent_id"))
    .order_by(stop_requests.c.created_at, stop_requests.c.space_id)
)
_seq = select_where(messages, "seq", "id")


def of_cycle(tx: Tx, agent_id: AgentId, cycle_id: CycleId, taken: Sequence[Event]) -> dict[SpaceId, StopRequest]:
    """The requests that concern this open cycle, by space; `taken` are its events.

    Not where something was said after the request: that is to be answered.
    """
    found: dict[SpaceId, StopRequest] = {}
    for space_id, space_name, by_id, by_name, meant, stored, seq, asked_at in tx.all(_of_agent, agent_id=agent_id):
        here = [event for event in taken if event.space_id == space_id]
        # A cycle that was undone is not stored any more: this one has taken its messages again.
        concerned = meant == cycle_id or (stored is None and bool(here))
        if concerned and not any(_came_after(tx, event, seq, asked_at) for event in here):
            found[space_id] = StopRequest(space_id, space_name, by_id, by_name)
    return found


def _came_after(tx: Tx, event: Event, seq: int, asked_at: int) -> bool:
    if event.message_id is None:
        return event.created_at > asked_at
    return (value(tx, _seq, id=event.message_id) or 0) > seq


_settle = delete_where(stop_requests, "agent_id, space_id")


def settle(tx: Tx, agent_id: AgentId, space_ids: Iterable[str]) -> None:
    """Delete these requests: the cycle that they concern has ended."""
    for space_id in space_ids:
        tx.run(_settle, agent_id=agent_id, space_id=space_id)


_pending = statement(select(stop_requests.c.agent_id, stop_requests.c.space_id))
_delete_late = statement(
    delete(stop_requests).where(
        exists().where(cycles.c.id == stop_requests.c.cycle_id, cycles.c.number.is_not(None)),
    )
)


def pending(tx: Tx) -> list[tuple[AgentId, SpaceId]]:
    """Every request: the agent and the space."""
    return [(AgentId(agent_id), SpaceId(space_id)) for agent_id, space_id in tx.all(_pending)]


def delete_late(tx: Tx) -> None:
    """Delete the requests that came when their cycle had just ended."""
    tx.run(_delete_late)


def hinted(payload: Mapping[str, JsonValue]) -> tuple[AgentId, SpaceId] | None:
    """The agent and the space that a payload on `STOP` names."""
    agent, space = payload.get("agent"), payload.get("space")
    return (AgentId(agent), SpaceId(space)) if isinstance(agent, str) and isinstance(space, str) else None


class StopHints:
    """Which agents may have been told to stop, as far as this process has heard. The requests are in the database."""

    def __init__(self) -> None:
        self._told: dict[AgentId, set[SpaceId]] = {}
        self._listening: dict[AgentId, Callable[[SpaceId], None]] = {}

    def hint(self, agent_id: AgentId, space_id: SpaceId) -> None:
        """This agent may have been told to stop what it writes to this space."""
        self._told.setdefault(agent_id, set()).add(space_id)
        if (listener := self._listening.get(agent_id)) is not None:
            listener(space_id)

    def take(self, agent_id: AgentId) -> bool:
        """Whether there was a hint about this agent since the last time: then its requests are to be read."""
        return self._told.pop(agent_id, None) is not None

    @contextmanager
    def listening(self, agent_id: AgentId, listener: Callable[[SpaceId], None]) -> Generator[None]:
        """While entered, hints about this agent are passed to the listener: those that are left, and as they come."""
        self._listening[agent_id] = listener
        for space_id in self._told.get(agent_id, ()):
            listener(space_id)
        try:
            yield
        finally:
            del self._listening[agent_id]
