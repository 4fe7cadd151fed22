"""A stranger clones the repository, types one command, and talks to living agents."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pexpect
import pytest

from tests.fresh import clone, furnish, started, until


@pytest.mark.timeout(900)
def test_one_command_and_agents_answer_and_remember_after_a_restart(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """`make run` in an empty folder, without a key: both agents answer over HTTP and in the terminal, and a second
    start finds everything as it was. In `make test-all` it downloads and builds all it needs."""
    folder, home = clone(tmp_path / "denizen"), tmp_path / "home"
    if not pytestconfig.getoption("--all-databases"):
        furnish(folder)

    with started(["make", "run"], folder, home) as house:
        until(lambda: "denizen login" in house.output.read_text(), 100)
        assert stat.S_IMODE((home / "token").stat().st_mode) == 0o600
        names = {space["name"] for space in house.get("/api/spaces")["spaces"]}
        ada, bo = (house.space(name)["id"] for name in sorted(names - {"Lobby"}))
        assert "Ada: " in house.ask(ada, "Hello! Who are you?")[-1]
        assert "Bo: " in house.ask(bo, "Please repeat: the tomatoes are in")[-1]
        assert "the tomatoes are in" in house.said(bo)[-1]

        chat = pexpect.spawn(
            str(folder / ".venv/bin/denizen"),
            ["chat", "Lobby"],
            env={**os.environ, "DENIZEN_HOME": str(home), "DENIZEN_PORT": str(house.port), "TERM": "xterm"},
            encoding="utf-8",
            timeout=100,
            dimensions=(30, 100),
        )
        chat.expect("Lobby")
        chat.sendline("@bo what is 2 + 2?")
        chat.expect("4")
        chat.sendline("/quit")
        chat.expect(pexpect.EOF)
        before = {space["id"]: house.said(space["id"]) for space in house.get("/api/spaces")["spaces"]}
        token = house.token
    assert "Everything is saved" in house.output.read_text()
    assert token not in house.output.read_text(), "there is no terminal"

    with started(["make", "run"], folder, home) as house:
        assert house.token == token
        after = {space["id"]: house.said(space["id"]) for space in house.get("/api/spaces")["spaces"]}
        assert after == before
        assert "Ada: " in house.ask(ada, "What did I say to you first?")[-1]
