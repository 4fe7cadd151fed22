"""What thinking costs, and why cycles were skipped or failed: a ledger of its own, which no rollback touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from denizen.ids import AgentId, CycleId
from denizen.storage.database import Tx, insert_into, storable
from denizen.storage.schema import ledger


@dataclass(frozen=True, slots=True)
class Charge:
    """What one model call cost."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micros: int | None = None
    """Millionths of a dollar; None where the price is unknown."""

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            other.model or self.model,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            (self.cost_micros or 0) + (other.cost_micros or 0),
        )


NOTHING = Charge()

_add = insert_into(
    ledger,
    "agent_id",
    "cycle_id",
    "kind",
    "model",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_micros",
    "detail",
    "created_at",
)


def enter(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    kind: Literal["usage", "skip", "failure"],
    charge: Charge = NOTHING,
    detail: str | None = None,
) -> None:
    """One more line: what a model call cost, or why a cycle came to nothing."""
    tx.run(
        _add,
        agent_id=agent_id,
        cycle_id=cycle_id,
        kind=kind,
        model=charge.model,
        input_tokens=charge.input_tokens,
        output_tokens=charge.output_tokens,
        cache_read_tokens=charge.cache_read_tokens,
        cache_write_tokens=charge.cache_write_tokens,
        cost_micros=charge.cost_micros,
        detail=None if detail is None else storable(detail),
        created_at=tx.now,
    )
