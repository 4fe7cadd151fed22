"""What a house keeps for people: secrets, files that leave it, and that what shall be forgotten is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from denizen.access import audit, secrets
from denizen.access.audit import OPERATOR, Actor
from denizen.access.secrets import Place, Secret
from denizen.agents.registry import Agent
from denizen.agents.restrictions import Author
from denizen.api.wiring import Who, Wiring, id_of
from denizen.forgetting import forgetting
from denizen.forgetting.erasing import empty_write_ahead_log
from denizen.forgetting.forgetting import Receipt, Rehearsed
from denizen.ids import AgentId, EntityId, MessageId, OrganizationId, SpaceId
from denizen.memory.access import Visitor
from denizen.memory.items import Remembered
from denizen.portability import exporting, importing
from denizen.portability.imported import Imported
from denizen.spaces.directory import Entity, Organization, Space
from denizen.spaces.posting import Message, Posted
from denizen.storage.database import Tx


class Administration(Wiring):
    """Forgetting, secrets, export and import."""

    async def forget_message(
        self,
        message: Message | Posted | MessageId,
        *,
        by: Who | EntityId | None = None,
        also_replies: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """The message is gone from everything that is kept; with `also_replies`, so is what agents answered it.

        With `dry_run` nothing is: the receipt, which is not kept, says how much would be.
        """
        return await self._forget(forgetting.forget_message, id_of(message), by, dry_run, also_replies=also_replies)

    async def forget_person(
        self,
        person: Entity | EntityId,
        *,
        by: Who | EntityId | None = None,
        dry_run: bool = False,
        refuse_last_owner: bool = False,
    ) -> Receipt:
        """Everything the person said is gone, and so are their name, their memberships and their tokens.

        The last owner of an organization stays its owner, without a name; with `refuse_last_owner` it is not forgotten.
        """
        refuse = {"refuse_last_owner": refuse_last_owner}
        return await self._forget(forgetting.forget_person, id_of(person), by, dry_run, **refuse)

    async def forget_space(
        self, space: Space | SpaceId, *, by: Who | EntityId | None = None, dry_run: bool = False
    ) -> Receipt:
        """Everything said in the space is gone, and so are its name and its members."""
        return await self._forget(forgetting.forget_space, id_of(space), by, dry_run)

    async def forget_memory(
        self,
        memory: Remembered | str,
        *,
        by: Who | EntityId | None = None,
        visitor: Visitor | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """The memory is gone, whoever else has it, and does not come again. The messages it rests on stay.

        For a `visitor`: as far as they may change it. Raises `NotFound` if they may not.
        """
        return await self._forget(forgetting.forget_memory, id_of(memory), by, dry_run, visitor=visitor)

    async def receipts(self, *, organization: Organization | OrganizationId | None = None) -> list[Receipt]:
        """What was forgotten, the oldest first: how much was removed where, never what it said."""
        return await self.db.read(forgetting.receipts, await self._organization(organization))

    async def _forget(
        self, forget: Callable[..., Receipt], subject: str, by: Who | EntityId | None, dry_run: bool, **options: Any
    ) -> Receipt:
        who = None if by is None else id_of(by)
        if dry_run:
            try:
                return await self.db.write(forgetting.rehearse, forget, subject, who, **options)
            except Rehearsed as rehearsed:
                return rehearsed.receipt
        receipt = await self.db.write(forget, subject, who, **options)
        await empty_write_ahead_log(self._database_url)
        return receipt

    async def set_secret(
        self,
        name: str,
        value: str,
        *,
        person: Entity | EntityId | None = None,
        organization: Organization | OrganizationId | None = None,
        by: Actor = OPERATOR,
    ) -> Secret:
        """The secret is kept, instead of one of that name that was: the organization's, or a person's own."""
        place = await self._place(secrets.check_name(name), person, organization)
        sealed = await asyncio.to_thread(self.vault.seal, secrets.check_value(value), place.purpose)
        return await self.db.write(_put_secret, place, sealed, secrets.hint(value), by)

    async def secrets(self, *, organization: Organization | OrganizationId | None = None) -> list[Secret]:
        """The secrets of the organization and of its people, without their values."""
        return await self.db.read(secrets.secrets_of, await self._organization(organization))

    async def delete_secret(
        self,
        name: str,
        *,
        person: Entity | EntityId | None = None,
        organization: Organization | OrganizationId | None = None,
        by: Actor = OPERATOR,
    ) -> None:
        await self.db.write(_remove_secret, await self._place(name, person, organization), by)

    async def _place(
        self,
        name: str,
        person: Entity | EntityId | None,
        organization: Organization | OrganizationId | None,
    ) -> Place:
        if isinstance(person, Entity) and organization is None:
            return Place(person.organization_id, name, person.id)
        return Place(await self._organization(organization), name, None if person is None else id_of(person))

    def export_agent(self, agent: Agent | AgentId, *, reader: Entity | EntityId | None = None) -> AsyncGenerator[str]:
        """The lines of a file that holds the agent with its whole life. Secrets are not in it.

        For a `reader`, what comes from private spaces that they are not in is left out.
        """
        return exporting.agent_lines(self.db, id_of(agent), None if reader is None else id_of(reader))

    def export_space(self, space: Space | SpaceId) -> AsyncGenerator[str]:
        """The lines of a file that holds the space with everything that was said in it."""
        return exporting.space_lines(self.db, id_of(space))

    async def import_file(
        self,
        path: Path,
        *,
        handle: str | None = None,
        name: str | None = None,
        organization: Organization | OrganizationId | None = None,
        author: Author | None = None,
        by: Actor = OPERATOR,
    ) -> Imported:
        """What the file holds is here, all of it or, with an error, nothing. An agent is suspended until resumed.

        With an `author`, raises `NotAllowed` if that person may not define such an agent.
        """
        home = await self._organization(organization)
        policy = self.definition_policy(author)
        made = await importing.take_in(self.db, policy, home, path, handle=handle, name=name, by=by)
        if made.kind != "agent":
            return made
        # Not refused: a file of another house cannot be changed. The agent is parked when it is to think.
        agent = await self.get_agent(AgentId(made.id))
        unpriced = await self._equipment().models_without_price(agent)
        return replace(made, unpriced=tuple(unpriced))


def _put_secret(tx: Tx, place: Place, sealed: str, hint: str, by: Actor) -> Secret:
    _record(tx, place, by, "set_key")
    return secrets.put(tx, place, sealed, hint)


def _remove_secret(tx: Tx, place: Place, by: Actor) -> None:
    secrets.remove(tx, place)
    _record(tx, place, by, "delete_key")


def _record(tx: Tx, place: Place, by: Actor, action: str) -> None:
    whose = "organization" if place.owner_id is None else "own"
    audit.record(tx, place.organization_id, by, action, place.owner_id, name=place.name, whose=whose)
