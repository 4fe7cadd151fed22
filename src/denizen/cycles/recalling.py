"""Searches the agent's older history for passages that match its inbox, before a cycle opens. Outside any write
transaction, because it is slow; by meaning too if there is an embedder."""

from __future__ import annotations

from denizen.consciousness import recollection
from denizen.consciousness.mind import Mind
from denizen.consciousness.recollection import InboxCue, RecallInput, recalled_in
from denizen.ids import AgentId
from denizen.inbox import delivery
from denizen.models.embedders import Embedder
from denizen.storage.database import Database, Tx
from denizen.tools.recalling import in_meaning


async def remind(db: Database, embedder: Embedder | None, mind: Mind) -> RecallInput | None:
    """The passages that the next cycle may show; None if nothing waits, or the whole history is in the window."""
    agent_id, zone = mind.lease.agent_id, mind.identity.zone
    seen = await db.read(_glance, agent_id)
    if seen is None:
        return None
    asked = None if embedder is None else await in_meaning(embedder, agent_id, seen.query)
    ranking = await db.read(recollection.search, agent_id, seen, zone, embedder.name if embedder else "", asked)
    return RecallInput(mind.budget.inbox, zone, recalled_in(mind.past), ranking)


def _glance(tx: Tx, agent_id: AgentId) -> InboxCue | None:
    batch = delivery.next_batch(delivery.pending(tx, agent_id))
    return recollection.glance(tx, agent_id, batch) if batch else None
