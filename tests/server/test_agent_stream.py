"""An agent's life as server-sent events: every cycle once, the open one as it stands, and only for admins."""

from __future__ import annotations

import asyncio

import pytest

from denizen import call, reply, scripted, skip, tool
from denizen.access import roles
from denizen.bus.streams import AgentBudget, agent_topic
from denizen.cycles.alerts import COMPACTION_FAILED, give
from denizen.models.scripted import Call
from denizen.spaces.directory import Entity
from tests.hesitation import Hesitation
from tests.server.conftest import House, SentEvent, served
from tests.world import World, open_world


def names(events: list[SentEvent]) -> list[str]:
    """The names of the events, runs of deltas as one."""
    found: list[str] = []
    for event in events:
        if event.name != "stream.delta" or found[-1:] != ["stream.delta"]:
            found.append(event.name)
    return found


async def admin(world: World, name: str = "Noor") -> Entity:
    """The first person of a house owns it."""
    return await world.person(name)


async def test_a_cycle_is_told_as_it_comes_along(house: House) -> None:
    world = house.world
    noor = await admin(world)
    may_cool, may_answer = asyncio.Event(), asyncio.Event()

    @tool
    async def oven() -> str:
        """Heat the oven."""
        await may_cool.wait()
        return "hot"

    async def answer(*_: object) -> Call:
        # A cycle that ends before it is looked at again is told as a whole.
        await may_answer.wait()
        return reply("It is hot.")

    model = scripted(call("oven"), answer, "Heated the oven.", skip("nothing to do"))
    ada = await world.agent("Ada", model=model, tools=[oven])
    kitchen = await world.space("Kitchen", noor, await world.person("Bert"), ada)
    async with world.denizen.living() as residents, house.listen(noor, f"/api/agents/{ada.id}/stream") as stream:
        await stream.until("agent.status", status="sleeping")
        await world.say(noor, "Heat the oven", kitchen)
        before = await stream.until("tool", state="intent")
        async with house.listen(noor, "/api/agents/@ada/stream") as late:
            # Whoever comes now is told how things stand.
            so_far = await late.until("tool", state="intent")
            assert names(so_far) == ["agent.status", "cycle.opened", "step", "tool"]
        may_cool.set()
        cooled = await stream.until("tool", state="done")
        may_answer.set()
        after = [*cooled, *await stream.until("cycle")]
        await stream.until("agent.status", status="sleeping")
        await world.say(noor, "Thanks", kitchen)
        skipped = await stream.until("cycle.skipped")
        await residents.run_until_idle()

    opened, step = [next(each.data for each in before if each.name == name) for name in ("cycle.opened", "step")]
    assert (opened["state"], opened["events"], opened["attempts"]) == ("open", 1, 0)
    assert (step["step"], step["tools"], step["model"]) == (0, ["oven"], "python:ada")
    assert step["input_tokens"] > 0 < step["output_tokens"]
    [ended] = [each for each in after if each.name == "cycle"]
    assert (ended.id, ended.data["number"], ended.data["summary"]) == (1, 1, "Heated the oven.")
    assert ended.data["cycle"] == opened["cycle"]
    tools = [(each.data["tool"], each.data["state"]) for each in before + after if each.name == "tool"]
    assert tools[:2] == [("oven", "intent"), ("oven", "done")]
    assert [each.data["text"] for each in after if each.name == "message"] == ["It is hot."]
    assert skipped[-1].data["reason"] == "nothing to do"
    assert [each.id for each in before + after + skipped if each.id is not None] == [1]


async def test_who_comes_back_has_every_cycle_once(house: House) -> None:
    world = house.world
    noor = await admin(world)
    turns = [turn for number in range(1, 6) for turn in (reply(f"{number}"), f"Said {number}.")]
    ada = await world.agent("Ada", *turns)
    kitchen = await world.space("Kitchen", noor, ada)
    for number in range(1, 6):
        await world.say(noor, f"Say {number}", kitchen)
        await world.run()
    path = f"/api/agents/{ada.id}/stream"
    for options, first in (({"last": 2}, 3), ({"after": 0}, 1), ({"last": 4, "after": 0}, 5)):
        async with house.listen(noor, path, **options) as stream:  # type: ignore[arg-type]
            events = await stream.until("cycle", 6 - first)
        assert [(each.id, each.data["summary"]) for each in events] == [
            (number, f"Said {number}.") for number in range(first, 6)
        ]
    async with house.listen(noor, path) as stream:
        assert (await stream.next()).name == "agent.status"


async def test_what_it_writes_is_heard_wherever_it_writes_from_its_beginning(small_house: House) -> None:
    """The admin is not in the space; the frames of others there are not told."""
    world = small_house.world
    noor, sam = await admin(world), await world.person("Sam")
    hesitation = Hesitation()
    ada = await world.agent("Ada", model=scripted(reply("One two three four five six"), "Done.", pause=hesitation))
    attic = await world.space("Attic", sam, ada)
    async with world.denizen.living():
        await world.say(sam, "Count", attic)
        while hesitation.pieces != 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        async with small_house.listen(noor, f"/api/agents/{ada.id}/stream") as stream:
            events = await stream.until("stream.delta")
            hesitation.may_go_on.set()
            events += await stream.until("message")
    deltas = [each.data["text"] for each in events if each.name == "stream.delta"]
    assert "".join(deltas) == events[-1].data["text"] == "One two three four five six"
    [start] = [each.data for each in events if each.name == "stream.started"]
    assert (start["space"], start["offset"]) == (attic.id, 0)


