"""What is remembered."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, JsonValue

from denizen.client.shapes.value import Value


class Memory(Value):
    """Something that is remembered, and where it comes from."""

    id: str
    scope: str
    category: str
    text: str
    confidence: float
    space_id: str
    user_id: str | None = None
    agent_id: str | None = None
    sources: tuple[str, ...] = ()
    uses: int = 0
    used_at: datetime | None = None
    superseded_by: str | None = None
    created_at: datetime
    updated_at: datetime
    outside: bool = False
    """Whether it was made from text from outside."""


class Memories(Value):
    """Some of what is remembered, and where the next page begins."""

    memories: tuple[Memory, ...]
    next: str | None = None


class MemoryPolicy(Value):
    """What was said of long-term memory in a conversation."""

    enabled: bool | None = None
    scopes: dict[str, bool | None] = Field(default_factory=dict[str, bool | None])
    share_with_organization: bool | None = None


class ConversationMemory(Value):
    """What a conversation came to, and up to which message."""

    space_id: str
    summary_markdown: str
    memory_json: dict[str, JsonValue]
    upto: int
    passes: int
    updated_at: datetime | None = None
    policy: MemoryPolicy
    outside: bool = False
    """Whether the summary was made from text from outside."""


class OrganizationMemory(Value):
    """What an organization has switched off of long-term memory."""

    enabled: bool
    conversation: bool
    user: bool
    persona: bool
    organization: bool
    publish: bool
    categories: tuple[str, ...]


class MemoryFinding(Value):
    """Something that is wrong with one or two memories."""

    problem: str
    scope: str
    memories: tuple[str, ...]
    why: str


class MemoryReport(Value):
    """How much is remembered, and what is wrong with it."""

    counts: dict[str, int]
    superseded: int
    findings: tuple[MemoryFinding, ...]
