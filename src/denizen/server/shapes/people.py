"""The JSON of the organization and its people."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from denizen.access.people import Profile
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.organization import OrganizationSettings, SecretHosts
from denizen.server.auth import Caller
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import Given
from denizen.shapes import people as shapes
from denizen.shapes.examples import asked, given
from denizen.shapes.people import EntityOut, Me, OrganizationOut, TokenOut
from denizen.spaces.directory import Organization

_HOME = "019b8d3e-5bff-7012-8111-222233334444"

PersonRole = Literal["owner", "admin", "member"]


class OrganizationDetail(shapes.Organization):
    """Your organization."""

    model_config = given(id=_HOME, name="Home", settings={"budget": {"dollars_per_day": "5.00"}, "spaces_by": "member"})

    settings: Annotated[  # pyright: ignore[reportIncompatibleVariableOverride]
        OrganizationSettings | None, Field(description="For admins and owners; null for others.")
    ]


def organization_detail_out(organization: Organization, settings: OrganizationSettings | None) -> OrganizationDetail:
    return OrganizationDetail(id=organization.id, name=organization.name, settings=settings)


class SettingsChange(Given):
    """Settings of the organization: fields that are not sent stay unchanged, null resets one to its default."""

    model_config = asked(spaces_by="admin")

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


class OrganizationChange(Given):
    """Changes of the organization. Fields that are not sent stay unchanged."""

    model_config = asked(name="Our house", settings={"spaces_by": "admin"})

    name: str | None = None
    settings: SettingsChange | None = None


def entity_out(profile: Profile) -> EntityOut:
    return filled(EntityOut, profile.entity, profile)


class EntityCreate(Given):
    """A new person or service."""

    model_config = asked(kind="human", name="Sam", handle="sam", role="member")

    kind: Literal["human", "service"] = "human"
    name: str
    handle: Annotated[str | None, Field(description="By default derived from the name.")] = None
    role: Annotated[PersonRole | None, Field(description="For a person; only owners can give more than `member`.")] = (
        None
    )


class OwnChange(Given):
    """Changes of your own account."""

    model_config = asked(name="Samira")

    name: str


class EntityChange(Given):
    """Changes of a person or service. Fields that are not sent stay unchanged."""

    model_config = asked(name="Samira")

    name: str | None = None
    role: Annotated[PersonRole | None, Field(description="For a person; only owners can change it.")] = None


def me_out(caller: Caller, organization: Organization, settings: OrganizationSettings) -> Me:
    who, token = caller.entity, caller.token
    return Me(
        id=who.id,
        kind=who.kind,
        handle=who.handle,
        name=who.name,
        role=caller.role,
        organization=OrganizationOut(
            id=organization.id, name=organization.name, remote_pictures=settings.remote_pictures
        ),
        token=filled(TokenOut, token),
    )
