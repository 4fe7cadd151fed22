"""What is remembered beyond an agent's own life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from denizen.agents.registry import Agent
from denizen.api.wiring import Wiring, id_of
from denizen.errors import InvalidInput
from denizen.ids import AgentId, OrganizationId, SpaceId
from denizen.memory import hygiene, items, rolling, settled, sinks
from denizen.memory.hygiene import Report
from denizen.memory.items import Remembered
from denizen.memory.keeping import Rolling
from denizen.memory.policy import OrganizationMemory, Policy
from denizen.memory.rolling import Rolled
from denizen.memory.searching import Found as FoundMemory
from denizen.spaces.directory import Organization, Space


class Remembering(Wiring):
    """What conversations came to, and what is remembered of them."""

    async def conversation_memory(self, space: Space | SpaceId) -> Rolled:
        """What the conversation came to so far, and the message up to which that reaches; 0: it is not summed up."""
        return await self.db.read(rolling.find, id_of(space))

    async def roll(self, space: Space | SpaceId, *, reader: str = rolling.EVERYONE) -> Rolling:
        """Sum the conversation up, as far as one pass goes, if that is due. Inside `living()` it happens by itself."""
        if self._keeper is None:
            raise InvalidInput("This runtime has no memory. Give it `memory=MemoryOptions()`.")
        return await self._keeper.roll(id_of(space), reader)

    async def memory_policy(self, space: Space | SpaceId) -> Policy:
        """What was said of long-term memory in this conversation."""
        return await self.db.read(settled.policy_of, id_of(space))

    async def set_memory_policy(self, space: Space | SpaceId, policy: Policy) -> Policy:
        """What the policy says holds in this conversation; where it says nothing, what was said before."""
        return await self.db.write(settled.settle, id_of(space), policy)

    async def organization_memory(
        self, organization: Organization | OrganizationId | None = None
    ) -> OrganizationMemory | None:
        """What the organization has switched off; None where that cannot be read, and nothing is allowed."""
        return await self.db.read(settled.organization_of, await self._organization(organization))

    async def change_organization_memory(
        self, changes: Mapping[str, object], *, organization: Organization | OrganizationId | None = None
    ) -> OrganizationMemory:
        """These switches are so from now on; None gives one its default back."""
        return await self.db.write(settled.change_organization, await self._organization(organization), changes)

    async def memories(
        self,
        *,
        owner: str | None = None,
        space: Space | SpaceId | None = None,
        agent: Agent | AgentId | None = None,
        organization: Organization | OrganizationId | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Remembered]:
        """What is remembered, the newest first: by one owner, learned in a space, of an agent alone, or anywhere."""
        if owner is not None:
            return await self.db.read(items.owned, owner, before=before, limit=limit)
        if space is not None:
            return await self.db.read(items.learned_in, id_of(space), before=before, limit=limit)
        if agent is not None:
            return await self.db.read(items.of_agent, id_of(agent), before=before, limit=limit)
        home = await self._organization(organization)
        return await self.db.read(items.all_of, home, before=before, limit=limit)

    async def search_memories(self, query: str, owners: Iterable[str], *, limit: int = 20) -> list[FoundMemory]:
        """What these owners' memories hold on the question, the best first."""
        return await sinks.look(self.db, self.embedder, query, list(owners), limit)

    async def memory_report(self, *, organization: Organization | OrganizationId | None = None) -> Report:
        """What is wrong with what is remembered: doubles, junk, what nobody was ever reminded of, contradictions."""
        return await self.db.read(hygiene.report, await self._organization(organization))
