"""Spaces."""

from __future__ import annotations

from typing import Any

from denizen import call, reply, scripted
from denizen.agents.registry import Agent
from denizen.models.scripted import Turn
from denizen.spaces.directory import Entity, Space
from tests.inbox.test_delivery import chatty
from tests.scenarios import test_batching
from tests.world import World


async def two_spaces(world: World, *turns: Turn) -> tuple[Agent, Space, Space]:
    """Ada is with Noor in the Hall and with Ahmad in the Lab; Noor says something."""
    ada, noor, ahmad = await world.agent("Ada", *turns), await world.person("Noor"), await world.person("Ahmad")
    hall, lab = await world.space("Hall", noor, ada), await world.space("Lab", ahmad, ada)
    return ada, hall, lab


async def thinks(world: World, where: Space, *turns: Turn) -> None:
    """Noor says something in the Hall, and Ada thinks so."""
    await world.restart(ada=scripted(*turns))
    await world.say(await world.denizen.people.find("noor"), "Hello", where)
    await world.run()


async def test_a_message_goes_to_the_space_of_the_event(world: World) -> None:
    """A message of an agent goes to the space that the event came from.

    Docs: tools.md
    Differs: the agent need not enter the space first. Most answers belong where the question was asked.
    """
    _, hall, lab = await two_spaces(world)
    await thinks(world, hall, reply("Hi."), "Greeted Noor.")
    assert (await world.transcript(hall), await world.transcript(lab)) == (["Noor: Hello", "Ada: Hi."], [])


async def test_an_agent_enters_another_space(world: World) -> None:
    """After `enter_space` the messages of an agent go to that space.

    Docs: tools.md
    """
    ada, hall, lab = await two_spaces(world)
    turns = call("enter_space", space_id=lab.id), reply("Noor says hello."), "Told Ahmad."
    await thinks(world, hall, *turns, "Told Ahmad.", "Told Ahmad.")
    assert (await world.transcript(lab)) == ["Ada: Noor says hello."]
    assert (await world.history(ada))[2] == 'results: enter_space → {"success":true,"spaceName":"Lab"}'


async def test_a_message_names_another_space(world: World) -> None:
    """A message can name its space, without entering it.

    Docs: tools.md
    """
    _, hall, lab = await two_spaces(world)
    await thinks(world, hall, [reply("Noor says hello.", space_id=lab.id), reply("I told him.")], "Told Ahmad.")
    assert await world.transcript(lab) == ["Ada: Noor says hello."]
    assert (await world.transcript(hall))[-1] == "Ada: I told him."


async def test_an_agent_answers_events_of_several_spaces_together(world: World) -> None:
    """Events of several spaces are read in one cycle: an agent uses in one space what it learned in another.

    Docs: inbox.md
    """
    await test_batching.test_two_messages_that_arrive_while_the_agent_works_become_one_next_cycle(world)


async def test_with_events_of_several_spaces_the_agent_names_one(world: World) -> None:
    """If the events come from several spaces, a message has to name one: the agent is told so.

    Docs: tools.md
    """
    ada, hall, lab = await two_spaces(world)
    await world.say(await world.denizen.people.find("ahmad"), "Hello", lab)
    turns: list[Turn] = [reply("Hi."), [reply("Hi.", space_id=hall.id), reply("Hi.", space_id=lab.id)], "Greeted both."]
    await thinks(world, hall, *turns)
    assert "No space is active: the events come from several spaces." in (await world.history(ada))[2]
    assert (await world.transcript(hall))[1:] == (await world.transcript(lab))[1:] == ["Ada: Hi."]


async def test_an_agent_reads_a_space(world: World) -> None:
    """An agent reads the messages of a space page by page.

    Docs: tools.md
    """
    ada, hall, lab = await two_spaces(world)
    ahmad = await world.denizen.people.find("ahmad")
    await world.denizen.spaces.set_attention(lab, ada, "none")
    for number in range(1, 4):
        await world.say(ahmad, f"Log {number}", lab)
    await thinks(world, hall, call("read_messages", space_id=lab.id, limit=2), reply("I see."), "Read the log.")
    result = (await world.history(ada))[2]
    assert "Log 3" in result
    assert "Log 2" in result
    assert "Log 1" not in result


