"""A process that was away longer than its lease comes back: what it still says and writes does not count."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

from bench._crash import ended, processes
from denizen import Runtime
from denizen.bus.port import Gap, Subscription
from denizen.bus.streams import Freshness, LiveText, MessageCreated, StreamDelta, StreamFrame, from_payload, space_topic
from denizen.checker import check_database
from denizen.models.scripted import reply, scripted
from tests.crash.thinking import MODEL, PACE, think_slowly

SECONDS = 60


class Reader:
    """Someone who watches a space: every frame that came, and the texts that are being written as they see them."""

    def __init__(self, frames: Subscription) -> None:
        self._frames = frames
        self._freshness = Freshness()
        self.live = LiveText()
        self.fresh: list[StreamFrame] = []
        self.stale: list[StreamFrame] = []

    async def until(self, happened: Callable[[], object]) -> None:
        """Read on until it has happened."""
        async with asyncio.timeout(SECONDS):
            while not happened():
                frame = await anext(self._frames)
                assert not isinstance(frame, Gap)
                self._take(from_payload(frame.payload), self._freshness.admit_payload(frame.payload))

    def _take(self, frame: StreamFrame | None, fresh: bool) -> None:
        assert frame is not None
        (self.fresh if fresh else self.stale).append(frame)
        self.live.feed(frame)

    @property
    def created(self) -> int:
        return sum(isinstance(frame, MessageCreated) for frame in self.fresh)


async def heard(line: Connection, word: str) -> None:
    """The process says this next."""
    assert await asyncio.to_thread(line.poll, SECONDS), f"the process never said {word!r}"
    assert line.recv() == word


async def test_a_process_stopped_in_the_middle_of_a_word_is_taken_over(postgres_url: str, redis_url: str) -> None:
    """The other answers. When the first goes on, its write is refused and its frames are dropped."""
    other = scripted(reply("The other answers."), "Answered.")
    async with Runtime(postgres_url, redis_url=redis_url, models={MODEL: other}, pace=PACE) as denizen:
        noor = await denizen.create_person("Noor")
        ada = await denizen.create_agent("Ada", model=MODEL)
        desk = await denizen.create_space("Desk", [noor, ada])
        line, far_end = processes().Pipe()
        process = processes().Process(target=think_slowly, args=(postgres_url, redis_url, far_end), daemon=True)
        process.start()
        try:
            async with denizen.bus.subscribe(space_topic(desk.id)) as frames:
                reader = Reader(frames)
                await heard(line, "living")
                await denizen.post(desk, noor, "Are you there?")
                await heard(line, "midway")
                await reader.until(lambda: any(stream.text for stream in reader.live.streams()))
                os.kill(process.pid, signal.SIGSTOP)
                async with denizen.living():
                    await reader.until(lambda: reader.created == 2)
                    assert reader.live.streams() == ()
                    line.send("go on")
                    os.kill(process.pid, signal.SIGCONT)
                    await heard(line, "refused")
                    await reader.until(lambda: any(isinstance(frame, StreamDelta) for frame in reader.stale))
                    assert reader.live.streams() == ()
                    await denizen.run_until_idle()
            assert ended(process) == 0
        finally:
            line.close()
            with suppress(ValueError):  # it has ended
                process.kill()  # a stopped process hears nothing else
        assert await denizen.transcript(desk) == ["Noor: Are you there?", "Ada: The other answers."]
        assert [cycle.stop_reason for cycle in await denizen.cycles(ada)] == ["answered"]
        assert await check_database(denizen.db) == []
