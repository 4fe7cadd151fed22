"""The stream of a space: every message once and in order, and the live events in between.

The messages come from the database. Each look checks again whether the reader may still read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Concatenate, Final, ParamSpec, TypeVar

from denizen.agents import registry, space_statuses
from denizen.agents.registry import Presence
from denizen.agents.space_statuses import ShownStatus
from denizen.bus.streams import (
    WANTED,
    CallChanged,
    MessageCreated,
    MessageDeleted,
    MessageEdited,
    MetadataUpdated,
    PanelChanged,
    PanelDelta,
    ReplyChanged,
    RoundChanged,
    SpaceChanged,
    StatusChanged,
    StreamFrame,
    StreamStarted,
    TypingElsewhere,
    agent_topic,
    space_topic,
    wanted_payload,
)
from denizen.ids import CallId, MessageId, SpaceId
from denizen.server.context import Context
from denizen.server.live import Live, LiveFrame
from denizen.server.metadata import metadata_update
from denizen.server.sse import Say
from denizen.server.streams.audience import Audience, SpaceReader, without_access
from denizen.server.streams.events import (
    call_event,
    change_event,
    live_event,
    message_event,
    space_changed_event,
    typed_event,
    typing_event,
)
from denizen.server.streams.panel_events import Advising
from denizen.server.streams.statuses import StatusFeed
from denizen.server.streams.told_calls import ToldCalls, in_order, split_at
from denizen.spaces import directory, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx
from denizen.tools import calls
from denizen.tools.calls import Call

PAGE: Final = 200


P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _View:
    messages: list[Message]
    agents: list[Presence]
    statuses: list[ShownStatus]


def _look(tx: Tx, space_id: SpaceId, after: int) -> _View:
    messages = posting.messages_after(tx, space_id, after, limit=PAGE)
    agents = registry.present(tx, space_id)
    return _View(messages, agents, space_statuses.in_space(tx, space_id, agents))


def _space_now(tx: Tx, space_id: SpaceId) -> bytes:
    return space_changed_event(directory.get_space(tx, space_id), posting.last_seq(tx, space_id))


def _metadata_now(tx: Tx, frame: MetadataUpdated) -> bytes:
    return typed_event(metadata_update(tx, frame))


def _event(told: Message | Call) -> bytes:
    return message_event(told, told.seq) if isinstance(told, Message) else call_event(told)


class SpaceFeed:
    """What an audience is sent of a space, from the message after `after` on. All its readers have the same."""

    def __init__(self, context: Context, audience: Audience, space_id: SpaceId, after: int, say: Say) -> None:
        self._runtime = context.runtime
        self._audience = audience
        self._space_id = space_id
        self._after = after
        self._say = say
        self._live = Live(space_id)
        self._advising = Advising(self._runtime.db, self._read_in)
        self._statuses = StatusFeed()
        self._agents: list[Presence] = []
        self._calls = ToldCalls()

    @property
    def after(self) -> int:
        """The number of the last message that was sent."""
        return self._after

    @property
    def told(self) -> object:
        """Everything that decides what is sent next. Two feeds with the same have the same future."""
        return self._after, self._live.told, self._calls.told, self._statuses.told, self._advising.told

    @property
    def topics(self) -> frozenset[str]:
        return frozenset({space_topic(self._space_id), *(agent_topic(each.agent_id) for each in self._agents)})

    async def approach(self) -> None:
        self._agents = await self._runtime.db.read(registry.present, self._space_id)

    async def begin(self) -> None:
        await self._catch_up()
        await self._say_rounds()
        if any(each.status == "alive" for each in self._agents):
            # It may be writing: then the reader is sent the text from its beginning.
            self._runtime.bus.publish(WANTED, wanted_payload([self._space_id]))

    async def look(self) -> None:
        await self._catch_up()
        await self._say_rounds()

    async def _say_new(self, found: Sequence[Call] = ()) -> None:
        """Sends what is new; `found` are calls to send, each after its message."""
        while True:
            view = await self._read(_look, self._space_id, self._after)
            for message in view.messages:
                self._live.said(message.id)
                self._after = message.seq
                self._calls.message_told()
            self._agents = view.agents
            is_last = len(view.messages) < PAGE
            now, found = (found, ()) if is_last else split_at(found, self._after)
            told = [_event(each) for each in in_order(view.messages, self._calls.new(now))]
            told += [live_event(each) for each in self._live.seen(view.agents)]
            if is_last:
                told.append(self._statuses.news(self._space_id, view.statuses))
            if any(told):
                await self._say(b"".join(told))
            if is_last:
                return

    async def _catch_up(self) -> None:
        """Sends everything that is new, calls included, whose frames may have been lost."""
        waiting = self._calls.waiting
        await self._say_new(await self._read(calls.since, self._space_id, self._after, known=waiting))

    async def lose(self) -> None:
        await self._say_live(self._live.lost())
        await self._catch_up()
        await self._say_rounds()
        self._runtime.bus.publish(WANTED, wanted_payload([self._space_id]))

    async def hear(self, topic: str, frame: StreamFrame) -> None:
        del topic  # All of it belongs to this space, or to agents in it.
        if self._statuses.moved_by(frame):
            await self._say_statuses()
        match frame:
            case MessageCreated():
                if frame.seq > self._after:
                    await self._say_new()
            case MessageEdited() | MessageDeleted():
                # A message that the reader does not have yet comes as it is now.
                if frame.seq <= self._after:
                    await self._say_changed(frame.id)
            case CallChanged():
                # The agent's own topic also has frames of calls in other spaces.
                if frame.space == self._space_id:
                    await self._say_call(frame.id)
            case SpaceChanged():
                # Its agents may have changed, or the reader may not be a member any more.
                await self._say_new()
                await self._say(await self._read(_space_now, self._space_id))
            case StatusChanged():
                await self._say_statuses()
            case MetadataUpdated():
                if frame.space == self._space_id:
                    await self._say(await self._read(_metadata_now, frame))
            case TypingElsewhere():
                await self._say(typing_event(frame))
            case StreamStarted():
                # A person who left the space since the last message must not see the next one as it is written.
                await self._say_new()
                await self._say_live(self._live.hear(frame))
            case PanelChanged() | RoundChanged() | ReplyChanged() | PanelDelta():
                if told := await self._advising.hear(frame):
                    await self._say(told)
                if spaces := self._advising.wants:
                    self._runtime.bus.publish(WANTED, wanted_payload(spaces))
            case _:
                await self._say_live(self._live.hear(frame))
                if spaces := self._live.wanted():
                    self._runtime.bus.publish(WANTED, wanted_payload(spaces))

    async def _read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Reads something for the audience, without those who may no longer read the space."""
        readers = self._audience.readers

        def read(tx: Tx) -> tuple[set[SpaceReader], T]:
            return without_access(tx, self._space_id, readers), fn(tx, *args, **kwargs)

        gone, found = await self._runtime.db.read(read)
        if gone:
            self._audience.dismiss(gone)
        return found

    async def _read_in(
        self, space_id: SpaceId, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        del space_id  # The frames of panels in this feed are all of its space.
        return await self._read(fn, *args, **kwargs)

    async def _say_rounds(self) -> None:
        """Sends the rounds in progress and those that have ended unnoticed; requests live text from its beginning."""
        if told := await self._advising.look([self._space_id]):
            await self._say(told)
            self._runtime.bus.publish(WANTED, wanted_payload([self._space_id]))

    async def _say_statuses(self) -> None:
        """Sends the statuses that the space shows of its agents."""
        now = await self._read(space_statuses.in_space, self._space_id)
        if told := self._statuses.news(self._space_id, now):
            await self._say(told)

    async def _say_changed(self, message_id: MessageId) -> None:
        """Sends the message as it is now: a frame may be older than the change it announces."""
        message = await self._read(posting.get_message, message_id)
        await self._say(change_event(message))

    async def _say_call(self, call_id: CallId) -> None:
        """Sends the call as it is now: a frame may be older than the change it announces."""
        call = await self._read(calls.find, call_id)
        # It is announced by the space and by its agent.
        if call is not None and call.space_id == self._space_id and self._calls.new([call]):
            await self._say(call_event(call))

    async def _say_live(self, frames: Iterable[LiveFrame]) -> None:
        for each in frames:
            await self._say(live_event(each))
