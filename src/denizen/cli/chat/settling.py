"""Decides when the agents of a space have finished with a message. Pure: it is fed the events of the stream.

Every agent that attends to a message owes it a look. An agent that wakes takes what it owes; when it sleeps again it
has finished, unless something was posted meanwhile. Some looks never come: an agent may be suspended, may have taken
the message while it was awake, or may be kept from answering others without end. For those there is `excuse`, to be
called when nothing has happened for a while. An agent that slept when a person wrote will wake, unless its first check
finds that it need not: on a busy machine that takes longer than a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from denizen.client import Agent, AgentStatus, Member, Message, StreamEvent

LOOKS: Final = 3
"""How often an agent that should wake has to be found asleep before we stop waiting for it."""


class Settling:
    """The agents that have still something to do in one space."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._agents = [member for member in members if member.kind == "agent" and member.attention != "none"]
        self._ids = {agent.id for agent in self._agents}
        self._owing: set[str] = set()
        self._to_wake: dict[str, int] = {}
        """The agents that slept when a person wrote, and how often they may still be found asleep."""
        self._awake: set[str] = set()
        self._absent: set[str] = set()

    @property
    def settled(self) -> bool:
        return not self._owing and not self._awake

    @property
    def waiting_for(self) -> list[Member]:
        """The agents that have not finished."""
        return [agent for agent in self._agents if agent.id in self._owing | self._awake]

    def feed(self, event: StreamEvent) -> None:
        """Takes an event of the stream."""
        if isinstance(event, Message):
            owing = {agent.id for agent in self._agents if self._is_for(agent, event)}
            self._owing |= owing
            if event.author.kind == "human":
                self._to_wake |= dict.fromkeys(owing - self._awake, LOOKS)
        elif isinstance(event, AgentStatus) and event.agent in self._ids:
            # What is told of an agent that sleeps or waits for a person may be older than the message.
            if event.status not in ("sleeping", "paused"):
                self.excuse_one(event.agent)
            self._is(event.agent, event.status)

    def excuse(self, agents: Iterable[Agent]) -> None:
        """Called with the agents' states when nothing has happened for a while: those not awake, nor about to wake, owe
        nothing.
        """
        asleep: set[str] = set()
        for agent in agents:
            if agent.id in self._ids:
                self._is(agent.id, agent.status)
                if agent.status == "sleeping":
                    asleep.add(agent.id)
        self._to_wake = {id: looks - 1 for id, looks in self._to_wake.items() if looks > 1 and id in asleep}
        self._owing &= self._to_wake.keys()

    def excuse_one(self, agent_id: str) -> None:
        """Notes that this agent has taken what it owes, or will not answer for now."""
        self._owing.discard(agent_id)
        self._to_wake.pop(agent_id, None)

    def _is(self, agent_id: str, status: str) -> None:
        (self._awake.add if status == "alive" else self._awake.discard)(agent_id)
        (self._absent.add if status in ("suspended", "dead") else self._absent.discard)(agent_id)

    def _is_for(self, agent: Member, message: Message) -> bool:
        if agent.id == message.author.id or agent.id in self._absent:
            return False
        return agent.attention == "all" or agent.handle in message.mentions
