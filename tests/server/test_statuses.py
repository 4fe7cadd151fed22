"""Space statuses over HTTP: whoever waits in a space reads there, and hears in its streams, why there is no answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from denizen import forever, reply, skip
from denizen.access import roles
from denizen.agents.registry import Agent
from denizen.client import Client, SpaceStatuses
from denizen.errors import ModelKeyRejected
from denizen.inbox import parking
from denizen.models.scripted import scripted
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from tests.hesitation import Hesitation
from tests.server.conftest import House
from tests.world import World

KEY_REJECTED = "OpenAI rejected the API key of Bo. Check it under Administration › Keys; Bo then answers by itself."


async def noor_and_bo(world: World, *turns: Any) -> tuple[Entity, Agent, Space]:
    noor, bo = await world.person("Noor"), await world.agent("Bo", *turns)
    return noor, bo, await world.space("Noor and Bo", noor, bo)


async def reject_key(world: World, agent: Agent) -> None:
    def park(tx: Tx) -> None:
        parking.park(tx, agent.id, "key", provider="OpenAI")

    await world.denizen.db.write(park)


async def statuses_of(house: House, who: Entity, space: Space) -> list[dict[str, Any]]:
    answer = await house.call("GET", f"/api/spaces/{space.id}", who)
    assert answer.status_code == 200, answer.text
    listed = (await house.call("GET", "/api/spaces", who)).json()["spaces"]
    [same] = [each["statuses"] for each in listed if each["id"] == space.id]
    assert same == answer.json()["statuses"]
    return same


async def test_a_space_shows_why_there_is_no_answer(house: House) -> None:
    noor, bo, two = await noor_and_bo(house.world)
    assert await statuses_of(house, noor, two) == []
    message = await house.say(noor, "Hello?", two)
    await reject_key(house.world, bo)
    [status] = await statuses_of(house, noor, two)
    assert status.pop("created_at") < status.pop("retry_at")
    assert status == {
        "agent_id": bo.id,
        "name": "Bo",
        "cause": "key",
        "text": KEY_REJECTED,
        "actions": ["try_again", "settings"],
        "message_id": message["id"],
        "behind": None,
        "round_id": None,
    }


async def test_only_members_see_the_statuses_of_a_space(house: House) -> None:
    noor, bo, two = await noor_and_bo(house.world)
    sam = await house.world.person("Sam")
    other = await house.world.space("Sam and Bo", sam, bo)
    await house.say(noor, "Hello?", two)
    await reject_key(house.world, bo)
    assert (await house.call("GET", f"/api/spaces/{two.id}", sam)).status_code == 404
    assert await statuses_of(house, sam, other) == []
    async with house.listen(sam, "/api/stream") as stream:
        await house.say(sam, "And me?", other)
        [told] = [each for each in await stream.until("space.statuses") if each.name == "space.statuses"]
        assert (told.data["space"], len(told.data["statuses"])) == (other.id, 1)


async def test_streams_tell_what_a_space_shows_from_the_beginning_and_when_it_changes(house: House) -> None:
    """The whole list each time, and only when it is another."""
    noor, bo, two = await noor_and_bo(house.world)
    await house.say(noor, "Hello?", two)
    async with house.stream(noor, two) as space, house.listen(noor, "/api/stream") as person:
        await reject_key(house.world, bo)
        for stream in (space, person):
            told = (await stream.until("space.statuses"))[-1].data
            assert [each["text"] for each in told["statuses"]] == [KEY_REJECTED]
        # Whoever comes later is told as well.
        async with house.stream(noor, two) as late, house.listen(noor, "/api/stream") as late_person:
            for stream in (late, late_person):
                assert (await stream.until("space.statuses"))[-1].data == told
        await house.world.denizen.db.write(parking.unpark, bo.id)
        for stream in (space, person):
            assert (await stream.until("space.statuses"))[-1].data == {
                "type": "space.statuses",
                "space": two.id,
                "statuses": [],
            }
            assert [each.name for each in stream.seen].count("space.statuses") == 2


async def test_who_waits_behind_others_is_told_how_many(house: House) -> None:
    """Bo is at work for Noor; Sam, in another space, sees that until Bo comes to it."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hesitation = Hesitation()
    counting = reply("One two three four five six")
    model = scripted(counting, "Told Noor.", reply("Hi Sam."), "Told Sam.", pause=hesitation)
    bo = await world.agent("Bo", model=model)
    of_noor, of_sam = await world.space("Noor and Bo", noor, bo), await world.space("Sam and Bo", sam, bo)

    async with asyncio.TaskGroup() as tasks, house.stream(noor, of_noor) as writing:
        await house.say(noor, "Count", of_noor)
        tasks.create_task(world.run())
        await writing.until("stream.delta")
        async with house.stream(sam, of_sam) as space, house.listen(sam, "/api/stream") as person:
            message = await house.say(sam, "Hello", of_sam)
            for stream in (space, person):
                [status] = (await stream.until("space.statuses"))[-1].data["statuses"]
                assert (status["cause"], status["behind"], status["message_id"], status["actions"]) == (
                    "queued",
                    1,
                    message["id"],
                    [],
                )
                assert status["text"] == "Bo is busy; 1 message waits before yours."
            assert await statuses_of(house, sam, of_sam) == [status]
            assert await statuses_of(house, noor, of_noor) == []
            hesitation.may_go_on.set()
            for stream in (space, person):
                # The status may go before the answer is told, or after it.
                told = [each for each in await stream.until("message", text="Hi Sam.") if each.name == "space.statuses"]
                assert (told or await stream.until("space.statuses"))[-1].data["statuses"] == []
    assert await world.transcript(of_sam) == ["Sam: Hello", "Bo: Hi Sam."]


