"""Which panels reflect, and which have turns to reflect on."""

from __future__ import annotations

from sqlalchemy import select

from denizen.ids import SpaceId
from denizen.panel.settings import AdvisorSettings, PanelSettings
from denizen.reflection.cursor import PANEL_CURSOR, Claimant
from denizen.storage.database import Tx, select_where, statement, values
from denizen.storage.schema import advisors, panel_reflecting, panels

_panel = select_where(panels, "settings, turns", "space_id")
_advisors = select_where(advisors, "settings", "space_id", advisors.c.removed_at.is_(None))


def keep_reflecting(tx: Tx, panel_id: SpaceId) -> None:
    """Switches reflection on for the panel if it or one of its advisors wants it, otherwise off."""
    row = tx.one(_panel, space_id=panel_id)
    if row is None:
        return
    panel_settings, turns = row
    wanted = PanelSettings.model_validate_json(panel_settings).reflection.is_on
    for (settings,) in () if wanted else tx.all(_advisors, space_id=panel_id):
        own = AdvisorSettings.model_validate_json(settings).reflection
        wanted = wanted or (own is not None and own.is_on)
    PANEL_CURSOR.set_reflecting(tx, panel_id, wanted, turns)


_behind = statement(
    select(panel_reflecting.c.space_id)
    .join(panels, panels.c.space_id == panel_reflecting.c.space_id)
    .where(panels.c.turns > panel_reflecting.c.turn, PANEL_CURSOR.unclaimed)
    .order_by(panel_reflecting.c.space_id)
)


def behind(tx: Tx, by: Claimant) -> list[SpaceId]:
    """Returns the panels with turns to reflect on that no other living instance has claimed."""
    return [SpaceId(each) for each in values(tx, _behind, **by.parameters(tx))]
