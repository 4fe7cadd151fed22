"""The life of an event: delivered once, taken, done; given back, tried alone, dead, requeued. And how far chains go."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.errors import ModelRejected, NotFound
from denizen.inbox import delivery
from denizen.inbox.delivery import is_tried_alone, next_batch
from denizen.inbox.events import ALONE, Event, Lane
from denizen.models.scripted import Info, Turn
from denizen.spaces import posting
from denizen.spaces.directory import Space
from denizen.spaces.fan_out import HOP_BUDGET
from denizen.storage.database import Tx
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.world import Waiting, World, as_text


def chatty(text: str):
    """A model that answers everything, for ever."""

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        return reply(text) if as_text(messages[-1]).startswith("[INBOX -") else "Said something."

    return forever(decide)


def failing_on(word: str, *, once_said: str = "Fine."):
    """A model that cannot stand a word in its inbox."""

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        said = as_text(messages[-1])
        if said.startswith("[INBOX -") and word in said:
            return ModelRejected(f"refuses to read {word}")
        return skip() if said.startswith("[INBOX -") else once_said

    return forever(decide)


# Hops


async def test_two_agents_that_answer_everything_stop_by_themselves(world: World):
    """Agents talked to each other without end elsewhere, or were muted altogether."""
    ada = await world.agent("Ada", model=chatty("Indeed."))
    bee = await world.agent("Bee", model=chatty("Quite."))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bee)
    await world.denizen.spaces.set_attention(hall, bee, "mentions")

    await world.say(noor, "Discuss.", hall)
    await world.denizen.spaces.set_attention(hall, bee, "all")
    await world.run()

    assert await world.transcript(hall) == [
        "Noor: Discuss.",
        "Ada: Indeed.",
        "Bee: Quite.",
        "Ada: Indeed.",
        "Bee: Quite.",
        "Ada: Indeed.",
        "Bee: Quite.",
        "Ada: Indeed.",
    ]
    assert [message.hop for message in await world.denizen.spaces.messages(hall)] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert await world.inbox(bee) == ["Indeed."]


async def test_what_is_past_the_budget_is_stored_and_read_at_the_next_waking(world: World):
    ada = await world.agent("Ada", model=chatty("Indeed."))
    bee = await world.agent("Bee", model=chatty("Quite."))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bee)
    await world.denizen.spaces.set_attention(hall, bee, "mentions")
    await world.say(noor, "Discuss.", hall)
    await world.denizen.spaces.set_attention(hall, bee, "all")
    await world.run()
    (unheard,) = await world.denizen.minds.inbox(bee)
    assert (unheard.wakes, unheard.hop) == (False, HOP_BUDGET + 1)

    await world.denizen.spaces.set_attention(hall, ada, "none")
    await world.say(noor, "Thank you both.", hall)
    world.clock.advance(1)
    asked = len(world.model(bee).requests)
    await world.run()

    first = as_text(world.model(bee).requests[asked][-1])
    assert (await world.named([first])) == [
        (
            "[INBOX - 2 new events]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Hall" | spaceId: <Hall>] Ada (agent): "Indeed."\n'
            "   → received 1.0s ago\n"
            "\n"
            '2. [Space "Hall" | spaceId: <Hall>] Noor (human): "Thank you both."\n'
            "   → received 1.0s ago\n"
            "\n"
            "Handle these in any order. First see which are urgent and which belong together."
        )
    ]


async def test_five_agents_that_answer_everything_stop_too(world: World):
    agents = [await world.agent(f"Agent {number}", model=chatty("Me too.")) for number in range(5)]
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, *agents, agent_run_limit=0)

    await world.say(noor, "Who is hungry?", hall)
    await world.run()

    hops = [message.hop for message in await world.denizen.spaces.messages(hall)]
    assert max(hops) > HOP_BUDGET
    for agent in agents:
        assert all(event.hop > HOP_BUDGET for event in await world.denizen.minds.inbox(agent))


async def test_a_chain_that_wanders_between_two_spaces_ends_too(world: World):
    """Ada hears in the hall and speaks in the attic; Bee hears in the attic and speaks in the hall."""

    def relay(target: list[Space]):
        def decide(messages: list[ModelMessage], _info: Info) -> Turn:
            if as_text(messages[-1]).startswith("[INBOX -"):
                return [call("enter_space", space_id=target[0].id), reply("Pass it on.")]
            return "Passed it on."

        return forever(decide)

    to_attic: list[Space] = []
    to_hall: list[Space] = []
    ada = await world.agent("Ada", model=relay(to_attic))
    bee = await world.agent("Bee", model=relay(to_hall))
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada, bee), await world.space("Attic", ada, bee)
    to_attic.append(attic)
    to_hall.append(hall)
    await world.denizen.spaces.set_attention(hall, bee, "none")

    await world.say(noor, "A rumour", hall)
    await world.run()

    assert await world.transcript(hall) == ["Noor: A rumour", *["Bee: Pass it on."] * 3]
    assert await world.transcript(attic) == ["Ada: Pass it on."] * 4
    assert [message.hop for message in await world.denizen.spaces.messages(attic)] == [1, 3, 5, 7]


async def test_a_person_always_wakes_however_fast_and_often_they_write(world: World):
    """Cooldowns against loops swallowed fast human messages elsewhere."""
    ada = await world.agent("Ada", model=chatty("Yes?"))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for number in range(12):
        await world.say(noor, f"Ada! ({number})", hall)
        await world.run()
    assert await world.transcript(hall) == [
        line for number in range(12) for line in (f"Noor: Ada! ({number})", "Ada: Yes?")
    ]


async def test_a_person_wakes_an_agent_whose_inbox_is_full_of_what_does_not_wake(world: World):
    """However much has piled up unheard, what a person writes is heard."""
    ada = await world.agent("Ada", model=chatty("I was away."))
    bee = await world.agent("Bee")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bee)
    await world.denizen.db.write(_chatter, hall, bee, 250)
    await world.run()
    assert len(await world.transcript(hall)) == 250

    await world.denizen.spaces.set_attention(hall, bee, "none")
    await world.say(noor, "Ada?", hall)
    await world.run()

    assert (await world.transcript(hall))[250:] == ["Noor: Ada?", "Ada: I was away."]
    assert all(not event.wakes for event in await world.denizen.minds.inbox(ada))


def _chatter(tx: Tx, space: Space, author: Agent, times: int) -> None:
    for number in range(times):
        posting.post(tx, space.id, author.id, posting.draft(f"chatter {number}"), hop=HOP_BUDGET + 1)


# Once


async def test_an_event_with_the_same_id_is_delivered_once(world: World):
    """Of a popped first event the id was not remembered elsewhere: it came twice."""
    ada = await world.agent("Ada", skip(), skip())
    await world.denizen.agents.trigger(ada, "github", {"pr": 7}, id="delivery-1")
    await world.denizen.agents.trigger(ada, "github", {"pr": 7}, id="delivery-1")
    await world.run()
    await world.denizen.agents.trigger(ada, "github", {"pr": 7}, id="delivery-1")
    await world.denizen.agents.trigger(ada, "github", {"pr": 8}, id="delivery-2")
    await world.run()

    assert [as_text(asked[-1]) for asked in world.model(ada).requests] == [
        "[INBOX - 1 new event]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        f'1. [Service "github"]\n   | {{"pr":{number}}}\n'
        "   → received just now"
        for number in (7, 8)
    ]


async def test_looking_into_an_inbox_takes_nothing_from_it(world: World):
    """A look that popped events replayed or lost them elsewhere."""
    ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hi", hall)
    for _ in range(3):
        assert await world.inbox(ada) == ["Hi"]
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_what_services_send_may_hold_what_no_database_can(world: World):
    ada = await world.agent("Ada", skip())
    await world.denizen.agents.trigger(ada, "odd", {"half": "\ud83d", "nul": "\0"}, text="a\0b \udc00")
    await world.run()
    assert await world.newest_inbox(ada) == (
        "[INBOX - 1 new event]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        '1. [Service "odd"]\n'
        "   | a\ufffdb \ufffd\n"
        '   | {"half":"\ufffd","nul":"\ufffd"}\n'
        "   → received just now"
    )


# How much at once


async def test_many_events_are_read_in_portions_and_none_is_lost(world: World):
    read: list[list[str]] = []

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        read.append(re.findall(r"report (\d+)", as_text(messages[-1])))
        return skip()

    ada = await world.agent("Ada", model=forever(decide), window={"max_tokens": 20_000})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for number in range(60):
        await world.say(noor, f"report {number} " + "x" * 400, hall)

    await world.run()

    assert [number for portion in read for number in portion] == [str(number) for number in range(60)]
    assert len(read) > 3
    for asked in world.model(ada).requests:
        assert len(as_text(asked[-1])) / 4 <= 20_000 * 0.1
    assert await world.waiting(ada) == []


async def test_what_does_not_fit_stays_and_is_handled_next(world: World):
    ada = await world.agent("Ada", skip(), skip(), window={"max_tokens": 20_000})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "A" * 6_000, hall)
    await world.say(noor, "B" * 6_000, hall)
    await world.run()
    told = [as_text(asked[-1]) for asked in world.model(ada).requests]
    assert [("A" * 6_000 in text, "B" * 6_000 in text) for text in told] == [(True, False), (False, True)]


async def test_a_huge_message_is_cut_and_can_be_read_to_its_last_character(world: World):
    letter = "".join(f"{number:07d} " for number in range(12_000))
    seen: list[str] = []

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        said = as_text(messages[-1])
        shown = re.search(r"characters [\d,]+ to [\d,]+ of [\d,]+\]\n(.*?)(?:\n…|$)", said, re.DOTALL)
        if shown:
            seen.append(shown[1])
        if more := re.search(r'read_entry\("([^"]+)", offset=(\d+)\)', said):
            if not seen:
                quoted = re.search(r'Noor \(human\): "(.*?)"\n', said, re.DOTALL)
                assert quoted
                seen.append(quoted[1])
            return call("read_entry", entry=more[1], offset=int(more[2]))
        return skip()

    ada = await world.agent("Ada", model=forever(decide))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, letter, hall)
    await world.run()

    assert "".join(seen) == letter
    first = (await world.prompts(ada))[0][-1]
    assert (
        '   … [cut at 8,000 of 96,000 characters; read_entry("message:<Hall 1>", offset=8000) shows the rest]' in first
    )


@pytest.mark.parametrize("beside_tools", [1_500, 3_000, 8_000])
async def test_a_huge_event_is_read_even_through_a_small_window(world: World, beside_tools: int):
    """What is too long for the window is shown as far as it fits; it does not end as a dead letter."""
    ada = await world.agent("Ada", skip(), window={"max_tokens": Toolbox(PREBUILT).tokens + beside_tools})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "x" * 50_000, hall)
    await world.run()
    assert await world.waiting(ada) == []
    assert [reason for _, _, reason, _ in await world.endings(ada)] == ["skipped"]


# Failing


async def test_one_bad_event_does_not_hold_the_other_spaces(world: World):
    """Together they fail twice; then each is tried alone, and only the bad one goes on failing, until it is dead. What
    came after it in its own space waits for that."""
    ada = await world.agent("Ada", model=failing_on("poison"))
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    for text, where in (("good one", hall), ("poison", hall), ("good two", hall), ("elsewhere", attic)):
        await world.say(noor, text, where)

    async def after(seconds: float) -> list[Waiting]:
        await world.run_after(seconds)
        return await world.waiting(ada)

    everything = ("good one", "poison", "good two", "elsewhere")
    assert await after(0) == [Waiting(text, "pending", 1, 1) for text in everything]
    assert await after(0.9) == [Waiting(text, "pending", 1, 0.1) for text in everything]
    assert await after(0.1) == [Waiting(text, "pending", 2, 4) for text in everything]
    assert await after(4) == [Waiting("poison", "pending", 3, 15), Waiting("good two", "pending", 2)]
    assert await after(15) == [Waiting("poison", "pending", 4, 60), Waiting("good two", "pending", 2)]
    assert await after(60) == [Waiting("poison", "dead", 5, 60)]
    assert await after(3600) == [Waiting("poison", "dead", 5)]
    assert await world.inbox(ada) == []
    assert [event.text for event in await world.denizen.minds.dead_events(ada)] == ["poison"]
    assert [kind for kind, _ in await world.ledger(ada)] == [
        "failure", "failure", "usage", "failure", "usage", "failure", "failure", "usage"
    ]  # fmt: skip


async def test_a_message_that_came_later_waits_for_the_one_before_it(world: World):
    """After a short failure the second message was answered before the first."""
    seen: list[list[str]] = []

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        seen.append(re.findall(r'\(human\): "(\w+)"', as_text(messages[-1])))
        return ModelRejected("no") if len(seen) == 1 else skip()

    ada = await world.agent("Ada", model=forever(decide))
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    await world.say(noor, "first", hall)
    await world.run()
    await world.say(noor, "second", hall)
    await world.say(noor, "elsewhere", attic)
    await world.run()
    assert await world.waiting(ada) == [Waiting("first", "pending", 1, 1), Waiting("second", "pending")]
    assert await world.inbox(ada) == []
    await world.run_after(1)
    assert seen == [["first"], ["elsewhere"], ["first", "second"]]


async def test_an_urgent_message_waits_for_nobody(world: World):
    seen: list[list[str]] = []

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        seen.append(re.findall(r'\(human\): "(\w+)"', as_text(messages[-1])))
        return ModelRejected("no") if len(seen) == 1 else skip()

    ada = await world.agent("Ada", model=forever(decide))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "first", hall)
    await world.run()
    await world.say(noor, "second", hall)
    await world.say(noor, "now", hall, urgent=True)
    await world.run()
    await world.run_after(1)
    assert seen == [["first"], ["now"], ["first", "second"]]


there = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.sampled_from([0, 0, 0, 5]), st.sampled_from(["a", "b", None])),
    max_size=12,
)


@given(there=there)
def test_whatever_has_failed_is_tried_alone_when_something_wakes(there: list[tuple[bool, int, int, str | None]]):
    """What does not wake, and had failed in company, was left out of every later cycle, and was never dead either."""
    waiting = [waiting_event(at, *each) for at, each in enumerate(there)]
    waiting.append(waiting_event(len(there), True, 0))
    left = drained([event for event in drained(waiting) if not event.wakes] + [waiting_event(99, True, 0)])
    assert [event for event in left if event.wakes or is_tried_alone(event)] == []


@given(there=there, urgent=st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=4))
def test_what_belongs_to_one_space_is_taken_in_its_order(
    there: list[tuple[bool, int, int, str | None]], urgent: list[tuple[bool, int]]
):
    """With an urgent event first, newer messages passed an older one of their space that was to be tried alone."""
    first = [waiting_event(100 + at, wakes, tries, lane="urgent") for at, (wakes, tries) in enumerate(urgent)]
    waiting = [*first, *(waiting_event(at, *each) for at, each in enumerate(there))]
    while batch := next_batch(waiting):
        for space in {event.space_id for event in batch if event.space_id is not None}:
            there_now = [event for event in waiting if event.space_id == space and event.lane == "normal"]
            taken = [event for event in batch if event.space_id == space and event.lane == "normal"]
            # One that is tried alone cannot take along what only waits to be read with something else.
            passed = there_now[: there_now.index(taken[0])] if taken else []
            assert not passed or (len(batch) == 1 and not any(event.wakes for event in passed))
            assert taken == there_now[len(passed) : len(passed) + len(taken)]
        assert len(batch) == 1 or not any(map(is_tried_alone, batch))
        waiting = [event for event in waiting if event not in batch]


def test_of_the_requests_of_programs_in_one_space_a_cycle_takes_one():
    """What follows the second in its space waits with it; another space, and what is urgent, waits for neither."""
    asked = [waiting_event(at, True, 0, space=space, alone=True) for at, space in enumerate("aab", start=1)]
    later = [waiting_event(4, True, 0, space="a"), waiting_event(5, True, 0), waiting_event(6, True, 0, space="b")]
    urgent = waiting_event(7, True, 0, space="a", lane="urgent")
    assert [event.number for event in next_batch([*asked, *later, urgent])] == [1, 3, 5, 6, 7]
    assert [event.number for event in next_batch([asked[1], *later])] == [2, 4, 5, 6]


def drained(waiting: list[Event]) -> list[Event]:
    """What is left of the inbox when nothing in it wakes any more."""
    while batch := next_batch(waiting):
        assert len(batch) == 1 or not any(map(is_tried_alone, batch))
        waiting = [event for event in waiting if event not in batch]
    return waiting


def waiting_event(
    number: int,
    wakes: bool,
    attempts: int,
    interruptions: int = 0,
    space: str | None = None,
    *,
    lane: Lane = "normal",
    alone: bool = False,
) -> Event:
    return Event(
        number,
        str(number),
        "space_message",
        lane,
        0,
        wakes,
        attempts,
        0,
        "",
        space_id=space,
        interruptions=interruptions,
        payload={ALONE: True} if alone else {},
    )


async def test_a_dead_event_can_be_requeued(world: World):
    """Failed events were never retried elsewhere, or for ever."""
    refused = [ModelRejected("no") for _ in range(5)]
    ada = await world.agent("Ada", *refused, reply("Now I understand."), "Answered Noor.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    posted = await world.say(noor, "Hm?", hall)
    for seconds in (0, 1, 4, 15, 60):
        await world.run_after(seconds)
    assert await world.waiting(ada) == [Waiting("Hm?", "dead", 5, 60)]

    await world.denizen.minds.requeue(ada, posted.id)
    assert await world.waiting(ada) == [Waiting("Hm?", "pending", 0)]
    await world.run()

    assert await world.transcript(hall) == ["Noor: Hm?", "Ada: Now I understand."]
    with pytest.raises(NotFound):
        await world.denizen.minds.requeue(ada, posted.id)


async def test_recovery_does_not_send_again_what_was_sent(world: World):
    """After a restart 110 messages were delivered again elsewhere."""
    ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hi", hall)
    await world.run()
    for _ in range(3):
        await world.restart(ada=scripted())
        await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_an_agent_finds_its_own_events_by_their_ids_and_those_of_nobody_else(world: World):
    """`read_entry` shows the rest of an event's text by its id, which a model may have read anywhere."""
    ada, bee = await world.agent("Ada"), await world.agent("Bee")
    noor = await world.person("Noor")
    await world.denizen.agents.trigger(ada, "bell", text="The safe opens with 1234.")
    await world.denizen.agents.trigger(ada, "clock", text="It is late.")
    await world.say(noor, "Hello", await world.space("Hall", noor, ada))
    bell, clock, hello = await world.denizen.minds.inbox(ada)
    find = delivery.find
    assert await world.denizen.db.read(find, ada.id, bell.id) == bell
    assert await world.denizen.db.read(find, ada.id, clock.id) == clock
    assert await world.denizen.db.read(find, bee.id, bell.id) is None
    assert await world.denizen.db.read(find, ada.id, hello.id) is None, "a message is read as one"
