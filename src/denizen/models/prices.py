"""Usage and cost of a response, in dollars. Pure except for the price list, which is read at the first use."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

_MILLION = 1_000_000
FREE = frozenset({"scripted", "demo", "local"})
"""Our own providers and models, which cost nothing; without the price list, whose reading takes half a second."""
_NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    """Input read from the provider's cache; the same as other input if not given."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. `input` counts all of a request's tokens, those read from and written to the cache among them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


def is_built_in(model: Model) -> bool:
    """Whether it is our demo, scripted or local model, which cost nothing."""
    return model.system in FREE


def usage_of(response: ModelResponse) -> Usage:
    """The tokens that the response reports."""
    usage = response.usage
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)


def cost(
    response: ModelResponse, overrides: Mapping[str, Price] | None = None, *, asked: str | None = None
) -> Decimal | None:
    """Returns the cost of the response in dollars; None if its price is unknown.

    `overrides` are looked up first: under `asked`, the name by which the model was asked (a provider answers with a
    dated one), then under `provider:name`, then under the name alone.
    """
    price = _override(response, overrides or {}, asked)
    if price is not None:
        return _priced(usage_of(response), price)
    if response.provider_name in FREE:
        return _NOTHING
    if not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):
        return None


def expected_cost(
    model: Model, usage: Usage, overrides: Mapping[str, Price] | None = None, *, asked: str | None = None
) -> Decimal | None:
    """Returns the cost of a call of this size in dollars; None if the price of that model is unknown."""
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

    used = RequestUsage(input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cache_read)
    would_be = ModelResponse(
        [], usage=used, model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
    )
    return cost(would_be, overrides, asked=asked)


def _override(response: ModelResponse, overrides: Mapping[str, Price], asked: str | None) -> Price | None:
    names = (asked or "", f"{response.provider_name}:{response.model_name}", response.model_name or "")
    return next((overrides[name] for name in names if name in overrides), None)


def _priced(usage: Usage, price: Price) -> Decimal:
    cached = price.input if price.cached is None else price.cached
    fresh = max(usage.input - usage.cache_read, 0)
    return (fresh * price.input + usage.cache_read * cached + usage.output * price.output) / _MILLION
