"""A typed client for the REST API and the streams of a Denizen server. It only needs a URL.

A stream never ends by itself: if the connection is lost, it says so, reconnects, and resumes after the last message, so
that every message comes once and in order. Errors that a retry cannot fix are raised.
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
