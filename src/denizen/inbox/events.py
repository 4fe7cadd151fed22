"""The record of an event in an agent's inbox. Delivery, draining and formatting have modules of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from denizen.shapes.vocabulary import EventType, Lane, SenderKind

if TYPE_CHECKING:  # it would import the database
    from denizen.files.attaching import Attachment

ABOUT: Final = "about"
"""Payload key of a notice: the id of the message that it is about."""
BEFORE: Final = "before"
"""Payload key of a notice: the earlier text of that message, so that forgetting the message finds it here."""
ASKED_BY: Final = "asked_by"
"""Payload key of a notice: the name of the person who asks for an answer."""

ALONE: Final = "alone"
"""Payload key of a message, and of a notice: a program waits for the answer to it, and takes nothing else for that."""
OWN_TOOLS: Final = "tools"
"""Payload key of such an event: the program's own tools, as definitions of client tools."""
CALL_FIRST: Final = "call_first"
"""Payload key of such an event: the names of tools of which the first step has to call one."""
FORMAT: Final = "format"
"""Payload key of such an event: the JSON Schema of the answer; an empty one means any JSON object."""
AGAIN: Final = "again"
"""Payload key of a notice, and metadata key of the answer to it: the id of the earlier answer, which stays."""

FROM_SPACES: Final = "from_spaces"
"""Payload key of a plan or timer: the ids of the spaces in which the agent made it."""
FILES: Final = "files"
"""Payload key of an event that is not a message: its files, as in the column of a message."""
SAID_AS: Final = "said_as"
"""In the payload of a message: the role of the token it was posted with, where that is less than its author's."""
OUTSIDE: Final = "outside"
"""Payload key of an event that is not a message: whether its text is from outside, or was made from such text."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event in one agent's inbox."""

    number: int
    """Its position in this inbox, in the order of arrival."""
    id: str
    """Makes delivery idempotent."""
    type: EventType
    lane: Lane
    hop: int
    """How many agents in a row led to the event; 0 for a message from a person."""
    wakes: bool
    """Whether it wakes the agent, or waits to be read when the agent wakes next."""
    attempts: int
    """How many cycles took it and failed, or resumed without progress."""
    created_at: int
    """Microseconds since 1970."""
    text: str
    """The Markdown of a message, the instruction of a plan, the result of a tool or the text of a notice."""
    space_id: str | None = None
    space_name: str | None = None
    sender_id: str | None = None
    sender_name: str | None = None
    sender_kind: SenderKind | None = None
    message_id: str | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Further data, by type. Messages: `reply_to`. Plans: `plan_id`, `plan_name`, `late_seconds`. Timers: `timer_id`,
    `timer_name`, `late_seconds`. Services: `service`, `data`. Tool results: `tool`, `call_id`, `data`."""
    waits: bool = False
    """Whether a person waits for this agent's answer to the event."""
    sender_handle: str | None = None
    """Distinguishes senders with the same name."""
    interruptions: int = 0
    """How often a process crashed during it before the first model answer: not its fault, so not part of `attempts`."""
    sender_role: str | None = None
    outside: bool = False
    """Whether its text is from outside, or was made from such text."""
    files: tuple[Attachment, ...] = ()
    """The files of a message, a trigger or a tool's result."""
