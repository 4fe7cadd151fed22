"""People, spaces and what is said in them."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from denizen.client.shapes.agents import AgentTrouble
from denizen.client.shapes.value import Value


class Me(Value):
    """Who the token stands for."""

    id: str
    handle: str
    name: str


class Member(Value):
    """Someone in a space."""

    id: str
    kind: str
    handle: str
    name: str
    attention: str = "all"
    role: str = "member"
    trouble: AgentTrouble | None = None
    """Why an agent cannot think; None: it can."""
    namesake: bool = False
    """Whether the name looks like that of another member: the handle tells them apart."""


class SpaceStatus(Value):
    """Why an agent has not answered in a space, or nobody in a panel."""

    agent_id: str | None
    """None: nobody in the panel could answer."""
    name: str
    cause: str
    """Such as `key`, `failing`, `no_reply`, `suspended`; `queued`: it is at work elsewhere."""
    text: str
    """What prevents the answer, what happens next and who can fix it."""
    actions: tuple[str, ...] = ()
    message_id: str | None = None
    retry_at: datetime | None = None
    behind: int | None = None
    round_id: str | None = None
    """In a panel: the round that nobody could answer."""
    created_at: datetime


class Space(Value):
    """A space one is in."""

    id: str
    name: str
    private: bool
    last_seq: int
    members: tuple[Member, ...]
    kind: str = "conversation"
    read_seq: int = 0
    """The number of the last message that one has read."""
    unread: int = 0
    unread_mentions: int = 0
    """How many of the newest unread messages mention one."""
    created_at: datetime | None = None
    statuses: tuple[SpaceStatus, ...] = ()
    """Why agents have not answered there."""
    floor: str = "all"
    """Which agents take up what is said, where there are several: one, addressed, all."""
    agent_run_limit: int = 0
    """After so many messages with which agents woke each other, they do so no more; 0: no limit."""
    stopped: bool = False
    """Whether that is so: until a person speaks there, or lets them go on."""


class Author(Value):
    """Who said something."""

    id: str
    kind: str
    name: str


class Message(Value):
    """Something said in a space; `seq` is its place there."""

    id: str
    space_id: str
    seq: int
    author: Author
    text: str
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    created_at: datetime
    outside: bool = False
    """Whether it is text from outside, or an agent wrote it after reading such text."""


class Health(Value):
    """The server answers."""

    ok: bool
    version: str


class Organization(Value):
    """One's house."""

    id: str
    name: str
    settings: dict[str, JsonValue] | None = None
    """For admins and owners."""


class Entity(Value):
    """A person, an agent or a service of one's organization."""

    id: str
    kind: str
    handle: str
    name: str
    role: str
    created_at: datetime
    left_at: datetime | None = None


class Entities(Value):
    """A page of those who are here, by handle."""

    entities: tuple[Entity, ...]
    next: str | None = None


class ReadState(Value):
    """How far one has read, and what is left."""

    space_id: str
    last_seq: int
    read_seq: int
    unread: int
    unread_mentions: int = 0


class Found(Value):
    """What a search found, the newest first; `next` leads on, also where nothing was found yet."""

    messages: tuple[Message, ...]
    next: str | None = None
