"""Command line."""

from __future__ import annotations

from typer.testing import CliRunner

from denizen.cli.main import app
from tests.cli.conftest import environ, ready_home  # noqa: F401  fixtures


def test_a_handle_needs_no_at_sign(ready_home: None) -> None:  # noqa: F811
    """Commands take the handle of an agent or a person with or without its @.

    Docs: cli.md
    """
    shown = [CliRunner().invoke(app, ["inspect", named]).stdout for named in ("ada", "@ada")]
    assert shown[0] == shown[1]
    assert "@ada" in shown[0]
