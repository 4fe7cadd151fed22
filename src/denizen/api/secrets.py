"""`denizen.secrets`: keys that are kept encrypted, for models and tools."""

from __future__ import annotations

import asyncio
import builtins

from denizen.access import secret_changes, secrets
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.access.secrets import Secret, SecretLocation
from denizen.api.subject import OrganizationRef, PersonRef, Subject, id_of
from denizen.spaces.directory import Entity


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
        by: Requester = THIS_PROCESS,
    ) -> Secret:
        """Keep a secret of the organization, or a person's own, instead of one of that name."""
        place = await self._place(secrets.check_name(name), person, organization)
        sealed = await asyncio.to_thread(self._runtime.vault.seal, secrets.check_value(value), place.purpose)
        return await self._runtime.db.write(secret_changes.put, by, place, sealed, secrets.hint(value))

    async def list(
        self, *, organization: OrganizationRef | None = None, by: Requester = THIS_PROCESS
    ) -> builtins.list[Secret]:
        """The secrets of the organization and of its people, without their values."""
        home = await self._runtime.organization_id(organization)
        return await self._runtime.db.read(secret_changes.visible, by, home)

    async def delete(
        self,
        name: str,
        *,
        person: PersonRef | None = None,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> None:
        """Delete a secret of the organization, or a person's own. Raises `NotFound` where there is none."""
        await self._runtime.db.write(secret_changes.remove, by, await self._place(name, person, organization))

    async def _place(self, name: str, person: PersonRef | None, organization: OrganizationRef | None) -> SecretLocation:
        if isinstance(person, Entity) and organization is None:
            return SecretLocation(person.organization_id, name, person.id)
        home = await self._runtime.organization_id(organization)
        return SecretLocation(home, name, None if person is None else id_of(person))
