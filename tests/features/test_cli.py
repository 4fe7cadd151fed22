"""Command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from denizen.cli.main import app
from tests.cli.conftest import environ, ready_home  # noqa: F401  fixtures
from tests.portability.test_foreign import write_chatgpt


def test_a_handle_needs_no_at_sign(ready_home: None) -> None:  # noqa: F811
    """Commands take the handle of an agent or a person with or without its @.

    Docs: cli.md
    """
    shown = [CliRunner().invoke(app, ["inspect", named]).stdout for named in ("ada", "@ada")]
    assert shown[0] == shown[1]
    assert "@ada" in shown[0]


def test_conversations_of_other_programs_are_imported(ready_home: None, tmp_path: Path) -> None:  # noqa: F811
    """Conversations with ChatGPT, Open WebUI, Letta, OpenClaw and Hermes become the dated history of an agent.

    Docs: export.md#from-other-programs
    """
    file = str(write_chatgpt(tmp_path))
    made = CliRunner().invoke(app, ["import", "--from", "chatgpt", file])
    assert made.exit_code == 0, made.output
    assert "How long does rye rise?" in CliRunner().invoke(app, ["spaces", "show", "@chatgpt"]).stdout


def test_an_agent_says_what_it_is_for(ready_home: None) -> None:  # noqa: F811
    """An agent has a purpose in a line, which lists show instead of its instructions.

    Docs: definitions.md
    """
    runner = CliRunner()
    made = runner.invoke(app, ["agents", "create", "Cleo", "--purpose", "Plans trips.", "--instructions", "Be brief."])
    assert made.exit_code == 0, made.output
    assert "Plans trips." in runner.invoke(app, ["agents", "list"]).stdout
    runner.invoke(app, ["agents", "edit", "cleo", "--purpose", "Plans meals."])
    listed = runner.invoke(app, ["agents", "list"]).stdout
    assert "Plans meals." in listed
    assert "Be brief." not in listed
