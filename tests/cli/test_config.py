"""`denizen config`: every setting with its value and its origin, and a page that does not lie."""

from __future__ import annotations

import json
from pathlib import Path

from denizen.cli.config import render_reference
from denizen.settings.loading import specs
from tests.cli.conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_every_setting_is_listed_with_its_origin(run: Run) -> None:
    """Value, where it came from, what it means."""
    Path("denizen.toml").write_text('log_level = "warning"\n')
    result = run("config", DENIZEN_HOST="localhost", COLUMNS="300")
    assert result.exit_code == 0
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for spec in specs():
        assert spec.description in rows[spec.name]
    assert "localhost" in rows["host"]
    assert "environment DENIZEN_HOST" in rows["host"]
    assert "warning" in rows["log_level"]
    assert "denizen.toml line 1" in rows["log_level"]
    assert "default" in rows["redis_url"]


def test_json_is_for_programs(run: Run) -> None:
    """The same as data: numbers are numbers, what is not set is null."""
    result = run("config", "--json", DENIZEN_AGENTS__WARM_SECONDS="7")
    listed = {each["name"]: each for each in json.loads(result.stdout)}
    assert list(listed) == [spec.name for spec in specs()]
    assert listed["agents.warm_seconds"]["value"] == 7
    assert listed["agents.warm_seconds"]["origin"] == "environment DENIZEN_AGENTS__WARM_SECONDS"
    assert listed["redis_url"]["value"] is None


def test_secrets_are_hidden(run: Run) -> None:
    """It is the first thing people paste when they ask for help."""
    secrets = {"DATABASE_URL": "postgres://ada:hunter2@db/x", "ANTHROPIC_API_KEY": "hunter2"}
    for arguments in (["config"], ["config", "--json"]):
        result = run(*arguments, **secrets)
        assert result.exit_code == 0
        assert "postgresql://ada:•••@db/x" in result.stdout
        assert "hunter2" not in result.output


def test_wrong_settings_are_told_all_together(run: Run) -> None:
    """With the status of a failure and the code of this one."""
    result = run("config", DENIZEN_PROT="1", DENIZEN_LOG_LEVEL="loud")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Did you mean DENIZEN_PORT?" in result.stderr
    assert "It has to be debug, info, warning or error." in result.stderr
    assert result.stderr.rstrip().endswith("[settings_invalid]")


def test_the_files_are_listed(run: Run, environ: dict[str, str]) -> None:
    """Found or not, and even when one of them is broken."""
    Path("denizen.toml").write_text("= broken")
    result = run("config", "path")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"  not there {Path.cwd() / '.env'}",
        f"✓ found     {Path.cwd() / 'denizen.toml'}",
        f"  not there {Path(environ['DENIZEN_HOME'], 'denizen.toml')}",
    ]
    listed = json.loads(run("config", "path", "--json").stdout)
    assert [each["found"] for each in listed] == [False, True, False]


def test_the_page_about_settings_is_up_to_date(run: Run) -> None:
    """It is written by `denizen config reference > docs/settings.md`, never by hand."""
    assert PAGE.read_text() == render_reference(), "run: denizen config reference > docs/settings.md"
    assert run("config", "reference").stdout == render_reference()
