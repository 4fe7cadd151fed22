"""Connections: how many there may be, and how long each may take. With real sockets of slow and greedy clients."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog

from denizen.server import connections
from denizen.server.connections import Places
from denizen.server.context import ServerLimits
from tests.fresh import ROOT, started
from tests.server.conftest import House, served
from tests.world import World

SOON = 0.2
"""Seconds after which the server gives up, where that is waited for."""
NEVER = 600


def limits(**given: Any) -> ServerLimits:
    deadlines = {"header_seconds": NEVER, "body_seconds": NEVER, "send_seconds": NEVER}
    return ServerLimits(**({"requests_per_minute": 0, "failed_logins_per_minute": 0} | deadlines | given))


class Line:
    """A connection, as a client sees it that writes what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, *lines: str) -> None:
        self._writer.write("\r\n".join(lines).encode())
        await self._writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Status, headers and JSON of the next answer."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in head[1:] if each)}
        body = await self._reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, json.loads(body)

    async def begun(self) -> None:
        """The answer has begun."""
        await self._reader.readuntil(b"\r\n\r\n")

    async def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        return await self._reader.read()


@asynccontextmanager
async def line(house: House) -> AsyncGenerator[Line]:
    host, _, port = house.address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


HEALTH = ("GET /healthz HTTP/1.1", "Host: localhost", "", "")


