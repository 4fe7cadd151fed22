"""A space's conversation as an agent reads it. Pure; what others wrote cannot pose as anything else."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.clock import moment
from denizen.ids import EntityId
from denizen.inbox.format import plain_name, quote, quoted_name
from denizen.spaces.directory import Space
from denizen.spaces.posting import Message


def format_transcript(space: Space, messages: Sequence[Message], *, reader: EntityId) -> str:
    """The messages in order, each with its number, who said it and when."""
    title = f"[Space {quoted_name(space.name)} | spaceId: {space.id}]"
    if not messages:
        return f"{title} No messages."
    lines = [f"{title} Messages {messages[0].seq} to {messages[-1].seq}:"]
    lines += [_line(message, reader) for message in messages]
    return "\n".join(lines)


def _line(message: Message, reader: EntityId) -> str:
    who = "You" if message.author_id == reader else f"{plain_name(message.author_name)} ({message.author_kind})"
    return f"{message.seq}. {moment(message.created_at):%Y-%m-%d %H:%M} {who}: {quote(message.text)}"
