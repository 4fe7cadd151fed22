"""Every example can be applied as it is, alone and with the others, and says how."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.agents.definition import AgentDefinition
from denizen.agents.documents import AgentDocument
from denizen.cli.apply import read_paths
from tests.cli.conftest import Run, environ, run  # noqa: F401  a terminal
from tests.examples.playing import EXAMPLES
from tests.test_docs import linked_files

FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
every_example = pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)


@every_example
def test_its_page_says_how_to_run_it(folder: Path) -> None:
    """With the very command, and links that lead somewhere."""
    page = (folder / "README.md").read_text()
    assert f"$ denizen apply examples/{folder.name}/agents.yaml" in page
    assert all((folder / target).exists() for target in linked_files(page))
    assert f"({folder.name}/README.md)" in (EXAMPLES / "README.md").read_text()


def test_all_of_them_can_be_applied_together(run: Run) -> None:  # noqa: F811
    """To a new house, with whoever lives there, and with the tools that they need."""
    tools = ",".join(str(path) for path in EXAMPLES.glob("*/tools.py"))
    first, second = (run("apply", str(EXAMPLES), DENIZEN_TOOLS=tools) for _ in range(2))
    assert (first.exit_code, first.stderr) == (0, ""), first.output
    handles = [each.document.handle for each in read_paths([str(EXAMPLES)]) if isinstance(each.document, AgentDocument)]
    assert [line for line in first.stdout.splitlines() if "agent" in line] == [
        f"+ agent @{handle} created" for handle in handles
    ]
    assert second.stdout.splitlines()[-1] == f"Applied: {len(handles)} unchanged."


def test_the_researcher_has_the_tools_of_a_server() -> None:
    """It needs a model and the network to live, so only its definition is looked at."""
    (declared,) = read_paths([str(EXAMPLES / "researcher" / "agents.yaml")])
    assert isinstance(declared.document, AgentDocument)
    definition: AgentDefinition = declared.document.definition
    assert {name: (server.command, server.args, server.tools) for name, server in definition.mcp.items()} == {
        "web": ("uvx", ("mcp-server-fetch",), ("fetch",))
    }
