"""Access tokens: the bearer acts as the entity it was made for. Only hashes are stored: a backup gives no access."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import bindparam, or_

from denizen.access.roles import PERSONAL, ROLES, Role, role_of
from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput, existing
from denizen.ids import EntityId, new_id
from denizen.shapes.vocabulary import TokenKind as Kind
from denizen.spaces import directory
from denizen.spaces.handles import MAX_NAME_CHARS, check_name
from denizen.storage.database import Tx, columns, delete_where, insert_ignore, insert_into, select_where, update_where
from denizen.storage.schema import tokens

SECRET_BYTES: Final = 32
LOGIN_SECONDS: Final = 600
SESSION_SECONDS: Final = 30 * 86_400
RENEWED_SECONDS: Final = 86_400
"""How old the expiry of a session may become before using it extends it."""
USE_NOTED_SECONDS: Final = 60
"""The precision of a token's last use."""


PREFIXES: Final[dict[Kind, str]] = {"token": "dz_", "session": "dzs_", "login": "dzl_"}
"""The prefix of every secret of ours, so that one published by mistake is easy to find."""
PAGE_KEY_PREFIX: Final = "dzp_"
"""The prefix of the second half of a session's secret."""


@dataclass(frozen=True, slots=True)
class Token:
    """Access for one entity, without the secret, which is shown once, when the token is made."""

    id: str
    """For a session or login link, it begins with the id of what it was opened with, and a dot."""
    entity_id: EntityId
    name: str
    created_at: Instant
    expires_at: Instant | None = None
    revoked_at: Instant | None = None
    last_used_at: Instant | None = None
    kind: Kind = "token"
    role: Role = "owner"
    """Its scope: the most that its bearer may do."""
    speaks_for_others: bool = False
    """Whether its bearer may name the person whom a request of OpenAI's API is made for."""

    def is_good(self, now: Instant) -> bool:
        """Whether it is valid at that time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def use_is_old(self, now: Instant) -> bool:
        """Whether its last use should be recorded again."""
        return self.last_used_at is None or now - self.last_used_at >= USE_NOTED_SECONDS * SECOND

    def is_to_be_renewed(self, now: Instant) -> bool:
        """Whether it is a session that is extended when used. One that began with a shorter life never is."""
        if self.kind != "session" or self.expires_at is None:
            return False
        whole = self.expires_at - self.created_at >= SESSION_SECONDS * SECOND
        return whole and self.expires_at - now <= (SESSION_SECONDS - RENEWED_SECONDS) * SECOND


IN_PROCESS: Final = "in-process"
"""The id that stands for no token: for callers of an application in their own process."""


def in_process(entity_id: EntityId, now: Instant) -> Token:
    """The token of a caller in the process that opened the database. It is not stored and has no secret."""
    return Token(IN_PROCESS, entity_id, "command line", now, last_used_at=now)


_token = columns(
    tokens, "id, entity_id, name, created_at, expires_at, revoked_at, last_used_at, kind, role, speaks_for_others"
)
_COLUMNS: Final = (
    "id",
    "entity_id",
    "kind",
    "role",
    "name",
    "digest",
    "created_at",
    "expires_at",
    "speaks_for_others",
)
_add = insert_into(tokens, *_COLUMNS)
_find = select_where(tokens, _token, "digest")
_get = select_where(tokens, _token, "id")
_of_entity = select_where(tokens, _token, "entity_id", order_by="id")
_revoke = update_where(tokens, "id", tokens.c.revoked_at.is_(None), set_="revoked_at")
_revoke_below = update_where(
    tokens, "entity_id", tokens.c.id.like(bindparam("below")), tokens.c.revoked_at.is_(None), set_="revoked_at"
)
_rotate = update_where(
    tokens, "id", tokens.c.kind == "token", tokens.c.revoked_at.is_(None), set_="digest", last_used_at=None
)
_renew = update_where(tokens, "id", tokens.c.kind == "session", tokens.c.revoked_at.is_(None), set_="expires_at")
_drop_expired = delete_where(tokens, "entity_id, kind", tokens.c.expires_at <= bindparam("at"))
_see = insert_ignore(tokens, _COLUMNS)
_note_use = update_where(
    tokens,
    "id",
    or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at <= bindparam("before")),
    set_="last_used_at",
)


def create(
    tx: Tx,
    entity_id: EntityId,
    name: str,
    *,
    expires_at: Instant | None = None,
    kind: Kind = "token",
    role: Role | None = None,
    below: str | None = None,
    speaks_for_others: bool = False,
) -> tuple[Token, str]:
    """Create a token for this entity. Returns it with its secret, which cannot be shown again.

    Its permissions are those that both its role and its entity have. It ends with the token of the same entity that it
    stands below.
    """
    entity = directory.get_entity(tx, entity_id)
    scope = role or ("owner" if entity.kind == "human" else entity.kind)
    if (scope in PERSONAL) != (entity.kind == "human") or scope not in ROLES:
        raise InvalidInput(f"A token of {entity.name} cannot have the role {scope!r}.")
    if scope == "guest" and role_of(tx, entity_id) != "guest":
        # What it writes would be the words of the person, which agents trust and approvals count.
        raise InvalidInput(f"{entity.name} is not a guest, so a token of theirs cannot be one. Use the role 'member'.")
    if expires_at is not None and expires_at <= tx.now:
        raise InvalidInput("This token would already have expired. Choose a time in the future.")
    if speaks_for_others and entity.kind == "agent":
        raise InvalidInput("An agent speaks for itself. Create the token for a person or a service.")
    secret = _new_secret(kind)
    id = new_id() if below is None else f"{below}.{new_id()}"
    token = Token(
        id, entity_id, check_name(name), tx.now, expires_at, kind=kind, role=scope, speaks_for_others=speaks_for_others
    )
    tx.run(_add, **_row(token, secret))
    return token, secret


def replace_named(tx: Tx, entity_id: EntityId, name: str) -> tuple[Token, str]:
    """Create a token with this name. Earlier ones of the entity with the same name are revoked."""
    for each in tokens_of(tx, entity_id):
        if (each.kind, each.name) == ("token", name) and each.is_good(tx.now):
            revoke(tx, each.id)
    return create(tx, entity_id, name)


def _new_secret(kind: Kind) -> str:
    secret = PREFIXES[kind] + secrets.token_urlsafe(SECRET_BYTES)
    if kind != "session":
        return secret
    return joined(secret, PAGE_KEY_PREFIX + secrets.token_urlsafe(SECRET_BYTES))


def joined(cookie: str, page_key: str) -> str:
    """The secret of a session, from its halves: the cookie's, and the one that pages of one origin know."""
    return f"{cookie}.{page_key}"


