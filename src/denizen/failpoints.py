"""Named points where a crash test may stop, break or kill the process. In production none is armed: nothing happens.

A point is reached by name. Modules that have points of their own declare them; those of the storage writers are the
names of the functions they commit, so a harness finds them by running once under `recording`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

_declared: set[str] = set()
_actions: dict[str, _Armed] = {}
_records: list[list[str]] = []
_guard = threading.Lock()

armed = False
"""Whether any point is armed. Hot paths may check it before they build a name."""


class _Armed:
    """An action at a point, and how many passes it lets through before."""

    def __init__(self, action: Callable[[], object], after: int) -> None:
        self.action = action
        self.left = after


def declare(name: str) -> str:
    """Declares the point `name`, and returns the name, so that a module can keep it as a constant."""
    _declared.add(name)
    return name


def declared() -> frozenset[str]:
    """The points that the modules imported so far have declared."""
    return frozenset(_declared)


def reach(name: str) -> None:
    """Passes the point `name`: its action runs if it is armed and has let its passes through. Callable from
    any thread.
    """
    if armed:
        _pass(name)


def arm(name: str, action: Callable[[], object], after: int = 0) -> None:
    """Runs `action` each time `name` is reached, except the first `after` times. What it raises is raised there."""
    with _guard:
        _actions[name] = _Armed(action, after)
        _refresh()


def disarm(name: str | None = None) -> None:
    """Disarms `name`, or every point."""
    with _guard:
        if name is None:
            _actions.clear()
        else:
            _actions.pop(name, None)
        _refresh()


@contextmanager
def recording() -> Generator[list[str]]:
    """Records the names of the points passed inside the block, in order, with repetitions."""
    names: list[str] = []
    with _guard:
        _records.append(names)
        _refresh()
    try:
        yield names
    finally:
        with _guard:
            # By identity: two records may hold the same names.
            _records[:] = [record for record in _records if record is not names]
            _refresh()


def _refresh() -> None:
    global armed
    armed = bool(_actions or _records)


def _pass(name: str) -> None:
    with _guard:
        for record in _records:
            record.append(name)
        point = _actions.get(name)
        due = point is not None and point.left <= 0
        if point is not None:
            point.left -= 1
    # Outside the lock: an action may block, or reach other points.
    if point is not None and due:
        point.action()
