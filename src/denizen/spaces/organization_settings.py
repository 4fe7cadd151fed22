"""The stored settings of organizations: a JSON object each, in which every part of Denizen has keys of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from denizen.errors import existing
from denizen.ids import OrganizationId
from denizen.storage.database import Statement, Tx, equal, select_where, statement, storable, update_where, value
from denizen.storage.schema import organizations

_read = select_where(organizations, "settings", "id")
# Rows can still refer to its key.
_lock = statement(select(organizations.c.settings).where(*equal(organizations, "id")).with_for_update(key_share=True))
_store = update_where(organizations, "id", set_="settings")


def read_text(tx: Tx, organization_id: OrganizationId) -> str:
    """Returns the settings as JSON."""
    return _text(tx, _read, organization_id)


def read(tx: Tx, organization_id: OrganizationId) -> dict[str, Any]:
    """Returns the settings."""
    return json.loads(_text(tx, _read, organization_id))


def lock(tx: Tx, organization_id: OrganizationId) -> dict[str, Any]:
    """Returns the settings. Until the commit, others who call this wait."""
    return json.loads(_text(tx, _lock, organization_id))


def store(tx: Tx, organization_id: OrganizationId, settings: Mapping[str, Any]) -> None:
    """Replaces the settings. The caller has called `lock`, and keeps what is not its own."""
    tx.run(_store, id=organization_id, settings=storable(json.dumps(settings, ensure_ascii=False)))


def _text(tx: Tx, statement: Statement, organization_id: OrganizationId) -> str:
    return existing(value(tx, statement, id=organization_id), "organization", organization_id)
