"""Tools and functions from Python files and modules: what is broken or missing is told with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from denizen.errors import SettingsError
from denizen.tools.loading import load_functions, load_tools

GOOD = '''
from denizen import tool

HEAT = 180

@tool
def oven(celsius: int = HEAT) -> str:
    """Heat the oven."""
    return f"{celsius} degrees"

@tool(name="fridge-light", on_crash="retry")
async def light() -> str:
    """Look whether it burns."""
    return "It does."
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def problems(*places: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as failure:
        load_tools(places)
    return failure.value.problems


def test_every_tool_of_a_file_is_had(here: Path) -> None:
    """Seen from the current folder, or by its whole path; naming it twice is naming it once."""
    (here / "kitchen.py").write_text(GOOD)
    tools = load_tools(["kitchen.py", str(here / "kitchen.py")])
    assert [(each.name, each.on_crash) for each in tools] == [("oven", "report"), ("fridge-light", "retry")]
    assert tools[0].check('{"celsius": 200}') == {"celsius": 200}


def test_two_folders_may_each_have_a_file_of_that_name(here: Path) -> None:
    """But not a tool of the same name."""
    for folder, name in {"a": "one", "b": "two"}.items():
        (here / folder).mkdir()
        (here / folder / "tools.py").write_text(GOOD.replace("oven", name).replace("fridge", name))
    assert len(load_tools(["a/tools.py", "b/tools.py"])) == 4
    (here / "c.py").write_text(GOOD.replace("oven", "one"))
    assert problems("a/tools.py", "c.py") == ("tools: a/tools.py and c.py both have a tool 'one'. Rename one of them.",)


def test_a_module_is_named_as_it_is_imported(here: Path) -> None:
    """Also one in the current folder."""
    (here / "kitchen_of_this_test.py").write_text(GOOD)
    assert len(load_tools(["kitchen_of_this_test"])) == 2


def test_what_is_wrong_is_told_all_at_once_with_its_place(here: Path) -> None:
    """A sentence each: missing, broken, empty, of no such name."""
    (here / "broken.py").write_text("x = 1\n\nraise RuntimeError('no gas')\n")
    (here / "wrong.py").write_text("def (:\n")
    (here / "leaves.py").write_text("import sys\nsys.exit('bye')\n")
    (here / "empty.py").write_text("def oven() -> str: ...\n")
    found = problems("nope.py", "broken.py", "wrong.py", "leaves.py", "empty.py", "no.such.module")
    assert [each.replace(str(here), "HERE") for each in found] == [
        "tools: there is no file HERE/nope.py. Write its path as seen from the current folder.",
        "tools: broken.py cannot be loaded: RuntimeError: no gas (HERE/broken.py, line 3).",
        "tools: wrong.py cannot be loaded: SyntaxError: invalid syntax (wrong.py, line 1).",
        "tools: leaves.py cannot be loaded: SystemExit: bye (HERE/leaves.py, line 2).",
        "tools: empty.py contains no tool. Write `@tool` above a function there.",
        "tools: no.such.module cannot be loaded: ModuleNotFoundError: No module named 'no'.",
    ]


STEPS = """
from denizen import NextStep, StepContext

def careful(context: StepContext) -> NextStep | None:
    return NextStep(stop=True) if context.step else None

limit = 3
"""


def test_functions_are_loaded_by_name(here: Path) -> None:
    (here / "steps.py").write_text(STEPS)
    (here / "steps_of_this_test.py").write_text(STEPS)
    found = load_functions("functions.steps", {"one": "steps.py:careful", "two": "steps_of_this_test:careful"})
    assert {name: each.__name__ for name, each in found.items()} == {"one": "careful", "two": "careful"}
    assert load_functions("functions.stops", {}) == {}


def test_functions_that_are_missing_are_told_all_at_once(here: Path) -> None:
    (here / "steps.py").write_text(STEPS)
    places = {"a": "steps.py:carefull", "b": "steps.py:limit", "c": "nope.py:careful", "d": "no.such:careful"}
    with pytest.raises(SettingsError) as failure:
        load_functions("functions.steps", places)
    assert [each.replace(str(here), "HERE") for each in failure.value.problems] == [
        "functions.steps.a: steps.py has no 'carefull'. Write a function of this name there.",
        "functions.steps.b: 'limit' in steps.py is not a function.",
        "functions.steps.c: there is no file HERE/nope.py. Write its path as seen from the current folder.",
        "functions.steps.d: no.such cannot be loaded: ModuleNotFoundError: No module named 'no'.",
    ]
