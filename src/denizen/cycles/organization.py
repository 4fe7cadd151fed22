"""The name and settings of an organization, including its budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from sqlalchemy import bindparam, select, update

from denizen.access.secrets import NAME
from denizen.cycles import budgets
from denizen.cycles.budgets import BudgetSettings
from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId
from denizen.nearest import nearest
from denizen.storage.database import Tx, statement
from denizen.storage.schema import organizations

Host = Annotated[str, StringConstraints(min_length=1, max_length=260, pattern=r"^[A-Za-z0-9._:\[\]-]+$")]
"""A host: `name`, or `name:port`."""
SecretHosts = Annotated[
    dict[Annotated[str, StringConstraints(pattern=f"^{NAME}$")], Annotated[tuple[Host, ...], Field(max_length=50)]],
    Field(max_length=200),
]


class OrganizationSettings(BaseModel):
    """What an organization has settled. A setting that it does not name has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: BudgetSettings | None = None
    """What all its agents together may use."""
    spaces_by: Literal["member", "admin"] = "member"
    """Who may create spaces: everyone who is a person here, or admins and owners only."""
    remote_pictures: bool = False
    """Whether the web client shows pictures of messages that are on other sites (https); otherwise, links to them."""
    secret_hosts: SecretHosts = Field(default_factory=dict[str, tuple[Host, ...]])
    """Where a secret may be sent by tools (`name` or `name:port`); one that is not here, where owners define it."""


_NAMES = frozenset(OrganizationSettings.model_fields)
_SERVER_MODELS = "server_models"
"""Stored beside the settings of the organization, but not one of them: it cannot be changed like them."""
_settings = select(organizations.c.settings).where(organizations.c.id == bindparam("id"))
_read = statement(_settings)
_lock = statement(_settings.with_for_update(key_share=True))
_store = statement(
    update(organizations).where(organizations.c.id == bindparam("organization")).values(settings=bindparam("new"))
)


def settings_of(tx: Tx, organization_id: OrganizationId) -> OrganizationSettings:
    # Settings of a newer version are ignored.
    stored = {name: value for name, value in _stored(tx, organization_id).items() if name in _NAMES}
    return OrganizationSettings.model_validate(stored)


def change_settings(tx: Tx, organization_id: OrganizationId, changes: Mapping[str, object]) -> OrganizationSettings:
    """Change these settings and keep the others; None resets one to its default."""
    wanted = _checked(changes)
    row = tx.one(_lock, id=organization_id)
    if row is None:
        raise NotFound("organization", organization_id)
    stored: dict[str, Any] = json.loads(row[0])
    for name in changes.keys() - {"budget"}:
        stored.pop(name, None)
    stored |= wanted.model_dump(mode="json", exclude={"budget"}, exclude_defaults=True)
    tx.run(_store, organization=organization_id, new=json.dumps(stored, ensure_ascii=False))
    if "budget" in changes:
        # Agents that rest because of it resume, and running ones hear of it.
        budgets.set_organization_budget(tx, organization_id, wanted.budget)
    return settings_of(tx, organization_id)


def server_models(tx: Tx, organization_id: OrganizationId) -> dict[str, Any]:
    """The first organization's choice of models for the whole server (`cycles.server_models`)."""
    return _stored(tx, organization_id).get(_SERVER_MODELS, {})


def set_server_models(tx: Tx, organization_id: OrganizationId, value: Mapping[str, Any]) -> None:
    row = tx.one(_lock, id=organization_id)
    if row is None:
        raise NotFound("organization", organization_id)
    stored: dict[str, Any] = {**json.loads(row[0]), _SERVER_MODELS: value}
    tx.run(_store, organization=organization_id, new=json.dumps(stored, ensure_ascii=False))


def _stored(tx: Tx, organization_id: OrganizationId) -> dict[str, Any]:
    row = tx.one(_read, id=organization_id)
    if row is None:
        raise NotFound("organization", organization_id)
    return json.loads(row[0])


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
