"""Summaries of conversations and long-term memories, over HTTP."""

from __future__ import annotations

from pydantic import JsonValue

from denizen.client.connection import Connection, path_to, those_given
from denizen.shapes.memory import (
    ConversationMemory,
    MemoryHistory,
    MemoryOut,
    MemoryPage,
    OrganizationMemoryOut,
    ReportOut,
)


class Memories(Connection):
    """Summaries of conversations, and memories."""

    async def memories(
        self,
        scope: str = "user",
        *,
        agent: str | None = None,
        query: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> MemoryPage:
        """Returns memories about the caller (`user`), between the caller and an agent (`persona`), of the organization
        (`organization`), or of the caller's conversations (`conversation`).
        """
        asked = those_given(scope=scope, agent=agent, q=query, before=before, limit=limit)
        return await self._ask(MemoryPage, "GET", "/api/memory", params=asked)

    async def memory(self, memory_id: str) -> MemoryOut:
        return await self._ask(MemoryOut, "GET", path_to("memory", memory_id))

    async def correct_memory(self, memory_id: str, text: str) -> MemoryOut:
        """Corrects the text of the memory."""
        return await self._ask(MemoryOut, "PATCH", path_to("memory", memory_id), json={"text": text})

    async def memory_history(self, memory_id: str) -> MemoryHistory:
        """Returns the versions of the memory, the oldest first."""
        return await self._ask(MemoryHistory, "GET", path_to("memory", memory_id, "history"))

    async def revert_memory(self, memory_id: str, version: str) -> MemoryOut:
        """Lets the text of the version with this id hold again."""
        return await self._ask(MemoryOut, "POST", path_to("memory", memory_id, "revert"), json={"version": version})

    async def forget_memory(self, memory_id: str) -> None:
        """Forgets the memory and its copies permanently."""
        await self._tell("DELETE", path_to("memory", memory_id))

    async def memory_report(self) -> ReportOut:
        return await self._ask(ReportOut, "GET", "/api/memory/report")

    async def conversation_memory(self, space_id: str) -> ConversationMemory:
        return await self._ask(ConversationMemory, "GET", path_to("spaces", space_id, "memory"))

    async def set_memory_policy(self, space_id: str, **policy: JsonValue) -> ConversationMemory:
        """Sets what may be remembered of a conversation: `enabled`, `scopes`, `share_with_organization`."""
        return await self._ask(ConversationMemory, "PATCH", path_to("spaces", space_id, "memory"), json=policy)

    async def conversation_memories(self, space_id: str, *, before: str | None = None, limit: int = 50) -> MemoryPage:
        asked = those_given(before=before, limit=limit)
        return await self._ask(MemoryPage, "GET", path_to("spaces", space_id, "memories"), params=asked)

    async def agent_memories(self, agent: str, *, before: str | None = None, limit: int = 50) -> MemoryPage:
        """Returns the memories between an agent and the caller; for admins, between the agent and anyone."""
        asked = those_given(before=before, limit=limit)
        return await self._ask(MemoryPage, "GET", path_to("agents", agent, "memories"), params=asked)

    async def organization_memory(self) -> OrganizationMemoryOut:
        return await self._ask(OrganizationMemoryOut, "GET", "/api/organization/memory")

    async def change_organization_memory(self, **changes: JsonValue) -> OrganizationMemoryOut:
        return await self._ask(OrganizationMemoryOut, "PATCH", "/api/organization/memory", json=changes)
