"""An agent that cannot answer: told at once, parked or set aside, and answered when the cause is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from sqlalchemy import delete, insert, update

from denizen import call, forever, reply, scripted, skip, tool
from denizen.access.vault import new_key
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.consciousness import log
from denizen.cycles.troubles import classify
from denizen.errors import (
    ContentRefused,
    InvalidInput,
    ModelAnswerUnusable,
    ModelKeyMissing,
    ModelKeyRejected,
    ModelOverloaded,
    ModelRejected,
    ModelUnknown,
    ModelUnreachable,
    ModelUnsuitable,
    PriceUnknown,
    RequestTooLarge,
    ResponsesApiMissing,
    SecretUnreadable,
    ToolMissing,
)
from denizen.ids import CycleId
from denizen.inbox import parking, statuses
from denizen.inbox.delivery import INTERRUPTED_ALONE_AFTER, INTERRUPTED_AT_MOST
from denizen.inbox.statuses import SpaceStatus
from denizen.models.request import translate
from denizen.models.scripted import Info, Turn
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, events, space_statuses
from tests.world import UNHURRIED, JumpingClock, Waiting, World, as_text, open_world


async def noor_and_bo(world: World, *turns: Any, **options: Any) -> tuple[Entity, Agent, Space]:
    noor, bo = await world.person("Noor"), await world.agent("Bo", *turns, **options)
    return noor, bo, await world.space("Noor and Bo", noor, bo)


async def shown(world: World, space: Space) -> list[SpaceStatus]:
    return await world.denizen.db.read(statuses.of_space, space.id)


async def causes(world: World, space: Space) -> list[str]:
    return [each.cause for each in await shown(world, space)]


# What an error means


@pytest.mark.parametrize(
    ("error", "cause", "detail"),
    [
        (ModelKeyRejected("ModelAuthenticationError: status_code: 401"), "key", {}),
        (ModelKeyRejected("status_code: 402, insufficient credit"), "key", {"reason": "its credit is used up"}),
        (ModelKeyMissing("set it"), "key", {"missing": True}),
        (ModelUnknown("no such"), "model", {"reason": "this server does not know it"}),
        (ModelUnsuitable("ModelNotFoundError: status_code: 404"), "model", {"reason": "the provider does not have it"}),
        (
            ResponsesApiMissing("404", instead="openai-chat:gpt-5"),
            "model",
            {"reason": "its server has no Responses API, which openai-chat:gpt-5 does not need"},
        ),
        (ModelUnsuitable("gemma does not support tools"), "model", {"reason": "it cannot use tools"}),
        (PriceUnknown("what costs it?"), "price", {}),
        (ToolMissing("no oven here"), "tool", {"reason": "no oven here"}),
        (InvalidInput("stops by what is not here"), "definition", {"reason": "stops by what is not here"}),
        (RequestTooLarge("413"), "too_large", {}),
        (ContentRefused("no"), "refused", {}),
        (ModelOverloaded("429"), "failing", {"reason": "OpenAI is overloaded or limits the rate of requests"}),
        (ModelUnreachable("nobody there"), "failing", {"reason": "OpenAI cannot be reached"}),
        (ModelAnswerUnusable("500"), "failing", {"reason": "OpenAI gave no usable answer"}),
        (ModelRejected("400"), "failing", {"reason": "OpenAI rejected the request"}),
        (ValueError("a defect"), "failing", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_error_has_a_cause_in_the_agent_in_the_message_or_passes(
    error: Exception, cause: str, detail: dict[str, Any]
):
    trouble = classify(error, "openai:gpt-5")
    assert (trouble.cause, trouble.detail) == (cause, {"provider": "OpenAI", "model": "openai:gpt-5", **detail})


def test_a_secret_that_cannot_be_opened_is_told_in_its_own_words():
    assert classify(SecretUnreadable(), "").cause == "definition"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 429, 500, 503])
def test_a_person_is_never_shown_how_a_library_words_an_error(status: int):
    error = translate(ModelHTTPError(status, "gpt-5", body={"message": "sk-abc is not good"}))
    trouble = classify(error, "openai:gpt-5")
    text = SpaceStatus(Any, Any, "Bo", trouble.cause, trouble.detail).text  # pyright: ignore[reportArgumentType]
    assert "OpenAI" in text or "gpt-5" in text
    assert not {"status_code", "ModelHTTPError", "Error:", "sk-abc"} & set(text.split())
    assert "status_code" not in text


# Parked


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelHTTPError(401, "gpt-5"), "The provider rejected the API key of Bo. Check it under"),
        (ModelHTTPError(404, "gpt-5"), "Bo cannot use the model that it is set to: the provider does not have it."),
        (ModelUnknown("?"), "Bo cannot use the model that it is set to: this server does not know it."),
    ],
    ids=["key", "model", "unknown"],
)
async def test_an_error_that_will_not_pass_parks_the_agent_and_is_told_at_once(
    world: World, error: Exception, told: str
):
    """It was tried five times; then the message was dead, and the space said that Bo had nothing to say."""
    noor, bo, two = await noor_and_bo(world, error, error, reply("Hello."), "Greeted Noor.")
    await world.say(noor, "Hi", two)
    await world.say(noor, "Are you there?", two)
    await world.run()

    [status] = await shown(world, two)
    assert status.text.startswith(told)
    assert status.retry_at == world.clock.now() + 600_000_000
    # Uncounted, in their order, and nobody is asked again before its time.
    assert await world.waiting(bo) == [Waiting("Hi", "pending"), Waiting("Are you there?", "pending")]
    assert len(world.model(bo).requests) == 1
    await world.run_after(599)
    assert len(world.model(bo).requests) == 1
    await world.run_after(1)
    assert len(world.model(bo).requests) == 2
    await world.run_after(1199)
    assert len(world.model(bo).requests) == 2
    await world.run_after(1)
    assert await world.transcript(two) == ["Noor: Hi", "Noor: Are you there?", "Bo: Hello."]
    assert await shown(world, two) == []
    assert await world.denizen.db.read(parking.get, bo.id) is None
    assert await check_database(world.denizen.db) == []


async def test_a_warm_agent_that_is_parked_leaves_its_inbox_alone(unhurried_world: World):
    """Its life goes on in this process for a while; a new message must not be tried with the same key."""
    world = unhurried_world
    noor, bo, two = await noor_and_bo(world, ModelKeyRejected("401"), reply("Hello."), "Greeted Noor.")
    async with world.denizen.living():
        await world.say(noor, "Hi", two)
        await world.run()
        await world.say(noor, "Hello?", two)
        await world.run()
        assert len(world.model(bo).requests) == 1
        assert await causes(world, two) == ["key"]
        await world.denizen.agents.try_again(bo)
        await world.run()
        assert (await world.transcript(two))[-1] == "Bo: Hello."


async def test_a_parked_cycle_with_effects_goes_on_at_its_step(world: World):
    called: list[int] = []

    @tool
    async def order_pizza() -> str:
        """Order a pizza."""
        called.append(1)
        return "ordered"

    noor, bo, two = await noor_and_bo(
        world,
        call("order_pizza"),
        ModelKeyRejected("401"),
        ModelKeyRejected("401"),
        reply("Pizza is coming."),
        "Ordered.",
        tools=[order_pizza],
    )
    await world.say(noor, "Hungry", two)
    await world.run()
    assert await causes(world, two) == ["key"]
    assert [(each.text, each.state) for each in await world.waiting(bo)] == [("Hungry", "taken")]
    await world.denizen.agents.try_again(bo)
    await world.run()
    assert await causes(world, two) == ["key"]
    await world.run_after(1200)
    assert called == [1]
    assert await world.transcript(two) == ["Noor: Hungry", "Bo: Pizza is coming."]
    assert await world.endings(bo) == [(1, "acted", "answered", "Ordered.")]
    assert await shown(world, two) == []


CHANGES: dict[str, Callable[[World, Agent, Space], Awaitable[object]]] = {
    "edit": lambda world, bo, _: world.denizen.agents.edit(bo, instructions="Be brief."),
    "secret": lambda world, *_: world.denizen.secrets.set("OPENAI_API_KEY", "0123456789"),
    "secret removed": lambda world, *_: world.denizen.secrets.delete("OTHER_KEY"),
    "start": lambda world, *_: world.restart(),
    "try again": lambda world, bo, two: world.denizen.agents.try_again(bo, two),
    "try again everywhere": lambda world, bo, _: world.denizen.agents.try_again(bo),
    "budget": lambda world, *_: world.denizen.budgets.set(tokens_per_day=1_000_000),
}


@pytest.mark.parametrize("how", CHANGES)
async def test_parked_work_goes_on_when_the_cause_may_have_changed(ready_url: str, how: str):
    async with open_world(ready_url, secret_key=new_key()) as world:
        noor, bo, two = await noor_and_bo(world, ModelKeyRejected("401"), reply("Hello."), "Greeted Noor.")
        await world.denizen.secrets.set("OTHER_KEY", "0123456789")
        await world.say(noor, "Hi", two)
        await world.run()
        await world.run()
        assert await causes(world, two) == ["key"]
        await CHANGES[how](world, bo, two)
        await world.run()
        assert await world.transcript(two) == ["Noor: Hi", "Bo: Hello."]
        assert await shown(world, two) == []


async def test_a_skip_shows_that_the_agent_can_think_again(world: World):
    noor, bo, _ = await noor_and_bo(world, ModelKeyRejected("401"), skip("nothing to do"))
    cy = await world.agent("Cy")
    hall = await world.space("Hall", noor, bo, cy)
    await world.say(noor, "Hello all", hall)
    await world.run()
    assert await world.denizen.db.read(parking.get, bo.id) is not None
    await world.run_after(600)
    assert await world.denizen.db.read(parking.get, bo.id) is None


async def test_a_request_that_is_too_large_because_of_the_past_parks(world: World):
    """The message is short: setting it aside as too long would be untrue, and the next would fare no better.

    It is made smaller first, as far as that goes.
    """
    noor, _, two = await noor_and_bo(world, model=forever(lambda *_: RequestTooLarge("413")))
    await world.say(noor, "Hi", two)
    await world.run()
    [status] = await shown(world, two)
    assert status.text.startswith("Bo cannot use the model that it is set to: what it has to remember does not fit.")


# Set aside


def refusing(word: str, error: Exception):
    """A model whose provider refuses a word."""

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        said = as_text(messages[-1])
        if not said.startswith("[INBOX -"):
            return "Answered."
        return error if word in said else reply(f"Fine: {said.count('(human)')}")

    return forever(decide)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ContentFilterError("no"), "The provider refused to process this message. Bo has set it aside and goes on"),
        (ModelHTTPError(413, "m"), "This message is too long for the model that it is set to. Bo has set it aside"),
    ],
    ids=["refused", "too large"],
)
async def test_a_message_that_cannot_be_read_is_set_aside_and_holds_nobody_up(
    world: World, error: Exception, told: str
):
    """Found by trying each alone, at once; the others lose no attempt by it."""
    noor, bo, two = await noor_and_bo(world, model=refusing("poison", error))
    long = "poison " * 8_000
    for text in ("one", long, "two"):
        await world.say(noor, text, two)
    await world.run()

    [status] = await shown(world, two)
    assert status.text.startswith(told)
    assert status.actions[0] == "try_again"
    assert [each.state for each in await world.waiting(bo)] == ["dead"]
    said = await world.transcript(two)
    assert [line for line in said if line.startswith("Bo")] == ["Bo: Fine: 1", "Bo: Fine: 1"]
    assert await check_database(world.denizen.db) == []

    # What was set aside can be tried again, and is told of again.
    await world.denizen.agents.try_again(bo, two)
    assert await shown(world, two) == []
    await world.run()
    assert len(await shown(world, two)) == 1
    # Whoever writes again knows.
    await world.say(noor, "Never mind", two)
    assert await shown(world, two) == []


async def test_a_space_shows_that_a_message_was_set_aside_until_all_of_them_are_tried_again(world: World):
    noor, bo, two = await noor_and_bo(world, model=refusing("poison", ContentRefused("no")))
    aside: list[str] = []
    for text in ("poison", "more poison"):
        aside.append((await world.say(noor, text, two)).id)
        await world.run()
    assert [each.state for each in await world.waiting(bo)] == ["dead", "dead"]
    await world.denizen.minds.requeue(bo, aside[0])
    assert len(await shown(world, two)) == 1
    await world.denizen.minds.requeue(bo, aside[1])
    assert await shown(world, two) == []


async def test_a_refusal_after_effects_ends_the_cycle_and_is_told(world: World):
    @tool
    async def read_page() -> str:
        """Read a page."""
        return "what no filter lets through"

    noor, bo, two = await noor_and_bo(
        world, call("read_page"), ContentRefused("no"), reply("It cannot be read."), "Told.", tools=[read_page]
    )
    posted = await world.say(noor, "Read it", two)
    await world.run()
    [status] = await shown(world, two)
    assert (status.cause, status.message_id) == ("refused", posted.id)
    assert [each[1] for each in await world.endings(bo)] == ["failed"]
    assert await check_database(world.denizen.db) == []

    await world.denizen.agents.try_again(bo, two)
    await world.run()
    assert await world.transcript(two) == ["Noor: Read it", "Bo: It cannot be read."]
    assert await shown(world, two) == []


# What passes


async def test_a_failure_that_passes_is_shown_until_the_answer_comes(world: World):
    noor, _, two = await noor_and_bo(world, ModelRejected("no"), ModelRejected("no"), reply("Hello."), "Greeted Noor.")
    await world.say(noor, "Hi", two)
    await world.run()
    [status] = await shown(world, two)
    assert status.text == "Bo has trouble answering: its model rejected the request. It tries again by itself."
    assert status.retry_at == world.clock.now() + 1_000_000
    await world.run_after(1)
    assert [each.retry_at for each in await shown(world, two)] == [world.clock.now() + 4_000_000]
    await world.run_after(4)
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Hello."]
    assert await shown(world, two) == []


async def test_trouble_of_one_space_stays_while_another_is_answered(world: World):
    noor, bo, two = await noor_and_bo(world, ModelRejected("no"), reply("There."), "Answered.", reply("Here."), "Done.")
    sam = await world.person("Sam")
    other = await world.space("Sam and Bo", sam, bo)
    await world.say(noor, "Hi", two)
    await world.run()
    await world.say(sam, "Hello", other)
    await world.run()
    assert await world.transcript(other) == ["Sam: Hello", "Bo: There."]
    assert await causes(world, two) == ["failing"]
    await world.run_after(1)
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]
    assert await shown(world, two) == []


async def test_a_cycle_that_is_put_off_shows_trouble_where_nothing_was_said(world: World):
    @tool
    async def order_pizza() -> str:
        """Order a pizza."""
        return "ordered"

    noor, _, two = await noor_and_bo(
        world, call("order_pizza"), *[ModelRejected("no")] * 5, reply("Pizza?"), "Asked.", tools=[order_pizza]
    )
    posted = await world.say(noor, "Hungry", two)
    await world.run()
    assert [(each.cause, each.message_id) for each in await shown(world, two)] == [("failing", posted.id)]
    for seconds in (1, 4, 15, 60):
        await world.run_after(seconds)
    [status] = await shown(world, two)
    assert status.text == (
        "Bo tried 5 times to answer this and failed: its model rejected the request. "
        "It has set the message aside and goes on with the rest."
    )
    assert await check_database(world.denizen.db) == []
    await world.denizen.db.write(_say_nothing)
    assert [each.sentence for each in await check_database(world.denizen.db)] == [
        "A message has no answer, and whoever waits for it is not told so."
    ]


def _say_nothing(tx: Tx) -> None:
    tx.run(statement(delete(space_statuses)))


async def test_whoever_waits_is_shown_that_a_model_is_asked_again(ready_url: str):
    """A request may be asked again for a minute before it fails: that is no time to see nothing."""
    clock, seen = JumpingClock(), list[list[str]]()
    async with open_world(ready_url, clock=clock, pace=UNHURRIED) as world:

        async def decide(messages: list[ModelMessage], info: Info) -> Turn:
            if not as_text(messages[-1]).startswith("[INBOX -"):
                return "Answered."
            seen.append(await causes(world, two))
            return ModelOverloaded("busy") if info.number < 3 else reply("Hello.")

        noor, _, two = await noor_and_bo(world, model=forever(decide))
        await world.say(noor, "Hi", two)
        await world.run()
        # Not for two seconds, which pass unnoticed.
        assert seen == [[], [], ["failing"], ["failing"]]
        assert await world.transcript(two) == ["Noor: Hi", "Bo: Hello."]
        assert await shown(world, two) == []


async def test_a_message_that_was_given_up_is_told_of_and_can_be_tried_again(world: World):
    noor, bo, two = await noor_and_bo(world, *[ModelRejected("no")] * 5, reply("Here."), "Answered.")
    await world.say(noor, "Hi", two)
    for seconds in (0, 1, 4, 15, 60):
        await world.run_after(seconds)
    assert await causes(world, two) == ["gave_up"]
    assert await check_database(world.denizen.db) == []
    await world.denizen.agents.try_again(bo, two)
    await world.run()
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]
    assert await shown(world, two) == []


async def test_trying_again_does_not_wait_for_the_back_off(world: World):
    noor, bo, two = await noor_and_bo(world, ModelRejected("no"), reply("Here."), "Answered.")
    await world.say(noor, "Hi", two)
    await world.run()
    await world.denizen.agents.try_again(bo, two)
    await world.run()
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]


# What cannot be loaded here


async def test_an_agent_that_lacks_a_tool_here_says_so_where_somebody_waits(world: World):
    @tool
    async def order_pizza() -> str:
        """Order a pizza."""
        return "ordered"

    noor, bo, two = await noor_and_bo(world, reply("Here."), "Answered.", tools=[order_pizza])
    world._tools.clear()
    await world.restart()
    await world.say(noor, "Hi", two)
    with pytest.raises(ToolMissing):
        await world.run()
    [status] = await shown(world, two)
    assert status.cause == "tool"
    assert "order_pizza" in status.text
    # Not parked: another process may have it.
    assert await world.denizen.db.read(parking.get, bo.id) is None
    await world.denizen.agents.edit(bo, tools=[])
    await world.run()
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]
    assert await shown(world, two) == []


async def test_an_agent_without_a_model_or_a_price_here_says_so(world: World):
    noor, bo, two = await noor_and_bo(world)
    await world.denizen.agents.edit(bo, model="nowhere:gpt")
    await world.say(noor, "Hi", two)
    with pytest.raises(ModelUnknown):
        await world.run()
    assert [each.text.partition(".")[0] for each in await shown(world, two)] == [
        "Bo cannot use the model nowhere:gpt: this server does not know it"
    ]

    class Foreign(type(scripted())):  # a model of no price list
        @property
        def system(self) -> str:
            return "nowhere"

    world.denizen.models.register("python:other", scripted())
    await world.denizen.agents.edit(bo, model="python:other", budget={"dollars_per_day": 1})
    world.denizen.models.register(
        "python:other", Foreign(scripted()._decide, name="x", chunk=None, pause=None, record=False)
    )
    with pytest.raises(PriceUnknown):
        await world.run()
    assert await causes(world, two) == ["price"]


# What the process suffers


async def test_a_message_over_which_the_process_died_is_tried_again_many_times(world: World):
    """Five kills before the first answer made it dead, without a word."""
    noor, bo, two = await noor_and_bo(world, *[reply("Here."), "Answered."] * 2)
    sam = await world.person("Sam")
    other = await world.space("Sam and Bo", sam, bo)
    await world.say(noor, "Hi", two)
    await world.say(sam, "Hello", other)
    await world.denizen.db.write(_died, bo.id, INTERRUPTED_ALONE_AFTER)
    await world.run()
    # Each by itself: one of them may be what it dies of.
    assert [text.count("(human)") for text in _inboxes(world, bo)] == [1, 1]
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]
    assert await check_database(world.denizen.db) == []


async def test_a_message_over_which_the_process_died_too_often_is_set_aside_and_told_of(world: World):
    noor, bo, two = await noor_and_bo(world, reply("Here."), "Answered.")
    await world.say(noor, "Hi", two)
    await world.denizen.db.write(_died, bo.id, INTERRUPTED_AT_MOST - 1)
    await _begin_and_die(world, bo)
    await world.run()
    assert await world.waiting(bo) == [Waiting("Hi", "dead")]
    [status] = await shown(world, two)
    assert status.text.startswith("The server stopped 50 times while Bo was reading this.")
    assert await check_database(world.denizen.db) == []
    await world.denizen.agents.try_again(bo, two)
    await world.run()
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]


def _inboxes(world: World, agent: Agent) -> list[str]:
    said = [as_text(asked[-1]) for asked in world.model(agent).requests]
    return [text for text in said if text.startswith("[INBOX -")]


async def _begin_and_die(world: World, agent: Agent) -> None:
    """As if a process had opened a cycle and was killed before the model answered."""

    def begin(tx: Tx) -> None:
        tx.run(
            statement(insert(cycles).values(id="c1", agent_id=agent.id, first_seq=1, started_at=tx.now, outcome="open"))
        )
        log.append(
            tx, agent.id, [log.entry(1, CycleId("c1"), "inbox", ModelRequest(parts=[UserPromptPart("[INBOX - 1]")]))]
        )
        tx.run(statement(update(events).where(events.c.agent_id == agent.id).values(state="taken", cycle_id="c1")))

    await world.denizen.db.write(begin)


def _died(tx: Tx, agent_id: str, times: int) -> None:
    tx.run(statement(update(events).where(events.c.agent_id == agent_id).values(interruptions=times)))


# Suspended, deleted


async def test_suspending_an_agent_for_which_somebody_waits_is_told(world: World):
    noor, bo, two = await noor_and_bo(world, reply("Here."), "Answered.")
    await world.say(noor, "Hi", two)
    await world.denizen.agents.suspend(bo)
    assert await causes(world, two) == ["suspended"]
    assert await check_database(world.denizen.db) == []
    await world.denizen.agents.resume(bo)
    assert await shown(world, two) == []
    await world.run()
    assert await world.transcript(two) == ["Noor: Hi", "Bo: Here."]


async def test_deleting_an_agent_for_which_somebody_waits_is_told(world: World):
    noor, bo, two = await noor_and_bo(world, ModelKeyRejected("401"))
    await world.say(noor, "Hi", two)
    await world.run()
    assert await causes(world, two) == ["key"]
    await world.denizen.agents.delete(bo)
    assert await causes(world, two) == ["deleted"]
    assert await check_database(world.denizen.db) == []


async def test_an_agent_whose_budget_is_used_up_shows_that_while_somebody_waits(world: World):
    noor, bo, two = await noor_and_bo(world, budget={"tokens": 10})
    await world.say(noor, "Hi", two)
    await world.run()
    assert await causes(world, two) == ["budget"]
    await world.say(noor, "Hello?", two)
    await world.run()
    assert await causes(world, two) == ["budget"]
    assert await check_database(world.denizen.db) == []
    await world.restart(bo=scripted(reply("Here."), "Answered."))
    await world.denizen.agents.edit(bo, budget=None)
    assert await shown(world, two) == []
    await world.run()
    assert (await world.transcript(two))[-1] == "Bo: Here."
