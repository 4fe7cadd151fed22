"""How long the messages of a space are kept: its own setting, or the default of its organization. By default for ever.

What happens to messages that have expired is up to `forgetting` and its callers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from denizen.errors import InvalidInput
from denizen.ids import OrganizationId, SpaceId
from denizen.shapes.vocabulary import MOST_DAYS
from denizen.spaces import directory, organization_settings
from denizen.spaces.sizes import DAY
from denizen.storage.database import Tx, delete_where, insert_into, select_where, statement
from denizen.storage.schema import organizations, retentions, spaces

KEEP_DAYS: Final = "keep_days"
ARCHIVE: Final = "archive_expired"
"""The names of the organization's settings."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long messages are kept."""

    days: int = 0
    """0: for ever."""
    archive: bool = False
    """Whether they are written to a file before they are removed."""

    def before(self, now: int) -> int:
        """The instant before which messages have expired."""
        return now - self.days * DAY


_own = select_where(retentions, "days, archive", "space_id")
_drop = delete_where(retentions, "space_id")
_keep = insert_into(retentions, "space_id, days, archive")
_all_settings = statement(select(organizations.c.id, organizations.c.settings))
_all_own = statement(select(retentions.c.space_id, retentions.c.days, retentions.c.archive))
_spaces_of = select_where(spaces, "id", "organization_id", order_by="id")


def default_of(tx: Tx, organization_id: OrganizationId) -> Retention:
    """The organization's default."""
    return _default(organization_settings.read(tx, organization_id))


def _default(settings: dict[str, Any]) -> Retention:
    return Retention(settings.get(KEEP_DAYS, 0), settings.get(ARCHIVE, False))


def own_of(tx: Tx, space_id: SpaceId) -> Retention | None:
    """The space's own setting; None: it has none."""
    for days, archive in tx.all(_own, space_id=space_id):
        return Retention(days, bool(archive))
    return None


def of_space(tx: Tx, space_id: SpaceId) -> Retention:
    """What applies in the space."""
    own = own_of(tx, space_id)
    return default_of(tx, directory.get_space(tx, space_id).organization_id) if own is None else own


def set_own(tx: Tx, space_id: SpaceId, wanted: Retention | None) -> None:
    """Give the space a setting of its own; None: the organization's default applies again."""
    if wanted is not None and not 0 <= wanted.days <= MOST_DAYS:
        raise InvalidInput(f"days is a number from 0 (for ever) to {MOST_DAYS:,}, not {wanted.days:,}.")
    tx.run(_drop, space_id=space_id)
    if wanted is not None:
        tx.run(_keep, space_id=space_id, days=wanted.days, archive=int(wanted.archive))
    directory.announce_change(tx, space_id)


def in_force(tx: Tx) -> list[tuple[SpaceId, Retention]]:
    """The spaces whose messages expire, in all organizations. Reads no space where nobody has set anything."""
    own = {space_id: Retention(days, bool(archive)) for space_id, days, archive in tx.all(_all_own)}
    found = dict(own)
    for organization_id, settings in tx.all(_all_settings):
        default = _default(json.loads(settings or "{}"))
        if default.days:
            found |= {id: own.get(id, default) for (id,) in tx.all(_spaces_of, organization_id=organization_id)}
    return [(SpaceId(id), each) for id, each in sorted(found.items()) if each.days]