async def test_a_space_that_the_agent_is_not_in_does_not_exist_for_it(world: World) -> None:
    """An agent can neither enter nor read a space that it is not a member of.

    Docs: spaces.md
    """
    ada, hall, _ = await two_spaces(world)
    attic = await world.space("Attic", await world.denizen.people.find("ahmad"))
    calls: list[Turn] = [[call("enter_space", space_id=attic.id), call("read_messages", space_id=attic.id)]]
    await thinks(world, hall, *calls, reply("No."), "Was not let in.")
    assert (await world.history(ada))[2].count("There is no space") == 2


async def test_agents_talk_to_each_other_and_to_people(world: World) -> None:
    """Agents and people talk in the same space. A person asks one agent, which asks another and then answers.

    Docs: spaces.md
    """
    pat = await world.agent("Pat", reply("@eli, how complex is it?"), "Asked Eli.", reply("Two days."), "Told Husam.")
    eli = await world.agent("Eli", reply("Medium, two days."), "Told Pat.")
    husam = await world.person("Husam")
    planning = await world.space("Planning", husam, pat, eli, floor="one")
    await world.say(husam, "@pat I need a spec for dark mode", planning)
    await world.run()
    assert (await world.transcript(planning))[1:] == [
        "Pat: @eli, how complex is it?",
        "Eli: Medium, two days.",
        "Pat: Two days.",
    ]


async def test_each_agent_has_its_own_consciousness(world: World) -> None:
    """Agents in the same space have a history each: no agent sees what another one thought or did elsewhere.

    Docs: consciousness.md
    """
    pat, eli = await world.agent("Pat", reply("Yes."), "Pat's note."), await world.agent("Eli", "Eli's note.")
    husam = await world.person("Husam")
    hall = await world.space("Hall", husam, pat, eli, floor="addressed")
    await world.say(husam, "@pat?", hall)
    await world.run()
    await world.denizen.agents.trigger(eli, "CI", text="Look")
    await world.run()
    assert not any("Pat's note." in each for each in (await world.prompts(eli))[-1])
    assert any('Pat (agent): "Yes."' in each for each in (await world.prompts(eli))[-1])


async def test_every_agent_reads_every_message(world: World) -> None:
    """With `floor="all"`, every message wakes every agent in the space, which answers or skips.

    Docs: spaces.md
    """
    agents = [await world.agent(name, call("skip", reason="not for me")) for name in ("Ada", "Bo", "Cy")]
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, *agents, floor="all")
    await world.say(noor, "Hello", hall)
    await world.run()
    assert [len(world.model(each).requests) for each in agents] == [1, 1, 1]


