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
    _let_reset_connections_have_no_attributes()
    return new_event_loop


def _let_reset_connections_have_no_attributes() -> None:
    """On uvloop a connection that was reset as soon as it was made has no socket any more. anyio asks for its address
    all the same, and HTTP clients end with an AttributeError, which nobody takes for an unreachable server.
    """
    from anyio.abc import SocketStream

    known = SocketStream.extra_attributes
    assert isinstance(known, property)
    read = known.fget
    if read is None or read.__name__ == "attributes":
        return

    def attributes(stream: Any) -> Any:
        return {} if stream._raw_socket is None else read(stream)  # noqa: SLF001

    setattr(SocketStream, "extra_attributes", property(attributes))  # noqa: B010  a subclass would not be used
