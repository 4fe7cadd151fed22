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
"""Whether any point does anything. Callers on a hot path may look at it before they make up a name."""


class _Armed:
    """What happens at a point, and how many passes it lets through before that."""

    def __init__(self, action: Callable[[], object], after: int) -> None:
        self.action = action
        self.left = after


def declare(name: str) -> str:
    """Make `name` known to `declared`. The name is returned, so that a module can keep it as a constant."""
    _declared.add(name)
    return name


def declared() -> frozenset[str]:
    """The points that the modules imported so far have declared."""
    return frozenset(_declared)


def reach(name: str) -> None:
    """Pass the point `name`: its action runs if it is armed and has let its passes through. Any thread may pass."""
    if armed:
        _pass(name)


def arm(name: str, action: Callable[[], object], after: int = 0) -> None:
    """Run `action` each time `name` is reached, except the first `after` times. What it raises, the passer raises."""
    with _guard:
        _actions[name] = _Armed(action, after)
        _refresh()


def disarm(name: str | None = None) -> None:
    """Make `name`, or every point, do nothing again."""
    with _guard:
        if name is None:
            _actions.clear()
        else:
            _actions.pop(name, None)
        _refresh()


@contextmanager
def recording() -> Generator[list[str]]:
    """Within it, the list grows by the name of each point passed, in order, repetitions included."""
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
    # Outside the guard: an action may block, or reach other points.
    if point is not None and due:
        point.action()
