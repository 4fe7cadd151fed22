"""Tokens, login links, sessions, keys and identities, as JSON. Secrets are shown once, when they are made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from denizen.access.identities import SUBJECT_CHARACTERS, Identity
from denizen.access.roles import Role
from denizen.access.secrets import VALUE_CHARACTERS, Secret
from denizen.access.tokens import Kind, Token
from denizen.clock import Instant, moment

PersonalRole = Literal["owner", "admin", "member"]
Whose = Literal["organization", "me"]
NamedWhose = Annotated[
    str,
    Field(pattern="^(organization|me|@.{1,100})$", description="`organization`, or your own: `me`, your `@handle`."),
]

_NOOR = "019b8d3e-5c00-7a61-9d0f-3f6f1c0b2a41"
_TOKEN = "019b8d40-1100-7e35-9c4d-6f7a8b9c0d1e"  # noqa: S105  an id
_TIME = "2026-01-05T09:00:00Z"


def _asked(**fields: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [fields]})


def _answered(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]}, defer_build=True)


def _time(at: Instant | None) -> datetime | None:
    return None if at is None else moment(at)


_SHOWN_TOKEN = {
    "id": _TOKEN,
    "entity_id": _NOOR,
    "kind": "token",
    "role": "member",
    "name": "Backup script",
    "created_at": _TIME,
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": None,
}


class CreateToken(BaseModel):
    """A way in for a program."""

    model_config = _asked(name="Backup script", role="member", expires_at="2096-01-05T09:00:00Z")

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


class KnownToken(BaseModel):
    """A token, a session, a login link, or what an identity provider gave. Never its secret."""

    model_config = _answered(**_SHOWN_TOKEN)

    id: str
    entity_id: str
    kind: Kind
    role: Annotated[Role, Field(description="At most this much it may do, and never more than its entity.")]
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="To the minute.")]

    @classmethod
    def of(cls, token: Token) -> KnownToken:
        return cls(
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


class SessionOpened(KnownToken):
    """The session, and the half of its secret that is not in the cookie."""

    model_config = _answered(**_SHOWN_TOKEN | {"kind": "session", "name": "browser", "page_key": "dzp_…"})

    page_key: Annotated[str, Field(description="Send it as `Denizen-Page-Key` with every request of the session.")]


class ListedToken(KnownToken):
    """A token among others."""

    model_config = _answered(**_SHOWN_TOKEN, handle="noor")

    handle: Annotated[str, Field(description="Of the one whom it lets in.")]

    @classmethod
    def listed(cls, token: Token, handle: str) -> ListedToken:
        return cls(**KnownToken.of(token).model_dump(), handle=handle)


class TokenCreated(BaseModel):
    """A token under a new secret, which is not shown again."""

    model_config = _answered(token=_SHOWN_TOKEN, secret="dz_…")  # noqa: S106

    token: KnownToken
    secret: str


class TokenList(BaseModel):
    """What lets someone in, the oldest first."""

    model_config = _answered(tokens=[{**_SHOWN_TOKEN, "handle": "noor"}])

    tokens: list[ListedToken]


class CreateLogin(BaseModel):
    """A link with which one signs in with a browser, once."""

    model_config = _asked()

    entity: Annotated[
        str | None, Field(description="For whom: an id or a `@handle` of your organization; without it, for you.")
    ] = None


class LoginCreated(BaseModel):
    """A link that is good once, for ten minutes."""

    model_config = _answered(
        url="http://127.0.0.1:8420/login#dzl_…",
        secret="dzl_…",  # noqa: S106
        expires_at=_TIME,
    )

    url: Annotated[str, Field(description="The secret stands behind the #, which browsers send to nobody.")]
    secret: str
    expires_at: datetime


class OpenSession(BaseModel):
    """With what one signs in."""

    model_config = _asked(secret="dzl_…")  # noqa: S106

    secret: Annotated[str, Field(min_length=1, max_length=200, description="Of a login link, or an access token.")]


class SetKey(BaseModel):
    """A key of a provider or of a service."""

    model_config = _asked(value="sk-…", whose="organization")

    value: Annotated[str, Field(min_length=1, max_length=VALUE_CHARACTERS, description="Kept sealed; never shown.")]
    whose: NamedWhose = "organization"


class KeyOut(BaseModel):
    """A key that is kept. Never its value."""

    model_config = _answered(
        name="OPENAI_API_KEY", whose="organization", hint="…cdef", created_at=_TIME, updated_at=_TIME
    )

    name: str
    whose: Whose
    hint: Annotated[str, Field(description="How it ends; empty where that would tell too much.")]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, secret: Secret) -> KeyOut:
        return cls(
            name=secret.name,
            whose="organization" if secret.owner_id is None else "me",
            hint=secret.hint,
            created_at=moment(secret.created_at),
            updated_at=moment(secret.updated_at),
        )


class KeyList(BaseModel):
    """Your own keys and, for admins, those of the organization."""

    keys: list[KeyOut]


class LinkIdentity(BaseModel):
    """As whom the identity provider knows someone."""

    model_config = _asked(subject="248289761001")

    subject: Annotated[
        str, Field(min_length=1, max_length=SUBJECT_CHARACTERS, description="What its tokens have as `sub`.")
    ]


class IdentityOut(BaseModel):
    """Someone as an identity provider knows them."""

    model_config = _answered(issuer="https://login.example.com", subject="248289761001", created_at=_TIME)

    issuer: str
    subject: str
    created_at: datetime

    @classmethod
    def of(cls, identity: Identity) -> IdentityOut:
        return cls(issuer=identity.issuer, subject=identity.subject, created_at=moment(identity.created_at))


class IdentityList(BaseModel):
    """As whom identity providers know a person."""

    identities: list[IdentityOut]
