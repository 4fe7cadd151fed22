"""Agents for clients of OpenAI's API: each agent is a model, and a completion is a message to it and its answer.

So is each panel that the caller is in, as `panel:` and its id: its answer is that of all advisors, under their names.

The agent keeps its own history. So only the last message of the user is said to it, in a space of the two; everything
it says there until its cycle ends is the answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Final, Protocol, cast

from fastapi import Header, Request, Response
from pydantic import JsonValue
from starlette.types import Receive

from denizen.access.requesters import agent_id_of
from denizen.agents import managing, registry
from denizen.agents.chatting import AnswerState, AwaitedMessage, Question, ToolResult, give_results, tools_of_program
from denizen.agents.resending import ResentRequest
from denizen.agents.side_tasks import TaskMessage, answer_for_agent, answer_for_panel
from denizen.agents.why_no_answer import answer_so_far
from denizen.clock import SECOND
from denizen.cycles.ledger import Charge
from denizen.errors import DenizenError, InvalidInput
from denizen.ids import SpaceId, new_id
from denizen.models.token_ids import texts_of_tokens
from denizen.models.tokens import estimate
from denizen.panel import panels
from denizen.panel.rounds import Round
from denizen.server import openai_panels, side_tasks
from denizen.server.answering import Pass, wait, wait_while_there, while_there
from denizen.server.auth import Caller
from denizen.server.context import Context, context_of
from denizen.server.foreign_errors import openai_error
from denizen.server.growing_text import BETWEEN
from denizen.server.idempotency import IdempotencyKey
from denizen.server.inline_files import GivenFile, file_in, from_base64
from denizen.server.on_behalf_of import OpenAICaller, add_notice, person_of
from denizen.server.openai_options import ProgramCall, RequestedAnswer, calls_for, requested, result_of
from denizen.server.problems import KINDS, Problem
from denizen.server.round_text import text_of
from denizen.server.router import new_router
from denizen.server.routes.chat import ask, seen_by
from denizen.server.shapes.chat import final_response, waiting_note
from denizen.server.shapes.openai import (
    SYSTEM_ROLES,
    About,
    AssistantMessage,
    CalledFunction,
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
    FunctionCall,
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
from denizen.shapes.examples import text_answer
from denizen.spaces import directory
from denizen.storage.database import Tx, select_where, storable, value
from denizen.storage.schema import entities

router = new_router("/v1", problem=ErrorOut)

_CHUNK: Final = "chat.completion.chunk"
RetryCount = Annotated[
    str | None,
    Header(
        alias="x-stainless-retry-count",
        max_length=10,
        description="How often this request was sent before; OpenAI's clients send it.",
    ),
]
JSON_WANTED: Final = "Answer with a JSON object and nothing else, of this JSON Schema: {schema}"
IGNORED: Final = "Ignored: {fields}. Agents have their own settings and instructions."
SIDE_TASK: Final = "This is a side task, such as a title: the utility model answered it, and no agent has read it."


@router.get("/models", summary="List agents as models")
async def list_agents_as_models(caller: OpenAICaller) -> ModelList:
    """Every agent of your organization is a model by its handle, every panel you are in by `panel:` and its id."""
    return await caller.runtime.db.read(_models, caller)


@router.get("/models/{model}", summary="Get an agent as a model")
async def get_model(caller: OpenAICaller, model: str) -> ModelOut:
    """By its handle or id."""
    return await caller.runtime.db.read(_model, model, caller)


_created = select_where(entities, "created_at", "id")


def _models(tx: Tx, caller: Caller) -> ModelList:
    home = caller.entity.organization_id
    owner = directory.get_organization(tx, home).name
    agents = [_shown(tx, agent, owner) for agent, _ in registry.living_agents(tx, home)]
    mine = panels.panels_of(tx, caller.entity.id)
    return ModelList(
        data=[*agents, *(ModelOut(id=openai_panels.shown(each), created=0, owned_by=owner) for each in mine)]
    )


def _model(tx: Tx, named: str, caller: Caller) -> ModelOut:
    owner = directory.get_organization(tx, caller.entity.organization_id).name
    if named.startswith(openai_panels.MODEL):
        return ModelOut(id=openai_panels.shown(openai_panels.named(tx, named, caller)), created=0, owned_by=owner)
    return _shown(tx, _agent(tx, named, caller), owner)


def _shown(tx: Tx, agent: registry.Agent, owner: str) -> ModelOut:
    created: int = value(tx, _created, id=agent.id) or 0
    return ModelOut(id=agent.entity.handle, created=created // SECOND, owned_by=owner)


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
    request: Request,
    caller: OpenAICaller,
    asked_for: CompletionRequest,
    key: IdempotencyKey = None,
    retries: RetryCount = None,
) -> Completion | Response:
    """Posts the last message of the user to your private space with the agent, or to the one that you choose with
    `metadata.space` or `user`. The answer is everything that it posts there until its cycle ends.

    With `stream`, chunks carry its text while it writes.
    """
    ignored = asked_for.ignored_fields()
    context, begun = context_of(request), await begin(request, caller, asked_for, key, retries, ignored=ignored)
    if asked_for.stream:
        await begun.require_possible()
        return EventStream(context, _Chunks(context, asked_for, begun).tell, has_last_words=True)
    return _completion(context, asked_for, begun.id, *await begun.whole(request.receive))


class RunningCompletion(Protocol):
    """An answer that is under way."""

    @property
    def id(self) -> str:
        """The id of the message that it answers."""
        ...

    async def require_possible(self) -> None:
        """Raises what is known at once: before the first piece of text, it has the status of an error."""
        ...

    async def tell(self, pass_on: Pass) -> AnswerEnd:
        """Passes the text on as it is written."""
        ...

    async def whole(self, receive: Receive) -> tuple[str, AnswerEnd]:
        """Returns the text when it is complete."""
        ...


@dataclass(frozen=True, slots=True)
class ContinuedMessage:
    """The earlier message whose conversation a request continues."""

    message_id: str
    space_id: str


async def begin(
    request: Request,
    caller: Caller,
    asked_for: CompletionRequest,
    key: str | None,
    retries: str | None,
    continued: Callable[[Tx, Caller], ContinuedMessage | None] = lambda _tx, _caller: None,
    ignored: Sequence[str] = (),
) -> RunningCompletion:
    """Posts the last message of the user, to an agent or a panel, or has the utility model answer a side task.

    `ignored` are fields of the request that have no effect; the answer's headers say so.
    """
    is_task = asked_for.model.startswith(side_tasks.MODEL) or side_tasks.is_side_task(asked_for.messages)
    if not is_task and any(each.role in SYSTEM_ROLES for each in asked_for.messages):
        ignored = [*ignored, "system messages"]
    if ignored:
        add_notice(request, IGNORED.format(fields=", ".join(ignored)))
    context, caller = context_of(request), await person_of(request, caller, asked_for.user)
    if is_task:
        done = await _side_task(context, caller, asked_for)
        add_notice(request, SIDE_TASK)
        return done
    if asked_for.model.startswith(openai_panels.MODEL):
        _wanted(asked_for).refuse_for("a panel")
        panel = await context.runtime.db.read(openai_panels.named, asked_for.model, caller)
        said = _last_of_user(asked_for.messages)
        return _PanelAnswer(context, await openai_panels.ask(context, caller, panel, said.text, key, given=said.files))
    before = await context.runtime.db.read(continued, caller)
    wanted, asked = await _ask(context, caller, asked_for, key, retries, before)
    return _AgentAnswer(context, caller, asked, wanted)


async def _ask(
    context: Context,
    caller: Caller,
    asked_for: CompletionRequest,
    key: str | None,
    retries: str | None,
    continued: ContinuedMessage | None,
) -> tuple[RequestedAnswer, AwaitedMessage]:
    """Posts the last message of the user, or gives the results of tools that follow it."""
    results = _results(asked_for.messages)
    agent = await context.runtime.db.read(_agent, asked_for.model, caller)
    own_tools = [each if isinstance(each, str) else each.name for each in agent.definition.tools]
    wanted = _wanted(asked_for, own_tools)
    if results:
        return wanted, await context.runtime.db.write(give_results, caller.requester, results)
    said = _last_of_user(asked_for.messages)
    question = await context.runtime.db.read(_question, caller, asked_for, said.text)
    resent = _resent(asked_for.messages, said.text, retries)
    if continued is not None:
        resent = replace(resent, has_history=True, knows_answer_to=continued.message_id)
        question = replace(question, space=question.space or continued.space_id)
    question = replace(question, resent=resent, request=wanted.payload)
    return wanted, await ask(context.runtime, caller, question, key, said.files)


def _wanted(asked_for: CompletionRequest, others: Collection[str] = ()) -> RequestedAnswer:
    tools = [each.function for each in asked_for.tools or []]
    return requested(tools, asked_for.tool_choice, asked_for.response_format, others)


def _results(messages: Sequence[ChatMessage]) -> list[ToolResult]:
    """The results of tools with which the conversation ends."""
    trailing = list(takewhile(lambda each: each.role == "tool", reversed(messages)))
    return [result_of(each.tool_call_id or "", each.text) for each in reversed(trailing)]


class _AgentAnswer:
    """Waits for an agent's answer to one message, and has it in the form that the program wants."""

    def __init__(self, context: Context, caller: Caller, asked: AwaitedMessage, wanted: RequestedAnswer) -> None:
        self._context = context
        self._caller = caller
        self._asked = asked
        self._wanted = wanted
        self._seconds = context.limits.completion_seconds
        self.id: str = asked.message_id

    async def require_possible(self) -> None:
        _require_answer(await self._context.runtime.db.read(answer_so_far, self._asked))

    async def whole(self, receive: Receive) -> tuple[str, AnswerEnd]:
        waiting = wait_while_there(self._context, self._asked, self._seconds, receive)
        answer = await waiting or AnswerState("working")
        return await self._text(answer), await self._ended(answer)

    async def tell(self, pass_on: Pass) -> AnswerEnd:
        # All at once if it has to have a form: it cannot be taken back.

        async def alive(_: str) -> None:
            await pass_on("")

        formed = self._wanted.format is not None
        last_words = None if formed else self._note
        answer = await wait(self._context, self._asked, self._seconds, alive if formed else pass_on, last_words)
        if formed:
            await pass_on(await self._text(answer))
        else:
            _require_answer(answer)
        return await self._ended(answer)

    async def _text(self, answer: AnswerState) -> str:
        _require_answer(answer)
        text = final_response(answer).markdown
        if self._wanted.format is not None and answer.outcome == "acted":
            return self._wanted.checked(text)
        return BETWEEN.join(each for each in (text, await self._note(answer)) if each)

    async def _note(self, answer: AnswerState) -> str:
        return "" if await self._calls(answer) else await _note(self._context, self._caller, answer)

    async def _calls(self, answer: AnswerState) -> list[ProgramCall]:
        if answer.outcome != "paused":
            return []
        names = await self._context.runtime.db.read(tools_of_program, self._asked)
        return calls_for(answer.waiting_for, names, self._asked.event)

    async def _ended(self, answer: AnswerState) -> AnswerEnd:
        end, calls = _ended(self._asked, answer), await self._calls(answer)
        return replace(end, reason="tool_calls", calls=calls) if calls else end


