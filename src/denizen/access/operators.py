"""The operators of the server: its users on its own machine, and the owners of the first organization."""

from __future__ import annotations

from denizen.access.audit import Actor
from denizen.spaces import directory
from denizen.storage.database import Tx, select_where, value
from denizen.storage.schema import entities

_owner = select_where(entities, "organization_id", "id", entities.c.role == "owner", entities.c.left_at.is_(None))


def is_operator(tx: Tx, by: Actor) -> bool:
    """Whether this actor is an operator of the server."""
    if by.entity_id is None:
        return True
    owned = value(tx, _owner, id=by.entity_id)
    return owned is not None and owned == directory.first_organization(tx)
