"""Waits for an agent's answer to one message: checks when a hint comes, and passes on the text as it is written.

The agent does not depend on anyone waiting: a client that leaves, or gives up, finds the answer in the space.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from starlette.types import Receive

from denizen.agents import chatting, why_no_answer
from denizen.agents.chatting import AnswerState, AwaitedMessage
from denizen.bus.port import Gap
from denizen.bus.streams import (
    WANTED,
    CallDelta,
    CallStarted,
    StreamAborted,
    StreamDelta,
    StreamFrame,
    StreamStarted,
    agent_topic,
    space_topic,
    wanted_payload,
)
from denizen.clock import SECOND
from denizen.ids import AgentId, MessageId
from denizen.server.context import Context
from denizen.server.growing_text import GrowingText
from denizen.server.live import Live
from denizen.server.sse import Ear, hearing, left
from denizen.storage.database import storable

T = TypeVar("T")
Now = TypeVar("Now")

LONGEST_SECONDS: Final = 600
USUAL_SECONDS: Final = 120

STOPPING: Final = (
    "This server is stopping. What you wrote is kept, and what the agent says to it will stand in the space."
)

Pass: TypeAlias = Callable[[str], Awaitable[None]]
"""Takes the next piece of the answer's text; an empty one means that the connection is alive."""
LastWords: TypeAlias = Callable[[AnswerState], Awaitable[str]]
"""Returns a text to append to the answer, or an empty one."""


async def wait(
    context: Context,
    asked: AwaitedMessage,
    seconds: float,
    pass_on: Pass | None = None,
    last_words: LastWords | None = None,
) -> AnswerState:
    """Waits until the answer is settled, the time is over, or the server stops."""
    until = context.runtime.clock.now() + int(seconds * SECOND)
    async with listening(context, {space_topic(asked.space_id), agent_topic(asked.agent_id)}) as ear:
        waiting = _Waiting(context, asked, ear, pass_on)
        answer = await waiting.until(until)
        await waiting.end("" if last_words is None else await last_words(answer))
        return answer


@asynccontextmanager
async def listening(context: Context, topics: Iterable[str]) -> AsyncGenerator[Ear]:
    """Listens to these topics inside the block. Errors are raised as they are."""
    try:
        async with hearing(context.runtime.bus, context.limits.stream_frames, topics) as ear:
            yield ear
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


async def something_came(context: Context, ear: Ear, seconds: float) -> bool:
    """Whether something came in this time; returns at once if the server stops."""
    ending = asyncio.ensure_future(context.ending.wait())
    ending.add_done_callback(lambda _: ear.arrived.set())
    try:
        return await context.runtime.clock.wait(ear.arrived, seconds)
    finally:
        ending.cancel()


class Follower(Protocol[Now]):
    """What follows something that grows until it is over: the answer to a message, the replies of a round."""

    def is_over(self, now: Now) -> bool: ...

    async def look(self) -> Now:
        """Reads how it stands, and passes on what is new."""
        ...

    async def hear(self, item: StreamFrame | Gap, now: Now) -> Now:
        """Returns how it stands after this came."""
        ...

    async def tell_alive(self) -> None:
        """Tells the client that the connection is alive."""
        ...


async def follow(context: Context, ear: Ear, deadline: int, follower: Follower[Now], now: Now) -> Now:
    """Follows it until it is over, the time is, or the server stops. Looks again when nothing has come for long."""
    clock, limits = context.runtime.clock, context.limits
    while not (follower.is_over(now) or ear.over or context.ending.is_set()):
        seconds = min((deadline - clock.now()) / SECOND, limits.heartbeat_seconds)
        if seconds <= 0:
            break
        if not await something_came(context, ear, seconds):
            now = await follower.look()
            await follower.tell_alive()
        elif (item := ear.take()) is not None:
            now = await follower.hear(item if isinstance(item, Gap) else item[1], now)
    return now


async def wait_while_there(
    context: Context, asked: AwaitedMessage, seconds: float, receive: Receive
) -> AnswerState | None:
    """Like `wait`, for a client that may disconnect: then stops waiting and returns None."""
    return await while_there(wait(context, asked, seconds), receive)