class _PanelAnswer:
    """Waits for the answers of a panel's advisors."""

    def __init__(self, context: Context, begun: Round) -> None:
        self._context = context
        self._begun = begun
        self.id: str = begun.message_id

    async def require_possible(self) -> None:
        """Nothing is known at once."""

    async def tell(self, pass_on: Pass) -> AnswerEnd:
        return _ended_round(await openai_panels.answer(self._context, self._begun, pass_on))

    async def whole(self, receive: Receive) -> tuple[str, AnswerEnd]:
        now = await while_there(openai_panels.answer(self._context, self._begun), receive) or self._begun
        return text_of(now.spoken, await openai_panels.why_unanswered(self._context, now)), _ended_round(now)


@dataclass(frozen=True, slots=True)
class _SideTaskAnswer:
    """The answer to a side task, which is there already."""

    id: str
    text: str
    end: AnswerEnd

    async def require_possible(self) -> None:
        """It is there."""

    async def tell(self, pass_on: Pass) -> AnswerEnd:
        await pass_on(self.text)
        return self.end

    async def whole(self, receive: Receive) -> tuple[str, AnswerEnd]:
        del receive  # nobody has to wait
        return self.text, self.end


async def _side_task(context: Context, caller: Caller, asked_for: CompletionRequest) -> _SideTaskAnswer:
    wanted = _wanted(asked_for)
    if wanted.tools:
        raise InvalidInput("tools: a side task has no use for them. Leave them out.")
    lines = [
        TaskMessage("user" if each.role == "user" else "system", each.text)
        for each in asked_for.messages
        if each.role == "user" or each.role in SYSTEM_ROLES
    ]
    if wanted.format is not None:
        lines.append(TaskMessage("system", JSON_WANTED.format(schema=json.dumps(wanted.format, separators=(",", ":")))))
    model, runtime = asked_for.model.removeprefix(side_tasks.MODEL), context.runtime
    if model.startswith(openai_panels.MODEL):
        panel = await runtime.db.read(openai_panels.named, model, caller)
        done = await answer_for_panel(runtime.panel_deps(), panel, lines)
    else:
        agent = await runtime.db.read(_agent, model, caller)
        done = await answer_for_agent(runtime.equipment(), agent, lines)
    return _SideTaskAnswer(new_id(), wanted.checked(done.text), AnswerEnd("stop", None, done.spent))


