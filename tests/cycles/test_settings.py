"""What an owner may set of cycles, windows and budgets: each limit, and the value next to it that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from denizen.consciousness.settings import WindowSettings
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.conditions import Condition
from denizen.cycles.phases import Phase
from denizen.cycles.settings import CycleSettings, Triage

LIMITS: list[tuple[type[BaseModel], str, Any, Any]] = [
    (CycleSettings, "max_steps", 1, 0),
    (CycleSettings, "token_budget", 500, 499),
    (CycleSettings, "max_dollars", "0.000001", 0),
    (CycleSettings, "alert_dollars", "0.000001", 0),
    (CycleSettings, "max_seconds", 0.001, 0),
    (WindowSettings, "max_tokens", 2_000, 1_999),
    (WindowSettings, "target_share", 0.11, 0.1),
    (WindowSettings, "target_share", 0.94, 0.95),
    (WindowSettings, "min_recent_cycles", 1, 0),
    (WindowSettings, "min_recent_cycles", 1_000, 1_001),
    (WindowSettings, "layer_share", 0.01, 0),
    (WindowSettings, "layer_share", 0.25, 0.26),
    (WindowSettings, "inbox_share", 0.01, 0),
    (WindowSettings, "inbox_share", 0.5, 0.51),
    (WindowSettings, "result_characters", 500, 499),
    (WindowSettings, "output_tokens", 256, 255),
    (BudgetSettings, "dollars_per_day", "0.000001", 0),
    (BudgetSettings, "tokens_per_day", 1, 0),
    (BudgetSettings, "dollars", "0.000001", 0),
    (BudgetSettings, "tokens", 1, 0),
    (Phase, "until_step", 0, -1),
    (Condition, "shorter_than", 1, 0),
    (Condition, "longer_than", 0, -1),
    (Triage, "model", "m", ""),
    (Triage, "instructions", "x" * 4_000, "x" * 4_001),
]


@pytest.mark.parametrize(("settings", "field", "taken", "refused"), LIMITS)
def test_a_limit_is_taken_and_the_value_beyond_it_is_refused(
    settings: type[BaseModel], field: str, taken: Any, refused: Any
) -> None:
    given: dict[str, Any] = {"model": "m"} if settings is Triage else {}
    assert settings.model_validate(given | {field: taken})
    with pytest.raises(ValidationError):
        settings.model_validate(given | {field: refused})


@pytest.mark.parametrize("settings", [CycleSettings, WindowSettings, BudgetSettings, Phase, Condition])
def test_a_setting_that_does_not_exist_is_refused(settings: type[BaseModel]) -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        settings.model_validate({"no_such_setting": 1})
