"""What rounds cost: told before, counted after, and whatever came of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from decimal import Decimal

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.errors import ModelOverloaded, ModelRejected, ModelUnreachable
from denizen.models.prices import Price
from denizen.models.scripted import Info, Turn, call
from denizen.panel.panels import Panel
from denizen.panel.rounds import Reply
from tests.panel.test_rounds import a_panel, until, voices
from tests.world import UNHURRIED, World, open_world

EACH: int = 1_000_000
"""A dollar a token, in and out: what is spent in millionths of a dollar is what is used in tokens."""


@pytest.fixture
async def priced(ready_url: str) -> AsyncGenerator[World]:
    price = Price(Decimal(EACH), Decimal(EACH))
    async with open_world(ready_url, pace=UNHURRIED, prices={"m": price, "other": price, "third": price}) as world:
        yield world


async def spent(world: World, panel: Panel) -> tuple[int, int, int, int]:
    """What stands on the panel's account: calls, tokens in and out, dollars."""
    rows = await world.denizen.budgets.spending(days=1)
    mine = (row for row in rows if row.panel_id == panel.id)
    used = [(row.calls, row.input_tokens, row.output_tokens, row.cost_micros) for row in mine]
    calls, given, got, micros = map(sum, zip(*used, strict=True)) if used else (0, 0, 0, 0)
    return calls, given, got, micros // EACH


def bill(replies: tuple[Reply, ...]) -> tuple[int, int, int]:
    """What these replies say that they have used: tokens in and out, dollars."""
    given, got = sum(each.input_tokens for each in replies), sum(each.output_tokens for each in replies)
    return given, got, sum(each.cost_micros or 0 for each in replies) // EACH


async def test_what_was_foretold_is_what_it_costs(priced: World) -> None:
    """To the token what is sent; the reply within its bounds."""

    def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        return f"{who} has something to say to this."

    noor, panel = await a_panel(priced, voices(decide), "Seth", {"name": "Buber", "model": "other", "max_tokens": 100})
    priced.denizen.models.register("other", voices(decide))
    foretold = await priced.denizen.panels.estimate(panel, "@buber and @seth?")
    asked = await priced.denizen.panels.ask(panel, noor, "@buber and @seth?")
    await priced.run()
    now = await priced.denizen.rounds.get(asked)
    assert [(each.name, each.model, each.most_output_tokens) for each in foretold] == [
        ("Seth", "m", 4_000), ("Buber", "other", 100),
    ]  # fmt: skip
    for before, after in zip(foretold, now.spoken, strict=True):
        assert (before.voice, before.model) == (after.voice, after.model)
        assert abs(before.input_tokens - after.input_tokens) <= 8
        assert before.most_micros is not None
        assert 0 < (after.cost_micros or 0) == (after.input_tokens + after.output_tokens) * EACH <= before.most_micros
    assert await spent(priced, panel) == (2, *bill(now.spoken))


async def test_broken_attempts_are_paid_for(priced: World) -> None:
    """Broken off and tried again, failed for good, out of time, cancelled: what had come is counted, each as a call.

    What never began to answer told nothing of what it used.
    """
    may_go_on = asyncio.Event()
    attempts: dict[str, int] = {}

    def decide(who: str, _messages: list[ModelMessage], _info: Info) -> Turn:
        attempts[who] = attempts.get(who, 0) + 1
        match who:
            case "Retried" if attempts[who] == 1:
                return ["Half of what there was to say", ModelUnreachable("cut")]
            case "Retried" if attempts[who] == 2:
                return ModelOverloaded("later")
            case "Failed":
                return ["Half of it", ModelRejected("no more")]
            case _:
                return f"{who} says what there is to say, at some length."

    pieces, world = Counter[str](), priced

    def one_piece(who: str) -> Callable[[], Awaitable[None]]:
        async def hesitate() -> None:
            pieces[who] += 1
            if pieces[who] > 1:
                await may_go_on.wait()

        return hesitate

    slow = {"other": "Cancelled", "third": "Late"}
    advisors = ["Retried", "Failed", *({"name": who, "model": model} for model, who in slow.items())]
    patience = {"first_byte_seconds": 600, "total_seconds": 3_600}
    noor, panel = await a_panel(world, voices(decide), *advisors, **patience)
    for model, who in slow.items():
        world.denizen.models.register(model, voices(decide, pause=one_piece(who)))
    async with world.denizen.living():
        asked = await world.denizen.panels.ask(panel, noor, "Well?")
        while not (now := await world.denizen.rounds.get(asked)).spoken[0].is_over or pieces.total() < 4:
            world.clock.skip(5)
        await world.denizen.rounds.cancel(asked, now.spoken[2].voice)
        # It is cancelled at once, and what it had used is entered when it has stopped.
        await until(world.denizen.rounds.get, asked, lambda now: now.spoken[2].input_tokens > 0)
        while not (now := await world.denizen.rounds.get(asked)).all_completed:
            world.clock.skip(3_600)
    assert [(each.name, each.state, each.error_code) for each in now.spoken] == [
        ("Retried", "done", None),
        ("Failed", "failed", "model_rejected"),
        ("Cancelled", "cancelled", None),
        ("Late", "failed", "timed_out"),
    ]
    assert attempts == {"Retried": 3, "Failed": 1, "Cancelled": 1, "Late": 1}
    each_request = now.spoken[1].input_tokens
    assert now.spoken[0].input_tokens == pytest.approx(2 * each_request, abs=4)
    assert all(each.input_tokens and each.output_tokens for each in now.spoken)
    assert await spent(world, panel) == (5, *bill(now.spoken))


async def test_who_is_asked_anew_has_cost_both(priced: World) -> None:
    """And a proposal of advisors that broke off is on the account."""

    def decide(_who: str, _messages: list[ModelMessage], info: Info) -> Turn:
        return [call("suggest", advisors=[]), ModelRejected("no")] if info.tools else f"Answer {info.number}."

    noor, panel = await a_panel(priced, voices(decide), "Seth")
    asked = await priced.denizen.panels.ask(panel, noor, "Well?")
    await priced.run()
    first = bill((await priced.denizen.rounds.get(asked)).spoken)
    await priced.denizen.rounds.retry(asked, asked.spoken[0].voice)
    await priced.run()
    both = bill((await priced.denizen.rounds.get(asked)).spoken)
    assert both == tuple(2 * each for each in first)
    assert await spent(priced, panel) == (2, *both)
    with pytest.raises(ModelRejected):
        await priced.denizen.advisors.suggest(panel, "Bread")
    calls, *more = await spent(priced, panel)
    assert calls == 3
    assert all(now > before for now, before in zip(more, both, strict=True))
