"""Runs a server in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_server(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` on uvloop, which takes less CPU, or on asyncio's own loop where uvloop is not installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:  # It is not made for Windows or PyPy.
        return None
    return new_event_loop
