"""A model that says what it was told to say: for tests, examples and benchmarks. It needs no key and no network.

    model = scripted(reply("Hello, Noor."), "Greeted Noor.")

Each turn answers one request, in order. It streams like a provider does, in several deltas, and its tool call ids
repeat from response to response, as those of some providers do.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.usage import RequestUsage

from denizen.errors import DenizenError
from denizen.models.tokens import estimate, estimate_message

if TYPE_CHECKING:
    from types import TracebackType

    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import RunContext, ToolDefinition

_REMEMBERED_HISTORIES = 4096

_Written: TypeAlias = TextPart | ThinkingPart | ToolCallPart
Pause: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Say:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking before the text."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` is the JSON text as the model wrote it, so it may be made broken on purpose."""

    tool: str
    arguments: str


Piece: TypeAlias = str | Say | Think | Call | BaseException
Turn: TypeAlias = "Piece | Sequence[Piece] | Decide"
Decide: TypeAlias = "Callable[[list[ModelMessage], Info], Turn | Awaitable[Turn]]"


@dataclass(frozen=True, slots=True)
class Info:
    """What came with a request besides its messages."""

    number: int
    """The number of the request to this model object, from 0."""
    tools: tuple[str, ...]
    settings: ModelSettings | None
    definitions: tuple[ToolDefinition, ...] = ()
    """The tools with their schemas."""


class ScriptRanOut(DenizenError, AssertionError):
    """A scripted model was asked more often than it had turns."""

    code = "script_ran_out"


def say(text: str) -> Say:
    """Plain text, which ends a cycle."""
    return Say(text)


def think(text: str) -> Think:
    """Thinking, as reasoning models show it."""
    return Think(text)


def call(tool: str, /, **arguments: Any) -> Call:
    """A call of `tool`."""
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def reply(text: str, /, **arguments: Any) -> Call:
    """A call of `send_message`, with `text` written last, as a model does that first decides where to."""
    return call("send_message", **arguments, text=text)


def skip(reason: str = "") -> Call:
    """A call of `skip`."""
    return call("skip", reason=reason) if reason else call("skip")


def scripted(
    *turns: Turn,
    name: str = "scripted",
    chunk: int | None = 12,
    pause: Pause | None = None,
    record: bool = True,
    sees: bool = False,
) -> ScriptedModel:
    """A model that answers its first request with the first turn, and so on, then raises `ScriptRanOut`.

    A turn is a text, a piece made by `say`, `think`, `call`, `reply` or `skip`, several of those in one response, an
    exception to raise (in a list: after what stands before it has been streamed), or a callable, sync or async, that
    is given the messages and an `Info` and returns a turn. Texts and arguments arrive in deltas of `chunk`
    characters, or whole with their part if it is None; `pause`, if given, is awaited before each delta. If it `sees`,
    it is sent pictures.
    """
    return ScriptedModel(_in_order(turns), name=name, chunk=chunk, pause=pause, record=record, sees=sees)


def forever(
    decide: Decide, *, name: str = "scripted", chunk: int | None = 12, pause: Pause | None = None, record: bool = True
) -> ScriptedModel:
    """Creates a model that answers every request with what `decide` returns for the history, so that it may be
    restarted.
    """
    return ScriptedModel(decide, name=name, chunk=chunk, pause=pause, record=record)


