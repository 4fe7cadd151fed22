"""Tokens, login links, sessions, keys and identities."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from denizen.shapes.examples import given
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import Role, TokenKind

Whose = Literal["organization", "me"]


_NOOR = "019b8d3e-5c00-7a61-9d0f-3f6f1c0b2a41"


_TOKEN = "019b8d40-1100-7e35-9c4d-6f7a8b9c0d1e"  # noqa: S105  an id


_TIME = "2026-01-05T09:00:00Z"


_SHOWN_TOKEN = {
    "id": _TOKEN,
    "entity_id": _NOOR,
    "kind": "token",
    "role": "member",
    "name": "Backup script",
    "speaks_for_others": False,
    "created_at": _TIME,
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": None,
}


class KnownToken(Value):
    """A token, a session, a login link or a sign-in through an identity provider, without its secret."""

    model_config = given(**_SHOWN_TOKEN)

    id: str
    entity_id: str
    kind: Open[TokenKind]
    role: Annotated[Open[Role], Field(description="The maximum role; never more than that of its owner.")]
    name: str
    speaks_for_others: Annotated[
        bool, Field(description="Whether its bearer may name the person of a request to `/v1`.")
    ]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="To the minute.")]


class SessionOpened(KnownToken):
    """The session, and the half of its secret that is not in the cookie."""

    model_config = given(**_SHOWN_TOKEN | {"kind": "session", "name": "browser", "page_key": "dzp_…"})

    page_key: Annotated[str, Field(description="Send it as `Denizen-Page-Key` with every request of the session.")]


class ListedToken(KnownToken):
    """A token in a list."""

    model_config = given(**_SHOWN_TOKEN, handle="noor")

    handle: Annotated[str, Field(description="The handle of its owner.")]


class TokenCreated(Value):
    """A token with a new secret, which is shown only once."""

    model_config = given(token=_SHOWN_TOKEN, secret="dz_…")  # noqa: S106

    token: KnownToken
    secret: str


class TokenList(Value):
    """Tokens, sessions and login links, oldest first."""

    model_config = given(tokens=[{**_SHOWN_TOKEN, "handle": "noor"}])

    tokens: list[ListedToken]


class LoginCreated(Value):
    """A link that can be used once, within ten minutes."""

    model_config = given(
        url="http://127.0.0.1:8420/login#dzl_…",
        secret="dzl_…",  # noqa: S106
        expires_at=_TIME,
    )

    url: Annotated[str, Field(description="The secret is behind the #, which browsers never send.")]
    secret: str
    expires_at: datetime


class KeyOut(Value):
    """A stored key, without its value."""

    model_config = given(name="OPENAI_API_KEY", whose="organization", hint="…cdef", created_at=_TIME, updated_at=_TIME)

    name: str
    whose: Open[Whose]
    hint: Annotated[str, Field(description="Its last characters; empty for a short key.")]
    created_at: datetime
    updated_at: datetime


class KeyList(Value):
    """Your own keys and, for admins, those of the organization."""

    keys: list[KeyOut]


class IdentityOut(Value):
    """An identity at an identity provider."""

    model_config = given(issuer="https://login.example.com", subject="248289761001", created_at=_TIME)

    issuer: str
    subject: str
    created_at: datetime


class IdentityList(Value):
    """The identities of a person at identity providers."""

    identities: list[IdentityOut]
