"""Scenario 6: an agent asks a person before it acts, waits without holding anything, and goes on where it was."""

from __future__ import annotations

from denizen import call, reply
from denizen.tools.settings import ClientTool
from tests.world import World

CONFIRM = ClientTool(
    name="confirm_action",
    description="Ask the people in the space whether you may do something.",
    parameters={
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
        "additionalProperties": False,
    },
)


async def test_an_agent_asks_pauses_and_goes_on_with_the_answer(world: World):
    """Nothing else is asked of the model meanwhile, and a restart in between changes nothing."""
    ada = await world.agent(
        "Ada",
        [reply("One moment."), call("confirm_action", question="Deploy v2.1?")],
        reply("Deployed."),
        "Deployed v2.1 after Noor confirmed.",
        tools=[CONFIRM],
    )
    noor = await world.person("Noor")
    ops = await world.space("Ops", noor, ada)
    await world.say(noor, "Deploy it", ops)
    await world.run()

    assert await world.transcript(ops) == ["Noor: Deploy it", "Ada: One moment."]
    assert await world.denizen.agents.status(ada) == "paused"
    (asked,) = await world.denizen.calls.waiting(noor)
    assert (asked.tool, asked.arguments, asked.space_id) == ("confirm_action", '{"question":"Deploy v2.1?"}', ops.id)
    assert await world.cycles(ada) == []

    await world.restart(ada=world.model(ada))
    await world.run()
    assert await world.denizen.agents.status(ada) == "paused"

    answered = await world.denizen.calls.answer(asked, {"confirmed": True}, by=noor)
    assert (answered.state, answered.settled_by) == ("answered", noor.id)
    await world.run()

    assert await world.transcript(ops) == ["Noor: Deploy it", "Ada: One moment.", "Ada: Deployed."]
    assert await world.denizen.agents.status(ada) == "sleeping"
    assert (await world.history(ada))[1:] == [
        'response: send_message {"text":"One moment."}\nconfirm_action {"question":"Deploy v2.1?"}',
        'results: send_message → {"success":true,"messageId":"<Ops 2>"}\nconfirm_action → {"confirmed":true}',
        'response: send_message {"text":"Deployed."}',
        'results: send_message → {"success":true,"messageId":"<Ops 3>"}',
        "response: Deployed v2.1 after Noor confirmed.",
    ]
    assert await world.endings(ada) == [(1, "acted", "answered", "Deployed v2.1 after Noor confirmed.")]
    assert len(world.model(ada).requests) == 3
