"""OpenAI's Responses API: the same as chat completions, in another form."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from fastapi import Request, Response
from pydantic import JsonValue

from denizen.clock import SECOND
from denizen.cycles.ledger import Charge
from denizen.errors import DenizenError, NotFound
from denizen.ids import MessageId
from denizen.server.auth import Caller
from denizen.server.context import Context, context_of
from denizen.server.idempotency import IdempotencyKey
from denizen.server.on_behalf_of import OpenAICaller
from denizen.server.openai_options import ProgramCall
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.routes.openai import AnswerEnd, ContinuedMessage, RetryCount, RunningCompletion, begin, error_in
from denizen.server.shapes.openai import ErrorOut
from denizen.server.shapes.responses import ResponseOut, ResponseRequest
from denizen.server.sse import HEARTBEAT, EventStream, Say, event
from denizen.server.sse import MEDIA_TYPE as EVENTS
from denizen.shapes.examples import text_answer
from denizen.spaces import posting
from denizen.storage.database import Tx, storable

router = new_router("/v1", problem=ErrorOut)

_ID: Final = "resp_"


@router.post(
    "/responses",
    summary="Send a message to an agent and get its response",
    response_model=ResponseOut,
    responses=text_answer(
        EVENTS,
        "The response; with `stream`, as events.",
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Good"}\n\n',
    ),
)
async def create_response(
    request: Request,
    caller: OpenAICaller,
    asked_for: ResponseRequest,
    key: IdempotencyKey = None,
    retries: RetryCount = None,
) -> ResponseOut | Response:
    """Like `/v1/chat/completions`, for clients of the Responses API. `previous_response_id` continues in the space of
    that response.
    """
    context, before = context_of(request), asked_for.previous_response_id
    continued = partial(_continued, response_id=before)
    ignored = asked_for.ignored_fields()
    begun = await begin(request, caller, asked_for.as_completion(), key, retries, continued, ignored)
    form = _Form(context, asked_for, begun)
    if asked_for.stream:
        await begun.require_possible()
        return EventStream(context, form.tell, has_last_words=True)
    return form.response(*await begun.whole(request.receive))


def _continued(tx: Tx, caller: Caller, response_id: str | None) -> ContinuedMessage | None:
    if response_id is None:
        return None
    try:
        message = posting.get_readable(tx, MessageId(storable(response_id.removeprefix(_ID))), caller.entity.id)
    except NotFound:
        raise NotFound("response", response_id) from None
    return ContinuedMessage(message.id, message.space_id)


class _Form:
    """An answer as a response, whole or as events."""

    def __init__(self, context: Context, asked_for: ResponseRequest, begun: RunningCompletion) -> None:
        self._asked_for = asked_for
        self._begun = begun
        self._created = context.runtime.clock.now() // SECOND
        self._sent = 0
        self._text: list[str] = []
        self._message_id = f"msg_{begun.id}"

    def response(self, text: str, end: AnswerEnd) -> ResponseOut:
        cut = end.reason == "length"
        output = [*([self._message(text)] if text or not end.calls else []), *map(_call, end.calls)]
        return self._response("incomplete" if cut else "completed", output, end)

    def _response(self, status: Any, output: list[dict[str, JsonValue]], end: AnswerEnd | None = None) -> ResponseOut:
        asked = self._asked_for
        about = None if end is None or end.about is None else end.about.model_dump(mode="json")
        return ResponseOut(
            id=f"{_ID}{self._begun.id}",
            created_at=self._created,
            status=status,
            model=asked.model,
            output=output,
            usage=None if end is None else _usage(end.spent),
            tool_choice=asked.tool_choice or "auto",
            tools=asked.tools or [],
            previous_response_id=asked.previous_response_id,
            metadata=dict(asked.metadata or {}),
            incomplete_details={"reason": "max_output_tokens"} if status == "incomplete" else None,
            denizen=about,
        )

    def _message(self, text: str, status: str = "completed") -> dict[str, JsonValue]:
        content: list[JsonValue] = [] if status == "in_progress" else [_part(text)]
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    async def tell(self, say: Say) -> None:
        await self._say(say, "response.created", response=self._dump(self._response("in_progress", [])))
        await self._say(say, "response.in_progress", response=self._dump(self._response("in_progress", [])))
        try:
            end = await self._begun.tell(partial(self._pass, say))
        except (DenizenError, Problem) as error:
            # The answer has begun: what went wrong can only be said in it.
            told = error_in(error)["error"]
            failed = self._response("failed", [])
            failed.error = {"code": told["code"], "message": told["message"]}
            await self._say(say, "response.failed", response=self._dump(failed))
            return
        text = "".join(self._text)
        if text:
            at: dict[str, JsonValue] = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
            await self._say(say, "response.output_text.done", **at, text=text, logprobs=[])
            await self._say(say, "response.content_part.done", **at, part=_part(text))
            await self._say(say, "response.output_item.done", output_index=0, item=self._message(text))
        for index, each in enumerate(end.calls, start=1 if text else 0):
            item = _call(each)
            where: dict[str, JsonValue] = {"item_id": item["id"], "output_index": index}
            await self._say(say, "response.output_item.added", output_index=index, item={**item, "arguments": ""})
            await self._say(say, "response.function_call_arguments.delta", **where, delta=each.arguments)
            done: dict[str, JsonValue] = {**where, "name": each.name, "arguments": each.arguments}
            await self._say(say, "response.function_call_arguments.done", **done)
            await self._say(say, "response.output_item.done", output_index=index, item=item)
        whole = self.response(text, end)
        name = "response.incomplete" if whole.status == "incomplete" else "response.completed"
        await self._say(say, name, response=self._dump(whole))

    async def _pass(self, say: Say, text: str) -> None:
        if not text:
            await say(HEARTBEAT)
            return
        if not self._text:
            begun = self._message("", "in_progress")
            await self._say(say, "response.output_item.added", output_index=0, item=begun)
            first: dict[str, JsonValue] = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
            await self._say(say, "response.content_part.added", **first, part=_part(""))
        self._text.append(text)
        at: dict[str, JsonValue] = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        await self._say(say, "response.output_text.delta", **at, delta=text, logprobs=[])

    async def _say(self, say: Say, kind: str, /, **data: JsonValue) -> None:
        told = {"type": kind, "sequence_number": self._sent, **data}
        self._sent += 1
        # Escaped, so that no client finds a line break in it.
        await say(event(kind, json.dumps(told)))

    def _dump(self, response: ResponseOut) -> dict[str, JsonValue]:
        return response.model_dump(mode="json")


def _part(text: str) -> dict[str, JsonValue]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: ProgramCall) -> dict[str, JsonValue]:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _usage(spent: Charge) -> dict[str, JsonValue]:
    cached: dict[str, JsonValue] = {
        "cached_tokens": spent.cache_read_tokens,
        "cache_write_tokens": spent.cache_write_tokens,
    }
    return {
        "input_tokens": spent.input_tokens,
        "input_tokens_details": cached,
        "output_tokens": spent.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent.input_tokens + spent.output_tokens,
    }
