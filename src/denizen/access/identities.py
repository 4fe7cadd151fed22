"""Links between people and an identity provider: an issuer and subject is one person here, in one organization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Final

from sqlalchemy import bindparam, delete, select

from denizen.access import tokens
from denizen.clock import Instant
from denizen.errors import HandleTaken, InvalidInput, NotFound
from denizen.ids import EntityId, OrganizationId
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.spaces.handles import MAX_HANDLE_CHARS, check_name, handle_from
from denizen.storage.database import Tx, insert_ignore, select_where, statement, storable
from denizen.storage.schema import identities

SUBJECT_CHARACTERS: Final = 255
"""The limit of OpenID Connect."""
_TRIED_HANDLES: Final = 50
OF_TOKENS: Final = "token:"
"""The beginning of issuers that are tokens of ours which speak for others: nobody signs in with those."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The person behind a subject of an issuer."""

    issuer: str
    subject: str
    entity_id: EntityId
    created_at: Instant


_identity = (identities.c.issuer, identities.c.subject, identities.c.entity_id, identities.c.created_at)
_at = (identities.c.issuer == bindparam("by"), identities.c.subject == bindparam("as_whom"))
_find = statement(select(*_identity).where(*_at))
_of = select_where(identities, _identity, "entity_id", order_by="issuer, subject")
_add = insert_ignore(identities)
_delete = statement(delete(identities).where(*_at, identities.c.entity_id == bindparam("entity")))


def find(tx: Tx, issuer: str, subject: str) -> Identity | None:
    row = tx.one(_find, by=storable(issuer), as_whom=storable(subject))
    return None if row is None else Identity(*row)


def identities_of(tx: Tx, entity_id: EntityId) -> list[Identity]:
    return [Identity(*row) for row in tx.all(_of, entity_id=entity_id)]


def link(tx: Tx, entity_id: EntityId, issuer: str, subject: str) -> Identity:
    """Link this subject of the issuer to that person. Idempotent."""
    if directory.get_entity(tx, entity_id).kind != "human":
        raise InvalidInput("Only people have identities: agents and services have access tokens.")
    if not subject or len(subject) > SUBJECT_CHARACTERS or storable(subject) != subject:
        raise InvalidInput(f"A subject is a text of 1 to {SUBJECT_CHARACTERS} characters, as the issuer writes it.")
    tx.run(_add, issuer=issuer, subject=subject, entity_id=entity_id, created_at=tx.now)
    kept = find(tx, issuer, subject)
    if kept is None or kept.entity_id != entity_id:
        raise InvalidInput("This subject is already linked to someone else. Unlink it there first.")
    return kept


def unlink(tx: Tx, entity_id: EntityId, issuer: str, subject: str) -> None:
    """Unlink this subject from that person: its tokens, and sessions opened with them, are no longer valid."""
    if tx.run(_delete, by=storable(issuer), as_whom=storable(subject), entity=entity_id) == 0:
        raise NotFound("identity", subject)
    if not issuer.startswith(OF_TOKENS):
        tokens.revoke_foreign(tx, entity_id)


def create_person(
    tx: Tx, organization_id: OrganizationId | None, issuer: str, subject: str, name: str, handle: str
) -> Entity:
    """Create a member for this subject, under a handle like the given one; or return the person linked to it."""
    known = find(tx, issuer, subject)
    if known is not None:
        return directory.get_entity(tx, known.entity_id)
    home = organization_id or _only_organization(tx)
    person = _create(tx, home, check_name(name), handle_from(handle))
    link(tx, person.id, issuer, subject)
    return person


def _create(tx: Tx, home: OrganizationId, name: str, handle: str) -> Entity:
    taken = {each.handle for each in directory.list_entities(tx, home)}
    for wanted in islice(_handles(handle), _TRIED_HANDLES):
        if wanted not in taken:
            return directory.create_entity(tx, home, "human", name=name, handle=wanted)
    raise HandleTaken(f"The handle @{handle} and similar ones are taken. An admin has to create this person.")


def _handles(wanted: str) -> Iterator[str]:
    """The wanted handle, then the same with a number."""
    yield wanted
    for number in count(2):
        end = f"-{number}"
        yield f"{wanted[: MAX_HANDLE_CHARS - len(end)].rstrip('._-')}{end}"


def _only_organization(tx: Tx) -> OrganizationId:
    found = directory.list_organizations(tx)
    if len(found) != 1:
        raise InvalidInput("There are several organizations. Set oidc.organization to the one that new people join.")
    return found[0].id
