"""The bus across processes, on a real Valkey."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
import redis.asyncio
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from structlog.testing import capture_logs

from denizen.bus.port import Bus, Deliver, Frame, Gap, Subscription
from denizen.bus.redis import LONGEST_PAUSE_SECONDS, PROBE_SECONDS, Outbox, RedisBus, pause
from denizen.clock import Clock, Instant
from denizen.errors import BusError
from tests.bus.suite import BusSuite, next_frame, next_gap, numbers
from tests.servers import NOTHING_ON_DISK, Server, free_port, private_valkey


class TestRedisBus(BusSuite):
    """One instance alone."""

    @pytest.fixture
    async def bus(self, redis_url: str) -> AsyncIterator[RedisBus]:
        async with opened(redis_url) as bus:
            yield bus


class TestAcrossInstances(BusSuite):
    """One instance publishes, another reads."""

    @pytest.fixture
    async def bus(self, redis_url: str) -> AsyncIterator[Bus]:
        async with opened(redis_url) as publisher, opened(redis_url) as reader:
            yield Across(publisher, reader)


class TestWithRedisAway(BusSuite):
    """One instance alone, with no Redis at all: its own readers notice nothing."""

    @pytest.fixture
    async def bus(self) -> AsyncIterator[RedisBus]:
        async with opened(NOWHERE, clock=StoppedClock()) as bus:
            yield bus


async def test_instances_hear_each_other_and_themselves_once(redis_url: str):
    async with (
        opened(redis_url) as here,
        opened(redis_url) as there,
        here.subscribe("wake") as at_home,
        there.subscribe("wake") as abroad,
    ):
        here.publish("wake", {"n": 1})
        assert await numbers(abroad, 1) == [1]
        there.publish("wake", {"n": 2})
        assert await numbers(at_home, 2) == [1, 2]
        here.publish("wake", {"n": 3})
        assert await numbers(at_home, 1) == [3]
        assert await numbers(abroad, 2) == [2, 3]


async def test_installations_with_different_prefixes_do_not_hear_each_other(redis_url: str):
    async with (
        opened(redis_url, prefix="one:") as one,
        opened(redis_url, prefix="two:") as two,
        opened(redis_url, prefix="two:") as other,
        other.subscribe("wake") as subscription,
    ):
        one.publish("wake", {"n": 1})
        await one.close()  # what it published has been sent
        two.publish("wake", {"n": 2})
        assert await numbers(subscription, 1) == [2]


async def test_closing_sends_what_was_published(redis_url: str):
    async with opened(redis_url) as reader, reader.subscribe("wake") as subscription:
        async with opened(redis_url) as publisher:
            for n in range(900):
                publisher.publish("wake", {"n": n})
        assert await numbers(subscription, 900) == list(range(900))


async def test_a_burst_does_not_cut_off_a_reader_that_keeps_up(redis_url: str):
    """More frames than fit a reader's queue may arrive in one read of the socket."""
    async with (
        opened(redis_url) as publisher,
        opened(redis_url) as reader,
        reader.subscribe("wake", limit=100) as subscription,
    ):
        for n in range(5000):
            publisher.publish("wake", {"n": n})
        assert await numbers(subscription, 5000) == list(range(5000))


async def test_closing_leaves_no_task_behind(redis_url: str):
    before = asyncio.all_tasks()
    async with opened(redis_url) as bus, bus.subscribe("wake"):
        assert len(asyncio.all_tasks()) > len(before)
    assert asyncio.all_tasks() == before


async def test_redis_sends_us_only_what_someone_here_reads(redis_url: str):
    async with opened(redis_url) as bus, redis.asyncio.Redis.from_url(redis_url) as client:
        async with bus.subscribe("a", "b"):
            async with bus.subscribe("b", "c"):
                assert await channels(client) == {b"denizen:a", b"denizen:b", b"denizen:c"}
            await bus.follow()
            assert await channels(client) == {b"denizen:a", b"denizen:b"}
        await bus.follow()
        assert await channels(client) == set()


