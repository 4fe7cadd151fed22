"""Asks first: nothing is announced before a person has agreed."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply
from denizen.models.scripted import Info, Turn
from tests.examples.playing import playing, space_id_in
from tests.world import as_text

SENTENCE = "We close at four today."


def ask_then_act(messages: list[ModelMessage], _: Info) -> Turn:
    """What the instructions ask for."""
    last = as_text(messages[-1])
    if last.startswith("[INBOX"):
        return call("confirm_action", action=f"Post in Announcements: {SENTENCE}")
    if last.startswith("confirm_action →") and "true" in last:
        return [call("enter_space", space_id=space_id_in(messages, "Announcements")), reply(SENTENCE)]
    if last.startswith("confirm_action →"):
        return reply("I have not posted it. What shall I change?")
    return "Done with the announcement."


@pytest.mark.parametrize("agreed", [True, False])
async def test_max_asks_waits_and_does_what_was_agreed(ready_url: str, agreed: bool) -> None:
    """While it waits it is paused, and nothing has been said."""
    async with playing("asks-first", ready_url, forever(ask_then_act)) as house:
        await house.say("Front office", "Tell everyone that we close at four today.")
        max_ = await house.agent("max")
        assert await house.denizen.agents.status(max_) == "paused"
        assert await house.transcript("Announcements") == []
        (asked,) = await house.denizen.calls.waiting(house.noor)
        assert (asked.tool, asked.arguments) == (
            "confirm_action",
            f'{{"action":"Post in Announcements: {SENTENCE}"}}',
        )
        await house.denizen.calls.answer(asked, {"confirmed": agreed}, by=house.noor)
        await house.denizen.run_until_idle()

        assert await house.denizen.agents.status(max_) == "sleeping"
        assert await house.transcript("Announcements") == ([f"Max: {SENTENCE}"] if agreed else [])
        # Whoever has agreed waits for what comes of it: what the model writes as its last words is sent to them.
        said = "Done with the announcement." if agreed else "I have not posted it. What shall I change?"
        assert await house.transcript("Front office") == [
            "Noor: Tell everyone that we close at four today.",
            f"Max: {said}",
        ]
