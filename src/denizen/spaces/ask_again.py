"""Asks an agent again for a missing answer: what a person does about a status such as "did not reply"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.errors import InvalidInput, existing
from denizen.ids import AgentId, EntityId, MessageId, SpaceId, new_id
from denizen.inbox import delivery, parking, statuses
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import ABOUT, AGAIN, ASKED_BY, BEFORE, OUTSIDE, Event
from denizen.inbox.format import speaker
from denizen.inbox.statuses import LEFT_UNANSWERED, SET_ASIDE, SpaceStatus
from denizen.spaces import directory, posting
from denizen.spaces.directory import Entity
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, select_where, statement, value, values
from denizen.storage.schema import agents, entities, events, memberships, messages, space_statuses

_state = select_where(agents, "status, held_by, held_until", "id")
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
    state = existing(tx.one(_state, id=agent_id), "agent", agent_id)
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


def ask_for_another(tx: Tx, message_id: MessageId, by: EntityId, request: Mapping[str, JsonValue] | None = None) -> str:
    """Wake the agent that wrote this message, and tell it that this person asks for another answer. Returns the id of
    the event. `request` is what a program says that waits for that answer: a part of the event.

    The earlier answer stays. Only people in the space may ask; raises `InvalidInput` if the message is not an answer of
    an agent that can be asked.
    """
    answer = posting.get_readable(tx, message_id, by)
    person, agent_id = directory.get_entity(tx, by), AgentId(answer.author_id)
    if person.kind != "human":
        raise InvalidInput("Only people ask an agent for an answer. Write to it instead.")
    if answer.author_kind != "agent" or answer.deleted_at is not None:
        raise InvalidInput("Only an answer of an agent can be tried again.")
    _require_askable(tx, answer.space_id, agent_id, answer.author_name)
    question = _answered_by(tx, answer)
    if question is None:
        raise InvalidInput("This message answers nobody. Write what you want to know instead.")
    asks = f"{speaker(person.name, None, person.handle)} asks you for another answer to what"
    wrote = speaker(question.author_name, None, question.author_handle)
    text = (
        f"{asks} {wrote} wrote:\n{question.text}\n\n"
        f"Your earlier answer (message {answer.id}) stays where it is. Answer anew."
    )
    return _ask_waiting(tx, answer.space_id, agent_id, text, question, person, answer.id, request)


def ask_about_edited(tx: Tx, message: Message, by: EntityId) -> list[AgentId]:
    """Ask the agents that were woken by the message to answer it as it reads now. Returns them."""
    person = directory.get_entity(tx, by)
    if person.kind != "human":
        raise InvalidInput("Only people ask an agent for an answer. Write to it instead.")
    found: list[AgentId] = values(tx, _was_to_answer, space_id=message.space_id, message_id=message.id)
    for agent_id in found:
        who = speaker(person.name, None, person.handle)
        text = f"{who} changed a message and asks you to answer it as it is now:\n{message.text}"
        earlier = value(tx, _first_after, space_id=message.space_id, author_id=agent_id, seq=message.seq)
        _ask_waiting(tx, message.space_id, agent_id, text, message, person, earlier)
    return found


_was_to_answer = statement(
    select(events.c.agent_id)
    .join(agents, agents.c.id == events.c.agent_id)
    .join(
        memberships, (memberships.c.entity_id == events.c.agent_id) & (memberships.c.space_id == bindparam("space_id"))
    )
    .where(
        events.c.message_id == bindparam("message_id"),
        events.c.message_id.is_not(None),
        events.c.wakes == 1,
        events.c.state.in_(("done", "taken")),
        agents.c.status != "dead",
    )
    .order_by(events.c.agent_id)
)
_first_after = select_where(
    messages, "id", "space_id, author_id", messages.c.seq > bindparam("seq"), order_by="seq", limit=1
)
_last_of_person = statement(
    select(messages.c.id)
    .join(entities, entities.c.id == messages.c.author_id)
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq < bindparam("seq"),
        entities.c.kind == "human",
        messages.c.deleted_at.is_(None),
    )
    .order_by(messages.c.seq.desc())
    .limit(1)
)


def _answered_by(tx: Tx, answer: Message) -> Message | None:
    """The message that this one answers: what it replies to, otherwise the last one of a person before it."""
    earlier = answer.metadata.get(AGAIN)
    if isinstance(earlier, str):
        # Another answer is to what the first one was to.
        first = posting.find_message(tx, MessageId(earlier))
        return None if first is None else _answered_by(tx, first)
    found = answer.reply_to or value(tx, _last_of_person, space_id=answer.space_id, seq=answer.seq)
    return None if found is None else posting.find_message(tx, MessageId(found))


def _require_askable(tx: Tx, space_id: SpaceId, agent_id: AgentId, name: str) -> None:
    state = value(tx, _status, id=agent_id)
    if state is None or state == "dead":
        raise InvalidInput(f"{name} was deleted and cannot answer.")
    if not directory.is_member(tx, space_id, agent_id):
        raise InvalidInput(f"{name} is no longer in this space. Add it to the space, then ask.")


_status = select_where(agents, "status", "id")


def _ask_waiting(
    tx: Tx,
    space_id: SpaceId,
    agent_id: AgentId,
    text: str,
    about: Message,
    person: Entity,
    earlier: str | None,
    request: Mapping[str, JsonValue] | None = None,
) -> str:
    """Deliver the notice, and return its id: the person waits, so a status shows if the agent cannot answer now."""
    state = tx.one(_state, id=agent_id)
    assert state is not None
    statuses.clear(tx, agent_id, LEFT_UNANSWERED, space_id)
    parking.show_if_unable(tx, agent_id, space_id, about.id, status=state[0], held_by=state[1], held_until=state[2])
    made = _notice(tx, agent_id, space_id, text, about.id, asked_by=person.name, before=about.text)
    more = {**({AGAIN: earlier} if earlier else {}), **({OUTSIDE: True} if about.outside else {}), **(request or {})}
    payload = {**made.payload, **more}
    delivery.deliver(tx, [replace(made, payload=payload)])
    return made.id


def again_of(tx: Tx, taken: Iterable[Event], space_id: SpaceId, author_id: EntityId, cycle_id: str) -> str | None:
    """The earlier answer that the first message of this cycle to the space is another one to, if a person asked."""
    asked = [event.payload.get(AGAIN) for event in taken if event.space_id == space_id and AGAIN in event.payload]
    if not asked or posting.said_by(tx, space_id, author_id, cycle_id, limit=1):
        return None
    return str(asked[-1])


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
