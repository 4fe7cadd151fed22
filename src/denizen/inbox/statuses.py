"""Space statuses: why a person who waits for an agent has no answer yet, in one plain sentence with what to do.

A status is a row of its own, one per space, agent and cause, updated in place. It is not a message: it makes no event,
wakes nobody and enters no log. It is written in the transaction that holds an event up, and goes when that is over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from pydantic import JsonValue
from sqlalchemy import ColumnElement, bindparam, delete, exists, or_, select

from denizen.bus.streams import StatusChanged, space_topic
from denizen.ids import AgentId, EntityId, MessageId, SpaceId
from denizen.inbox.events import Event
from denizen.shapes.vocabulary import StatusAction as Action
from denizen.shapes.vocabulary import StatusCause as Cause
from denizen.storage.database import (
    Statement,
    Tx,
    columns,
    insert_or_update,
    select_where,
    statement,
    update_where,
    values,
)
from denizen.storage.schema import entities, events, memberships, messages, space_statuses

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
ParkingCause = Literal["key", "model", "tool", "price", "definition"]
PARKING_CAUSES: Final[tuple[ParkingCause, ...]] = get_args(ParkingCause)
"""Causes in the agent: all its events wait, in order, until the cause changes."""
EventCause = Literal["refused", "too_large"]
EVENT_CAUSES: Final[tuple[EventCause, ...]] = get_args(EventCause)
"""Causes in a message: it is set aside, and the rest goes on."""
SET_ASIDE: Final[tuple[Cause, ...]] = (*EVENT_CAUSES, "gave_up", "interrupted")
"""A message that was set aside: what the agent says to others there does not answer it."""
LEFT_UNANSWERED: Final[tuple[Cause, ...]] = ("no_reply", "limit", "stopped")
"""A message that the agent has read and no longer answers by itself."""


@dataclass(frozen=True, slots=True)
class _Wording:
    trouble: str
    """What prevents the answer."""
    then: str
    """What happens next, and who can fix it."""
    actions: tuple[Action, ...] = ()
    elsewhere: str = ""
    """All of it for people in a room elsewhere, who cannot open the settings; "": as above, without the reason."""


_FIXED: Final = " Your message is kept. {agent} answers by itself when an admin has fixed this."

_WORDINGS: Final[Mapping[Cause, _Wording]] = {
    "key": _Wording(
        "{provider} rejected the API key of {agent}{because}.",
        "Check it under Administration › Keys; {agent} then answers by itself.",
        ("try_again", "settings"),
        "{agent} cannot answer now: the model that it thinks with denies it access." + _FIXED,
    ),
    "model": _Wording(
        "{agent} cannot use the model {model}{because}.",
        "Choose another model in the settings of {agent}; it then answers by itself.",
        ("try_again", "settings"),
        "{agent} cannot answer now: its model is not available." + _FIXED,
    ),
    "tool": _Wording(
        "{agent} cannot use one of its tools here{because}.",
        "Add the tool to this server, or take it out of the settings of {agent}; it then answers by itself.",
        ("try_again", "settings"),
        "{agent} cannot answer now: one of its tools is missing." + _FIXED,
    ),
    "price": _Wording(
        "{agent} has a budget in dollars, and the price of the model {model} is unknown.",
        "Set a price, or a budget in tokens; {agent} then answers by itself.",
        ("try_again", "settings"),
        "{agent} cannot answer now: what its model costs is unknown." + _FIXED,
    ),
    "definition": _Wording(
        "{agent} cannot start here{because}.",
        "Correct the settings of {agent}; it then answers by itself.",
        ("try_again", "settings"),
        "{agent} cannot answer now: its settings are not valid." + _FIXED,
    ),
    "failing": _Wording(
        "{agent} has trouble answering{because}.",
        "It tries again by itself.",
        ("try_again",),
        "{agent} has trouble answering. Your message is kept, and {agent} tries again by itself.",
    ),
    "refused": _Wording(
        "{provider} refused to process this message{because}.",
        "{agent} has set it aside and goes on with the rest.",
        ("try_again",),
        "{agent} could not process this message and goes on with the rest. Write it in other words, or ask an admin.",
    ),
    "too_large": _Wording(
        "This message is too long for the model {model}.",
        "{agent} has set it aside and goes on with the rest. Send it in parts, or choose a model with a larger window.",
        ("try_again", "settings"),
        "This message is too long for {agent}, which goes on with the rest. Send it in parts.",
    ),
    "gave_up": _Wording(
        "{agent} tried {count} times to answer this and failed{because}.",
        "It has set the message aside and goes on with the rest.",
        ("try_again",),
        "{agent} tried {count} times to answer this and failed. Write again, or ask an admin to have it tried again.",
    ),
    "interrupted": _Wording(
        "The server stopped {count} times while {agent} was reading this.",
        "{agent} has set the message aside and goes on with the rest.",
        ("try_again",),
        "The server stopped {count} times while {agent} was reading this. Write again, or ask an admin.",
    ),
    "limit": _Wording("{agent} reached its limit of {limit} before it had answered.", "Ask again.", ("ask",)),
    "no_reply": _Wording(
        "{agent} read this and did not reply.",
        "",
        ("ask",),
        "{agent} read this and did not reply. Write again if you need an answer.",
    ),
    "stopped": _Wording(
        "{by} stopped {agent} before it had answered.",
        "Ask again for an answer.",
        ("ask",),
        "{agent} was stopped before it had answered. Ask again for an answer.",
    ),
    "budget": _Wording(
        "The budget of {agent} is used up{because}.",
        "Your message is kept. {agent} answers when the budget begins anew or is raised.",
        ("budget",),
        "The budget of {agent} is used up. Your message is kept. {agent} answers when it begins anew or is raised.",
    ),
    "suspended": _Wording(
        "{agent} is suspended.",
        "Your message is kept. {agent} answers when somebody resumes it.",
        ("resume",),
        "{agent} is suspended. Your message is kept. {agent} answers when an admin resumes it.",
    ),
    "deleted": _Wording("{agent} was deleted and will not answer.", "Ask somebody else."),
}


_NO_KEY: Final = _Wording(
    "{agent} has no API key for {provider}.",
    "Add one under Administration › Keys; {agent} then answers by itself.",
    ("try_again", "settings"),
    "{agent} cannot answer now: it has no access to the model that it thinks with." + _FIXED,
)
"""For the cause `key`, where the detail `missing` says that there is no key."""
CREDIT_USED_UP: Final = "its credit is used up"
"""The detail `reason` of the cause `key`, if the key is good and its account has to be paid."""
_NO_CREDIT: Final = replace(
    _WORDINGS["key"],
    then="Add credit to its account, or set another key under Administration › Keys; {agent} then answers by itself.",
)
_NEXT_DAY: Final = "Your message is kept. {agent} answers after 00:00 UTC, or when an admin raises the limit."
_RAISED: Final = "Your message is kept. {agent} answers when an admin raises the limit."
_BUDGETS: Final[Mapping[str, _Wording]] = {
    "agent:day": _Wording("The budget of {agent} for today is used up.", _NEXT_DAY, ("budget",)),
    "agent:total": _Wording("The budget of {agent} is used up.", _RAISED, ("budget",)),
    "organization:day": _Wording("The organization's budget for today is used up.", _NEXT_DAY, ("budget",)),
    "organization:total": _Wording("The organization's budget is used up.", _RAISED, ("budget",)),
    "server:day": _Wording("The daily limit of this server is used up.", _NEXT_DAY, ("budget",)),
}
"""For the cause `budget`, by the detail `scope`: which budget is used up."""


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """Why one agent has not answered in one space."""

    space_id: SpaceId
    agent_id: AgentId
    agent_name: str
    cause: Cause
    detail: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    message_id: MessageId | None = None
    """The newest message that waits because of it."""
    retry_at: int | None = None
    """When the agent tries again by itself; None: not at a known time."""
    created_at: int = 0
    updated_at: int = 0

    @property
    def text(self) -> str:
        """What prevents the answer, what happens next and who can fix it, for the person who waits."""
        wording = _wording(self.cause, self.detail)
        return self._said(wording.trouble, wording.then, self.detail)

    @property
    def text_elsewhere(self) -> str:
        """The same for somebody in a room elsewhere, perhaps a guest: without the reason, which may tell of keys and
        providers, and without what they cannot open.
        """
        wording = _wording(self.cause, self.detail)
        detail = {name: value for name, value in self.detail.items() if name != "reason"}
        return self._said(*((wording.elsewhere, "") if wording.elsewhere else (wording.trouble, wording.then)), detail)

    def _said(self, trouble: str, then: str, detail: Mapping[str, JsonValue]) -> str:
        words = _Words(detail, agent=self.agent_name)
        said = " ".join(part.format_map(words) for part in (trouble, then) if part)
        return said[0].upper() + said[1:]

    @property
    def actions(self) -> tuple[Action, ...]:
        return _WORDINGS[self.cause].actions


def _wording(cause: Cause, detail: Mapping[str, JsonValue]) -> _Wording:
    if cause == "key" and detail.get("missing"):
        return _NO_KEY
    if cause == "key" and detail.get("reason") == CREDIT_USED_UP:
        return _NO_CREDIT
    if cause == "budget" and (budget := _BUDGETS.get(str(detail.get("scope")))) is not None:
        return budget
    return _WORDINGS[cause]


class _Words(dict[str, str]):
    """The values for the placeholders of a wording. A detail that another version did not write has a general word."""

    _GENERAL: Final = {
        "provider": "the provider",
        "model": "that it is set to",
        "count": "several",
        "limit": "its work",
        "by": "Someone",
    }

    def __init__(self, detail: Mapping[str, JsonValue], *, agent: str) -> None:
        reason = str(detail.get("reason") or "").strip().rstrip(".")
        super().__init__({name: str(value) for name, value in detail.items()})
        self.update(agent=agent, because=f": {reason}" if reason else "")

    def __missing__(self, name: str) -> str:
        return self._GENERAL.get(name, name)


_show = insert_or_update(space_statuses, set_="detail, message_id, retry_at, updated_at")
_is_member = select_where(memberships, "entity_id", "space_id, entity_id")


def show(
    tx: Tx,
    agent_id: AgentId,
    space_id: SpaceId,
    cause: Cause,
    *,
    message_id: MessageId | None = None,
    retry_at: int | None = None,
    **detail: JsonValue,
) -> None:
    """Show this status of the agent in the space, in place of an older one with the same cause.

    Shows nothing if the agent is no longer in the space.
    """
    if tx.one(_is_member, space_id=space_id, entity_id=agent_id) is None:
        return
    tx.run(
        _show,
        space_id=space_id,
        agent_id=agent_id,
        cause=cause,
        detail=json.dumps(detail, ensure_ascii=False),
        message_id=message_id,
        retry_at=retry_at,
        created_at=tx.now,
        updated_at=tx.now,
    )
    tx.announce(space_topic(space_id), StatusChanged(space_id, agent_id).to_payload())


_waiting_spaces = statement(
    select(events.c.space_id, events.c.message_id)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.state.in_(("pending", "taken")),
        events.c.waits == 1,
    )
    .order_by(events.c.number)
)


def show_where_someone_waits(
    tx: Tx, agent_id: AgentId, cause: Cause, *, retry_at: int | None = None, **detail: JsonValue
) -> None:
    """Show this status in every space in which a person waits for this agent."""
    waiting = {SpaceId(space): MessageId(message) for space, message in tx.all(_waiting_spaces, agent_id=agent_id)}
    for space_id, message_id in waiting.items():
        show(tx, agent_id, space_id, cause, message_id=message_id, retry_at=retry_at, **detail)


def show_for(
    tx: Tx,
    agent_id: AgentId,
    waiting: Iterable[Event],
    cause: Cause,
    detail: Mapping[str, JsonValue],
    *,
    retry_at: int | None = None,
) -> None:
    """Show this status in the spaces of those events that a person waits to have answered."""
    newest = {SpaceId(each.space_id): each.message_id for each in waiting if each.waits and each.space_id is not None}
    for space_id, message_id in newest.items():
        about = None if message_id is None else MessageId(message_id)
        show(tx, agent_id, space_id, cause, message_id=about, retry_at=retry_at, **detail)


_here = space_statuses.c.space_id == bindparam("space")
_cause = space_statuses.c.cause


def _clearing(*which: Any) -> Statement:
    """Deletes these statuses of an agent, and returns the spaces that showed them."""
    of_agent = space_statuses.c.agent_id == bindparam("agent")
    return statement(delete(space_statuses).where(of_agent, *which).returning(space_statuses.c.space_id))


_still_set_aside = exists().where(
    events.c.agent_id == space_statuses.c.agent_id,
    events.c.state != "done",
    events.c.state == "dead",
    events.c.waits == 1,
    events.c.space_id == space_statuses.c.space_id,
)
_still_failing = exists().where(
    events.c.agent_id == space_statuses.c.agent_id,
    events.c.state != "done",
    events.c.state == "pending",
    events.c.waits == 1,
    events.c.attempts > 0,
    events.c.space_id == space_statuses.c.space_id,
)
_by_person = exists().where(messages.c.id == space_statuses.c.message_id, messages.c.author_id == bindparam("person"))
_clear_after_answer = _clearing(_here, _cause.not_in(SET_ASIDE))
_clear_after_words = _clearing(_here, _cause.in_(("failing", *LEFT_UNANSWERED)))
_clear_earlier = _clearing(_here, or_(_cause.in_(LEFT_UNANSWERED), _cause.in_(SET_ASIDE) & _by_person))
_clear_tried_again = _clearing(_cause.in_(SET_ASIDE), ~_still_set_aside)
_clear_failing = _clearing(_cause == "failing", ~_still_failing)
_clear_cause = _clearing(_cause == bindparam("why"))
_clear_cause_in_space = _clearing(_here, _cause == bindparam("why"))
_clear_agent_in_space = _clearing(_here)


def _clear(tx: Tx, which: Statement, agent_id: AgentId, **where: str) -> None:
    for space in set(values(tx, which, agent=agent_id, **where)):
        tx.announce(space_topic(space), StatusChanged(space, agent_id).to_payload())


def clear(tx: Tx, agent_id: AgentId, causes: Iterable[Cause], space_id: SpaceId | None = None) -> None:
    """Clear the statuses with these causes, in that space or everywhere."""
    for cause in causes:
        if space_id is None:
            _clear(tx, _clear_cause, agent_id, why=cause)
        else:
            _clear(tx, _clear_cause_in_space, agent_id, why=cause, space=space_id)


def is_shown(agent_id: ColumnElement[str]) -> ColumnElement[bool]:
    """A condition: the agent has a status in the space `space_id`. Mostly it has none, and there is none to clear."""
    own = space_statuses.c.agent_id == agent_id, space_statuses.c.space_id == bindparam("space_id")
    return exists(select(space_statuses.c.agent_id).where(*own))


def clear_in_space(tx: Tx, agent_id: AgentId, space_id: SpaceId, *, thinking: bool) -> None:
    """Clear the statuses of an agent that has spoken in the space, by itself or through somebody in its name; the
    latter does not mean that it can think.

    Statuses of messages that were set aside stay: those have no answer.
    """
    _clear(tx, _clear_after_answer if thinking else _clear_after_words, agent_id, space=space_id)


def clear_earlier(tx: Tx, agent_id: AgentId, space_id: SpaceId, author_id: EntityId) -> None:
    """Clear the statuses for earlier messages of a person who speaks to the agent again."""
    _clear(tx, _clear_earlier, agent_id, space=space_id, person=author_id)


def clear_tried_again(tx: Tx, agent_id: AgentId) -> None:
    """Clear the statuses for messages that were set aside and have been taken up again."""
    _clear(tx, _clear_tried_again, agent_id)


def clear_failing(tx: Tx, agent_id: AgentId) -> None:
    """Clear "failing" for an agent that thinks again, except where a message still waits to be tried again."""
    _clear(tx, _clear_failing, agent_id)


def clear_agent_in_space(tx: Tx, agent_id: EntityId, space_id: SpaceId) -> None:
    """Clear the statuses of an agent that has left the space."""
    _clear(tx, _clear_agent_in_space, agent_id, space=space_id)


_of_message = select_where(space_statuses, "agent_id, cause", "space_id, message_id")
_newest_waiting = (
    select(events.c.message_id)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.state != "done",
        events.c.space_id == bindparam("space_id"),
        events.c.message_id != bindparam("message_id"),
        events.c.waits == 1,
    )
    .order_by(events.c.number.desc())
    .limit(1)
)
_newest_held_up = statement(_newest_waiting.where(events.c.state.in_(("pending", "taken"))))
_newest_set_aside = statement(_newest_waiting.where(events.c.state == "dead"))
_point_at = update_where(space_statuses, "agent_id", _here, _cause == bindparam("why"), set_="message_id")


def leave_out(tx: Tx, space_id: SpaceId, message_id: MessageId) -> None:
    """A deleted message: move a status that was shown for it to another waiting message, or clear it."""
    for agent_id, cause in tx.all(_of_message, space_id=space_id, message_id=message_id):
        newest = _newest_set_aside if cause in SET_ASIDE else _newest_held_up
        other = tx.one(newest, agent_id=agent_id, space_id=space_id, message_id=message_id)
        if other is None:
            clear(tx, agent_id, [cause], space_id)
        else:
            tx.run(_point_at, space=space_id, agent_id=agent_id, why=cause, message_id=other[0])
            tx.announce(space_topic(space_id), StatusChanged(space_id, agent_id).to_payload())


_clear_space = statement(delete(space_statuses).where(_here))


def clear_space(tx: Tx, space_id: SpaceId) -> None:
    """Clear all statuses of the space."""
    tx.run(_clear_space, space=space_id)


_statuses = select(
    space_statuses.c.space_id,
    space_statuses.c.agent_id,
    entities.c.name,
    *columns(space_statuses, "cause, detail, message_id, retry_at, created_at, updated_at"),
).join(entities, entities.c.id == space_statuses.c.agent_id)
_of_space = statement(
    _statuses.where(space_statuses.c.space_id == bindparam("space_id")).order_by(
        space_statuses.c.created_at, space_statuses.c.agent_id, space_statuses.c.cause
    )
)
_one = statement(
    _statuses.where(
        space_statuses.c.space_id == bindparam("space_id"),
        space_statuses.c.agent_id == bindparam("agent_id"),
        _cause == bindparam("cause"),
    )
)
_of_agent = statement(
    _statuses.where(space_statuses.c.agent_id == bindparam("agent_id")).order_by(
        space_statuses.c.created_at, space_statuses.c.space_id, space_statuses.c.cause
    )
)
_in_spaces_of = statement(
    _statuses.join(memberships, memberships.c.space_id == space_statuses.c.space_id)
    .where(memberships.c.entity_id == bindparam("entity_id"))
    .order_by(space_statuses.c.created_at, space_statuses.c.agent_id, space_statuses.c.cause)
)


def of_space(tx: Tx, space_id: SpaceId) -> list[SpaceStatus]:
    """The statuses of the space, oldest first."""
    return [_status(row) for row in tx.all(_of_space, space_id=space_id)]


def find(tx: Tx, space_id: SpaceId, agent_id: AgentId, cause: str) -> SpaceStatus | None:
    """The status of this agent in the space with this cause, if it is shown."""
    row = tx.one(_one, space_id=space_id, agent_id=agent_id, cause=cause)
    return None if row is None else _status(row)


def of_agent(tx: Tx, agent_id: AgentId) -> list[SpaceStatus]:
    """The statuses of this agent in all its spaces, oldest first."""
    return [_status(row) for row in tx.all(_of_agent, agent_id=agent_id)]


def in_spaces_of(tx: Tx, entity_id: EntityId) -> list[SpaceStatus]:
    """The statuses in the spaces of this entity, oldest first."""
    return [_status(row) for row in tx.all(_in_spaces_of, entity_id=entity_id)]


def _status(row: tuple[Any, ...]) -> SpaceStatus:
    space_id, agent_id, name, cause, detail, message_id, retry_at, created_at, updated_at = row
    return SpaceStatus(
        space_id, agent_id, name, cause, json.loads(detail), message_id, retry_at, created_at, updated_at
    )
