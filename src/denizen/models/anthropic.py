"""Anthropic's API without the SDK's copy of each request, which walks through the whole history to change nothing.

The SDK copies a request's body before it sends it, because there may be files, dates or iterators in it. What
pydantic-ai makes of text, calls and their results is plain JSON data: such messages are sent as they are. All others
(pictures, documents, thinking) and the rest of the body go the long way.

This relies on names that the SDK may change in any release; it is pinned, and the tests compare every body with what
goes the long way.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic_ai.models import Model

_COPYING: Final = "_copy_and_prepare"
"""The SDK's method that copies a request."""
_PATH: Final = "/v1/messages"
_MESSAGES: Final = "messages"
_FIELDS: Final = {
    "text": frozenset({"type", "text", "cache_control"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
}
"""The kinds of blocks that are plain data, and their fields."""
_PLAIN: Final = frozenset({str, bool, dict})


def accelerate(model: Model) -> Model:
    """Returns the model, whose client sends plain messages without copying them if it is Anthropic's own."""
    # Bedrock, Vertex and others read the body to choose the address or to sign it.
    if isinstance(model, AnthropicModel) and type(model.client) is AsyncAnthropic:
        client = model.client
        vars(client)[_COPYING] = partial(_copy, partial(getattr(AsyncAnthropic, _COPYING), client))
    return model


async def _copy(long_way: Callable[[Any], Awaitable[Any]], options: Any) -> Any:
    body = options.json_data
    if options.url != _PATH or type(body) is not dict or options.extra_json:
        return await long_way(options)
    given = cast("dict[str, Any]", body).get(_MESSAGES)
    if type(given) is not list:
        return await long_way(options)
    messages = cast("list[Any]", given)
    # Only those that are not plain are copied, each back into its place.
    odd = [at for at, message in enumerate(messages) if not is_plain(message)]
    rest = options.model_copy(update={"json_data": {**body, _MESSAGES: [messages[at] for at in odd]}})
    prepared = await long_way(rest)
    copied = dict(zip(odd, prepared.json_data[_MESSAGES], strict=True))
    prepared.json_data[_MESSAGES] = [copied.get(at, message) for at, message in enumerate(messages)]
    return prepared


def is_plain(message: Any) -> bool:
    """Whether the message has nothing but text, calls and results that are text."""
    if type(message) is not dict:
        return False
    given = cast("dict[str, Any]", message)
    return given.keys() == {"role", "content"} and _is_plain_content(given["content"])


def _is_plain_content(content: Any) -> bool:
    return type(content) is str or (type(content) is list and all(map(_is_plain_block, cast("list[Any]", content))))


def _is_plain_block(block: Any) -> bool:
    if type(block) is not dict:
        return False
    given = cast("dict[str, Any]", block)
    fields = _FIELDS.get(given.get("type", ""))
    return fields is not None and all(
        name in fields and (type(value) in _PLAIN or (name == "content" and _is_plain_content(value)))
        for name, value in given.items()
    )
