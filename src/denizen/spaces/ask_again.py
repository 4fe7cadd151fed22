"""Asking an agent for an answer that it owes: what a person does about a status such as "did not reply"."""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, select

from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, EntityId, MessageId, SpaceId, new_id
from denizen.inbox import delivery, parking, statuses
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import ABOUT, ASKED_BY, BEFORE
from denizen.inbox.format import plain_name
from denizen.inbox.statuses import Cause, SpaceStatus
from denizen.spaces import directory, posting
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents

_state = statement(
    select(agents.c.status, agents.c.held_by, agents.c.held_until).where(agents.c.id == bindparam("agent_id"))
)
_ANSWERABLE: Final[tuple[Cause, ...]] = ("no_reply", "limit")
"""The statuses that go when somebody asks for an answer."""


def ask_for_answer(tx: Tx, space_id: SpaceId, agent_id: AgentId, by: EntityId) -> None:
    """The agent is woken and told that this person asks for an answer to the message that it left unanswered.

    The status goes. Only people in the space may ask; raises `InvalidInput` where the agent owes no answer there.
    """
    space = directory.require_member(tx, space_id, by)
    person, agent = directory.get_entity(tx, by), directory.get_entity(tx, agent_id)
    state = tx.one(_state, agent_id=agent_id)
    if state is None:
        raise NotFound("agent", agent_id)
    if person.kind != "human":
        raise InvalidInput("Only people ask an agent for an answer. Write to it instead.")
    owed = _owed(tx, space_id, agent_id)
    if owed is None or state[0] == "dead":
        raise InvalidInput(f"{agent.name} owes no answer in this space. Write a message to it instead.")
    if not directory.is_member(tx, space_id, agent_id):
        raise InvalidInput(f"{agent.name} is not in the space {space.name} any more. Add it to the space, then ask.")
    statuses.clear(tx, agent_id, _ANSWERABLE, space_id)
    _show_why_not(tx, agent_id, owed, *state)
    delivery.deliver(tx, [_notice(tx, owed, person.name)])


def _owed(tx: Tx, space_id: SpaceId, agent_id: AgentId) -> SpaceStatus | None:
    shown = [each for each in statuses.of_space(tx, space_id) if each.agent_id == agent_id]
    return next((each for each in shown if each.cause in _ANSWERABLE), None)


def _notice(tx: Tx, owed: SpaceStatus, name: str) -> Delivery:
    text, payload = f"{plain_name(name)} asks you for an answer.", {ASKED_BY: name}
    if owed.message_id is not None:
        message = posting.get_message(tx, MessageId(owed.message_id))
        asks = f"{plain_name(name)} asks you for an answer to what {plain_name(message.author_name)} wrote:"
        text = f"{asks}\n{message.text}"
        payload |= {ABOUT: message.id, BEFORE: message.text}
    return Delivery(
        owed.agent_id,
        f"ask:{new_id()}",
        "notice",
        tx.now,
        waits=True,
        space_id=owed.space_id,
        payload={"text": text, **payload},
    )


def _show_why_not(
    tx: Tx, agent_id: AgentId, owed: SpaceStatus, status: str, held_by: str | None, held_until: int | None
) -> None:
    """Where the agent cannot answer now, the space shows why, as for a new message."""
    where = (agent_id, owed.space_id)
    if status == "suspended":
        cause = "suspended" if held_by is None else "budget"
        statuses.show(tx, *where, cause, message_id=owed.message_id, retry_at=held_until)
    elif (parked := parking.get(tx, agent_id)) is not None:
        statuses.show(tx, *where, parked.cause, message_id=owed.message_id, retry_at=parked.until, **parked.detail)
