"""What is remembered, by way of a server: as much of it as the one may see for whom the token stands.

That is what is remembered of them, between them and agents (for admins: between agents and anyone), for everyone, and
of the conversations they are in. The server has one question for each of these; they are put together here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import chain, zip_longest
from typing import Final

from denizen.cli.memory.port import parties
from denizen.client import Client
from denizen.client.shapes.memories import Memories, Memory, MemoryReport
from denizen.errors import InvalidInput, RequestRefused

_PAGE: Final = 200
"""As many as a server gives at once."""

Ask = Callable[..., Awaitable[Memories]]
"""One question to the server, that can be asked on with `before`."""


class RemoteMemories:
    """What one may see of what the house of a server remembers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def listed(self, scope: str | None, person: str | None, limit: int) -> list[Memory]:
        user = None if person is None else (await self._client.entity(_handle(person))).id
        pages = [await _first(ask, user, limit) for ask in await self._questions(scope)]
        return sorted(chain(*pages), key=lambda each: each.created_at, reverse=True)[:limit]

    async def _questions(self, scope: str | None) -> list[Ask]:
        client, plain = self._client, [each for each in ("user", "organization") if scope in (None, each)]
        found: list[Ask] = [partial(client.memories, each) for each in plain]
        if scope in (None, "persona"):
            found += [partial(client.agent_memories, each.id) for each in await client.agents()]
        if scope in (None, "conversation"):
            found += [partial(client.conversation_memories, each.id) for each in await client.spaces()]
        return found

    async def searched(self, query: str, scope: str | None, limit: int) -> list[Memory]:
        """The best of each scope first: a server does not say how well something fits."""
        if scope == "conversation":
            raise InvalidInput(
                "No server searches what is of conversations: `denizen memory list --scope conversation` lists it."
            )
        ask = partial(self._client.memories, query=query, limit=min(limit, _PAGE))
        pages = [(await ask(each)).memories for each in ("user", "organization") if scope in (None, each)]
        if scope in (None, "persona"):
            pages += [(await ask("persona", agent=each.id)).memories for each in await self._client.agents()]
        by_rank = chain(*zip_longest(*pages))
        return [each for each in by_rank if each is not None][:limit]

    async def report(self) -> MemoryReport:
        return await self._client.memory_report()

    async def find(self, memory_id: str) -> Memory | None:
        try:
            return await self._client.memory(memory_id)
        except RequestRefused as refused:
            if refused.problem != "not_found":
                raise
            return None

    async def names(self, found: Iterable[Memory]) -> Mapping[str, str]:
        names: dict[str, str] = {}
        for each in found:
            for id in parties(each):
                if id not in names:
                    names[id] = f"@{(await self._client.entity(id)).handle}"
            if each.scope == "conversation" and each.space_id not in names:
                names[each.space_id] = (await self._client.space(each.space_id)).name
        return names

    async def forget(self, memory_id: str, *, dry_run: bool) -> Mapping[str, int] | None:
        try:
            return (await self._client.forget("memory", memory_id, dry_run=dry_run)).removed
        except RequestRefused as refused:
            if refused.problem != "not_allowed" or dry_run:
                raise
        # Who is no admin may still forget what is remembered of them.
        await self._client.forget_memory(memory_id)
        return None


async def _first(ask: Ask, user: str | None, limit: int) -> list[Memory]:
    """So many of what the server answers, and only of this user."""
    found: list[Memory] = []
    before: str | None = ""
    while before is not None and len(found) < limit:
        page = await ask(before=before or None, limit=_PAGE)
        found += [each for each in page.memories if user in (None, each.user_id)]
        before = page.next
    return found[:limit]


def _handle(named: str) -> str:
    return named if named.startswith("@") else f"@{named}"
