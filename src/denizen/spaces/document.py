"""Renders the messages of a space as a Markdown document."""

from __future__ import annotations

from denizen.amounts import human_size
from denizen.clock import moment
from denizen.spaces.posting import Message


def title(space_name: str) -> str:
    """Returns the first line of the document."""
    return f"# {space_name}\n"


def markdown(message: Message) -> str:
    """Returns the message with its author, its time and the names of its files."""
    edited = ", edited" if message.edited_at is not None and message.deleted_at is None else ""
    parts = [f"**{message.author_name}**, {moment(message.created_at):%Y-%m-%d %H:%M} UTC{edited}"]
    if message.deleted_at is not None:
        parts.append("_(deleted)_")
    elif message.text.strip():
        parts.append(message.text)
    parts += [f"_File: {each.name} ({human_size(each.size)})_" for each in message.files]
    return "\n" + "\n\n".join(parts) + "\n"
