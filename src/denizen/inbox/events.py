"""What reaches an agent's inbox. A record only: delivery, draining and formatting have modules of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from denizen.shapes.vocabulary import EventType, Lane, SenderKind

ABOUT: Final = "about"
"""Under this key the payload of a notice has the id of the message that it is about."""
BEFORE: Final = "before"
"""Under this key the payload of a notice has what that message said, so that forgetting the message finds it."""
ASKED_BY: Final = "asked_by"
"""Under this key the payload of a notice has the name of the person who asks for an answer."""

FROM_SPACES: Final = "from_spaces"
"""Under this key the payload of a plan or timer has the ids of the spaces in which the agent made it."""
OUTSIDE: Final = "outside"
"""Under this key the payload of an event that is no message says that its text is from outside, or made from such."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, as one agent's inbox holds it."""

    number: int
    """The order in which it reached this inbox."""
    id: str
    """Delivery is idempotent by it."""
    type: EventType
    lane: Lane
    hop: int
    """How many agents in a row led to it; 0 for what a human said."""
    wakes: bool
    """Whether it wakes the agent, or only waits to be read at the next waking."""
    attempts: int
    """How many cycles took it and failed, or resumed without progress."""
    created_at: int
    """Microseconds since 1970."""
    text: str
    """What is said: Markdown of a message, instruction of a plan, result of a tool, text of a notice."""
    space_id: str | None = None
    space_name: str | None = None
    sender_id: str | None = None
    sender_name: str | None = None
    sender_kind: SenderKind | None = None
    message_id: str | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What else is known, by type. Messages: `reply_to`. Plans: `plan_id`, `plan_name`, `late_seconds`.
    Timers: `timer_id`, `timer_name`, `late_seconds`. Services: `service`, `data`. Tool results: `tool`,
    `call_id`, `data`."""
    waits: bool = False
    """Whether a person waits for this agent's answer to it."""
    sender_handle: str | None = None
    """By which two senders of the same name are told apart."""
    interruptions: int = 0
    """How often a process died over it before the first answer: not its fault, and counted apart from `attempts`."""
    sender_role: str | None = None
    outside: bool = False
    """Whether its text is from outside, or was made from such text."""