def halves(secret: str) -> tuple[str, str]:
    """The cookie's half of a session's secret, and the page's."""
    cookie, _, page_key = secret.partition(".")
    return cookie, page_key


def _token_of(row: Sequence[Any]) -> Token:
    *known, speaks_for_others = row
    return Token(*known, speaks_for_others=bool(speaks_for_others))


def _row(token: Token, secret: str) -> dict[str, str | int | None]:
    return {
        "id": token.id,
        "entity_id": token.entity_id,
        "kind": token.kind,
        "role": token.role,
        "name": token.name,
        "digest": _digest(secret),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "speaks_for_others": int(token.speaks_for_others),
    }


def rotate(tx: Tx, token_id: str) -> tuple[Token, str]:
    """Give the token a new secret; the old one, and sessions opened with it, are no longer valid."""
    token, secret = get(tx, token_id), _new_secret("token")
    if not token.is_good(tx.now) or tx.run(_rotate, id=token_id, digest=_digest(secret)) == 0:
        raise InvalidInput("Only a valid access token can get a new secret. Create a new token instead.")
    _end_below(tx, token)
    return replace(token, last_used_at=None), secret


def login_url(address: str, secret: str) -> str:
    """The login link. Its secret stands behind the #, which browsers send to nobody: it is in no log."""
    return f"{address}/login#{secret}"


def create_login(
    tx: Tx, entity_id: EntityId, role: Role | None = None, *, below: str | None = None
) -> tuple[Token, str]:
    """Create a secret for a link that opens one session of this person, once, in the next ten minutes."""
    if directory.get_entity(tx, entity_id).kind != "human":
        raise InvalidInput("Only people sign in: agents and services have access tokens.")
    end = Instant(tx.now + LOGIN_SECONDS * SECOND)
    return create(tx, entity_id, "login link", kind="login", role=role, expires_at=end, below=below)


