"""`denizen import --from`, at a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.portability.test_foreign import write_chatgpt, write_letta

pytestmark = pytest.mark.usefixtures("ready_home")


def test_a_dry_run_tells_what_would_come_and_changes_nothing(run: Run, tmp_path: Path) -> None:
    shown = run("import", "--from", "chatgpt", str(write_chatgpt(tmp_path)), "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stderr.splitlines() == [
        "2 conversations of ChatGPT with 6 messages, from 2023-11-14 to 2023-11-16, and 2 notes would be imported.",
        "  Left out: 1 system messages",
        "  Left out: 1 calls of tools",
        "  Left out: 1 pictures and other files",
        "  Left out: 1 messages of other branches",
    ]
    assert "chatgpt" not in run("agents", "list").stdout


def test_an_export_is_imported_once(run: Run, tmp_path: Path) -> None:
    path = str(write_letta(tmp_path))
    first = json.loads(run("import", "--from", "letta", path, "--json").stdout)
    again = json.loads(run("import", "--from", "letta", path, "--json").stdout)
    assert (first["messages"], first["notes"], first["already_here"]) == (2, 3, False)
    assert again == first | {"already_here": True}
    told = run("import", "--from", "letta", path).stderr
    assert "This was imported before" in told
    assert "are imported" not in told
    agent = json.loads(run("agents", "show", "@sam", "--json").stdout)
    assert (agent["id"], agent["status"], agent["cycles"]) == (first["agent"], "suspended", 1)
    assert "I drink tea." in run("spaces", "show", "@sam").stdout

    other = run("import", "--from", "letta", path, "--handle", "sam-2", "--name", "Sammy", "--trusted")
    assert other.exit_code == 0, other.output
    assert "@sam-2 is here, suspended until you resume it." in other.stderr


def test_an_agent_without_messages_comes_with_its_notes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "deep.af"
    blocks = [{"label": "human", "value": "Wants the answer."}]
    path.write_text(json.dumps({"agent_type": "memgpt_agent", "name": "Deep", "core_memory": blocks, "messages": []}))
    made = run("import", "--from", "letta", str(path))
    assert made.exit_code == 0, made.output
    assert "0 conversations of Letta with 0 messages, and 1 note are imported." in made.stderr
    assert json.loads(run("agents", "show", "@deep", "--json").stdout)["cycles"] == 0


def test_what_cannot_be_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    for arguments, sentence in {
        ("--from", "zork", str(tmp_path)): "There are letta, chatgpt, openwebui, openclaw, hermes.",
        ("--from", "letta", str(tmp_path / "nothing")): "There is no file or folder",
        ("--from", "letta", str(tmp_path / "x")): "x cannot be imported: it is not an agent file of Letta.",
        (str(tmp_path / "x"), "--dry-run"): "name the program with --from",
    }.items():
        refused = run("import", *arguments)
        assert (refused.exit_code != 0, sentence in refused.stderr) == (True, True), refused.output