@pytest.mark.parametrize("begun", ["GET /healthz HTT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
async def test_headers_that_do_not_end_are_not_waited_for(small_world: World, begun: str) -> None:
    async with served(small_world, limits=limits(header_seconds=SOON)) as house, line(house) as slow:
        await slow.write(begun)
        status, headers, problem = await slow.answer()
        assert (status, problem["code"], headers["connection"]) == (408, "request_timeout", "close")
        assert await slow.rest() == b""


async def test_a_connection_that_says_nothing_is_closed(small_world: World) -> None:
    async with served(small_world, limits=limits(header_seconds=SOON)) as house, line(house) as silent:
        assert await silent.rest() == b""


async def test_the_next_request_of_a_connection_has_a_deadline_as_well(small_world: World) -> None:
    async with served(small_world, limits=limits(header_seconds=SOON)) as house, line(house) as slow:
        await slow.write(*HEALTH)
        assert (await slow.answer())[0] == 200
        await slow.write("GET /hea")
        assert (await slow.answer())[0] == 408


async def test_a_connection_that_is_idle_after_its_body_came_late_is_closed_without_an_answer(
    small_world: World,
) -> None:
    """It would be taken for the answer to the next request."""
    async with served(small_world, limits=limits(header_seconds=SOON)) as house, line(house) as late:
        sent = ("Content-Type: text/plain", "Content-Length: 3")
        await late.write("POST /api/session HTTP/1.1", "Host: localhost", *sent, "", "")
        assert (await late.answer())[0] == 415
        await late.write("abc")
        assert await late.rest() == b""


async def test_a_connection_that_sends_no_further_request_is_closed(small_world: World) -> None:
    async with served(small_world, limits=limits(idle_seconds=0)) as house, line(house) as idle:
        await idle.write(*HEALTH)
        assert (await idle.answer())[0] == 200
        assert await idle.rest() == b""


def test_proxies_close_idle_connections_before_the_server_does() -> None:
    """A request that a proxy sends while the server closes is lost. Caddy keeps them the longest: two minutes."""
    assert ServerLimits().idle_seconds > 120


async def test_the_longest_idle_connection_makes_room_for_a_new_one(small_world: World) -> None:
    async with (
        served(small_world, limits=limits(connections=3, connections_per_address=0)) as house,
        line(house) as first,
        line(house) as second,
        line(house) as third,
    ):
        for each in (first, second, third, first):
            await each.write(*HEALTH)
            assert (await each.answer())[0] == 200
        async with line(house) as fourth:
            assert await second.rest() == b""
            for each in (fourth, third, first):
                await each.write(*HEALTH)
                assert (await each.answer())[0] == 200


async def test_a_body_that_does_not_come_is_not_waited_for(small_world: World) -> None:
    """Nor logged as a defect of ours."""
    with structlog.testing.capture_logs() as logs:
        async with served(small_world, limits=limits(body_seconds=SOON)) as house:
            for path in ("/hooks/calls/x?key=x", "/hooks/x", "/api/session"):
                async with line(house) as slow:
                    length = ("Content-Type: application/json", "Content-Length: 100")
                    await slow.write(f"POST {path} HTTP/1.1", "Host: localhost", *length, "", "{")
                    status, _, problem = await slow.answer()
                    assert (status, problem["code"]) in ((408, "request_timeout"), (404, "not_found")), path
    assert [each for each in logs if each["log_level"] == "error"] == []


async def test_a_body_that_keeps_coming_is_waited_for(small_world: World) -> None:
    """As long as it comes faster than the slowest rate that is allowed: what came before counts."""
    async with served(small_world, limits=limits(body_seconds=SOON)) as house, line(house) as slow:
        noor = await small_world.person("Noor")
        token = (await house.headers(noor))["Authorization"]
        text = '{"text": "' + "x" * 2_048
        sent = ("Content-Type: application/json", f"Content-Length: {len(text) + 2}", f"Authorization: {token}")
        await slow.write("POST /api/spaces/nowhere/messages HTTP/1.1", "Host: localhost", *sent, "", text)
        async with line(house) as silent:
            await silent.write("POST /api/session HTTP/1.1", "Host: localhost", *sent[:2], "", "")
            assert (await silent.answer())[0] == 408, "so much time has passed"
        await slow.write('"}')
        assert (await slow.answer())[2]["code"] == "not_found"


async def test_one_address_has_so_many_connections_and_others_are_told_when_to_come_back(small_world: World) -> None:
    async with served(small_world, limits=limits(connections_per_address=2)) as house:
        async with line(house) as first, line(house) as second, line(house) as third:
            for each in (first, second):
                await each.write(*HEALTH)
                assert (await each.answer())[0] == 200
            await third.write(*HEALTH)
            status, headers, problem = await third.answer()
            assert (status, problem["code"], headers["connection"]) == (429, "too_many_connections", "close")
            assert int(headers["retry-after"]) > 0
            assert await third.rest() == b""
        assert (await house.client.get("/healthz")).status_code == 200, "those that ended make room"


async def test_half_open_requests_beyond_the_limit_of_all_are_turned_away(small_world: World) -> None:
    """With 503, because others hold the places. They get them back when the deadline of the headers is over."""
    wanted = limits(connections=3, connections_per_address=0, header_seconds=SOON)
    async with (
        served(small_world, limits=wanted) as house,
        line(house) as one,
        line(house) as two,
        line(house) as three,
        line(house) as four,
    ):
        for each in (one, two, three):
            await each.write("GET /")
        status, headers, problem = await four.answer()
        assert (status, problem["code"]) == (503, "overloaded")
        assert "retry-after" in headers
        assert [(await each.answer())[0] for each in (one, two, three)] == [408, 408, 408]
        async with line(house) as later:
            await later.write(*HEALTH)
            assert (await later.answer())[0] == 200


def test_everyone_behind_a_proxy_has_its_address() -> None:
    places = Places(limits(connections_per_address=1, connections=3), lambda address: address == "10.0.0.5")
    assert [places.take("10.0.0.5") for _ in range(4)] == [None, None, None, "overloaded"]
    places.leave("10.0.0.5")
    places.leave("10.0.0.5")
    assert [places.take("10.0.0.9") for _ in range(2)] == [None, "too_many_connections"]


async def test_one_person_has_so_many_streams(small_world: World) -> None:
    """Whatever they stream, and with whichever token."""
    noor, mia = await small_world.person("Noor"), await small_world.person("Mia")
    hall = await small_world.space("Hall", noor, mia)
    async with served(small_world, limits=limits(streams_per_person=2)) as house:
        async with house.stream(noor, hall), house.listen(noor, "/api/stream"):
            await house.token(noor)
            refused = await house.call("GET", f"/api/spaces/{hall.id}/stream", noor)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
            assert int(refused.headers["Retry-After"]) > 0
            async with house.stream(mia, hall):
                pass
        async with house.stream(noor, hall):
            pass  # those that ended make room


async def test_what_ended_leaves_no_file_descriptor(small_world: World) -> None:
    """Requests, streams, and connections that were cut in the middle of a request."""
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    async with served(small_world, limits=limits(streams_per_person=0, connections_per_address=0)) as house:

        async def visit() -> None:
            async with house.stream(noor, hall):
                await house.call("GET", "/api/spaces", noor)
            async with line(house) as cut:
                await cut.write("POST /api/spaces HTTP/1.1", "Host: localhost", "Content-Length: 100", "", "{")

        await visit()
        before = await _open_files()
        visits = 20
        for _ in range(visits):
            await visit()
        # Pools may have grown by a connection or two; what leaks is there once for each visit.
        assert await _open_files() < before + visits


async def _open_files() -> int:
    """How many files this process has open, once the server has noticed what was closed."""
    found: list[int] = []
    for _ in range(2_000):
        found.append(_descriptors())
        await asyncio.sleep(0)
    return min(found)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_reader_that_takes_nothing_is_cut_off(small_world: World) -> None:
    """What it was sent and did not read is not kept for it."""
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    for _ in range(100):
        await small_world.denizen.spaces.post(hall, noor, "x" * 90_000)
    wanted = limits(send_seconds=SOON, header_seconds=2 * SOON)
    async with served(small_world, limits=wanted) as house, line(house) as slow:
        token = (await house.headers(noor))["Authorization"]
        path = f"/api/spaces/{hall.id}/messages?limit=100"
        await slow.write(f"GET {path} HTTP/1.1", "Host: localhost", f"Authorization: {token}", "", "")
        await slow.begun()
        async with line(house) as silent:
            assert await silent.rest() == b"", "so much time has passed"
        try:
            received = len(await slow.rest())
        except ConnectionResetError:
            received = 0
        assert received < 9_000_000


async def test_connections_wait_while_no_files_can_be_opened(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are answered when there are files again. Until then one line a minute says so, without a traceback."""
    monkeypatch.setattr(connections, "RETRY_SECONDS", 0.0)
    async with served(small_world) as house:
        await house.client.get("/healthz")
        with structlog.testing.capture_logs() as logs, socket.socket() as early:

            async def until_logged(lines: int) -> None:
                while len(logs) < lines:  # noqa: ASYNC110  the log signals nothing
                    await asyncio.sleep(0)

            # Until the server accepts it, the system holds the connection.
            early.connect(("127.0.0.1", int(house.address.rpartition(":")[2])))
            early.sendall("\r\n".join(HEALTH).encode())
            with no_more_files():
                await until_logged(1)
                for _ in range(100):
                    await asyncio.sleep(0)
                small_world.clock.advance(60)
                await until_logged(2)
            assert (await asyncio.to_thread(early.recv, 12)) == b"HTTP/1.1 200"
    assert [each["event"] for each in logs] == ["no connection can be accepted"] * 2
    assert all("exc_info" not in each and "Too many open files" in each["error"] for each in logs)


@contextmanager
def no_more_files() -> Generator[None]:
    """No file can be opened in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def beginning_of_answer(connection: socket.socket) -> bytes:
    try:
        return connection.recv(12)
    except ConnectionError:
        return b""


FEW_FILES = 600
"""How many files the process below may open, for itself and for connections."""


@pytest.mark.timeout(300)
def test_more_half_open_requests_than_files_do_not_end_the_service(tmp_path: Path) -> None:
    """A process that may open few files, and a client that opens more connections than that. Those who are turned away
    are told so, the others are answered, and no traceback is logged."""
    command = ["/bin/sh", "-c", f'ulimit -n {FEW_FILES} && exec "$0" -m denizen up', sys.executable]
    with started(command, ROOT, tmp_path / "home", settings={"DENIZEN_LIMITS__CONNECTIONS_PER_ADDRESS": "0"}) as house:
        with ExitStack() as held:
            opened = [held.enter_context(socket.create_connection(("127.0.0.1", house.port))) for _ in range(700)]
            for each in opened:
                with suppress(ConnectionError):
                    each.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            assert b"HTTP/1.1 503" in [beginning_of_answer(each) for each in opened[-50:]]
        assert house.get("/healthz")["ok"] is True
    assert "Traceback" not in house.output.read_text()
