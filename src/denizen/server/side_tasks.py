"""Recognizes the tasks that chat programs give the model of a conversation besides what a person says. Pure.

Programs send such a task as a conversation of one message. Its form tells: instructions about a conversation, and then
that conversation as text. A program whose tasks are not recognized can ask the model `task:` and the agent's handle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from denizen.server.shapes.openai import SYSTEM_ROLES, ChatMessage

MODEL: Final = "task:"
"""The prefix of a model that answers every request as such a task."""
LEAD_CHARACTERS: Final = 2_000
"""How long the instructions before a conversation may be."""

_TASK_HEADING: Final = re.compile(r"\s*#{1,6}\s*task\b", re.IGNORECASE)
_QUOTED_CHAT: Final = re.compile(r"<chat_history>.*</chat_history>", re.DOTALL)
_SPEAKER: Final = re.compile(r"^[ \t]*(user|human|ai|assistant)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_TITLE: Final = re.compile(r"\btitle\b", re.IGNORECASE)
_CONVERSATION: Final = re.compile(r"\b(conversation|chat|exchange)\b", re.IGNORECASE)


def is_side_task(messages: Sequence[ChatMessage]) -> bool:
    """Whether this is a task about a conversation, and nothing that a person says."""
    spoken = [each for each in messages if each.role not in SYSTEM_ROLES]
    if len(spoken) != 1 or spoken[0].role != "user":
        return False
    text = spoken[0].text
    return _is_of_open_webui(text) or _asks_for_title(text)


def _is_of_open_webui(text: str) -> bool:
    """Titles, tags, follow-up questions, search queries, autocompletion: headings, and the conversation in a tag.

    The same program sends documents to the agent under such headings as well, but without a conversation.
    """
    return _TASK_HEADING.match(text) is not None and _QUOTED_CHAT.search(text) is not None


def _asks_for_title(text: str) -> bool:
    """As LibreChat does: asks for a title of the conversation, whose lines follow with the names of both speakers."""
    speakers = list(_SPEAKER.finditer(text))
    if not speakers:
        return False
    lead, names = text[: speakers[0].start()], {each[1].lower() for each in speakers}
    both = bool(names & {"user", "human"}) and bool(names & {"ai", "assistant"})
    about_title = _TITLE.search(lead) is not None and _CONVERSATION.search(lead) is not None
    return both and about_title and len(lead) <= LEAD_CHARACTERS
