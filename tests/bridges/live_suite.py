"""What adapters that show text while it is written must do: the whole text is there once, and never half of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
from sqlalchemy import select

from denizen import failpoints, reply, scripted
from denizen.bridges.drafts import WRITING
from denizen.bridges.live import DRAFT_SHOWN
from denizen.bus.port import Frame
from denizen.bus.streams import TypingElsewhere, from_payload, space_topic
from denizen.models.scripted import Turn
from denizen.storage.database import Tx, statement, values
from denizen.storage.schema import drafts
from tests.bridges.conformance import ROOM, Pier, Service, build, kill_once_at
from tests.bridges.socket_suite import SocketSuite
from tests.bridges.sockets import SocketStandIn
from tests.world import World

TEXT = "At noon, from the old pier, as always on a day like this."


class Pen:
    """What an agent writes with: a few characters at a time, as the test lets it."""

    def __init__(self) -> None:
        self._left = asyncio.Semaphore(0)

    async def pause(self) -> None:
        await self._left.acquire()

    def write(self, pieces: int = 1_000) -> None:
        for _ in range(pieces):
            self._left.release()


class LiveService(Service, Protocol):
    """The other side, where text can be seen while it is written."""

    settings: dict[str, Any]
    """Settings of the bridge, besides those that it needs."""
    streaming: dict[str, Any]
    """Those with which Ada's texts are shown while she writes them."""

    async def until(self, ends: str) -> None:
        """Returns when the last thing that was said ends so."""
        ...

    def there(self, room: str) -> list[str]:
        """The texts of the bridge's messages that are in the room now."""
        ...


async def build_writing(bay: World, live: LiveService, pen: Pen, *turns: Turn) -> Pier:
    live.settings = live.streaming
    ada = await bay.agent("Ada", model=scripted(*(turns or (reply(TEXT), "Told Eve.")), pause=pen.pause))
    return await build(bay, live, ada)


@asynccontextmanager
async def typing_in(bay: World, pier: Pier) -> AsyncGenerator[AsyncIterator[TypingElsewhere]]:
    """What people of the pier are told of who types elsewhere, from now on."""
    async with bay.denizen.bus.subscribe(space_topic(pier.space.id)) as frames:

        async def typing() -> AsyncIterator[TypingElsewhere]:
            async for frame in frames:
                assert isinstance(frame, Frame)
                if isinstance(told := from_payload(frame.payload), TypingElsewhere):
                    yield told

        yield typing()


def _drafts(tx: Tx) -> list[str]:
    return values(tx, statement(select(drafts.c.message_id)))


class LiveSuite:
    @pytest.fixture
    def live(self, service: Any) -> LiveService:
        return service

    async def test_text_is_shown_while_it_is_written_and_there_once_in_the_end(
        self, bay: World, live: LiveService
    ) -> None:
        pen = Pen()
        pier = await build_writing(bay, live, pen)
        async with bay.denizen.living(), asyncio.timeout(60):
            await live.write(ROOM, "Eve", "When?")
            pen.write(3)
            await live.until(WRITING)
            pen.write(1)
            await bay.clock.sleeper(1.5)
            bay.clock.advance(2)
            await live.until(WRITING)
            pen.write()
            await live.until(TEXT)
            await bay.run()
        assert live.there(ROOM) == [TEXT]
        assert live.said[0].endswith(WRITING)
        assert live.said[-1] == f"{ROOM}: edit (out-1): {TEXT}"
        assert (await pier.lines())[-1] == f"Ada: {TEXT}"
        assert await bay.denizen.db.read(_drafts) == []

    async def test_a_draft_that_was_sent_when_the_process_died_does_not_stay(
        self, bay: World, live: LiveService
    ) -> None:
        """Its id is not known: it is looked for."""
        pen = Pen()
        await build_writing(bay, live, pen)
        kill_once_at(DRAFT_SHOWN)
        async with bay.denizen.living(), asyncio.timeout(60):
            await live.write(ROOM, "Eve", "When?")
            pen.write(3)
            await live.until(WRITING)
            pen.write()
            await live.until("delete (out-1)")
            await bay.run()
        assert not failpoints.armed
        assert live.there(ROOM) == [TEXT]
        assert await bay.denizen.db.read(_drafts) == []

    async def test_a_process_that_ends_while_an_agent_writes_leaves_no_half_text(
        self, bay: World, live: LiveService
    ) -> None:
        pen = Pen()
        await build_writing(bay, live, pen, reply(TEXT), reply(TEXT), "Told Eve.")
        async with bay.denizen.living(), asyncio.timeout(60):
            await live.write(ROOM, "Eve", "When?")
            pen.write(3)
            await live.until(WRITING)
            bay.denizen.hurry()
        pen.write()
        await bay.restart()
        for _ in range(3):
            await bay.run_after(60)
        assert live.there(ROOM) == [TEXT]
        assert await bay.denizen.db.read(_drafts) == []

    async def test_text_that_never_becomes_a_message_is_withdrawn(self, bay: World, live: LiveService) -> None:
        pen = Pen()
        fails = [reply("Half a thought that is never finished"), ConnectionResetError("The line is dead.")]
        await build_writing(bay, live, pen, *[fails] * 20)
        async with bay.denizen.living(), asyncio.timeout(60):
            await live.write(ROOM, "Eve", "When?")
            pen.write(3)
            await live.until(WRITING)
            pen.write()
            await live.until("delete (out-1)")
            while await bay.denizen.db.read(_drafts):  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0)
            bay.denizen.hurry()  # Ada waits to try again, and nobody moves the clock.

    async def test_nothing_is_shown_of_what_is_written_unless_asked_for(self, bay: World, live: LiveService) -> None:
        ada = await bay.agent("Ada", reply(TEXT), "Told Eve.")
        await build(bay, live, ada)
        async with bay.denizen.living(), asyncio.timeout(60):
            await live.write(ROOM, "Eve", "When?")
            await live.until(TEXT)
            await bay.run()
        assert live.said == [f"{ROOM}: Ada: {TEXT}"]


class SocketLiveSuite(LiveSuite, SocketSuite):
    async def test_a_draft_that_arrives_after_the_message_was_said_does_not_stay(
        self, bay: World, live: LiveService, socket: SocketStandIn
    ) -> None:
        """The message is sent only when the draft is there, and takes its place."""
        pen = Pen()
        pier = await build_writing(bay, live, pen)
        socket.may_show.clear()
        async with bay.denizen.living(), asyncio.timeout(60):
            await live.write(ROOM, "Eve", "When?")
            pen.write(3)
            await socket.on_its_way.wait()
            pen.write()
            while (await pier.lines())[-1] != f"Ada: {TEXT}":
                pass
            for _ in range(20):
                await pier.lines()  # Time enough to send it before the draft is there.
            socket.may_show.set()
            await socket.until(TEXT)
            await bay.run()
        assert socket.there(ROOM) == [TEXT]
        assert await bay.denizen.db.read(_drafts) == []
