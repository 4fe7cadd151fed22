"""Access tokens: whoever shows one acts as the entity it was made for. Only hashes are kept: a backup opens no door."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import bindparam, or_, select, update

from denizen.access.roles import PERSONAL, ROLES, Role
from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId, new_id
from denizen.spaces import directory
from denizen.spaces.handles import check_name
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import tokens

PREFIX: Final = "dz_"
"""Every secret begins so, so that one that was published by mistake is easy to find."""
SECRET_BYTES: Final = 32
USE_NOTED_SECONDS: Final = 60
"""How exactly it is known when a token was last used."""


Kind = Literal["token", "session", "login"]
"""What a secret is for: programs; a browser; opening one session, once."""


@dataclass(frozen=True, slots=True)
class Token:
    """A way in for one entity. Nothing here opens the door: the secret is shown once, when the token is made."""

    id: str
    entity_id: EntityId
    name: str
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None
    kind: Kind = "token"
    role: Role = "owner"
    """Its scope: at most this much its bearer may do."""

    def is_good(self, now: Instant) -> bool:
        """Whether it opens the door at that time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def use_is_old(self, now: Instant) -> bool:
        """Whether its last use is worth noting again."""
        return self.last_used_at is None or now - self.last_used_at >= USE_NOTED_SECONDS * SECOND


_token = (
    tokens.c.id,
    tokens.c.entity_id,
    tokens.c.name,
    tokens.c.created_at,
    tokens.c.expires_at,
    tokens.c.revoked_at,
    tokens.c.last_used_at,
    tokens.c.kind,
    tokens.c.role,
)
_add = insert_into(tokens, "id", "entity_id", "kind", "role", "name", "digest", "created_at", "expires_at")
_find = statement(select(*_token).where(tokens.c.digest == bindparam("digest")))
_get = statement(select(*_token).where(tokens.c.id == bindparam("id")))
_of_entity = statement(select(*_token).where(tokens.c.entity_id == bindparam("entity_id")).order_by(tokens.c.id))
_revoke = statement(
    update(tokens)
    .where(tokens.c.id == bindparam("token"), tokens.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
_note_use = statement(
    update(tokens)
    .where(
        tokens.c.id == bindparam("token"),
        or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at <= bindparam("before")),
    )
    .values(last_used_at=bindparam("at"))
)


def create(
    tx: Tx,
    entity_id: EntityId,
    name: str,
    *,
    expires_at: Instant | None = None,
    kind: Kind = "token",
    role: Role | None = None,
) -> tuple[Token, str]:
    """A new token for this entity, and its secret, which nobody can be shown again. No role: its entity's."""
    entity = directory.get_entity(tx, entity_id)
    scope = role or ("owner" if entity.kind == "human" else entity.kind)
    if (scope in PERSONAL) != (entity.kind == "human") or scope not in ROLES:
        raise InvalidInput(f"A token of {entity.name} cannot have the role {scope!r}.")
    if expires_at is not None and expires_at <= tx.now:
        raise InvalidInput("This token would have expired already: choose a time to come.")
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = Token(new_id(), entity_id, check_name(name), tx.now, expires_at, kind=kind, role=scope)
    tx.run(
        _add,
        id=token.id,
        entity_id=entity_id,
        kind=kind,
        role=scope,
        name=token.name,
        digest=_digest(secret),
        created_at=tx.now,
        expires_at=expires_at,
    )
    return token, secret


def find(tx: Tx, secret: str) -> Token | None:
    """The token with this secret, if it is good now."""
    # Found by its hash: how long that takes says nothing about how much of a guess was right.
    row = tx.one(_find, digest=_digest(secret))
    token = None if row is None else Token(*row)
    return token if token is not None and token.is_good(tx.now) else None


def get(tx: Tx, token_id: str) -> Token:
    row = tx.one(_get, id=token_id)
    if row is None:
        raise NotFound("token", token_id)
    return Token(*row)


def tokens_of(tx: Tx, entity_id: EntityId) -> list[Token]:
    """Every token this entity ever had, the oldest first."""
    return [Token(*row) for row in tx.all(_of_entity, entity_id=entity_id)]


def revoke(tx: Tx, token_id: str) -> None:
    """The token opens nothing any more. Revoking twice is revoking once."""
    if tx.run(_revoke, token=token_id, at=tx.now) == 0:
        get(tx, token_id)


def note_use(tx: Tx, token_id: str) -> None:
    """The token was used now, unless that is known of the last minute already."""
    tx.run(_note_use, token=token_id, at=tx.now, before=tx.now - USE_NOTED_SECONDS * SECOND)


def _digest(secret: str) -> str:
    # A fast hash is enough: the secret is random, not a password that someone chose.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