async def while_there(waiting: Coroutine[Any, Any, T], receive: Receive) -> T | None:
    """Awaits the result while the client is connected; None if it disconnects."""
    try:
        async with asyncio.TaskGroup() as tasks:
            answer = tasks.create_task(waiting, name="answer that is waited for")
            leaving = tasks.create_task(left(receive), name="client leaves")
            await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            answer.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return None if answer.cancelled() else answer.result()


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first  # pyright: ignore[reportUnknownArgumentType]


def _stopped(answer: AnswerState) -> AnswerState:
    """Returns the answer if the agent is done; otherwise with the reason why nobody waits any longer."""
    # Not an error: clients retry by themselves after one, and would post the message twice.
    return answer if answer.over else replace(answer, note=STOPPING)


class _Waiting:
    """Follows the answer to one message."""

    def __init__(self, context: Context, asked: AwaitedMessage, ear: Ear, pass_on: Pass | None) -> None:
        self._context = context
        self._asked = asked
        self._ear = ear
        self._heard_of: set[AgentId] = {asked.agent_id}
        """The agents whose topics are listened to."""
        self._pass_on = pass_on
        self._live = Live(asked.space_id)
        self._telling = GrowingText()
        self._its: set[MessageId] = set()
        """The texts that the cycle which took the message is writing: no other is part of the answer."""

    async def until(self, deadline: int) -> AnswerState:
        ear = self._ear
        answer = await self.look()
        if answer.cycle_id is not None and not answer.over:
            # It is being answered already: the text is requested from its beginning.
            self._context.runtime.bus.publish(WANTED, wanted_payload([self._asked.space_id]))
        answer = await follow(self._context, ear, deadline, self, answer)
        if ear.over:
            return _stopped(answer)  # Where the bus is closed, the database is closed as well.
        # The last hint may not have been looked at.
        answer = answer if answer.over else await self.look()
        answer = await self._context.runtime.db.read(chatting.with_costs, answer)
        return _stopped(answer) if self._context.ending.is_set() else answer

    def is_over(self, now: AnswerState) -> bool:
        return now.over

    async def tell_alive(self) -> None:
        if self._pass_on is not None:
            await self._pass_on("")

    async def end(self, note: str) -> None:
        """Sends the client what is left."""
        await self._pass(self._telling.end(note))

    async def hear(self, item: StreamFrame | Gap, now: AnswerState) -> AnswerState:
        answer = now
        match item:
            case Gap():
                for aborted in self._live.lost():
                    await self._pass(self._telling.break_off(str(aborted.id)))
                answer = await self.look()
                self._context.runtime.bus.publish(WANTED, wanted_payload([self._asked.space_id]))
            case StreamStarted():
                # The agent that was asked, or the one the floor has passed the message to.
                answer = await self.look()
                if item.agent == answer.agent_id:
                    if answer.cycle_id is not None:
                        self._its.add(item.id)
                    await self._follow(item)
            case StreamDelta() | StreamAborted():
                if item.agent == answer.agent_id:
                    await self._follow(item)
            case CallStarted() | CallDelta():
                pass
            case _:
                answer = await self.look()
        return answer

    async def _follow(self, frame: StreamFrame) -> None:
        for each in self._live.hear(frame):
            match each:
                case StreamStarted() if each.id in self._its:
                    self._telling.begin(each.id)
                case StreamDelta() if each.id in self._its:
                    await self._pass(self._telling.write(each.id, storable(each.text)))
                case StreamAborted() if each.id is not None and each.id in self._its:
                    await self._pass(self._telling.break_off(each.id))
                case _:
                    pass
        if spaces := self._live.wanted():
            self._context.runtime.bus.publish(WANTED, wanted_payload(spaces))

    async def look(self) -> AnswerState:
        answer = await self._context.runtime.db.read(why_no_answer.answer_so_far, self._asked)
        while answer.agent_id is not None and answer.agent_id not in self._heard_of:
            # The floor has passed the message on. Checked again, because the agent may have ended meanwhile.
            self._heard_of.add(answer.agent_id)
            await self._ear.follow({space_topic(self._asked.space_id), *map(agent_topic, self._heard_of)})
            answer = await self._context.runtime.db.read(why_no_answer.answer_so_far, self._asked)
        for message in answer.messages:
            self._live.said(message.id)
            await self._pass(self._telling.say(message.id, message.text))
        return answer

    async def _pass(self, text: str) -> None:
        if self._pass_on is not None and text:
            await self._pass_on(text)
