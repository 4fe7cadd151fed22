"""The organization and who is in it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from denizen.access.people import Profile
from denizen.access.roles import Role
from denizen.clock import moment
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.organization import OrganizationSettings, SecretHosts
from denizen.server.shapes.examples import asked, given
from denizen.server.shapes.given import Given
from denizen.spaces.directory import EntityKind, Organization

_HOME = "019b8d3e-5bff-7012-8111-222233334444"
_SAM = "019b8d3e-5c03-7d13-a2aa-1a1b2c3d4e5f"

PersonRole = Literal["owner", "admin", "member"]


class OrganizationDetail(BaseModel):
    """Your organization."""

    model_config = given(id=_HOME, name="Home", settings={"budget": {"dollars_per_day": "5.00"}, "spaces_by": "member"})

    id: str
    name: str
    settings: Annotated[
        OrganizationSettings | None, Field(description="For admins and owners; null for whoever is neither.")
    ]

    @classmethod
    def of(cls, organization: Organization, settings: OrganizationSettings | None) -> OrganizationDetail:
        return cls(id=organization.id, name=organization.name, settings=settings)


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


class EntityOut(BaseModel):
    """A person, an agent or a service of your organization."""

    model_config = given(
        id=_SAM,
        kind="human",
        handle="sam",
        name="Sam",
        role="member",
        created_at="2026-01-05T09:00:00Z",
        left_at=None,
    )

    id: str
    kind: EntityKind
    handle: Annotated[str, Field(description="`@handle` mentions it.")]
    name: str
    role: Role
    created_at: datetime
    left_at: Annotated[datetime | None, Field(description="Since when it is here no more; what it said stays.")]

    @classmethod
    def of(cls, profile: Profile) -> EntityOut:
        who = profile.entity
        return cls(
            id=who.id,
            kind=who.kind,
            handle=who.handle,
            name=who.name,
            role=profile.role,
            created_at=moment(profile.created_at),
            left_at=None if profile.left_at is None else moment(profile.left_at),
        )


class EntityPage(BaseModel):
    """Some of those who are here, by handle."""

    entities: list[EntityOut]
    next: Annotated[str | None, Field(description="Give it as `after` for the next page; null: there is none.")]


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
