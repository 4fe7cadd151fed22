"""The example of a busy space: three bots hear a message, one answers, two leave no trace."""

from __future__ import annotations

import asyncio

from pydantic_ai.messages import ModelMessage

from denizen import call, reply, scripted, skip
from denizen.models.scripted import Info, Turn
from tests.world import World


async def test_of_three_bots_one_answers_and_two_skip_without_a_trace(world: World):
    front = await world.agent("FrontendBot")
    back = await world.agent("BackendBot", skip("CSS question addressed to FrontendBot"), skip("Not for me"))
    ops = await world.agent("DevOpsBot", skip("Frontend CSS issue, not ops-related"), skip())
    husam, ahmad = await world.person("Husam"), await world.person("Ahmad")
    engineering = await world.space("Engineering", husam, ahmad, front, back, ops)

    async def once_the_others_have_skipped(_messages: list[ModelMessage], _info: Info) -> Turn:
        """Or they may hear of both messages at once, and skip them together."""
        async with asyncio.timeout(60):
            while not all([await world.ledger(bot) for bot in (back, ops)]):
                pass
        return call("enter_space", space_id=engineering.id)

    await world.restart(
        frontendbot=scripted(
            once_the_others_have_skipped,
            reply("Sure, checking now..."),
            "Checking the login page for Ahmad.",
        )
    )

    await world.say(ahmad, "Hey FrontendBot, can you check the CSS on the login page?", engineering)
    await world.run()

    assert await world.transcript(engineering) == [
        "Ahmad: Hey FrontendBot, can you check the CSS on the login page?",
        "FrontendBot: Sure, checking now...",
    ]
    assert await world.history(front) == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Engineering" | spaceId: <Engineering>] Ahmad (human): '
            '"Hey FrontendBot, can you check the CSS on the login page?"\n'
            "   → received just now"
        ),
        'response: enter_space {"space_id":"<Engineering>"}',
        'results: enter_space → {"success":true,"spaceName":"Engineering"}',
        'response: send_message {"text":"Sure, checking now..."}',
        'results: send_message → {"success":true,"messageId":"<Engineering 2>"}',
        "response: Checking the login page for Ahmad.",
    ]
    for bot, reasons in [
        (back, ["CSS question addressed to FrontendBot", "Not for me"]),
        (ops, ["Frontend CSS issue, not ops-related", ""]),
    ]:
        assert await world.history(bot) == []
        assert await world.cycles(bot) == []
        assert await world.waiting(bot) == []
        assert await world.ledger(bot) == [("skip", reason) for reason in reasons]


async def test_after_a_skip_the_mind_is_exactly_as_it_was(world: World):
    """What was skipped is not remembered: the next request does not show it, and cycles are numbered on."""
    ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.", skip("for Bert"), reply("Yes?"), "Answered Noor.")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)

    for text in ("Hello, Ada", "Bert, your turn", "Ada?"):
        await world.say(noor, text, hall)
        await world.run()

    assert [each.split("\n")[0] for each in await world.history(ada)] == [
        "inbox: [INBOX - 1 new event]",
        'response: send_message {"text":"Hello."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
        "response: Greeted Noor.",
        "inbox: [INBOX - 1 new event]",
        'response: send_message {"text":"Yes?"}',
        'results: send_message → {"success":true,"messageId":"<Hall 5>"}',
        "response: Answered Noor.",
    ]
    assert [entry.seq for entry in await world.denizen.minds.log(ada)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [number for number, *_ in await world.endings(ada)] == [1, 2]
    assert not any("Bert, your turn" in line for line in (await world.prompts(ada))[-1])
