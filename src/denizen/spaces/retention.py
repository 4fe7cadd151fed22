"""How long the messages of a space are kept: its own setting, or the default of its organization. By default for ever.

What happens to messages that have expired is up to `forgetting` and to whoever runs it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, delete, select

from denizen.errors import InvalidInput
from denizen.ids import OrganizationId, SpaceId
from denizen.shapes.vocabulary import MOST_DAYS
from denizen.spaces import directory
from denizen.spaces.sizes import DAY
from denizen.storage.database import Tx, insert_into, statement, value
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


FOR_EVER: Final = Retention()

_own = statement(select(retentions.c.days, retentions.c.archive).where(retentions.c.space_id == bindparam("space_id")))
_drop = statement(delete(retentions).where(retentions.c.space_id == bindparam("space")))
_keep = insert_into(retentions, "space_id", "days", "archive")
_settings = statement(select(organizations.c.settings).where(organizations.c.id == bindparam("id")))
_all_settings = statement(select(organizations.c.id, organizations.c.settings))
_all_own = statement(select(retentions.c.space_id, retentions.c.days, retentions.c.archive))
_spaces_of = statement(
    select(spaces.c.id).where(spaces.c.organization_id == bindparam("organization_id")).order_by(spaces.c.id)
)


def default_of(tx: Tx, organization_id: OrganizationId) -> Retention:
    """The organization's default."""
    return _default(json.loads(value(tx, _settings, id=organization_id) or "{}"))


def _default(settings: dict[str, Any]) -> Retention:
    return Retention(settings.get(KEEP_DAYS, 0), settings.get(ARCHIVE, False))


def own_of(tx: Tx, space_id: SpaceId) -> Retention | None:
    """The space's own setting; None: it has none."""
    row = tx.one(_own, space_id=space_id)
    return None if row is None else Retention(row[0], bool(row[1]))


def of_space(tx: Tx, space_id: SpaceId) -> Retention:
    """What applies in the space."""
    own = own_of(tx, space_id)
    return default_of(tx, directory.get_space(tx, space_id).organization_id) if own is None else own


def set_own(tx: Tx, space_id: SpaceId, wanted: Retention | None) -> None:
    """Give the space a setting of its own; None: the organization's default applies again."""
    if wanted is not None and not 0 <= wanted.days <= MOST_DAYS:
        raise InvalidInput(f"days is a number from 0 (for ever) to {MOST_DAYS:,}, not {wanted.days:,}.")
    tx.run(_drop, space=space_id)
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
