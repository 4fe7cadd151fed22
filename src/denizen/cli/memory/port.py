"""What the commands need of what is remembered. A server is one way to it, the database of this machine the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from denizen.client.shapes.memories import Memory, MemoryReport


class Memories(Protocol):
    """What one may see of what a house remembers."""

    async def listed(self, scope: str | None, person: str | None, limit: int) -> list[Memory]:
        """Of this scope and this person, the newest first."""
        ...

    async def searched(self, query: str, scope: str | None, limit: int) -> list[Memory]:
        """What fits the question, the best first."""
        ...

    async def report(self) -> MemoryReport: ...

    async def find(self, memory_id: str) -> Memory | None:
        """The memory; None if it is not for one's eyes, or not there."""
        ...

    async def names(self, found: Iterable[Memory]) -> Mapping[str, str]:
        """What people call those whose memories these are, by their ids."""
        ...

    async def forget(self, memory_id: str, *, dry_run: bool) -> Mapping[str, int] | None:
        """How much was removed where; None: it is gone, and only admins are told how much that was."""
        ...


def parties(memory: Memory) -> Iterator[str]:
    """The ids of the people and agents whose memory it is; of a conversation's nobody's, nor of the organization's."""
    if memory.scope in ("user", "persona"):
        yield from (id for id in (memory.user_id, memory.agent_id) if id is not None)


def whose(memory: Memory, names: Mapping[str, str]) -> str:
    """Whose it is, for people."""
    match memory.scope:
        case "conversation":
            return f"of the conversation {names[memory.space_id]!r}"
        case "user":
            return f"of {names[memory.user_id or '']}"
        case "persona":
            return f"between {names[memory.user_id or '']} and {names[memory.agent_id or '']}"
        case _:
            return f"of the {memory.scope}"
