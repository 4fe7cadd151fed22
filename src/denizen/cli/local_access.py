"""Tokens, login links and keys in the database of this home, for its operator: without a server or a token."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import cast

from denizen.access import token_changes, tokens
from denizen.access.audit import OPERATOR
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.secrets import Secret
from denizen.app import Runtime
from denizen.cli.home import open_records
from denizen.clock import instant, moment
from denizen.ids import EntityId, OrganizationId
from denizen.server.shapes.access import key_out, known_token_out, listed_token_out
from denizen.settings.shape import Settings
from denizen.shapes.access import KeyOut, ListedToken, LoginCreated, TokenCreated
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx


class LocalAccess:
    """The part of `Client` for tokens, login links and keys, on the database. Access to the database is enough for
    everything.
    """

    def __init__(self, runtime: Runtime, owner: Entity) -> None:
        self._runtime = runtime
        self._owner = owner
        self._home = owner.organization_id
        self._by = Requester(OPERATOR, self._home, acts_as=owner.id)

    @property
    def handle(self) -> str:
        """The handle of the owner, as whom everything is done."""
        return self._owner.handle

    async def keys(self) -> list[KeyOut]:
        found = await self._runtime.secrets.list(organization=self._home)
        names = await self._runtime.db.read(_names, self._home)
        return [self._key(each, names) for each in found]

    async def set_key(self, name: str, value: str, *, whose: str = "organization") -> KeyOut:
        person = await self._whose(whose)
        kept = await self._runtime.secrets.set(name, value, person=person, organization=self._home)
        return self._key(kept, {} if person is None else {person.id: person.handle})

    async def delete_key(self, name: str, *, whose: str = "organization") -> None:
        await self._runtime.secrets.delete(name, person=await self._whose(whose), organization=self._home)

    async def _whose(self, whose: str) -> Entity | None:
        if whose == "organization":
            return None
        return self._owner if whose == "me" else await self._runtime.people.find(whose, organization=self._home)

    def _key(self, secret: Secret, names: Mapping[EntityId, str]) -> KeyOut:
        """Unlike a server, the database shows everyone's keys."""
        key = key_out(secret)
        owner = secret.owner_id
        return key if owner in (None, self._owner.id) else key.model_copy(update={"whose": f"@{names[owner]}"})

    async def tokens(self, entity: str | None = None, *, everyone: bool = False) -> list[ListedToken]:
        found = await self._runtime.db.read(token_changes.list_tokens, self._by, entity, everyone=everyone)
        return [listed_token_out(each, owner.handle) for each, owner in found]

    async def create_token(
        self,
        name: str,
        *,
        entity: str | None = None,
        role: str | None = None,
        expires_at: datetime | None = None,
        speaks_for_others: bool = False,
    ) -> TokenCreated:
        made = await self._runtime.db.write(
            token_changes.create,
            self._by,
            name,
            entity=entity,
            role=cast("Role | None", role),
            expires_at=None if expires_at is None else instant(expires_at),
            speaks_for_others=speaks_for_others,
        )
        return _new_token(*made)

    async def rotate_token(self, token_id: str) -> TokenCreated:
        return _new_token(*await self._runtime.db.write(token_changes.rotate, self._by, token_id))

    async def revoke_token(self, token_id: str) -> None:
        await self._runtime.db.write(token_changes.revoke, self._by, token_id)

    async def create_login(self, entity: str | None = None) -> LoginCreated:
        login, secret = await self._runtime.db.write(token_changes.create_login, self._by, entity)
        assert login.expires_at is not None
        url = tokens.login_url(self._runtime.public_url, secret)
        return LoginCreated(url=url, secret=secret, expires_at=moment(login.expires_at))


@asynccontextmanager
async def open_local_access(settings: Settings) -> AsyncGenerator[LocalAccess]:
    """Opens the database of this home inside the block."""
    async with open_records(settings) as (runtime, world):
        yield LocalAccess(runtime, world.owner)


def _names(tx: Tx, home: OrganizationId) -> dict[EntityId, str]:
    return {each.id: each.handle for each in directory.list_entities(tx, home, also_left=True)}


def _new_token(token: tokens.Token, secret: str) -> TokenCreated:
    return TokenCreated(token=known_token_out(token), secret=secret)
