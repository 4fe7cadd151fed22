"""The page that lists which functions run for a message is what a trace of the code gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_walk_lists_the_functions_that_run() -> None:
    """Out of date? `make walk` writes it anew. It fails where a message passes through too many modules."""
    command = [sys.executable, str(DOCS / "make_walk.py"), "--print"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == (DOCS / "walk.md").read_text().splitlines()


def test_a_message_in_a_plain_space_runs_no_step_of_a_panel() -> None:
    page = (DOCS / "walk.md").read_text()
    message = page.partition("## One message")[2].partition("## One panel round")[0]
    assert "`spaces/posting.py`" in message
    assert "panel/" not in message
