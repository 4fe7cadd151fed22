"""Tasks that other agents and programs give to an agent by A2A: each is a message to it, with the event in its inbox.

Nothing of a task is stored beside these. So a task survives what a message survives: a crash, a restart, another
instance that goes on with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from sqlalchemy import Text, and_, bindparam, func, or_, select

from denizen.access.requesters import Requester
from denizen.agents import managing, registry, resending
from denizen.agents.chatting import AwaitedMessage, Question
from denizen.agents.private_spaces import private_space_id
from denizen.agents.registry import Agent
from denizen.agents.why_no_answer import answer_so_far
from denizen.errors import InvalidInput, NotFound, existing
from denizen.ids import AgentId, MessageId, SpaceId
from denizen.spaces import directory, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, statement, storable, value, values
from denizen.storage.schema import memberships, messages

MARK: Final = "a2a"
"""The field of a message's metadata that says that it is a task, or answers a question of one."""
CONTEXT_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class PublicTask:
    """A message that is a task, and where its answer is waited for."""

    message: Message
    asked: AwaitedMessage
    context: str
    """The conversation that it belongs to: the id of a space, or a name that its caller chose."""


def find_public(tx: Tx, agent_id: str) -> Agent:
    """The agent, if it has a public card: no caller is needed to read it."""
    try:
        agent = registry.get(tx, AgentId(storable(agent_id)))
    except NotFound:
        raise NotFound("public agent", agent_id) from None
    if not agent.definition.a2a or registry.status(tx, agent.id) == "dead":
        raise NotFound("public agent", agent_id)
    return agent


def question_for(tx: Tx, by: Requester, agent_id: str, text: str, context: str) -> tuple[Question, str]:
    """The question that a new task asks, and the context of the task. An empty context is the private space."""
    agent = managing.find(tx, by, find_public(tx, agent_id).id)
    if len(context) > CONTEXT_CHARACTERS:
        raise InvalidInput(f"contextId: it may have {CONTEXT_CHARACTERS} characters, this has {len(context)}.")
    space, conversation = None, ""
    if not context:
        context = private_space_id(by.entity_id, agent.id)
    elif directory.is_member(tx, SpaceId(storable(context)), by.entity_id):
        space = context
    elif context != private_space_id(by.entity_id, agent.id):
        conversation = context
    return Question(agent.id, text, space, conversation, _metadata(context)), context


def _metadata(context: str) -> dict[str, JsonValue]:
    return {MARK: {"context": storable(context)}}


def answer_for(tx: Tx, by: Requester, task: PublicTask, text: str) -> Question:
    """The message that answers a question of the agent, in words. Raises `InvalidInput` if the agent asks nothing."""
    by.require("member")
    if answer_so_far(tx, task.asked).outcome != "paused":
        raise InvalidInput("The task does not wait for you. Send the message without taskId, as another task.")
    metadata: dict[str, JsonValue] = {MARK: {"context": task.context, "task": task.message.id}}
    return Question(task.asked.agent_id, text, task.asked.space_id, metadata=metadata)


def find_task(tx: Tx, by: Requester, agent_id: str, task_id: str) -> PublicTask:
    """A task that the requester has given to this agent, in a space that they are in. Raises `NotFound` otherwise."""
    by.require("member")
    agent = managing.find(tx, by, find_public(tx, agent_id).id)
    message = posting.find_message(tx, MessageId(storable(task_id)))
    return existing(None if message is None else _task_in(tx, message, agent.id, by), "task", task_id)


def _task_in(tx: Tx, message: Message, agent_id: AgentId, by: Requester) -> PublicTask | None:
    match message.metadata.get(MARK):
        case {"context": str(context), **more} if "task" not in more:
            pass
        case _:
            return None
    event = resending.event_of_message(tx, agent_id, message.id)
    if message.author_id != by.entity_id or message.deleted_at is not None or event is None:
        return None
    if not directory.is_member(tx, message.space_id, by.entity_id):
        return None
    asked = AwaitedMessage(message.id, message.space_id, message.seq, agent_id, event, by.entity_id)
    return PublicTask(message, asked, context)


_is_task = and_(
    messages.c.author_id == bindparam("author_id"),
    messages.c.deleted_at.is_(None),
    messages.c.metadata.like(f'{{"{MARK}": {{"context": %'),
    messages.c.metadata.not_like(f'{{"{MARK}": {{"context": %, "task": %'),
    messages.c.space_id.in_(
        select(memberships.c.space_id)
        .where(memberships.c.entity_id == bindparam("author_id"))
        .intersect(select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("agent_id")))
    ),
    or_(bindparam("stored", type_=Text) == "", messages.c.metadata == bindparam("stored")),
)
_before = or_(
    messages.c.created_at < bindparam("at"),
    and_(messages.c.created_at == bindparam("at"), messages.c.id < bindparam("id")),
)
_tasks = statement(
    select(messages.c.id)
    .where(_is_task, _before)
    .order_by(messages.c.created_at.desc(), messages.c.id.desc())
    .limit(bindparam("limit"))
)
_count = statement(select(func.count()).select_from(messages).where(_is_task))


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks of one caller, newest first."""

    tasks: Sequence[PublicTask]
    total: int
    next: str
    """The id of the last one if there are more; otherwise empty."""


def list_tasks(tx: Tx, by: Requester, agent_id: str, context: str, after: str, limit: int) -> TaskPage:
    """The tasks that the requester has given to this agent, after the one with this id."""
    by.require("member")
    agent = managing.find(tx, by, find_public(tx, agent_id).id)
    last = find_task(tx, by, agent_id, after).message if after else None
    stored = json.dumps(_metadata(context)) if context else ""
    which = {"author_id": by.entity_id, "agent_id": agent.id, "stored": stored}
    at, id = (posting.END, "") if last is None else (last.created_at, last.id)
    ids = values(tx, _tasks, **which, at=at, id=id, limit=limit)
    found = [_task_in(tx, posting.get_message(tx, MessageId(each)), agent.id, by) for each in ids]
    tasks = [each for each in found if each is not None]
    return TaskPage(tasks, value(tx, _count, **which), ids[-1] if len(ids) == limit else "")
