"""The memory policy: what may be remembered, and who may be shown it. Pure.

The request beats the conversation's stored policy, which beats the defaults. Only explicit choices are stored, so a
default can neither undo an opt-out nor outlive itself. The organization can switch off, never on. If its settings
cannot be read, nothing is remembered or recalled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Self

from pydantic import BaseModel, Field

from denizen.access.roles import Role, reaches
from denizen.memory.documents import SHARED, Category
from denizen.shapes.memory import Scopes
from denizen.shapes.vocabulary import MemoryScope as Scope

SCOPES: Final[tuple[Scope, ...]] = ("conversation", "user", "persona", "organization")

Verdict = Literal[
    "yes",
    "settings_unreadable",
    "switched_off",
    "opted_out",
    "scope_off",
    "not_authenticated",
    "no_organization",
    "not_shared",
    "admin_only",
]
"""`yes`, or why not."""

WHY: Final[dict[Verdict, str]] = {
    "yes": "",
    "settings_unreadable": "the organization's settings cannot be read",
    "switched_off": "the organization has switched it off",
    "opted_out": "the conversation was opted out of long-term memory",
    "scope_off": "the scope is off in this conversation",
    "not_authenticated": "no person is speaking",
    "no_organization": "the request does not name the organization",
    "not_shared": "nobody has said that it may be shared",
    "admin_only": "only admins and owners may publish it",
}


class Policy(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """Choices about long-term memory: `memoryControl.longTermMemory` of a request, or the stored ones of a
    conversation.
    """

    enabled: bool | None = None
    scopes: Scopes = Scopes()
    share_with_organization: bool | None = Field(default=None, alias="shareWithOrganization")

    def over(self, other: Policy) -> Self:
        """Returns this policy, with the other's values where this one has none."""
        return self.model_copy(
            update={
                "enabled": other.enabled if self.enabled is None else self.enabled,
                "scopes": other.scopes.model_copy(update=self.scopes.model_dump(exclude_none=True)),
                "share_with_organization": other.share_with_organization
                if self.share_with_organization is None
                else self.share_with_organization,
            }
        )

    @property
    def says_nothing(self) -> bool:
        return self.model_dump(exclude_none=True) == {"scopes": {}}


class OrganizationMemory(BaseModel, frozen=True, extra="forbid"):
    """An organization's settings for long-term memory. Each can only switch off."""

    enabled: bool = True
    """Whether long-term memories are stored and recalled at all."""
    conversation: bool = True
    user: bool = True
    persona: bool = True
    organization: bool = True
    publish: bool = True
    """Whether new memories are shared with the organization; existing ones stay."""
    categories: tuple[Category, ...] = SHARED
    """The categories that may be shared with the organization."""

    def allows(self, scope: Scope) -> bool:
        return self.enabled and bool(getattr(self, scope))


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances of a write or a read."""

    authenticated: bool
    """Whether the speaker is a known person."""
    organization: bool
    """Whether the request names the organization."""
    role: Role | None
    """The person's role."""
    settings: OrganizationMemory | None
    """None if they cannot be read."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one scope."""

    write: Verdict
    read: Verdict


def decide(policy: Policy, scope: Scope, given: Circumstances) -> Decision:
    """Decides whether this scope may be written and read, and if not, why."""
    barred = _barred(policy, scope, given)
    if barred is not None:
        return Decision(barred, barred)
    if scope == "organization":
        return Decision(_publishing(policy, given), "yes")
    return Decision("yes", "yes")


def _barred(policy: Policy, scope: Scope, given: Circumstances) -> Verdict | None:
    """Returns why neither writing nor reading is allowed; None if one is."""
    if given.settings is None:
        return "settings_unreadable"
    if not given.settings.allows(scope):
        return "switched_off"
    if policy.enabled is False:
        return "opted_out"
    if getattr(policy.scopes, scope) is False:
        return "scope_off"
    if scope != "conversation" and not given.authenticated:
        return "not_authenticated"
    return "no_organization" if scope == "organization" and not given.organization else None


def _publishing(policy: Policy, given: Circumstances) -> Verdict:
    # Naming the organization is enough for reading; for writing, somebody must have chosen it explicitly.
    if policy.scopes.organization is not True:
        return "scope_off"
    if policy.share_with_organization is not True:
        return "not_shared"
    if given.role is None or not reaches(given.role, "admin"):
        return "admin_only"
    return "yes" if given.settings is not None and given.settings.publish else "switched_off"
