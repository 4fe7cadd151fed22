"""What users and models may set, from where to where, and what holds where nothing is set.

The numbers stand here again on purpose: a limit or a default that changes is a change for users.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from denizen.consciousness.settings import WindowSettings
from denizen.cycles import phases
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.conditions import Condition
from denizen.cycles.organization import OrganizationSettings
from denizen.cycles.routing import Route
from denizen.cycles.settings import CycleSettings, StopAfter, Triage
from denizen.memory.documents import Item, PassResult
from denizen.memory.policy import OrganizationMemory
from denizen.memory.settings import CompactionProfile, LongTerm, Routing, Switches
from denizen.panel.advisors import AdvisorDraft
from denizen.panel.phases import Phase
from denizen.panel.settings import AdvisorSettings, PanelSettings
from denizen.tools.declaring import WillUse
from denizen.tools.grants import Verdict
from denizen.tools.planning import SetMemories
from denizen.tools.prebuilt import ReadEntry, ReadMessages
from denizen.tools.recalling import Recall
from denizen.tools.settings import A2aTool, ClientTool, GuardSettings, HttpTool, McpOAuth, McpServer
from denizen.tools.skills import Skill

NUMBERS: Final[dict[type[BaseModel], dict[str, tuple[tuple[float, ...], tuple[float, ...]]]]] = {
    WindowSettings: {
        "max_tokens": ((2_000,), (1_999,)),
        "target_share": ((0.11, 0.94), (0.1, 0.95)),
        "min_recent_cycles": ((1, 1_000), (0, 1_001)),
        "layer_share": ((0.01, 0.25), (0, 0.26)),
        "inbox_share": ((0.01, 0.5), (0, 0.51)),
        "result_characters": ((500,), (499,)),
        "context_tokens": ((1_024,), (1_023,)),
        "output_tokens": ((256,), (255,)),
    },
    BudgetSettings: dict.fromkeys(("dollars_per_day", "tokens_per_day", "dollars", "tokens"), ((1,), (0,))),
    Condition: {"shorter_than": ((1,), (0,)), "longer_than": ((0,), (-1,))},
    OrganizationSettings: {"keep_days": ((0, 36_500), (-1, 36_501))},
    phases.Phase: {"until_step": ((0,), (-1,))},
    Route: {"from_step": ((0,), (-1,))},
    StopAfter: {"times": ((1,), (0,))},
    CycleSettings: {
        "max_steps": ((1,), (0,)),
        "token_budget": ((500,), (499,)),
        "max_dollars": ((0.01,), (0,)),
        "alert_dollars": ((0.01,), (0,)),
        "max_seconds": ((0.01,), (0,)),
    },
    Item: {"confidence": ((0, 1), (-0.01, 1.01))},
    CompactionProfile: {
        "cooldown_ms": ((0,), (-1,)),
        "tail_turns": ((0, 10_000), (-1, 10_001)),
        "min_turns": ((1, 10_000), (0, 10_001)),
        "max_turns": ((1, 1_000), (0, 1_001)),
        "max_summary_tokens": ((100, 20_000), (99, 20_001)),
    },
    Routing: {"every_turns": ((0,), (-1,))},
    LongTerm: {"max_characters": ((200, 40_000), (199, 40_001))},
    Switches: {
        "cooldown_ms": ((0,), (-1,)),
        "tail_turns": ((0,), (-1,)),
        "min_turns": ((1,), (0,)),
        "max_turns_per_pass": ((1,), (0,)),
        "max_summary_tokens": ((100,), (99,)),
    },
    Phase: {"until_turn": ((1,), (0,))},
    PanelSettings: {
        "max_tokens": ((1, 200_000), (0, 200_001)),
        "context_characters": ((1_000, 4_000_000), (999, 4_000_001)),
        "reference_characters": ((100, 100_000), (99, 100_001)),
        "first_byte_seconds": ((0.01, 600), (0, 601)),
        "total_seconds": ((0.01, 3_600), (0, 3_601)),
        "at_once": ((1, 50), (0, 51)),
        "crosstalk": ((0, 5), (-1, 6)),
    },
    AdvisorSettings: {"max_tokens": ((1, 200_000), (0, 200_001))},
    Verdict: {"times": ((1, 10_000), (0, 10_001)), "seconds": ((0.01, 2_592_000), (0, 2_592_001))},
    ReadMessages: {"before": ((1,), (0,)), "after": ((0,), (-1,)), "limit": ((1, 100), (0, 101))},
    ReadEntry: {"offset": ((0,), (-1,))},
    HttpTool: {"seconds": ((0.01, 3_600), (0, 3_601))},
    ClientTool: {"seconds": ((0.01, 2_592_000), (0, 2_592_001))},
    A2aTool: {"seconds": ((0.01, 3_600), (0, 3_601))},
    McpServer: {"seconds": ((0.01, 3_600), (0, 3_601))},
    GuardSettings: {"words": ((3, 50), (2, 51))},
}
"""What is taken, and what is refused."""
LENGTHS: Final[dict[type[BaseModel], dict[str, tuple[int, int | None]]]] = {
    phases.Phase: {"name": (0, 50)},
    Route: {"model": (1, None), "by": (1, None)},
    Triage: {"by": (1, None), "model": (1, None), "instructions": (0, 4_000)},
    StopAfter: {"after": (1, None)},
    CycleSettings: {"prepare_step": (1, None)},
    Item: {"text": (1, 500), "replaces": (0, 500)},
    PassResult: {"summary_markdown": (1, None)},
    CompactionProfile: {"model": (1, None), "prompt": (1, None)},
    AdvisorDraft: {"description": (0, 20_000), "group": (0, 60)},
    Phase: {"name": (0, 60), "instructions": (0, 8_000)},
    PanelSettings: {"model": (1, None), "utility_model": (0, 200)},
    AdvisorSettings: {"model": (1, 200)},
    Recall: {"query": (1, 2_000)},
    HttpTool: {"description": (1, None)},
    ClientTool: {"description": (1, None)},
    A2aTool: {"description": (1, None)},
    McpOAuth: {"client_id": (1, None)},
    Skill: {"description": (1, 1_024), "text": (0, 200_000), "source": (0, 500)},
}
"""Of texts: the shortest and the longest."""
COUNTS: Final[list[tuple[type[BaseModel], str, Any, int, int]]] = [
    (OrganizationSettings, "secret_hosts", {"KEY": ["example.com"]}, 0, 200),
    (PanelSettings, "phases", [{"instructions": "Ask."}], 0, 20),
    (AdvisorSettings, "phases", [{"instructions": "Ask."}], 0, 20),
    (AdvisorSettings, "assertions", ["It is short."], 0, 20),
    (WillUse, "tools", ["look_up"], 0, 50),
    (SetMemories, "memories", {"name": "text"}, 1, 50),
    (Skill, "files", {"a.md": "text"}, 0, 50),
]
"""Of lists and objects: an example of one, the fewest and the most."""
PATTERNS: Final[list[tuple[type[BaseModel], str, tuple[str, ...], tuple[str, ...]]]] = [
    (AdvisorDraft, "colour", ("", "#09afAF"), ("red", "#09afA", "#09afAF0", "x#09afAF")),
    *(
        (each, "name", ("a", "_", "A-b_9", "a" * 64), ("", "9a", "-a", "a b", "a" * 65))
        for each in (HttpTool, ClientTool, A2aTool)
    ),
    *(
        (each, name, ("http://a.b", "https://a.b"), ("ftp://a.b", "a.b", " https://a.b"))
        for each, name in ((HttpTool, "url"), (A2aTool, "url"), (McpServer, "url"), (McpOAuth, "issuer"))
    ),
    (McpOAuth, "client_secret", ("${SECRET}", "${_a9}"), ("secret", "${9a}", "${}", "x${SECRET}", "${SECRET}x")),
    (McpServer, "prefix", ("", "a-B_9", "a" * 32), ("a b", "a" * 33)),
]


def takes(model: type[BaseModel], name: str, value: object) -> bool:
    field = model.model_fields[name]
    limits = field.metadata
    wanted: Any = Annotated[field.annotation, *limits] if limits else field.annotation  # pyright: ignore[reportInvalidTypeForm]
    try:
        TypeAdapter(wanted).validate_python(value)
    except ValidationError:
        return False
    return True


def test_numbers_are_taken_up_to_their_limits_and_refused_beyond() -> None:
    for model, fields in NUMBERS.items():
        for name, (taken, refused) in fields.items():
            wrong = [each for each in (*taken, *refused) if takes(model, name, each) != (each in taken)]
            assert not wrong, f"{model.__name__}.{name}"


def test_texts_are_taken_up_to_their_limits_and_refused_beyond() -> None:
    for model, fields in LENGTHS.items():
        for name, (shortest, longest) in fields.items():
            assert takes(model, name, "x" * shortest), f"{model.__name__}.{name}"
            assert not shortest or not takes(model, name, "x" * (shortest - 1)), f"{model.__name__}.{name}"
            if longest is not None:
                assert takes(model, name, "x" * longest), f"{model.__name__}.{name}"
                assert not takes(model, name, "x" * (longest + 1)), f"{model.__name__}.{name}"


def test_lists_and_objects_are_taken_up_to_their_limits_and_refused_beyond() -> None:
    for model, name, one, fewest, most in COUNTS:
        assert [
            takes(model, name, several(one, count)) for count in (fewest - 1, fewest, most, most + 1) if count >= 0
        ] == [False] * (fewest > 0) + [True, True, False], f"{model.__name__}.{name}"


def several(one: Any, count: int) -> Any:
    if isinstance(one, dict):
        [(key, value)] = one.items()
        return {f"{key}{at}": value for at in range(count)}
    return one * count


def test_texts_of_a_form_are_taken_and_others_refused() -> None:
    for model, name, taken, refused in PATTERNS:
        wrong = [each for each in (*taken, *refused) if takes(model, name, each) != (each in taken)]
        assert not wrong, f"{model.__name__}.{name}"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            WindowSettings(),
            {
                "max_tokens": 100_000,
                "target_share": 0.6,
                "min_recent_cycles": 10,
                "layer_share": 0.15,
                "inbox_share": 0.1,
                "result_characters": 16_000,
                "context_tokens": None,
                "output_tokens": 8_192,
                "strategy": "layered",
                "writer_model": None,
            },
        ),
        (
            CycleSettings(),
            {
                "alert_dollars": None,
                "awareness": "combined",
                "max_dollars": None,
                "max_seconds": None,
                "max_steps": 20,
                "phases": (),
                "prepare_step": None,
                "routing": (),
                "routing_per": "cycle",
                "silent_reply": "nudge",
                "step_models": (),
                "stop_when": (),
                "token_budget": 50_000,
                "triage": "auto",
            },
        ),
        (
            phases.Phase(),
            {"name": "", "reads": False, "strict": False, "tool_choice": "auto", "tools": None, "until_step": None},
        ),
        (
            OrganizationSettings(),
            {
                "archive_expired": False,
                "budget": None,
                "keep_days": 0,
                "remote_pictures": False,
                "secret_hosts": {},
                "spaces_by": "member",
            },
        ),
        (
            OrganizationMemory(),
            {
                "categories": ("facts", "people", "projects", "decisions"),
                "conversation": True,
                "enabled": True,
                "organization": True,
                "persona": True,
                "publish": True,
                "user": True,
            },
        ),
        (
            CompactionProfile(),
            {
                "cooldown_ms": 60_000,
                "enabled": True,
                "max_summary_tokens": 900,
                "max_turns": 48,
                "min_turns": 12,
                "model": "default",
                "prompt": "memory_compactor_v2_json",
                "tail_turns": 12,
            },
        ),
        (Routing(), {"every_turns": 6, "on_compaction": True}),
        (
            LongTerm(),
            {
                "enabled": True,
                "max_characters": 2_800,
                "top_k": {"conversation": 4, "organization": 6, "persona": 6, "user": 6},
            },
        ),
        (
            AdvisorSettings(),
            {
                "assertions": (),
                "max_tokens": None,
                "model": None,
                "phases": None,
                "reasoning": False,
                "reflection": None,
            },
        ),
        (GuardSettings(), {"enabled": True, "words": 8}),
        (ReadMessages(), {"after": None, "before": None, "limit": 20, "space_id": None}),
    ],
)
def test_what_is_not_set_has_its_default(settings: BaseModel, expected: dict[str, Any]) -> None:
    assert settings.model_dump() == expected


def test_a_panel_that_sets_nothing_asks_three_times_before_it_answers() -> None:
    settings = PanelSettings().model_dump(exclude={"phases", "reflection"})
    assert settings == {
        "at_once": 16,
        "budget": None,
        "context_characters": 150_000,
        "crosstalk": 0,
        "first_byte_seconds": 15,
        "max_tokens": 4_000,
        "model": "default",
        "reference_characters": 4_000,
        "show_others": True,
        "synthesis": "on_demand",
        "total_seconds": 240,
        "utility_model": "",
    }
    assert [(each.name, each.until_turn) for each in PanelSettings().phases] == [("question", 3), ("", None)]
