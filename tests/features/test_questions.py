"""Questions to people."""

from __future__ import annotations

import json

import pytest

from denizen import call, reply, scripted
from denizen.errors import AlreadySettled, NotFound
from denizen.tools.calls import NOT_YET
from tests.cycles.test_asking import asked_in_a_hall, confirm, results
from tests.server.conftest import House, house  # noqa: F401  fixture
from tests.world import World, listening

TURNS = call("confirm", what="deploy"), reply("Deployed."), "Deployed it."


async def test_a_question_pauses_the_agent(world: World) -> None:
    """A tool without an implementation is a question to people: the cycle stops there, and the agent is `paused`.

    Docs: tools.md
    """
    ada, noor, hall = await asked_in_a_hall(world, *TURNS)
    assert await world.denizen.agents.status(ada) == "paused"
    (asked,) = await world.denizen.calls.waiting(noor)
    assert (asked.tool, json.loads(asked.arguments), asked.space_id) == ("confirm", {"what": "deploy"}, hall.id)
    assert len(world.model(ada).requests) == 1


async def test_a_question_is_shown_in_the_space(world: World) -> None:
    """Clients that show the space get the question as an event of its stream.

    Docs: streams.md
    """
    ada, noor = await world.agent("Ada", *TURNS, tools=[confirm()]), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with listening(world, hall) as heard:
        await world.say(noor, "Do it", hall)
        await world.run()
        shown = [each for each in await heard() if each["type"] == "call.changed"]
    assert [(each["state"], each["space"]) for each in shown] == [("waiting", hall.id)]


async def test_the_answer_is_the_result_of_the_call(world: World) -> None:
    """The answer of a person is the result of the call, and the cycle continues where it was.

    Docs: tools.md
    """
    ada, noor, hall = await asked_in_a_hall(world, *TURNS)
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, {"confirmed": True}, by=noor)
    await world.run()
    assert await results(world, ada) == ['results: confirm → {"confirmed":true}']
    assert (await world.transcript(hall))[-1] == "Ada: Deployed."
    assert len(await world.cycles(ada)) == 1


async def test_a_question_is_answered_over_http(house: House) -> None:  # noqa: F811
    """Questions are listed and answered over the REST API.

    Docs: http.md
    """
    world = house.world
    _, noor, hall = await asked_in_a_hall(world, *TURNS)
    (asked,) = (await house.call("GET", "/api/calls", noor)).json()["calls"]
    answer = {"result": {"confirmed": True}}
    given = await house.call("POST", f"/api/calls/{asked['id']}/answer", noor, json=answer)
    assert (asked["tool"], given.status_code) == ("confirm", 200)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Deployed."


async def test_a_question_survives_a_restart(world: World) -> None:
    """A question is stored: the server may be restarted before it is answered, and the agent knows what it was doing.

    Docs: tools.md
    """
    ada, noor, hall = await asked_in_a_hall(world, *TURNS)
    await world.restart(ada=scripted(*TURNS[1:]))
    assert await world.denizen.agents.status(ada) == "paused"
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Deployed."
    assert (await world.prompts(ada))[0][-1] == "tool: confirm → yes"


async def test_an_agent_that_waits_holds_nothing(world: World) -> None:
    """While a question waits, no process holds the agent, and its model is not called.

    Docs: tools.md
    """
    ada, _, _ = await asked_in_a_hall(world, *TURNS)
    await world.run_after(3600)
    assert (await world.denizen.minds.inspect(ada)).holder is None
    assert len(world.model(ada).requests) == 1


async def test_words_in_the_space_answer_a_question(world: World) -> None:
    """A person can answer with a message in the space, without a form.

    Docs: tools.md
    """
    ada, noor, hall = await asked_in_a_hall(world, *TURNS)
    await world.say(noor, "Yes, go ahead!", hall)
    await world.run()
    assert await results(world, ada) == ['results: confirm → {"answer": "Yes, go ahead!", "by": "Noor"}']
    assert (await world.transcript(hall))[-1] == "Ada: Deployed."


