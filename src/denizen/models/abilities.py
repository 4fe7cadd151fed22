"""The abilities of a model, as far as known without a request: tools, images, context, thinking, price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from denizen.models import context_size
from denizen.models.location import is_openai
from denizen.models.prices import Price, Usage, expected_cost, is_built_in
from denizen.shapes.vocabulary import Thinking

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Abilities:
    """What is known of one model. None: not known."""

    tools: bool | None
    images: bool | None
    context_tokens: int | None
    context_source: str
    thinking: Thinking
    input_price: Decimal | None
    """Dollars per million input tokens."""
    output_price: Decimal | None


def abilities_of(
    model: Model, name: str, prices: Mapping[str, Price] | None = None, contexts: Mapping[str, int] | None = None
) -> Abilities:
    """Returns what is known of the model. Reading the price list takes half a second at the first use."""
    profile = cast("dict[str, Any]", model.profile)
    size = context_size.size_of(model, name, contexts)
    # For a self-hosted server, a profile says nothing: it is chosen by the name of the model.
    own = model.system in ("openai", "ollama", "vllm") and not is_openai(model.base_url)
    free = is_built_in(model)
    return Abilities(
        tools=None if own else bool(profile.get("supports_tools", True)),
        images=False if free else None if own else bool(profile.get("supports_image_input", True)),
        context_tokens=size.tokens,
        context_source=size.source,
        thinking="no" if free else _thinking(profile, own=own),
        input_price=expected_cost(model, Usage(input=_MILLION), prices, asked=name),
        output_price=expected_cost(model, Usage(output=_MILLION), prices, asked=name),
    )


def _thinking(profile: Mapping[str, Any], *, own: bool) -> Thinking:
    if profile.get("thinking_always_enabled", False):
        return "always"
    if profile.get("thinking_enabled_by_default", False):
        return "by default"
    if profile.get("supports_thinking", False):
        return "on request"
    return "unknown" if own else "no"
