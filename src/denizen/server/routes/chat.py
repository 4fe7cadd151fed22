"""Posts one message to one agent, and returns its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID, uuid5

from fastapi import Request
from pydantic import JsonValue

from denizen.agents import chatting
from denizen.agents.chatting import AnswerState, AwaitedMessage, Question
from denizen.agents.prompt_config import PromptConfig
from denizen.app import Runtime
from denizen.errors import NotFound, OutcomeUnknown
from denizen.ids import AgentId, MessageId, SpaceId, new_id
from denizen.memory import rolling, stored_policies
from denizen.reflection.stance_store import AGENTS
from denizen.server.answering import wait_while_there
from denizen.server.auth import Caller, Person
from denizen.server.context import context_of
from denizen.server.idempotency import IdempotencyKey
from denizen.server.inline_files import GivenFile, file_in, store_all
from denizen.server.metadata import prompt_profile_out, retrieval_out
from denizen.server.router import new_router
from denizen.server.shapes.calls import call_out
from denizen.server.shapes.chat import ChatRequest, chat_usage_out, final_response
from denizen.server.shapes.spaces import message_out
from denizen.shapes.chat import ChatAnswer
from denizen.spaces import posting
from denizen.storage.database import Tx
from denizen.tools import calls
from denizen.tools.calls import Call

router = new_router()

_KEYS: Final = UUID("c2a3f1d4-7b60-4a5e-9f0c-3d8e6b1a2f59")
"""Under which idempotency keys become the ids of messages."""


@router.post("/api/chat", summary="Send a message to an agent and wait for its answer")
async def chat(request: Request, caller: Person, said: ChatRequest, key: IdempotencyKey = None) -> ChatAnswer:
    """Posts your message to the space. The answer is everything that the agent posts there until its cycle ends.

    If you disconnect or the time runs out, the agent still answers in the space. Repeating the request with the same
    `Idempotency-Key` waits for the same answer.
    """
    context = context_of(request)
    policy = None if said.memory_control is None else said.memory_control.as_policy()
    metadata = stored_policies.asserting(said.metadata, said.organization_id, caller.entity.organization_id)
    question = Question(said.agent, said.text, said.space, metadata=metadata, policy=policy)
    given = [file_in(f"files[{at}]", each) for at, each in enumerate(said.files)]
    asked = await ask(context.runtime, caller, question, key, given)
    answer = await wait_while_there(context, asked, said.seconds, request.receive)
    answer = answer or AnswerState("working")
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


def _remembered(tx: Tx, asked: AwaitedMessage, answer: AnswerState) -> dict[str, JsonValue]:
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
        retrieval = retrieval_out(tx, answer.agent_id or asked.agent_id, answer.cycle_id)
        if retrieval is not None:
            told["long_term_memory"] = retrieval.model_dump(mode="json")
    return told


async def ask(
    runtime: Runtime, caller: Caller, question: Question, key: str | None, given: Sequence[GivenFile] = ()
) -> AwaitedMessage:
    """Posts the question with its files, once for each key."""
    what = await posting.draft_off_loop(question.text, with_files=bool(given))
    chosen = MessageId(new_id() if key is None else str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    question = replace(question, files=await store_all(runtime, caller.entity.id, given, chosen))
    runtime.remember_cause(chosen)
    try:
        return await caller.write(chatting.ask, question, what, chosen)
    except OutcomeUnknown:
        return await caller.write(chatting.ask, question, what, chosen)


def _seen(
    tx: Tx, caller: Caller, asked: AwaitedMessage, answer: AnswerState, prompt_config: PromptConfig
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
        "prompt_profile": prompt_profile_out(stance).model_dump(mode="json"),
        "state_of_mind": {**stance.state.as_dict()},
    }


def seen_by(tx: Tx, caller: Caller, answer: AnswerState) -> list[Call]:
    """What the agent waits for, as far as the caller may see and answer it."""
    seen: list[Call] = []
    for each in answer.waiting_for:
        try:
            seen.append(calls.require_visible(tx, each.id, caller.entity.id))
        except NotFound:
            continue
    return seen
