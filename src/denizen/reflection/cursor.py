"""How far agents and panels have reflected, and which instance reflects next, so that no two pay for the same turn.

A claim needs no renewal: it holds while its instance sends heartbeats, and a dead instance is recognized after the
duration of a lease. Results of a former claimant are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Table, bindparam, delete, func, or_, select, update

from denizen.clock import SECOND
from denizen.storage.database import Tx, insert_ignore, statement, value
from denizen.storage.schema import agents, instances, panel_reflecting, redactions, reflecting, spaces


@dataclass(frozen=True, slots=True)
class Claimant:
    """An instance that reflects."""

    instance: str
    lease_seconds: float
    """An instance that was not seen for so long counts as dead."""

    def parameters(self, tx: Tx) -> dict[str, Any]:
        """The parameters of `ReflectionCursor.unclaimed`."""
        return {"claimant": self.instance, "since": tx.now - int(self.lease_seconds * SECOND)}


class ReflectionCursor:
    """The rows of a table that has, for each owner, the last turn that was reflected on, and who claims the next."""

    def __init__(self, table: Table, *, owner: str, turn: str, owners: Table) -> None:
        self._owner, self._turn = owner, turn
        of, last, holder = table.c[owner], table.c[turn], table.c.holder
        alive = select(instances.c.id).where(instances.c.seen_at >= bindparam("since"))
        self.unclaimed = or_(holder.is_(None), holder == bindparam("claimant"), holder.not_in(alive))
        """Whether no other living instance has claimed the row. Takes the parameters of a `Claimant`."""
        at_turn = (of == bindparam("whose"), last == bindparam("before"))
        self._begin = insert_ignore(table, (owner, turn))
        self._end = statement(delete(table).where(of == bindparam("whose")))
        self._last = statement(select(last).where(of == bindparam("whose")))
        self._claim = statement(update(table).where(*at_turn, self.unclaimed).values(holder=bindparam("claimant")))
        self._advance = statement(
            update(table)
            .where(*at_turn, holder == bindparam("claimant"))
            .values({turn: bindparam("after"), "holder": None})
        )
        self._redactions = statement(
            select(func.count())
            .select_from(redactions)
            .join(owners, owners.c.organization_id == redactions.c.organization_id)
            .where(owners.c.id == bindparam("whose"))
        )

    def set_reflecting(self, tx: Tx, whose: str, on: bool, last: int) -> None:
        """Begins to reflect after the turn `last`, or continues; or ends it."""
        if on:
            tx.run(self._begin, **{self._owner: whose, self._turn: last})
        else:
            tx.run(self._end, whose=whose)

    def last_turn(self, tx: Tx, whose: str) -> int | None:
        """Returns the last turn that was reflected on; None if this owner does not reflect."""
        return value(tx, self._last, whose=whose)

    def claim(self, tx: Tx, whose: str, turn: int, by: Claimant) -> bool:
        """Claims the turn for this instance; False if another living instance has, or it was already reflected on."""
        return tx.run(self._claim, whose=whose, before=turn - 1, **by.parameters(tx)) > 0

    def advance(self, tx: Tx, whose: str, turn: int, instance: str, *, forgotten: int) -> bool:
        """Moves to this turn; False if this instance has lost its claim.

        The same if more was forgotten than `redactions_so_far` returned before: the model may have been shown, and may
        have repeated, just that.
        """
        if self.redactions_so_far(tx, whose) != forgotten:
            return False
        return tx.run(self._advance, whose=whose, before=turn - 1, after=turn, claimant=instance) > 0

    def redactions_so_far(self, tx: Tx, whose: str) -> int:
        """Returns how often something was forgotten in the owner's organization."""
        redactions = value(tx, self._redactions, whose=whose)
        assert redactions is not None
        return redactions


AGENT_CURSOR: Final = ReflectionCursor(reflecting, owner="agent_id", turn="cycle", owners=agents)
# By the space: it may be older than the panel's own row.
PANEL_CURSOR: Final = ReflectionCursor(panel_reflecting, owner="space_id", turn="turn", owners=spaces)
