"""One streamed request to a model: the only place that calls pydantic-ai's request functions.

What a provider's library raises leaves here as a `ModelError`, with the cause kept. When to try again is decided by
`retry_delay`; the waiting and the trying are the caller's.
"""

from __future__ import annotations

import re
import zlib
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NoReturn

import httpx2
from pydantic_ai import direct
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.usage import RequestUsage

from denizen.errors import (
    ContentRefused,
    DenizenError,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelUnsuitable,
    RequestTooLarge,
)
from denizen.masking import masked
from denizen.models.characters import of_whole_characters
from denizen.models.tokens import estimate_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

ATTEMPTS = 4
"""How often one request is tried before its error is believed."""
LONGEST_WAIT_SECONDS = 60.0

_OVERLOADED_STATUS = {429, 503, 529}
_TRANSIENT_STATUS = {408, 409, 425}
_KEY_STATUS = {401, 402, 403}
_REFUSED = re.compile(
    "content.?(policy|filter|management)|moderation|flagged|safety|invalid_prompt|usage polic", re.IGNORECASE
)
"""How providers say that they refuse the content of a request."""
_NO_TOOLS = re.compile(
    "(not|n't) support (tool|function)|no endpoints? found that support tool|tool.{0,20}not support", re.IGNORECASE
)
"""How they say that a model cannot use tools."""
_TOO_LARGE = re.compile(
    "context.?(length|window|size)|(prompt|input|request) is too (long|large)|too many input", re.IGNORECASE
)
"""How they say that a request does not fit, where pydantic-ai does not recognize it."""
_REMEMBERED_TOOL_SETS = 256


class Answer:
    """What a model is answering: iterate over it for the events, then read `response`."""

    def __init__(self, streamed: StreamedResponse, messages: Sequence[ModelMessage]) -> None:
        self._streamed = streamed
        self._messages = messages

    async def __aiter__(self) -> AsyncIterator[ModelResponseStreamEvent]:
        try:
            async for event in self._streamed:
                yield event
        except Exception as error:  # noqa: BLE001  raised again, as what it means
            # Cancelled from another task, the torn connection surfaces here as an error: it is none.
            if not (self._streamed.cancelled and isinstance(error, ModelAPIError | httpx2.HTTPError)):
                _raise(error)
        if self._streamed.finish_reason == "content_filter" and not self._streamed.get().parts:
            raise ContentRefused("The provider refused to answer this.")

    @property
    def response(self) -> ModelResponse:
        """The whole response after iteration, before that what has come so far; its characters are whole.

        Usage that the provider did not report is estimated, and marked by `usage.details["estimated"]`.
        """
        response = of_whole_characters(self._streamed.get())
        usage = response.usage
        if not usage.input_tokens or (response.parts and not usage.output_tokens):
            response.usage = _estimated_usage(usage, self._messages, response)
        return response

    async def cancel(self) -> None:
        """Close the connection; iteration ends, and `response` keeps what had come, `state="interrupted"`."""
        try:
            await self._streamed.cancel()
        except (ModelAPIError, httpx2.HTTPError):
            # Closing a connection that is already broken: there is nothing left to close.
            return


class _Request(AbstractAsyncContextManager[Answer]):
    """An open request. Not a generator: errors of the body must pass untranslated, those of opening must not."""

    def __init__(
        self, opening: AbstractAsyncContextManager[StreamedResponse], messages: Sequence[ModelMessage]
    ) -> None:
        self._opening = opening
        self._messages = messages

    async def __aenter__(self) -> Answer:
        try:
            return Answer(await self._opening.__aenter__(), self._messages)
        except Exception as error:  # noqa: BLE001  raised again, as what it means
            _raise(error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, error, traceback)


def stream(
    model: Model,
    messages: list[ModelMessage],
    *,
    tools: Sequence[ToolDefinition] = (),
    settings: ModelSettings | None = None,
) -> AbstractAsyncContextManager[Answer]:
    """Ask `model` to go on from `messages`; text output is always allowed. Use as `async with stream(...) as answer`.

    The messages are sent as they are, so tool results must stand in the order of their calls, each after its call.
    Raises `ModelError` when the request is opened or while the answer is iterated.
    """
    parameters = _parameters(tools)
    if settings and ("request_timeout" in settings or "first_event_timeout" in settings):
        opening = direct.model_request_stream(
            model, messages, model_settings=settings, model_request_parameters=parameters
        )
    else:
        # `direct` walks the whole history twice for kinds of parts that ours never hold.
        opening = model.request_stream(messages, settings, parameters)
    return _Request(opening, messages)