async def test_after_redis_was_away_readers_see_a_gap_and_frames_flow_again(redis_server: Server):
    """Losing Redis delays work and loses none: the gap says when to read the database."""
    async with (
        opened(redis_server.url) as publisher,
        opened(redis_server.url) as reader,
        reader.subscribe("wake") as subscription,
    ):
        publisher.publish("wake", {"n": 1})
        assert await numbers(subscription, 1) == [1]

        redis_server.stop()
        await publisher.disconnected()
        await reader.disconnected()
        publisher.publish("wake", {"n": 2})
        redis_server.start()
        await publisher.connected()
        await reader.connected()

        await next_gap(subscription)
        publisher.publish("wake", {"n": 3})
        last = await next_frame(subscription)
        # What was published meanwhile may arrive or not, by who came back first.
        assert last.payload in ({"n": 2}, {"n": 3})
        if last.payload == {"n": 2}:
            assert await numbers(subscription, 1) == [3]


async def test_a_hint_that_comes_while_the_bus_starts_is_a_gap_at_least(redis_url: str):
    """Whoever listens before the bus is open knows that something may have been said; from then on all is heard."""
    starting = RedisBus(redis_url)
    async with opened(redis_url) as publisher, starting.subscribe("wake") as subscription:
        publisher.publish("wake", {"n": 0})
        opening = asyncio.ensure_future(starting.open())
        count = 1
        while not opening.done():
            if count < 500:  # more than fits where it waits to be sent would be a gap, however late the server answers
                publisher.publish("wake", {"n": count})
                count += 1
            await asyncio.sleep(0)
        await opening
        first = count
        for count in range(first, first + 3):
            publisher.publish("wake", {"n": count})

        heard: list[Frame | Gap] = []
        while not heard or heard[-1] != Frame("wake", {"n": count}):
            heard.append(await anext(subscription))
        await starting.close()

    assert Gap() in heard
    told = [cast("int", item.payload["n"]) for item in heard if isinstance(item, Frame)]
    assert told == list(range(told[0], count + 1)), "something is missing in the middle"
    assert told[0] <= first


async def test_a_bus_can_be_opened_while_redis_is_away(redis_server: Server):
    redis_server.stop()
    async with (
        opened(redis_server.url) as publisher,
        opened(redis_server.url) as reader,
        reader.subscribe("wake") as subscription,
    ):
        await publisher.disconnected()
        redis_server.start()
        await publisher.connected()
        await reader.connected()
        assert await anext(subscription) == Gap()
        publisher.publish("wake", {"n": 1})
        assert await numbers(subscription, 1) == [1]


@pytest.mark.parametrize("kind", ["pubsub", "normal"], ids=["listening", "publishing"])
async def test_either_connection_may_break_alone(redis_url: str, kind: str):
    async with (
        redis.asyncio.Redis.from_url(redis_url) as client,
        opened(redis_url) as bus,
        bus.subscribe("wake") as subscription,
    ):
        await client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
        if kind == "normal":
            bus.publish("elsewhere", {})
        await next_gap(subscription)
        async with opened(redis_url) as other, other.subscribe("answer") as answers:
            other.publish("wake", {"n": 1})
            assert await numbers(subscription, 1) == [1]
            bus.publish("answer", {"n": 2})
            assert await numbers(answers, 1) == [2]


async def test_a_server_that_no_longer_answers_is_given_up(redis_server: Server):
    """The network may keep a connection to a frozen machine open for hours."""
    clock = StoppedClock()
    async with opened(redis_server.url, clock=clock) as bus, bus.subscribe("wake") as subscription:
        await bus.connected()
        async with frozen(redis_server):
            sleeper = await clock.sleeper()
            while sleeper.seconds == PROBE_SECONDS:
                sleeper.wake()
                sleeper = await clock.sleeper()
            await bus.disconnected()
        sleeper.wake()
        await bus.connected()
        assert await anext(subscription) == Gap()


async def test_a_bus_that_is_closed_just_when_its_connection_is_lost_is_closed(redis_server: Server):
    """A group of tasks that fails while it is being cancelled forgets that it was, in Python 3.11 and 3.12."""
    clock = StoppedClock()
    bus = RedisBus(redis_server.url, clock=clock)
    await bus.open()
    await bus.follow()
    async with frozen(redis_server), asyncio.timeout(60):
        answered = await clock.sleeper()
        answered.wake()
        unanswered = await clock.sleeper()
        unanswered.wake()
        await bus.close()


