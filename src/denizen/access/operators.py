"""The operators of the server: whoever runs it on its own machine, and the owners of the first organization."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from denizen.access.audit import Actor
from denizen.spaces import directory
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities

_owner = statement(
    select(entities.c.organization_id).where(
        entities.c.id == bindparam("id"), entities.c.role == "owner", entities.c.left_at.is_(None)
    )
)


def is_operator(tx: Tx, by: Actor) -> bool:
    """Whether this actor is an operator of the server."""
    if by.entity_id is None:
        return True
    row = tx.one(_owner, id=by.entity_id)
    return row is not None and row[0] == directory.first_organization(tx)
