"""`denizen.people`: who talks to agents."""

from __future__ import annotations

import asyncio
from pathlib import Path

from denizen.access import entity_pictures, people
from denizen.access.requesters import THIS_PROCESS
from denizen.api.arguments import text_of
from denizen.api.forgetting import forget
from denizen.api.subject import EntityRef, OrganizationRef, PersonRef, Subject, id_of, optional_id_of
from denizen.forgetting import forgetting
from denizen.forgetting.receipts import Receipt
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.spaces.handles import handle_from


class People(Subject):
    """The people of an organization.

    ```python
    mira = await denizen.people.create("Mira", handle="mira")
    assert await denizen.people.find("mira") == mira
    ```
    """

    async def create(
        self, name: str, *, handle: str | None = None, organization: OrganizationRef | None = None
    ) -> Entity:
        """Create a person. Without a handle, one is made from the name. Raises `HandleTaken` where it is in use."""
        home = await self._runtime.organization_id(organization)
        chosen = handle_from(text_of(name, "name")) if handle is None else text_of(handle, "handle")
        return await self._runtime.db.write(directory.create_entity, home, "human", name=name, handle=chosen)

    async def find(self, handle: str, *, organization: OrganizationRef | None = None) -> Entity:
        """The person, agent or service with this handle. Raises `NotFound` where there is none."""
        home = await self._runtime.organization_id(organization)
        return await self._runtime.db.read(directory.find_entity, home, text_of(handle, "handle"))

    async def remove(self, person: PersonRef) -> None:
        """The person, or service, leaves all spaces, and their tokens end. Their messages stay, under their name."""
        await self._runtime.db.write(people.leave, id_of(person))

    async def set_picture(self, who: EntityRef, source: Path | bytes) -> None:
        """Give a person or an agent a picture; None of what a camera wrote into it is kept. It is made small.

        Raises `InvalidInput` if it is not a JPEG, PNG, GIF, WebP or AVIF file.
        """
        data = source if isinstance(source, bytes) else await asyncio.to_thread(source.read_bytes)
        await entity_pictures.change(self._runtime.db, THIS_PROCESS, id_of(who), data)

    async def remove_picture(self, who: EntityRef) -> None:
        """The person or agent no longer has a picture."""
        await self._runtime.db.write(entity_pictures.remove, THIS_PROCESS, id_of(who))

    async def forget(
        self,
        person: PersonRef,
        *,
        by: EntityRef | None = None,
        dry_run: bool = False,
        refuse_last_owner: bool = False,
    ) -> Receipt:
        """Erase everything the person said, their name, their memberships and their tokens.

        The last owner of an organization stays its owner, without a name; with `refuse_last_owner`, raises
        `InvalidInput` instead. A dry run changes nothing and returns what would be removed.

        ```python
        receipt = await denizen.people.forget(noor, dry_run=True)
        assert (await denizen.people.find("noor")).name == "Noor"
        ```
        """
        who, asked_by = id_of(person), optional_id_of(by)
        return await forget(
            self._runtime, dry_run, forgetting.forget_person, who, asked_by, refuse_last_owner=refuse_last_owner
        )
