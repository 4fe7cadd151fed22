"""What every bus promises. Each adapter's tests subclass this and give a `bus` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from pydantic import JsonValue

from denizen.bus.port import Bus, Frame, Gap, Subscription
from denizen.errors import SubscriberTooSlow


async def next_frame(subscription: Subscription) -> Frame:
    """The next frame, past any gap: an adapter may always say that frames may have been lost."""
    async for item in subscription:
        if isinstance(item, Frame):
            return item
    raise AssertionError("the subscription ended")


async def numbers(subscription: Subscription, count: int) -> list[JsonValue]:
    """The field `n` of the next frames."""
    return [(await next_frame(subscription)).payload["n"] for _ in range(count)]


async def next_gap(subscription: Subscription) -> Gap:
    """The next gap, past any frames."""
    async for item in subscription:
        if isinstance(item, Gap):
            return item
    raise AssertionError("the subscription ended")


class BusSuite:
    @pytest.fixture
    def bus(self) -> AsyncIterator[Bus]:
        raise NotImplementedError

    async def test_a_subscriber_gets_what_is_published(self, bus: Bus):
        async with bus.subscribe("space:1") as subscription:
            bus.publish("space:1", {"n": 1})
            assert await next_frame(subscription) == Frame("space:1", {"n": 1})

    async def test_frames_keep_their_order(self, bus: Bus):
        async with bus.subscribe("space:1") as subscription:
            for n in range(900):
                bus.publish("space:1", {"n": n})
            assert await numbers(subscription, 900) == list(range(900))

    async def test_a_subscription_may_follow_other_topics(self, bus: Bus):
        """Nothing of what stays is lost or repeated; what is left is not heard, what is new is."""
        async with bus.subscribe("space:1", "space:2") as subscription:
            bus.publish("space:2", {"n": 1})
            await subscription.follow("space:2", "space:3")
            for n, topic in enumerate(("space:1", "space:2", "space:3"), 2):
                bus.publish(topic, {"n": n})
            heard = [await next_frame(subscription) for _ in range(3)]
            assert sorted((frame.topic, frame.payload["n"]) for frame in heard) == [  # type: ignore[type-var]
                ("space:2", 1),
                ("space:2", 3),
                ("space:3", 4),
            ]

    async def test_a_subscription_that_is_over_follows_nothing(self, bus: Bus):
        async with bus.subscribe("space:1") as subscription:
            await bus.close()
            await subscription.follow("space:2")
            assert [item async for item in subscription if isinstance(item, Frame)] == []

    async def test_one_subscription_hears_several_topics_and_no_others(self, bus: Bus):
        async with bus.subscribe("space:1", "space:2") as subscription:
            bus.publish("space:1", {"n": 1})
            bus.publish("space:3", {"n": 3})
            bus.publish("space:2", {"n": 2})
            heard = {await _said(subscription), await _said(subscription)}
            bus.publish("space:1", {"n": 4})
            assert heard == {("space:1", 1), ("space:2", 2)}
            assert await _said(subscription) == ("space:1", 4)

    async def test_a_topic_named_twice_is_heard_once(self, bus: Bus):
        async with bus.subscribe("space:1", "space:1") as subscription:
            bus.publish("space:1", {"n": 1})
            bus.publish("space:1", {"n": 2})
            assert await numbers(subscription, 2) == [1, 2]

    async def test_every_subscriber_gets_every_frame(self, bus: Bus):
        async with bus.subscribe("space:1") as first, bus.subscribe("space:1") as second:
            bus.publish("space:1", {"n": 1})
            bus.publish("space:1", {"n": 2})
            assert await numbers(first, 2) == [1, 2]
            assert await numbers(second, 2) == [1, 2]

    async def test_a_waiting_reader_is_woken(self, bus: Bus):
        async with bus.subscribe("space:1") as subscription, asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(next_frame(subscription))
            bus.publish("space:1", {"n": 1})
            assert (await reading).payload == {"n": 1}

    async def test_a_reader_that_falls_behind_is_cut_off_while_others_go_on(self, bus: Bus):
        async with bus.subscribe("space:1", limit=5) as slow, bus.subscribe("space:1") as quick:
            for n in range(20):
                bus.publish("space:1", {"n": n})
            assert await numbers(quick, 20) == list(range(20))
            with pytest.raises(SubscriberTooSlow):
                await anext(slow)
            with pytest.raises(SubscriberTooSlow):
                await anext(slow)
            bus.publish("space:1", {"n": 20})
            assert await numbers(quick, 1) == [20]

    async def test_a_reader_may_be_behind_by_its_limit(self, bus: Bus):
        async with bus.subscribe("space:1", limit=5) as reader, bus.subscribe("space:1") as witness:
            for n in range(5):
                bus.publish("space:1", {"n": n})
            await numbers(witness, 5)
            assert await numbers(reader, 5) == [0, 1, 2, 3, 4]

    async def test_a_subscriber_may_take_frames_as_they_come(self, bus: Bus):
        """Nothing is queued for it; it says itself when it cannot keep up, and is cut off then."""
        taken: list[JsonValue] = []

        def take(item: Frame | Gap) -> bool:
            if isinstance(item, Frame):
                taken.append(item.payload["n"])
            return len(taken) <= 3

        async with bus.subscribe("space:1", deliver=take) as direct, bus.subscribe("space:1") as witness:
            for n in range(6):
                bus.publish("space:1", {"n": n})
            await numbers(witness, 6)
            assert taken == [0, 1, 2, 3]
            with pytest.raises(SubscriberTooSlow):
                await anext(direct)

    async def test_a_subscriber_that_takes_frames_itself_ends_with_the_bus(self, bus: Bus):
        async with bus.subscribe("space:1", deliver=lambda _: True) as direct:
            bus.publish("space:1", {"n": 1})
            await bus.close()
            assert [item async for item in direct] == []

    async def test_publishing_without_subscribers_is_nothing(self, bus: Bus):
        bus.publish("space:1", {"n": 1})
        async with bus.subscribe("space:1") as subscription:
            bus.publish("space:1", {"n": 2})
            # The first may still be on its way when the subscription begins.
            assert await numbers(subscription, 1) == [2] or await numbers(subscription, 1) == [2]

    async def test_a_left_subscription_gets_nothing_more(self, bus: Bus):
        async with bus.subscribe("space:1") as staying:
            async with bus.subscribe("space:1") as leaving:
                bus.publish("space:1", {"n": 1})
                await numbers(staying, 1)
            bus.publish("space:1", {"n": 2})
            assert await numbers(staying, 1) == [2]
            assert [item async for item in leaving] == []

    async def test_a_topic_can_be_left_and_entered_again(self, bus: Bus):
        for n in range(20):
            async with bus.subscribe("space:1") as subscription:
                bus.publish("space:1", {"n": n})
                assert await numbers(subscription, 1) == [n]

    async def test_closing_ends_every_subscription(self, bus: Bus):
        async with bus.subscribe("space:1") as waiting, bus.subscribe("space:2") as later:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(_rest(waiting))
                tasks.create_task(bus.close())
            assert reading.result() == []
            assert await _rest(later) == []

    async def test_a_closed_bus_takes_no_frames_and_no_readers(self, bus: Bus):
        await bus.close()
        await bus.close()
        bus.publish("space:1", {"n": 1})
        async with bus.subscribe("space:1") as subscription:
            assert await _rest(subscription) == []

    async def test_a_reader_that_is_cancelled_leaves_the_bus_as_it_was(self, bus: Bus):
        async with bus.subscribe("space:1") as subscription:
            reading = asyncio.ensure_future(next_frame(subscription))
            bus.publish("space:1", {"n": 1})
            await reading
            reading = asyncio.ensure_future(next_frame(subscription))
            await asyncio.wait([asyncio.ensure_future(_cancel(reading)), reading])
            bus.publish("space:1", {"n": 2})
            assert await numbers(subscription, 1) == [2]

    @pytest.mark.parametrize(
        "value",
        [
            "",
            "Grüße, 世界 👩‍👩‍👧 \x00\r\n\u2028",
            "half a pair: \ud83d",
            "x" * 1_000_000,
            {"deep": [1, 2.5, None, True, {"": []}]},
            2**70,
            [],
        ],
        ids=["empty", "unicode", "surrogate", "megabyte", "nested", "large number", "list"],
    )
    async def test_payloads_arrive_as_they_were(self, bus: Bus, value: JsonValue):
        async with bus.subscribe("odd: Ω\n") as subscription:
            bus.publish("odd: Ω\n", {"value": value})
            assert await next_frame(subscription) == Frame("odd: Ω\n", {"value": value})

    async def test_attention_is_never_denied_to_a_topic_with_readers(self, bus: Bus):
        async with bus.subscribe("space:1"):
            assert bus.attention("space:1")


async def _said(subscription: Subscription) -> tuple[str, int]:
    frame = await next_frame(subscription)
    return frame.topic, cast(int, frame.payload["n"])


async def _rest(subscription: Subscription) -> list[Frame]:
    return [item async for item in subscription if isinstance(item, Frame)]


async def _cancel(task: asyncio.Future[Frame]) -> None:
    task.cancel()
