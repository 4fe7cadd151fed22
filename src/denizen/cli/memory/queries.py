"""Collects the memories that the caller may see from the queries that the API supports.

Those are the memories about the caller, between the caller and agents (for admins: between agents and anyone), of the
organization, and of the caller's conversations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, zip_longest
from typing import Final

from denizen.client import Client
from denizen.errors import RequestRefused
from denizen.shapes.memory import MemoryHistory, MemoryOut, MemoryPage

_PAGE: Final = 200
"""The largest page of a server."""
_PLAIN: Final = ("user", "organization", "conversation")
"""Scopes that need one query only."""

Ask = Callable[..., Awaitable[MemoryPage]]
"""One query to the server, which can be continued with `before`."""


async def list_memories(client: Client, scope: str | None, person: str | None, limit: int) -> list[MemoryOut]:
    """Returns the memories of this scope and this person, newest first."""
    user = None if person is None else (await client.entity(person)).id
    questions: list[Ask] = [partial(client.memories, each) for each in _PLAIN if scope in (None, each)]
    if scope in (None, "persona"):
        questions += [partial(client.agent_memories, each.id) for each in await client.agents()]
    pages = [await _first(ask, user, limit) for ask in questions]
    return sorted(chain(*pages), key=lambda each: each.created_at, reverse=True)[:limit]


async def search_memories(client: Client, query: str, scope: str | None, limit: int) -> list[MemoryOut]:
    """Returns the best of each scope first: a server does not return scores."""
    ask = partial(client.memories, query=query, limit=min(limit, _PAGE))
    pages = [(await ask(each)).memories for each in _PLAIN if scope in (None, each)]
    if scope in (None, "persona"):
        pages += [(await ask("persona", agent=each.id)).memories for each in await client.agents()]
    by_rank = chain(*zip_longest(*pages))
    return [each for each in by_rank if each is not None][:limit]


async def find_memory(client: Client, memory_id: str) -> MemoryOut | None:
    """Returns the memory; None if the caller may not see it, or it does not exist."""
    try:
        return await client.memory(memory_id)
    except RequestRefused as refused:
        if refused.problem != "not_found":
            raise
        return None


async def names_in(client: Client, found: Iterable[MemoryOut]) -> Mapping[str, str]:
    """Returns the names of the owners of these memories, by their ids."""
    names: dict[str, str] = {}
    for each in found:
        for id in parties(each):
            if id not in names:
                names[id] = f"@{(await client.entity(id)).handle}"
        if each.scope == "conversation" and each.space_id not in names:
            names[each.space_id] = (await client.space(each.space_id)).name
    return names


async def names_of_authors(client: Client, history: MemoryHistory) -> Mapping[str, str]:
    """Returns the names of the people who changed the memory, by their ids; without those who are gone."""
    names: dict[str, str] = {}
    for id in dict.fromkeys(each.by_id for each in history.versions if each.by_id is not None):
        try:
            names[id] = f"@{(await client.entity(id)).handle}"
        except RequestRefused as refused:
            if refused.problem != "not_found":
                raise
    return names


async def forget_memory(client: Client, memory_id: str, *, dry_run: bool) -> Mapping[str, int] | None:
    """Forgets the memory; returns how much was removed where, or None: only admins are told."""
    try:
        return (await client.forget("memory", memory_id, dry_run=dry_run)).removed
    except RequestRefused as refused:
        if refused.problem != "not_allowed" or dry_run:
            raise
    # Those who are not admins may still forget memories about themselves.
    await client.forget_memory(memory_id)
    return None


def parties(memory: MemoryOut) -> Iterator[str]:
    """Yields the ids of the people and agents that own it; none for a conversation's or the organization's."""
    if memory.scope in ("user", "persona"):
        yield from (id for id in (memory.user_id, memory.agent_id) if id is not None)


def whose(memory: MemoryOut, names: Mapping[str, str]) -> str:
    """Returns the owner, for people."""
    match memory.scope:
        case "conversation":
            return f"of the conversation {names[memory.space_id]!r}"
        case "user":
            return f"of {names[memory.user_id or '']}"
        case "persona":
            return f"between {names[memory.user_id or '']} and {names[memory.agent_id or '']}"
        case _:
            return f"of the {memory.scope}"


async def _first(ask: Ask, user: str | None, limit: int) -> list[MemoryOut]:
    """Returns so many of the server's results, only those of this user."""
    found: list[MemoryOut] = []
    before: str | None = ""
    while before is not None and len(found) < limit:
        page = await ask(before=before or None, limit=_PAGE)
        found += [each for each in page.memories if user in (None, each.user_id)]
        before = page.next
    return found[:limit]