def _agent(tx: Tx, named: str, caller: Caller) -> registry.Agent:
    return managing.find(tx, caller.requester, agent_id_of(tx, caller.requester, named))


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """How an answer ended."""

    reason: FinishReason
    about: About | None
    spent: Charge
    calls: Sequence[ProgramCall] = ()
    """The calls of the program's tools that the agent waits for."""


def _ended(asked: AwaitedMessage, answer: AnswerState) -> AnswerEnd:
    about = About(outcome=answer.outcome, space_id=asked.space_id, message_id=asked.message_id, cycle=answer.cycle)
    return AnswerEnd("length" if answer.outcome == "working" else "stop", about, answer.spent)


def _ended_round(now: Round) -> AnswerEnd:
    outcome = "acted" if now.all_completed else "working"
    about = About(outcome=outcome, space_id=now.panel_id, message_id=now.message_id, cycle=None)
    return AnswerEnd("stop" if now.all_completed else "length", about, openai_panels.spent(now))


def _completion(context: Context, asked_for: CompletionRequest, id: str, text: str, end: AnswerEnd) -> Completion:
    return Completion(
        id=f"chatcmpl-{id}",
        created=context.runtime.clock.now() // SECOND,
        model=asked_for.model,
        choices=[Choice(message=_message(text, end.calls), finish_reason=end.reason)],
        usage=Usage.of(end.spent),
        denizen=end.about,
    )


