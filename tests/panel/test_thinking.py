"""Advisors that think, asked of a server that refuses what Anthropic refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.loopback import Failure, loopback
from tests.panel.test_rounds import until
from tests.world import World


async def test_an_advisor_that_reasons_is_answered_by_anthropic_at_the_defaults_of_a_panel(
    small_unhurried_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for 4,000 tokens with a thinking budget of 10,000, which is refused."""
    world = small_unhurried_world
    async with loopback() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-loopback")
        server.tool = None

        def judge(body: dict[str, Any]) -> Failure | None:
            said = "`max_tokens` must be greater than `thinking.budget_tokens`."
            budget = body.get("thinking", {}).get("budget_tokens", 0)
            error = {"type": "invalid_request_error", "message": said}
            return Failure(400, body={"type": "error", "error": error}) if budget >= body["max_tokens"] else None

        server.judge = judge
        noor = await world.person("Noor")
        seth = {"name": "Seth", "reasoning": True, "model": "anthropic:claude-haiku-4-5"}
        panel = await world.denizen.panels.create("Board", [noor], advisors=[seth])
        async with world.denizen.living():
            asked = await world.denizen.panels.ask(panel, noor, "Well?")
            now = await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
        assert [(each.state, each.error) for each in now.spoken] == [("done", None)]
    assert server.received[0].body["thinking"]["type"] == "enabled"


async def test_a_reply_that_reached_its_limit_says_so(
    small_unhurried_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_unhurried_world
    async with loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-loopback")
        server.tool, server.finish = None, "length"
        noor = await world.person("Noor")
        panel = await world.denizen.panels.create("Board", [noor], model="openai-chat:local", max_tokens=500)
        async with world.denizen.living():
            asked = await world.denizen.panels.ask(panel, noor, "Well?")
            now = await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
            assert now.spoken[0].text == "Good morning.\n\n[Cut off at the limit of 500 tokens.]"
            server.text = ""
            asked = await world.denizen.panels.ask(panel, noor, "And now?")
            now = await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
    assert now.spoken[0].error == (
        "The model used up its limit of 500 tokens before it had answered. Raise max_tokens, or turn reasoning off."
    )
