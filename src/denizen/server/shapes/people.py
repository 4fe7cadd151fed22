"""The JSON of the organization and its people."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from denizen.access.people import Profile
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.organization import OrganizationSettings, SecretHosts
from denizen.server.auth import Caller
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import RequestBody
from denizen.shapes import people as shapes
from denizen.shapes.examples import body_example, example
from denizen.shapes.people import EntityOut, Me, OrganizationOut, TokenOut
from denizen.shapes.vocabulary import MOST_DAYS
from denizen.spaces.directory import Organization

PersonRole = Literal["owner", "admin", "member"]


class OrganizationDetail(shapes.Organization):
    """Your organization."""

    model_config = example(name="Home", settings={"spaces_by": "member"})

    settings: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        OrganizationSettings | None, Field(description="For admins and owners; null for others.")
    ]


def organization_detail_out(organization: Organization, settings: OrganizationSettings | None) -> OrganizationDetail:
    return OrganizationDetail(id=organization.id, name=organization.name, settings=settings)


class SettingsChange(RequestBody):
    """Settings of the organization: fields that are not sent stay unchanged, null resets one to its default."""

    model_config = body_example(spaces_by="admin")

    budget: Annotated[
        BudgetSettings | None, Field(description="The limits for all agents together, per day (UTC) and in total.")
    ] = None
    spaces_by: Annotated[
        Literal["member", "admin"] | None, Field(description="Who may create spaces: everyone, or admins and owners.")
    ] = None
    remote_pictures: Annotated[
        bool | None,
        Field(
            description="Whether pages show pictures of messages that are on other sites; by default, links to them."
        ),
    ] = None
    secret_hosts: Annotated[
        SecretHosts | None,
        Field(
            description="The hosts to which tools may send each secret: `name` or `name:port`. Replaces the whole list."
        ),
    ] = None
    keep_days: Annotated[
        int | None,
        Field(ge=0, le=MOST_DAYS, description="After how many days messages are removed; 0: never. Spaces may differ."),
    ] = None
    archive_expired: Annotated[
        bool | None, Field(description="Whether such messages are written to a file on the server first.")
    ] = None


class OrganizationChange(RequestBody):
    """Changes of the organization. Fields that are not sent stay unchanged."""

    model_config = body_example(name="Our house", settings={"spaces_by": "admin"})

    name: str | None = None
    settings: SettingsChange | None = None


def entity_out(profile: Profile) -> EntityOut:
    return filled(EntityOut, profile.entity, profile)


class EntityCreate(RequestBody):
    """A new person or service."""

    model_config = body_example(kind="human", name="Sam", handle="sam", role="member")

    kind: Literal["human", "service"] = "human"
    name: str
    handle: Annotated[str | None, Field(description="By default derived from the name.")] = None
    role: Annotated[PersonRole | None, Field(description="For a person; only owners can give more than `member`.")] = (
        None
    )


class OwnChange(RequestBody):
    """Changes of your own account."""

    model_config = body_example(name="Samira")

    name: str


class EntityChange(RequestBody):
    """Changes of a person or service. Fields that are not sent stay unchanged."""

    model_config = body_example(name="Samira")

    name: str | None = None
    role: Annotated[PersonRole | None, Field(description="For a person; only owners can change it.")] = None


def me_out(caller: Caller, organization: Organization, settings: OrganizationSettings) -> Me:
    who, token = caller.entity, caller.token
    of = filled(OrganizationOut, organization, settings)
    return filled(Me, who, role=caller.role, organization=of, token=filled(TokenOut, token))
