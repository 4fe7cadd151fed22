"""What comes to an agent's mind by itself when a cycle opens: the passages of its older life that matter most to it.

Only what is not in the window. What comes from a private space comes to mind only where the cycle is nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelRequest, UserPromptPart
from sqlalchemy import bindparam, select

from denizen.consciousness import log
from denizen.consciousness.log import Entry
from denizen.consciousness.recall.fetching import Filter
from denizen.consciousness.recall.rendering import pack, render
from denizen.consciousness.recall.searching import search
from denizen.ids import AgentId, CycleId
from denizen.inbox.events import Event
from denizen.inbox.format import entry_text
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, minds
from denizen.storage.schema import log as log_rows

HEADER: Final = "[RECALLED — from before the cycles above, because of this inbox]"
MOST_TOKENS: Final = 2_000
MOST_PASSAGES: Final = 20
QUERY_CHARACTERS: Final = 2_000
_SLACK_TOKENS: Final = 30
"""The header, and what stands around a message."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What decides how much comes to mind."""

    inbox_tokens: int
    """Of which what comes to mind may have half."""
    zone: str
    recalled: frozenset[int]
    """The passages that came to mind before and are still shown."""


def recalled_in(entries: Iterable[Entry]) -> frozenset[int]:
    """The passages that these entries hold because they came to mind."""
    return frozenset(n for each in entries if each.kind == "recalled" for n in json.loads(each.request or "[]"))


_before_window = statement(
    select(minds.c.window_from, minds.c.cycle_count, cycles.c.number)
    .select_from(
        minds.outerjoin(
            log_rows, (log_rows.c.agent_id == minds.c.agent_id) & (log_rows.c.seq == minds.c.window_from)
        ).outerjoin(cycles, cycles.c.id == log_rows.c.cycle_id)
    )
    .where(minds.c.agent_id == bindparam("agent_id"))
)


def come_to_mind(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, seq: int, events: Sequence[Event], occasion: Occasion
) -> Entry | None:
    """An entry, not yet written, with what matters to these events; None if nothing does. Before they are logged."""
    row = tx.one(_before_window, agent_id=agent_id)
    if row is None or row[0] <= 1:
        return None
    _, count, first_shown = row
    found = search(
        tx,
        agent_id,
        "\n".join(entry_text(event) for event in events)[:QUERY_CHARACTERS],
        audience=[event.space_id for event in events if event.space_id is not None],
        only=Filter(before_cycle=count + 1 if first_shown is None else first_shown),
        zone=occasion.zone,
        limit=MOST_PASSAGES,
    )
    tokens = min(MOST_TOKENS, occasion.inbox_tokens // 2) - _SLACK_TOKENS
    new = [each for each in found if each.number not in occasion.recalled]
    chosen = pack(new, tokens=max(tokens, 0), zone=occasion.zone)
    if not chosen:
        return None
    text = f"{HEADER}\n\n{render(chosen, zone=occasion.zone)}"
    numbers = json.dumps([each.number for each in chosen])
    return log.entry(seq, cycle_id, "recalled", ModelRequest(parts=[UserPromptPart(text)]), request=numbers)
