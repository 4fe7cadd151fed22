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
        OrganizationSettings | None, Field(description="For admins and owners; null for whoever is neither.")
    ]


def organization_detail_out(organization: Organization, settings: OrganizationSettings | None) -> OrganizationDetail:
    return OrganizationDetail(id=organization.id, name=organization.name, settings=settings)


class SettingsChange(Given):
    """Settings of the organization: those that are sent are changed, null gives one its default back."""

    model_config = asked(spaces_by="admin")

    budget: Annotated[
        BudgetSettings | None, Field(description="What all agents together may use, by the day (UTC) and for life.")
    ] = None
    spaces_by: Annotated[
        Literal["member", "admin"] | None, Field(description="Who may create spaces: everyone, or admins and owners.")
    ] = None
    secret_hosts: Annotated[
        SecretHosts | None,
        Field(description="Where each secret may be sent by tools: `name` or `name:port`. Given whole."),
    ] = None


class OrganizationChange(Given):
    """What shall be otherwise."""

    model_config = asked(name="Our house", settings={"spaces_by": "admin"})

    name: str | None = None
    settings: SettingsChange | None = None


def entity_out(profile: Profile) -> EntityOut:
    return filled(EntityOut, profile.entity, profile)


class EntityCreate(Given):
    """Someone new."""

    model_config = asked(kind="human", name="Sam", handle="sam", role="member")

    kind: Literal["human", "service"] = "human"
    name: str
    handle: Annotated[str | None, Field(description="Without one, it is made from the name.")] = None
    role: Annotated[PersonRole | None, Field(description="Of a person; more than `member` is for owners to give.")] = (
        None
    )


class EntityChange(Given):
    """What shall be otherwise with someone."""

    model_config = asked(name="Samira")

    name: str | None = None
    role: Annotated[PersonRole | None, Field(description="Of a person; for owners to change.")] = None


def me_out(caller: Caller, organization: Organization) -> Me:
    who, token = caller.entity, caller.token
    return Me(
        id=who.id,
        kind=who.kind,
        handle=who.handle,
        name=who.name,
        role=caller.role,
        organization=OrganizationOut(id=organization.id, name=organization.name),
        token=filled(TokenOut, token),
    )
