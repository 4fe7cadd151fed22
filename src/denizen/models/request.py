"""One streamed request to a model: the only place that calls pydantic-ai's request functions.

Errors of a provider's library are raised as `ModelError`, with the cause kept. `retry_delay` decides when to retry;
waiting and retrying are left to the caller.
"""

from __future__ import annotations

import re
import zlib
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NoReturn, cast

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
    ModelAnswerUnusable,
    ModelError,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnreachable,
    ModelUnsuitable,
    RequestTooLarge,
    ResponsesApiMissing,
)
from denizen.masking import masked
from denizen.models import learned, overflow, structured_output, thinking
from denizen.models.first_byte import Heard, told_of_first_byte
from denizen.models.location import is_openai
from denizen.models.surrogates import of_whole_characters
from denizen.models.thinking_tags import split_thinking, without_tags
from denizen.models.tokens import estimate_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent, ToolCallPart
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

ATTEMPTS = 4
"""How often a request is tried before its error is raised."""
LOADING_ATTEMPTS = 40
"""How often a server is tried that says that it is still loading its model."""
LOADING_WAIT_SECONDS = 4.0
LONGEST_WAIT_SECONDS = 60.0

_OVERLOADED_STATUS = {429, 503, 529}
_TRANSIENT_STATUS = {408, 409, 425}
_KEY_STATUS = {401, 402, 403}
_UNKNOWN_ADDRESS_STATUS = {404, 405}
_NAMES_MODEL = re.compile("model", re.IGNORECASE)
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
"""How they say that a request is too large, where pydantic-ai does not recognize it."""
_MESSAGE_FIELDS = ("error", "message", "msg", "detail", "reason")
_MESSAGE_CHARACTERS = 500
_NO_SUMMARY = re.compile(r"reasoning[._ ]summar", re.IGNORECASE)
"""How OpenAI refuses to show thinking to organizations that it has not verified."""
_LOADING = re.compile("load", re.IGNORECASE)
"""How local servers say that they are not ready yet."""
_GIVE_REASONS = ("pydantic_ai.models.openai", "pydantic_ai.models.anthropic")
_REMEMBERED_TOOL_SETS = 256


class RunningAnswer:
    """An answer in progress: iterate over it for the events, then read `response`."""

    def __init__(
        self,
        model: Model,
        streamed: StreamedResponse,
        messages: Sequence[ModelMessage],
        wanted: ToolDefinition | None = None,
    ) -> None:
        self._model = model
        self._wanted = wanted
        self._streamed = streamed
        self._messages = messages
        split_thinking(streamed)

    async def __aiter__(self) -> AsyncIterator[ModelResponseStreamEvent]:
        try:
            async for event in self._streamed:
                yield event
        except Exception as error:  # noqa: BLE001  raised again, as what it means
            # Cancelled from another task, the closed connection shows up here as an error: it is not one.
            if not (self._streamed.cancelled and isinstance(error, ModelAPIError | httpx2.HTTPError)):
                _raise(error)
        if self._streamed.finish_reason == "content_filter":
            raise ContentRefused("The provider's content filter stopped the answer. Ask in other words.")
        if not self._streamed.cancelled:
            self._check_end()

    def _check_end(self) -> None:
        """Raises if the stream has ended without the finish reason that its API always gives.

        A server that does so twice in a row never gives one: then its answers are accepted as they are.
        """
        known = learned.about(self._model)
        if not _ends_without_reason(self._streamed):
            known.unfinished = 0
            if thinking.is_of_unknown_server(self._model):
                thinking.note_answer(self._model, self.response)
            return
        known.unfinished += 1
        response = self._streamed.get()
        if known.unfinished < 2 or not response.parts or not all(map(is_whole, response.tool_calls)):
            raise ModelAnswerUnusable("The provider's answer broke off before its end. It is asked again.")

    @property
    def response(self) -> ModelResponse:
        """The whole response after iteration, before that what has come so far; its characters are whole.

        Usage that the provider did not report is estimated, and marked by `usage.details["estimated"]`.
        """
        response = without_tags(of_whole_characters(self._streamed.get()))
        if self._wanted is not None:
            response = structured_output.as_call(response, self._wanted)
        usage = response.usage
        if not usage.input_tokens or (response.parts and not usage.output_tokens):
            response.usage = _estimated_usage(usage, self._messages, response)
        return response

    async def cancel(self) -> None:
        """Closes the connection; iteration ends, and `response` keeps what had come, `state="interrupted"`."""
        try:
            await self._streamed.cancel()
        except (ModelAPIError, httpx2.HTTPError):
            # Closing a connection that is already broken: there is nothing left to close.
            return


