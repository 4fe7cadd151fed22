"""A utility model's summaries of an agent's conversations, shown before the layers: the strategy `rolling`.

They are written elsewhere, in the background; here they are read and rendered. Cycles that they cover leave the window
when an era begins. The layers cover every cycle as always: so nothing is lost if nothing was written yet, or no model
was available; then they have all the room.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, case, func, or_, select

from denizen.ids import AgentId, SpaceId
from denizen.inbox.format import one_line, quoted_name, visible
from denizen.inbox.statements import plain_statement, statements_in
from denizen.storage.database import Tx, statement, value
from denizen.storage.schema import memberships, messages, passages, rollings, spaces

MARK: Final = "[ROLLING MEMORY — "
HEADER: Final = MARK + "{name}, messages 1–{upto}]"
MOST_SPACES: Final = 20
_LEAST_CHARACTERS: Final = 200
"""With less room than this for a conversation, only the newest of them are shown."""


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """The summary of one conversation."""

    space_id: SpaceId
    name: str
    upto: int
    summary: str
    memory: dict[str, Any]
    outside: bool = False
    """Whether it was made from text from outside."""


_of_agent = statement(
    select(spaces.c.id, spaces.c.name, rollings.c.upto, rollings.c.summary, rollings.c.memory, rollings.c.outside)
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


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summaries of an agent's conversations, as they are shown."""

    text: str = ""
    """Empty if there are none."""
    outside: bool = False
    """Whether any of it was made from text from outside."""
    spaces: frozenset[SpaceId] = frozenset()
    """The conversations that it summarizes."""


def read(tx: Tx, agent_id: AgentId, characters: int) -> Summaries:
    """The summaries of the conversations that the agent is in, in at most this many characters."""
    rows = tx.all(_of_agent, agent_id=agent_id)
    told = [
        StoredSummary(space_id, name, upto, summary, json.loads(memory), bool(outside))
        for space_id, name, upto, summary, memory, outside in rows[: _most_shown(characters)]
    ]
    return Summaries(
        render(told, characters), any(each.outside for each in told), frozenset(each.space_id for each in told)
    )


def _most_shown(characters: int) -> int:
    return max(characters // _LEAST_CHARACTERS, 0)


def render(conversations: Sequence[StoredSummary], characters: int) -> str:
    """The conversations, the last summarized first, each with an equal share of the room."""
    told = conversations[: _most_shown(characters)]
    if not told:
        return ""
    share = characters // len(told) - 2
    return "\n\n".join(_rendered(each, share) for each in told)


def _rendered(conversation: StoredSummary, characters: int) -> str:
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


def _lines(conversation: StoredSummary) -> Iterator[str]:
    """The summary, and the items of the memory that it does not state."""
    yield from (visible(line) for line in conversation.summary.splitlines() if line.strip())
    stated = set(statements_in(conversation.summary))
    for category, items in conversation.memory.items():
        for item in items if category != "tags" else ():
            text = one_line(str(item.get("text", "")))
            if plain_statement(text) not in stated:
                stated.add(plain_statement(text))
                yield f"{category}: {text}"


_first_of_spaces = statement(
    select(
        messages.c.space_id,
        func.min(passages.c.cycle),
        func.min(case((messages.c.seq > func.coalesce(rollings.c.upto, 0), passages.c.cycle))),
    )
    .select_from(
        passages.join(messages, messages.c.id == passages.c.message_id).outerjoin(
            rollings, (rollings.c.space_id == messages.c.space_id) & (rollings.c.reader_id == "")
        )
    )
    .where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.cycle >= bindparam("first"),
        passages.c.message_id.is_not(None),
    )
    .group_by(messages.c.space_id)
)
_last_passage = statement(select(func.max(passages.c.cycle)).where(passages.c.agent_id == bindparam("agent_id")))


def first_uncovered(tx: Tx, agent_id: AgentId, first: int, shown: Summaries) -> int:
    """The number of the first cycle from `first` on that has a message which the shown summaries do not cover.

    The messages of a cycle are known by its passages: a cycle that has none yet is not covered.
    """
    last = value(tx, _last_passage, agent_id=agent_id)
    uncovered = [first if last is None else max(last + 1, first)]
    for space_id, any_message, after_the_summary in tx.all(_first_of_spaces, agent_id=agent_id, first=first):
        found = after_the_summary if space_id in shown.spaces else any_message
        uncovered += [] if found is None else [found]
    return min(uncovered)


_BLOCK = re.compile(re.escape(MARK) + r"[^\n]*(?:\n\|[^\n]*)*")


def blanked(layers: str, instead: str) -> str:
    """The layers without the summaries of conversations."""
    return _BLOCK.sub(f"{MARK}{instead}]", layers)


def before(written: str, layers: str) -> str:
    """Both texts, one after the other."""
    return f"{written}\n\n{layers}" if written and layers else written or layers
