"""One thinker: a process that has lost the lease of an agent writes nothing, whichever write it tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from denizen.agents.residents import compact_and_review
from denizen.consciousness import compaction, log, mind
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import Lease
from denizen.consciousness.log import Entry
from denizen.consciousness.mind import Mind
from denizen.consciousness.system_prompt import Identity
from denizen.consciousness.window import Budget, budget
from denizen.cycles import awareness, budgets, calling, ending, opening, triage
from denizen.cycles.budgets import Allowance, Amount, Refusal
from denizen.cycles.calling import ResponseStep
from denizen.cycles.ending import Ending
from denizen.cycles.ledger import Charge
from denizen.cycles.opening import OpenedCycle, Waking
from denizen.cycles.records import OpenCycle
from denizen.errors import LeaseLost
from denizen.inbox.events import Event
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.properties.house import everything
from tests.test_house import fenced_writes
from tests.world import World

TOOLBOX = Toolbox(PREBUILT)
CHARGE = Charge("m", 10, 5)
REFUSAL = Refusal("agent:total", None)


@dataclass(frozen=True)
class Thought:
    """What a process has at hand that thinks for an agent."""

    mind: Mind
    waking: Waking
    begun: OpenCycle | None
    waiting: list[Event]
    """What has come since its cycle began."""

    @property
    def cycle(self) -> OpenCycle:
        assert self.begun is not None
        return self.begun

    def answered(self, *parts: Any) -> Entry:
        return log.entry(self.mind.next_seq + 1, self.cycle.id, "response", ModelResponse(parts=parts))

    def step(self) -> ResponseStep:
        call = ToolCallPart("send_message", {"text": "Hello, Noor."}, "call-1")
        return ResponseStep(0, self.answered(call), (call,), {}, stored=False, characters=1_000, charge=CHARGE)

    def crowded(self) -> compaction.FullMind:
        """As if nothing of its past had room any more."""
        return replace(compaction.crowded(self.mind, TOOLBOX.tokens), budget=Budget(1, 1, 1))


Arguments = Callable[[Thought], tuple[Any, ...]]
BEFORE: dict[Callable[..., Any], Arguments] = {
    opening.open_cycle: lambda at: (at.waking,),
    triage._skip: lambda at: (at.waiting, "of no concern", CHARGE),
    triage._pay: lambda at: (CHARGE,),
    compaction.compact: lambda at: (at.crowded(),),
    compact_and_review: lambda at: (at.crowded(),),
}
"""The writes between cycles, and what each takes besides the lease."""
DURING: dict[Callable[..., Any], Arguments] = {
    opening.resume_cycle: lambda _: (),
    calling.carry_on: lambda at: (at.cycle, at.step(), TOOLBOX, {}),
    calling.store_reminder: lambda at: (at.cycle, [at.answered(TextPart("Hello, Noor."))], CHARGE),
    awareness.notice: lambda at: (at.cycle, "combined"),
    budgets.reserve: lambda at: (Allowance(at.mind.identity.entity.organization_id, None, False), Amount(10, 1)),
    budgets.hold: lambda _: (REFUSAL,),
    ending.undo_and_hold: lambda at: (at.cycle, REFUSAL),
    ending.end_cycle: lambda at: (at.cycle, Ending("done", "Said hello.", spent=CHARGE)),
    ending.skip_cycle: lambda at: (replace(at.cycle, events=()), "of no concern", CHARGE),
    ending.undo_cycle: lambda at: (at.cycle, "a defect"),
    ending.postpone_cycle: lambda at: (at.cycle, "a defect"),
    ending.hand_back: lambda at: (at.cycle,),
    ending.pay_broken_off: lambda _: ([CHARGE],),
    ending.set_aside_cycle: lambda at: (at.cycle, "too long", "too_large", {}),
    ending.interrupt_cycle: lambda at: (at.cycle, "the process died"),
    ending.park_cycle: lambda at: (at.cycle, "401", "key", {}),
    ending.show_trouble: lambda at: (at.cycle, {}),
    calling.store_note: lambda at: (at.cycle, at.answered(TextPart("Hello, Noor."))),
}
"""The writes of an open cycle."""
OPTIONS: dict[Callable[..., Any], dict[str, Any]] = {
    awareness.notice: {"seq": 100, "max_tokens": 10_000, "text_chars": 1_000},
    ending.park_cycle: {"keep": False},
    ending.show_trouble: {"retry_in": 5.0},
}


async def acquired(world: World, agent_id: Any, holder: str) -> Lease:
    lease = await world.denizen.db.write(leases.acquire, agent_id, holder, 30)
    assert lease is not None
    return lease


async def a_thought(world: World, *, opened: bool) -> tuple[Lease, Thought]:
    """A process holds the agent, has opened a cycle or not, and then something urgent comes."""
    ada = await world.agent("Ada", "Done.", "Done.")
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, "Good morning.", kitchen)
    await world.run()
    async with world.denizen.living():
        pass  # whoever held the agent has let it go
    await world.say(noor, "Hello?", kitchen)
    lease = await acquired(world, ada.id, "first")
    who, version, window = Identity(ada.entity, "", ada.definition.zone), ada.version, ada.definition.window
    room = budget(window, None)
    loaded = await world.denizen.db.read(mind.load, lease, who, version, window, room, None)
    waking = Waking(who, version, loaded.era, room.inbox, {"normal": TOOLBOX}, loaded.next_seq)
    begun = await world.denizen.db.write(opening.open_cycle, lease, waking) if opened else None
    await world.say(noor, "Fire!", kitchen, urgent=True)
    cycle = begun.cycle if isinstance(begun, OpenedCycle) else None
    return lease, Thought(loaded, waking, cycle, await world.denizen.minds.inbox(ada))


@pytest.mark.parametrize("write", [*BEFORE, *DURING], ids=lambda each: each.__name__)
async def test_a_process_that_lost_the_lease_writes_nothing(
    write: Callable[..., Any], small_unhurried_world: World
) -> None:
    world = small_unhurried_world
    lost, at = await a_thought(world, opened=write in DURING)
    arguments = (BEFORE | DURING)[write](at)
    if write is opening.resume_cycle:
        # One without an answer is undone instead, which is a write of its own.
        await world.denizen.db.write(calling.store_reminder, lost, *DURING[calling.store_reminder](at))
    world.clock.advance(31)
    lease = await acquired(world, lost.agent_id, "second")
    before = await world.denizen.db.read(everything)
    with pytest.raises(LeaseLost):
        await world.denizen.db.write(write, lost, *arguments, **OPTIONS.get(write, {}))
    assert await world.denizen.db.read(everything) == before
    # It was refused because of its lease only: whoever has it now writes the same.
    await world.denizen.db.write(write, lease, *arguments, **OPTIONS.get(write, {}))
    assert await world.denizen.db.read(everything) != before


def test_every_fenced_write_is_tried() -> None:
    """A new one gets a line in the lists above."""
    found = fenced_writes()
    assert found == {each.__name__ for each in BEFORE | DURING}


async def test_a_lease_of_an_earlier_epoch_is_lost_even_to_its_own_holder(small_unhurried_world: World) -> None:
    """A process that took the agent up again must not end that by what it did before, nor go on with it."""
    world = small_unhurried_world
    ada = await world.agent("Ada")
    earlier = await acquired(world, ada.id, "one")
    world.clock.advance(31)
    later = await acquired(world, ada.id, "one")
    assert later.epoch > earlier.epoch
    with pytest.raises(LeaseLost):
        await world.denizen.db.write(leases.fence, earlier)
    await world.denizen.db.write(leases.release, earlier)
    await world.denizen.db.write(leases.fence, later)
    await world.denizen.db.write(leases.release, later)
    with pytest.raises(LeaseLost):
        await world.denizen.db.write(leases.fence, later)
