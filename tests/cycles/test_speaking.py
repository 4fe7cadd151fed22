"""What is shown late because it might be private: how often it is looked at, and how much of it goes on."""

from __future__ import annotations

import json

from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, ToolCallPart, ToolCallPartDelta

from denizen.consciousness.lease import Lease
from denizen.cycles.speaking import LOOK_EVERY, LiveResponse, LiveTexts
from denizen.ids import AgentId, SpaceId
from denizen.tools.privacy_guard import Caution
from tests.world import World, listening

WORD = "heron "


async def test_what_waits_is_looked_at_whenever_enough_has_been_added(small_world: World) -> None:
    """Each look costs a read of the database: not at every letter, and not once only."""
    world = small_world
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    lease, caution = Lease(AgentId("ada"), "one", 1), Caution(frozenset(), words=3)
    async with listening(world, hall) as heard:
        speaker = LiveResponse(world.denizen.bus, lease, SpaceId(hall.id), caution=caution)

        def write(text: str) -> None:
            delta = ToolCallPartDelta(args_delta=json.dumps(text)[1:-1])
            speaker.hear(PartDeltaEvent(index=0, delta=delta))

        speaker.hear(PartStartEvent(index=0, part=ToolCallPart("send_message", '{"text":"')))
        write(WORD * (LOOK_EVERY // len(WORD) - 1))
        assert speaker.doubts() == []
        write(WORD)
        (doubt,) = speaker.doubts()
        assert doubt.text == WORD * 10
        assert speaker.doubts() == [], "it is being looked at"
        speaker.settle(doubt, free=True)
        write(WORD * 9)
        assert speaker.doubts() == []
        write(WORD)
        (doubt,) = speaker.doubts()
        speaker.settle(doubt, free=True)
        told = "".join(frame["text"] for frame in await heard() if frame["type"] == "stream.delta")
    # All but the last three words of what was looked at.
    assert told == WORD * 17


async def test_only_what_is_being_said_in_a_space_is_said_again_there(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor), await world.space("Attic", noor)
    voices, speaker = LiveTexts(), LiveResponse(world.denizen.bus, Lease(AgentId("ada"), "one", 1), SpaceId(hall.id))
    with voices.speaking(speaker):
        assert not voices.say_again({hall.id})
        speaker.hear(PartStartEvent(index=0, part=ToolCallPart("send_message", '{"text":"Hello')))
        assert not voices.say_again({attic.id})
        assert voices.say_again({hall.id})
    assert not voices.say_again({hall.id})
