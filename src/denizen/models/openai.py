"""OpenAI's two APIs without the SDK's request transform, which blocks the event loop for 0.3–0.9 ms per message.

Three things are done. `bypass_transform` makes a client send request bodies as they are: what pydantic-ai prepares is
plain JSON data already, and the transform would walk it all to change nothing. And the two model classes remember
what each message was mapped to, as data and as bytes, so that a long history costs a look-up per message, and what the
schemas of a set of tools became. And a streamed piece of text is made into the SDK's object without a look at the types
of its fields, which takes the SDK longer than all the rest of passing a token on.

All rely on names that pydantic-ai and the SDK may change in any release; both are pinned, and the tests compare every
body and every piece with what goes the long way. Messages are known by identity: one that was sent must not be changed
after.
"""

from __future__ import annotations

import json
import weakref
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from openai import AsyncOpenAI, AsyncStream, NotGiven, Omit, not_given
from openai._base_client import make_request_options
from openai.resources.chat import AsyncChat, AsyncCompletions
from openai.resources.responses import AsyncResponses
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta
from openai.types.responses import Response, ResponseStreamEvent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from pydantic_ai.models import ModelRequestParameters

Item: TypeAlias = dict[str, Any]

_Made = TypeVar("_Made")
_READING: Final = "_process_response_data"
"""The SDK's method that parses each event of a stream."""
_REMEMBERED_TOOL_SETS = 64

_CHAT_PARTS = frozenset({SystemPromptPart, UserPromptPart, ToolReturnPart, TextPart, ToolCallPart})
# How thinking is sent back by Chat Completions depends on the messages around it; by Responses it does not.
_RESPONSES_PARTS = _CHAT_PARTS | {ThinkingPart}


def accelerate(model: Model) -> Model:
    """Returns a faster version of the model if it speaks one of OpenAI's APIs; any other as it is."""
    if not isinstance(model, OpenAIChatModel | OpenAIResponsesModel):
        return model
    bypass_transform(model.client)
    provider = model.provider
    if provider is None:
        return model
    if type(model) is OpenAIChatModel:
        return ChatModel(model.model_name, provider=provider, settings=model.settings, profile=_profile_of(model))
    if type(model) is OpenAIResponsesModel:
        return ResponsesModel(model.model_name, provider=provider, settings=model.settings, profile=_profile_of(model))
    # A provider with a class of its own maps messages in its own way, so it is left alone.
    return model


def _profile_of(model: Model) -> Any:
    """Returns the profile that the model was created with; None if it had none."""
    return vars(model).get("_profile")


def bypass_transform(client: AsyncOpenAI) -> None:
    """Makes `client` send the bodies of chat completions and responses as they are given, and parse text pieces
    directly.
    """
    vars(client)["chat"] = _Chat(client)
    vars(client)["responses"] = _Responses(client)
    long_way = partial(getattr(type(client), _READING), client)
    vars(client)[_READING] = partial(_read, long_way)


def _read(long_way: Callable[..., Any], *, data: Any, cast_to: Any, response: Any) -> Any:
    if cast_to is ChatCompletionChunk and (piece := text_piece(data)) is not None:
        return piece
    return long_way(data=data, cast_to=cast_to, response=response)


_WORDS: Final = frozenset({"id", "object", "model", "service_tier", "system_fingerprint", "obfuscation"})


def text_piece(data: Any) -> ChatCompletionChunk | None:
    """Returns the chunk as the SDK would make it, if it is only a piece of text; otherwise None."""
    if type(data) is not dict:
        return None
    given = cast("dict[str, Any]", data)
    choices = cast("list[Any]", given.get("choices"))
    if type(choices) is not list or len(choices) != 1 or type(choices[0]) is not dict:
        return None
    choice = cast("dict[str, Any]", choices[0])
    delta = cast("dict[str, Any]", choice.get("delta"))
    plain = (
        type(delta) is dict
        and all(key in ("role", "content") and _is_word(value) for key, value in delta.items())
        and all(_is_plain_field(key, value, "index", ("delta",), ("finish_reason",)) for key, value in choice.items())
        and all(_is_plain_field(key, value, "created", ("choices",), _WORDS) for key, value in given.items())
    )
    if not plain:
        return None
    said = _made(Choice, {**choice, "delta": _made(ChoiceDelta, delta)})
    return _made(ChatCompletionChunk, {**given, "choices": [said]})


