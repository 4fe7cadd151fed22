"""Finds the message, person, space or memory of an organization that is to be forgotten."""

from __future__ import annotations

from denizen.errors import NotFound
from denizen.ids import EntityId, MessageId, OrganizationId, SpaceId
from denizen.memory import items
from denizen.shapes.vocabulary import ForgetKind as Kind
from denizen.spaces import directory, posting
from denizen.storage.database import Tx


def find_subject(tx: Tx, home: OrganizationId, kind: Kind, named: str) -> str:
    """Returns its id; a person is also found by `@handle`. Raises `NotFound` for one of another organization."""
    try:
        subject, there = _subject(tx, home, kind, named)
    except NotFound:
        subject, there = "", None
    if there != home:
        raise NotFound(kind, named)
    return subject


def _subject(tx: Tx, home: OrganizationId, kind: Kind, named: str) -> tuple[str, OrganizationId]:
    match kind:
        case "message":
            message = posting.get_message(tx, MessageId(named))
            return message.id, directory.get_space(tx, message.space_id).organization_id
        case "space":
            return named, directory.get_space(tx, SpaceId(named)).organization_id
        case "memory":
            return named, items.get(tx, named).organization_id
        case "person":
            by_handle = named.startswith("@")
            person = directory.find_entity(tx, home, named) if by_handle else directory.get_entity(tx, EntityId(named))
            return person.id, person.organization_id
