"""Posts one message and waits for the answers, for scripts: post, listen until the agents have finished, leave.

An agent that asks a question counts as finished: nobody here will answer it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

from denizen.cli.chat.questions import concerns
from denizen.cli.chat.settling import Settling
from denizen.client import (
    Call,
    Client,
    Connected,
    Lost,
    Message,
    Space,
    SpaceStatus,
    SpaceStatuses,
    StreamEvent,
)
from denizen.errors import RequestRefused, ServerUnreachable
from denizen.ids import new_id

QUIET_SECONDS: Final = 3.0
"""After so long without an event the agents' states are checked: longer than it takes to find work that a
hint missed.
"""


@dataclass(frozen=True, slots=True)
class OnceResult:
    """The result."""

    said: Message
    replies: tuple[Message, ...]
    """All messages of others in the space afterwards."""
    unfinished: tuple[str, ...]
    """The names of those that had not finished when the time was up."""
    questions: tuple[Call, ...] = ()
    """Questions that agents wait for, and those they asked because of the message."""
    statuses: tuple[SpaceStatus, ...] = ()
    """Why agents have not answered it."""
    errors: tuple[str, ...] = ()
    """Why some advisors of a panel have not answered it, if others have."""

    @property
    def is_answered(self) -> bool:
        """Whether everyone has finished with it, and nothing prevents an answer."""
        return not (self.unfinished or self.questions or self.statuses or self.errors)


PASSING: Final = frozenset({"failing", "queued"})
"""Causes that end by themselves: it is worth waiting."""


def lasts(status: SpaceStatus) -> bool:
    """Whether waiting longer would not help."""
    return status.cause not in PASSING


async def say_once(
    client: Client,
    space: Space,
    text: str,
    *,
    seconds: float,
    on_reply: Callable[[Message], None],
    on_delay: Callable[[SpaceStatus], None],
) -> OnceResult:
    """Posts the message, and passes on each reply, until the agents of the space have finished or the time is up.

    What delays an answer, and passes by itself, is passed on as well.
    """
    listening = _Listening(client, space, on_reply, on_delay)
    async with asyncio.TaskGroup() as tasks:
        pump = tasks.create_task(listening.pump(), name=f"stream of {space.id}")
        try:
            return await listening.say(text, seconds)
        finally:
            pump.cancel()


class _Listening:
    """Follows the answers to one message."""

    def __init__(
        self,
        client: Client,
        space: Space,
        on_reply: Callable[[Message], None],
        on_delay: Callable[[SpaceStatus], None],
    ) -> None:
        self._client = client
        self._space = space
        self._on_reply = on_reply
        self._on_delay = on_delay
        self._settling = Settling(space.members)
        self._events: asyncio.Queue[StreamEvent] = asyncio.Queue()
        self._listens = asyncio.Event()
        self._seen: list[Message] = []
        self._statuses: tuple[SpaceStatus, ...] = ()
        self._shown: set[str] = set()
        """The ids of the calls that were shown."""

    async def pump(self) -> None:
        async with aclosing(self._client.stream(self._space.id, after=self._space.last_seq)) as events:
            async for event in events:
                if isinstance(event, Connected):
                    self._listens.set()
                elif isinstance(event, Lost) and not self._listens.is_set():
                    raise ServerUnreachable(event.reason)
                self._events.put_nowait(event)

    async def say(self, text: str, seconds: float) -> OnceResult:
        # Listening first: an agent may be done before our post returns.
        await self._listens.wait()
        said = await self._client.post(self._space.id, text, key=new_id())
        try:
            async with asyncio.timeout(seconds):
                while not (self._settling.settled and self._has_come(said) and not self._tries_again(said)):
                    await self._next()
                    for status in self._shown_for(said, self._statuses):
                        if not lasts(status):
                            self._on_delay(status)
                        elif status.agent_id is not None:
                            self._settling.excuse_one(status.agent_id)
        except TimeoutError:
            if not self._has_come(said):
                # Nothing is known about its progress: nobody has finished with it.
                self._settling.feed(said)
        replies = tuple(each for each in self._seen if each.seq > said.seq)
        await self._mark_read()
        statuses = self._shown_for(said, await self._statuses_now())
        unfinished = tuple(each.name for each in self._settling.waiting_for)
        return OnceResult(said, replies, unfinished, await self._questions(said.seq), statuses)

    def _tries_again(self, said: Message) -> bool:
        """Whether an agent has failed, and will retry by itself: it has not finished."""
        return not all(map(lasts, self._shown_for(said, self._statuses)))

    def _shown_for(self, said: Message, statuses: Sequence[SpaceStatus]) -> tuple[SpaceStatus, ...]:
        """Returns the statuses for this message, or for a later one."""
        since = {said.id, *(each.id for each in self._seen if each.seq > said.seq)}
        return tuple(each for each in statuses if each.message_id in since)

    async def _statuses_now(self) -> Sequence[SpaceStatus]:
        """Returns the space's present statuses: the stream may send them after the message that ended the waiting."""
        try:
            found = [each.statuses for each in await self._client.spaces() if each.id == self._space.id]
        except ServerUnreachable:
            return self._statuses
        return found[0] if found else ()

    def _has_come(self, said: Message) -> bool:
        return any(each.id == said.id for each in self._seen)

    async def _mark_read(self) -> None:
        """Marks what was passed on as read. A failure to do so is ignored."""
        last = max((each.seq for each in self._seen), default=0)
        if last > self._space.read_seq:
            with suppress(ServerUnreachable, RequestRefused):
                await self._client.mark_read(self._space.id, last)

    async def _questions(self, since: int) -> tuple[Call, ...]:
        try:
            asked = [each for each in await self._client.calls() if concerns(each, self._space)]
        except ServerUnreachable:
            return ()
        new = [each.id for each in asked if each.id in self._shown and each.after_seq >= since]
        return tuple(each for each in asked if each.mode == "pause" or each.id in new)

    async def _next(self) -> None:
        """Handles the next event; after a quiet while, checks the agents' states."""
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                event = await self._events.get()
        except TimeoutError:
            self._settling.excuse(await self._client.agents())
            return
        self._settling.feed(event)
        if isinstance(event, SpaceStatuses):
            self._statuses = tuple(event.statuses)
        elif isinstance(event, Call):
            self._shown.add(event.id)
        elif isinstance(event, Message):
            self._seen.append(event)
            self._on_reply(event)