class ScriptedModel(Model[None]):
    """See `scripted` and `forever`."""

    def __init__(
        self,
        decide: Decide,
        *,
        name: str,
        chunk: int | None,
        pause: Pause | None,
        record: bool,
        provider: str = "scripted",
        context_tokens: int | None = None,
        sees: bool = False,
    ) -> None:
        # The parent's own set-up loads price data, which costs far more than everything a script does.
        self.requests: list[list[ModelMessage]] = []
        """The messages of every request, if recorded."""
        self.infos: list[Info] = []
        """The `Info` of each of them."""
        self._decide = decide
        self._name = name
        self._chunk = chunk
        self._pause = pause
        self._record = record
        self._provider_name = provider
        self._context_tokens = context_tokens
        self.sees = sees
        """Whether it is sent pictures."""
        self._asked = 0
        self._input = _InputTokens()

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return self._provider_name

    @property
    def context_window(self) -> int | None:
        return self._context_tokens

    def request_stream(  # pyright: ignore[reportIncompatibleMethodOverride]  the parent's is a decorated generator
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        return _Opening(self, messages, model_settings, model_request_parameters)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(messages, model_settings, model_request_parameters) as streamed:
            async for _ in streamed:
                pass
            return streamed.get()

    async def answer(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> StreamedResponse:
        """Takes the next turn and opens its stream; raises it if it is an exception."""
        tools = parameters.function_tools
        info = Info(self._asked, tuple(tool.name for tool in tools), settings, tuple(tools))
        self._asked += 1
        if self._record:
            self.requests.append(list(messages))
            self.infos.append(info)
        pieces = await self._take(messages, info)
        if pieces and isinstance(pieces[0], BaseException):
            raise pieces[0]
        tokens = self._input.count(messages)
        return ScriptedStream(
            parameters, self._name, pieces, tokens, self._chunk, self._pause, provider=self._provider_name
        )

    async def _take(self, messages: list[ModelMessage], info: Info) -> Sequence[Piece]:
        turn: Turn = self._decide
        while callable(turn):
            decided = turn(messages, info)
            turn = await decided if inspect.isawaitable(decided) else decided
        return turn if isinstance(turn, list | tuple) else (turn,)  # pyright: ignore[reportReturnType]


class _Opening(AbstractAsyncContextManager[StreamedResponse]):
    # Written out rather than made by `asynccontextmanager`: it runs for every request of a benchmark.
    __slots__ = ("_args", "_model")

    def __init__(self, model: ScriptedModel, *args: Any) -> None:
        self._model = model
        self._args = args

    async def __aenter__(self) -> StreamedResponse:
        return await self._model.answer(*self._args)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


class ScriptedStream(StreamedResponse):
    """The stream of one turn. It makes its events itself: the parent's bookkeeping costs several times as much."""

    def __init__(
        self,
        parameters: ModelRequestParameters,
        name: str,
        pieces: Sequence[Piece],
        input_tokens: int,
        chunk: int | None,
        pause: Pause | None,
        *,
        provider: str = "scripted",
    ) -> None:
        self.model_request_parameters = parameters
        self._provider = provider
        self._name = name
        self._pieces = pieces
        self._input_tokens = input_tokens
        self._chunk = chunk
        self._pause = pause
        self._parts: list[ModelResponsePart] = []
        self._writing: tuple[_Written, str, int] | None = None
        """The part being streamed, its whole text, and how much of it has come."""
        self._cut: asyncio.Future[None] | None = None
        self._started = datetime.now(UTC)

    def __aiter__(self) -> AsyncIterator[ModelResponseStreamEvent]:
        if self._event_iterator is None:
            self._event_iterator = self._get_event_iterator()
        return self._event_iterator

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        calls = 0
        for index, piece in enumerate(self._pieces):
            if isinstance(piece, BaseException):
                raise piece
            part, text = _begin(piece, calls)
            calls += isinstance(part, ToolCallPart)
            step = self._chunk or len(text) or 1
            come = len(text) if self._chunk is None else 0
            self._writing = (part, text, come)
            yield PartStartEvent(index=index, part=_grown(part, text[:come]))
            while come < len(text) and not self._cancelled:
                if self._pause is not None:
                    await self._wait(self._pause)
                    if self._cancelled:
                        return
                come, since = come + step, come
                self._writing = (part, text, come)
                yield PartDeltaEvent(index=index, delta=_delta(part, text[since:come]))
            if self._cancelled:
                return
            self._finish_part(part, text)
            yield PartEndEvent(index=index, part=self._parts[index])
        self._finished = not self._cancelled

    def _finish_part(self, part: _Written, text: str) -> None:
        self._parts.append(_grown(part, text))
        self._writing = None

    async def _wait(self, pause: Pause) -> None:
        """Waits for the pause to end or for `cancel`, as a provider's stream ends when its connection is closed."""
        self._cut = self._cut or asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(pause())
        try:
            await asyncio.wait((waiting, self._cut), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()
        finally:
            waiting.cancel()

    async def close_stream(self) -> None:
        if self._cut is not None and not self._cut.done():
            self._cut.set_result(None)

    def get(self) -> ModelResponse:
        parts = list(self._parts)
        if self._writing is not None:
            part, text, come = self._writing
            parts.append(_grown(part, text[:come]))
        calls = any(isinstance(part, ToolCallPart) for part in parts)
        return ModelResponse(
            parts,
            usage=RequestUsage(input_tokens=self._input_tokens, output_tokens=sum(map(_written_tokens, parts))),
            model_name=self._name,
            timestamp=self._started,
            provider_name=self._provider,
            finish_reason=("tool_call" if calls else "stop") if self._finished else None,
            state="complete" if self._finished else "interrupted" if self._cancelled else "incomplete",
        )

    @property
    def usage(self) -> RequestUsage:
        return self.get().usage

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def provider_name(self) -> str:
        return self._provider

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._started


class _InputTokens:
    """The estimated size of a history, counting only what was added since the last request of the same history."""

    def __init__(self) -> None:
        self._counted: dict[int, tuple[ModelMessage, ModelMessage, int, int]] = {}
        """By the identity of its first message: first and last message counted, how many, how many tokens."""

    def count(self, messages: list[ModelMessage]) -> int:
        if not messages:
            return 0
        first, key = messages[0], id(messages[0])
        counted, tokens = 0, 0
        if (known := self._counted.get(key)) is not None:
            known_first, known_last, known_count, known_tokens = known
            if known_first is first and len(messages) >= known_count and messages[known_count - 1] is known_last:
                counted, tokens = known_count, known_tokens
        for index in range(counted, len(messages)):
            tokens += estimate_message(messages[index])
        if known is None and len(self._counted) >= _REMEMBERED_HISTORIES:
            del self._counted[next(iter(self._counted))]
        self._counted[key] = (first, messages[-1], len(messages), tokens)
        return tokens


def _in_order(turns: Sequence[Turn]) -> Decide:
    left: Iterator[Turn] = iter(turns)

    def decide(_messages: list[ModelMessage], _info: Info) -> Turn:
        for turn in left:
            return turn
        plural = "" if len(turns) == 1 else "s"
        raise ScriptRanOut(f"This model was scripted with {len(turns)} turn{plural} and was asked once more.")

    return decide


def _begin(piece: str | Say | Think | Call, calls: int) -> tuple[_Written, str]:
    """The empty part that `piece` starts with, and the text that fills it."""
    match piece:
        case str():
            return TextPart(""), piece
        case Say(text):
            return TextPart(""), text
        case Think(text):
            return ThinkingPart(""), text
        case Call(tool, arguments):
            return ToolCallPart(tool, "", f"call_{calls}"), arguments


def _grown(part: _Written, text: str) -> _Written:
    if isinstance(part, ToolCallPart):
        return ToolCallPart(part.tool_name, text, part.tool_call_id)
    return ThinkingPart(text) if isinstance(part, ThinkingPart) else TextPart(text)


def _delta(part: _Written, text: str) -> TextPartDelta | ThinkingPartDelta | ToolCallPartDelta:
    if isinstance(part, ToolCallPart):
        return ToolCallPartDelta(args_delta=text, tool_call_id=part.tool_call_id)
    return ThinkingPartDelta(content_delta=text) if isinstance(part, ThinkingPart) else TextPartDelta(text)


def _written_tokens(part: Any) -> int:
    return estimate(f"{part.tool_name}{part.args}") if isinstance(part, ToolCallPart) else estimate(part.content)
