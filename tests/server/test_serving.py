"""Starting and ending: ports that are taken, hosts that are refused, streams that end with the server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import httpx2
import pytest
from structlog.testing import capture_logs

from denizen import ManualClock
from denizen.errors import InvalidInput, PortTaken
from denizen.server.application import create_app
from denizen.server.connections import Acceptor
from denizen.server.serving import bind, serve
from tests.server.conftest import House
from tests.servers import free_port
from tests.world import World


async def test_a_port_that_is_taken_is_named_and_the_way_out_too(small_world: World) -> None:
    ready, stop = asyncio.Event(), asyncio.Event()
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"Port {port} .* DENIZEN_PORT or --port") as error:
            await serve(create_app(small_world.denizen), "127.0.0.1", port, ready=ready, stop=stop)
    assert (error.value.code, error.value.port) == ("port_taken", port)
    assert not ready.is_set()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", ""])
def test_only_loopback_can_be_bound(host: str) -> None:
    with pytest.raises(InvalidInput, match="only on loopback"):
        bind(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_answers_leave_at_once(host: str) -> None:
    """Nothing waits for the acknowledgement of what was sent before: every answer took 40 ms once."""
    at_once: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            at_once.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async with asyncio.TaskGroup() as tasks:
        with bind(host, 0) as listener:
            acceptor = Acceptor(listener, Accepted, ManualClock(), tasks)
            acceptor.start()
            _, writer = await asyncio.open_connection(host, listener.getsockname()[1])
            assert await at_once
            writer.close()
            acceptor.stop()


async def test_a_connection_that_ends_in_a_defect_ends_no_other() -> None:
    class Broken(asyncio.Protocol):
        def __init__(self) -> None:
            raise ZeroDivisionError

    class Farewell(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.close()

    kinds: Iterator[type[asyncio.Protocol]] = iter([Broken, Farewell])
    async with asyncio.TaskGroup() as tasks:
        with bind("127.0.0.1", 0) as listener, capture_logs() as logs:
            acceptor = Acceptor(listener, lambda: next(kinds)(), ManualClock(), tasks)
            acceptor.start()
            for _ in range(2):
                reader, writer = await asyncio.open_connection(*listener.getsockname())
                assert await reader.read() == b""
                writer.close()
            acceptor.stop()
    assert [each["event"] for each in logs] == ["connection ended by a defect"]


def test_a_port_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no port 70000"):
        bind("127.0.0.1", 70_000)


@pytest.mark.parametrize(("host", "in_url"), [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "[::1]")])
async def test_the_server_answers_between_ready_and_stop(small_world: World, host: str, in_url: str) -> None:
    port = free_port()
    ready, stop = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(create_app(small_world.denizen), host, port, ready=ready, stop=stop))
        await ready.wait()
        async with httpx2.AsyncClient(timeout=60) as client:
            assert (await client.get(f"http://{in_url}:{port}/healthz")).json()["ok"] is True
            stop.set()
    with bind(host, port):
        pass  # it is free again


async def test_open_streams_end_at_once_when_the_server_stops(small_house: House) -> None:
    """They end as a stream should, so that the reader knows that nothing is cut in the middle."""
    world = small_house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    async with small_house.stream(noor, kitchen) as stream, small_house.stream(noor, kitchen) as other:
        small_house.stop.set()
        assert await stream.rest() == []
        assert await other.rest() == []


async def test_a_server_that_is_cancelled_lets_go_of_everything(small_world: World) -> None:
    port = free_port()
    ready, stop = asyncio.Event(), asyncio.Event()
    task = asyncio.ensure_future(serve(create_app(small_world.denizen), "127.0.0.1", port, ready=ready, stop=stop))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with bind("127.0.0.1", port):
        pass