class _Request(AbstractAsyncContextManager[RunningAnswer]):
    """An open request. Not a generator: errors of the body must pass untranslated, those of opening must not."""

    def __init__(
        self,
        model: Model,
        opening: AbstractAsyncContextManager[StreamedResponse],
        messages: Sequence[ModelMessage],
        heard: Heard | None,
        wanted: ToolDefinition | None = None,
        without_schema: Callable[[], AbstractAsyncContextManager[StreamedResponse]] | None = None,
    ) -> None:
        self._model = model
        self._opening = opening
        self._messages = messages
        self._heard = heard
        self._wanted = wanted
        self._without_schema = without_schema

    async def __aenter__(self) -> RunningAnswer:
        try:
            streamed = await self._open()
        except Exception as error:
            translated = translate(error, self._model)
            if isinstance(translated, RequestTooLarge) and translated.context_tokens is not None:
                learned.learn_context(self._model, translated.context_tokens, overflow.SOURCE)
            elif isinstance(translated, ModelRejected) and _NO_SUMMARY.search(str(translated)):
                learned.about(self._model).refused_settings |= {"openai_reasoning_summary"}
                raise ModelUnreachable("The provider shows no thinking here. It is asked again without.") from error
            if translated is error:
                raise
            raise translated from error
        if self._heard is not None:
            # Some libraries hold the answer back until its first event; others have no HTTP client that reports it.
            self._heard()
        return RunningAnswer(self._model, streamed, self._messages, self._wanted)

    async def _open(self) -> StreamedResponse:
        with told_of_first_byte(self._heard):
            try:
                return await self._opening.__aenter__()
            except ModelHTTPError as error:
                if self._without_schema is None or not structured_output.REFUSED.search(str(error)):
                    raise
            # The server does not accept a schema: it is asked without one, now and later.
            learned.about(self._model).refused_settings |= {structured_output.JSON_SCHEMA}
            self._opening = self._without_schema()
            return await self._opening.__aenter__()

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
    heard: Heard | None = None,
    wanted: ToolDefinition | None = None,
    as_text: bool = False,
) -> AbstractAsyncContextManager[RunningAnswer]:
    """Sends `messages` to `model`; text output is always allowed. Use as `async with stream(...) as answer`.

    The messages are sent as they are, so tool results must be in the order of their calls, each after its call. `heard`
    is called when anything has come from the provider, even a ping. Raises `ModelError` when the request is opened or
    while the answer is iterated.

    If an object is `wanted`, described as a tool, it is requested by the provider's JSON schema if it has one,
    otherwise as the one call that has to be made; the response has it as a call. With `as_text` the prompt asks for it
    instead of a tool, and the response has it as text.
    """
    if wanted is not None:
        return _structured(model, messages, settings, heard, wanted, as_text=as_text)
    parameters = _parameters(tools)
    if settings:
        settings = cast("ModelSettings", learned.acceptable(model, cast("dict[str, Any]", settings)))
    if settings and ("request_timeout" in settings or "first_event_timeout" in settings):
        opening = direct.model_request_stream(
            model, messages, model_settings=settings, model_request_parameters=parameters
        )
    else:
        # `direct` walks the whole history twice for kinds of parts that ours never hold.
        opening = model.request_stream(messages, settings, parameters)
    return _Request(model, opening, messages, heard)


def _structured(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings | None,
    heard: Heard | None,
    wanted: ToolDefinition,
    *,
    as_text: bool,
) -> AbstractAsyncContextManager[RunningAnswer]:
    forced = settings if as_text else cast("ModelSettings", {**(settings or {}), "tool_choice": "required"})

    def without_schema() -> AbstractAsyncContextManager[StreamedResponse]:
        return model.request_stream(messages, forced, _parameters(() if as_text else (wanted,)))

    read_as = None if as_text else wanted
    if not structured_output.takes_schema(model):
        return _Request(model, without_schema(), messages, heard, read_as)
    asked = messages
    if not as_text and thinking.is_of_unknown_server(model):
        asked = structured_output.with_description(messages, wanted)
    opening = model.request_stream(asked, settings, structured_output.parameters(wanted))
    return _Request(model, opening, messages, heard, read_as, without_schema)


def _ends_without_reason(streamed: StreamedResponse) -> bool:
    """Whether an API that always gives a finish reason gave none. pydantic-ai then reads an end as `stop`."""
    if not any(parent.__module__.startswith(_GIVE_REASONS) for parent in type(streamed).__mro__):
        return False
    return "finish_reason" not in (streamed.provider_details or {})


