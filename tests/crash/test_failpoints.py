"""A process killed at any point of its work loses nothing and does nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.conftest import Once
from tests.crash.killing import KILLED, Town
from tests.crash.life import Post
from tests.crash.towns import OUTSIDE, REMEMBERING, SCENARIO, Founded

SETTING_UP = ["_only_organization", "create_entity", "create", "change_member"]
"""Writes that found the town."""

LIVING = [
    "acquire",
    "appear",
    "carry_on",
    "notice",
    "end_cycle",
    "hand_back",
    "open_cycle",
    "pay_broken_off",
    "post_message",
    "postpone_cycle",
    "release",
    "renew",
    "resume_cycle",
    "_retry_all",
    "skip_cycle",
    "store_reminder",
    "undo_cycle",
    "vanish",
]
"""Writes of a town that lives. A new one makes `test_every_point_is_known` fail until it is added here."""

WITH_OTHERS = ["answer", "answer_as", "fire_due"]
"""Writes of a town whose agents ask people, run on and set timers."""

SUMMING_UP = ["claim", "keep_pass"]
"""Writes of a town whose conversations are summed up: what each pass found is remembered with it."""

BY_CHANCE = ["keep_today", "let_go_of"]
"""Writes that depend on how busy the machine is: sizes are measured in lives of more than a minute, and a lease is let
go of where it cannot be had at once, or is renewed while its life ends. Nobody passes them for sure, so nobody is
killed there."""

BETWEEN = ["model.answered", "tool.called"]
"""Points between writes."""


def around(writes: list[str]) -> list[str]:
    return [f"{when}:{write}" for write in writes for when in ("commit", "committed")]


Passed = Callable[..., dict[str, int]]


@pytest.fixture(scope="module")
def passed(founded: Founded, once: Once, tmp_path_factory: pytest.TempPathFactory) -> Passed:
    """How often each point is passed when nobody is killed; for one worker of the run, the others are told."""

    def counted(name: str, scenario: tuple[tuple[Post, ...], ...], **how: bool) -> dict[str, int]:
        def count() -> dict[str, int]:
            with founded.copy(tmp_path_factory.mktemp(name) / "town") as town:
                assert town.live(scenario, **how) == 0
                verdict = town.verdict()
                assert (verdict.wrong, verdict.answered) == ([], sum(map(len, scenario)))
                return town.points()

        return once(f"{name}-{founded.town.folder.name}", count)

    return counted


@pytest.fixture(scope="module")
def passes(passed: Passed) -> dict[str, int]:
    return passed("undisturbed", SCENARIO)


@pytest.fixture(scope="module")
def passes_outside(passed: Passed) -> dict[str, int]:
    return passed("outside", OUTSIDE)


@pytest.fixture(scope="module")
def passes_remembering(passed: Passed) -> dict[str, int]:
    return passed("remembering", REMEMBERING, remembers=True)


def test_every_point_is_known(
    passes: dict[str, int], passes_outside: dict[str, int], passes_remembering: dict[str, int]
) -> None:
    """The tests below kill at each of them, and at no point that is never passed."""
    known = {*around(LIVING), *around(WITH_OTHERS), *around(SUMMING_UP), *BETWEEN}
    not_killed_at = {*around(SETTING_UP), *around(BY_CHANCE)}
    assert {*passes, *passes_outside, *passes_remembering} - not_killed_at == known
    assert {passes_remembering[point] for point in around(SUMMING_UP)} == {3}
    assert set(passes) - not_killed_at == {*around(LIVING), *BETWEEN}


@pytest.mark.parametrize("point", [*around(LIVING), *BETWEEN])
def test_killed_at(point: str, founded: Founded, passes: dict[str, int], tmp_path: Path) -> None:
    """Killed when the point is first passed; the next process halfway through; the last one finishes what is left."""
    # How often leases are renewed, and how much arrives during a cycle, depends on how busy the machine is: another
    # time it may be less often.
    halfway = 1 if point.endswith((":renew", ":appear", ":notice")) else passes[point] // 2
    killed_at_each(founded, tmp_path / "town", SCENARIO, point, halfway)


@pytest.mark.parametrize("point", [*around([*WITH_OTHERS, "carry_on", "resume_cycle", "end_cycle"]), *BETWEEN])
def test_killed_among_others(point: str, founded: Founded, passes_outside: dict[str, int], tmp_path: Path) -> None:
    """The same while a person is asked, a tool runs on, a timer fires, a request is made."""
    killed_at_each(founded, tmp_path / "town", OUTSIDE, point, passes_outside[point] // 2)


@pytest.mark.parametrize("point", around(SUMMING_UP))
def test_killed_while_summing_up(point: str, founded: Founded, tmp_path: Path) -> None:
    """No message is left out of the summary or summed up twice, and what it says is remembered and paid for once."""
    # The last pass as well: what it found comes again in no other. Of three, one was kept before the first kill here.
    last = 2 if point == "committed:keep_pass" else 3
    killed_at_each(founded, tmp_path / "town", REMEMBERING, point, last, remembers=True)


@pytest.mark.parametrize("point", around(["post_message", "open_cycle"]))
def test_killed_while_a_message_opens_a_cycle_that_remembers(
    point: str, founded: Founded, passes_remembering: dict[str, int], tmp_path: Path
) -> None:
    """On SQLite the two are one commit, unless memories are looked up first."""
    killed_at_each(founded, tmp_path / "town", REMEMBERING, point, passes_remembering[point] // 2, remembers=True)


def killed_at_each(
    founded: Founded, folder: Path, scenario: tuple[tuple[Post, ...], ...], point: str, later: int, **how: bool
) -> None:
    """A process is killed when it first passes the point; if `later` is more than 1, so is the next one then."""
    with founded.copy(folder) as town:
        kills = [1, later] if later > 1 else [1]
        for nth in kills:
            assert town.live(scenario, kill=(point, nth), **how) == KILLED
        assert town.live(scenario, **how) == 0
        verdict = town.verdict()
        assert verdict.wrong == []
        # The one question that was being asked at each kill may have been lost, unacknowledged.
        assert verdict.answered >= sum(map(len, scenario)) - len(kills)


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
