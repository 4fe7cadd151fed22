"""A house with an HTTP door: the real app on a real port, over a real database, with scripted models."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import Any

import httpx2
import pytest
import uvloop
from fastapi import FastAPI

from denizen.access import tokens
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.clock import Instant
from denizen.server.application import create_app
from denizen.server.context import ServerLimits
from denizen.server.serving import Tls, bind, serve_on
from denizen.shapes.events import EVENTS
from denizen.spaces.directory import Entity, Space
from denizen.storage.sqlite import blobs_path
from tests.server import small_town
from tests.server.small_town import Town
from tests.world import UNHURRIED, World, open_world

ON_BOTH_LOOPS = ("test_connections.py", "test_serving.py", "test_stream.py", "test_reach.py")
"""Run on asyncio's loop and on uvloop, which `denizen up` uses: their subject is what sockets do. The others run on
asyncio's; those that start a `denizen up`, on uvloop in its process."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops that a test of this folder runs on."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    return loops | ({"uvloop": uvloop.new_event_loop} if item.path.name in ON_BOTH_LOOPS else {})


@dataclass(frozen=True)
class SentEvent:
    """One server-sent event; a comment has the name `:`."""

    name: str
    data: Any = None
    id: Any = None
    """A number; of a person's stream a text."""


@dataclass
class House:
    """A world, and the server before it. `call` asks as someone; `stream` reads a space as them."""

    world: World
    address: str
    client: httpx2.AsyncClient
    stop: asyncio.Event
    secrets: dict[str, str] = field(default_factory=dict)

    async def token(self, who: Entity | Agent, *, expires_at: Instant | None = None) -> str:
        """A new secret for them, which `call` uses from now on."""
        _, secret = await self.world.denizen.db.write(tokens.create, who.id, "Test", expires_at=expires_at)
        self.secrets[who.id] = secret
        return secret

    async def headers(self, who: Entity | Agent | None) -> dict[str, str]:
        if who is None:
            return {}
        secret = self.secrets.get(who.id) or await self.token(who)
        return {"Authorization": f"Bearer {secret}"}

    async def call(
        self,
        method: str,
        path: str,
        who: Entity | Agent | None = None,
        *,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> httpx2.Response:
        sent = await self.headers(who) | (headers or {})
        return await self.client.request(method, path, headers=sent, **more)

    async def say(self, who: Entity | Agent, text: str, where: Space, **more: Any) -> dict[str, Any]:
        answer = await self.call("POST", f"/api/spaces/{where.id}/messages", who, json={"text": text, **more})
        assert answer.status_code == 201, answer.text
        return answer.json()

    @asynccontextmanager
    async def stream(
        self, who: Entity | Agent, where: Space, *, last: int | None = None, **query: Any
    ) -> AsyncGenerator[Stream]:
        """Inside, the stream is open and the server listens to the bus for it."""
        async with self.listen(who, f"/api/spaces/{where.id}/stream", last=last, **query) as stream:
            yield stream

    @asynccontextmanager
    async def listen(
        self, who: Entity | Agent, path: str, *, last: int | str | None = None, **query: Any
    ) -> AsyncGenerator[Stream]:
        """The same for any stream."""
        headers = await self.headers(who) | ({} if last is None else {"Last-Event-ID": str(last)})
        async with self.client.stream("GET", path, headers=headers, params=query) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
            stream = Stream(response)
            assert await anext(stream.lines) == "retry: 1000"
            assert await anext(stream.lines) == ""
            yield stream


class Stream:
    """The events of an open stream. What is in `seen` was read by `next` or `until`."""

    def __init__(self, response: httpx2.Response) -> None:
        self.lines: AsyncIterator[str] = response.aiter_lines()
        self.seen: list[SentEvent] = []

    async def next(self) -> SentEvent:
        """The next event or comment. Raises StopAsyncIteration at the end."""
        fields: dict[str, str] = {}
        async for line in self.lines:
            if line:
                name, _, value = line.partition(":")
                fields[name or ":"] = value.removeprefix(" ")
                continue
            event = _event(fields)
            self.seen.append(event)
            return event
        raise StopAsyncIteration

    async def until(self, name: str, count: int = 1, **data: Any) -> list[SentEvent]:
        """Everything up to the `count`th event of that name and with these data."""
        read: list[SentEvent] = []
        while count:
            event = await self.next()
            read.append(event)
            count -= event.name == name and all(event.data[key] == value for key, value in data.items())
        return read

    async def rest(self) -> list[SentEvent]:
        """Everything up to the end."""
        read: list[SentEvent] = []
        while True:
            try:
                read.append(await self.next())
            except StopAsyncIteration:
                return read


def _event(fields: dict[str, str]) -> SentEvent:
    if ":" in fields:
        return SentEvent(":", fields[":"])
    number = fields.get("id")
    data = json.loads(fields["data"])
    # Every event is as the table of events says.
    EVENTS[fields["event"]].shape.model_validate(data, extra="forbid")
    return SentEvent(fields["event"], data, int(number) if number is not None and number.isdecimal() else number)


@asynccontextmanager
async def served(
    world: World,
    *,
    limits: ServerLimits | None = None,
    made: list[FastAPI] | None = None,
    tls: Tls | None = None,
    listener: socket | None = None,
    **more: Any,
) -> AsyncGenerator[House]:
    """The world, served on a free port or on that of `listener` until the end, or until `stop` is set."""
    ready, stop = asyncio.Event(), asyncio.Event()
    listener = listener or bind("127.0.0.1", 0)
    address = f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
    # Tests ask as often as they like, unless they are about that.
    unhurried = ServerLimits(
        requests_per_minute=0, failed_logins_per_minute=0, connections_per_address=0, streams_per_person=0
    )
    app = create_app(world.denizen, limits=limits or unhurried, **more)
    if made is not None:
        made.append(app)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_on(app, listener, ready=ready, stop=stop, tls=tls))
        await ready.wait()
        # Who is asked is what the tests of TLS are about, not whether this client believes it; and to read whom it
        # could believe would take longer than most tests.
        async with httpx2.AsyncClient(base_url=address, timeout=60, verify=False) as client:
            try:
                yield House(world, address, client, stop)
            finally:
                stop.set()