async def test_an_outage_is_logged_once(redis_server: Server):
    clock = StoppedClock()
    redis_server.stop()
    with capture_logs() as logs:
        async with opened(redis_server.url, clock=clock) as bus:
            for _ in range(3):
                (await clock.sleeper()).wake()
            sleeper = await clock.sleeper()
            redis_server.start()
            sleeper.wake()
            await bus.connected()
    assert [entry["event"] for entry in logs] == ["redis is away", "redis is back"]


async def test_what_finds_no_room_is_dropped_and_readers_are_told(redis_url: str):
    """The newest frames are the ones worth keeping, and a reader must not take them for all."""
    publisher = RedisBus(redis_url, outgoing_frames=3)
    for n in range(10):
        publisher.publish("wake", {"n": n})
    async with opened(redis_url) as reader, reader.subscribe("wake") as subscription:
        await publisher.open()
        heard = [await anext(subscription) for _ in range(4)]
        await publisher.close()
    assert heard == [Gap(), *(Frame("wake", {"n": n}) for n in (7, 8, 9))]


async def test_an_outbox_is_bounded_in_bytes_but_takes_one_large_frame():
    outbox = Outbox(max_frames=100, max_bytes=10)
    for topic in "abcd":
        outbox.put(topic, b"12345")
    assert outbox.take(100) == [("a", b""), ("b", b""), ("c", b"12345"), ("d", b"12345")]
    outbox.put("e", b"1234567890123")
    assert outbox.take(100) == [("e", b"1234567890123")]
    assert outbox.dropped == 2


async def test_what_others_say_on_our_channels_is_a_gap_at_most(redis_url: str):
    """A message that cannot be understood was perhaps a frame."""
    async with (
        opened(redis_url) as bus,
        bus.subscribe("wake") as subscription,
        redis.asyncio.Redis.from_url(redis_url) as client,
    ):
        for message in (b"", b"x", b"x\n", b"x\n[1]", b"x\n{", b"x\n\xff", b"x\n" + b"[" * 100_000):
            await client.publish("denizen:wake", message)
        await client.publish("denizen:wake", b'x\n{"n": 1}')
        items = [await anext(subscription), await anext(subscription)]
    assert items in ([Gap(), Gap()], [Gap(), Frame("wake", {"n": 1})])


async def test_what_cannot_be_written_as_json_is_not_sent(redis_url: str):
    """`publish` never raises: a fault in a hint must not undo the work it tells of."""
    async with opened(redis_url) as publisher, opened(redis_url) as reader, reader.subscribe("wake") as subscription:
        with capture_logs() as logs:
            publisher.publish("wake", {"n": object()})  # pyright: ignore[reportArgumentType]
        publisher.publish("wake", {"n": 2})
        assert await numbers(subscription, 1) == [2]
    assert [entry["event"] for entry in logs] == ["frame cannot be written as JSON"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:6379",
        "127.0.0.1:6379",
        "",
        "redis://:secret@127.0.0.1:port",
        "redis://:sec/ret@127.0.0.1",
        "redis://:secret@127.0.0.1?nonsense=1",
    ],
)
async def test_an_address_that_makes_no_sense_is_refused(url: str):
    with pytest.raises(BusError, match="Invalid Redis URL") as refusal:
        await RedisBus(url).open()
    assert "sec" not in str(refusal.value)
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("url", ["redis+sentinel://127.0.0.1:26379/mymaster", "redis-sentinel://127.0.0.1"])
async def test_the_address_of_a_sentinel_is_refused_with_a_sentence(url: str):
    with pytest.raises(BusError, match="Sentinel is not supported"):
        await RedisBus(url).open()


async def test_a_sentinel_at_an_ordinary_address_is_refused_with_a_sentence(tmp_path: Path):
    (tmp_path / "sentinel.conf").touch()
    with (
        private_valkey(tmp_path / "lock", str(tmp_path / "sentinel.conf"), "--sentinel") as server,
        pytest.raises(BusError, match="Sentinel is not supported"),
    ):
        await RedisBus(server.url).open()


