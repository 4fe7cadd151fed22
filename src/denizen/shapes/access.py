"""Tokens, login links, sessions, keys and identities."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import Role, TokenKind

Whose = Literal["organization", "me"]


class KnownToken(Value):
    """A token, a session, a login link or a sign-in through an identity provider, without its secret."""

    model_config = example(name="Backup script")

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

    model_config = example(kind="session", name="browser", page_key="dzp_…")

    page_key: Annotated[str, Field(description="Send it as `Denizen-Page-Key` with every request of the session.")]


class ListedToken(KnownToken):
    """A token in a list."""

    model_config = example(name="Backup script", handle="noor")

    handle: Annotated[str, Field(description="The handle of its owner.")]


class TokenCreated(Value):
    """A token with a new secret, which is shown only once."""

    model_config = example(secret="dz_…")  # noqa: S106

    token: KnownToken
    secret: str


class TokenList(Value):
    """Tokens, sessions and login links, oldest first."""

    tokens: list[ListedToken]


class LoginCreated(Value):
    """A link that can be used once, within ten minutes."""

    model_config = example(url="http://127.0.0.1:8420/login#dzl_…", secret="dzl_…")  # noqa: S106

    url: Annotated[str, Field(description="The secret is behind the #, which browsers never send.")]
    secret: str
    expires_at: datetime


class KeyOut(Value):
    """A stored key, without its value."""

    model_config = example(name="OPENAI_API_KEY", hint="…cdef")

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

    model_config = example(subject="248289761001")

    issuer: str
    subject: str
    created_at: datetime


class IdentityList(Value):
    """The identities of a person at identity providers."""

    identities: list[IdentityOut]
