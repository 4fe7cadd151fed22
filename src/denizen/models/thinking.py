"""Limits on thinking and output: most providers have one limit for both.

Providers count thinking as output, so a limit for the reply alone can end a response before it begins, and Anthropic
refuses a thinking budget that is not below `max_tokens`. Here the room for thinking is added to the room for the reply.
Requested thinking is also requested in a form that can be shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from denizen.models import learned
from denizen.models.location import is_openai

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

THINKING_TOKENS: Final = 10_000
"""Room for requested thinking."""
LEAST_THINKING_TOKENS: Final = 1_024
"""The smallest budget that Anthropic accepts."""
HEADROOM_TOKENS: Final = 2_048
"""Room for thinking that was not requested and may not be possible to turn off."""
PLAIN_ANSWERS: Final = 3
"""After so many answers without thinking, a local model gets no room for thinking that was not requested."""
_SPARE_TOKENS: Final = 64


def settings(model: Model, reply_tokens: int, *, thinking: bool | None = None) -> dict[str, Any]:
    """Returns the settings for a reply of at most `reply_tokens` tokens.

    `thinking` True requests it, False turns it off as far as the model can, None leaves the model as it is.
    """
    if thinking is True:
        return _asked_for(model, reply_tokens)
    budget = _own_budget(model)
    if thinking is None:
        return {"max_tokens": _within(model, reply_tokens + budget)}
    headroom = HEADROOM_TOKENS if _may_think_anyway(model) else 0
    return {"max_tokens": _within(model, reply_tokens + max(budget, headroom)), "thinking": False}


def brief(model: Model, named_tokens: int) -> dict[str, Any]:
    """Returns the settings for a short utility call whose prompt names a limit of `named_tokens`.

    Thinking is turned down. The hard limit is above the one that the prompt names: models count badly.
    """
    return settings(model, named_tokens + named_tokens // 4 + _SPARE_TOKENS, thinking=False)


def note_answer(model: Model, response: ModelResponse) -> None:
    """Records whether a model that may think unasked has done so. One that never does gets less room, so that a small
    model that does not find an end is stopped early. If it was cut off, the next answer has all the room again.
    """
    known = learned.about(model)
    is_plain = response.finish_reason != "length" and not any(each.part_kind == "thinking" for each in response.parts)
    known.plain_answers = known.plain_answers + 1 if is_plain else 0


def most_output(given: ModelSettings) -> int:
    """The most tokens that a response to a request with these settings may have."""
    return cast("dict[str, int]", given)["max_tokens"]


def _asked_for(model: Model, reply_tokens: int) -> dict[str, Any]:
    profile = cast("dict[str, Any]", model.profile)
    if not profile.get("supports_thinking", False):
        # pydantic-ai drops the setting; a local model may think all the same.
        headroom = THINKING_TOKENS if _may_think_anyway(model) else 0
        return {"max_tokens": _within(model, reply_tokens + headroom), "thinking": True}
    limit = _within(model, reply_tokens + THINKING_TOKENS)
    if model.system == "anthropic":
        if profile.get("anthropic_supports_adaptive_thinking", False):
            return {"max_tokens": limit, "anthropic_thinking": {"type": "adaptive", "display": "summarized"}}
        # At least half of a small limit is left for the reply.
        budget = max(min(THINKING_TOKENS, limit - min(reply_tokens, limit // 2)), LEAST_THINKING_TOKENS)
        limit = max(limit, budget + 1)
        return {"max_tokens": limit, "anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}
    found: dict[str, Any] = {"max_tokens": limit, "thinking": True}
    if _speaks_responses(model):
        found["openai_reasoning_summary"] = "auto"
    return found


def _within(model: Model, tokens: int) -> int:
    """Limits the tokens to the model's maximum output, if known: never more than half of its context."""
    most: Any = cast("dict[str, Any]", model.profile).get("anthropic_max_output_tokens")
    context = learned.about(model).context_tokens
    limits = [most if isinstance(most, int) else None, None if context is None else context // 2]
    return min(tokens, *(limit for limit in limits if limit is not None), tokens)


def _own_budget(model: Model) -> int:
    """Returns the thinking budget in the model's own settings: of a model object that was registered with them."""
    given = cast("dict[str, Any]", model.settings or {})
    budget = cast("dict[str, Any]", given.get("anthropic_thinking") or {}).get("budget_tokens", 0)
    return budget if isinstance(budget, int) else 0


def _may_think_anyway(model: Model) -> bool:
    """Whether the model thinks although it was told not to: some always do, and local servers may."""
    profile = model.profile
    if profile.get("thinking_always_enabled", False):
        return True
    return is_of_unknown_server(model) and learned.about(model).plain_answers < PLAIN_ANSWERS


def is_of_unknown_server(model: Model) -> bool:
    """Whether nothing says if its model thinks: a local server, or another with OpenAI's API."""
    known = model.system != "openai" or is_openai(model.base_url)
    return model.system == "ollama" or not known


def _speaks_responses(model: Model) -> bool:
    return any(parent.__name__ == "OpenAIResponsesModel" for parent in type(model).__mro__)