def _message(text: str, calls: Sequence[ProgramCall]) -> AssistantMessage:
    called = [_tool_call(each) for each in calls]
    return AssistantMessage(content=text or None if called else text, tool_calls=called or None)


def _tool_call(call: ProgramCall) -> FunctionCall:
    return FunctionCall(id=call.id, function=CalledFunction(name=call.name, arguments=call.arguments))


def _question(tx: Tx, caller: Caller, asked_for: CompletionRequest, text: str) -> Question:
    metadata = asked_for.metadata or {}
    space, conversation = metadata.get("space"), ""
    if space is not None and not isinstance(space, str):
        raise InvalidInput("metadata.space: give the id of a space.")
    if space is None and asked_for.user and not caller.token.speaks_for_others:
        space, conversation = _chosen_by_user(tx, asked_for.user, caller)
    agent = agent_id_of(tx, caller.requester, asked_for.model)
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


def _resent(messages: Sequence[ChatMessage], text: str, retries: str | None) -> ResentRequest:
    """What the request says about earlier ones: OpenAI's clients count their retries, and send their history."""
    spoken = [each for each in messages if each.role in ("user", "assistant")]
    last = max(at for at, each in enumerate(spoken) if each.role == "user")
    history = spoken[:last]
    before = max((at for at, each in enumerate(history) if each.role == "user"), default=None)
    answer = None
    if before is not None and history[before].text == text:
        answer = "\n\n".join(each.text for each in history[before + 1 :]) or None
    is_retry = retries is not None and retries.isdecimal() and int(retries) > 0
    return ResentRequest(is_retry=is_retry, has_history=bool(history), previous_answer=answer)


