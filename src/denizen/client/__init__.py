"""A Denizen server from outside: its REST API and its streams, typed. It needs nothing of a running Denizen but a URL.

A stream goes on for ever: when the connection is lost it says so, tries again, and resumes after the last message it
gave, so that every message comes once and in order. What cannot get better by trying again is raised.
"""

from __future__ import annotations

from denizen.client.client import Client
from denizen.client.shapes.agents import Agent, AgentDetail, Call
from denizen.client.shapes.answers import Answer
from denizen.client.shapes.places import Author, Entity, Health, Me, Member, Message, Space, SpaceStatus
from denizen.client.streaming import (
    Aborted,
    Connected,
    Delta,
    Frame,
    Happened,
    LifeEvent,
    Lost,
    Read,
    SpaceStatuses,
    Stands,
    Started,
    Status,
    StreamEvent,
    frame_from,
)

__all__ = [
    "Aborted",
    "Agent",
    "AgentDetail",
    "Answer",
    "Author",
    "Call",
    "Client",
    "Connected",
    "Delta",
    "Entity",
    "Frame",
    "Happened",
    "Health",
    "LifeEvent",
    "Lost",
    "Me",
    "Member",
    "Message",
    "Read",
    "Space",
    "SpaceStatus",
    "SpaceStatuses",
    "Stands",
    "Started",
    "Status",
    "StreamEvent",
    "frame_from",
]
