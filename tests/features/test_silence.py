"""Answers and silence."""

from __future__ import annotations

from typing import Any

from denizen import call, forever, reply, scripted, skip, think
from denizen.errors import ModelKeyRejected, ModelUnreachable
from tests.cycles.test_answering import alone
from tests.cycles.test_streaming import heard_in_a_hall, text_of
from tests.world import UNHURRIED, JumpingClock, World, as_text, open_world


async def statuses(world: World, space: Any) -> list[str]:
    return [each.text for each in await world.denizen.spaces.statuses(space)]


async def test_only_messages_are_shown(world: World) -> None:
    """People see what an agent sends with `send_message`; its other text and its thinking are not shown.

    Docs: cycles.md
    """
    _, hall = await alone(world, [think("A sum."), reply("4")], [think("Done."), "Answered Noor's sum."])
    assert (await world.transcript(hall))[1:] == ["Ada: 4"]


async def test_text_is_not_sent_where_nobody_waits(world: World) -> None:
    """A text without a message stays internal if nobody waits for this agent.

    Docs: cycles.md
    """
    ada = await world.agent("Ada", "Bert will answer this.")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert, when?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Bert, when?"]
    assert await statuses(world, hall) == []


async def test_an_agent_that_forgets_to_answer_is_reminded(world: World) -> None:
    """An agent that ends with text although a person waits is reminded once to send a message.

    Docs: cycles.md
    Differs: models often write the answer as plain text. Nobody would see it.
    """
    ada, hall = await alone(world, "It is 4.", reply("It is 4."), "Answered Noor.")
    assert "[REMINDER] Noor is waiting for an answer" in as_text(world.model(ada).requests[1][-1])
    assert (await world.transcript(hall))[1:] == ["Ada: It is 4."]


async def test_text_is_sent_if_a_reminder_does_not_help(world: World) -> None:
    """If the agent still sends nothing, its text is sent as its answer.

    Docs: cycles.md
    """
    _, hall = await alone(world, "It is 4.", "Answered Noor.")
    assert (await world.transcript(hall))[1:] == ["Ada: It is 4."]


async def test_text_can_be_sent_at_once(world: World) -> None:
    """With `silent_reply = "deliver"` the text is sent without a reminder.

    Docs: cycles.md
    """
    ada, hall = await alone(world, "It is 4.", cycle={"silent_reply": "deliver"})
    assert (await world.transcript(hall))[1:] == ["Ada: It is 4."]
    assert len(world.model(ada).requests) == 1


async def test_text_can_stay_internal(world: World) -> None:
    """With `silent_reply = "ignore"` the text is never sent, and the space shows that there was no reply.

    Docs: cycles.md
    """
    _, hall = await alone(world, "It is 4.", cycle={"silent_reply": "ignore"})
    assert (await world.transcript(hall))[1:] == []
    assert [each.startswith("Ada read this and did not reply.") for each in await statuses(world, hall)] == [True]


async def test_an_agent_may_decline_to_answer(world: World) -> None:
    """If an agent skips a message that a person waits to have answered, the space shows that there was no reply.

    Docs: cycles.md
    """
    ada, hall = await alone(world, skip("busy"))
    assert [each.startswith("Ada read this and did not reply.") for each in await statuses(world, hall)] == [True]
    assert [each.stop_reason for each in await world.cycles(ada)] == ["skipped"]


async def test_a_person_asks_for_the_answer_again(world: World) -> None:
    """A person who got no reply can ask for one: the agent is woken with the message quoted.

    Docs: cycles.md
    """
    ada, hall = await alone(world, skip("busy"), reply("4"), "Answered after all.")
    await world.denizen.spaces.ask_for_answer(hall, ada, by=await world.denizen.people.find("noor"))
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: 4"
    assert await statuses(world, hall) == []


async def test_at_the_step_limit_a_waiting_person_is_answered(world: World) -> None:
    """If a limit ends a cycle while a person waits, the agent gets one last step in which it can only answer.

    Docs: cycles.md
    """
    turns = call("read_messages"), call("read_messages"), reply("So far I know nothing.")
    ada, hall = await alone(world, *turns, cycle={"max_steps": 2})
    assert (await world.transcript(hall))[1:] == ["Ada: So far I know nothing."]
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_steps", 3)]


async def test_a_limit_without_an_answer_is_shown(world: World) -> None:
    """If the last step brings no answer either, the space shows which limit was reached.

    Docs: cycles.md
    """
    _, hall = await alone(world, call("read_messages"), "", cycle={"max_steps": 1})
    (status,) = await statuses(world, hall)
    assert "limit" in status


async def test_a_failure_is_shown_where_somebody_waits(world: World) -> None:
    """If an agent cannot think, the space shows why and what to do; the message is kept.

    Docs: inbox.md
    """
    ada, hall = await alone(world, ModelKeyRejected("401"))
    (status,) = await statuses(world, hall)
    assert status.startswith("The provider rejected the API key of Ada. Check it under Administration")
    assert await world.inbox(ada) == ["How much is 2+2?"]


async def test_a_passing_failure_is_retried() -> None:
    """A provider that fails in passing is asked again: people get their answer, a little later.

    Docs: cycles.md
    """
    async with open_world("sqlite://", clock=JumpingClock(), pace=UNHURRIED) as world:
        _, hall = await alone(world, ModelUnreachable("502"), reply("4"), "Answered.")
        assert (await world.transcript(hall))[1:] == ["Ada: 4"]


async def test_a_status_is_not_a_message(world: World) -> None:
    """What a space shows about an agent that did not answer is not a message, and wakes nobody.

    Docs: inbox.md
    """
    ada, bo, noor = await world.agent("Ada", skip("busy")), await world.agent("Bo"), await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bo, floor="addressed")
    await world.say(noor, "@ada, when?", hall)
    await world.run()
    assert len(await statuses(world, hall)) == 1
    assert await world.transcript(hall) == ["Noor: @ada, when?"]
    assert (await world.inbox(bo), world.model(bo).requests) == (["@ada, when?"], [])


async def test_a_status_disappears_with_the_answer(world: World) -> None:
    """The status disappears as soon as the agent says something there.

    Docs: inbox.md
    """
    ada, hall = await alone(world, skip("busy"))
    await world.say(ada, "Sorry, it is 4.", hall)
    assert await statuses(world, hall) == []


async def test_a_message_is_heard_while_it_is_written(world: World) -> None:
    """The text of a message streams to its space while the model still writes it.

    Docs: streams.md
    """
    frames, _, hall = await heard_in_a_hall(world, scripted(reply("Hello, Noor. How are you?"), "Greeted.", chunk=3))
    (_, message) = await world.denizen.spaces.messages(hall)
    assert len([each for each in frames if each["type"] == "stream.delta"]) > 3
    assert text_of(frames, message.id) == message.text


async def test_thinking_and_notes_do_not_stream(world: World) -> None:
    """Thinking, notes and calls of other tools do not stream to the space.

    Docs: streams.md
    """
    frames, _, _ = await heard_in_a_hall(
        world, scripted([think("Hm."), call("read_messages")], [think("Hm."), reply("Hi.")], "A secret note.", chunk=3)
    )
    said = "".join(str(each.get("text", "")) for each in frames)
    assert said == "Hi."


async def test_an_empty_answer_is_no_answer(world: World) -> None:
    """A model that writes nothing at all leaves nobody without a word: the space shows that there was no reply.

    Docs: cycles.md
    """
    _, hall = await alone(world, model=forever(lambda *_: ""))
    assert len(await statuses(world, hall)) == 1
