"""A fact from long ago: out of the window for hundreds of cycles, and still known; forgotten, it is nowhere."""

from __future__ import annotations

import re

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse

from denizen import call, forever, reply
from denizen.models.scripted import Info, Turn
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.properties.house import everything
from tests.world import World, as_text

FACT = "My grandmother left me a violin, and it lies in the cellar behind the blue paint."
CYCLES = 220
SMALL = {"max_tokens": Toolbox(PREBUILT).tokens + 4_000}
QUESTION = "Do you remember what she left me?"


def deciding(messages: list[ModelMessage], _info: Info) -> Turn:
    """Listens; and when asked to remember, looks it up and repeats what it finds."""
    inbox = max(at for at, each in enumerate(messages) if as_text(each).startswith("[INBOX - "))
    steps = sum(isinstance(each, ModelResponse) for each in messages[inbox:])
    if "remember" not in as_text(messages[inbox]):
        return reply("I see.") if steps == 0 else "Listened to Noor."
    if steps == 0:
        return call("recall", query="grandmother violin")
    if steps == 1:
        said = re.search(r'Noor: "(.*violin.*)"', as_text(messages[-1]))
        return reply(f"You said: {said[1]}" if said else "I do not know.")
    return "Answered Noor."


def shown(request: list[ModelMessage]) -> str:
    return "\n".join(as_text(each) for each in request)


@pytest.mark.timeout(900)
async def test_what_was_said_hundreds_of_cycles_ago_is_known_until_it_is_forgotten(world: World):
    ada = await world.agent("Ada", model=forever(deciding), window=SMALL)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    fact = await world.say(noor, FACT, kitchen)
    async with world.denizen.living():
        await world.run()
        for number in range(CYCLES):
            await world.say(noor, f"Today I saw bird number {number}, and it sang for a while.", kitchen)
            await world.run()
    model = world.model(ada)
    assert "violin" in shown(model.requests[0])
    assert (await world.cycles(ada))[-1].number == CYCLES + 1

    async def asked() -> tuple[str, str, str]:
        """What the model is shown when it is asked, what it recalls, and what it answers; in a new process."""
        await world.restart()
        model.requests.clear()
        await world.say(noor, QUESTION, kitchen)
        await world.run()
        before, recalled, _ = model.requests
        return shown(before), as_text(recalled[-1]), (await world.transcript(kitchen))[-1]

    before, recalled, answer = await asked()
    assert "[COMPACTED MEMORY — cycles 1–" in before
    assert "violin" not in before
    assert "cellar" not in before
    assert f'09:00 Noor: "{FACT}"' in recalled.splitlines()
    assert answer == f"Ada: You said: {FACT}"

    await world.denizen.spaces.forget_message(fact.id, by=noor)

    before, recalled, answer = await asked()
    assert "cellar" not in before
    assert "You said: [forgotten]" in before
    assert recalled == "recall → Nothing of that was found in your life."
    assert answer == "Ada: I do not know."
    stored = str(await world.denizen.db.read(everything))
    assert [word for word in ("cellar", "blue paint", "left me a violin") if word in stored] == []
