"""The name and settings of an organization, including its budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue, StringConstraints, ValidationError

from denizen.access import audit
from denizen.access.requesters import Requester
from denizen.access.secrets import NAME
from denizen.cycles import budgets
from denizen.cycles.budgets import BudgetSettings
from denizen.errors import InvalidInput
from denizen.ids import OrganizationId
from denizen.nearest import nearest
from denizen.shapes.vocabulary import MOST_DAYS
from denizen.spaces import directory, organization_settings
from denizen.storage.database import Tx

Host = Annotated[str, StringConstraints(min_length=1, max_length=260, pattern=r"^[A-Za-z0-9._:\[\]-]+$")]
"""A host: `name`, or `name:port`."""
SecretHosts = Annotated[
    dict[Annotated[str, StringConstraints(pattern=f"^{NAME}$")], Annotated[tuple[Host, ...], Field(max_length=50)]],
    Field(max_length=200),
]


class OrganizationSettings(BaseModel, frozen=True, extra="forbid"):
    """What an organization has settled. A setting that it does not name has its default."""

    budget: BudgetSettings | None = None
    """What all its agents together may use."""
    spaces_by: Literal["member", "admin"] = "member"
    """Who may create spaces: everyone who is a person here, or admins and owners only."""
    remote_pictures: bool = False
    """Whether the web client shows pictures of messages that are on other sites (https); otherwise, links to them."""
    secret_hosts: SecretHosts = Field(default_factory=dict[str, tuple[Host, ...]])
    """Where a secret may be sent by tools (`name` or `name:port`); one that is not here, where owners define it."""
    keep_days: Annotated[int, Field(ge=0, le=MOST_DAYS)] = 0
    """After how many days messages are removed, in spaces without a setting of their own; 0: never."""
    archive_expired: bool = False
    """Whether such messages are written to a file before they are removed."""


_NAMES = frozenset(OrganizationSettings.model_fields)
_SERVER_MODELS = "server_models"
"""Stored beside the settings of the organization, but not one of them: it cannot be changed like them."""


def settings_of(tx: Tx, organization_id: OrganizationId) -> OrganizationSettings:
    # Settings of a newer version are ignored.
    stored = {name: value for name, value in organization_settings.read(tx, organization_id).items() if name in _NAMES}
    return OrganizationSettings.model_validate(stored)


def change_settings(tx: Tx, organization_id: OrganizationId, changes: Mapping[str, object]) -> OrganizationSettings:
    """Change these settings and keep the others; None resets one to its default."""
    wanted = _checked(changes)
    stored = organization_settings.lock(tx, organization_id)
    for name in changes.keys() - {"budget"}:
        stored.pop(name, None)
    stored |= wanted.model_dump(mode="json", exclude={"budget"}, exclude_defaults=True)
    organization_settings.store(tx, organization_id, stored)
    if "budget" in changes:
        # Agents that rest because of it resume, and running ones hear of it.
        budgets.set_organization_budget(tx, organization_id, wanted.budget)
    return settings_of(tx, organization_id)


def change(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    *,
    name: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Change the name of the organization, and these settings. For owners."""
    by.require("owner")
    by.require_organization(organization_id)
    changed: list[JsonValue] = []
    if name is not None:
        directory.rename_organization(tx, organization_id, name)
        changed.append("name")
    if settings is not None:
        change_settings(tx, organization_id, settings)
        changed += sorted(settings)
    if changed:
        audit.record(tx, organization_id, by.actor, "change_organization", fields=changed)


def set_budget(tx: Tx, by: Requester, organization_id: OrganizationId, budget: BudgetSettings) -> None:
    """Replace the budget of all agents of the organization together. For admins."""
    by.require("admin")
    by.require_organization(organization_id)
    before = budgets.organization_budget(tx, organization_id)
    budgets.set_organization_budget(tx, organization_id, budget)
    old = None if before is None else _limits(before)
    audit.record(tx, organization_id, by.actor, "put_budget", before=old, after=_limits(budget))


def _limits(budget: BudgetSettings) -> JsonValue:
    return budget.model_dump(mode="json", exclude_none=True)


def server_models(tx: Tx, organization_id: OrganizationId) -> dict[str, Any]:
    """The first organization's choice of models for the whole server (`cycles.server_models`)."""
    return organization_settings.read(tx, organization_id).get(_SERVER_MODELS, {})


def set_server_models(tx: Tx, organization_id: OrganizationId, value: Mapping[str, Any]) -> None:
    stored = organization_settings.lock(tx, organization_id)
    organization_settings.store(tx, organization_id, {**stored, _SERVER_MODELS: value})


def _checked(changes: Mapping[str, object]) -> OrganizationSettings:
    for name in sorted(changes.keys() - _NAMES):
        near = next(iter(nearest(name, _NAMES)), None)
        raise InvalidInput(f"There is no setting {name!r}." + (f" Did you mean {near!r}?" if near else ""))
    try:
        return OrganizationSettings.model_validate(
            {name: value for name, value in changes.items() if value is not None}
        )
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        said = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
        raise InvalidInput(f"Invalid settings. {said}.") from error
