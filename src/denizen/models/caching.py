"""Prompt caching: makes a provider cache the prefix of a prompt, so that the next request reads it for a tenth of the
price.

Only this module knows how each provider does it; providers not named here get nothing. The prompt itself is the same
for all: cache marks are put into a copy on the way out and are never stored.

**Anthropic** reads what an earlier request wrote at a mark, and allows four marks: at the end of the tools, of the
self, of the inbox message that the cycle began with, and of the lasting part of the request; a preview of the inbox
comes after that. **OpenAI** finds the prefix by itself; a key routes the requests of one agent to the same machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic_ai.messages import CachePoint, ModelMessage, ModelRequest, UserPromptPart

from denizen.ids import AgentId
from denizen.models.location import is_openai

if TYPE_CHECKING:
    from pydantic_ai.models import Model

Way = Literal["marks", "key"]


def way_of(model: Model) -> Way | None:
    """How this model's provider is told what to cache; None if it is told nothing."""
    if model.system == "anthropic":
        return "marks"
    # Others speak OpenAI's API too, and some refuse unknown fields.
    if model.system == "azure" or (model.system == "openai" and is_openai(model.base_url)):
        return "key"
    return None


def settings(model: Model, agent_id: AgentId) -> dict[str, Any]:
    """Returns the cache settings for a request of this agent."""
    match way_of(model):
        case "marks":
            return {"anthropic_cache_tool_definitions": True, "anthropic_cache_instructions": True}
        case "key":
            return {"openai_prompt_cache_key": agent_id}
        case None:
            return {}


def marked(model: Model, messages: list[ModelMessage], at: Iterable[int]) -> list[ModelMessage]:
    """Returns the messages with cache marks at these positions, if the provider uses marks.

    Otherwise returns the same list. At most two marks: two more are in the settings.
    """
    if way_of(model) != "marks":
        return messages
    copy = list(messages)
    for place in sorted(set(at))[-2:]:
        message = copy[place]
        if isinstance(message, ModelRequest):
            copy[place] = _marked(message)
    return copy


def _marked(message: ModelRequest) -> ModelRequest:
    # A part of its own marks whatever comes before it, be it a text or the result of a tool.
    return replace(message, parts=[*message.parts, UserPromptPart([CachePoint()])])
