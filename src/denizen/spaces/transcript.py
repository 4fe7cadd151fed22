"""A space's conversation as text for an agent. Pure; what others wrote cannot imitate our own lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from denizen.clock import moment
from denizen.ids import EntityId
from denizen.inbox.format import OUTSIDE_MARK, file_line, is_guest, quote, quoted_name, speaker
from denizen.spaces.directory import Space
from denizen.spaces.posting import Message

_TITLE: Final = re.compile(r'\[Space "[^"\n]*" \| spaceId: ([^\]\s]+)\] Messages \d+ to (\d+):')


def format_transcript(space: Space, messages: Sequence[Message], *, reader: EntityId) -> str:
    """The messages in order, each with its number, author and time."""
    title = f"[Space {quoted_name(space.name)} | spaceId: {space.id}]"
    if not messages:
        return f"{title} No messages."
    lines = [f"{title} Messages {messages[0].seq} to {messages[-1].seq}:"]
    lines += [_line(message, reader) for message in messages]
    return "\n".join(lines)


def shown_page(text: str) -> tuple[str, int] | None:
    """The space id and the number of the newest message in a text that `format_transcript` made, if it has one.

    Only its first line is read, in which the quoted name is the only text written by somebody.
    """
    found = _TITLE.match(text)
    return None if found is None else (found[1], int(found[2]))


def _line(message: Message, reader: EntityId) -> str:
    guest = is_guest(message.author_kind, message.author_role)
    by = (message.author_name, "guest" if guest else message.author_kind, message.author_handle)
    who = "You" if message.author_id == reader else speaker(*by)
    named = guest or message.author_kind == "service" or message.author_id == reader
    mark = f" [{OUTSIDE_MARK}]" if message.outside and not named else ""
    said = f"{message.seq}. {moment(message.created_at):%Y-%m-%d %H:%M} {who}{mark}: {quote(message.text)}"
    return "\n".join([said, *(file_line(each) for each in message.files)])
