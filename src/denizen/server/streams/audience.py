"""The readers of a space's stream, and which of them may still read it.

Whatever a feed sends was read in the same transaction as the access of everybody who is sent it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import bindparam, or_, select

from denizen.access import tokens
from denizen.errors import NotAMember
from denizen.ids import EntityId, SpaceId
from denizen.storage.database import Tx, select_where, statement, values
from denizen.storage.schema import memberships
from denizen.storage.schema import tokens as token_rows

_AT_ONCE: Final = 32
"""How many readers one statement checks. Fewer are filled up: a statement has a fixed number of parameters."""
_NAMES: Final = tuple(f"id_{number}" for number in range(_AT_ONCE))

_members = select_where(
    memberships, "entity_id", "space_id", memberships.c.entity_id.in_([bindparam(name) for name in _NAMES])
)
_good_tokens = statement(
    select(token_rows.c.id).where(
        token_rows.c.id.in_([bindparam(name) for name in _NAMES]),
        token_rows.c.revoked_at.is_(None),
        or_(token_rows.c.expires_at.is_(None), token_rows.c.expires_at > bindparam("now")),
    )
)


@dataclass(frozen=True, slots=True)
class SpaceReader:
    """An entity that reads the stream of a space, and the token that lets it in."""

    entity_id: EntityId
    token_id: str


class Audience(Protocol):
    """The readers that a feed sends to."""

    @property
    def readers(self) -> Collection[SpaceReader]: ...

    def dismiss(self, readers: Collection[SpaceReader]) -> None:
        """Sends nothing more to these: they may no longer read the space."""
        ...


class OneReader:
    """The audience of a reader with a feed of its own."""

    def __init__(self, reader: SpaceReader) -> None:
        self.readers: Collection[SpaceReader] = (reader,)

    def dismiss(self, readers: Collection[SpaceReader]) -> None:
        del readers  # There is only one.
        raise NotAMember("The reader can no longer read this space.")


def without_access(tx: Tx, space_id: SpaceId, readers: Iterable[SpaceReader]) -> set[SpaceReader]:
    """Returns the readers that are not members of the space, or whose token is no longer valid."""
    asked = set(readers)
    members = _found(tx, {each.entity_id for each in asked}, space_id)
    good = _found(tx, {each.token_id for each in asked} - {tokens.IN_PROCESS}, None) | {tokens.IN_PROCESS}
    return {each for each in asked if each.entity_id not in members or each.token_id not in good}


def _found(tx: Tx, ids: set[EntityId] | set[str], space_id: SpaceId | None) -> set[str]:
    found: set[str] = set()
    listed = sorted(ids)
    for start in range(0, len(listed), _AT_ONCE):
        some = listed[start : start + _AT_ONCE]
        params = dict(zip(_NAMES, (*some, *[some[0]] * (_AT_ONCE - len(some))), strict=True))
        if space_id is None:
            found.update(values(tx, _good_tokens, now=tx.now, **params))
        else:
            found.update(values(tx, _members, space_id=space_id, **params))
    return found
