"""What comes of asking an agent."""

from __future__ import annotations

from pydantic import Field, JsonValue

from denizen.client.shapes.agents import Call
from denizen.client.shapes.places import Message
from denizen.client.shapes.value import Value


class Accepted(Value):
    """Something is in an agent's inbox, under this id."""

    id: str


class FinalResponse(Value):
    """Everything that an agent said, as one text."""

    markdown: str
    text: str


class Answer(Value):
    """What became of a message to an agent, and what it said to it."""

    outcome: str
    space_id: str
    message_id: str
    messages: tuple[Message, ...]
    final_response: FinalResponse
    cycle: int | None = None
    usage: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    waiting_for: tuple[Call, ...] = ()
    note: str = ""
    cause: str | None = None
    """Of the status that the note comes from, such as `key` or `no_reply`."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
