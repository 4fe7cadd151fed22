"""Asks an agent again for a missing answer: what a person does about a status such as "did not reply"."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlalchemy import bindparam, select

from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, EntityId, MessageId, SpaceId, new_id
from denizen.inbox import delivery, parking, statuses
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import ABOUT, ASKED_BY, BEFORE, OUTSIDE
from denizen.inbox.format import speaker
from denizen.inbox.statuses import LEFT_UNANSWERED, SET_ASIDE, SpaceStatus
from denizen.spaces import directory, posting
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents, events, space_statuses

_state = statement(
    select(agents.c.status, agents.c.held_by, agents.c.held_until).where(agents.c.id == bindparam("agent_id"))
)
CUT_SHORT: Final = (
    "A person asks you again to answer a message here: the cycle that read it was cut short before you had answered."
)
"""The text for an agent about a message that its log has already."""


def ask_for_answer(tx: Tx, space_id: SpaceId, agent_id: AgentId, by: EntityId) -> None:
    """Wake the agent and tell it that this person asks for an answer to the message that it left unanswered.

    Clears the status. Only people in the space may ask; raises `InvalidInput` if the agent owes no answer there.
    """
    space = directory.require_member(tx, space_id, by)
    person, agent = directory.get_entity(tx, by), directory.get_entity(tx, agent_id)
    state = tx.one(_state, agent_id=agent_id)
    if state is None:
        raise NotFound("agent", agent_id)
    if person.kind != "human":
        raise InvalidInput("Only people ask an agent for an answer. Write to it instead.")
    if not directory.is_member(tx, space_id, agent_id):
        raise InvalidInput(f"{agent.name} is no longer in the space {space.name}. Add it to the space, then ask.")
    owed = _owed(tx, space_id, agent_id)
    if owed is None or state[0] == "dead":
        raise InvalidInput(f"{agent.name} owes no answer in this space. Write a message to it instead.")
    statuses.clear(tx, agent_id, LEFT_UNANSWERED, space_id)
    parking.show_if_unable(
        tx, agent_id, space_id, owed.message_id, status=state[0], held_by=state[1], held_until=state[2]
    )
    delivery.deliver(tx, [_for_answer(tx, owed, person)])


_ended_without_answer = statement(
    select(events.c.space_id, events.c.message_id)
    .join(
        space_statuses,
        (space_statuses.c.agent_id == events.c.agent_id) & (space_statuses.c.message_id == events.c.message_id),
    )
    .where(events.c.agent_id == bindparam("agent_id"), events.c.state == "done", space_statuses.c.cause.in_(SET_ASIDE))
    .order_by(events.c.number)
)


def ask_about_cut_short(tx: Tx, agent_id: AgentId, space_id: SpaceId | None = None) -> None:
    """Ask the agent again for what a cut-off cycle left unanswered, in that space or everywhere."""
    found = tx.all(_ended_without_answer, agent_id=agent_id)
    again = [_notice(tx, agent_id, where, CUT_SHORT, message) for where, message in found if space_id in (None, where)]
    delivery.deliver(tx, again)


def _owed(tx: Tx, space_id: SpaceId, agent_id: AgentId) -> SpaceStatus | None:
    shown = [each for each in statuses.of_space(tx, space_id) if each.agent_id == agent_id]
    return next((each for each in shown if each.cause in LEFT_UNANSWERED), None)


def _for_answer(tx: Tx, owed: SpaceStatus, person: Entity) -> Delivery:
    name = person.name
    asks = f"{speaker(name, None, person.handle)} asks you for an answer"
    if owed.message_id is None:
        return _notice(tx, owed.agent_id, owed.space_id, f"{asks}.", asked_by=name)
    message = posting.get_message(tx, MessageId(owed.message_id))
    wrote = speaker(message.author_name, None, message.author_handle)
    text = f"{asks} to what {wrote} wrote:\n{message.text}"
    made = _notice(tx, owed.agent_id, owed.space_id, text, message.id, asked_by=name, before=message.text)
    return replace(made, payload={**made.payload, OUTSIDE: True}) if message.outside else made


def _notice(
    tx: Tx,
    agent_id: AgentId,
    space_id: SpaceId,
    text: str,
    about: MessageId | None = None,
    *,
    asked_by: str | None = None,
    before: str | None = None,
) -> Delivery:
    """A notice that somebody waits for the agent's answer in the space, to a message that it has read already."""
    known = {ABOUT: about, ASKED_BY: asked_by, BEFORE: before}
    payload = {"text": text, **{name: value for name, value in known.items() if value is not None}}
    return Delivery(agent_id, f"ask:{new_id()}", "notice", tx.now, waits=True, space_id=space_id, payload=payload)
