"""Killed at random: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json

import pytest

from bench import crash


def test_a_few_random_kills(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The bench that `docs/crashes.md` tells of, in short."""
    status = crash.main(["--kills", "8", "--seed", "5", "--database-url", database_url])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    faults = {"lost", "duplicated", "asked_again", "outside_wrong", "memory_wrong", "violations", "defects"}
    assert {name: result[name] for name in faults} == dict.fromkeys(faults, 0)
    assert (status, result["bench"], result["kills"]) == (0, "crash", 8)
    assert result["answered"] >= len(crash.KINDS)
