"""Bridges."""

from __future__ import annotations

from denizen import reply
from denizen.clock import SECOND, Instant
from tests.bridges.conformance import ROOM, build
from tests.bridges.in_process import Harbour
from tests.world import UNHURRIED, World, open_world


async def test_one_agent_answers_here_and_elsewhere(ready_sqlite_url: str) -> None:
    """The same agent, with the same mind, answers in a space here and in a room elsewhere.

    Docs: bridges.md
    """
    harbour = Harbour()
    async with open_world(ready_sqlite_url, bridge_kinds=[harbour.kind], pace=UNHURRIED) as world:
        ada = await world.agent("Ada", reply("At noon."), "Told Eve.", reply("I told Eve: at noon."), "Told Noor.")
        pier = await build(world, harbour, ada)
        office = await world.space("Office", pier.noor, ada)
        await harbour.write(ROOM, "Eve", "@ada when does the boat leave?")
        await world.run()
        await world.say(pier.noor, "@ada what did you tell Eve?", office)
        await world.run()
        assert harbour.said == [f"{ROOM}: Ada: At noon."]
        assert (await world.transcript(office))[-1] == "Ada: I told Eve: at noon."
        assert "when does the boat leave?" in "\n".join(await world.history(ada))


async def test_a_guest_writes_from_elsewhere(ready_sqlite_url: str) -> None:
    """An unknown writer is a guest of that space, and the agent reads so.

    Docs: bridges.md#accounts-and-guests
    """
    harbour = Harbour()
    async with open_world(ready_sqlite_url, bridge_kinds=[harbour.kind], pace=UNHURRIED) as world:
        ada = await world.agent("Ada", reply("Hello, Eve."), "Greeted Eve.")
        await build(world, harbour, ada)
        await harbour.write(ROOM, "Eve", "@ada hello")
        await world.run()
        assert "Eve (guest" in await world.newest_inbox(ada)


async def test_old_messages_do_not_wake(ready_sqlite_url: str) -> None:
    """What was written long ago, while the server was away, is read as history and wakes nobody.

    Docs: bridges.md#messages
    """
    harbour = Harbour()
    async with open_world(ready_sqlite_url, bridge_kinds=[harbour.kind], pace=UNHURRIED) as world:
        ada = await world.agent("Ada")
        await build(world, harbour, ada)
        await harbour.write(ROOM, "Eve", "@ada help!", sent_at=Instant(world.clock.now() - 2 * 3600 * SECOND))
        await world.run()
        assert world.model(ada).requests == []
        assert "@ada help!" in await world.inbox(ada)


async def test_a_disconnected_bridge_says_so(ready_sqlite_url: str) -> None:
    """When a service no longer accepts the bridge, the space is told, and messages are kept.

    Docs: bridges.md#failures
    """
    harbour = Harbour()
    async with open_world(ready_sqlite_url, bridge_kinds=[harbour.kind], pace=UNHURRIED) as world:
        pier = await build(world, harbour)
        harbour.forbid()
        await pier.say("Hello?")
        await world.run()
        assert [each.partition(":")[0] for each in await pier.notices()] == ["Harbour is disconnected"]
        await _permit(world, harbour)
        assert harbour.said == [f"{ROOM}: Noor: Hello?"]


async def test_people_elsewhere_are_told_why_there_is_no_answer(ready_sqlite_url: str) -> None:
    """Who waits in a room elsewhere is told there why the agent cannot answer: once, when it has lasted for a minute.

    Docs: bridges.md#messages
    """
    harbour = Harbour()
    async with open_world(ready_sqlite_url, bridge_kinds=[harbour.kind], pace=UNHURRIED) as world:
        ada = await world.agent("Ada")
        await build(world, harbour, ada)
        await world.denizen.agents.suspend(ada)
        await harbour.write(ROOM, "Eve", "@ada when?")
        await world.run()
        await world.run_after(60)
        (said,) = harbour.said
        assert "Ada is suspended. Your message is kept." in said


async def _permit(world: World, harbour: Harbour) -> None:
    harbour.permit()
    for each in await world.denizen.bridges.list():
        await world.denizen.bridges.retry(each.bridge)
    await world.run()
