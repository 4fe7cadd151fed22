"""Agents for clients of OpenAI's API: each agent is a model, and a completion is a message to it and its answer.

So is each panel that the caller is in, as `panel:` and its id: its answer is that of all advisors, under their names.

The agent keeps its own history. So only the last message of the user is said to it, in a space of the two; everything
it says there until its cycle ends is the answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from fastapi import Request, Response
from pydantic import JsonValue
from sqlalchemy import bindparam, select
from starlette.types import Receive

from denizen.agents import registry
from denizen.agents.chatting import Answer, AwaitedMessage, Question
from denizen.agents.explaining import answer_so_far
from denizen.clock import SECOND
from denizen.cycles.ledger import Charge
from denizen.errors import DenizenError, InvalidInput, NotFound
from denizen.ids import SpaceId
from denizen.models.tokens import estimate
from denizen.panel import panels
from denizen.panel.rounds import Round
from denizen.server import paneling
from denizen.server.answering import Pass, wait, wait_while_there, while_there
from denizen.server.auth import Caller, Person
from denizen.server.context import Context, context_of
from denizen.server.errors_of_openai import error_body
from denizen.server.idempotency import IdempotencyKey
from denizen.server.inline_files import GivenFile, file_in, from_base64
from denizen.server.problems import KINDS, Problem
from denizen.server.round_text import text_of
from denizen.server.router import new_router
from denizen.server.routes.chat import ask, seen_by
from denizen.server.routes.triggers import find_agent
from denizen.server.shapes.chat import final_response, waiting_note
from denizen.server.shapes.openai import (
    About,
    AssistantMessage,
    ChatMessage,
    Choice,
    Completion,
    CompletionRequest,
    ContentPart,
    Embedding,
    EmbeddingList,
    EmbeddingRequest,
    EmbeddingUsage,
    ErrorOut,
    FilePart,
    FinishReason,
    ImageUrl,
    InputAudio,
    ModelList,
    ModelOut,
    Usage,
    direction,
    packed,
    space_meant,
)
from denizen.server.sse import HEARTBEAT, EventStream, Say
from denizen.server.sse import MEDIA_TYPE as EVENTS
from denizen.server.telling import BETWEEN
from denizen.shapes.examples import text_answer
from denizen.spaces import directory
from denizen.storage.database import Tx, statement, storable
from denizen.storage.schema import entities

router = new_router("/v1", problem=ErrorOut)

_CHUNK: Final = "chat.completion.chunk"


@router.get("/models", summary="List agents as models")
async def list_agents_as_models(request: Request, caller: Person) -> ModelList:
    """Every agent of your organization is a model by its handle, every panel you are in by `panel:` and its id."""
    return await context_of(request).runtime.db.read(_models, caller)


@router.get("/models/{model}", summary="Get an agent as a model")
async def get_model(request: Request, caller: Person, model: str) -> ModelOut:
    """By its handle or id."""
    return await context_of(request).runtime.db.read(_model, model, caller)


_created = statement(select(entities.c.created_at).where(entities.c.id == bindparam("id")))


def _models(tx: Tx, caller: Caller) -> ModelList:
    home = caller.entity.organization_id
    owner = directory.get_organization(tx, home).name
    agents = [_shown(tx, agent, owner) for agent, _ in registry.living_agents(tx, home)]
    mine = panels.panels_of(tx, caller.entity.id)
    return ModelList(data=[*agents, *(ModelOut(id=paneling.shown(each), created=0, owned_by=owner) for each in mine)])


def _model(tx: Tx, named: str, caller: Caller) -> ModelOut:
    owner = directory.get_organization(tx, caller.entity.organization_id).name
    if named.startswith(paneling.MODEL):
        return ModelOut(id=paneling.shown(paneling.named(tx, named, caller)), created=0, owned_by=owner)
    return _shown(tx, find_agent(tx, _agent_named(tx, named, caller), caller), owner)


def _shown(tx: Tx, agent: registry.Agent, owner: str) -> ModelOut:
    row = tx.one(_created, id=agent.id)
    return ModelOut(id=agent.entity.handle, created=0 if row is None else row[0] // SECOND, owned_by=owner)


def _agent_named(tx: Tx, named: str, caller: Caller) -> str:
    """What `find_agent` understands: clients write the handle without its `@`."""
    try:
        return directory.find_entity(tx, caller.entity.organization_id, storable(named)).id
    except NotFound:
        return named


@router.post(
    "/chat/completions",
    summary="Send a message to an agent and get its answer",
    response_model=Completion,
    responses=text_answer(
        EVENTS,
        "The answer; with `stream`, in chunks.",
        'data: {"object":"chat.completion.chunk","model":"ada","choices":[{"index":0,"delta":{"content":"Good"}}]}\n\n',
    ),
)
async def complete_chat(
    request: Request, caller: Person, asked_for: CompletionRequest, key: IdempotencyKey = None
) -> Completion | Response:
    """Posts the last message of the user to your private space with the agent, or to the one that you choose with
    `metadata.space` or `user`. The answer is everything that it posts there until its cycle ends.

    With `stream`, chunks carry its text while it writes.
    """
    context = context_of(request)
    if asked_for.model.startswith(paneling.MODEL):
        return await _complete_panel(context, caller, asked_for, key, request.receive)
    said = _last_of_user(asked_for.messages)
    question = await context.runtime.db.read(_question, caller, asked_for, said.text)
    asked = await ask(context.runtime, caller, question, key, said.files)
    seconds = context.limits.completion_seconds

    async def told(pass_on: Pass) -> _End:
        answer = await wait(context, asked, seconds, pass_on, partial(_note, context, caller))
        _require_answer(answer)
        return _ended(asked, answer)

    if asked_for.stream:
        # What is known before the first chunk has the status of an error.
        _require_answer(await context.runtime.db.read(answer_so_far, asked))
        return EventStream(context, _Chunks(context, asked_for, asked.message_id, told).tell, has_last_words=True)
    answer = await wait_while_there(context, asked, seconds, request.receive) or Answer("working")
    _require_answer(answer)
    said = [final_response(answer).markdown, await _note(context, caller, answer)]
    return _completion(context, asked_for, BETWEEN.join(each for each in said if each), _ended(asked, answer))


async def _complete_panel(
    context: Context, caller: Caller, asked_for: CompletionRequest, key: str | None, receive: Receive
) -> Completion | Response:
    panel = await context.runtime.db.read(paneling.named, asked_for.model, caller)
    said = _last_of_user(asked_for.messages)
    begun = await paneling.ask(context, caller, panel, said.text, key, given=said.files)

    async def told(pass_on: Pass) -> _End:
        return _ended_round(await paneling.answer(context, begun, pass_on))

    if asked_for.stream:
        return EventStream(context, _Chunks(context, asked_for, begun.message_id, told).tell, has_last_words=True)
    now = await while_there(paneling.answer(context, begun), receive) or begun
    why = await paneling.why_unanswered(context, now)
    return _completion(context, asked_for, text_of(now.spoken, why), _ended_round(now))


@dataclass(frozen=True, slots=True)
class _End:
    """How an answer ended."""

    reason: FinishReason
    about: About
    spent: Charge


def _ended(asked: AwaitedMessage, answer: Answer) -> _End:
    about = About(outcome=answer.outcome, space_id=asked.space_id, message_id=asked.message_id, cycle=answer.cycle)
    return _End("length" if answer.outcome == "working" else "stop", about, answer.spent)


def _ended_round(now: Round) -> _End:
    outcome = "acted" if now.all_completed else "working"
    about = About(outcome=outcome, space_id=now.panel_id, message_id=now.message_id, cycle=None)
    return _End("stop" if now.all_completed else "length", about, paneling.spent(now))


def _completion(context: Context, asked_for: CompletionRequest, text: str, end: _End) -> Completion:
    return Completion(
        id=f"chatcmpl-{end.about.message_id}",
        created=context.runtime.clock.now() // SECOND,
        model=asked_for.model,
        choices=[Choice(message=AssistantMessage(content=text), finish_reason=end.reason)],
        usage=Usage.of(end.spent),
        denizen=end.about,
    )


def _question(tx: Tx, caller: Caller, asked_for: CompletionRequest, text: str) -> Question:
    metadata = asked_for.metadata or {}
    space, conversation = metadata.get("space"), ""
    if space is not None and not isinstance(space, str):
        raise InvalidInput("metadata.space: give the id of a space.")
    if space is None and asked_for.user:
        space, conversation = _chosen_by_user(tx, asked_for.user, caller)
    agent = _agent_named(tx, asked_for.model, caller)
    return Question(agent, text, space, conversation, dict(metadata) or None)


def _chosen_by_user(tx: Tx, user: str, caller: Caller) -> tuple[str | None, str]:
    """The space that `user` means, or the name of a private one."""
    named, means_space = space_meant(user)
    if directory.is_member(tx, SpaceId(storable(named)), caller.entity.id):
        return named, ""
    if means_space:
        # Else a mistyped id would open a private space in which nobody else ever reads anything.
        raise InvalidInput(
            f"user: {user!r} means a space by its id, and you are in no such space. "
            "GET /api/spaces lists yours; any other text has its own private space."
        )
    return None, user


@dataclass(frozen=True, slots=True)
class _UserMessage:
    """The last message of the user."""

    text: str
    files: tuple[GivenFile, ...] = ()


def _last_of_user(messages: Sequence[ChatMessage]) -> _UserMessage:
    said = next((each for each in reversed(messages) if each.role == "user"), None)
    if said is None:
        raise InvalidInput("messages: there is no message with the role `user`.")
    if isinstance(said.content, str):
        return _UserMessage(said.content)
    parts = said.content or []
    texts = [part.text or "" for part in parts if part.type == "text"]
    return _UserMessage("\n".join(texts), tuple(_file_in(part) for part in parts if part.type != "text"))


_AUDIO_TYPES: Final = {"mp3": "audio/mpeg", "wav": "audio/wav"}


def _file_in(part: ContentPart) -> GivenFile:
    match part:
        case ContentPart(type="image_url", image_url=ImageUrl(url=url)):
            return file_in("image_url", url)
        case ContentPart(type="input_audio", input_audio=InputAudio(data=data, format=format)):
            return from_base64("input_audio", data, _AUDIO_TYPES.get(format, f"audio/{format}"), f"audio.{format}")
        case ContentPart(type="file", file=FilePart(file_data=str(data), filename=name)):
            return file_in("file", data, name)
        case ContentPart(type="file", file=FilePart(file_id=str(file_id))):
            return file_in("file", file_id)
        case _:
            raise InvalidInput(
                f"messages: a part of the type {part.type[:40]!r} cannot be read here. Send `text`, `image_url`, "
                "`input_audio` or `file`, each with its contents."
            )


def _trouble(answer: Answer) -> Problem | None:
    """Why there is no answer, where that is an error. What the agent has said is not lost to one."""
    if answer.messages or answer.outcome not in ("failed", "parked", "suspended"):
        return None
    code = "message_refused" if answer.cause in ("refused", "too_large") else "agent_unavailable"
    # What was said is kept: clients that ask again by themselves after an error would say it twice.
    return Problem(code, answer.note, headers={"X-Should-Retry": "false"})


def _require_answer(answer: Answer) -> None:
    if (problem := _trouble(answer)) is not None:
        raise problem


async def _note(context: Context, caller: Caller, answer: Answer) -> str:
    if _trouble(answer) is not None:
        return ""
    waiting = await context.runtime.db.read(seen_by, caller, answer)
    return waiting_note(answer.note, waiting) if answer.note else ""


class _Chunks:
    """An answer as chunks of a chat completion."""

    def __init__(
        self,
        context: Context,
        asked_for: CompletionRequest,
        message_id: str,
        told: Callable[[Pass], Awaitable[_End]],
    ) -> None:
        self._told = told
        options = asked_for.stream_options
        self._with_usage = options is not None and options.include_usage
        self._common: dict[str, JsonValue] = {
            "id": f"chatcmpl-{message_id}",
            "object": _CHUNK,
            "created": context.runtime.clock.now() // SECOND,
            "model": asked_for.model,
        }

    async def tell(self, say: Say) -> None:
        await say(self._chunk({"role": "assistant", "content": ""}))
        try:
            end = await self._told(partial(self._pass, say))
        except DenizenError as error:
            # The answer has begun: what went wrong can only be said in it.
            await say(_data(error_body(_as_problem(error))))
            return
        except Problem as problem:
            told = {"status": problem.status_code, "code": problem.code, "detail": problem.detail}
            await say(_data(error_body(told)))
            return
        await say(self._chunk({}, end.reason, denizen=end.about.model_dump(mode="json")))
        if self._with_usage:
            usage = Usage.of(end.spent).model_dump(mode="json")
            await say(_data({**self._common, "choices": [], "usage": usage}))
        await say(b"data: [DONE]\n\n")

    async def _pass(self, say: Say, text: str) -> None:
        await say(self._chunk({"content": text}) if text else HEARTBEAT)

    def _chunk(self, delta: dict[str, JsonValue], finish: FinishReason | None = None, **more: JsonValue) -> bytes:
        choice: dict[str, JsonValue] = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**self._common, "choices": [choice], **more})


def _data(value: Mapping[str, object]) -> bytes:
    # Escaped, so that no client finds a line break in it.
    return f"data: {json.dumps(value)}\n\n".encode()


def _as_problem(error: DenizenError) -> dict[str, JsonValue]:
    kind = KINDS.get(error.code, KINDS["internal"])
    detail = str(error) if kind.status < 500 else (type(error).__doc__ or kind.title).strip()
    return {"status": kind.status, "code": error.code, "detail": detail}


@router.post("/embeddings", summary="Get the embeddings of texts")
async def embed(request: Request, caller: Person, asked: EmbeddingRequest) -> EmbeddingList:
    """From the embedder with which agents recall."""
    del caller  # anyone who may talk to agents
    embedder = context_of(request).runtime.embedder
    if embedder is None:
        raise InvalidInput("This server has no embedder. Its operator can set one with `embedder`.")
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    vectors = [direction(each) for each in await embedder.embed(texts)]
    if asked.dimensions is not None and any(len(each) != asked.dimensions for each in vectors):
        raise InvalidInput(f"dimensions: this embedder has {len(vectors[0])}.")
    in_base64 = asked.encoding_format == "base64"
    tokens = sum(map(estimate, texts))
    return EmbeddingList(
        data=[Embedding(index=at, embedding=packed(each) if in_base64 else each) for at, each in enumerate(vectors)],
        model=embedder.name,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )
