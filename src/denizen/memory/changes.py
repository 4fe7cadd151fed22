"""The changes of memories as they are stored: only ever appended, and deleted by the database with their memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from denizen.ids import EntityId
from denizen.shapes.vocabulary import MemoryChangeKind
from denizen.storage.database import Tx, insert_into, select_where
from denizen.storage.schema import memory_changes


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One change of a memory."""

    kind: MemoryChangeKind
    text: str
    """The text of the memory from then on."""
    by_id: EntityId | None = None
    """The person who changed it; None: the summary of a conversation."""
    model: str = ""
    """The model that wrote the summary."""
    replaced: tuple[str, ...] = ()
    """The ids of the memories that it replaced."""
    sources: tuple[str, ...] = ()
    """The ids of the messages that were the reason."""
    created_at: int = 0
    number: int = 0
    """The number of the change; 0: nothing was recorded when the memory was made."""


_add = insert_into(memory_changes, "memory, kind, text, by_id, model, replaced, sources, created_at")
_of = select_where(
    memory_changes, "kind, text, by_id, model, replaced, sources, created_at, number", "memory", order_by="number"
)


def record(tx: Tx, memory: int, changes: Iterable[MemoryChange]) -> None:
    """Appends changes of this memory; those without a time happen now."""
    tx.many(
        _add,
        [
            {
                "memory": memory,
                "kind": each.kind,
                "text": each.text,
                "by_id": each.by_id,
                "model": each.model,
                "replaced": json.dumps(each.replaced),
                "sources": json.dumps(each.sources),
                "created_at": each.created_at or tx.now,
            }
            for each in changes
        ],
    )


def of_memory(tx: Tx, memory: int) -> list[MemoryChange]:
    """Returns the recorded changes of this memory, the oldest first."""
    return [
        MemoryChange(kind, text, by_id, model, tuple(json.loads(replaced)), tuple(json.loads(sources)), *rest)
        for kind, text, by_id, model, replaced, sources, *rest in tx.all(_of, memory=memory)
    ]
