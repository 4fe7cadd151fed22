"""`denizen.secrets`: keys that are kept encrypted, for models and tools."""

from __future__ import annotations

import asyncio
import builtins

from denizen.access import audit, secrets
from denizen.access.audit import OPERATOR, Actor
from denizen.access.secrets import Secret, SecretLocation
from denizen.api.subject import OrganizationRef, PersonRef, Subject, id_of
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx


class Secrets(Subject):
    """The secrets of an organization and of its people. Their values cannot be read back.

    ```python
    await denizen.secrets.set("WEATHER_KEY", "a-key-of-our-own")
    assert [each.name for each in await denizen.secrets.list()] == ["WEATHER_KEY"]
    await denizen.secrets.delete("WEATHER_KEY")
    ```
    """

    async def set(
        self,
        name: str,
        value: str,
        *,
        person: PersonRef | None = None,
        organization: OrganizationRef | None = None,
        by: Actor = OPERATOR,
    ) -> Secret:
        """Keep a secret of the organization, or a person's own, instead of one of that name."""
        place = await self._place(secrets.check_name(name), person, organization)
        sealed = await asyncio.to_thread(self._runtime.vault.seal, secrets.check_value(value), place.purpose)
        return await self._runtime.db.write(_put_secret, place, sealed, secrets.hint(value), by)

    async def list(self, *, organization: OrganizationRef | None = None) -> builtins.list[Secret]:
        """The secrets of the organization and of its people, without their values."""
        return await self._runtime.db.read(secrets.secrets_of, await self._runtime.organization_id(organization))

    async def delete(
        self,
        name: str,
        *,
        person: PersonRef | None = None,
        organization: OrganizationRef | None = None,
        by: Actor = OPERATOR,
    ) -> None:
        """Delete a secret of the organization, or a person's own. Raises `NotFound` where there is none."""
        await self._runtime.db.write(_remove_secret, await self._place(name, person, organization), by)

    async def _place(self, name: str, person: PersonRef | None, organization: OrganizationRef | None) -> SecretLocation:
        if isinstance(person, Entity) and organization is None:
            return SecretLocation(person.organization_id, name, person.id)
        home = await self._runtime.organization_id(organization)
        return SecretLocation(home, name, None if person is None else id_of(person))


def _put_secret(tx: Tx, place: SecretLocation, sealed: str, hint: str, by: Actor) -> Secret:
    _record(tx, place, by, "set_key")
    return secrets.put(tx, place, sealed, hint)


def _remove_secret(tx: Tx, place: SecretLocation, by: Actor) -> None:
    secrets.remove(tx, place)
    _record(tx, place, by, "delete_key")


def _record(tx: Tx, place: SecretLocation, by: Actor, action: str) -> None:
    whose = "organization" if place.owner_id is None else "own"
    audit.record(tx, place.organization_id, by, action, place.owner_id, name=place.name, whose=whose)
