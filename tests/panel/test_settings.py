"""What may be set of panels and advisors: each limit, and the value next to it that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.errors import InvalidInput
from denizen.panel.phases import Phase
from denizen.panel.settings import AdvisorSettings, PanelSettings, checked

PHASE = {"instructions": "Ask."}
LIMITS: list[tuple[type[Any], str, Any, Any]] = [
    (PanelSettings, "model", "m", ""),
    (PanelSettings, "max_tokens", 1, 0),
    (PanelSettings, "max_tokens", 200_000, 200_001),
    (PanelSettings, "phases", [PHASE] * 20, [PHASE] * 21),
    (PanelSettings, "context_characters", 1_000, 999),
    (PanelSettings, "context_characters", 4_000_000, 4_000_001),
    (PanelSettings, "reference_characters", 100, 99),
    (PanelSettings, "reference_characters", 100_000, 100_001),
    (PanelSettings, "first_byte_seconds", 0.1, 0),
    (PanelSettings, "first_byte_seconds", 600, 601),
    (PanelSettings, "total_seconds", 0.1, 0),
    (PanelSettings, "total_seconds", 3_600, 3_601),
    (PanelSettings, "at_once", 1, 0),
    (PanelSettings, "crosstalk", 0, -1),
    (PanelSettings, "utility_model", "m" * 200, "m" * 201),
    (AdvisorSettings, "model", "m", ""),
    (AdvisorSettings, "model", "m" * 200, "m" * 201),
    (AdvisorSettings, "max_tokens", 1, 0),
    (AdvisorSettings, "max_tokens", 200_000, 200_001),
    (AdvisorSettings, "phases", [PHASE] * 20, [PHASE] * 21),
    (AdvisorSettings, "assertions", ["answers"] * 20, ["answers"] * 21),
    (Phase, "until_turn", 1, 0),
    (Phase, "name", "n" * 60, "n" * 61),
]


@pytest.mark.parametrize(("settings", "field", "taken", "refused"), LIMITS)
def test_a_limit_is_taken_and_the_value_beyond_it_is_refused(
    settings: type[Any], field: str, taken: Any, refused: Any
) -> None:
    given: dict[str, Any] = PHASE if settings is Phase else {}
    assert checked(settings, given | {field: taken}, "a panel")
    with pytest.raises(InvalidInput, match=f"settings of a panel. {field}"):
        checked(settings, given | {field: refused}, "a panel")


@pytest.mark.parametrize("settings", [PanelSettings, AdvisorSettings])
def test_a_setting_that_does_not_exist_is_refused(settings: type[Any]) -> None:
    with pytest.raises(InvalidInput, match="no_such_setting: Extra inputs"):
        checked(settings, {"no_such_setting": 1}, "a panel")
