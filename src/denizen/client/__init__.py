"""A Denizen server from outside: its REST API and its streams, typed. It needs nothing of a running Denizen but a URL.

A stream goes on for ever: when the connection is lost it says so, tries again, and resumes after the last message it
gave, so that every message comes once and in order. What cannot get better by trying again is raised.
"""

from __future__ import annotations

from denizen.client.client import Client
from denizen.client.streaming import Connected, LifeEvent, Lost, MessageChanged, StreamEvent, UnknownEvent
from denizen.shapes.agents import AgentDetail
from denizen.shapes.agents import AgentOut as Agent
from denizen.shapes.calls import CallOut as Call
from denizen.shapes.chat import ChatAnswer as Answer
from denizen.shapes.events import (
    AgentStance,
    AgentStatus,
    SpaceRead,
    SpaceStatuses,
    StreamAborted,
    StreamDelta,
    StreamStarted,
)
from denizen.shapes.health import Health
from denizen.shapes.people import EntityOut as Entity
from denizen.shapes.people import Me
from denizen.shapes.spaces import Author
from denizen.shapes.spaces import MemberOut as Member
from denizen.shapes.spaces import MessageOut as Message
from denizen.shapes.spaces import SpaceOut as Space
from denizen.shapes.spaces import StatusOut as SpaceStatus

__all__ = [
    "Agent",
    "AgentDetail",
    "AgentStance",
    "AgentStatus",
    "Answer",
    "Author",
    "Call",
    "Client",
    "Connected",
    "Entity",
    "Health",
    "LifeEvent",
    "Lost",
    "Me",
    "Member",
    "Message",
    "MessageChanged",
    "Space",
    "SpaceRead",
    "SpaceStatus",
    "SpaceStatuses",
    "StreamAborted",
    "StreamDelta",
    "StreamEvent",
    "StreamStarted",
    "UnknownEvent",
]
