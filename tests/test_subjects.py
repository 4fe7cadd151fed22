"""The subjects of a runtime: the examples in their docstrings run, and their keywords are the fields of the models."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from denizen import Runtime
from denizen.agents.definition import AgentChanges, AgentDefinition, AgentSettings
from denizen.panel.advisors import AdvisorDraft, AdvisorFields
from denizen.panel.settings import PanelFields, PanelSettings
from tests.test_docs import compiled, python_blocks
from tests.test_public_names import methods, subjects

DOCUMENTED: dict[str, object] = {
    "Runtime": Runtime,
    **{f"denizen.{name}": subject for name, subject in subjects().items()},
    **{
        f"denizen.{name}.{method}": function
        for name, subject in subjects().items()
        for method, function in methods(subject).items()
    },
}
EXAMPLES = {name: doc for name, each in DOCUMENTED.items() if "```python" in (doc := inspect.getdoc(each) or "")}


@pytest.fixture
async def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[dict[str, Any]]:
    """The names that examples use: Noor and Ada in a kitchen."""
    monkeypatch.chdir(tmp_path)
    async with Runtime() as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", instructions="You help in the kitchen.")
        space = await denizen.spaces.create("Kitchen", [noor, ada])
        yield {"denizen": denizen, "noor": noor, "ada": ada, "kitchen": space}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_example_runs(name: str, kitchen: dict[str, Any]):
    for token in python_blocks(EXAMPLES[name]):
        result = eval(compiled(token, name), kitchen)
        if inspect.iscoroutine(result):
            await result


@pytest.mark.parametrize(
    ("keywords", "model"),
    [(AgentChanges, AgentDefinition), (PanelFields, PanelSettings), (AdvisorFields, AdvisorDraft)],
)
def test_the_keywords_are_the_fields(keywords: type, model: type[BaseModel]):
    assert set(keywords.__annotations__) == set(model.model_fields)


def test_a_new_agent_has_the_rest_of_the_fields_as_keywords():
    explicit = set(inspect.signature(Runtime().agents.create).parameters)
    assert set(AgentSettings.__annotations__) == set(AgentDefinition.model_fields) - explicit


def test_the_page_lists_every_subject_with_its_methods():
    page = Path(__file__).parent.parent.joinpath("docs", "python.md").read_text()
    for name, subject in subjects().items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `denizen.{name}` |")]
        assert re.findall(r"`(\w+)`", row.split("|")[3]) == list(methods(subject))
