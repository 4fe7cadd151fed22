"""One message to one agent and what it says to it, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from denizen import call, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.bus.streams import agent_topic
from denizen.ids import MessageId, SpaceId
from denizen.inbox import parking, statuses
from denizen.models.scripted import forever
from denizen.server.answering import STOPPING
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from denizen.tools.settings import ClientTool
from tests.hesitation import Hesitation
from tests.server.conftest import House, served
from tests.world import World, open_world


async def chat(house: House, who: Entity, agent: Agent, text: str, **more: Any) -> dict[str, Any]:
    headers = more.pop("headers", None)
    said = {"agent": f"@{agent.entity.handle}", "text": text, **more}
    answer = await house.call("POST", "/api/chat", who, json=said, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_answer_is_everything_the_agent_says_until_its_cycle_ends(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("**It** did."), reply("All 212 tests."), "Told Noor.", skip("nothing to add"))
    async with world.denizen.living():
        answer = await chat(house, noor, ada, "Did the build pass?", metadata={"color": "red"})
        nothing = await chat(house, noor, ada, "Thanks.")

    assert answer["outcome"] == "acted"
    assert [each["text"] for each in answer["messages"]] == ["**It** did.", "All 212 tests."]
    assert answer["final_response"] == {
        "markdown": "**It** did.\n\nAll 212 tests.",
        "text": "It did.\n\nAll 212 tests.",
    }
    cycle, _ = await world.cycles(ada)
    assert (answer["cycle"], answer["metadata"]) == (1, {"color": "red"})
    assert (answer["note"], answer["cause"]) == ("", None)
    assert answer["usage"]["input_tokens"] == cycle.input_tokens > 0
    assert answer["usage"]["output_tokens"] == cycle.output_tokens > 0
    assert (nothing["outcome"], nothing["messages"], nothing["cycle"]) == ("acted", [], 2)
    assert nothing["final_response"] == {"markdown": "", "text": ""}
    assert (nothing["note"], nothing["cause"]) == ("Ada read this and did not reply.", "no_reply")
    assert nothing["usage"]["output_tokens"] > 0

    # Both are in the one private space of the two, which nobody else knows of.
    assert nothing["space_id"] == answer["space_id"]
    [space] = (await house.call("GET", "/api/spaces", noor)).json()["spaces"]
    assert (space["id"], space["name"], space["private"]) == (answer["space_id"], "Noor and Ada", True)
    [mine, *_] = await world.denizen.spaces.messages(space["id"])
    assert (mine.id, mine.metadata) == (answer["message_id"], {"color": "red"})


def confirm() -> ClientTool:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    return ClientTool(name="confirm", description="Ask whether you may.", parameters=schema)


async def test_a_pause_says_what_it_waits_for(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    asks = [reply("Wait."), call("confirm", what="deploy")]
    turns = asks, "Asked Noor.", reply("Hello, Sam."), "Greeted Sam.", reply("Deployed."), "Deployed it."
    ada = await world.agent("Ada", *turns, tools=[confirm()])
    async with world.denizen.living() as residents:
        answer = await chat(house, noor, ada, "Deploy")
        # Whoever comes while it waits is answered, and hears nothing of what it asked someone else.
        other = await chat(house, sam, ada, "Hello?")
        [asked] = answer["waiting_for"]
        await house.call("POST", f"/api/calls/{asked['id']}/answer", noor, json={"result": "yes"})
        await residents.run_until_idle()

    assert (answer["outcome"], answer["cycle"]) == ("paused", None)
    assert [each["text"] for each in answer["messages"]] == ["Wait."]
    assert (asked["tool"], asked["arguments"]) == ("confirm", {"what": "deploy"})
    assert (other["outcome"], [each["text"] for each in other["messages"]]) == ("acted", ["Hello, Sam."])
    assert other["waiting_for"] == []
    assert "waits for an answer" in answer["note"]


async def test_the_next_message_answers_what_was_asked(house: House) -> None:
    """A "yes" is the answer, and not another message to an agent that goes on waiting."""
    world = house.world
    noor = await world.person("Noor")
    turns = call("confirm", what="deploy"), reply("Deployed."), "Deployed it."
    ada = await world.agent("Ada", *turns, tools=[confirm()])
    async with world.denizen.living():
        asked = await chat(house, noor, ada, "Deploy")
        answer = await chat(house, noor, ada, "Yes")
    assert asked["outcome"] == "paused"
    assert (answer["outcome"], [each["text"] for each in answer["messages"]]) == ("acted", ["Deployed."])
    assert (await world.history(ada))[2] == 'results: confirm → {"answer": "Yes", "by": "Noor"}'


async def test_who_is_suspended_or_out_of_budget_says_so(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada, bee = await world.agent("Ada"), await world.agent("Bee", budget={"tokens_per_day": 10})
    await world.denizen.agents.suspend(ada)
    async with world.denizen.living():
        suspended = await chat(house, noor, ada, "Hello?")
        resting = await chat(house, noor, bee, "Hello?")
        again = await chat(house, noor, bee, "Hello??")

    assert (suspended["outcome"], suspended["messages"]) == ("suspended", [])
    assert suspended["note"] == "Ada is suspended. Your message is kept. Ada answers when somebody resumes it."
    assert suspended["cause"] == "suspended"
    for each in (resting, again):
        assert each["outcome"] == "suspended"
        assert "budget" in each["note"]
        assert "2026-01-06 00:00 UTC" in each["note"]
    assert again["cause"] == "budget"
    assert [event.text for event in await world.denizen.minds.inbox(ada)] == ["Hello?"]


def shown_as(agent: Agent, cause: statuses.Cause, space_id: str, message_id: str) -> Callable[[Tx], None]:
    def show(tx: Tx) -> None:
        if cause in statuses.PARKING_CAUSES:
            parking.park(tx, agent.id, cause, provider="OpenAI", model="gpt-x", reason="not found")
        else:
            statuses.show(tx, agent.id, SpaceId(space_id), cause, message_id=MessageId(message_id), reason="no")

    return show


@pytest.mark.parametrize(
    ("cause", "outcome"),
    [("key", "parked"), ("definition", "parked"), ("refused", "failed"), ("gave_up", "failed"), ("deleted", "failed")],
)
async def test_who_waits_for_an_agent_that_cannot_answer_is_told_why_at_once(
    unhurried_house: House, cause: statuses.Cause, outcome: str
) -> None:
    """Nobody thinks here and the clock stands still: only the status ends the waiting."""
    house, world = unhurried_house, unhurried_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(chat(house, noor, ada, "Hello?"))
        while not (events := await world.denizen.minds.inbox(ada)):
            pass
        [event] = events
        assert event.space_id is not None
        assert event.message_id is not None
        await world.denizen.db.write(shown_as(ada, cause, event.space_id, event.message_id))
        answer = await asking
    [status] = (await house.call("GET", f"/api/spaces/{answer['space_id']}", noor)).json()["statuses"]
    assert (answer["outcome"], answer["cause"]) == (outcome, cause)
    tries = " Next try: 2026-01-05 09:10 UTC." if outcome == "parked" else ""
    assert answer["note"] == status["text"] + tries
    assert answer["messages"] == []


async def test_a_status_of_an_older_message_does_not_answer_a_new_one(unhurried_house: House) -> None:
    house, world = unhurried_house, unhurried_house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Yes?"), "Answered.", reply("Hello."), "Answered.")
    two = await world.space("Noor and Ada", noor, ada)
    old = await world.say(noor, "Anyone?", two)
    await world.run()
    await world.denizen.db.write(shown_as(ada, "refused", two.id, old.id))
    async with world.denizen.living():
        answer = await chat(house, noor, ada, "And now?", space=two.id)
    assert (answer["outcome"], answer["cause"], answer["final_response"]["text"]) == ("acted", None, "Hello.")


async def test_who_runs_out_of_time_is_told_what_the_agent_is_doing(unhurried_house: House) -> None:
    house, world = unhurried_house, unhurried_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(chat(house, noor, ada, "Hello?", seconds=5))
        while not (events := await world.denizen.minds.inbox(ada)):
            pass
        [event] = events
        assert event.space_id is not None
        assert event.message_id is not None
        await world.denizen.db.write(shown_as(ada, "failing", event.space_id, event.message_id))
        await world.clock.sleeper(5)
        world.clock.advance(5)
        answer = await asking
    assert (answer["outcome"], answer["cause"]) == ("working", "failing")
    assert answer["note"] == "Ada has trouble answering: no. It tries again by itself."


async def test_who_waits_no_longer_gets_what_there_is_and_the_agent_goes_on(unhurried_house: House) -> None:
    house, world = unhurried_house, unhurried_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    turns = reply("One."), reply("Two, and this is a longer text."), "Counted."
    ada = await world.agent("Ada", model=scripted(*turns, pause=hesitation, chunk=8))
    async with asyncio.TaskGroup() as tasks, world.denizen.living() as residents:
        hesitation.pieces = -2  # the first message, of two pieces, is said; it stops in the second, of six
        asking = tasks.create_task(chat(house, noor, ada, "Count", seconds=5))
        await until_said(world, ada, 1)
        await world.clock.sleeper(5)
        world.clock.advance(5)
        answer = await asking
        hesitation.may_go_on.set()
        await residents.run_until_idle()

    assert (answer["outcome"], [each["text"] for each in answer["messages"]]) == ("working", ["One."])
    said = await world.denizen.spaces.messages(answer["space_id"])
    assert [each.text for each in said] == ["Count", "One.", "Two, and this is a longer text."]


async def until_said(world: World, ada: Agent, count: int) -> None:
    """So many messages of the agent stand somewhere."""
    while True:
        spaces = await world.denizen.db.read(_spaces_of, ada.id)
        said = [
            each for space in spaces for each in await world.denizen.spaces.messages(space) if each.author_id == ada.id
        ]
        if len(said) >= count:
            return


def _spaces_of(tx: Any, agent_id: Any) -> Any:
    from denizen.spaces import directory

    return directory.spaces_of(tx, agent_id)


async def test_who_is_removed_from_the_space_is_shown_no_more_of_the_answer(small_house: House) -> None:
    """The agent goes on answering there, for those who are in it."""
    house, world = small_house, small_house.world
    noor, mira = await world.person("Noor"), await world.person("Mira")
    hesitation = Hesitation()
    turns = reply("One two three four five six."), "Counted."
    ada = await world.agent("Ada", model=scripted(*turns, pause=hesitation))
    den = await world.space("Den", noor, mira, ada, private=True)
    async with asyncio.TaskGroup() as tasks, world.denizen.living() as residents:
        asking = tasks.create_task(chat(house, mira, ada, "Count, @ada", space=den.id))
        while hesitation.pieces < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await world.denizen.spaces.leave(den, mira)
        answer = await asking
        hesitation.may_go_on.set()
        await residents.run_until_idle()

    assert (answer["outcome"], answer["messages"]) == ("unheard", [])
    assert "no longer in this space" in answer["note"]
    said = [each.text for each in await world.denizen.spaces.messages(den)]
    assert said[-1] == "One two three four five six."


async def test_when_the_client_leaves_nobody_waits_and_the_agent_finishes(small_house: House) -> None:
    house, world = small_house, small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    ada = await world.agent("Ada", model=scripted(reply("One two three four five six."), "Counted.", pause=hesitation))
    bus: Any = world.denizen.bus
    async with asyncio.TaskGroup() as tasks, world.denizen.living() as residents:
        asking = tasks.create_task(chat(house, noor, ada, "Count"))
        while not bus.attention(agent_topic(ada.id)):  # noqa: ASYNC110
            await asyncio.sleep(0)
        asking.cancel()
        while bus.attention(agent_topic(ada.id)):  # noqa: ASYNC110
            await asyncio.sleep(0)
        hesitation.may_go_on.set()
        await residents.run_until_idle()
    [space] = (await house.call("GET", "/api/spaces", noor)).json()["spaces"]
    assert [each.text for each in await world.denizen.spaces.messages(space["id"])] == [
        "Count",
        "One two three four five six.",
    ]


async def test_when_the_server_stops_who_waits_is_told_so(small_house: House) -> None:
    """With what there is; the agent finishes, and asking again elsewhere with the same key gives the answer."""
    house, world, key = small_house, small_house.world, {"Idempotency-Key": "1"}
    noor = await world.person("Noor")
    hesitation = Hesitation()
    turns = reply("One two three four five six."), "Counted."
    ada = await world.agent("Ada", model=scripted(*turns, pause=hesitation))
    async with asyncio.TaskGroup() as tasks, world.denizen.living():
        asking = tasks.create_task(chat(house, noor, ada, "Count", headers=key))
        while hesitation.pieces < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        house.stop.set()
        answer = await asking
        async with served(world) as other:
            other.secrets |= house.secrets
            again = tasks.create_task(chat(other, noor, ada, "Count", headers=key))
            hesitation.may_go_on.set()
            whole = await again

    assert (answer["outcome"], answer["messages"], answer["note"]) == ("working", [], STOPPING)
    assert (whole["outcome"], whole["final_response"]["text"]) == ("acted", "One two three four five six.")
    assert whole["message_id"] == answer["message_id"]


async def test_another_space_can_be_chosen_by_who_is_in_it_with_the_agent(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", reply("Hello, hall."), "Greeted.")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor)
    theirs = await world.space("Theirs", sam, ada, private=True)
    async with world.denizen.living():
        answer = await chat(house, noor, ada, "Hello", space=hall.id)
    assert (answer["space_id"], answer["final_response"]["text"]) == (hall.id, "Hello, hall.")

    async def refused(space: str) -> tuple[int, str]:
        said = {"agent": ada.id, "text": "Hello", "space": space}
        problem = await house.call("POST", "/api/chat", noor, json=said)
        return problem.status_code, problem.json()["code"]

    assert await refused(attic.id) == (422, "invalid_input")
    assert await refused(theirs.id) == (404, "not_found")
    assert await refused("nowhere") == (404, "not_found")


async def test_who_does_not_attend_does_not_hear(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.set_attention(hall, ada, "none")
    answer = await chat(small_house, noor, ada, "Hello", space=hall.id)
    assert (answer["outcome"], answer["messages"]) == ("unheard", [])


async def test_asking_again_with_the_same_key_is_asking_once(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada, bee = await world.agent("Ada", model=forever(count)), await world.agent("Bee")
    key = {"Idempotency-Key": "1"}
    async with world.denizen.living():
        first = await chat(house, noor, ada, "Count", headers=key)
        assert await chat(house, noor, ada, "Count", headers=key) == first
        assert (await chat(house, sam, ada, "Count", headers=key))["message_id"] != first["message_id"]
        for said in ({"agent": "@ada", "text": "Other"}, {"agent": f"@{bee.entity.handle}", "text": "Count"}):
            refused = await house.call("POST", "/api/chat", noor, json=said, headers=key)
            assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert len(await world.cycles(ada)) == 2


async def test_first_messages_at_once_make_one_space(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=forever(count))
    await house.token(noor)
    async with world.denizen.living():
        answers = await asyncio.gather(*(chat(house, noor, ada, f"{number}") for number in range(6)))
    assert {each["outcome"] for each in answers} == {"acted"}
    [space] = {each["space_id"] for each in answers}
    said = [each for each in await world.denizen.spaces.messages(space) if each.author_id == noor.id]
    assert sorted(each.text for each in said) == ["0", "1", "2", "3", "4", "5"]


def count(messages: Any, info: Any) -> Any:
    return reply(f"{info.number}") if info.number % 2 == 0 else "Counted."


async def test_what_an_earlier_cycle_says_is_not_the_answer(small_house: House) -> None:
    """The message comes while the agent answers another in the same space."""
    house, world = small_house, small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    turns = reply("To the first, at some length."), "Answered.", reply("To the second."), "Answered."
    ada = await world.agent("Ada", model=scripted(*turns, pause=hesitation))
    async with asyncio.TaskGroup() as tasks, world.denizen.living():
        first = tasks.create_task(chat(house, noor, ada, "First"))
        while (await world.denizen.agents.status(ada)) != "alive":
            pass
        second = tasks.create_task(chat(house, noor, ada, "Second"))
        while not await world.denizen.minds.inbox(ada):
            pass
        hesitation.may_go_on.set()
        await asyncio.wait({first, second})
    assert first.result()["final_response"]["text"] == "To the first, at some length."
    assert second.result()["final_response"]["text"] == "To the second."


async def test_an_agent_that_fails_for_good_says_so(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=scripted(*[RuntimeError("oh")] * 5))
    async with asyncio.TaskGroup() as tasks, world.denizen.living() as residents:
        asking = tasks.create_task(chat(small_house, noor, ada, "Hello", seconds=600))
        for seconds in (0, 1, 4, 15, 60):
            while not world.model(ada).requests and not asking.done():  # noqa: ASYNC110
                await asyncio.sleep(0)
            world.clock.advance(seconds)
            await residents.run_until_idle()
        answer = await asking
    assert (answer["outcome"], answer["messages"]) == ("failed", [])


@pytest.mark.parametrize(
    "said",
    [
        {"text": "Hi"},
        {"agent": "@ada"},
        {"agent": "@ada", "text": "Hi", "seconds": 0},
        {"agent": "@ada", "text": "Hi", "seconds": 601},
        {"agent": "@ada", "text": " "},
        {"agent": "@ada", "text": "Hi", "metadata": {"long": "x" * 20_000}},
        {"agent": "@ada", "text": "Hi", "sapce": "x"},
    ],
    ids=["no agent", "no text", "no time", "too long a time", "blank", "too much metadata", "unknown field"],
)
async def test_what_cannot_be_asked_is_refused(small_house: House, said: dict[str, Any]) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada")
    answer = await small_house.call("POST", "/api/chat", noor, json=said)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_agents_of_others_and_dead_ones_are_not_there(small_house: House) -> None:
    world = small_house.world
    home, elsewhere = [await world.denizen.organizations.create(name) for name in ("Home", "Elsewhere")]
    noor = await world.person("Noor", organization=home)
    theirs = await world.agent("Theirs", organization=elsewhere)
    gone = await world.agent("Gone", organization=home)
    await world.denizen.agents.delete(gone)
    for agent in (theirs.id, "@theirs", gone.id, "@gone", "@nobody", "@noor"):
        answer = await small_house.call("POST", "/api/chat", noor, json={"agent": agent, "text": "Hi"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_agent_may_think_elsewhere(ready_postgres_url: str, redis_url: str) -> None:
    """One server is asked, another instance thinks."""
    async with open_world(ready_postgres_url, redis_url=redis_url) as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", reply("From afar."), "Answered.")
        other = World(ready_postgres_url, clock=world.clock, redis_url=redis_url)
        await other.open()
        async with served(other) as house, world.denizen.living():
            answer = await chat(house, noor, ada, "Where are you?")
        await other.close()
    assert (answer["outcome"], answer["final_response"]["text"]) == ("acted", "From afar.")
