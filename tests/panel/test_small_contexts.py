"""Panels whose model takes little: the oldest turns are left out, and every question is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from denizen.panel.context import RequestMessage, fitting
from tests.models.loopback import Failure, loopback
from tests.panel.test_rounds import until
from tests.world import World


async def test_a_panel_on_a_server_of_4096_tokens_answers_every_turn(
    small_unhurried_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_unhurried_world
    async with loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-loopback")
        server.tool, server.text = None, "Tea is a plant. " * 100

        def judge(body: dict[str, Any]) -> Failure | None:
            needed = len(json.dumps(body["messages"])) // 4 + body["max_tokens"]
            said = f"This model's maximum context length is 4096 tokens. However, you requested {needed} tokens."
            return Failure(400, body={"message": said, "code": 400}) if needed > 4_096 else None

        server.judge = judge
        noor = await world.person("Noor")
        panel = await world.denizen.panels.create("Tea", [noor], model="openai-chat:small")
        async with world.denizen.living():
            for number in range(12):
                asked = await world.denizen.panels.ask(panel, noor, f"Question {number}: {'tell me more ' * 40}?")
                now = await until(world.denizen.rounds.get, asked, lambda now: now.all_completed)
                assert [(each.state, each.error) for each in now.spoken] == [("done", None)]


def test_the_oldest_lines_go_first_and_the_frame_and_the_question_stay() -> None:
    lines = [
        RequestMessage("system", "You are Seth."),
        RequestMessage("user", "a" * 50),
        RequestMessage("assistant", "b" * 50),
        RequestMessage("user", "Now?"),
    ]
    assert fitting(lines, 1_000) == lines
    assert fitting(lines, 80) == [lines[0], lines[2], lines[3]]
    assert fitting(lines, 1) == [lines[0], lines[3]]
