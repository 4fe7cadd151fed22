"""Errors of SQLite say what a person can do about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from denizen.storage import sqlite

ROOT = Path(__file__).parents[2]
NOBODY = 65534
OPENED_BY_ANOTHER = """
import json, os, sqlite3, sys
from pathlib import Path
from denizen.storage.sqlite_errors import translate

if os.geteuid() == 0:
    os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
path = Path(sys.argv[1])
try:
    sqlite3.connect(path).execute("SELECT count(*) FROM sqlite_master")
except sqlite3.Error as error:
    ours = translate(error, path)
    print(json.dumps([ours.code, str(ours)]))
"""


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_file_that_this_user_may_not_open_is_not_called_unreachable(closed: str) -> None:
    """Not a missing folder, and not a server that is away: a right that is missing."""
    with tempfile.TemporaryDirectory() as name:  # which another user may enter, unlike the folders of pytest
        home = Path(name)
        folder = home / "home"
        folder.mkdir()
        path = folder / "denizen.db"
        sqlite.connect(path).close()
        home.chmod(0o755)
        path.chmod(0o000 if closed == "file" else 0o666)
        folder.chmod(0o777 if closed == "file" else 0o000)
        try:
            done = subprocess.run(
                [sys.executable, "-c", OPENED_BY_ANOTHER, str(path), str(NOBODY)],
                env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
                capture_output=True,
                text=True,
                check=True,
            )
        finally:
            folder.chmod(0o755)
    code, said = json.loads(done.stdout)
    assert code == "database_read_only"
    assert "Give this user the right" in said