def is_whole(call: ToolCallPart) -> bool:
    """Whether the arguments of the call are complete JSON."""
    try:
        call.args_as_dict(raise_if_invalid=True)
    except ValueError:
        return False
    return True


def translate(error: Exception, model: Model | None = None) -> Exception:
    """Returns the `ModelError` for `error`, of `model` if known; one that does not come from a model stays as it is."""
    if model is not None and (missing := _missing_api(model, error)) is not None:
        return missing
    match error:
        case DenizenError():
            return error
        case ModelRateLimitError() | ModelUnavailableError():
            return _overloaded(error)
        case ContentFilterError():
            return ContentRefused(sentence(error, "Ask in other words."))
        case UserError():
            return ModelRejected(sentence(error, "Check the settings of the model."))
        case ModelQuotaExceededError() | ModelRequestRejectedError():
            return _rejection(error, error.status_code if isinstance(error, ModelHTTPError) else None)
        case ModelHTTPError():
            return _translate_status(error)
        case AgentRunError() | httpx2.HTTPError() | httpx2.StreamError() | OSError() | EOFError():
            retry_after = getattr(error, "retry_after", None)
            if _was_reached(error):
                return ModelAnswerUnusable(sentence(error, "Try again in a while."), retry_after=retry_after)
            told = sentence(error, "Check that the provider can be reached from this machine, then try again.")
            return ModelUnreachable(told, retry_after=retry_after)
        case _:
            return error


def _was_reached(error: BaseException) -> bool:
    """Whether there was a connection, which then broke off or carried something that cannot be read."""
    if isinstance(error, _BROKE_OFF):
        return True
    # The clients of providers wrap what their HTTP client says.
    if error.__cause__ is not None and _is_from_network(error.__cause__):
        return _was_reached(error.__cause__)
    return not isinstance(error, _NO_CONNECTION) and str(error) != _NOT_REACHED


def _is_from_network(error: BaseException) -> bool:
    return str(error) == _NOT_REACHED or isinstance(error, (*_BROKE_OFF, *_NO_CONNECTION))


def _raise(error: Exception) -> NoReturn:
    translated = translate(error)
    if translated is error:
        raise error
    raise translated from error


def retry_delay(error: ModelError, attempt: int, *, key: str = "", most: int = ATTEMPTS) -> float | None:
    """Returns the seconds to wait after `attempt` of at most `most` attempts; None if it should not be tried again.

    The wait doubles with each attempt and honours what the provider asked for, up to a minute. `key` (an agent's id)
    spreads those who failed together: the same key always waits the same.
    """
    if isinstance(error, ModelOverloaded) and error.loading:
        return LOADING_WAIT_SECONDS if attempt < LOADING_ATTEMPTS else None
    if attempt >= most or not isinstance(error, ModelOverloaded | ModelUnreachable):
        return None
    first = 2.0 if isinstance(error, ModelOverloaded) else 0.5
    wait = max(first * 2 ** (attempt - 1), error.retry_after or 0.0)
    return min(wait * (1 + _spread(f"{key}:{attempt}") / 4), LONGEST_WAIT_SECONDS)


def _spread(key: str) -> float:
    return zlib.crc32(key.encode()) / 2**32


def _translate_status(error: ModelHTTPError) -> ModelError:
    if error.status_code in _OVERLOADED_STATUS:
        return _overloaded(error)
    if error.status_code >= 500 or error.status_code in _TRANSIENT_STATUS:
        return ModelAnswerUnusable(sentence(error, "Try again in a while."), retry_after=error.retry_after)
    return _rejection(error, error.status_code)


def _overloaded(error: ModelAPIError) -> ModelOverloaded:
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    loading = status == 503 and bool(_LOADING.search(str(error.body or "")))
    told = sentence(error, "It is loading: wait." if loading else "Try again in a while, or choose another model.")
    return ModelOverloaded(told, retry_after=error.retry_after, loading=loading)


