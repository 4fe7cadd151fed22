"""Tokens, login links, sessions, keys and identities, as JSON. Secrets are shown once, when they are made."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, Field

from denizen.access.identities import SUBJECT_CHARACTERS, Identity
from denizen.access.secrets import VALUE_CHARACTERS, Secret
from denizen.access.tokens import Token
from denizen.server.shapes.filling import filled
from denizen.shapes.access import IdentityOut, KeyOut, KnownToken, ListedToken
from denizen.shapes.examples import body_example

PersonalRole = Literal["owner", "admin", "member"]
NamedWhose = Annotated[
    str,
    Field(pattern="^(organization|me|@.{1,100})$", description="`organization`, or your own: `me`, your `@handle`."),
]


class CreateToken(BaseModel):
    """A new access token for a program."""

    model_config = body_example(name="Backup script", role="member", expires_at="2096-01-05T09:00:00Z")

    name: Annotated[str, Field(min_length=1, max_length=120, description="What it is for.")]
    entity: Annotated[
        str | None, Field(description="The owner: an id or a `@handle` of your organization; by default you.")
    ] = None
    role: Annotated[
        PersonalRole | None,
        Field(description="The maximum role of a person's token. By default your own."),
    ] = None
    expires_at: Annotated[AwareDatetime | None, Field(description="When it expires; null: never.")] = None
    speaks_for_others: Annotated[
        bool,
        Field(
            description="Whether its bearer may name the person of a request to `/v1`. Only admins and owners can "
            "create such a token."
        ),
    ] = False


def known_token_out(token: Token) -> KnownToken:
    return filled(KnownToken, token)


def listed_token_out(token: Token, handle: str) -> ListedToken:
    return ListedToken(**known_token_out(token).model_dump(), handle=handle)


class CreateLogin(BaseModel):
    """A link to sign in with a browser, once."""

    model_config = body_example()

    entity: Annotated[
        str | None, Field(description="The owner: an id or a `@handle` of your organization; by default you.")
    ] = None


class OpenSession(BaseModel):
    """The secret to sign in with."""

    model_config = body_example(secret="dzl_…")  # noqa: S106

    secret: Annotated[
        str, Field(min_length=1, max_length=200, description="The secret of a login link, or an access token.")
    ]


class SetKey(BaseModel):
    """A key of a provider or of a service."""

    model_config = body_example(value="sk-…", whose="organization")

    value: Annotated[
        str, Field(min_length=1, max_length=VALUE_CHARACTERS, description="Stored encrypted; never shown.")
    ]
    whose: NamedWhose = "organization"


def key_out(secret: Secret) -> KeyOut:
    return filled(KeyOut, secret, whose="organization" if secret.owner_id is None else "me")


class LinkIdentity(BaseModel):
    """The identity of someone at the identity provider, or behind a token that speaks for others."""

    model_config = body_example(subject="248289761001")

    subject: Annotated[str, Field(min_length=1, max_length=SUBJECT_CHARACTERS, description="The `sub` of its tokens.")]
    token: Annotated[
        str | None,
        Field(description="The id of a token that speaks for others: `subject` is then the user that it names."),
    ] = None


def identity_out(identity: Identity) -> IdentityOut:
    return filled(IdentityOut, identity)