def open_session(tx: Tx, secret: str) -> tuple[Token, str] | None:
    """Open a session with this login link, which is used up by it, or with this access token; None if it is not valid.

    A session has the permissions of its link or token, and ends with the token.
    """
    found = find(tx, secret, "login") or find(tx, secret)
    if found is None or found.role not in PERSONAL:
        return None
    # If two people use the same link, one signs in.
    if found.kind == "login" and tx.run(_revoke, id=found.id, revoked_at=tx.now) == 0:
        return None
    end = Instant(tx.now + SESSION_SECONDS * SECOND)
    if found.kind == "token" and found.expires_at is not None:
        end = min(end, found.expires_at)
    return create(tx, found.entity_id, "browser", kind="session", role=found.role, expires_at=end, below=found.id)


def root(token: Token) -> str:
    """The id of the access token or first link that it stems from."""
    return token.id.partition(".")[0]


def renew(tx: Tx, token_id: str) -> None:
    """Extend the session to thirty days from now."""
    tx.run(_renew, id=token_id, expires_at=tx.now + SESSION_SECONDS * SECOND)


def see(tx: Tx, entity_id: EntityId, secret: str, name: str, expires_at: Instant) -> Token | None:
    """Record a token of an identity provider, so that it can be revoked; None if it was.

    Expired ones of the same entity are deleted.
    """
    digest, kind = _digest(secret), "jwt"
    if tx.one(_find, digest=digest) is None:
        tx.run(_drop_expired, entity_id=entity_id, kind=kind, at=tx.now)
        token = Token(new_id(), entity_id, name[:MAX_NAME_CHARS], tx.now, expires_at, kind=kind)
        tx.run(_see, **_row(token, secret))
    return find(tx, secret, kind)


def find(tx: Tx, secret: str, kind: Kind = "token") -> Token | None:
    """The token of that kind with this secret, if it is valid now."""
    # Found by its hash, so that the time it takes reveals nothing about a guess.
    row = tx.one(_find, digest=_digest(secret))
    token = None if row is None else _token_of(row)
    return token if token is not None and token.kind == kind and token.is_good(tx.now) else None


def find_any(tx: Tx, secret: str) -> Token | None:
    """The token with this secret, even if revoked or expired. Not for access checks: use `find` for those."""
    row = tx.one(_find, digest=_digest(secret))
    return None if row is None else _token_of(row)


def get(tx: Tx, token_id: str) -> Token:
    return _token_of(existing(tx.one(_get, id=token_id), "token", token_id))


def tokens_of(tx: Tx, entity_id: EntityId) -> list[Token]:
    """Every token this entity ever had, oldest first."""
    return [_token_of(row) for row in tx.all(_of_entity, entity_id=entity_id)]


def revoke(tx: Tx, token_id: str) -> None:
    """Revoke the token, and sessions opened with it. Idempotent."""
    token = get(tx, token_id)
    tx.run(_revoke, id=token_id, revoked_at=tx.now)
    _end_below(tx, token)


def _end_below(tx: Tx, token: Token) -> None:
    """Revoke login links made with the token, and sessions opened with it or with those."""
    tx.run(_revoke_below, entity_id=token.entity_id, below=f"{token.id}.%", revoked_at=tx.now)


def revoke_foreign(tx: Tx, entity_id: EntityId) -> None:
    """Revoke all tokens of the entity from identity providers, and what was opened with them."""
    known = tokens_of(tx, entity_id)
    # Expired ones may have been deleted: what they opened is recognized by its missing root.
    ours = {each.id for each in known if each.kind != "jwt"}
    for each in known:
        if each.kind == "jwt" or root(each) not in ours:
            tx.run(_revoke, id=each.id, revoked_at=tx.now)


def note_use(tx: Tx, token_id: str) -> None:
    """Record that the token was used now, unless that was done within the last minute."""
    tx.run(_note_use, id=token_id, last_used_at=tx.now, before=tx.now - USE_NOTED_SECONDS * SECOND)


def _digest(secret: str) -> str:
    # A fast hash is enough: the secret is random, not a password that someone chose.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
