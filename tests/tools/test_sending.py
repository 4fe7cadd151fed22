"""Sending messages: what an agent has just said is not sent again."""

from __future__ import annotations

from denizen import call, reply, scripted
from tests.world import World


async def test_what_was_just_said_is_not_sent_again(small_world: World) -> None:
    """Also with another message of its own between; the agent is told why."""
    noor = await small_world.person("Noor")
    ada = await small_world.agent("Ada", reply("Yes."), reply("Sure."), reply("Yes."), "Answered.")
    kitchen = await small_world.space("Kitchen", noor, ada)
    await small_world.say(noor, "Will it rain?", kitchen)
    await small_world.run()
    assert await small_world.transcript(kitchen) == ["Noor: Will it rain?", "Ada: Yes.", "Ada: Sure."]
    assert "You have just said this here, and nobody has spoken since" in "\n".join(await small_world.history(ada))


async def test_in_another_cycle_the_same_may_be_said_again(small_world: World) -> None:
    """Whatever made the agent speak again, its words are meant anew, though nobody has spoken there since."""
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    kitchen, study = await small_world.space("Kitchen", noor, ada), await small_world.space("Study", noor, ada)
    into_kitchen = [call("send_message", space_id=kitchen.id, text=text) for text in ("The oven is on.", "Take care.")]
    await small_world.restart(ada=scripted(reply("Take care."), "Answered.", *into_kitchen, "Warned."))
    await small_world.say(noor, "I am off.", kitchen)
    await small_world.run()
    await small_world.say(noor, "Is the oven on?", study)
    await small_world.run()
    assert await small_world.transcript(kitchen) == [
        "Noor: I am off.",
        "Ada: Take care.",
        "Ada: The oven is on.",
        "Ada: Take care.",
    ]