def _rejection(error: ModelAPIError, status: int | None) -> ModelRejected:
    """Returns why the provider rejects a request, as far as it says so."""
    said = f"{error.provider_error_code or ''} {error.provider_error_type or ''} {error.body or error.message}"
    if isinstance(error, ModelContextWindowExceededError) or status == 413:
        return _too_large(error, said)
    if _NO_TOOLS.search(said):
        return ModelUnsuitable(sentence(error, "Choose a model that can use tools."))
    if _REFUSED.search(said) and status != 401:
        return ContentRefused(sentence(error, "Ask in other words."))
    if isinstance(error, ModelAuthenticationError | ModelQuotaExceededError) or status in _KEY_STATUS:
        paid_up = isinstance(error, ModelQuotaExceededError) or status == 402
        return ModelKeyRejected(sentence(error, "Add credit to its account." if paid_up else "Check the API key."))
    if isinstance(error, ModelNotFoundError) or status == 404:
        return ModelUnsuitable(sentence(error, "Check the name of the model and the address of the server."))
    if _TOO_LARGE.search(said):
        return _too_large(error, said)
    return ModelRejected(sentence(error, "Check the settings of the model, or choose another."))


def _missing_api(model: Model, error: Exception) -> ResponsesApiMissing | None:
    """Returns the error for a server in place of OpenAI that does not know the address of the Responses API."""
    if not isinstance(error, ModelHTTPError) or error.status_code not in _UNKNOWN_ADDRESS_STATUS:
        return None
    from pydantic_ai.models.openai import OpenAIResponsesModel

    # A server that has the API, but not the model, says so.
    if not isinstance(model, OpenAIResponsesModel) or is_openai(model.base_url) or _NAMES_MODEL.search(str(error.body)):
        return None
    instead = f"openai-chat:{model.model_name}"
    told = sentence(error, f"If the server has no Responses API, choose {instead} as the model.")
    return ResponsesApiMissing(told, instead=instead)


def _too_large(error: ModelAPIError, said: str) -> RequestTooLarge:
    told = sentence(error, "Shorten what it has to read, or choose a model with a larger context.")
    return RequestTooLarge(told, context_tokens=overflow.context_named_in(said))


_BROKE_OFF = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.ReadTimeout)
_NO_CONNECTION = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol, OSError)
_NOT_REACHED = "Connection error."
"""The message of OpenAI's and Anthropic's clients if nobody answers."""


def sentence(error: Exception, then: str) -> str:
    """Returns what went wrong in the provider's own words, and what to do. Never the raw body of a response."""
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    said = provider_message(error)
    who = f"The provider of {error.model_name}" if isinstance(error, ModelAPIError) else "The provider"
    answered = f"{who} answered with an error" + (f" ({status})" if status is not None else "")
    if said == _NOT_REACHED:
        happened = "broke off the connection" if _was_reached(error) else "cannot be reached"
        return f"{who} {happened}. {then}"
    # Some providers repeat the key that they refuse.
    return masked(f"{answered}: {said} {then}" if said else f"{answered}. {then}")


def provider_message(error: Exception) -> str:
    """Returns the message in a provider's answer, as one sentence; empty if it has none."""
    body = error.body if isinstance(error, ModelAPIError) else None
    said = _message_in(body) or ("" if isinstance(error, ModelHTTPError) else str(error))
    said = " ".join(said.split())[:_MESSAGE_CHARACTERS].strip()
    return said if not said or said.endswith((".", "!", "?")) else f"{said}."


def _message_in(body: object) -> str:
    """Returns the text of an error in the formats of OpenAI, Anthropic, Ollama, FastAPI and others."""
    if isinstance(body, str):
        text = body.strip()
        return "" if text.startswith(("<", "{", "[")) else text
    if isinstance(body, list):
        return " ".join(filter(None, map(_message_in, cast("list[object]", body))))
    if not isinstance(body, dict):
        return ""
    given = cast("dict[str, object]", body)
    return next((text for name in _MESSAGE_FIELDS if (text := _message_in(given.get(name)))), "")


def _estimated_usage(reported: RequestUsage, messages: Sequence[ModelMessage], response: ModelResponse) -> RequestUsage:
    usage = reported + RequestUsage(details={"estimated": 1})
    usage.input_tokens = usage.input_tokens or sum(map(estimate_message, messages))
    usage.output_tokens = usage.output_tokens or estimate_message(response)
    return usage


_remembered: dict[tuple[int, ...], tuple[Sequence[ToolDefinition], ModelRequestParameters]] = {}


def _parameters(tools: Sequence[ToolDefinition]) -> ModelRequestParameters:
    # Definitions cannot be hashed, so they are compared by identity; keeping them beside the result keeps the ids
    # valid.
    key = tuple(map(id, tools))
    if (known := _remembered.get(key)) is not None:
        return known[1]
    if len(_remembered) >= _REMEMBERED_TOOL_SETS:
        del _remembered[next(iter(_remembered))]
    kept = list(tools)
    parameters = ModelRequestParameters(function_tools=kept, allow_text_output=True)
    _remembered[key] = (kept, parameters)
    return parameters
