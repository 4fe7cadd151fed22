"""What a cycle of which nothing is kept has cost is known exactly, however much others thought meanwhile."""

from __future__ import annotations

from denizen.agents.registry import Agent
from denizen.cycles import ledger
from denizen.cycles.ledger import Charge
from denizen.cycles.skipped_cycles import unkept
from denizen.ids import AgentId, CycleId, new_id
from denizen.storage.database import Tx
from tests.world import World

MANY = 5_500


def _use(tx: Tx, agent: Agent, cycle_id: str, tokens: int) -> None:
    ledger.enter(tx, agent.id, CycleId(cycle_id), "usage", Charge("m", tokens, 1, cost_micros=tokens))


def _think(tx: Tx, agent_id: AgentId) -> None:
    """Another agent has thought very much."""
    line = dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros"), 7)
    about = {"agent_id": agent_id, "kind": "usage", "model": "m", "detail": None, "created_at": tx.now}
    tx.many(ledger._add, [{**line, **about, "cycle_id": new_id()} for _ in range(MANY)])


async def test_what_a_skipped_cycle_used_is_exact(world: World) -> None:
    """Also where thousands of lines of others stand between its first line and its end, and where it failed before."""
    denizen, (ada, bee) = world.denizen, [await world.agent(name) for name in ("Ada", "Bee")]
    begun = world.clock.now()
    for cycle_id, tokens in (("before", 50), ("skipped", 100), ("skipped", 200)):
        await denizen.db.write(_use, ada, cycle_id, tokens)
        if cycle_id == "before":
            await denizen.db.write(ledger.enter, ada.id, CycleId("before"), "skip", detail="no")
        else:
            await denizen.db.write(ledger.enter, ada.id, CycleId("skipped"), "failure", detail="overloaded")
            await denizen.db.write(_think, bee.id)
        world.clock.advance(1_000)
    await denizen.db.write(_use, ada, "skipped", 400)
    await denizen.db.write(ledger.enter, ada.id, CycleId("skipped"), "skip", detail="not for me")
    world.clock.advance(1)

    found, complete = await denizen.db.read(unkept, ada.id, begun, world.clock.now())
    assert [(each.cycle_id, each.reason, each.input_tokens, each.cost_micros) for each in found] == [
        ("skipped", "not for me", 700, 700),
        ("before", "no", 50, 50),
    ]
    assert complete
    end = await denizen.db.read(ledger.end_of, ada.id, CycleId("skipped"))
    assert end is not None
    spent = await denizen.db.read(ledger.spent, ada.id, CycleId("skipped"), up_to=end.number)
    assert (spent.input_tokens, spent.output_tokens, spent.model) == (700, 3, "m")
    # Of what it did before, nothing is looked through.
    assert await denizen.db.read(ledger.line_before, ada.id, CycleId("skipped"), end.number) <= 2
    assert await denizen.db.read(ledger.spent, bee.id, CycleId("none")) == ledger.NOTHING
