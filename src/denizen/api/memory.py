"""`denizen.memory`: summaries of conversations, and long-term memories."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping

from denizen.access.audit import Actor
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.api.arguments import listed, number_of, optional_number_of, text_of
from denizen.api.forgetting import forget
from denizen.api.subject import AgentRef, EntityRef, OrganizationRef, SpaceRef, Subject, id_of, optional_id_of
from denizen.errors import InvalidInput
from denizen.forgetting import forgetting
from denizen.forgetting.receipts import Receipt
from denizen.memory import access, hygiene, items, rolling, sinks, stored_policies
from denizen.memory.history import MemoryVersion
from denizen.memory.hygiene import Report
from denizen.memory.items import Correction, MemoryItem
from denizen.memory.policy import OrganizationMemory, Policy
from denizen.memory.rolling import ConversationSummary
from denizen.memory.searching import FoundMemory
from denizen.memory.summarizing import Rolling
from denizen.storage.database import storable


class Memory(Subject):
    """Summaries of conversations and long-term memories.

    ```python
    assert (await denizen.memory.summary(kitchen)).summary == ""
    await denizen.memory.change_switches({"enabled": False})
    assert await denizen.memory.list() == []
    ```
    """

    async def summary(self, space: SpaceRef) -> ConversationSummary:
        """The summary of the conversation, and the number of the last message in it; 0: there is no summary yet."""
        return await self._read_space(space, rolling.find)

    async def summarize(self, space: SpaceRef, *, reader: str = rolling.EVERYONE) -> Rolling:
        """Summarize the conversation, as far as one pass goes, if that is due. Inside `living()` it happens by itself.

        Raises `InvalidInput` where the runtime was opened without `memory=`.
        """
        if self._runtime.keeper is None:
            raise InvalidInput("This runtime has no memory. Give it `memory=MemoryOptions()`.")
        return await self._runtime.keeper.roll(id_of(space), reader)

    async def policy(self, space: SpaceRef) -> Policy:
        """What may be remembered of this conversation, as far as it is set here."""
        return await self._read_space(space, stored_policies.policy_of)

    async def set_policy(self, space: SpaceRef, policy: Policy, *, by: Requester = THIS_PROCESS) -> Policy:
        """Change what may be remembered of this conversation. What the policy leaves out stays as it was."""
        return await self._runtime.db.write(access.set_policy, by, id_of(space), policy)

    async def switches(self, organization: OrganizationRef | None = None) -> OrganizationMemory | None:
        """What the organization has switched off; None where that cannot be read, and then nothing is allowed."""
        return await self._runtime.db.read(
            stored_policies.organization_of, await self._runtime.organization_id(organization)
        )

    async def change_switches(
        self,
        changes: Mapping[str, object],
        *,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> OrganizationMemory:
        """Change these switches; None resets one to its default. For admins."""
        home = await self._runtime.organization_id(organization or by.organization_id)
        return await self._runtime.db.write(access.change_switches, by, home, changes)

    async def list(
        self,
        *,
        owner: str | None = None,
        space: SpaceRef | None = None,
        agent: AgentRef | None = None,
        organization: OrganizationRef | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> builtins.list[MemoryItem]:
        """The memories of one owner, of a space, of an agent alone, or of the organization, the newest first."""
        before, limit = optional_number_of(before, "before"), number_of(limit, "limit", 1)
        if owner is not None:
            return await self._runtime.db.read(items.owned, owner, before=before, limit=limit)
        if space is not None:
            return await self._read_space(space, items.learned_in, before=before, limit=limit)
        if agent is not None:
            return await self._read_agent(agent, items.of_agent, before=before, limit=limit)
        home = await self._runtime.organization_id(organization)
        return await self._runtime.db.read(items.all_of, home, before=before, limit=limit)

    async def search(self, query: str, owners: Iterable[str], *, limit: int = 20) -> builtins.list[FoundMemory]:
        """Search the memories of these owners, the best result first."""
        said, whose, most = text_of(query, "query"), listed(owners, "owners"), number_of(limit, "limit", 1)
        return await sinks.look(self._runtime.db, self._runtime.embedder, said, whose, most)

    async def report(self, *, organization: OrganizationRef | None = None) -> Report:
        """Duplicates, junk, unused memories and contradictions."""
        return await self._runtime.db.read(hygiene.report, await self._runtime.organization_id(organization))

    async def correct(
        self, memory: MemoryItem | str, text: str, *, by: EntityRef | Requester | None = None
    ) -> MemoryItem:
        """Replace the text of the memory. The old text is linked to the new one, and is no longer found.

        Raises `NotFound` where a `Requester` may not change it.
        """
        runtime, said = self._runtime, storable(text)
        vectors = await sinks.vectors_of(runtime.embedder, [said])
        what = Correction(said, vectors.get(said), "" if runtime.embedder is None else runtime.embedder.name)
        return await runtime.db.write(access.correct, _requester(by), id_of(memory), what)

    async def history(
        self, memory: MemoryItem | str, *, by: EntityRef | Requester | None = None
    ) -> builtins.list[MemoryVersion]:
        """The versions of the memory and of those that it is linked to, the oldest first."""
        return await self._runtime.db.read(access.history, _requester(by), id_of(memory))

    async def revert(
        self, memory: MemoryItem | str, version: MemoryVersion | str, *, by: EntityRef | Requester | None = None
    ) -> MemoryItem:
        """Let the text of an earlier version hold again. That is one more change: nothing is removed from the history.

        Raises `NotFound` where the version was forgotten.
        """
        return await self._runtime.db.write(access.revert, _requester(by), id_of(memory), id_of(version))

    async def forget(
        self, memory: MemoryItem | str, *, by: EntityRef | Requester | None = None, dry_run: bool = False
    ) -> Receipt:
        """Erase the memory and its copies; it is not learned again. The messages that it came from stay.

        For a `Requester`: as far as they may change it. Raises `NotFound` if they may not.
        """
        return await forget(self._runtime, dry_run, forgetting.forget_memory, _requester(by), id_of(memory))


def _requester(by: EntityRef | Requester | None) -> Requester:
    return by if isinstance(by, Requester) else Requester(Actor(optional_id_of(by)))
