"""Whoever waits for an agent gets an answer from its cycle, or a status that says why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, skip, tool
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.checker import check_deeply
from denizen.cycles import answering
from denizen.cycles.answering import Move, Reminder, UncalledText, Waiting
from denizen.errors import (
    ContentRefused,
    InvalidInput,
    ModelError,
    ModelKeyRejected,
    ModelRejected,
    ModelUnsuitable,
    NotFound,
)
from denizen.ids import MessageId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.events import Event
from denizen.models.prices import Price
from denizen.models.scripted import Info, Turn, scripted
from denizen.spaces import posting
from denizen.spaces.directory import Space
from denizen.tools.settings import ClientTool
from tests.world import Stuck, World, as_text, open_world


async def shown(world: World, space: Space) -> list[str]:
    """What the space tells of agents that have not answered."""
    return [each.text for each in await world.denizen.db.read(statuses.of_space, space.id)]


async def alone(world: World, *turns: Turn, text: str = "How much is 2+2?", **options: Any) -> tuple[Agent, Space]:
    """Noor writes to Ada in a space of the two of them."""
    ada, noor = await world.agent("Ada", *turns, **options), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, text, hall)
    await world.run()
    return ada, hall


OFFER = (
    'nudge: [REMINDER] Noor is waiting for an answer in the space "Hall" (id: <Hall>) and has none yet. '
    "Call send_message to answer. If no other answer is needed, end with one line of plain text that sums up this "
    "cycle: what you wrote above is then sent there as your answer."
)


def asked(who: str, where: str) -> str:
    return (
        f'nudge: [REMINDER] {who} is waiting for an answer in the space "{where}" (id: <{where}>) and has none yet. '
        "Call send_message with this space_id to answer. Plain text that you write instead, without a call, is sent "
        "there as your answer."
    )


# Text without a call


async def test_a_model_that_answers_in_plain_text_is_reminded_and_answers(world: World):
    ada, hall = await alone(world, "It is 4.", reply("4"), "Answered Noor.")
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: 4"]
    assert (await world.history(ada))[1:] == [
        "response: It is 4.",
        OFFER,
        'response: send_message {"text":"4"}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
        "response: Answered Noor.",
    ]
    assert await shown(world, hall) == []


async def test_after_one_reminder_the_text_that_was_written_is_sent(world: World):
    """Small models never call send_message: what they wrote for the person is their answer."""
    ada, hall = await alone(world, "It is 4.", "Told Noor that it is 4.")
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It is 4."]
    assert (await world.history(ada))[1:] == ["response: It is 4.", OFFER, "response: Told Noor that it is 4."]
    assert await world.endings(ada) == [(1, "acted", "answered", "Told Noor that it is 4.")]
    assert len(world.model(ada).requests) == 2
    assert await shown(world, hall) == []
    (_, message) = await world.denizen.spaces.messages(hall)
    assert message.hop == 1
    assert await world.denizen.db.read(check_deeply) == []


async def test_if_the_first_text_was_empty_the_later_one_is_sent(world: World):
    ada, hall = await alone(world, "", "It is 4.")
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It is 4."]
    assert (await world.history(ada))[1:] == ["response: ", asked("Noor", "Hall"), "response: It is 4."]
    assert await world.endings(ada) == [(1, "acted", "answered", "It is 4.")]


async def test_after_the_reminder_tools_may_still_be_called(world: World):
    """Not what comes last is sent, but what was written for the person."""
    ada, hall = await alone(world, "It is 4.", call("read_messages"), "Looked again. Done.")
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It is 4."]
    assert [each.split(":")[0] for each in await world.history(ada)] == [
        "inbox",
        "response",
        "nudge",
        "response",
        "results",
        "response",
    ]


async def test_a_model_that_writes_nothing_at_all_leaves_a_status(world: World):
    ada, hall = await alone(world, "", "")
    assert await world.transcript(hall) == ["Noor: How much is 2+2?"]
    assert await shown(world, hall) == ["Ada read this and did not reply."]
    assert await world.endings(ada) == [(1, "acted", "answered", "Did nothing. (No summary was written.)")]


async def test_what_was_sent_for_the_model_can_be_recalled(world: World):
    ada, hall = await alone(world, "The spare key is under the flowerpot.", "Told Noor.", text="Where is the key?")
    found = await world.denizen.minds.recall(ada, "flowerpot", space=hall)
    assert ("said", "The spare key is under the flowerpot.") in [(each.kind, each.text) for each in found]


async def test_private_words_are_not_sent_elsewhere_in_plain_text_either(world: World):
    """The guard looks at it as at any message; then the person is told that there is no reply."""
    secret = "The launch code of the rocket is four seven one one today."
    ada = await world.agent("Ada", reply("Noted."), "Noted it.", secret, "Told Noor.")
    noor, sam = await world.person("Noor"), await world.person("Sam")
    vault = await world.space("Vault", sam, ada, private=True)
    hall = await world.space("Hall", noor, ada)
    await world.say(sam, secret, vault)
    await world.run()
    await world.say(noor, "What is the code?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: What is the code?"]
    assert await shown(world, hall) == ["Ada read this and did not reply."]


async def test_text_may_be_sent_at_once(world: World):
    ada, hall = await alone(world, "It is 4.", cycle={"silent_reply": "deliver"})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It is 4."]
    assert (await world.history(ada))[1:] == ["response: It is 4."]
    assert await world.endings(ada) == [(1, "acted", "answered", "It is 4.")]


async def test_text_may_be_left_alone_and_the_space_tells_it(world: World):
    ada, hall = await alone(world, "It is 4.", cycle={"silent_reply": "ignore"})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?"]
    assert await world.endings(ada) == [(1, "acted", "answered", "It is 4.")]
    assert await shown(world, hall) == ["Ada read this and did not reply."]


# Several who wait


async def two_ask(world: World, *turns: Turn, **options: Any) -> tuple[Agent, Space, Space]:
    """Noor and Sam write to Ada, each in a space of their own, before she wakes."""
    ada = await world.agent("Ada", *turns, **options)
    noor, sam = await world.person("Noor"), await world.person("Sam")
    east, west = await world.space("East", noor, ada), await world.space("West", sam, ada)
    await world.say(noor, "2+2?", east)
    await world.say(sam, "3+3?", west)
    await world.run()
    return ada, east, west


def to(space: str, text: str) -> Any:
    """A message to the space of that name, by the id that stands in the inbox."""

    return each_to({space: text})


def each_to(texts: Mapping[str, str]) -> Any:
    """Messages in one response, each to the space of that name."""

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        told = "\n".join(str(getattr(part, "content", "")) for each in messages for part in each.parts)
        ids = {name: told.split(f'Space "{name}" | spaceId: ')[1].split("]")[0] for name in texts}
        return [reply(text, space_id=ids[name]) for name, text in texts.items()]

    return decide


async def test_of_two_direct_messages_in_one_batch_both_are_answered(world: World):
    """The reminder looks at each space: an answer in one is none in the other."""
    ada, east, west = await two_ask(world, to("East", "4"), "Told Noor.", to("West", "6"), "Told both.")
    assert await world.transcript(east) == ["Noor: 2+2?", "Ada: 4"]
    assert await world.transcript(west) == ["Sam: 3+3?", "Ada: 6"]
    assert (await world.history(ada))[3:] == [
        "response: Told Noor.",
        asked("Sam", "West"),
        'response: send_message {"space_id":"<West>","text":"6"}',
        'results: send_message → {"success":true,"messageId":"<West 2>"}',
        "response: Told both.",
    ]
    assert (await shown(world, east), await shown(world, west)) == ([], [])


@pytest.mark.parametrize("silent_reply", ["nudge", "deliver"])
async def test_with_several_waiting_each_text_goes_to_one_space(world: World, silent_reply: str):
    """A text that may be meant for either is sent to neither; what is written for one goes to that one."""
    ada, east, west = await two_ask(
        world, "4, and 6 for Sam.", "It is 4.", "It is 6.", cycle={"silent_reply": silent_reply}
    )
    assert await world.transcript(east) == ["Noor: 2+2?", "Ada: It is 4."]
    assert await world.transcript(west) == ["Sam: 3+3?", "Ada: It is 6."]
    assert (await world.history(ada))[1:] == [
        "response: 4, and 6 for Sam.",
        asked("Noor", "East"),
        "response: It is 4.",
        asked("Sam", "West"),
        "response: It is 6.",
    ]
    assert await world.endings(ada) == [(1, "acted", "answered", "It is 6.")]
    assert await world.denizen.db.read(check_deeply) == []
    found = await world.denizen.minds.recall(ada, "It is 4", space=east)
    assert ("said", "It is 4.") in [(each.kind, each.text) for each in found]


async def test_who_is_left_out_even_then_is_told(world: World):
    _, east, west = await two_ask(world, "4, and 6 for Sam.", "It is 4.", "")
    assert await world.transcript(east) == ["Noor: 2+2?", "Ada: It is 4."]
    assert await world.transcript(west) == ["Sam: 3+3?"]
    assert (await shown(world, east), await shown(world, west)) == ([], ["Ada read this and did not reply."])


async def test_a_reminder_names_all_who_wait_in_a_space(world: World):
    ada = await world.agent("Ada", "", reply("Hello, both."), "Greeted.")
    noor, sam, eve = await world.person("Noor"), await world.person("Sam"), await world.person("Eve")
    hall = await world.space("Hall", noor, sam, eve, ada)
    await world.say(noor, "@ada?", hall)
    await world.say(sam, "@ada!", hall)
    await world.say(eve, "Good morning", hall)
    await world.run()
    assert (await world.history(ada))[2] == asked("Noor and Sam", "Hall")
    assert await world.transcript(hall) == ["Noor: @ada?", "Sam: @ada!", "Eve: Good morning", "Ada: Hello, both."]


async def test_a_cycle_cut_off_between_two_reminders_goes_on_with_the_second(ready_url: str):
    """What was sent for the model is not sent again, and of whom it was reminded is in the log."""
    async with open_world(ready_url, pace=Pace(grace_seconds=0)) as world:
        stuck = Stuck()
        ada = await world.agent("Ada", "4, and 6 for Sam.", "It is 4.", stuck)
        noor, sam = await world.person("Noor"), await world.person("Sam")
        east, west = await world.space("East", noor, ada), await world.space("West", sam, ada)
        await world.say(noor, "2+2?", east)
        await world.say(sam, "3+3?", west)
        async with world.denizen.living():
            await stuck.begun.wait()
        assert await world.transcript(east) == ["Noor: 2+2?", "Ada: It is 4."]
        await world.restart(ada=scripted("It is 6."))
        await world.run()
        assert await world.transcript(east) == ["Noor: 2+2?", "Ada: It is 4."]
        assert await world.transcript(west) == ["Sam: 3+3?", "Ada: It is 6."]
        kinds = [entry.kind for entry in await world.denizen.minds.log(ada)]
        assert kinds == ["inbox", "response", "nudge", "response", "nudge", "response"]


# Skip while somebody waits


async def test_a_skip_while_somebody_waits_is_remembered_and_told(world: World):
    """What Noor told it is not erased, and she does not wonder whether it was read."""
    ada, hall = await alone(world, skip("no question"), reply("In May!"), "Told Noor.", text="My birthday is in May.")
    assert await shown(world, hall) == ["Ada read this and did not reply."]
    assert await world.endings(ada) == [
        (1, "acted", "skipped", 'Read what Noor wrote in "Hall" and did not reply: no question')
    ]
    assert (await world.history(ada))[1:] == [
        'response: skip {"reason":"no question"}',
        "results: skip → The cycle ends here.",
    ]
    assert await world.ledger(ada) == [("usage", None)]

    await world.say(await world.denizen.people.find("noor"), "When is my birthday?", hall)
    assert await shown(world, hall) == []
    await world.run()
    assert any("My birthday is in May." in each for each in (await world.prompts(ada))[1])
    assert await world.transcript(hall) == [
        "Noor: My birthday is in May.",
        "Noor: When is my birthday?",
        "Ada: In May!",
    ]
    assert await shown(world, hall) == []


async def test_after_the_reminder_a_skip_is_remembered_too(world: World):
    ada, hall = await alone(world, "Nothing to say.", skip("rhetorical"))
    assert (await world.history(ada))[1:] == [
        "response: Nothing to say.",
        OFFER,
        'response: skip {"reason":"rhetorical"}',
        "results: skip → The cycle ends here.",
    ]
    assert await world.transcript(hall) == ["Noor: How much is 2+2?"]
    assert await shown(world, hall) == ["Ada read this and did not reply."]


async def test_a_skip_in_company_leaves_no_trace_unless_it_was_mentioned(world: World):
    ada = await world.agent("Ada", skip("for Sam"), skip("busy"))
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam, ada)
    await world.say(noor, "Sam?", hall)
    await world.run()
    assert (await world.history(ada), await world.ledger(ada), await shown(world, hall)) == (
        [],
        [("skip", "for Sam")],
        [],
    )
    await world.say(noor, "@ada?", hall)
    await world.run()
    assert [reason for _, _, reason, _ in await world.endings(ada)] == ["skipped"]
    assert await shown(world, hall) == ["Ada read this and did not reply."]


async def test_triage_does_not_skip_while_somebody_waits(world: World):
    """`asked` makes a person wait in company without a mention: what the floor gives to one agent is like that."""
    ada = await world.agent("Ada", reply("Here."), "Answered.", cycle={"triage": {"skip_when": {"senders": ["human"]}}})
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam, ada)
    await world.say(noor, "Good morning", hall)
    await world.run()
    assert await world.ledger(ada) == [("skip", "triage: rule")]
    await world.denizen.db.write(posting.post, hall.id, noor.id, posting.draft("And now?"), asked=ada.id)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Good morning", "Noor: And now?", "Ada: Here."]


async def test_a_question_to_people_there_is_an_answer(world: World):
    """Whoever is asked something knows where they are: no reminder, no status."""
    confirm = ClientTool(name="confirm", description="Ask.", parameters={"type": "object"}, mode="async")
    ada, hall = await alone(world, call("confirm", why="Now?"), "Asked Noor.", tools=[confirm])
    assert await shown(world, hall) == []
    assert [each.split(":")[0] for each in await world.history(ada)] == ["inbox", "response", "results", "response"]


# Asking for an answer


async def test_a_person_can_ask_for_the_answer_that_is_owed(world: World):
    ada, hall = await alone(world, skip("busy"), reply("4"), "Answered Noor.")
    noor = await world.denizen.people.find("noor")
    await world.denizen.spaces.ask_for_answer(hall, ada, noor)
    assert await shown(world, hall) == []
    [event] = await world.denizen.minds.inbox(ada)
    assert (event.type, event.waits, event.wakes, event.hop) == ("notice", True, True, 0)
    await world.run()
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: 4"]
    assert (await world.history(ada))[3] == (
        "inbox: [INBOX - 1 new event]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        '1. [Notice | space "Hall" | spaceId: <Hall>]\n'
        "   | Noor asks you for an answer to what Noor wrote:\n"
        "   | How much is 2+2?\n"
        "   → received just now"
    )
    assert await shown(world, hall) == []
    assert await world.denizen.db.read(check_deeply) == []


async def test_a_second_skip_still_ends_with_a_status(world: World):
    ada, hall = await alone(world, skip("busy"), skip("still busy"))
    noor = await world.denizen.people.find("noor")
    await world.denizen.spaces.ask_for_answer(hall, ada, noor)
    await world.run()
    [status] = await world.denizen.db.read(statuses.of_space, hall.id)
    (first,) = await world.denizen.spaces.messages(hall)
    assert (status.text, status.message_id) == ("Ada read this and did not reply.", first.id)
    assert [number for number, *_ in await world.endings(ada)] == [1, 2]


async def test_only_people_there_may_ask_and_only_while_an_answer_is_owed(world: World):
    ada, hall = await alone(world, skip("busy"))
    noor, eve = await world.denizen.people.find("noor"), await world.person("Eve")
    with pytest.raises(NotFound):
        await world.denizen.spaces.ask_for_answer(hall, ada, eve)
    with pytest.raises(InvalidInput, match="Only people ask an agent for an answer"):
        await world.denizen.spaces.ask_for_answer(hall, ada, ada)
    await world.denizen.spaces.ask_for_answer(hall, ada, noor)
    with pytest.raises(InvalidInput, match=r"Ada owes no answer in this space\. Write a message to it instead\."):
        await world.denizen.spaces.ask_for_answer(hall, ada, noor)


async def test_an_agent_that_was_suspended_meanwhile_is_asked_and_the_space_says_so(world: World):
    ada, hall = await alone(world, skip("busy"), reply("4"), "Answered.")
    await world.denizen.agents.suspend(ada)
    await world.denizen.spaces.ask_for_answer(hall, ada, await world.denizen.people.find("noor"))
    suspended = "Ada is suspended. Your message is kept. Ada answers when somebody resumes it."
    assert await shown(world, hall) == [suspended]
    await world.denizen.agents.resume(ada)
    await world.run()
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: 4"]
    assert await shown(world, hall) == []


async def test_forgetting_the_message_forgets_that_it_was_quoted(world: World):
    ada, hall = await alone(world, skip("busy"), skip("busy"), text="The code is swordfish.")
    noor = await world.denizen.people.find("noor")
    await world.denizen.spaces.ask_for_answer(hall, ada, noor)
    await world.run()
    (message,) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.forget_message(message.id)
    assert not [each for each in await world.history(ada) if "swordfish" in each]


# The last step after a limit


def looking(_messages: list[ModelMessage], _info: Info) -> Turn:
    """Looks again and again."""
    return call("read_messages")


def last(limit: str, *where: str, several: bool = False) -> str:
    told = " ".join(
        f'{who} is waiting in the space "{space}" (id: <{space}>).'
        for who, space in zip(where[::2], where[1::2], strict=True)
    )
    each = "Call send_message now, once for each with its space_id," if several else "Call send_message now"
    return (
        f"nudge: [LAST STEP] This cycle has reached its limit of {limit}. This is its last step: no other tool runs. "
        f"{told} {each} and say what you know, and what is still open."
    )


async def test_a_limit_of_steps_leaves_one_last_step_to_answer(world: World):
    ada, hall = await alone(world, looking, looking, reply("I am still looking."), cycle={"max_steps": 2})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: I am still looking."]
    assert await shown(world, hall) == []
    assert (await world.history(ada))[5:] == [
        last("steps", "Noor", "Hall"),
        'response: send_message {"text":"I am still looking."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
    ]
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_steps", 3)]
    *before, final = world.model(ada).infos
    assert all("tool_choice" not in (each.settings or {}) for each in before)
    assert (final.settings or {}).get("tool_choice") == ["send_message"]
    # The tools are the same, so that the provider's cache still serves the prefix.
    assert {each.tools for each in (*before, final)} == {final.tools}
    assert "read_messages" in final.tools
    # What the model saw is what is stored.
    [*_, replayed] = await world.denizen.minds.replay(ada, 1)
    assert [as_text(each) for each in replayed.messages] == [as_text(each) for each in world.model(ada).requests[-1]]
    assert replayed.settings["tool_choice"] == ["send_message"]
    assert await world.denizen.db.read(check_deeply) == []


async def test_a_limit_of_time_leaves_one_last_step_to_answer(world: World):
    @tool
    async def wait() -> str:
        """Wait."""
        world.clock.advance(40)
        return "waited"

    turns = [*[call("wait")] * 3, reply("It takes longer.")]
    ada, hall = await alone(world, *turns, tools=[wait], cycle={"max_seconds": 100})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It takes longer."]
    assert last("time", "Noor", "Hall") in await world.history(ada)
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_seconds", 4)]


async def test_a_limit_of_tokens_leaves_one_last_step_to_answer(world: World):
    def decide(_messages: list[ModelMessage], info: Info) -> Turn:
        forced = (info.settings or {}).get("tool_choice") == ["send_message"]
        return reply("There is much to read.") if forced else call("read_messages")

    ada, hall = await alone(world, model=forever(decide), cycle={"token_budget": 500, "max_steps": 1000})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: There is much to read."]
    assert [each.stop_reason for each in await world.cycles(ada)] == ["token_budget"]


async def test_a_last_step_that_brings_nothing_is_told(world: World):
    """Other tools are refused in it, and an empty text is no answer."""
    told = "Ada reached its limit of steps before it had answered. Ask again."
    ada, hall = await alone(world, looking, looking, cycle={"max_steps": 1})
    assert await shown(world, hall) == [told]
    assert "may not be called in this step" in (await world.history(ada))[-1]
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_steps", 2)]

    bo, noor = await world.agent("Bo", looking, "", cycle={"max_steps": 1}), await world.denizen.people.find("noor")
    yard = await world.space("Yard", noor, bo)
    await world.say(noor, "Hello?", yard)
    await world.run()
    assert await shown(world, yard) == [told.replace("Ada", "Bo")]


async def test_plain_text_in_the_last_step_is_sent(world: World):
    """Not every provider can force a tool: then the text is the answer."""
    ada, hall = await alone(world, looking, "I am still looking.", cycle={"max_steps": 1})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: I am still looking."]
    assert await world.endings(ada) == [(1, "acted", "max_steps", "I am still looking.")]
    assert await shown(world, hall) == []


async def test_the_last_step_answers_everyone_who_waits(world: World):
    turns = [looking, each_to({"East": "4", "West": "6"})]
    ada, east, west = await two_ask(world, *turns, cycle={"max_steps": 1})
    assert await world.transcript(east) == ["Noor: 2+2?", "Ada: 4"]
    assert await world.transcript(west) == ["Sam: 3+3?", "Ada: 6"]
    assert (await world.history(ada))[3] == last("steps", "Noor", "East", "Sam", "West", several=True)


async def test_there_is_no_last_step_where_nobody_waits_or_all_are_answered(world: World):
    ada, hall = await alone(world, reply("One."), reply("Two."), cycle={"max_steps": 2})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: One.", "Ada: Two."]
    bo = await world.agent("Bo", looking, cycle={"max_steps": 1})
    await world.denizen.agents.trigger(bo, "alarm", text="beep")
    await world.run()
    assert [len(world.model(each).requests) for each in (ada, bo)] == [2, 1]


async def test_a_text_that_was_reminded_of_is_sent_when_the_last_step_brings_nothing(world: World):
    """The reminder may be what uses up the steps."""
    ada, hall = await alone(world, "It is 4.", looking, cycle={"max_steps": 1})
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It is 4."]
    assert (await world.history(ada))[2:4] == [OFFER, last("steps", "Noor", "Hall")]
    assert await shown(world, hall) == []


async def test_a_provider_that_rejects_the_last_step_ends_the_cycle_all_the_same(world: World):
    ada, hall = await alone(world, looking, ModelRejected("tool_choice is not supported"), cycle={"max_steps": 1})
    assert await shown(world, hall) == ["Ada reached its limit of steps before it had answered. Ask again."]
    assert [(each.outcome, each.stop_reason) for each in await world.cycles(ada)] == [("acted", "max_steps")]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelKeyRejected("401"), "The provider rejected the API key of Ada. Check it under"),
        (ModelUnsuitable("404"), "Ada cannot use the model that it is set to: the provider does not have it."),
        (ContentRefused("no"), "The provider refused to process this message."),
    ],
    ids=["key", "model", "refused"],
)
async def test_an_error_that_stays_is_told_as_such_in_the_last_step_too(world: World, error: ModelError, told: str):
    """It was told as a limit that was reached, though asking again could not help."""
    ada, hall = await alone(world, looking, error, cycle={"max_steps": 1})
    [status] = await shown(world, hall)
    assert status.startswith(told)
    assert await world.cycles(ada) == []
    world.denizen.models.register("python:ada", scripted(reply("It is 4."), "Told Noor."))
    await world.denizen.agents.try_again(ada)
    await world.run()
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: It is 4."]
    assert await shown(world, hall) == []


async def test_a_provider_that_says_that_a_tool_cannot_be_chosen_does_not_park_the_agent(world: World):
    """The steps before had the same tools: only the choice is refused."""
    refused = ModelUnsuitable("this model does not support tool_choice")
    _, hall = await alone(world, looking, refused, cycle={"max_steps": 1})
    assert await shown(world, hall) == ["Ada reached its limit of steps before it had answered. Ask again."]


async def test_money_and_a_full_window_do_not_stretch(ready_url: str):
    price = Price(input=Decimal(0), output=Decimal(1_000_000))
    async with open_world(ready_url, prices={"python:ada": price}) as world:
        ada, hall = await alone(world, model=forever(looking), cycle={"max_dollars": Decimal(1)})
        assert [each.stop_reason for each in await world.cycles(ada)] == ["max_dollars"]
        told = "Ada reached its limit of dollars for one cycle before it had answered. Ask again."
        assert await shown(world, hall) == [told]
        assert not any("LAST STEP" in each for each in await world.history(ada))


async def test_a_cycle_cut_off_in_its_last_step_takes_it_again(ready_url: str):
    async with open_world(ready_url, pace=Pace(grace_seconds=0)) as world:
        stuck = Stuck()
        ada, noor = await world.agent("Ada", looking, stuck, cycle={"max_steps": 1}), await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "Well?", hall)
        async with world.denizen.living():
            await stuck.begun.wait()
        await world.restart(ada=scripted(reply("Not yet.")))
        await world.run()
        assert await world.transcript(hall) == ["Noor: Well?", "Ada: Not yet."]
        assert [entry.kind for entry in await world.denizen.minds.log(ada)] == [
            "inbox", "response", "results", "nudge", "response", "results",
        ]  # fmt: skip
        assert (world.model(ada).infos[0].settings or {}).get("tool_choice") == ["send_message"]


# What the model wrote, and where it goes


def event(space: str, message: str, who: str = "Noor", *, waits: bool = True) -> Event:
    return Event(
        1, message, "space_message", "normal", 0, True, 0, 0, "?",
        space_id=space, space_name=space, sender_name=who, message_id=message, waits=waits,
    )  # fmt: skip


def waiting(space: str, message: str) -> Waiting:
    return Waiting(SpaceId(space), space, ("Noor",), MessageId(message))


def reminded(space: str, message: str, text: str = "") -> Reminder:
    return Reminder(SpaceId(space), MessageId(message), text, 0)


EAST, AGAIN, WEST = waiting("East", "e"), waiting("East", "f"), waiting("West", "w")
ONE, BOTH = [event("East", "e")], [event("East", "e"), event("West", "w")]


@pytest.mark.parametrize(
    ("silent_reply", "events", "unanswered", "before", "text", "move"),
    [
        ("nudge", ONE, [], [], "Done.", Move()),
        ("ignore", ONE, [EAST], [], "4", Move()),
        ("nudge", ONE, [EAST], [], "4", Move(remind=EAST, offers=True)),
        ("nudge", ONE, [EAST], [], "", Move(remind=EAST)),
        ("nudge", ONE, [EAST], [reminded("East", "e", "4")], "Done.", Move(UncalledText(EAST, "4", 0))),
        ("nudge", ONE, [EAST], [reminded("East", "e")], "4", Move(UncalledText(EAST, "4", 1))),
        ("nudge", ONE, [EAST], [reminded("East", "e")], "", Move()),
        ("deliver", ONE, [EAST], [], "4", Move(UncalledText(EAST, "4", 1))),
        ("deliver", ONE, [EAST], [], "", Move(remind=EAST)),
        ("nudge", BOTH, [EAST, WEST], [], "4 and 6", Move(remind=EAST)),
        ("deliver", BOTH, [WEST], [], "6", Move(remind=WEST)),
        ("nudge", BOTH, [EAST, WEST], [reminded("East", "e")], "4", Move(UncalledText(EAST, "4", 1), WEST)),
        ("nudge", BOTH, [EAST, WEST], [reminded("East", "e")], "", Move(remind=WEST)),
        ("nudge", BOTH, [WEST], [reminded("East", "e")], "Told Noor.", Move(remind=WEST)),
        # Whoever writes again in the middle of the cycle waits anew: what was written before is no answer to that.
        ("nudge", ONE, [AGAIN], [reminded("East", "e", "4")], "5", Move(remind=AGAIN, offers=True)),
    ],
)  # fmt: skip
def test_what_becomes_of_a_text_without_a_call(
    silent_reply: Any,
    events: Sequence[Event],
    unanswered: Sequence[Waiting],
    before: Sequence[Reminder],
    text: str,
    move: Move,
):
    assert answering.next_move(silent_reply, events, unanswered, before, text, 1) == move