def translate(error: Exception) -> Exception:
    """The `ModelError` that says what `error` means to us; an error that is none of a model's stays as it is."""
    match error:
        case DenizenError():
            return error
        case ModelRateLimitError() | ModelUnavailableError():
            return ModelOverloaded(_sentence(error), retry_after=error.retry_after)
        case ContentFilterError():
            return ContentRefused(_sentence(error))
        case UserError():
            return ModelRejected(_sentence(error))
        case ModelQuotaExceededError() | ModelRequestRejectedError():
            return _rejection(error, error.status_code if isinstance(error, ModelHTTPError) else None)
        case ModelHTTPError():
            return _translate_status(error)
        case AgentRunError() | httpx2.HTTPError() | httpx2.StreamError() | OSError() | EOFError():
            return ModelUnreachable(_sentence(error), retry_after=getattr(error, "retry_after", None))
        case _:
            return error


def _raise(error: Exception) -> NoReturn:
    translated = translate(error)
    if translated is error:
        raise error
    raise translated from error


def retry_delay(error: ModelError, attempt: int, *, key: str = "") -> float | None:
    """Seconds to wait before trying again after `attempt` attempts; None when it should not be tried again.

    The wait doubles with each attempt and honours what the provider asked for, up to a minute. `key` (an agent's id)
    spreads those who failed together: the same key always waits the same.
    """
    if attempt >= ATTEMPTS or not isinstance(error, ModelOverloaded | ModelUnreachable):
        return None
    first = 2.0 if isinstance(error, ModelOverloaded) else 0.5
    wait = max(first * 2 ** (attempt - 1), error.retry_after or 0.0)
    return min(wait * (1 + _spread(f"{key}:{attempt}") / 4), LONGEST_WAIT_SECONDS)


def _spread(key: str) -> float:
    return zlib.crc32(key.encode()) / 2**32


def _translate_status(error: ModelHTTPError) -> ModelError:
    if error.status_code in _OVERLOADED_STATUS:
        return ModelOverloaded(_sentence(error), retry_after=error.retry_after)
    if error.status_code >= 500 or error.status_code in _TRANSIENT_STATUS:
        return ModelUnreachable(_sentence(error), retry_after=error.retry_after)
    return _rejection(error, error.status_code)


def _rejection(error: ModelAPIError, status: int | None) -> ModelRejected:
    """Why the provider rejects a request, as far as it says so."""
    said = f"{error.provider_error_code or ''} {error.provider_error_type or ''} {error.body or error.message}"
    told = _sentence(error)
    if isinstance(error, ModelContextWindowExceededError) or status == 413:
        return RequestTooLarge(told)
    if _NO_TOOLS.search(said):
        return ModelUnsuitable(told)
    if _REFUSED.search(said) and status != 401:
        return ContentRefused(told)
    if isinstance(error, ModelAuthenticationError | ModelQuotaExceededError) or status in _KEY_STATUS:
        return ModelKeyRejected(told)
    if isinstance(error, ModelNotFoundError) or status == 404:
        return ModelUnsuitable(told)
    return RequestTooLarge(told) if _TOO_LARGE.search(said) else ModelRejected(told)


def _sentence(error: Exception) -> str:
    # Some providers repeat the key that they refuse.
    return masked(f"{type(error).__name__.lstrip('_')}: {error}")


def _estimated_usage(reported: RequestUsage, messages: Sequence[ModelMessage], response: ModelResponse) -> RequestUsage:
    usage = reported + RequestUsage(details={"estimated": 1})
    usage.input_tokens = usage.input_tokens or sum(map(estimate_message, messages))
    usage.output_tokens = usage.output_tokens or estimate_message(response)
    return usage


_remembered: dict[tuple[int, ...], tuple[Sequence[ToolDefinition], ModelRequestParameters]] = {}


def _parameters(tools: Sequence[ToolDefinition]) -> ModelRequestParameters:
    # Definitions cannot be hashed, so they are known by identity; keeping them beside the result keeps the ids valid.
    key = tuple(map(id, tools))
    if (known := _remembered.get(key)) is not None:
        return known[1]
    if len(_remembered) >= _REMEMBERED_TOOL_SETS:
        del _remembered[next(iter(_remembered))]
    kept = list(tools)
    parameters = ModelRequestParameters(function_tools=kept, allow_text_output=True)
    _remembered[key] = (kept, parameters)
    return parameters
