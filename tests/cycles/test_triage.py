"""The cheap skip: what need not be thought about is seen before anything of the agent is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from denizen import call, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.cycles import triage
from denizen.errors import InvalidInput, ModelUnreachable
from denizen.models import location
from denizen.models.discovery import utility_model_for
from denizen.models.scripted import ScriptedModel
from denizen.storage.database import Database
from tests.models.loopback import Failure, loopback
from tests.world import World, as_text, open_world, slow_local

SMALL_TALK = {"skip_when": {"shorter_than": 10}}
ASKED = {"model": "sieve", "instructions": "It cares for the garden only."}


async def three_in_a_hall(world: World, *turns: Any, **options: Any):
    """An agent and two people, so that not everything is meant for the agent."""
    ada = await world.agent("Ada", *turns, instructions="You are the gardener.", **options)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    return ada, noor, await world.space("Hall", noor, bert, ada)


def register(world: World, *turns: Any) -> ScriptedModel:
    sieve = scripted(*turns, name="sieve")
    world.denizen.models.register("sieve", sieve)
    return sieve


@contextmanager
def reads_of(db: Database) -> Iterator[list[str]]:
    """Inside, the names of the functions that read the database are noted, in order."""
    names: list[str] = []
    reading = db.read

    def read(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        names.append(fn.__name__)
        return reading(fn, *args, **kwargs)

    db.read = read  # type: ignore[method-assign]  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield names
    finally:
        del db.read  # type: ignore[method-assign]


async def no_trace(world: World, ada: Agent) -> None:
    """Nothing of the skip is in the log, the cycle records or the inbox, and every invariant holds."""
    assert (await world.history(ada), await world.cycles(ada), await world.waiting(ada)) == ([], [], [])
    assert await check_database(world.denizen.db) == []


async def test_a_rule_skips_before_the_window_is_read_and_without_a_model(world: World):
    ada, noor, hall = await three_in_a_hall(world, reply("Yes?"), "Done.", cycle={"triage": SMALL_TALK})
    await world.say(noor, "Morning!", hall)
    with reads_of(world.denizen.db) as names:
        await world.run()
        assert "_load_mind" not in names
        assert world.model(ada).requests == []
        await no_trace(world, ada)
        assert await world.ledger(ada) == [("skip", "triage: rule")]

        await world.say(noor, "What about the roses?", hall)
        await world.run()
        assert "_load_mind" in names
    assert await world.transcript(hall) == ["Noor: Morning!", "Noor: What about the roses?", "Ada: Yes?"]


async def test_what_triage_decides_about_is_not_opened_with_the_message_that_wakes_a_resting_agent(world: World):
    """A message to it, and one in a space of two, is not triaged, and is."""
    ada, noor, hall = await three_in_a_hall(world, *[reply("Yes?"), "Done."] * 2, cycle={"triage": SMALL_TALK})
    async with world.denizen.living():
        await world.say(noor, "What about the roses?", hall)
        await world.run()
        await world.say(noor, "Morning!", hall)
        await world.run()
        assert ("skip", "triage: rule") in await world.ledger(ada)
        assert len(await world.cycles(ada)) == 1
        await world.say(noor, "@ada Hey", hall)
        await world.run()
    assert len(await world.cycles(ada)) == 2
    assert await check_database(world.denizen.db) == []


async def test_a_small_model_sees_who_the_agent_is_and_the_new_events_and_skips(world: World):
    """It has one decision to make, its reason and its cost go to the ledger; the agent's own model is never asked."""
    sieve = register(world, skip("they talk about lunch"))
    ada, noor, hall = await three_in_a_hall(world, cycle={"triage": ASKED})
    await world.say(noor, "Bert, lunch?", hall)
    with reads_of(world.denizen.db) as names:
        await world.run()
    assert "_load_mind" not in names
    assert world.model(ada).requests == []

    system, inbox = (as_text(message) for message in sieve.requests[0])
    assert '"Ada" (@ada)' in system
    assert "ITS ROLE: You are the gardener." in system
    assert "FROM ITS OWNER: It cares for the garden only." in system
    assert inbox.startswith("[INBOX - 1 new event]")
    assert 'Noor (human): "Bert, lunch?"' in inbox
    assert sieve.infos[0].tools == ("decide",)

    assert await world.ledger(ada) == [("skip", "triage: they talk about lunch")]
    assert [(each.model, each.calls) for each in await world.denizen.budgets.spending(ada)] == [("sieve", 1)]
    await no_trace(world, ada)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("skip", "not for this agent"),
        ("**Skip.**", "not for this agent"),
        ("Skip: it is about lunch", "it is about lunch"),
        ('{"decision": "skip", "reason": "lunch"}', "lunch"),
        ('```json\n{"decision": "skip", "reason": "lunch"}\n```', "lunch"),
        ('{"name": "skip", "arguments": {"reason": "lunch"}}', "lunch"),
    ],
)
async def test_a_model_that_writes_skip_instead_of_calling_it_is_understood(small_world: World, text: str, reason: str):
    register(small_world, text)
    ada, noor, hall = await three_in_a_hall(small_world, cycle={"triage": ASKED})
    await small_world.say(noor, "Bert, lunch?", hall)
    await small_world.run()
    assert await small_world.ledger(ada) == [("skip", f"triage: {reason}")]


