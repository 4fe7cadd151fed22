"""The event loop of a server."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator

import anyio
import pytest
import uvloop
from anyio.abc import SocketAttribute

from denizen.server.running import run_server


@pytest.fixture(autouse=True)
def _garbage_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def kind_of_loop() -> type[asyncio.AbstractEventLoop]:
    return type(asyncio.get_running_loop())


def test_a_server_runs_on_uvloop() -> None:
    assert run_server(kind_of_loop()) is uvloop.Loop


def test_without_uvloop_a_server_runs_on_the_loop_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_server(kind_of_loop()) is not uvloop.Loop


def test_what_a_client_asks_of_a_connection_that_was_reset_at_once() -> None:
    """Such a connection has no address and cannot be read. It failed with an AttributeError on uvloop."""
    told: list[object] = []

    async def main() -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            port = listener.extra(SocketAttribute.local_port)
            stream = await anyio.connect_tcp("127.0.0.1", port)
            stream._transport.abort()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  as a reset does
            await asyncio.sleep(0)
            told.append(stream.extra(SocketAttribute.remote_address, None))
            with pytest.raises((anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)):
                await stream.receive()

    run_server(main())
    assert told == [None]
