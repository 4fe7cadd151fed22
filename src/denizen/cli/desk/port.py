"""What the commands that look after a house need of it. A `Client` is one way to it, the database itself the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from denizen.client import Agent, AgentDetail, Entity, Me, Member, Message, Space
from denizen.client.shapes.answers import Accepted
from denizen.client.shapes.custody import (
    Applied,
    AuditPage,
    Imported,
    Key,
    Login,
    NewToken,
    NewWebhook,
    Opening,
    Receipt,
    Token,
    Webhook,
)
from denizen.client.shapes.minds import AnswerAgain, Mind, Request
from denizen.client.shapes.stances import Signals, Stance, Standing, StatesOfMind, TriedMetaprompt


class Desk(Protocol):
    """One person's way to a house. Agents and whoever else is in it are named by id or by `@handle`."""

    @property
    def url(self) -> str:
        """Where the house is reached."""
        ...

    async def me(self) -> Me: ...

    async def agents(self) -> list[Agent]: ...

    async def agent(self, agent: str) -> AgentDetail: ...

    async def create_agent(self, name: str, fields: Mapping[str, JsonValue] | None = None) -> AgentDetail: ...

    async def edit_agent(self, agent: str, changes: Mapping[str, JsonValue]) -> AgentDetail: ...

    async def suspend_agent(self, agent: str) -> Agent: ...

    async def resume_agent(self, agent: str) -> Agent: ...

    async def try_again(self, agent: str, *, space: str | None = None) -> Agent: ...

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

    async def fork_agent(
        self, agent: str, handle: str | None = None, *, name: str | None = None, at: int | None = None
    ) -> AgentDetail: ...

    async def mind(self, agent: str) -> Mind: ...

    async def replay(self, agent: str, cycle: int, *, step: int | None = None) -> list[Request]: ...

    async def rethink(self, agent: str, cycle: int, model: str, *, step: int | None = None) -> list[AnswerAgain]: ...

    async def stances(self, agent: str) -> list[Standing]: ...

    async def stance(self, agent: str, space_id: str) -> Stance: ...

    async def set_stance_settings(self, agent: str, space_id: str, settings: Mapping[str, JsonValue]) -> Stance: ...

    async def set_state_of_mind(self, agent: str, space_id: str, **state: str) -> Stance: ...

    async def reset_state_of_mind(self, agent: str, space_id: str) -> None: ...

    async def states_of_mind(self, agent: str, space_id: str, *, limit: int = 50) -> StatesOfMind: ...

    async def signals(self, agent: str, space_id: str, *, limit: int = 50) -> Signals: ...

    async def try_metaprompt(
        self, agent: str, space_id: str, metaprompt: str, *, apply: bool = False
    ) -> TriedMetaprompt: ...

    async def spaces(self) -> list[Space]: ...

    async def spaces_named(self, name: str) -> list[Space]: ...

    async def space(self, space_id: str) -> Space: ...

    async def create_space(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        private: bool = False,
        floor: str | None = None,
        agent_run_limit: int | None = None,
    ) -> Space: ...

    async def change_space(
        self,
        space_id: str,
        *,
        name: str | None = None,
        private: bool | None = None,
        floor: str | None = None,
        agent_run_limit: int | None = None,
    ) -> Space: ...

    async def let_agents_go_on(self, space_id: str) -> Space: ...

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

    async def message(self, message_id: str) -> Message: ...

    async def post(self, space_id: str, text: str, *, key: str | None = None, **more: JsonValue) -> Message: ...

    async def entity(self, entity: str) -> Entity: ...

    async def forget(self, kind: str, id: str, *, also_replies: bool = False, dry_run: bool = False) -> Receipt: ...

    async def keys(self) -> list[Key]: ...

    async def set_key(self, name: str, value: str, *, whose: str = "organization") -> Key: ...

    async def delete_key(self, name: str, *, whose: str = "organization") -> None: ...

    async def tokens(self, entity: str | None = None, *, everyone: bool = False) -> list[Token]: ...

    async def create_token(
        self,
        name: str,
        *,
        entity: str | None = None,
        role: str | None = None,
        expires_at: datetime | None = None,
    ) -> NewToken: ...

    async def rotate_token(self, token_id: str) -> NewToken: ...

    async def revoke_token(self, token_id: str) -> None: ...

    async def create_login(self, entity: str | None = None) -> Login: ...

    async def webhooks(self, agent: str) -> list[Webhook]: ...

    async def create_webhook(
        self, agent: str, name: str, *, scheme: str = "generic", secret: str | None = None, urgent: bool = False
    ) -> NewWebhook: ...

    async def revoke_webhook(self, webhook_id: str) -> None: ...

    async def apply(
        self, documents: Iterable[tuple[str, Mapping[str, JsonValue]]], *, dry_run: bool = False
    ) -> Applied: ...

    async def document(self, agent: str) -> Mapping[str, JsonValue]: ...

    async def audit(
        self,
        *,
        by: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> AuditPage: ...

    async def open_private_space(self, space_id: str, reason: str) -> Opening: ...

    def export_agent(self, agent: str) -> AsyncGenerator[str]: ...

    def export_space(self, space_id: str) -> AsyncGenerator[str]: ...

    async def import_file(self, path: Path, *, handle: str | None = None, name: str | None = None) -> Imported: ...