@pytest.mark.parametrize("refuses", [False, True], ids=["takes a schema", "refuses a schema"])
async def test_a_provider_with_a_json_schema_is_asked_with_it(small_world: World, refuses: bool):
    """Otherwise the decision is asked for as a call, and so it is from then on."""

    def judge(body: dict[str, Any]) -> Failure | None:
        if refuses and "response_format" in body:
            return Failure(400, body={"error": {"message": "response_format is not supported"}})
        return None

    async with loopback() as server, AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client:
        decision = '{"decision": "skip", "reason": "lunch"}'
        server.judge, server.text, server.tool = judge, decision, None
        if refuses:
            server.text, server.tool, server.arguments = "", "decide", decision
        provider = OpenAIProvider(openai_client=client)
        small_world.denizen.models.register("sieve", OpenAIChatModel("gpt-5-mini", provider=provider))
        ada, noor, hall = await three_in_a_hall(small_world, cycle={"triage": ASKED})
        await small_world.say(noor, "Bert, lunch?", hall)
        await small_world.run()
        assert await small_world.ledger(ada) == [("skip", "triage: lunch")]
        sent = [(each.body.get("response_format", {}).get("type"), "tools" in each.body) for each in server.received]
        assert sent == ([("json_schema", False), (None, True)] if refuses else [("json_schema", False)])


async def test_what_is_kept_is_thought_about_and_not_sifted_again(world: World):
    """Although its first cycle fails and is undone, the same life does not ask about it twice."""
    sieve = register(world, call("think"))
    ada, noor, hall = await three_in_a_hall(world, RuntimeError("oh"), reply("Hm."), "Done.", cycle={"triage": ASKED})
    await world.say(noor, "How are the roses?", hall)
    async with world.denizen.living() as residents:
        await residents.run_until_idle()
        world.clock.advance(2)
        await residents.run_until_idle()
    assert await world.transcript(hall) == ["Noor: How are the roses?", "Ada: Hm."]
    assert len(sieve.requests) == 1
    assert (await world.ledger(ada))[0] == ("usage", "triage")
    assert await check_database(world.denizen.db) == []


async def test_a_warm_agent_is_triaged_before_a_cycle_opens(world: World):
    sieve = register(world, call("think"), skip("lunch"), call("think"))
    ada, noor, hall = await three_in_a_hall(
        world, reply("Fine."), "Done.", reply("Soon."), "Done.", cycle={"triage": ASKED}
    )
    async with world.denizen.living() as residents:
        for text in ("How are the roses?", "Bert, lunch?", "And the tulips?"):
            await world.say(noor, text, hall)
            await residents.run_until_idle()
    assert len(sieve.requests) == 3
    assert [text for text in await world.transcript(hall) if text.startswith("Ada")] == ["Ada: Fine.", "Ada: Soon."]
    assert "lunch" not in str(await world.history(ada))
    assert [number for number, *_ in await world.endings(ada)] == [1, 2]
    assert await check_database(world.denizen.db) == []


async def _never() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "answer",
    [
        "They talk about lunch.",  # no call
        [call("skip", reason="lunch"), call("think")],  # both
        call("decide", decision="think", reason="lunch"),
        call("decide", reason="lunch"),
        call("skip"),  # no reason
        call("send_message", text="Hello"),  # not for it to do
        ModelUnreachable("gone"),
        RuntimeError("a defect"),
        pytest.param(asyncio.CancelledError(), id="cancelled, and not by us"),
    ],
)
async def test_whatever_goes_wrong_the_agent_thinks(small_world: World, answer: Any):
    sieve = register(small_world, answer, skip("asked again"))
    _, noor, hall = await three_in_a_hall(small_world, reply("Hm."), "Done.", cycle={"triage": ASKED})
    await small_world.say(noor, "Bert, lunch?", hall)
    await small_world.run()
    assert await small_world.transcript(hall) == ["Noor: Bert, lunch?", "Ada: Hm."]
    assert len(sieve.requests) == 1


