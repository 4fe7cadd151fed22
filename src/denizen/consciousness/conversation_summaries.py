"""A utility model's summaries of an agent's conversations, shown before the layers: the strategy `rolling`.

They are written elsewhere, in the background; here they are read and rendered. The layers cover every cycle as always,
in less room: so nothing is lost if nothing was written yet, or no model was available.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, or_, select

from denizen.ids import AgentId
from denizen.inbox.format import one_line, quoted_name, visible
from denizen.inbox.statements import plain_statement, statements_in
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memberships, rollings, spaces

MARK: Final = "[ROLLING MEMORY — "
HEADER: Final = MARK + "{name}, messages 1–{upto}]"
MOST_SPACES: Final = 20
_LEAST_CHARACTERS: Final = 200
"""With less room than this for a conversation, only the newest of them are shown."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The summary of one conversation."""

    name: str
    upto: int
    summary: str
    memory: dict[str, Any]
    outside: bool = False
    """Whether it was made from text from outside."""


_of_agent = statement(
    select(spaces.c.name, rollings.c.upto, rollings.c.summary, rollings.c.memory, rollings.c.outside)
    .join(spaces, spaces.c.id == rollings.c.space_id)
    .join(memberships, memberships.c.space_id == rollings.c.space_id)
    .where(
        memberships.c.entity_id == bindparam("agent_id"),
        # From a panel, an advisor remembers only its own summary.
        or_(rollings.c.reader_id == bindparam("agent_id"), (rollings.c.reader_id == "") & (spaces.c.kind != "panel")),
        rollings.c.upto > 0,
    )
    .order_by(rollings.c.updated_at.desc(), rollings.c.space_id)
    .limit(MOST_SPACES)
)


def read(tx: Tx, agent_id: AgentId, characters: int) -> tuple[str, bool]:
    """The summaries of the conversations that the agent is in, in at most this many characters; empty if there are
    none.

    And whether any of it was made from text from outside.
    """
    rows = tx.all(_of_agent, agent_id=agent_id)
    told = [Conversation(row[0], row[1], row[2], json.loads(row[3]), bool(row[4])) for row in rows]
    text = render(told, characters)
    return text, bool(text) and any(each.outside for each in told)


def render(conversations: Sequence[Conversation], characters: int) -> str:
    """The conversations, the last summarized first, each with an equal share of the room."""
    told = conversations[: max(characters // _LEAST_CHARACTERS, 0)]
    if not told:
        return ""
    share = characters // len(told) - 2
    return "\n\n".join(_rendered(each, share) for each in told)


def _rendered(conversation: Conversation, characters: int) -> str:
    head = HEADER.format(name=quoted_name(conversation.name), upto=conversation.upto)
    lines: list[str] = []
    left = characters - len(head) - 1
    for line in _lines(conversation):
        # It contains people's words: behind the gutter they cannot imitate ours.
        shown = f"| {line}"
        if len(shown) + 1 > left:
            if left > 40:
                lines.append(shown[: left - 2].rstrip() + "…")
            break
        lines.append(shown)
        left -= len(shown) + 1
    return "\n".join([head, *lines])


def _lines(conversation: Conversation) -> Iterator[str]:
    """The summary, and the items of the memory that it does not state."""
    yield from (visible(line) for line in conversation.summary.splitlines() if line.strip())
    stated = set(statements_in(conversation.summary))
    for category, items in conversation.memory.items():
        for item in items if category != "tags" else ():
            text = one_line(str(item.get("text", "")))
            if plain_statement(text) not in stated:
                stated.add(plain_statement(text))
                yield f"{category}: {text}"


_BLOCK = re.compile(re.escape(MARK) + r"[^\n]*(?:\n\|[^\n]*)*")


def blanked(layers: str, instead: str) -> str:
    """The layers without the summaries of conversations."""
    return _BLOCK.sub(f"{MARK}{instead}]", layers)


def before(written: str, layers: str) -> str:
    """Both texts, one after the other."""
    return f"{written}\n\n{layers}" if written and layers else written or layers
