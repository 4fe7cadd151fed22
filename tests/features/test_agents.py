"""Agents."""

from __future__ import annotations

from denizen import Runtime, reply, scripted, tool
from denizen.agents.residents import Pace
from tests.agents.test_life import Held, in_a_hall
from tests.server.conftest import House, house  # noqa: F401  fixture
from tests.world import World


async def test_a_new_agent_is_ready_at_once(house: House) -> None:  # noqa: F811
    """An agent that is created through the API lives from then on: nothing has to be started for it.

    Docs: http.md
    """
    world = house.world
    noor = await world.person("Noor")
    world.denizen.models.register("test:model", scripted(reply("Hi."), "Greeted Noor."))
    created = await house.call("POST", "/api/agents", noor, json={"name": "Ada", "model": "test:model"})
    assert created.status_code == 201, created.text
    hall = await world.denizen.spaces.create("Hall", [noor, created.json()["id"]])
    async with world.denizen.living():
        await world.say(noor, "Hello", hall)
        await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Hi."


async def test_an_agent_sleeps_is_alive_and_sleeps_again(world: World) -> None:
    """An agent is `sleeping`, and `alive` while it thinks.

    Docs: agents.md
    """
    held = Held(reply("Hi."))
    ada, noor, hall = await in_a_hall(world, held, "Greeted Noor.")
    seen = [await world.denizen.agents.status(ada)]
    async with world.denizen.living():
        await world.say(noor, "Hello", hall)
        await held.begun.wait()
        seen.append(await world.denizen.agents.status(ada))
        held.go_on.set()
        await world.run()
    assert [*seen, await world.denizen.agents.status(ada)] == ["sleeping", "alive", "sleeping"]


async def test_a_sleeping_agent_uses_nothing() -> None:
    """A sleeping agent is only rows in the database: no task, no connection, no memory.

    Docs: agents.md
    Differs: there is no process for each agent. So one machine can hold very many of them.
    """
    async with Runtime("sqlite://", pace=Pace(warm_seconds=0)) as denizen:
        ada = await denizen.agents.create("Ada", model=scripted("Read it."))
        await denizen.agents.trigger(ada, "CI", text="Hello")
        async with denizen.living() as residents:
            await residents.run_until_idle()
        assert (await denizen.minds.inspect(ada)).holder is None
        assert len(await denizen.minds.cycles(ada)) == 1


async def test_many_agents_live_in_one_process() -> None:
    """One process runs many agents at the same time.

    Docs: agents.md
    """
    async with Runtime("sqlite://") as denizen:
        noor = await denizen.people.create("Noor")
        spaces = []
        for number in range(20):
            agent = await denizen.agents.create(f"Agent {number}", model=scripted(reply(f"{number}"), "Said it."))
            spaces.append(await denizen.spaces.create(f"Space {number}", [noor, agent]))
            await denizen.spaces.post(spaces[-1], noor, "Your number?")
        await denizen.run_until_idle()
        said = [(await denizen.spaces.transcript(space))[-1] for space in spaces]
        assert said == [f"Agent {number}: {number}" for number in range(20)]


async def test_an_agent_is_suspended_and_resumed(world: World) -> None:
    """A suspended agent gets its events and does not think; when it is resumed, it reads them.

    Docs: agents.md
    """
    ada, noor, hall = await in_a_hall(world, reply("I am back."), "Came back.")
    await world.denizen.agents.suspend(ada)
    await world.say(noor, "Hi", hall)
    await world.run()
    assert (await world.denizen.agents.status(ada), await world.inbox(ada)) == ("suspended", ["Hi"])
    await world.denizen.agents.resume(ada)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: I am back."


async def test_an_agent_is_changed_while_it_lives(world: World) -> None:
    """Instructions, tools and settings of an agent can be changed at any time; its next cycle has them.

    Docs: agents.md
    """

    @tool
    async def weather() -> str:
        """The weather."""
        return "Sunny."

    ada, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted Noor.", reply("Hello."), "Greeted Noor again.")
    other = await world.agent("Other", tools=[weather])
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.denizen.agents.edit(ada, instructions="You know the weather.", tools=["weather"])
    await world.say(noor, "Hello again", hall)
    await world.run()
    assert "weather" in world.model(ada).infos[-1].tools
    assert "YOUR ROLE:\nYou know the weather." in (await world.prompts(ada))[-1][0]
    assert await world.denizen.agents.status(other) == "sleeping"


async def test_a_living_agent_answers_single_requests(house: House) -> None:  # noqa: F811
    """A program that expects request and response talks to a living agent through the API of OpenAI's clients.

    Docs: openai.md
    Differs: there is one kind of agent, with one history; a request waits for its answer.
    """
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("4"), "Answered a sum.")
    question = {"model": "ada", "messages": [{"role": "user", "content": "What's 2+2?"}]}
    async with world.denizen.living():
        answer = await house.call("POST", "/v1/chat/completions", noor, json=question)
    assert answer.json()["choices"][0]["message"]["content"] == "4"
    assert [each.summary for each in await world.cycles(ada)] == ["Answered a sum."]


async def test_an_agent_is_seen_from_outside(house: House) -> None:  # noqa: F811
    """The API shows the status of an agent, its cycles and its usage.

    Docs: http.md
    """
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", "Read it.")
    await world.denizen.agents.trigger(ada, "CI", text="Hello")
    await world.run()
    shown = (await house.call("GET", f"/api/agents/{ada.id}", noor)).json()
    cycles = (await house.call("GET", f"/api/agents/{ada.id}/cycles", noor)).json()["cycles"]
    assert shown["status"] == "sleeping"
    assert [(each["number"], each["summary"]) for each in cycles] == [(1, "Read it.")]
