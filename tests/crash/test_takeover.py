"""A process that was away longer than its lease is taken over; what it says and writes later does not count.

It may have stopped anywhere, also inside of a transaction, with locks on rows that others need.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

import pytest

from denizen import Runtime, failpoints, leased_tasks
from denizen.bus.port import Gap, Subscription
from denizen.bus.streams import (
    CycleChanged,
    Freshness,
    Hint,
    MessageCreated,
    StreamAborted,
    StreamDelta,
    StreamFrame,
    StreamStarted,
    agent_topic,
    from_payload,
    space_topic,
)
from denizen.checker import check_database
from denizen.ids import MessageId, SpaceId
from denizen.models.scripted import reply, scripted
from denizen.server.live import Live
from denizen.storage import postgresql
from tests.crash.killing import ended, processes
from tests.crash.thinking import MODEL, PACE, SHORT, answering, think_and_stop, think_slowly
from tests.proxy import dark_proxy

SECONDS = 60


class Reader:
    """Someone who watches a space: every frame that came, and the texts that are being written as they see them."""

    def __init__(self, frames: Subscription, space_id: SpaceId) -> None:
        self._frames = frames
        self._freshness = Freshness()
        self._live = Live(space_id)
        self.texts: dict[MessageId | None, str] = {}
        """The texts that are being written, by the id that the message will have."""
        self.fresh: list[StreamFrame] = []
        self.stale: list[StreamFrame] = []

    async def until(self, happened: Callable[[], object]) -> None:
        """Read on until it has happened."""
        async with asyncio.timeout(SECONDS):
            while not happened():
                frame = await anext(self._frames)
                assert not isinstance(frame, Gap)
                self._take(from_payload(frame.payload))

    def _take(self, frame: StreamFrame | None) -> None:
        assert frame is not None
        epoch = None if isinstance(frame, Hint) else frame.epoch
        is_fresh = isinstance(frame, Hint) or epoch is None or self._freshness.admit(frame.agent, epoch)
        (self.fresh if is_fresh else self.stale).append(frame)
        if isinstance(frame, MessageCreated):
            self._live.said(frame.id)
            self.texts.pop(frame.id, None)
        for event in self._live.hear(frame):
            match event:
                case StreamStarted():
                    self.texts[event.id] = ""
                case StreamDelta():
                    self.texts[event.id] += event.text
                case StreamAborted():
                    del self.texts[event.id]
                case _:
                    pass

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
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=MODEL)
        desk = await denizen.spaces.create("Desk", [noor, ada])
        line, far_end = processes().Pipe()
        process = processes().Process(target=think_slowly, args=(postgres_url, redis_url, far_end), daemon=True)
        process.start()
        try:
            async with denizen.bus.subscribe(space_topic(desk.id)) as frames:
                reader = Reader(frames, desk.id)
                await heard(line, "living")
                await denizen.spaces.post(desk, noor, "Are you there?")
                await heard(line, "midway")
                await reader.until(lambda: any(reader.texts.values()))
                os.kill(process.pid, signal.SIGSTOP)
                async with denizen.living():
                    await reader.until(lambda: reader.created == 2)
                    assert reader.texts == {}
                    line.send("go on")
                    os.kill(process.pid, signal.SIGCONT)
                    await heard(line, "refused")
                    await reader.until(lambda: any(isinstance(frame, StreamDelta) for frame in reader.stale))
                    assert reader.texts == {}
                    await denizen.run_until_idle()
            assert ended(process) == 0
        finally:
            line.close()
            with suppress(ValueError):  # it has ended
                process.kill()  # a stopped process hears nothing else
        assert await denizen.spaces.transcript(desk) == ["Noor: Are you there?", "Ada: The other answers."]
        assert [cycle.stop_reason for cycle in await denizen.minds.cycles(ada)] == ["answered"]
        assert await check_database(denizen.db) == []


INSIDE = ["commit:open_cycle", "commit:carry_on", "commit:end_cycle"]
"""Just before each of these writes of a cycle is committed: its lease is locked."""


@pytest.mark.parametrize("point", INSIDE)
async def test_a_process_stopped_inside_of_a_transaction_is_taken_over(postgres_url: str, point: str) -> None:
    """It holds a lock on its lease, and the other waited for that for as long as it was stopped."""
    async with Runtime(postgres_url, models={MODEL: answering()}, pace=PACE) as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=MODEL)
        desk = await denizen.spaces.create("Desk", [noor, ada])
        line, far_end = processes().Pipe()
        process = processes().Process(target=think_and_stop, args=(postgres_url, point, far_end), daemon=True)
        process.start()
        try:
            await heard(line, "living")
            await denizen.spaces.post(desk, noor, "Are you there?")
            await heard(line, "stopping")
            async with asyncio.timeout(SECONDS), denizen.bus.subscribe(agent_topic(ada.id)) as life, denizen.living():
                assert await denizen.missing() == []
                await until_it_rests(life)
            os.kill(process.pid, signal.SIGCONT)
            line.send("end")
            assert ended(process) == 0
        finally:
            line.close()
            with suppress(ValueError):  # it has ended
                process.kill()
        assert await denizen.spaces.transcript(desk) == ["Noor: Are you there?", "Ada: Yes."]
        assert [cycle.stop_reason for cycle in await denizen.minds.cycles(ada)] == ["answered"]
        assert await check_database(denizen.db) == []


@pytest.mark.parametrize("point", ["commit:open_cycle", "commit:carry_on"])
async def test_a_process_whose_network_dies_inside_of_a_transaction_is_taken_over(
    postgres_url: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody resets its connections: PostgreSQL cannot know that there is nobody at the other end."""
    for module, limit in ((leased_tasks, "LET_GO_SECONDS"), (postgresql, "CLOSE_SECONDS")):
        monkeypatch.setattr(module, limit, 0.5)  # the end of the one that is cut off is not what this is about
    monkeypatch.setattr(postgresql, "WRITING", SHORT)
    with dark_proxy(postgres_url) as proxy:
        models = {MODEL: answering()}
        async with Runtime(postgres_url, models=models, pace=PACE) as denizen:
            noor = await denizen.people.create("Noor")
            ada = await denizen.agents.create("Ada", model=MODEL)
            desk = await denizen.spaces.create("Desk", [noor, ada])
            dark, loop = asyncio.Event(), asyncio.get_running_loop()

            def darken() -> None:
                failpoints.disarm()
                proxy.darken(new_ones_too=True)
                loop.call_soon_threadsafe(dark.set)

            async with Runtime(proxy.url, models=models, pace=PACE) as cut_off, cut_off.living():
                failpoints.arm(point, darken)
                await cut_off.spaces.post(desk, noor, "Are you there?")
                async with asyncio.timeout(SECONDS), denizen.bus.subscribe(agent_topic(ada.id)) as life:
                    await dark.wait()
                    async with denizen.living():
                        assert await denizen.missing() == []
                        await until_it_rests(life)
            assert await denizen.spaces.transcript(desk) == ["Noor: Are you there?", "Ada: Yes."]
            assert [cycle.stop_reason for cycle in await denizen.minds.cycles(ada)] == ["answered"]
            assert await check_database(denizen.db) == []


async def until_it_rests(life: Subscription) -> None:
    """A cycle of the agent has ended."""
    async for frame in life:
        assert not isinstance(frame, Gap)
        heard_of = from_payload(frame.payload)
        if isinstance(heard_of, CycleChanged) and heard_of.what == "ended":
            return