async def test_a_node_of_a_cluster_carries_hints(tmp_path: Path):
    cluster = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with private_valkey(tmp_path / "lock", *NOTHING_ON_DISK, *cluster) as server:
        async with (
            opened(server.url) as here,
            opened(server.url) as there,
            there.subscribe("space:1") as subscription,
        ):
            await there.connected()
            here.publish("space:1", {"n": 7})
            assert await numbers(subscription, 1) == [7]


@pytest.mark.parametrize("password", ["", "wrong"], ids=["none", "wrong"])
async def test_a_wrong_password_is_refused(redis_server: Server, password: str):
    async with redis.asyncio.Redis.from_url(redis_server.url) as client:
        await client.config_set("requirepass", "right")
    with pytest.raises(BusError, match="refuses") as refusal:
        await RedisBus(redis_server.url.replace("//", f"//:{password}@" if password else "//")).open()
    assert "wrong" not in str(refusal.value).replace("WRONGPASS", "")

    async with opened(redis_server.url.replace("//", "//:right@")) as bus:
        await bus.connected()


@given(st.integers(0, 10_000), st.text())
def test_pauses_are_bounded_and_repeatable(attempt: int, name: str):
    seconds = pause(attempt, name)
    assert 0 < seconds <= LONGEST_PAUSE_SECONDS
    assert seconds == pause(attempt, name)


def test_instances_do_not_come_back_all_at_once():
    assert len({pause(5, f"instance {n}") for n in range(100)}) == 100


NOWHERE = "redis://127.0.0.1:1/0"
"""Nothing listens on this port."""


class Sleeper:
    """Someone who waits for a StoppedClock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._woken = asyncio.Event()
        self.gone = False

    async def sleep(self) -> None:
        try:
            await self._woken.wait()
        finally:
            self.gone = True

    def wake(self) -> None:
        self._woken.set()


class StoppedClock(Clock):
    """Time passes only for sleepers whom a test wakes; that someone sleeps is the signal it waits for."""

    def __init__(self) -> None:
        self._sleepers: asyncio.Queue[Sleeper] = asyncio.Queue()

    def now(self) -> Instant:
        return Instant(0)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        await self.sleep(seconds)
        return event.is_set()

    async def sleep(self, seconds: float) -> None:
        sleeper = Sleeper(seconds)
        self._sleepers.put_nowait(sleeper)
        await sleeper.sleep()

    async def sleeper(self) -> Sleeper:
        """The next who sleeps and was not given before."""
        sleeper = await self._sleepers.get()
        while sleeper.gone:
            sleeper = await self._sleepers.get()
        return sleeper


class Across:
    """Publishes on one bus and reads on another."""

    def __init__(self, publisher: RedisBus, reader: RedisBus) -> None:
        self._publisher = publisher
        self._reader = reader

    async def open(self) -> None: ...

    async def close(self) -> None:
        await self._publisher.close()
        await self._reader.close()

    def publish(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        self._publisher.publish(topic, payload)

    def subscribe(self, *topics: str, limit: int = 1000, deliver: Deliver | None = None) -> Subscription:
        return self._reader.subscribe(*topics, limit=limit, deliver=deliver)

    def attention(self, topic: str) -> bool:
        return self._publisher.attention(topic)

    @property
    def is_connected(self) -> bool:
        return self._publisher.is_connected and self._reader.is_connected


@asynccontextmanager
async def opened(url: str, *, prefix: str = "denizen:", clock: Clock | None = None) -> AsyncIterator[RedisBus]:
    bus = RedisBus(url, prefix=prefix, clock=clock)
    await bus.open()
    try:
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def frozen(server: Server) -> AsyncIterator[None]:
    """The server stands still, with all its connections open."""
    async with redis.asyncio.Redis.from_url(server.url) as client:
        process = int((await client.info("server"))["process_id"])
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


async def channels(client: redis.asyncio.Redis) -> set[bytes]:
    """The topics that Redis sends to anyone, but for the one on which instances greet it."""
    return set(cast("list[bytes]", await client.pubsub_channels("denizen:?*")))