def session_headers(house: House, signed_in: httpx2.Response) -> dict[str, str]:
    """What a browser sends with each request after this answer: the cookie, and the key that its pages keep."""
    house.client.cookies.clear()
    cookie, key = signed_in.headers["set-cookie"].partition(";")[0], signed_in.json()["page_key"]
    return {"Cookie": cookie, "Denizen-Page-Key": key}


@pytest.fixture
async def house(world: World) -> AsyncGenerator[House]:
    """An empty house: the test runs once on SQLite and once on PostgreSQL."""
    async with served(world) as house:
        yield house


@pytest.fixture
async def unhurried_house(unhurried_world: World) -> AsyncGenerator[House]:
    """The same in an unhurried world."""
    async with served(unhurried_world) as house:
        yield house


@pytest.fixture
async def small_house(small_world: World) -> AsyncGenerator[House]:
    """An empty house on SQLite, for what has nothing to do with storage."""
    async with served(small_world) as house:
        yield house


@dataclass(frozen=True)
class Built:
    """A town (`small_town`) that was built once, to be copied by whoever walks through it."""

    database: Path
    town: Town


SEALED_WITH = new_key()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    database = tmp_path_factory.mktemp("town") / "denizen.db"

    async def build() -> Town:
        async with open_world(f"sqlite:///{database}", secret_key=SEALED_WITH, pace=UNHURRIED) as world:
            return await small_town.build(world)

    return Built(database, asyncio.run(build()))


@asynccontextmanager
async def visited(built: Built, folder: Path) -> AsyncGenerator[House]:
    """A copy of the town with its doors open, where agents live."""
    for path in (built.database, blobs_path(built.database)):
        shutil.copy(path, folder / path.name.replace(built.database.stem, "denizen"))
    async with (
        open_world(f"sqlite:///{folder / 'denizen.db'}", secret_key=SEALED_WITH, pace=UNHURRIED) as world,
        served(world) as house,
        world.denizen.living(),
    ):
        yield house
