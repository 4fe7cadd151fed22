"""The visible state of one space. Pure: `feed` returns the next state after an event.

A message is returned for display exactly once, in the order of sequence numbers. Live text is visible from its first
piece until its message is there or it is aborted, never beside its own message. An agent counts as thinking as long as
that is confirmed now and then. Questions of agents are kept in `questions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias, assert_never

from denizen.cli.chat.marking import Mark, marks_since
from denizen.cli.chat.questions import News, Questions, hear
from denizen.client import (
    Agent,
    AgentStatus,
    Call,
    Connected,
    Lost,
    Message,
    MessageChanged,
    SpaceStatus,
    SpaceStatuses,
    StreamAborted,
    StreamDelta,
    StreamEvent,
    StreamStarted,
)

STATUS_SECONDS: Final = 45
"""An agent without any event for so long no longer counts as thinking."""
REMEMBERED_MESSAGES: Final = 500
"""For how many past messages late frames and new reactions are recognized."""

_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Presence:
    """The present states of all agents, as the server reports them."""

    agents: tuple[Agent, ...]


@dataclass(frozen=True, slots=True)
class Writing:
    """A message as far as it is written."""

    id: str
    agent_id: str
    text: str = ""
    begin: int = 0
    """The offset of `text` in the message; above 0 for a reader who came later."""

    @property
    def end(self) -> int:
        return self.begin + len(self.text)


@dataclass(frozen=True, slots=True)
class SpaceView:
    """One space as it is seen."""

    last: int = 0
    """The sequence number of the last message that was returned for display."""
    lost: bool = False
    """Whether the connection is lost."""
    writing: Mapping[str, Writing] = field(default_factory=lambda: _NONE)
    """Live texts, by the id the message will have, in the order in which they began."""
    thinking: Mapping[str, float] = field(default_factory=lambda: _NONE)
    """The agents that are thinking, and until when that holds without confirmation."""
    doing: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """The tools that agents are using, by agent."""
    paused: frozenset[str] = frozenset()
    """The agents that wait for an answer."""
    statuses: tuple[SpaceStatus, ...] = ()
    """Why agents have not answered here."""
    questions: Questions = field(default_factory=Questions)
    early: Mapping[int, Message] = field(default_factory=lambda: _NONE)
    """Messages that came before one they follow."""
    shown: Mapping[str, Message] = field(default_factory=lambda: _NONE)
    """The last messages that were displayed, by id."""


Event: TypeAlias = StreamEvent | Presence


def feed(state: SpaceView, event: Event, now: float) -> tuple[SpaceView, tuple[Message | News | Mark, ...]]:
    """Returns the conversation after this event, and what to show now. `now` is in seconds."""
    match event:
        case Message():
            return _message(state, event)
        case MessageChanged(message):
            return _changed(state, message)
        case Call():
            questions, news = hear(state.questions, event)
            return replace(state, questions=questions), () if news is None else (news,)
        case StreamStarted():
            return _started(state, event), ()
        case StreamDelta():
            return _delta(state, event, now), ()
        case StreamAborted():
            return replace(state, writing=_without(state.writing, event.id)), ()
        case AgentStatus():
            return _doing(_status(state, event.agent, event.status, now), event), ()
        case Presence():
            for agent in event.agents:
                state = _status(state, agent.id, agent.status, now)
            return state, ()
        case SpaceStatuses():
            return replace(state, statuses=tuple(event.statuses)), ()
        case Connected():
            # The server sends the statuses again if there are any.
            return replace(state, lost=False, statuses=()), ()
        case Lost():
            # The server sends the live texts and states again.
            return replace(state, lost=True, writing=_NONE, thinking=_NONE, paused=frozenset()), ()
        case _:
            assert_never(event)


def thinking(state: SpaceView, now: float) -> tuple[str, ...]:
    """Returns the agents that are thinking now, those that are writing included."""
    alive = [agent_id for agent_id, until in state.thinking.items() if until > now]
    return tuple(dict.fromkeys([*alive, *(each.agent_id for each in state.writing.values() if each.text)]))


def _message(state: SpaceView, message: Message) -> tuple[SpaceView, tuple[Message, ...]]:
    if message.seq <= state.last:
        return state, ()
    early = {**state.early, message.seq: message}
    shown: list[Message] = []
    while (next_one := early.pop(state.last + len(shown) + 1, None)) is not None:
        shown.append(next_one)
    gone = {each.id for each in shown}
    return (
        replace(
            state,
            last=state.last + len(shown),
            early=early or _NONE,
            writing={id_: each for id_, each in state.writing.items() if id_ not in gone} or _NONE,
            shown=dict([*state.shown.items(), *((each.id, each) for each in shown)][-REMEMBERED_MESSAGES:]),
        ),
        tuple(shown),
    )


def _changed(state: SpaceView, message: Message) -> tuple[SpaceView, tuple[Mark, ...]]:
    """What changed about a message that is displayed already."""
    before = state.shown.get(message.id)
    if before is None:
        return state, ()
    return replace(state, shown={**state.shown, message.id: message}), marks_since(before, message)


def _started(state: SpaceView, event: StreamStarted) -> SpaceView:
    if event.id in state.shown:
        return state
    begun = Writing(event.id, event.agent, begin=event.offset)
    return replace(state, writing={**state.writing, event.id: begun})


def _delta(state: SpaceView, event: StreamDelta, now: float) -> SpaceView:
    if event.id in state.shown:
        return state
    writing = state.writing.get(event.id)
    if writing is None or event.offset > writing.end:
        # We joined in the middle, or a piece is lost: continue from here.
        writing = Writing(event.id, event.agent, begin=event.offset)
    grown = replace(writing, text=writing.text + event.text[writing.end - event.offset :])
    if event.offset < writing.begin:
        grown = writing
    state = replace(state, writing={**state.writing, event.id: grown})
    # An agent that writes is thinking, and its text confirms it.
    return _status(state, event.agent, "alive", now)


def _status(state: SpaceView, agent_id: str, status: str, now: float) -> SpaceView:
    paused = state.paused | {agent_id} if status == "paused" else state.paused - {agent_id}
    state = replace(state, paused=paused)
    if status == "alive":
        return replace(state, thinking={**state.thinking, agent_id: now + STATUS_SECONDS})
    if agent_id not in state.thinking:
        return state
    return replace(state, thinking=_without(state.thinking, agent_id))


def _doing(state: SpaceView, event: AgentStatus) -> SpaceView:
    others = _without(state.doing, event.agent)
    return replace(state, doing=others if event.doing is None else {**others, event.agent: event.doing})


def _without(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {name: value for name, value in mapping.items() if name != key} if key in mapping else mapping
