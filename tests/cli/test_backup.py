"""`denizen backup` and `denizen restore`, as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_there_and_back(run: Run, tmp_path: Path) -> None:
    assert run("secrets", "list").exit_code == 0  # which makes the house
    file = tmp_path / "today.denizen"
    made = run("backup", str(file))
    assert made.exit_code == 0, made.output
    assert str(file) in made.stdout
    again = run("backup", str(file))
    assert (again.exit_code, "already exists" in again.stderr) == (1, True)

    full = run("restore", str(file))
    assert full.exit_code == 1
    assert "There is already a database at" in full.stderr
    elsewhere = {"DATABASE_URL": f"sqlite:///{tmp_path}/elsewhere.db"}
    back = run("restore", str(file), "--json", **elsewhere)
    assert back.exit_code == 0, back.output
    assert json.loads(back.stdout)["database"].endswith("elsewhere.db")
    assert json.loads(run("inspect", "@ada", "--json", **elsewhere).stdout)


def test_whoever_keeps_secrets_is_reminded_of_their_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    assert run("secrets", "list").exit_code == 0
    assert "secret.key" not in run("backup", str(tmp_path / "one")).stderr
    (tmp_path / "home" / "secret.key").touch(0o600)
    assert "secret.key" in run("backup", str(tmp_path / "two")).stderr
