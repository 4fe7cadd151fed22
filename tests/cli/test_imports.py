"""A command without a server imports only what its work needs: importing the rest would take longer than the work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LIBRARIES = ("pydantic_ai", "numpy", "alembic", "openai", "anthropic", "mcp", "cryptography", "rich.markdown")
THINKING = ("denizen.agents.residents", "denizen.cycles.cycle", "denizen.panel.moderator", "denizen.memory.summarizing")
OTHERS = (
    "denizen.panel.rounds",
    "denizen.agents.forking",
    "denizen.server.routes.spaces",
    "denizen.cli.chat.rendering",
)
"""What other commands need than those that show agents."""

COMMANDS = [
    ["agents", "list"],
    ["agents", "show", "@ada"],
    ["spaces", "list"],
    ["spaces", "create", "Cellar"],
    ["send", "Lobby", "Hello"],
    ["inspect", "@ada"],
    ["approvals", "list"],
    ["memory", "list"],
    ["mind", "show", "@ada"],
    ["trigger", "@ada", "Hello"],
    ["audit"],
    ["token", "list"],
]

PROGRAM = f"""
import sys
from denizen.cli.main import app
from typer.testing import CliRunner
for arguments in {COMMANDS!r}:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (arguments, result.output)
    unwanted = {LIBRARIES + THINKING!r} + ({OTHERS!r} if arguments[0] == "agents" else ())
    print(arguments, [each for each in unwanted if each in sys.modules])
"""


@pytest.mark.usefixtures("environ")
def test_a_command_without_a_server_imports_no_models_and_nothing_that_thinks() -> None:
    """Also the first one, which creates the database, its people and its agents."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{each} []" for each in COMMANDS]
