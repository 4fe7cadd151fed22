"""Export and import of memories.

An agent is exported with the memories between it and people, a space with those of the conversation. A person's own
memories and those of the organization are in no file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from sqlalchemy import ColumnElement, Text, bindparam, cast, literal, select

from denizen.ids import AgentId, EntityId, SpaceId
from denizen.memory import changes, items
from denizen.memory.audience import Owner
from denizen.memory.changes import MemoryChange
from denizen.memory.items import Candidate, StoredMemory
from denizen.portability.lines import KeptOutLine, MemoryChangeLine, MemoryLine, OfMemory
from denizen.portability.rows import columns, line_of
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import kept_out, memories

_PERSONA: Final = "persona:"
_id = cast(bindparam("id"), Text)


def _kept(*where: ColumnElement[bool]) -> Statement:
    made_of = columns(MemoryLine, memories, {"changes": memories.c.number})
    return statement(select(*made_of).where(*where).order_by(memories.c.number))


_of_agent = _kept(memories.c.agent_id == _id, memories.c.scope == "persona")
_of_space = _kept(memories.c.space_id == _id, memories.c.scope == "conversation")
_out = select(kept_out.c.owner, kept_out.c.hash, kept_out.c.created_at).order_by(kept_out.c.owner, kept_out.c.hash)
_out_of_agent = statement(_out.where(kept_out.c.owner.like(literal(f"{_PERSONA}%:") + _id)))
_out_of_space = statement(_out.where(kept_out.c.owner == literal("conversation:") + _id))


def of_agent(tx: Tx, agent_id: AgentId) -> list[OfMemory]:
    """Returns what the agent alone remembers about people, and the hashes of what it has forgotten."""
    kept = [_memory(tx, row) for row in tx.all(_of_agent, id=agent_id)]
    out = [
        KeptOutLine(user_id=owner.removeprefix(_PERSONA).removesuffix(f":{agent_id}"), hash=hashed, created_at=at)
        for owner, hashed, at in tx.all(_out_of_agent, id=agent_id)
    ]
    return [*kept, *out]


def of_space(tx: Tx, space_id: SpaceId) -> list[OfMemory]:
    """Returns what the conversation remembers, and the hashes of what it has forgotten."""
    kept = [_memory(tx, row) for row in tx.all(_of_space, id=space_id)]
    out = [
        KeptOutLine(user_id=None, hash=hashed, created_at=at) for _, hashed, at in tx.all(_out_of_space, id=space_id)
    ]
    return [*kept, *out]


def _memory(tx: Tx, row: tuple[Any, ...]) -> MemoryLine:
    def changed(number: int) -> tuple[MemoryChangeLine, ...]:
        found = changes.of_memory(tx, number)
        return tuple(
            MemoryChangeLine.model_construct(**{name: getattr(each, name) for name in MemoryChangeLine.model_fields})
            for each in found
        )

    return line_of(MemoryLine, row, {"sources": _sources, "vector": _in_base_64, "changes": changed})


def _sources(kept: str) -> tuple[str, ...]:
    return tuple(json.loads(kept))


def _in_base_64(vector: bytes) -> str:
    return base64.b64encode(vector).decode()


class MemoryImport:
    """Imports memories, each with its owner; one whose id is in use gets a new one."""

    def __init__(self, tx: Tx, here: str, whose: Callable[[OfMemory], tuple[Owner, Owner]], trusted: bool) -> None:
        """`whose` returns the owner here and there. Unless `trusted`, all are marked as based on text from outside."""
        self._tx = tx
        self._here = here
        self._whose = whose
        self._trusted = trusted
        self._ids: dict[str, str] = {}

    def add(self, line: OfMemory, space_id: SpaceId | None, message: Callable[[str], str | None]) -> None:
        """Imports the memory, unless its owner has one with this text, or has forgotten it."""
        owner, before = self._whose(line)
        if isinstance(line, MemoryLine):
            assert space_id is not None
            items.restore(self._tx, owner, space_id, self._stored(line, message))
        elif owner.key == before.key:
            # The hash is keyed by its owner: for another it would mean nothing.
            items.keep_out(self._tx, owner.key, line.hash, line.created_at)

    def _stored(self, line: MemoryLine, message: Callable[[str], str | None]) -> StoredMemory:
        vector = None if line.vector is None else base64.b64decode(line.vector)
        sources = tuple(own for each in line.sources if (own := message(each)) is not None)
        outside = bool(line.outside) or not self._trusted
        return StoredMemory(
            self._own(line.id),
            Candidate(line.category, line.text, sources, line.confidence, vector=vector, outside=outside),
            kind=line.kind,
            document=line.document,
            embedder=line.embedder,
            uses=line.uses,
            used_at=line.used_at,
            superseded_by=None if line.superseded_by is None else self._own(line.superseded_by),
            created_at=line.created_at,
            updated_at=line.updated_at,
            changes=tuple(self._change(each, message) for each in line.changes),
        )

    def _change(self, line: MemoryChangeLine, message: Callable[[str], str | None]) -> MemoryChange:
        return MemoryChange(
            line.kind,
            line.text,
            # Not everybody may say in a file what somebody else did.
            EntityId(line.by_id) if self._trusted and line.by_id else None,
            line.model,
            tuple(self._own(each) for each in line.replaced),
            tuple(own for each in line.sources if (own := message(each)) is not None),
            line.created_at,
        )

    def _own(self, old: str) -> str:
        if old not in self._ids:
            taken = items.is_there(self._tx, old)
            self._ids[old] = str(uuid5(NAMESPACE_OID, f"{self._here} {old}")) if taken else old
        return self._ids[old]