def _is_plain_field(key: str, value: Any, number: str, parts: Container[str], words: Container[str]) -> bool:
    if key in parts or value is None:
        return True
    return type(value) is int if key == number else key in words and type(value) is str


def _is_word(value: Any) -> bool:
    return value is None or type(value) is str


def _made(of: type[_Made], values: dict[str, Any]) -> _Made:
    """Builds an object of the SDK with these values, without validation."""
    made, defaults = of.__new__(of), _defaults(of)
    known = {key: value for key, value in values.items() if key in defaults}
    fields = {**defaults, **{key: value for key, value in known.items() if value is not None}}
    object.__setattr__(made, "__dict__", fields)
    object.__setattr__(made, "__pydantic_private__", None)
    object.__setattr__(made, "__pydantic_extra__", {key: values[key] for key in values if key not in defaults})
    object.__setattr__(made, "__pydantic_fields_set__", set(known))
    return made


@cache
def _defaults(of: type[Any]) -> dict[str, Any]:
    fresh: object = of.construct()
    return dict(vars(fresh))


class _CustomizedOnce(Model):
    """A model that converts the parameters of requests once for the same object, not with each request."""

    @cached_property
    def _customized(self) -> dict[int, tuple[ModelRequestParameters, ModelRequestParameters]]:
        return {}

    def customize_request_parameters(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        known, given = self._customized, model_request_parameters
        if (made := known.get(id(given))) is not None:
            return made[1]
        if len(known) >= _REMEMBERED_TOOL_SETS:
            del known[next(iter(known))]
        # The original is kept beside the result, so that no other object can have its address.
        known[id(given)] = (given, super().customize_request_parameters(given))
        return known[id(given)][1]


class ChatModel(_CustomizedOnce, OpenAIChatModel):
    """Chat Completions, mapping each message once."""

    @cached_property
    def _mapped(self) -> _MappedMessages:
        return _MappedMessages(_CHAT_PARTS)

    async def _map_messages(self, messages: Sequence[ModelMessage], *args: Any, **kwargs: Any) -> list[Any]:
        known = self._mapped
        if not (self._maps_one_by_one() and known.are_plain(messages)):
            return await super()._map_messages(messages, *args, **kwargs)
        for message in known.unknown(messages[1:], ()):
            known.remember(message, (), await super()._map_messages([message], *args, **kwargs))
        # The first message is mapped again: instructions and cache marks are put there, in place.
        head = await super()._map_messages(messages[:1], *args, **kwargs)
        return known.joined(cast(list[Item], head), messages[1:])

    def _maps_one_by_one(self) -> bool:
        profile = self.profile
        return profile.get("openai_chat_supports_multiple_system_messages", True) and not (
            profile.get("openai_chat_thinking_requires_field_on_tool_calls", False)
        )


class ResponsesModel(_CustomizedOnce, OpenAIResponsesModel):
    """Responses, mapping each message once."""

    @cached_property
    def _mapped(self) -> _MappedMessages:
        return _MappedMessages(_RESPONSES_PARTS)

    async def _map_messages(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        **kwargs: Any,
    ) -> tuple[str | Omit, list[Any]]:
        known = self._mapped
        rest = (model_settings, model_request_parameters)
        plain = known.are_plain(messages) and not model_request_parameters.native_tools
        if not plain or not self._maps_one_by_one(model_settings, **kwargs):
            return await super()._map_messages(messages, *rest, **kwargs)
        key = (model_settings.get("openai_send_reasoning_ids"), model_settings.get("openai_store"))
        for message in known.unknown(messages[1:], key):
            known.remember(message, key, (await super()._map_messages([message], *rest))[1])
        instructions, head = await super()._map_messages(messages[:1], *rest)
        return instructions, known.joined(cast(list[Item], head), messages[1:])

    def _maps_one_by_one(
        self, settings: Any, *, standing_prompt_retained: bool = True, previous_response_id: str | None = None
    ) -> bool:
        profile = self.profile
        return (
            standing_prompt_retained
            and previous_response_id is None
            # It writes into the list of items after it was mapped.
            and not settings.get("openai_cache_instructions")
            and profile.get("openai_responses_supports_interleaved_function_calls", True)
            and not profile.get("openai_responses_tool_call_ids_are_response_scoped", False)
        )


class _MappedMessages:
    """The mapped form of each message, for as long as the message lives."""

    def __init__(self, parts: frozenset[type]) -> None:
        self._plain_parts = parts
        self._known: dict[int, _Entry] = {}

    def are_plain(self, messages: Sequence[ModelMessage]) -> bool:
        """Whether the mapping of every message is independent of the others."""
        known = self._known
        return bool(messages) and all(
            id(message) in known or _is_plain(message, self._plain_parts) for message in messages
        )

    def unknown(self, messages: Sequence[ModelMessage], key: tuple[Any, ...]) -> list[ModelMessage]:
        """Returns those not yet mapped under `key`, which holds the settings that change a mapping."""
        known = self._known
        return [message for message in messages if (entry := known.get(id(message))) is None or entry.key != key]

    def remember(self, message: ModelMessage, key: tuple[Any, ...], items: Sequence[Any]) -> None:
        address, known = id(message), self._known
        # The entry is removed with the message, before another object can get its address.
        gone = weakref.ref(message, lambda _: known.pop(address, None))
        known[address] = _Entry(gone, key, list(items), b",".join(map(_encode, items)))

    def joined(self, head: list[Item], messages: Sequence[ModelMessage]) -> _Encoded:
        entries = [self._known[id(message)] for message in messages]
        items = _Encoded(head)
        for entry in entries:
            items.extend(entry.items)
        pieces = [*map(_encode, head), *(entry.encoded for entry in entries if entry.encoded)]
        items.encoded = b"[" + b",".join(pieces) + b"]"
        return items


class _Entry:
    __slots__ = ("_gone", "encoded", "items", "key")

    def __init__(self, gone: weakref.ref[Any], key: tuple[Any, ...], items: list[Item], encoded: bytes) -> None:
        self._gone = gone
        self.key = key
        self.items = items
        self.encoded = encoded


class _Encoded(list[Item]):
    """Mapped messages that carry their own JSON."""

    encoded: bytes


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(self, **params: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await self._post(
            "/chat/completions",
            **_as_it_is(self._client, "messages", params),
            cast_to=ChatCompletion,
            stream=bool(params.get("stream")),
            stream_cls=AsyncStream[ChatCompletionChunk],
        )


class _Responses(AsyncResponses):
    async def create(self, **params: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await self._post(
            "/responses",
            **_as_it_is(self._client, "input", params),
            cast_to=Response,
            stream=bool(params.get("stream")),
            stream_cls=AsyncStream[ResponseStreamEvent],
        )


def _as_it_is(client: AsyncOpenAI, long: str, params: dict[str, Any]) -> dict[str, Any]:
    """Returns the body and options of a request; `long` names the parameter that may carry its own JSON."""
    extra_body: dict[str, Any] = params.pop("extra_body", None) or {}
    options = make_request_options(
        extra_headers=params.pop("extra_headers", None),
        extra_query=params.pop("extra_query", None),
        timeout=params.pop("timeout", not_given),
        security={"bearer_auth": True},
    )
    body = {name: value for name, value in {**params, **extra_body}.items() if not _is_absent(value)}
    if type(client) is not AsyncOpenAI:
        # Azure and others read the body to choose the address or to sign it.
        return {"body": body, "options": options}
    items = body.pop(long, None)
    encoded = items.encoded if isinstance(items, _Encoded) else _encode(items)
    content = b'%b,"%b":%b}' % (_encode(body)[:-1], long.encode(), encoded)
    return {"content": content, "options": options}


def _is_absent(value: Any) -> bool:
    return isinstance(value, Omit | NotGiven)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _is_plain(message: ModelMessage, plain_parts: frozenset[type]) -> bool:
    if isinstance(message, ModelRequest) and message.instructions is not None:
        return False
    return all(type(part) in plain_parts and _is_text(part) for part in message.parts)


def _is_text(part: Any) -> bool:
    return isinstance(part, ToolCallPart) or isinstance(part.content, str) or _is_picture(part)


def _is_picture(part: Any) -> bool:
    """Whether the part is a line with its picture: it is mapped by itself, as text is."""
    return isinstance(part, UserPromptPart) and all(isinstance(each, str | BinaryContent) for each in part.content)
