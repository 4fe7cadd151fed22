"""Which panels reflect, and the last turn that each has reflected on."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, func, select

from denizen.ids import SpaceId
from denizen.panel.settings import AdvisorSettings, PanelSettings
from denizen.reflection import claims
from denizen.reflection.claims import Claimant
from denizen.storage.database import Tx, insert_ignore, statement
from denizen.storage.schema import advisors, panel_reflecting, panels, redactions, spaces

_panel = statement(select(panels.c.settings, panels.c.turns).where(panels.c.space_id == bindparam("space_id")))
_advisors = statement(
    select(advisors.c.settings).where(advisors.c.space_id == bindparam("space_id"), advisors.c.removed_at.is_(None))
)
_begin = insert_ignore(panel_reflecting, ("space_id", "turn"))
_end = statement(delete(panel_reflecting).where(panel_reflecting.c.space_id == bindparam("space")))


def keep_reflecting(tx: Tx, panel_id: SpaceId) -> None:
    """Switches reflection on for the panel if it or one of its advisors wants it, otherwise off."""
    row = tx.one(_panel, space_id=panel_id)
    if row is None:
        return
    wanted = PanelSettings.model_validate_json(row[0]).reflection.is_on
    for (settings,) in () if wanted else tx.all(_advisors, space_id=panel_id):
        own = AdvisorSettings.model_validate_json(settings).reflection
        wanted = wanted or (own is not None and own.is_on)
    if wanted:
        tx.run(_begin, space_id=panel_id, turn=row[1])
    else:
        tx.run(_end, space=panel_id)


_mark = statement(select(panel_reflecting.c.turn).where(panel_reflecting.c.space_id == bindparam("space_id")))
_claim = claims.claiming(panel_reflecting, panel_reflecting.c.space_id, panel_reflecting.c.turn)
_advance = claims.advancing(panel_reflecting, panel_reflecting.c.space_id, panel_reflecting.c.turn)


def mark(tx: Tx, panel_id: SpaceId) -> int | None:
    """Returns the number of the last turn that was reflected on; None for a panel that does not reflect."""
    row = tx.one(_mark, space_id=panel_id)
    return None if row is None else row[0]


def claim(tx: Tx, panel_id: SpaceId, turn: int, by: Claimant) -> bool:
    """Claims the turn for this instance; False if another living instance has, or the turn was already reflected on."""
    return tx.run(_claim, whose=panel_id, before=turn - 1, **claims.parameters(tx, by)) > 0


def advance(tx: Tx, panel_id: SpaceId, turn: int, instance: str) -> bool:
    """Moves the cursor to this turn; False if this instance has lost its claim."""
    return tx.run(_advance, whose=panel_id, before=turn - 1, after=turn, claimant=instance) > 0


_behind = statement(
    select(panel_reflecting.c.space_id)
    .join(panels, panels.c.space_id == panel_reflecting.c.space_id)
    .where(panels.c.turns > panel_reflecting.c.turn, claims.is_free(panel_reflecting))
    .order_by(panel_reflecting.c.space_id)
)


def behind(tx: Tx, by: Claimant) -> list[SpaceId]:
    """Returns the panels with turns to reflect on that no other living instance has claimed."""
    return [SpaceId(row[0]) for row in tx.all(_behind, **claims.parameters(tx, by))]


_redactions = statement(
    select(func.count())
    .select_from(redactions)
    # Read from the space: it may be older than the panel's own row.
    .join(spaces, spaces.c.organization_id == redactions.c.organization_id)
    .where(spaces.c.id == bindparam("space_id"))
)


def redactions_so_far(tx: Tx, panel_id: SpaceId) -> int:
    """Returns how often something was forgotten in the panel's organization."""
    row = tx.one(_redactions, space_id=panel_id)
    assert row is not None
    return row[0]
