"""A process killed at any point of its work loses nothing and does nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench._crash import KILLED, Town
from tests.crash.towns import SCENARIO, Founded

SETTING_UP = ["_only_organization", "create_entity", "create", "_create_space", "attend"]
"""Writes that found the town."""

LIVING = [
    "acquire",
    "answer",
    "answer_as",
    "appear",
    "carry_on",
    "notice",
    "end_cycle",
    "fire_due",
    "hand_back",
    "open_cycle",
    "post",
    "postpone_cycle",
    "release",
    "renew",
    "resume_cycle",
    "skip_cycle",
    "store_reminder",
    "undo_cycle",
    "vanish",
]
"""Writes of a town that lives. A new one makes `test_every_point_is_known` fail until it is added here."""

BETWEEN = ["model.answered", "tool.called"]
"""Points between writes."""


def around(writes: list[str]) -> list[str]:
    return [f"{when}:{write}" for write in writes for when in ("commit", "committed")]


@pytest.fixture(scope="module")
def passes(founded: Founded, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How often each point is passed when nobody is killed."""
    with founded.copy(tmp_path_factory.mktemp("undisturbed") / "town") as town:
        assert town.live(SCENARIO) == 0
        verdict = town.verdict()
        assert (verdict.wrong, verdict.answered) == ([], 15)
        return town.points()


def test_every_point_is_known(passes: dict[str, int]) -> None:
    """The tests below kill at each of them, and at no point that is never passed."""
    known = {*around(LIVING), *BETWEEN}
    assert set(passes) - set(around(SETTING_UP)) == known


@pytest.mark.parametrize("point", [*around(LIVING), *BETWEEN])
def test_killed_at(point: str, founded: Founded, passes: dict[str, int], tmp_path: Path) -> None:
    """Killed when the point is first passed, and halfway through; the next process finishes what is left."""
    # How often leases are renewed depends on how busy the machine is: another time it may be less often.
    later = 1 if point.endswith((":renew", ":appear")) else (passes[point] + 1) // 2
    for nth in sorted({1, later}):
        with founded.copy(tmp_path / str(nth)) as town:
            assert town.live(SCENARIO, kill=(point, nth)) == KILLED
            assert town.live(SCENARIO) == 0
            verdict = town.verdict()
            assert verdict.wrong == []
            assert verdict.answered >= 14  # the one question that was being asked may have been lost, unacknowledged


@pytest.mark.parametrize("again", around(["acquire", "resume_cycle", "carry_on", "end_cycle"]))
def test_killed_while_taking_up(again: str, founded: Founded, tmp_path: Path) -> None:
    """The process that takes up a cycle is killed as well, and the one after it, before the fourth is left alone."""
    with founded.copy(tmp_path / "town") as town:
        assert town.live(SCENARIO, kill=("tool.called", 1)) == KILLED
        assert town.live(SCENARIO, kill=(again, 1)) == KILLED
        assert town.live(SCENARIO, kill=(again, 2)) == KILLED
        assert town.live(SCENARIO) == 0
        verdict = town.verdict()
        assert verdict.wrong == []
        assert verdict.resumed >= 1


def test_killed_while_setting_up(database_url: str, tmp_path: Path) -> None:
    """Each process comes a little further than the last."""
    town = Town(database_url, tmp_path)
    for point in around(SETTING_UP):
        assert town.live(kill=(point, 1)) == KILLED
    assert town.live(SCENARIO) == 0
    assert town.verdict().wrong == []
