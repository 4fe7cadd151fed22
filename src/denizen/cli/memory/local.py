"""What is remembered, by way of the database of this machine: whoever can open it sees all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from denizen.app import Runtime
from denizen.cli.desk.telling import told
from denizen.cli.memory.port import parties
from denizen.client.shapes.memories import Memory, MemoryReport
from denizen.errors import NotFound
from denizen.forgetting.subjects import find_subject
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.memory import items
from denizen.memory.items import Remembered
from denizen.server.shapes.memory import MemoryOut, ReportOut
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx


class LocalMemories:
    """What the house that is open in this process remembers."""

    def __init__(self, runtime: Runtime, owner: Entity) -> None:
        self._runtime = runtime
        self._owner = owner
        self._home = owner.organization_id

    async def listed(self, scope: str | None, person: str | None, limit: int) -> list[Memory]:
        found = await self._runtime.db.read(_listed, self._home, scope, person, limit)
        return [_told(each) for each in found]

    async def searched(self, query: str, scope: str | None, limit: int) -> list[Memory]:
        owners = await self._runtime.db.read(_owners, self._home, scope)
        return [_told(each.item) for each in await self._runtime.search_memories(query, owners, limit=limit)]

    async def report(self) -> MemoryReport:
        return told(MemoryReport, ReportOut.of(await self._runtime.memory_report(organization=self._home)))

    async def find(self, memory_id: str) -> Memory | None:
        try:
            return _told(await self._runtime.db.read(_found, self._home, memory_id))
        except NotFound:
            return None

    async def names(self, found: Iterable[Memory]) -> Mapping[str, str]:
        return await self._runtime.db.read(_names, list(found))

    async def forget(self, memory_id: str, *, dry_run: bool) -> Mapping[str, int]:
        subject = await self._runtime.db.read(find_subject, self._home, "memory", memory_id)
        return (await self._runtime.forget_memory(subject, by=self._owner, dry_run=dry_run)).removed


def _told(memory: Remembered) -> Memory:
    return told(Memory, MemoryOut.of(memory))


def _listed(tx: Tx, home: OrganizationId, scope: str | None, person: str | None, limit: int) -> list[Remembered]:
    found: list[Remembered] = []
    whose = None if person is None else directory.find_entity(tx, home, person).id
    before: int | None = None
    while len(found) < limit and (page := items.all_of(tx, home, before=before, limit=500)):
        found += [each for each in page if scope in (None, each.scope) and whose in (None, each.user_id)]
        before = page[-1].number
    return found[:limit]


def _owners(tx: Tx, home: OrganizationId, scope: str | None) -> list[str]:
    owners = items.owners_of(tx, home)
    return [each for each in owners if scope is None or each.startswith(f"{scope}:")]


def _found(tx: Tx, home: OrganizationId, memory_id: str) -> Remembered:
    return items.get(tx, find_subject(tx, home, "memory", memory_id))


def _names(tx: Tx, found: list[Memory]) -> dict[str, str]:
    people = {id for each in found for id in parties(each)}
    spaces = {each.space_id for each in found if each.scope == "conversation"}
    names = {id: f"@{directory.get_entity(tx, EntityId(id)).handle}" for id in people}
    return names | {id: directory.get_space(tx, SpaceId(id)).name for id in spaces}
