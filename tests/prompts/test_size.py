"""What an agent costs before anything has happened. Every request pays for each word of the self and of the tools."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from bench.prompt import count, first_request, rendered


@pytest.mark.parametrize(
    ("profile", "ceilings"),
    [("normal", {"smollm2": 1_610, "qwen2.5": 1_500}), ("small", {"smollm2": 870, "qwen2.5": 800})],
)
async def test_an_empty_agent_costs_no_more_than_this(
    profile: Literal["normal", "small"], ceilings: dict[str, int], tmp_path: Path
) -> None:
    """The ceiling is Qwen's, whose tokenizer is not among the dependencies (50 MB). SmolLM2's counts 7 % more."""
    text = rendered(*await first_request(tmp_path, profile))
    counted = {name: count(text, name) for name in ceilings}
    assert counted["smollm2"] is not None
    assert all(tokens is None or tokens <= ceilings[name] for name, tokens in counted.items()), counted
