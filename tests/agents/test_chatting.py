"""What becomes of one message to one agent: the answer, or why there is none, in the words of the space's status."""

from __future__ import annotations

from typing import Any

from denizen import call, reply, skip
from denizen.access.requesters import THIS_PROCESS
from denizen.agents import chatting, why_no_answer
from denizen.agents.chatting import AnswerState, AwaitedMessage, Question
from denizen.agents.registry import Agent
from denizen.ids import AgentId, MessageId, new_id
from denizen.inbox import delivery, parking, statuses
from denizen.models.scripted import Turn
from denizen.spaces import posting
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from denizen.tools.settings import ClientTool
from tests.world import World


async def ask(world: World, *turns: Turn, run: bool = True, **options: Any) -> tuple[Agent, AwaitedMessage]:
    """Noor asks Bo in their private space."""
    bo, noor = await world.agent("Bo", *turns, **options), await world.person("Noor")
    asked = await world.denizen.db.write(_ask, noor, bo)
    if run:
        await world.run()
    return bo, asked


def _ask(tx: Tx, noor: Entity, bo: Agent, space: str | None = None) -> AwaitedMessage:
    text = "Are you there?"
    by = THIS_PROCESS.acting_as(noor.id)
    return chatting.ask(tx, by, Question(bo.id, text, space), posting.draft(text), MessageId(new_id()))


async def answer(world: World, asked: AwaitedMessage) -> AnswerState:
    return await world.denizen.db.read(why_no_answer.answer_so_far, asked)


async def told(world: World, asked: AwaitedMessage) -> tuple[str, list[str], str]:
    found = await answer(world, asked)
    return found.outcome, [each.text for each in found.messages], found.note


async def test_an_answer_needs_no_note(world: World):
    _, asked = await ask(world, reply("Yes."), "Answered.")
    assert await told(world, asked) == ("acted", ["Yes."], "")


async def test_text_without_a_call_is_the_answer(world: World):
    _, asked = await ask(world, "Yes.", "Answered.")
    assert await told(world, asked) == ("acted", ["Yes."], "")


async def test_a_skip_says_that_there_was_no_reply(world: World):
    """Also after the status has gone because somebody asked again."""
    bo, asked = await ask(world, skip("busy"))
    expected = ("acted", [], "Bo read this and did not reply.")
    assert await told(world, asked) == expected
    await world.denizen.spaces.ask_for_answer(asked.space_id, bo, await world.denizen.people.find("noor"))
    assert await told(world, asked) == expected


async def test_a_limit_is_named(world: World):
    _, asked = await ask(world, call("read_messages"), "", cycle={"max_steps": 1})
    assert await told(world, asked) == (
        "acted",
        [],
        "Bo reached its limit of steps before it had answered. Ask again.",
    )


async def test_a_question_instead_of_an_answer_needs_no_note(world: World):
    confirm = ClientTool(name="confirm", description="Ask.", parameters={"type": "object"}, mode="async")
    _, asked = await ask(world, call("confirm"), "Asked Noor.", tools=[confirm])
    assert await told(world, asked) == ("acted", [], "")


def _park(tx: Tx, agent_id: AgentId) -> None:
    parking.park(tx, agent_id, "key", provider="OpenAI")


async def test_a_parked_agent_says_at_once_what_is_to_be_mended(world: World):
    """It was `working` for as long as anybody waited."""
    bo, asked = await ask(world, run=False)
    assert (await told(world, asked))[0] == "working"
    await world.denizen.db.write(_park, bo.id)
    note = "OpenAI rejected the API key of Bo. Check it under Administration › Keys; Bo then answers by itself."
    outcome, said, told_why = await told(world, asked)
    assert (outcome, said, told_why.partition(" Next try")[0]) == ("parked", [], note)
    assert (await answer(world, asked)).over
    await world.denizen.db.write(parking.unpark, bo.id)
    assert (await told(world, asked))[0] == "working"


def _give_up(tx: Tx, asked: AwaitedMessage) -> None:
    """What happens to an event that failed too often, and what its space is told."""
    statuses.show(tx, asked.agent_id, asked.space_id, "gave_up", message_id=asked.message_id, count=5)


async def test_a_message_that_was_set_aside_says_why(world: World):
    bo, asked = await ask(world, *[RuntimeError("broken")] * delivery.DEAD_AFTER, run=False)
    for _ in range(delivery.DEAD_AFTER):
        await world.run_after(120)
    assert [each.state for each in await world.waiting(bo)] == ["dead"]
    await world.denizen.db.write(statuses.clear, bo.id, statuses.CAUSES)
    assert await told(world, asked) == (
        "failed",
        [],
        "The agent has failed too often at this message. It is kept in its inbox.",
    )
    await world.denizen.db.write(_give_up, asked)
    assert await told(world, asked) == (
        "failed",
        [],
        "Bo tried 5 times to answer this and failed. It has set the message aside and goes on with the rest.",
    )


async def test_a_deleted_agent_says_so(world: World):
    bo, asked = await ask(world, run=False)
    await world.denizen.agents.delete(bo)
    assert await told(world, asked) == ("failed", [], "Bo was deleted and will not answer. Ask somebody else.")


async def ask_in_hall(world: World, *agents: Agent) -> AwaitedMessage:
    """Noor asks the first of these agents in a space of theirs, in which one agent answers."""
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, *agents)
    await world.denizen.spaces.set_floor(hall, "one")

    def write(tx: Tx) -> AwaitedMessage:
        return _ask(tx, noor, agents[0], hall.id)

    return await world.denizen.db.write(write)


async def test_when_the_floor_passes_to_another_agent_its_answer_is_given(world: World):
    """The caller was told only that the first one did not reply."""
    bo, cy = await world.agent("Bo", skip("not mine")), await world.agent("Cy", reply("I am."), "Answered.")
    asked = await ask_in_hall(world, bo, cy)
    await world.run()
    found = await answer(world, asked)
    assert await told(world, asked) == ("acted", ["I am."], "")
    assert found.agent_id == cy.id
    spent = await world.denizen.db.read(chatting.with_costs, found)
    assert spent.spent.output_tokens > 0


async def test_when_nobody_answers_the_sentence_is_that_of_the_last_one(world: World):
    bo, cy = await world.agent("Bo", skip("not mine")), await world.agent("Cy", skip("nor mine"))
    asked = await ask_in_hall(world, bo, cy)
    await world.run()
    assert await told(world, asked) == ("acted", [], "Cy read this and did not reply.")


async def test_while_the_next_agent_has_not_answered_the_caller_goes_on_waiting(world: World):
    bo, cy = await world.agent("Bo"), await world.agent("Cy", reply("I am."), "Answered.")
    asked = await ask_in_hall(world, bo, cy)
    await world.denizen.agents.suspend(bo)
    assert (await told(world, asked))[0] == "working"
    await world.run()
    assert await told(world, asked) == ("acted", ["I am."], "")


async def test_an_agent_that_cannot_answer_is_told_of_if_nobody_else_can(world: World):
    bo, cy = await world.agent("Bo"), await world.agent("Cy")
    for each in (bo, cy):
        await world.denizen.agents.suspend(each)
    asked = await ask_in_hall(world, bo, cy)
    outcome, _, note = await told(world, asked)
    assert (outcome, note.partition(".")[0]) == ("suspended", "Bo is suspended")
