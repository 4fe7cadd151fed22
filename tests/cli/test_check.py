"""`denizen check` lists what is broken in a database, and `denizen doctor` notices it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from denizen.storage.heads import missing_path
from tests.cli.conftest import Run


def test_a_sound_database(run: Run) -> None:
    run("agents", "list")
    checked = run("check")
    assert (checked.exit_code, checked.stdout, checked.stderr) == (0, "", "The database keeps every invariant.\n")
    assert json.loads(run("check", "--json").stdout) == []


def test_a_row_that_is_gone(run: Run, database: Path) -> None:
    run("agents", "list")
    with closing(sqlite3.connect(database)) as connection:  # which does not check references
        connection.execute("DELETE FROM agents")
        connection.commit()
    checked = run("check")
    assert checked.exit_code == 1
    assert "is not in agents." in checked.stdout
    assert {each["invariant"] for each in json.loads(run("check", "--json").stdout)} >= {0}
    told = run("doctor").stdout
    assert "refer to rows that do not exist" in told
    assert "denizen check" in told


def test_a_lost_member_is_noticed_by_doctor_and_changed_text_by_the_deep_check(run: Run, database: Path) -> None:
    run("send", "Ada", "Good morning, lighthouse!")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE messages SET text = 'Good night, lighthouse!' WHERE text LIKE 'Good morning%'")
        connection.commit()
        assert run("check").exit_code == 0
        deep = run("check", "--deep")
        assert (deep.exit_code, "A message is not as it was posted" in deep.stdout) == (1, True)
        connection.execute("DELETE FROM memberships")
        connection.commit()
    assert "A member of a space is missing." in run("doctor").stdout


def test_lost_data_is_told_by_doctor_until_it_is_accepted(run: Run, database: Path) -> None:
    run("send", "Ada", "Good morning, lighthouse!")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM messages")
        connection.execute("UPDATE spaces SET last_seq = 0, head = NULL")
        connection.commit()
    for _ in range(2):
        told = run("doctor").stdout
        assert "is older than it was" in told
    missing_path(database).unlink()
    assert "is older than it was" not in run("doctor").stdout


def test_there_is_nothing_to_check_yet(run: Run) -> None:
    checked = run("check")
    assert (checked.exit_code, "There is no database yet." in checked.stderr) == (1, True)


@pytest.fixture
def database(environ: dict[str, str]) -> Path:
    return Path(environ["DENIZEN_HOME"]) / "denizen.db"
