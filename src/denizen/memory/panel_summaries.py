"""Memory for panels: each advisor's own summary of a conversation, and the memories shown to all advisors.

An advisor remembers what people said and its own replies, nothing else, so each has its own summary. Recalled long-term
memories are the same for all: a person cannot tell something to one advisor alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.ids import AgentId, SpaceId
from denizen.inbox.statements import statements_in
from denizen.memory import items, permissions, reminding
from denizen.memory.audience import Owner
from denizen.memory.items import MemoryItem
from denizen.memory.rolling import ConversationSummary
from denizen.storage.database import Tx

HEADER = "## What you remember\nFrom long-term memory, because of what was said; it may be out of date."
HEADING = "## What was said before\nOlder messages are not shown; this is what they came to, as you heard it:"


def summed_up(state: ConversationSummary) -> str:
    """Returns the summary in an advisor's prompt that replaces the messages up to the cursor; empty if all
    are shown.
    """
    return f"{HEADING}\n\n{state.summary}" if state.upto else ""


def owners(tx: Tx, panel_id: SpaceId, message_id: str | None) -> permissions.Readable:
    """Returns the owners whose memories the advisors may be shown to answer this message."""
    nobody = AgentId("")
    found = permissions.readable(tx, nobody, [panel_id], [] if message_id is None else [message_id])
    return permissions.Readable(tuple(each for each in found.owners if each.scope != "persona"), found.grant)


def still_there(tx: Tx, found: Sequence[MemoryItem], allowed: Sequence[Owner]) -> list[MemoryItem]:
    """Returns those of the found memories that the panel's members may see now, with their present text."""
    own = {each.number: each for each in items.find(tx, [each.number for each in found if each.number > 0])}
    keys = {each.key for each in allowed}
    # Memories from a custom retriever are not in our database: they are shown as given.
    there = [own.get(each.number) if each.number > 0 else each for each in found]
    return [each for each in there if each is not None and each.owner in keys]


def unsaid(found: Sequence[MemoryItem], state: ConversationSummary, characters: int = 2_800) -> list[MemoryItem]:
    """Returns the memories for an advisor's next turn: as many as fit, each fact once, and none that the summary of
    the conversation tells.
    """
    return reminding.fitting(found, characters, statements_in(state.summary))


def reminded(chosen: Sequence[MemoryItem]) -> str:
    """Renders these memories for an advisor; empty if there are none."""
    return f"{HEADER}\n\n{reminding.render(chosen)}" if chosen else ""
