"""Maps the people, agents and services in a file to those of the importing organization."""

from __future__ import annotations

from collections.abc import Iterator

from denizen.agents import registry
from denizen.agents.definition import AgentDefinition
from denizen.agents.restrictions import UNRESTRICTED_PARTS_ONLY
from denizen.ids import EntityId, OrganizationId
from denizen.portability.lines import EntityLine
from denizen.spaces import directory
from denizen.storage.database import Tx, select_where
from denizen.storage.schema import entities

entity = select_where(entities, "organization_id, kind, left_at", "id")
"""The organization of an entity, its kind, and whether it has left."""
_of_handle = select_where(entities, "id, kind", "organization_id, handle")


class EntityMapping:
    """Maps each entity to the one with the same id, otherwise the same handle. Missing ones are created: people and
    services that cannot sign in, agents that are dead.
    """

    def __init__(self, tx: Tx, home: OrganizationId) -> None:
        self._tx = tx
        self._home = home
        self._known: dict[str, tuple[EntityLine, EntityId]] = {}
        self.people: list[str] = []
        self.absent: list[str] = []

    def __getitem__(self, old: str) -> EntityId:
        return self._known[old][1]

    def get(self, old: str | None) -> EntityId | None:
        known = None if old is None else self._known.get(old)
        return None if known is None else known[1]

    def members(self) -> Iterator[tuple[EntityLine, EntityId]]:
        """Yields the members of the space, each once; not those who have left the organization."""
        seen: set[EntityId] = set()
        for line, entity_id in self._known.values():
            row = self._tx.one(entity, id=entity_id)
            if line.role is not None and entity_id not in seen and row is not None and row[2] is None:
                seen.add(entity_id)
                yield line, entity_id

    def receive(self, line: EntityLine) -> None:
        self._known[line.id] = (line, self._find(line) or self._make(line))

    def _find(self, line: EntityLine) -> EntityId | None:
        home, kind, _ = self._tx.one(entity, id=line.id) or ("", "", None)
        if (home, kind) == (self._home, line.kind):
            return EntityId(line.id)
        named, kind = self._tx.one(_of_handle, organization_id=self._home, handle=line.handle) or ("", "")
        return EntityId(named) if kind == line.kind else None

    def _make(self, line: EntityLine) -> EntityId:
        taken = self._tx.one(_of_handle, organization_id=self._home, handle=line.handle) is not None
        handle = directory.free_handle(self._tx, self._home, line.handle) if taken else line.handle
        id = EntityId(line.id) if self._tx.one(entity, id=line.id) is None else None
        if line.kind != "agent":
            self.people.append(handle)
            return directory.create_entity(self._tx, self._home, line.kind, name=line.name, handle=handle, id=id).id
        self.absent.append(handle)
        made = registry.create(
            self._tx,
            UNRESTRICTED_PARTS_ONLY,
            self._home,
            name=line.name,
            handle=handle,
            definition=AgentDefinition(),
            id=id,
        )
        registry.delete(self._tx, made.id)
        return made.id
