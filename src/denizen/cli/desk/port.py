"""What the commands that look after a house need of it. A `Client` is one way to it, the database itself the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from pydantic import JsonValue

from denizen.client import Agent, AgentDetail, Me, Member, Message, Space
from denizen.client.shapes import Accepted


class Desk(Protocol):
    """One person's way to the agents and spaces of a house. Agents and members are named by id or by `@handle`."""

    async def me(self) -> Me: ...

    async def agents(self) -> list[Agent]: ...

    async def agent(self, agent: str) -> AgentDetail: ...

    async def create_agent(self, name: str, fields: Mapping[str, JsonValue] | None = None) -> AgentDetail: ...

    async def edit_agent(self, agent: str, changes: Mapping[str, JsonValue]) -> AgentDetail: ...

    async def suspend_agent(self, agent: str) -> Agent: ...

    async def resume_agent(self, agent: str) -> Agent: ...

    async def delete_agent(self, agent: str) -> None: ...

    async def trigger(
        self,
        agent: str,
        service: str,
        text: str = "",
        *,
        data: JsonValue = None,
        id: str | None = None,
        urgent: bool = False,
    ) -> Accepted: ...

    async def spaces(self) -> list[Space]: ...

    async def space(self, space_id: str) -> Space: ...

    async def create_space(self, name: str, members: Iterable[str] = (), *, private: bool = False) -> Space: ...

    async def change_space(self, space_id: str, *, name: str | None = None, private: bool | None = None) -> Space: ...

    async def add_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> Member: ...

    async def change_member(
        self, space_id: str, entity: str, *, attention: str | None = None, role: str | None = None
    ) -> Member: ...

    async def remove_member(self, space_id: str, entity: str) -> None: ...

    async def messages(
        self, space_id: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Message]: ...

    async def post(self, space_id: str, text: str, *, key: str | None = None, **more: JsonValue) -> Message: ...
