"""Failpoints do nothing until they are armed, and then exactly what they were told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from denizen import failpoints


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.disarm()


def test_a_point_that_is_not_armed_does_nothing() -> None:
    failpoints.arm("elsewhere", lambda: pytest.fail("another point was reached"))
    failpoints.reach("here")
    failpoints.disarm("elsewhere")
    failpoints.reach("elsewhere")
    assert not failpoints.armed


def test_a_point_lets_its_first_passes_through() -> None:
    reached: list[str] = []
    failpoints.arm("here", lambda: reached.append("here"), after=2)
    for expected in ([], [], ["here"], ["here", "here"]):
        failpoints.reach("here")
        assert reached == expected


def test_what_an_action_raises_is_raised_at_its_point() -> None:
    def fail() -> None:
        raise TimeoutError

    failpoints.arm("here", fail)
    with pytest.raises(TimeoutError):
        failpoints.reach("here")


def test_a_recording_has_every_pass_in_order_and_ends() -> None:
    with failpoints.recording() as outer:
        failpoints.reach("a")
        with failpoints.recording() as inner:
            failpoints.reach("b")
            failpoints.reach("b")
    failpoints.reach("c")
    assert (outer, inner) == (["a", "b", "b"], ["b", "b"])
    assert not failpoints.armed


def test_declared_points_are_known() -> None:
    assert failpoints.declare("test.point") == "test.point"
    assert "test.point" in failpoints.declared()
