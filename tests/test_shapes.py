"""Server and client share one set of shapes, which is light to import and open to newer servers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from denizen.shapes.agents import AgentOut
from denizen.shapes.usage import BudgetOut

SHAPES = Path(__file__).parent.parent / "src" / "denizen" / "shapes"
HEAVY = ("fastapi", "sqlalchemy", "pydantic_ai", "denizen.server", "denizen.storage", "denizen.spaces")

ADA = {"id": "1", "handle": "ada", "name": "Ada", "status": "sleeping", "model": "demo", "trouble": None}
USED = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0,
        "cached_share": None, "dollars": 0.0}  # fmt: skip


def test_shapes_import_only_pydantic_and_the_standard_library() -> None:
    """Otherwise a program that uses the client would load the server's dependencies."""
    allowed = {"pydantic", "pydantic_core", *sys.stdlib_module_names}
    wrong: list[str] = []
    for path in sorted(SHAPES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [
                f"{path.name}: {name}"
                for name in names
                if name.partition(".")[0] not in allowed and name.split(".")[:2] != ["denizen", "shapes"]
            ]
    assert not wrong


def test_importing_the_client_loads_no_part_of_the_server() -> None:
    program = f"import sys, denizen.client; print([each for each in {HEAVY!r} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[]\n"


def test_a_value_of_a_newer_server_is_accepted() -> None:
    """A client does not fail because an agent has a status that its version does not know."""
    assert AgentOut.model_validate({**ADA, "status": "dreaming"}).status == "dreaming"


def test_the_json_schema_lists_the_known_values() -> None:
    status = AgentOut.model_json_schema()["properties"]["status"]
    assert status["enum"] == ["sleeping", "alive", "paused", "suspended", "dead"]


def test_a_field_of_a_newer_server_is_ignored_at_any_depth() -> None:
    """Also in `Limits`, which as the body of a request has no other fields than those it knows."""
    limits = {"dollars_per_day": 5, "tokens_per_day": None, "dollars": None, "tokens": None, "per_week": 1}
    sent = {"limits": limits, "today": {**USED, "calls_failed": 1}, "next_week": {}}
    read = BudgetOut.model_validate(sent, extra="ignore")
    assert read.limits.model_dump() == {"dollars_per_day": 5, "tokens_per_day": None, "dollars": None, "tokens": None}