@dataclass(frozen=True, slots=True)
class _UserMessage:
    """The last message of the user."""

    text: str
    files: tuple[GivenFile, ...] = ()


def _last_of_user(messages: Sequence[ChatMessage]) -> _UserMessage:
    said = next((each for each in reversed(messages) if each.role == "user"), None)
    if said is None:
        raise InvalidInput("messages: there is no message with the role `user`.")
    parts = [] if isinstance(said.content, str) else said.content or []
    return _UserMessage(said.text, tuple(_file_in(part) for part in parts if part.type != "text"))


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


def _trouble(answer: AnswerState) -> Problem | None:
    """Why there is no answer, where that is an error. What the agent has said is not lost to one."""
    if answer.messages or answer.outcome not in ("failed", "parked", "suspended"):
        return None
    code = "message_refused" if answer.cause in ("refused", "too_large") else "agent_unavailable"
    # What was said is kept: clients that ask again by themselves after an error would say it twice.
    return Problem(code, answer.note, headers={"X-Should-Retry": "false"})


def _require_answer(answer: AnswerState) -> None:
    if (problem := _trouble(answer)) is not None:
        raise problem


async def _note(context: Context, caller: Caller, answer: AnswerState) -> str:
    if _trouble(answer) is not None:
        return ""
    waiting = await context.runtime.db.read(seen_by, caller, answer)
    return waiting_note(answer.note, waiting) if answer.note else ""


class _Chunks:
    """An answer as chunks of a chat completion."""

    def __init__(self, context: Context, asked_for: CompletionRequest, begun: RunningCompletion) -> None:
        self._begun = begun
        options = asked_for.stream_options
        self._with_usage = options is not None and options.include_usage
        self._common: dict[str, JsonValue] = {
            "id": f"chatcmpl-{begun.id}",
            "object": _CHUNK,
            "created": context.runtime.clock.now() // SECOND,
            "model": asked_for.model,
        }

    async def tell(self, say: Say) -> None:
        await say(self._chunk({"role": "assistant", "content": ""}))
        try:
            end = await self._begun.tell(partial(self._pass, say))
        except (DenizenError, Problem) as error:
            # The answer has begun: what went wrong can only be said in it.
            await say(_data(error_in(error)))
            return
        for at, each in enumerate(end.calls):
            await say(self._chunk({"tool_calls": [{"index": at, **_tool_call(each).model_dump(mode="json")}]}))
        about = None if end.about is None else end.about.model_dump(mode="json")
        await say(self._chunk({}, end.reason, denizen=about))
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


def error_in(error: DenizenError | Problem) -> dict[str, Any]:
    """What went wrong, in OpenAI's format, in an answer that has begun."""
    if isinstance(error, Problem):
        return openai_error({"status": error.status_code, "code": error.code, "detail": error.detail})
    kind = KINDS.get(error.code, KINDS["internal"])
    detail = str(error) if kind.status < 500 else (type(error).__doc__ or kind.title).strip()
    return openai_error({"status": kind.status, "code": error.code, "detail": detail})


def _texts_to_embed(asked: EmbeddingRequest) -> list[str]:
    """Blocking: a vocabulary is read when tokens are first sent."""
    match asked.input:
        case str() as text:
            return [text]
        case [str(), *_] as texts:
            return texts
        case [int(), *_] as tokens:
            return texts_of_tokens(asked.model, [tokens])
        case several:
            return texts_of_tokens(asked.model, cast("list[list[int]]", several))


@router.post("/embeddings", summary="Get the embeddings of texts")
async def embed(caller: OpenAICaller, asked: EmbeddingRequest) -> EmbeddingList:
    """From the embedder with which agents recall."""
    embedder = caller.runtime.embedder
    if embedder is None:
        raise InvalidInput("This server has no embedder. Its operator can set one with `embedder`.")
    texts = await asyncio.to_thread(_texts_to_embed, asked)
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
