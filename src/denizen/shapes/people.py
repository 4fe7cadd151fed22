"""The organization and its people."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import ADA, NOOR, example
from denizen.shapes.value import NextAfter, Open, Value
from denizen.shapes.vocabulary import EntityKind, Role, TokenKind


class OrganizationOut(Value):
    """Your organization."""

    model_config = example(name="Home")

    id: str
    name: str
    remote_pictures: Annotated[
        bool, Field(description="Whether pages show pictures of messages that are on other sites.")
    ] = False


class TokenOut(Value):
    """The token, session or sign-in through an identity provider (`jwt`) of this request."""

    model_config = example(name="browser")

    id: str
    kind: Open[TokenKind]
    name: str
    created_at: datetime
    expires_at: datetime | None


class Me(Value):
    """Your account."""

    model_config = example(id=NOOR, kind="human", handle="noor", name="Noor", role="owner")

    id: str
    kind: Open[EntityKind]
    handle: str
    name: str
    role: Annotated[Open[Role], Field(description="Your role, limited by the token of this request.")]
    organization: OrganizationOut
    token: TokenOut


class Organization(Value):
    """Your organization. The server's `OrganizationDetail` has typed settings."""

    id: str
    name: str
    settings: dict[str, JsonValue] | None


class EntityOut(Value):
    """A person, an agent or a service of your organization."""

    model_config = example(id=NOOR, kind="human", handle="noor", name="Noor")

    id: str
    kind: Open[EntityKind]
    handle: Annotated[str, Field(description="`@handle` mentions it.")]
    name: str
    role: Open[Role]
    created_at: datetime
    left_at: Annotated[datetime | None, Field(description="When it left; its messages stay.")]


class PictureOut(Value):
    """A picture of a person or an agent."""

    model_config = example(url=f"/pictures/{ADA}/3f0a")

    url: Annotated[str, Field(description="Relative to this server. It needs no token.")]


class PicturesOut(Value):
    """The pictures of people and agents."""

    model_config = example(pictures={ADA: f"/pictures/{ADA}/3f0a"})

    pictures: Annotated[
        dict[str, str], Field(description="Addresses by entity id, relative to this server. They need no token.")
    ]


class EntityPage(Value):
    """People, agents and services, by handle."""

    entities: list[EntityOut]
    next: NextAfter[str]