async def test_other_events_end_the_pause(world: World) -> None:
    """An agent that waits for an answer still handles other events: they end the pause, and the question stays open.

    Docs: tools.md
    Differs: they are not handled in parallel. One mind has one history; the answer then comes as an event.
    """
    turns = call("confirm", what="deploy"), "Noor has not answered yet.", reply("Hi."), "Greeted Bert."
    ada, noor, _ = await asked_in_a_hall(world, *turns)
    bert = await world.person("Bert")
    lab = await world.space("Lab", bert, ada)
    await world.say(bert, "Hello", lab)
    await world.run()
    assert NOT_YET in (await results(world, ada))[0]
    assert await world.transcript(lab) == ["Bert: Hello", "Ada: Hi."]
    assert len(await world.denizen.calls.waiting(noor)) == 1


async def test_a_late_answer_is_an_event(world: World) -> None:
    """An answer that comes after the pause has ended reaches the agent as an event.

    Docs: tools.md
    """
    turns = call("confirm", what="deploy"), "No answer.", reply("Hi."), "Greeted Bert.", reply("Deployed."), "Did it."
    ada, noor, hall = await asked_in_a_hall(world, *turns)
    bert = await world.person("Bert")
    await world.say(bert, "Hello", await world.space("Lab", bert, ada))
    await world.run()
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    await world.run()
    assert '[Tool result "confirm" | call: ' in await world.newest_inbox(ada)
    assert (await world.transcript(hall))[-1] == "Ada: Deployed."


async def test_a_question_that_nobody_answers_expires(world: World) -> None:
    """A question waits for a day, or as long as its definition says; then the agent goes on without an answer.

    Docs: tools.md
    """
    turns = call("confirm", what="deploy"), reply("Nobody answered."), "Gave up."
    _, _, hall = await asked_in_a_hall(world, *turns, tools=[confirm(seconds=60)])
    await world.run_after(61)
    assert (await world.transcript(hall))[-1] == "Ada: Nobody answered."


async def test_the_first_answer_counts(world: World) -> None:
    """A question is answered once: a second answer is refused.

    Docs: tools.md
    """
    ada, noor, _ = await asked_in_a_hall(world, *TURNS)
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    with pytest.raises(AlreadySettled):
        await world.denizen.calls.answer(asked, "no", by=noor)
    await world.run()
    assert await results(world, ada) == ["results: confirm → yes"]


async def test_only_members_of_the_space_answer(world: World) -> None:
    """Only members of the space see the question and can answer it.

    Docs: tools.md
    """
    _, noor, _ = await asked_in_a_hall(world, *TURNS)
    (asked,) = await world.denizen.calls.waiting(noor)
    bert = await world.person("Bert")
    assert await world.denizen.calls.waiting(bert) == []
    with pytest.raises(NotFound):
        await world.denizen.calls.answer(asked, "yes", by=bert)


async def test_an_asynchronous_question_does_not_stop_the_cycle(world: World) -> None:
    """With `mode: async` the agent is told that the answer is pending, continues, and gets it later as an event.

    Docs: tools.md
    """
    turns = call("confirm", what="deploy"), reply("I asked."), "Asked Noor.", reply("Deployed."), "Deployed it."
    ada, noor, hall = await asked_in_a_hall(world, *turns, tools=[confirm(mode="async")])
    assert await world.denizen.agents.status(ada) == "sleeping"
    assert "pending" in (await results(world, ada))[0]
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    await world.run()
    assert (await world.transcript(hall))[1:] == ["Ada: I asked.", "Ada: Deployed."]


async def test_an_approval_needs_a_button_or_a_code(world: World) -> None:
    """A question that is an approval is not answered by words alone: it needs the button, the API or a code.

    Docs: tools.md
    """
    turns = call("confirm", what="deploy"), "Not approved yet.", reply("Please use the button."), "Asked again."
    _, noor, hall = await asked_in_a_hall(world, *turns, tools=[confirm(approval=True)])
    await world.say(noor, "Yes, go ahead!", hall)
    await world.run()
    (asked,) = await world.denizen.calls.waiting(noor)
    assert asked.state == "waiting"


async def test_a_question_has_a_schema(world: World) -> None:
    """The arguments of a question have to fit its schema; otherwise nobody is asked, and the model is told why.

    Docs: tools.md
    """
    ada, noor, _ = await asked_in_a_hall(world, call("confirm"), reply("Sorry."), "Asked wrongly.")
    assert await world.denizen.calls.waiting(noor) == []
    assert "what" in (await world.history(ada))[2]