async def test_one_agent_answers_by_default(world: World) -> None:
    """In a space with several agents one of them answers a person, and the others read it when they wake next.

    Docs: spaces.md
    Differs: with `floor="all"` every agent is woken by every message. It costs a model call for each, and people would
    get several answers to one question.
    """
    ada, bo = await world.agent("Ada", reply("Hi."), "Greeted Noor."), await world.agent("Bo")
    noor = await world.person("Noor")
    hall = await world.denizen.spaces.create("Hall", [noor, ada, bo])
    await world.say(noor, "Hello", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hello", "Ada: Hi."]
    assert (world.model(bo).requests, await world.inbox(bo)) == ([], ["Hello", "Hi."])


async def test_a_mention_wakes_the_agent(world: World) -> None:
    """An agent that another agent mentions is woken.

    Docs: spaces.md
    """
    ada, bo = await world.agent("Ada"), await world.agent("Bo", reply("Yes?"), "Answered Ada.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bo, floor="addressed")
    await world.say(ada, "@bo, is it done?", hall)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Bo: Yes?"


async def test_agents_do_not_talk_without_end(world: World) -> None:
    """Two agents that answer every message stop by themselves.

    Docs: spaces.md
    Differs: after six messages in a row agents do not wake each other until a person says something. Two agents that
    are polite to each other would otherwise never stop.
    """
    ada, bo = await world.agent("Ada", model=chatty("Indeed.")), await world.agent("Bo", model=chatty("Quite."))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bo)
    await world.say(noor, "Discuss.", hall)
    await world.run()
    assert 2 < len(await world.transcript(hall)) < 20
    assert [await world.denizen.agents.status(each) for each in (ada, bo)] == ["sleeping", "sleeping"]


async def test_a_message_has_an_author_a_number_and_an_id(world: World) -> None:
    """A message is stored with its author, its text, its time, an id, and a number in its space.

    Docs: spaces.md
    """
    _, hall, _ = await two_spaces(world)
    noor = await world.denizen.people.find("noor")
    posted = await world.say(noor, "Hello **you**", hall)
    (message,) = await world.denizen.spaces.messages(hall)
    found = message.id, message.author_id, message.text, message.seq, message.created_at
    assert found == (posted.id, noor.id, "Hello **you**", 1, world.clock.now())


async def test_an_agent_joins_and_leaves_spaces(world: World) -> None:
    """An agent that joins a space reads what is said there from then on, and nothing after it has left.

    Docs: spaces.md
    """
    ada, bert = await world.agent("Ada"), await world.person("Bert")
    attic = await world.space("Attic", bert)
    spaces = world.denizen.spaces
    steps: list[tuple[Any, str]] = [(None, "One"), (spaces.join, "Two"), (spaces.leave, "Three")]
    for step, text in steps:
        if step is not None:
            await step(attic, ada)
        await world.say(bert, text, attic)
    assert await world.inbox(ada) == ["Two"]


async def asked_for_a_name(world: World, *turns: Turn) -> tuple[Agent, Entity, Space]:
    """Noor asks Ada for a name, and Ada says Rex."""
    ada, noor = await world.agent("Ada", reply("Rex."), "Named it.", *turns), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "A name for the dog?", hall)
    await world.run()
    return ada, noor, hall


async def test_another_answer_can_be_asked_for(world: World) -> None:
    """A person can ask an agent for another answer to the same message. The earlier answer stays, and the agent knows.

    Docs: spaces.md
    Differs: nothing is replaced. What the agent said is part of its history.
    """
    ada, noor, hall = await asked_for_a_name(world, reply("Bello."), "Named it again.")
    (_, rex) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.try_again(rex.id, by=noor)
    await world.run()
    assert await world.transcript(hall) == ["Noor: A name for the dog?", "Ada: Rex.", "Ada: Bello."]
    assert (await world.denizen.spaces.messages(hall))[-1].metadata == {"again": rex.id}
    assert "asks you for another answer" in await world.newest_inbox(ada)


async def test_an_edited_message_can_be_asked_again(world: World) -> None:
    """A person can edit a message and ask again: the agents that it woke answer it as it is now.

    Docs: spaces.md
    """
    _, noor, hall = await asked_for_a_name(world, reply("Minka."), "Named the cat.")
    (asked, _) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.edit_message(asked.id, "A name for the cat?", by=noor, ask_again=True)
    await world.run()
    assert await world.transcript(hall) == ["Noor: A name for the cat?", "Ada: Rex.", "Ada: Minka."]


async def test_people_react_to_messages(world: World) -> None:
    """People react to messages with emoji. No agent is woken by that; its next inbox message mentions it.

    Docs: spaces.md
    """
    ada, noor, hall = await asked_for_a_name(world, reply("Gladly."), "Answered.")
    (_, rex) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.react(rex.id, "👍", by=noor)
    await world.run()
    assert len(await world.cycles(ada)) == 1
    await world.say(noor, "Thanks!", hall)
    await world.run()
    assert "Noor reacted 👍 to your message <Hall 2>" in await world.newest_inbox(ada)


async def test_messages_are_pinned(world: World) -> None:
    """Members pin messages of a space, for everyone in it.

    Docs: spaces.md
    """
    _, noor, hall = await asked_for_a_name(world)
    (_, rex) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.pin(rex.id, by=noor)
    assert [each.text for each in await world.denizen.spaces.pins(hall, by=noor)] == ["Rex."]