async def test_members_are_told_how_it_is_and_nothing_else(small_house: House) -> None:
    world = small_house.world
    noor, sam = await admin(world), await world.person("Sam")
    ada = await world.agent("Ada", reply("A secret."), "Told Noor a secret.")
    diary = await world.space("Diary", noor, ada, private=True)
    async with world.denizen.living() as residents, small_house.listen(sam, f"/api/agents/{ada.id}/stream") as stream:
        await stream.until("agent.status", status="sleeping")
        await world.say(noor, "Tell me", diary)
        events = await stream.until("agent.status", status="sleeping")
        await residents.run_until_idle()
        await world.denizen.agents.suspend(ada)
        events += await stream.until("agent.status", status="suspended")
    assert {each.name for each in events} == {"agent.status"}


async def test_who_is_no_admin_any_more_is_told_no_more(small_house: House) -> None:
    world = small_house.world
    await admin(world)
    sam = await world.person("Sam")
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    ada = await world.agent("Ada", reply("A secret."), "Told a secret.")
    async with small_house.listen(sam, f"/api/agents/{ada.id}/stream") as stream:
        await stream.until("agent.status")
        await world.denizen.db.write(roles.set_role, sam.id, "member")
        await world.denizen.agents.trigger(ada, "CI")
        await world.run()
        assert {each.name for each in await stream.rest()} <= {"agent.status"}


async def test_failures_budgets_and_alerts_are_told(small_house: House) -> None:
    world = small_house.world
    noor = await admin(world)
    ada = await world.agent("Ada", RuntimeError("oh"))
    kitchen = await world.space("Kitchen", noor, ada)
    frame = AgentBudget(ada.id, "agent:day", 0.82, "82 %").to_payload()
    async with small_house.listen(noor, f"/api/agents/{ada.id}/stream") as stream:
        await world.say(noor, "Hi", kitchen)
        await world.run()
        failed = (await stream.until("cycle.failed"))[-1].data
        assert (failed["undone"], failed["error"]) == (True, "RuntimeError: oh")
        world.denizen.bus.publish(agent_topic(ada.id), frame)
        assert (await stream.until("agent.budget"))[-1].data == frame
        give(world.denizen.bus, ada.id, COMPACTION_FAILED)
        assert (await stream.until("agent.alert"))[-1].data["kind"] == "compaction_failed"


async def test_an_agent_of_another_organization_is_not_there(small_house: House) -> None:
    world = small_house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor, ada = await world.person("Noor", organization=home), await world.agent("Ada", organization=elsewhere)
    for named in (ada.id, "@ada", "@nobody"):
        assert (await small_house.call("GET", f"/api/agents/{named}/stream", noor)).status_code == 404


@pytest.mark.parametrize("number", ["x", "-1"])
async def test_a_position_that_is_no_number_is_refused(small_house: House, number: str) -> None:
    noor, ada = await admin(small_house.world), await small_house.world.agent("Ada")
    headers = {"Last-Event-ID": number}
    answer = await small_house.call("GET", f"/api/agents/{ada.id}/stream", noor, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_it_is_heard_through_another_instance(ready_postgres_url: str, redis_url: str) -> None:
    """Partial text included, for who comes late there."""
    async with open_world(ready_postgres_url, redis_url=redis_url) as world:
        noor = await admin(world)
        hesitation = Hesitation()
        ada = await world.agent("Ada", model=scripted(reply("One two three four five six"), "Done.", pause=hesitation))
        kitchen = await world.space("Kitchen", noor, ada)
        other = World(ready_postgres_url, clock=world.clock, redis_url=redis_url)
        await other.open()
        async with served(other) as house, world.denizen.living():
            await world.say(noor, "Count", kitchen)
            while hesitation.pieces != 4:  # noqa: ASYNC110
                await asyncio.sleep(0)
            # The admin comes first: what is told again for whoever comes later has a reader of the space look into the
            # database, and one that finds the message there hears no more of its pieces.
            async with house.listen(noor, f"/api/agents/{ada.id}/stream") as admins:
                await admins.until("stream.delta")
                world.clock.advance(0.1)  # what is said is said again at most so often
                async with house.stream(noor, kitchen) as late:
                    events = await late.until("stream.delta")
                    assert [each.data["offset"] for each in events[-2:]] == [0, 0]
                    hesitation.may_go_on.set()
                    await admins.until("cycle")
                    events += await late.until("message")
        await other.close()
    for each in (events, admins.seen):
        text = "".join(event.data["text"] for event in each if event.name == "stream.delta")
        assert text == "One two three four five six"