async def test_a_small_model_that_does_not_answer_is_not_waited_for(
    small_world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(triage, "SECONDS", 0.01)
    slow = scripted(skip("too late"), pause=_never)
    small_world.denizen.models.register("sieve", slow)
    _, noor, hall = await three_in_a_hall(small_world, reply("Hm."), "Done.", cycle={"triage": ASKED})
    await small_world.say(noor, "Bert, lunch?", hall)
    await small_world.run()
    assert await small_world.transcript(hall) == ["Noor: Bert, lunch?", "Ada: Hm."]


async def test_a_local_model_has_longer_to_decide(small_world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triage, "SECONDS", 1e-9)
    monkeypatch.setattr(location, "LOCAL_PATIENCE", 1e12)
    small_world.denizen.models.register("sieve", slow_local(skip("not for her")))
    _, noor, hall = await three_in_a_hall(small_world, cycle={"triage": ASKED})
    await small_world.say(noor, "Bert, lunch?", hall)
    await small_world.run()
    assert await small_world.transcript(hall) == ["Noor: Bert, lunch?"]


@pytest.mark.parametrize("how", ["urgent", "mention", "space of two", "with one that is"])
async def test_what_is_meant_for_the_agent_is_never_sifted(small_world: World, how: str):
    world = small_world
    ada, noor, hall = await three_in_a_hall(world, reply("Yes?"), "Done.", cycle={"triage": {"skip_when": {}}})
    if how == "space of two":
        hall = await world.space("Desk", noor, ada)
    if how == "with one that is":
        await world.say(noor, "Hello", hall)
    text = "Hey @ada" if how in ("mention", "with one that is") else "Hello"
    await world.say(noor, text, hall, urgent=how == "urgent")
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Yes?"
    assert len(await world.cycles(ada)) == 1


async def test_a_cycle_that_was_cut_off_is_resumed_whatever_triage_would_say(world: World):
    ada, noor, hall = await three_in_a_hall(world, reply("First."), RuntimeError("cut off"))
    await world.say(noor, "A question", hall)
    await world.run()
    await world.denizen.agents.edit(ada, cycle={"triage": {"skip_when": {}}})
    await world.restart(ada=scripted("Done."))
    await world.say(noor, "Hi", hall)
    await world.run_after(5)
    assert await world.endings(ada) == [(1, "acted", "answered", "Done.")]
    assert ("skip", "triage: rule") in await world.ledger(ada)
    assert await world.waiting(ada) == []


async def test_only_what_was_seen_is_skipped(world: World):
    """A message that arrives while the small model decides is decided about anew."""
    ada, noor, hall = await three_in_a_hall(world, reply("Yes?"), "Done.", cycle={"triage": ASKED})

    async def decide(_messages: Any, _info: Any) -> Any:
        await world.say(noor, "@ada, help", hall)
        return skip("lunch")

    register(world, decide)
    await world.say(noor, "Bert, lunch?", hall)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Yes?"
    assert "@ada, help" in await world.newest_inbox(ada)
    assert "lunch" not in await world.newest_inbox(ada)


async def test_what_does_not_wake_waits_for_the_next_thought(world: World):
    """A notice is not skipped along with small talk: it was not shown."""
    ada, noor, hall = await three_in_a_hall(world, reply("Yes?"), "Done.", cycle={"triage": SMALL_TALK})
    loud = await world.agent("Loud")
    await world.denizen.spaces.join(hall, loud)
    from denizen.spaces import posting

    await world.denizen.db.write(posting.post, hall.id, loud.id, posting.draft("Nobody heard this"), hop=7)
    await world.say(noor, "Morning!", hall)
    await world.run()
    assert [each.text for each in await world.waiting(ada)] == ["Nobody heard this"]
    await world.say(noor, "@ada, roses?", hall)
    await world.run()
    assert "Nobody heard this" in await world.newest_inbox(ada)


async def test_an_owners_function_may_decide(ready_sqlite_url: str):
    def bored(events: Any) -> str | None:
        return "heard it before" if all("lunch" in event.text for event in events) else None

    def fails(_events: Any) -> str | None:
        raise RuntimeError("no idea")

    async with open_world(ready_sqlite_url, triages={"bored": bored, "fails": fails}) as world:
        ada, noor, hall = await three_in_a_hall(
            world, reply("Yes."), "Done.", reply("No."), "Done.", cycle={"triage": {"by": "bored"}}
        )
        for text in ("lunch?", "Roses!"):
            await world.say(noor, text, hall)
            await world.run()
        assert (await world.ledger(ada))[0] == ("skip", "triage: heard it before")
        await world.denizen.agents.edit(ada, cycle={"triage": {"by": "fails"}})
        await world.say(noor, "lunch?", hall)
        await world.run()
        assert await world.transcript(hall) == [
            "Noor: lunch?",
            "Noor: Roses!",
            "Ada: Yes.",
            "Noor: lunch?",
            "Ada: No.",
        ]


async def test_an_owner_who_ends_triage_is_heard_by_a_warm_agent(small_world: World):
    world = small_world
    ada, noor, hall = await three_in_a_hall(world, reply("Yes?"), "Done.", cycle={"triage": SMALL_TALK})
    async with world.denizen.living() as residents:
        await world.say(noor, "@ada, hello", hall)
        await residents.run_until_idle()
        await world.denizen.agents.edit(ada, cycle={})
        world.model(ada)._decide = scripted(reply("Here."), "Done.")._decide  # pyright: ignore[reportPrivateUsage]
        await world.say(noor, "Hi", hall)
        await residents.run_until_idle()
    assert (await world.transcript(hall))[-1] == "Ada: Here."


async def test_what_triage_needs_is_missed_at_once(small_world: World):
    _, noor, hall = await three_in_a_hall(small_world, cycle={"triage": {"by": "nobody"}})
    await small_world.say(noor, "Hello", hall)
    with pytest.raises(InvalidInput, match=r"nobody.*Runtime\(triages"):
        await small_world.run()


@pytest.mark.parametrize("wrong", [{}, {"instructions": "x", "skip_when": {}}, {"model": ""}])
async def test_triage_that_decides_nothing_is_refused(small_world: World, wrong: dict[str, Any]):
    with pytest.raises(InvalidInput, match="triage"):
        await small_world.denizen.agents.create("Ada", cycle={"triage": wrong})


# Without being set up


async def shared_hall(world: World, *judgements: Any, model: str = "anthropic:large", others: int = 1, **options: Any):
    """Ada thinks with a large model whose provider has a small one; she is in a hall with people and other agents."""
    large, small = scripted(reply("Yes?"), "Done."), scripted(*judgements)
    world.denizen.models.register(model, large)
    world.denizen.models.register(utility_model_for(model), small)
    ada = await world.denizen.agents.create("Ada", model=model, **options)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    bees = [await world.agent(f"Bee {number}", skip("not mine")) for number in range(others)]
    hall = await world.space("Hall", noor, bert, ada, *bees)
    return ada, noor, hall, large, small


async def test_in_a_space_with_several_agents_the_small_model_of_the_provider_is_asked(world: World):
    ada, noor, hall, large, small = await shared_hall(world, skip("about lunch"))
    await world.say(noor, "Bert, lunch?", hall)
    await world.run()
    assert (len(small.requests), len(large.requests)) == (1, 0)
    assert await world.ledger(ada) == [("skip", "triage: about lunch")]
    await no_trace(world, ada)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("@ada, lunch?", {}),
        ("Bert, lunch?", {"others": 0}),
        ("Bert, lunch?", {"cycle": {"triage": "off"}}),
        ("Stop!", {}),
    ],
    ids=["a person waits", "the only agent", "off", "urgent"],
)
async def test_elsewhere_the_agent_thinks_at_once(small_world: World, text: str, options: dict[str, Any]):
    _, noor, hall, large, small = await shared_hall(small_world, **options)
    await small_world.say(noor, text, hall)
    await small_world.run()
    assert (len(small.requests), len(large.requests)) == (0, 2)


async def test_what_comes_from_no_space_is_thought_about_at_once(small_world: World):
    ada, _, _, large, small = await shared_hall(small_world)
    await small_world.denizen.agents.trigger(ada, "alarm", text="Smoke")
    await small_world.run()
    assert (len(small.requests), len(large.requests)) == (0, 2)


async def test_an_older_definition_without_triage_has_the_default(small_world: World):
    ada = await small_world.agent("Ada", cycle={"triage": None})
    assert ada.definition.cycle.triage == "auto"
