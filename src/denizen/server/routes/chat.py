"""One message to one agent, and what it says to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from fastapi import Request
from pydantic import JsonValue

from denizen.agents import chatting
from denizen.agents.chatting import Answer, AwaitedMessage
from denizen.agents.prompt_config import PromptConfig
from denizen.agents.registry import Agent
from denizen.app import Runtime
from denizen.errors import NotFound, OutcomeUnknown
from denizen.ids import AgentId, MessageId, SpaceId, new_id
from denizen.memory import reminding, rolling, settled
from denizen.memory.policy import Policy
from denizen.reflection.stance_store import AGENTS
from denizen.server.answering import wait_while_there
from denizen.server.auth import Caller, Person
from denizen.server.context import context_of
from denizen.server.idempotency import IdempotencyKey
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.routes.spaces import enter
from denizen.server.routes.triggers import find_agent
from denizen.server.schemas import call_out, message_out
from denizen.server.shapes.chat import ChatRequest, chat_usage_out, final_response
from denizen.shapes.chat import ChatAnswer
from denizen.spaces import posting
from denizen.spaces.posting import Draft
from denizen.storage.database import Tx, storable
from denizen.tools import calls
from denizen.tools.calls import Call

router = new_router()

_KEYS: Final = UUID("c2a3f1d4-7b60-4a5e-9f0c-3d8e6b1a2f59")
"""Under which idempotency keys become the ids of messages."""


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody wants to say to an agent."""

    agent: str
    """Its id, or its `@handle`."""
    text: str
    space: str | None = None
    """A space that both are in; None: the private one of the two."""
    conversation: str = ""
    """Which of their private ones."""
    metadata: dict[str, JsonValue] | None = None
    key: str | None = None
    policy: Policy | None = None
    """What shall be remembered of the conversation, where that is said."""


@router.post("/api/chat", summary="Say something to an agent and wait for its answer")
async def chat(request: Request, caller: Person, said: ChatRequest, key: IdempotencyKey = None) -> ChatAnswer:
    """Your message stands in the space, and the answer is everything that the agent says there until its cycle ends.

    The agent does not depend on you waiting: leave, or run out of time, and the answer is in the space. Asking again
    with the same `Idempotency-Key` waits for the same answer.
    """
    context = context_of(request)
    policy = None if said.memory_control is None else said.memory_control.as_policy()
    metadata = settled.asserting(said.metadata, said.organization_id, caller.entity.organization_id)
    question = Question(said.agent, said.text, said.space, metadata=metadata, key=key, policy=policy)
    asked = await ask(context.runtime, caller, question)
    answer = await wait_while_there(context, asked, said.seconds, request.receive)
    answer = answer or Answer("working")
    waiting, prompt_config = await context.runtime.db.read(_seen, caller, asked, answer, context.runtime.prompt_config)
    return ChatAnswer(
        outcome=answer.outcome,
        space_id=asked.space_id,
        message_id=asked.message_id,
        messages=[message_out(each) for each in answer.messages],
        final_response=final_response(answer),
        cycle=answer.cycle,
        usage=chat_usage_out(answer.spent),
        waiting_for=[call_out(each) for each in waiting],
        note=answer.note,
        cause=answer.cause,
        metadata={
            **(said.metadata or {}),
            **prompt_config,
            **await context.runtime.db.read(_remembered, asked, answer),
        },
    )


def _remembered(tx: Tx, asked: AwaitedMessage, answer: Answer) -> dict[str, JsonValue]:
    """What memory had to do with an answer."""
    told: dict[str, JsonValue] = {}
    state = rolling.find(tx, asked.space_id)
    if state.upto:
        told["rolling_memory"] = {
            "summary_markdown": state.summary,
            "memory_json": state.memory.model_dump(mode="json"),
            "upto": state.upto,
        }
    if answer.cycle_id is not None:
        retrieval = reminding.retrieval_of(tx, answer.agent_id or asked.agent_id, answer.cycle_id)
        if retrieval is not None:
            told["long_term_memory"] = retrieval
    return told


async def ask(runtime: Runtime, caller: Caller, question: Question) -> AwaitedMessage:
    """The message stands in the space and in the agent's inbox: the door to both."""
    # Rendering long Markdown takes its time: not on the event loop.
    what = await posting.draft_off_loop(question.text)
    chosen = new_id() if question.key is None else str(uuid5(_KEYS, f"{caller.entity.id} {question.key}"))

    async def post() -> AwaitedMessage:
        return await runtime.db.write(_ask, caller, question, what, MessageId(chosen))

    try:
        asked = await post()
    except OutcomeUnknown:
        asked = await post()
    if question.key is not None:
        await runtime.db.read(_check_same, asked, question)
    return asked


def _ask(tx: Tx, caller: Caller, question: Question, what: Draft, chosen: MessageId) -> AwaitedMessage:
    agent = find_agent(tx, question.agent, caller)
    space_id = _where(tx, caller, agent, question)
    if question.policy is not None:
        settled.settle(tx, space_id, question.policy)
    try:
        if question.key is not None and posting.get_message(tx, chosen).space_id != space_id:
            raise _reused()
    except NotFound:
        pass
    return chatting.ask(tx, space_id, caller.entity, agent, what, id=chosen, metadata=question.metadata)


def _where(tx: Tx, caller: Caller, agent: Agent, question: Question) -> SpaceId:
    if question.space is not None:
        return enter(tx, question.space, caller.entity.id).id
    return chatting.private_space(tx, caller.entity, agent, question.conversation).id


def _check_same(tx: Tx, asked: AwaitedMessage, question: Question) -> None:
    message = posting.get_message(tx, asked.message_id)
    if (message.text, message.metadata) != (storable(question.text), question.metadata or {}):
        raise _reused()


def _reused() -> Problem:
    return Problem("idempotency_key_reused", "You said something else with this Idempotency-Key: choose a new one.")


def _seen(
    tx: Tx, caller: Caller, asked: AwaitedMessage, answer: Answer, prompt_config: PromptConfig
) -> tuple[list[Call], dict[str, JsonValue]]:
    # Where neither profiles nor reflection are wanted, nothing more is read.
    tells = answer.cycle is not None and (asked.reflects or prompt_config.presets() is not None)
    return seen_by(tx, caller, answer), _prompt_config(
        tx, answer.agent_id or asked.agent_id, asked.space_id
    ) if tells else {}


def _prompt_config(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> dict[str, JsonValue]:
    """The profile and the state of mind that the agent has there."""
    stance = AGENTS.stance(tx, agent_id, space_id)
    return {
        "prompt_profile": {"id": stance.preset, "reason": stance.preset_reason},
        "state_of_mind": {**stance.state.as_dict()},
    }


def seen_by(tx: Tx, caller: Caller, answer: Answer) -> list[Call]:
    """What the agent waits for, as far as the caller may see and answer it."""
    seen: list[Call] = []
    for each in answer.waiting_for:
        try:
            seen.append(calls.require_visible(tx, each.id, caller.entity.id))
        except NotFound:
            continue
    return seen
