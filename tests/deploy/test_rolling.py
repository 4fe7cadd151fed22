"""Two instances on one PostgreSQL and one Redis, restarted one after the other while people go on talking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select

from denizen import Runtime
from denizen.checker import check_database
from denizen.storage.database import Row, Tx, statement
from denizen.storage.schema import events, leases
from tests.deploy.counting import NUMBER, Counting, counting
from tests.deploy.instances import GRACE, Instance
from tests.server.conftest import Stream

BURST = 3
"""How many messages someone sends before waiting for the answers."""

UNANSWERED = statement(select(func.count()).select_from(events).where(events.c.state != "done"))
HELD = statement(select(leases.c.agent_id).where(leases.c.holder.is_not(None)))


@dataclass
class Talk:
    """One person in one room, asking whichever instance answers, and reading along."""

    room: str
    instances: list[Instance]
    client: httpx2.AsyncClient
    read: list[dict[str, Any]] = field(default_factory=list)
    posted: int = 0
    bursts: int = 0
    over: bool = False
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def answered(self) -> list[int]:
        """The numbers that the agent has named, in its order."""
        said = [each["text"] for each in self.read if each["author"]["kind"] == "agent"]
        return [int(number) for text in said for number in NUMBER.findall(text)]

    @property
    def heard(self) -> list[int]:
        """The numbers that the person has said, as they were read."""
        said = [each["text"] for each in self.read if each["author"]["kind"] == "human"]
        return [int(number) for text in said for number in NUMBER.findall(text)]

    async def until(self, true: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(true)

    async def talk(self) -> None:
        """Send bursts, each when the one before is answered, until it is `over`."""
        while not self.over:
            for _ in range(BURST):
                await self._post(self.posted)
                self.posted += 1
            await self.until(lambda: len(self.answered) >= self.posted)
            async with self._changed:
                self.bursts += 1
                self._changed.notify_all()

    async def _post(self, number: int) -> None:
        # The key makes it safe to ask again: an instance may be gone after it has done it and before it said so.
        headers = {"Idempotency-Key": f"{self.room} {number}"}
        for instance in cycle(self.instances):
            try:
                url = f"{instance.url}/api/spaces/{self.room}/messages"
                answer = await self.client.post(url, json={"text": f"n{number}n"}, headers=headers)
            except httpx2.HTTPError:
                continue
            if answer.status_code != 503:
                assert answer.status_code == 201, answer.text
                return

    async def listen(self) -> None:
        """Read the stream of the room, from another instance whenever one ends, for ever."""
        for turn in count():
            url = f"{self.instances[turn % len(self.instances)].url}/api/spaces/{self.room}/stream"
            headers = {"Last-Event-ID": str(len(self.read))}
            try:
                async with self.client.stream("GET", url, headers=headers) as response:
                    if response.status_code == 200:
                        await self._listen_to(response)
            except httpx2.HTTPError:
                pass

    async def _listen_to(self, response: httpx2.Response) -> None:
        stream = Stream(response)
        assert [await anext(stream.lines) for _ in range(2)] == ["retry: 1000", ""]
        while True:
            try:
                event = await stream.next()
            except StopAsyncIteration:
                return
            if event.name == "message":
                async with self._changed:
                    self.read.append(event.data)
                    self._changed.notify_all()


@asynccontextmanager
async def two_instances(folder: Path, **environment: str) -> AsyncGenerator[list[Instance]]:
    """Both were started at once on an empty database, and are up."""
    made = [Instance(folder / name / "home", environment) for name in ("one", "two")]
    for each in made:
        each.home.parent.mkdir()
    try:
        await asyncio.gather(*(each.start() for each in made))
        yield made
    finally:
        for each in made:
            await each.kill()


@asynccontextmanager
async def talking(instances: list[Instance]) -> AsyncGenerator[list[Talk]]:
    """Inside, someone talks in Ada's room and someone in Bo's; on leaving, they have come to an end."""
    spaces = (await instances[0].get("/api/spaces")).json()["spaces"]
    assert len(spaces) == 3, "one world was made, not one for each instance"
    async with httpx2.AsyncClient(timeout=60, headers=instances[0].authorization) as client:
        talks = [Talk(each["id"], instances, client) for each in spaces if each["private"]]
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(each.listen()) for each in talks]
            speakers = [tasks.create_task(each.talk()) for each in talks]
            yield talks
            for each in talks:
                each.over = True
            await asyncio.gather(*speakers)
            for reader in readers:
                reader.cancel()


async def restart(instance: Instance, model: Counting, talks: list[Talk]) -> None:
    """Stop it in the middle of thoughts, let life go on without it, and start it again."""
    await model.hold(len(talks))
    instance.tell_to_stop()
    await instance.hear("Stopping")
    model.go_on.set()
    assert await instance.ended() == 0, "".join(instance.said)
    await another_burst(talks)
    await instance.start()
    assert (await instance.get("/readyz")).status_code == 200
    await another_burst(talks)


async def another_burst(talks: list[Talk]) -> None:
    """Each of them has been answered once more, from the first message of a burst to the last."""
    for talk in talks:
        goal = talk.bursts + 2
        await talk.until(lambda talk=talk, goal=goal: talk.bursts >= goal)


def _rows(tx: Tx) -> tuple[list[Row], list[Row]]:
    return tx.all(UNANSWERED), tx.all(HELD)


@pytest.mark.timeout(900)
async def test_a_rolling_restart_loses_nothing_doubles_nothing_and_waits_for_no_lease(
    postgres_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Leases last an hour here: were a cycle to wait for one, this test would not end."""
    async with counting() as model:
        model.go_on.set()
        environment = {
            **model.environment,
            **GRACE,
            "DATABASE_URL": postgres_url,
            "REDIS_URL": redis_url,
            "DENIZEN_AGENTS__LEASE_SECONDS": "3600",
            "DENIZEN_AGENTS__SWEEP_SECONDS": "0.5",
        }
        async with two_instances(tmp_path, **environment) as instances:
            async with talking(instances) as talks:
                await another_burst(talks)
                for instance in instances:
                    await restart(instance, model, talks)
            for talk in talks:
                assert [each["seq"] for each in talk.read] == list(range(1, len(talk.read) + 1))
                assert talk.heard == list(range(talk.posted))
                assert talk.answered == list(range(talk.posted))
            for instance in instances:
                instance.tell_to_stop()
                assert await instance.ended() == 0
    async with Runtime(postgres_url) as denizen:
        assert await denizen.db.read(_rows) == ([(0,)], [])
        assert await check_database(denizen.db) == []
