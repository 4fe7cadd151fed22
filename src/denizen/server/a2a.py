"""The operations of A2A (Agent2Agent) on the tasks of a public agent.

Each calls the use case that answers the same request over HTTP, so that both allow and store the same.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from fastapi import Request, Response
from pydantic import JsonValue, ValidationError

from denizen.agents import messaging, public_tasks
from denizen.agents.chatting import AnswerState
from denizen.agents.public_tasks import PublicTask
from denizen.agents.why_no_answer import answer_so_far
from denizen.errors import DenizenError, InvalidInput, NotFound
from denizen.server.answering import wait, wait_while_there
from denizen.server.auth import Caller, require
from denizen.server.context import Context, context_of
from denizen.server.problems import KINDS, Problem
from denizen.server.routes import chat
from denizen.server.shapes.a2a import (
    TERMINAL,
    VERSION,
    ListParams,
    SendParams,
    TaskParams,
    artifact_out,
    state_of,
    status_out,
    task_out,
)
from denizen.server.shapes.chat import waiting_note
from denizen.server.sse import HEARTBEAT, EventStream, Say, counted_stream

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
TASK_NOT_FOUND: Final = -32001
NOT_CANCELABLE: Final = -32002
NO_PUSH: Final = -32003
UNSUPPORTED: Final = -32004
CONTENT_TYPE: Final = -32005
NO_EXTENDED_CARD: Final = -32007
WRONG_VERSION: Final = -32009

Result: TypeAlias = Mapping[str, JsonValue]


class A2aError(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Operation:
    """One request: who asks which agent."""

    request: Request
    caller: Caller
    agent_id: str
    id: JsonValue
    """The id of the request, which its answer repeats."""
    params: Mapping[str, Any]

    @property
    def context(self) -> Context:
        return context_of(self.request)


async def answer(request: Request, caller: Caller, agent_id: str, asked: Any) -> Response:
    """Answers one JSON-RPC request. Everything that goes wrong is an error of the protocol, not of HTTP."""
    id = _id_of(asked)
    try:
        require(caller, "member")
        method, params = _method_of(request, asked)
        result = await _METHODS[method](Operation(request, caller, agent_id, id, params))
    except (A2aError, DenizenError, Problem, ValidationError) as error:
        return _json(_failed(id, error))
    return result if isinstance(result, Response) else _json(_result(id, result))


def _id_of(asked: Any) -> JsonValue:
    match asked:
        case {"id": str() | int() as id}:
            return id
        case _:
            return None


def _method_of(request: Request, asked: Any) -> tuple[str, Mapping[str, Any]]:
    version = request.headers.get("a2a-version", "").strip()
    if version and version.split(".")[:2] != VERSION.split("."):
        raise A2aError(WRONG_VERSION, f"This server speaks A2A {VERSION}, not {version[:20]}.")
    match asked:
        case {"jsonrpc": "2.0", "method": str(method), **more} if isinstance(more.get("params", {}), dict):
            pass
        case _:
            raise A2aError(
                INVALID_REQUEST, 'Send one JSON-RPC request: {"jsonrpc": "2.0", "method": "SendMessage", …}.'
            )
    if method in _METHODS:
        return method, more.get("params", {})
    if "/" in method:
        raise A2aError(WRONG_VERSION, f"{method[:60]} is a method of A2A 0.3. This server speaks A2A {VERSION}.")
    raise A2aError(METHOD_NOT_FOUND, f"There is no method {method[:60]}. There are {', '.join(_METHODS)}.")


# Operations


async def _send(operation: Operation) -> Result:
    given = SendParams.model_validate(operation.params)
    if given.configuration.return_immediately:
        task = await _begin(operation, given)
        answer = await operation.context.runtime.db.read(answer_so_far, task.asked)
    else:
        # It is held open for minutes, like any other stream.
        with counted_stream(operation.context, operation.request.scope):
            task = await _begin(operation, given)
            seconds = operation.context.limits.completion_seconds
            waiting = wait_while_there(operation.context, task.asked, seconds, operation.request.receive)
            answer = await waiting or AnswerState("working")
    note = await _note(operation, answer)
    return {"task": task_out(task, answer, note, history=given.configuration.history_length)}


async def _send_streaming(operation: Operation) -> Response:
    given = SendParams.model_validate(operation.params)
    return await _stream(operation, await _begin(operation, given))


async def _begin(operation: Operation, given: SendParams) -> PublicTask:
    """The new task; or the known one, if the message answers a question of its agent."""
    message, runtime = given.message, operation.context.runtime
    if any(each.url is not None for each in message.parts):
        raise A2aError(CONTENT_TYPE, "This server does not fetch addresses. Send the bytes of the file as `raw`.")
    # A message that is sent again has the same id: it is the same task.
    key = f"a2a {operation.agent_id} {message.message_id}"
    if message.task_id:
        task = await _find(operation, message.task_id)
        try:
            question = await runtime.db.read(public_tasks.answer_for, operation.caller.requester, task, message.text)
        except InvalidInput as error:
            raise A2aError(UNSUPPORTED, str(error)) from None
        await chat.ask(runtime, operation.caller, question, key, message.files)
        return task
    question, _ = await runtime.db.read(
        public_tasks.question_for, operation.caller.requester, operation.agent_id, message.text, message.context_id
    )
    asked = await chat.ask(runtime, operation.caller, question, key, message.files)
    return await _find(operation, asked.message_id)


async def _get(operation: Operation) -> Result:
    given = TaskParams.model_validate(operation.params)
    task = await _find(operation, given.id)
    return await _shown(operation, task, history=given.history_length)


async def _list(operation: Operation) -> Result:
    given = ListParams.model_validate(operation.params)
    page = await operation.context.runtime.db.read(
        public_tasks.list_tasks,
        operation.caller.requester,
        operation.agent_id,
        given.context_id,
        given.page_token,
        given.page_size,
    )
    shown = [
        await _shown(operation, each, history=given.history_length, artifacts=given.include_artifacts)
        for each in page.tasks
    ]
    wanted: list[JsonValue] = [each for each in shown if not given.status or _has_state(each, given.status)]
    return {"tasks": wanted, "nextPageToken": page.next, "pageSize": given.page_size, "totalSize": page.total}


def _has_state(task: dict[str, JsonValue], state: str) -> bool:
    status = task["status"]
    return isinstance(status, dict) and status["state"] == state


async def _cancel(operation: Operation) -> Result:
    task = await _find(operation, TaskParams.model_validate(operation.params).id)
    runtime, asked = operation.context.runtime, task.asked
    if state_of(await runtime.db.read(answer_so_far, asked)) in TERMINAL:
        raise A2aError(NOT_CANCELABLE, "The task has ended.")
    stopped = await runtime.db.write(
        messaging.stop_answer, operation.caller.requester, asked.space_id, task.asked.agent_id
    )
    if not stopped:
        raise A2aError(NOT_CANCELABLE, "The agent has not begun with the task. Try again while it works on it.")
    await wait(operation.context, asked, operation.context.limits.completion_seconds)
    return await _shown(operation, task)


async def _subscribe(operation: Operation) -> Response:
    task = await _find(operation, TaskParams.model_validate(operation.params).id)
    if state_of(await operation.context.runtime.db.read(answer_so_far, task.asked)) in TERMINAL:
        raise A2aError(UNSUPPORTED, "The task has ended. GetTask returns its result.")
    return await _stream(operation, task)


async def _no_push(_: Operation) -> Result:
    raise A2aError(NO_PUSH, "This server sends no push notifications. Use SubscribeToTask, or ask with GetTask.")


async def _no_extended_card(_: Operation) -> Result:
    raise A2aError(NO_EXTENDED_CARD, "The public card is the whole card.")


_METHODS: Final[Mapping[str, Callable[[Operation], Awaitable[Result | Response]]]] = {
    "SendMessage": _send,
    "SendStreamingMessage": _send_streaming,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "SubscribeToTask": _subscribe,
    "CreateTaskPushNotificationConfig": _no_push,
    "GetTaskPushNotificationConfig": _no_push,
    "ListTaskPushNotificationConfigs": _no_push,
    "DeleteTaskPushNotificationConfig": _no_push,
    "GetExtendedAgentCard": _no_extended_card,
}


async def _find(operation: Operation, task_id: str) -> PublicTask:
    runtime = operation.context.runtime
    return await runtime.db.read(public_tasks.find_task, operation.caller.requester, operation.agent_id, task_id)


async def _shown(
    operation: Operation, task: PublicTask, *, history: int | None = None, artifacts: bool = True
) -> dict[str, JsonValue]:
    answer = await operation.context.runtime.db.read(answer_so_far, task.asked)
    return task_out(task, answer, await _note(operation, answer), history=history, artifacts=artifacts)


async def _note(operation: Operation, answer: AnswerState) -> str:
    if not answer.note:
        return ""
    waiting = await operation.context.runtime.db.read(chat.seen_by, operation.caller, answer)
    return waiting_note(answer.note, waiting)


# Streams


async def _stream(operation: Operation, task: PublicTask) -> Response:
    return EventStream(operation.context, _Updates(operation, task).tell, has_last_words=True)


class _Updates:
    """A task, then its text while it is written, then its final state."""

    def __init__(self, operation: Operation, task: PublicTask) -> None:
        self._operation = operation
        self._task = task
        self._names: dict[str, JsonValue] = {"taskId": task.message.id, "contextId": task.context}
        self._begun = False

    async def tell(self, say: Say) -> None:
        context, asked = self._operation.context, self._task.asked
        try:
            await self._say(say, {"task": await _shown(self._operation, self._task, artifacts=False)})
            answer = await wait(context, asked, context.limits.completion_seconds, partial(self._pass, say))
        except (DenizenError, Problem) as error:
            await say(_data(_failed(self._operation.id, error)))
            return
        if answer.messages:
            # In place of the pieces: a text that was taken back is not part of it.
            whole = artifact_out([each.text for each in answer.messages])
            await self._say(say, {"artifactUpdate": {**self._names, "artifact": whole, "lastChunk": True}})
        status = status_out(self._task, answer, await _note(self._operation, answer))
        await self._say(say, {"statusUpdate": {**self._names, "status": status}})

    async def _pass(self, say: Say, text: str) -> None:
        if not text:
            await say(HEARTBEAT)
            return
        if not self._begun:
            working = status_out(self._task, AnswerState("working"), "") | {"state": "TASK_STATE_WORKING"}
            await self._say(say, {"statusUpdate": {**self._names, "status": working}})
        update: dict[str, JsonValue] = {**self._names, "artifact": artifact_out([text]), "append": self._begun}
        self._begun = True
        await self._say(say, {"artifactUpdate": update})

    async def _say(self, say: Say, result: Result) -> None:
        await say(_data(_result(self._operation.id, result)))


# JSON-RPC


def _result(id: JsonValue, result: Result) -> dict[str, JsonValue]:
    return {"jsonrpc": "2.0", "id": id, "result": dict(result)}


def _failed(id: JsonValue, error: Exception) -> dict[str, JsonValue]:
    code, message = _code_and_message(error)
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def _code_and_message(error: Exception) -> tuple[int, str]:
    match error:
        case A2aError():
            return error.code, str(error)
        case ValidationError():
            found = error.errors(include_url=False, include_input=False)[:10]
            return INVALID_PARAMS, "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
        case NotFound():
            return TASK_NOT_FOUND, str(error)
        case Problem():
            return INVALID_REQUEST, str(error.detail)
        case DenizenError():
            kind = KINDS.get(error.code, KINDS["internal"])
            if kind.status < 500:
                return INVALID_PARAMS, str(error)
            return INTERNAL_ERROR, (type(error).__doc__ or kind.title).strip()
        case _:
            raise error


def invalid_json() -> Response:
    """The answer to a body that is not JSON."""
    return _json(_failed(None, A2aError(PARSE_ERROR, "The body is not JSON.")))


def _json(body: Mapping[str, JsonValue]) -> Response:
    return Response(json.dumps(body), media_type="application/json")


def _data(body: Mapping[str, JsonValue]) -> bytes:
    # Escaped, so that no client finds a line break in it.
    return f"data: {json.dumps(body)}\n\n".encode()