async def test_the_client_knows_statuses(house: House) -> None:
    noor, bo, two = await noor_and_bo(house.world)
    await house.say(noor, "Hello?", two)
    await reject_key(house.world, bo)
    async with Client(house.address, await house.token(noor)) as client:
        [status] = (await client.space(two.id)).statuses
        assert (status.agent_id, status.cause, status.text) == (bo.id, "key", KEY_REJECTED)
        for stream in (client.stream(two.id, after=0), client.stream_everything()):
            async with aclosing(stream) as events:
                told = await anext(event async for event in events if isinstance(event, SpaceStatuses))
            assert told == SpaceStatuses(space=two.id, statuses=[status])


async def test_a_member_has_an_agent_try_again_where_they_wait(house: House) -> None:
    """In a space that they are in; everywhere is for admins. The agent thinks again, and the status goes."""
    world = house.world
    noor, bo, two = await noor_and_bo(world, reply("Here."), "Answered.")
    sam = await world.person("Sam")
    await world.denizen.db.write(roles.set_role, sam.id, "member")
    await world.run()  # a process that starts tries all parked agents again
    await house.say(noor, "Hello?", two)
    await reject_key(world, bo)
    await world.run()
    assert await world.transcript(two) == ["Noor: Hello?"]
    path = f"/api/agents/{bo.id}/try-again"
    assert (await house.call("POST", path, sam, json={"space": two.id})).status_code == 404
    assert (await house.call("POST", path, sam, json={})).json()["code"] == "not_allowed"
    elsewhere = await world.space("Elsewhere", sam)
    assert (await house.call("POST", path, sam, json={"space": elsewhere.id})).json()["code"] == "invalid_input"

    await world.denizen.spaces.join(two, sam)
    tried = await house.call("POST", path, sam, json={"space": two.id})
    assert (tried.status_code, tried.json()["handle"]) == (200, "bo")
    await world.run()
    assert await world.transcript(two) == ["Noor: Hello?", "Bo: Here."]
    assert await statuses_of(house, noor, two) == []
    assert (await house.call("POST", path, noor, json={})).status_code == 200


async def test_who_was_not_answered_asks_for_an_answer(house: House) -> None:
    world = house.world
    noor, bo, two = await noor_and_bo(world, skip("Nothing to say."), reply("Sorry. Here."), "Answered.")
    await house.say(noor, "Hello?", two)
    await world.run()
    [status] = await statuses_of(house, noor, two)
    assert (status["cause"], status["text"], status["actions"]) == (
        "no_reply",
        "Bo read this and did not reply.",
        ["ask"],
    )
    path = f"/api/spaces/{two.id}/agents/{bo.id}/ask-for-answer"
    sam = await world.person("Sam")
    assert (await house.call("POST", path, sam)).status_code == 404
    assert (await house.call("POST", path, noor)).status_code == 204
    await world.run()
    assert await world.transcript(two) == ["Noor: Hello?", "Bo: Sorry. Here."]
    assert await statuses_of(house, noor, two) == []
    assert (await house.call("POST", path, noor)).json()["code"] == "invalid_input"


async def test_a_panel_in_which_nobody_can_answer_shows_why(house: House) -> None:
    """In the API and in both streams; the status goes when somebody answers after all."""
    model = forever(lambda *_: ModelKeyRejected("401"))
    house.world.denizen.models.register("m", model)
    noor = await house.world.person("Noor")
    panel = await house.world.denizen.panels.create("Board", [noor], advisors=["Seth", "Buber"], model="m")
    text = "The advisors could not answer: the provider rejected the API key. "
    text += "Check it under Administration › Keys, then try again."
    here = f"/api/spaces/{panel.id}/stream"
    async with house.listen(noor, "/api/stream") as person, house.listen(noor, here) as space:
        turn = await house.world.denizen.panels.ask(panel, noor, "Hello?")
        await house.world.run()
        for stream in (person, space):
            told = (await stream.until("space.statuses"))[-1].data
            assert (told["space"], [each["text"] for each in told["statuses"]]) == (
                panel.id,
                [text],
            )
        [status] = (await house.call("GET", f"/api/spaces/{panel.id}", noor)).json()["statuses"]
        assert status.pop("created_at")
        assert status == {
            "agent_id": None,
            "name": "Board",
            "cause": "key",
            "text": text,
            "actions": ["try_again", "settings"],
            "message_id": turn.message_id,
            "retry_at": None,
            "behind": None,
            "round_id": turn.id,
        }
        listed = (await house.call("GET", "/api/spaces", noor)).json()["spaces"]
        assert [len(each["statuses"]) for each in listed if each["id"] == panel.id] == [1]
        house.world.denizen.models.register("m", forever(lambda *_: "Hello."))
        retried = await house.call("POST", f"/api/panels/{panel.id}/rounds/{status['round_id']}/retry", noor, json={})
        assert retried.status_code == 200, retried.text
        await house.world.run()
        for stream in (person, space):
            assert (await stream.until("space.statuses"))[-1].data["statuses"] == []
