"""Runs a server: its event loop, and its garbage collection."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

YOUNG_OBJECTS: Final = 10_000
"""How many more objects are made than freed until garbage is looked for. With Python's 700, what a hundred agents are
in the middle of is looked through again and again."""


def run_server(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` on uvloop, which takes less CPU, or on asyncio's own loop where uvloop is not installed."""
    gc.set_threshold(YOUNG_OBJECTS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:  # It is not made for Windows or PyPy.
        return None
    return new_event_loop
