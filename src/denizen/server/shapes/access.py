"""Tokens, login links, sessions, keys and identities, as JSON. Secrets are shown once, when they are made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, Field

from denizen.access.identities import SUBJECT_CHARACTERS, Identity
from denizen.access.secrets import VALUE_CHARACTERS, Secret
from denizen.access.tokens import Token
from denizen.clock import Instant, moment
from denizen.shapes.access import IdentityOut, KeyOut, KnownToken, ListedToken
from denizen.shapes.examples import asked

PersonalRole = Literal["owner", "admin", "member"]
NamedWhose = Annotated[
    str,
    Field(pattern="^(organization|me|@.{1,100})$", description="`organization`, or your own: `me`, your `@handle`."),
]


def _time(at: Instant | None) -> datetime | None:
    return None if at is None else moment(at)


class CreateToken(BaseModel):
    """A way in for a program."""

    model_config = asked(name="Backup script", role="member", expires_at="2096-01-05T09:00:00Z")

    name: Annotated[str, Field(min_length=1, max_length=120, description="What it is for.")]
    entity: Annotated[
        str | None, Field(description="For whom: an id or a `@handle` of your organization; without it, for you.")
    ] = None
    role: Annotated[
        PersonalRole | None,
        Field(description="Of a person's token: at most this much it may do. As you, if not given."),
    ] = None
    expires_at: Annotated[
        AwareDatetime | None, Field(description="Until when it is good; null: until it is revoked.")
    ] = None


def known_token_out(token: Token) -> KnownToken:
    return KnownToken(
        id=token.id,
        entity_id=token.entity_id,
        kind=token.kind,
        role=token.role,
        name=token.name,
        created_at=moment(token.created_at),
        expires_at=_time(token.expires_at),
        revoked_at=_time(token.revoked_at),
        last_used_at=_time(token.last_used_at),
    )


def listed_token_out(token: Token, handle: str) -> ListedToken:
    return ListedToken(**known_token_out(token).model_dump(), handle=handle)


class CreateLogin(BaseModel):
    """A link with which one signs in with a browser, once."""

    model_config = asked()

    entity: Annotated[
        str | None, Field(description="For whom: an id or a `@handle` of your organization; without it, for you.")
    ] = None


class OpenSession(BaseModel):
    """With what one signs in."""

    model_config = asked(secret="dzl_…")  # noqa: S106

    secret: Annotated[str, Field(min_length=1, max_length=200, description="Of a login link, or an access token.")]


class SetKey(BaseModel):
    """A key of a provider or of a service."""

    model_config = asked(value="sk-…", whose="organization")

    value: Annotated[str, Field(min_length=1, max_length=VALUE_CHARACTERS, description="Kept sealed; never shown.")]
    whose: NamedWhose = "organization"


def key_out(secret: Secret) -> KeyOut:
    return KeyOut(
        name=secret.name,
        whose="organization" if secret.owner_id is None else "me",
        hint=secret.hint,
        created_at=moment(secret.created_at),
        updated_at=moment(secret.updated_at),
    )


class LinkIdentity(BaseModel):
    """As whom the identity provider knows someone."""

    model_config = asked(subject="248289761001")

    subject: Annotated[
        str, Field(min_length=1, max_length=SUBJECT_CHARACTERS, description="What its tokens have as `sub`.")
    ]


def identity_out(identity: Identity) -> IdentityOut:
    return IdentityOut(issuer=identity.issuer, subject=identity.subject, created_at=moment(identity.created_at))
