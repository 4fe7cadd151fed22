"""An agent that is woken a moment after its release thinks with the mind that it had, unless that has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen import reply, scripted
from denizen.agents.pace import Pace
from denizen.agents.recent_minds import KEPT_SECONDS, MOST, RecentMinds
from denizen.agents.registry import Agent
from denizen.clock import SECOND, Instant
from denizen.consciousness.lease import Lease
from denizen.consciousness.mind import Mind
from denizen.consciousness.settings import WindowSettings
from denizen.consciousness.system_prompt import Era, Identity
from denizen.consciousness.window import Budget
from denizen.ids import AgentId, EntityId, OrganizationId
from denizen.spaces.directory import Entity, Space
from tests.world import World, open_world

COLD = Pace(warm_seconds=0, grace_seconds=60)
NOW = Instant(1_000 * SECOND)
ADA = Identity(Entity(EntityId("ada"), OrganizationId("home"), "agent", "ada", "Ada"), "Be kind.")
ROOM = Budget(1_000, 100, 100)


def mind_of(agent: str, epoch: int = 1) -> Mind:
    lease = Lease(AgentId(agent), "here", epoch)
    return Mind(lease, ADA, 1, WindowSettings(), ROOM, Era(1, "I am Ada.", None), [])


def test_the_next_epoch_has_the_same_mind_once() -> None:
    recent, mind = RecentMinds(), mind_of("ada", 7)
    recent.keep(mind, NOW)
    lease = replace(mind.lease, epoch=8)
    assert recent.take(lease, ADA, 1, ROOM, NOW) is mind
    assert mind.lease == lease
    assert recent.take(lease, ADA, 1, ROOM, NOW) is None


@pytest.mark.parametrize(
    ("epoch", "identity", "version", "budget", "later"),
    [
        (9, ADA, 1, ROOM, 0),  # somebody had the lease in between, or took it away
        (8, replace(ADA, instructions="Be strict."), 1, ROOM, 0),
        (8, ADA, 2, ROOM, 0),
        (8, ADA, 1, Budget(2_000, 100, 100), 0),
        (8, ADA, 1, ROOM, KEPT_SECONDS + 1),
    ],
)
def test_a_mind_that_may_have_changed_is_read_anew(
    epoch: int, identity: Identity, version: int, budget: Budget, later: int
) -> None:
    recent = RecentMinds()
    recent.keep(mind_of("ada", 7), NOW)
    lease = Lease(AgentId("ada"), "here", epoch)
    assert recent.take(lease, identity, version, budget, Instant(NOW + later * SECOND)) is None


def test_only_a_few_are_kept() -> None:
    recent = RecentMinds()
    for number in range(MOST + 1):
        recent.keep(mind_of(f"agent-{number}"), NOW)
    taken = [recent.take(Lease(AgentId(f"agent-{number}"), "here", 2), ADA, 1, ROOM, NOW) for number in range(MOST + 1)]
    assert [each is None for each in taken] == [True, *[False] * MOST]


async def a_kitchen(world: World) -> tuple[Agent, Entity, Space]:
    turns = [turn for number in range(4) for turn in (reply(f"Answer {number}."), f"Answered {number}.")]
    ada = await world.agent("Ada", *turns)
    noor = await world.person("Noor")
    return ada, noor, await world.space("Kitchen", noor, ada)


async def test_it_reads_what_a_new_process_would_read(ready_sqlite_url: str) -> None:
    """Whether an agent was just released, or its process is another one, its model is sent the same."""
    async with open_world(ready_sqlite_url, pace=COLD) as world:
        ada, noor, kitchen = await a_kitchen(world)
        async with world.denizen.living() as residents:
            for text in ("One.", "Two."):
                await world.say(noor, text, kitchen)
                await residents.run_until_idle()
        kept = (await world.prompts(ada))[-1]
        handle = {"ada": scripted(reply("Answer 2."), "Answered 2.")}
        await world.restart(**handle)
        await world.say(noor, "Three.", kitchen)
        await world.run()
        read = (await world.prompts(ada))[0]
    assert read[: len(kept)] == kept


async def test_what_was_forgotten_meanwhile_is_not_thought_with(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, pace=COLD) as world:
        ada, noor, kitchen = await a_kitchen(world)
        async with world.denizen.living() as residents:
            said = await world.say(noor, "The violet xylophone is under the umbrellas of Quentin.", kitchen)
            await residents.run_until_idle()
            await world.denizen.spaces.forget_message(said.id, by=noor)
            await world.say(noor, "What did I say?", kitchen)
            await residents.run_until_idle()
        assert "xylophone" not in str((await world.prompts(ada))[-1])


async def test_what_another_instance_thought_meanwhile_is_known(ready_sqlite_url: str) -> None:
    async with open_world(ready_sqlite_url, pace=COLD) as world, world.denizen.living() as residents:
        ada, noor, kitchen = await a_kitchen(world)
        await world.say(noor, "One.", kitchen)
        await residents.run_until_idle()
        async with open_world(ready_sqlite_url, pace=COLD) as other:
            other.denizen.models.register(ada.definition.model, scripted(reply("From elsewhere."), "Answered there."))
            await other.denizen.spaces.post(kitchen.id, noor.id, "Two.")
            await other.run()
        await world.say(noor, "Three.", kitchen)
        await residents.run_until_idle()
        assert "From elsewhere." in str((await world.prompts(ada))[-1])
