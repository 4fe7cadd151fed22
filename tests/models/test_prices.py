"""What a response cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from denizen.models.prices import Price, Usage, cost, usage_of
from denizen.models.request import stream
from denizen.models.scripted import scripted


def answered(model: str | None = "gpt-5", **usage: Any) -> ModelResponse:
    return ModelResponse([TextPart("x")], usage=RequestUsage(**usage), model_name=model, provider_name="openai")


def test_a_known_model_has_its_price_and_cached_input_is_cheaper():
    full, cached = answered(input_tokens=10_000), answered(input_tokens=10_000, cache_read_tokens=10_000)
    dear, cheap = cost(full), cost(cached)
    assert dear is not None
    assert cheap is not None
    assert 0 < cheap < dear


def test_nobody_knows_the_price_of_an_unknown_model():
    assert cost(answered("no-such-model", input_tokens=1)) is None
    assert cost(answered(None, input_tokens=1)) is None


def test_an_override_comes_first_and_the_fuller_name_before_the_shorter():
    response = answered(input_tokens=1_000_000, cache_read_tokens=400_000, output_tokens=100_000)
    price = Price(input=Decimal(2), output=Decimal(10), cached=Decimal("0.5"))
    assert cost(response, {"gpt-5": price}) == Decimal("2.4")
    assert cost(response, {"gpt-5": price, "openai:gpt-5": Price(Decimal(0), Decimal(1))}) == Decimal("0.1")
    assert cost(response, {"gpt-5": Price(Decimal(2), Decimal(10))}) == Decimal(3)


def test_a_dated_answer_is_priced_by_the_name_that_was_asked_for():
    response = answered("gpt-9-2030-01-01", input_tokens=1_000_000)
    prices = {"openai-chat:gpt-9": Price(Decimal(4), Decimal(8))}
    assert cost(response, prices) is None
    assert cost(response, prices, asked="openai-chat:gpt-9") == Decimal(4)


async def test_a_scripted_answer_costs_nothing_unless_it_is_given_a_price():
    async with stream(scripted("Hello."), [ModelRequest([UserPromptPart("Hi.")])]) as answer:
        async for _ in answer:
            pass
    assert cost(answer.response) == 0
    assert cost(answer.response, {"scripted": Price(Decimal(0), Decimal(1_000_000))}) == 2


def test_usage_adds_up():
    used = usage_of(answered(input_tokens=5, output_tokens=2, cache_read_tokens=3, cache_write_tokens=1))
    assert used == Usage(5, 2, 3, 1)
    assert used + Usage(1, 1, 1, 1) == Usage(6, 3, 4, 2)
