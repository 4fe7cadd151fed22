"""Space statuses: a person who waits for an agent that cannot answer is told why, at once."""

from __future__ import annotations

from typing import Any

import pytest

from denizen import reply, skip
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.inbox import parking, statuses
from denizen.inbox.statuses import CAUSES, Cause, SpaceStatus
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from tests.world import World


async def noor_and_bo(world: World, *turns: Any) -> tuple[Entity, Agent, Space]:
    noor, bo = await world.person("Noor"), await world.agent("Bo", *turns)
    return noor, bo, await world.space("Noor and Bo", noor, bo)


async def shown(world: World, space: Space) -> list[str]:
    return [each.text for each in await world.denizen.db.read(statuses.of_space, space.id)]


async def waiting_flags(world: World, agent: Agent) -> list[tuple[str, bool]]:
    return [(event.text, event.waits) for event in await world.denizen.minds.inbox(agent)]


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_reads_as_sentences_with_and_without_details(cause: Cause) -> None:
    """No placeholder is left, whatever is known of the cause."""
    names: dict[str, Any] = {
        "provider": "OpenAI",
        "model": "gpt-x",
        "reason": "no credit.",
        "count": 5,
        "limit": "steps",
    }
    for detail in ({}, names):
        text = SpaceStatus(Any, Any, "Bo", cause, detail).text  # pyright: ignore[reportArgumentType]
        assert text.endswith("."), text
        assert not set("{}") & set(text), text
        assert ".." not in text, text


@pytest.mark.parametrize(
    ("cause", "more"),
    [
        *[(cause, {}) for cause in CAUSES],
        ("key", {"missing": True}),
        *[("budget", {"scope": f"{whose}:{when}"}) for whose in ("agent", "organization") for when in ("day", "total")],
        ("budget", {"scope": "server:day"}),
    ],
)
def test_whoever_is_told_elsewhere_can_do_what_they_read(cause: Cause, more: dict[str, Any]) -> None:
    """A guest cannot open the settings, and does not learn what the provider said, nor who is here."""
    detail = {"provider": "OpenAI", "model": "gpt-x", "reason": "no credit", "count": 5, "limit": "steps", "by": "Noor"}
    detail |= more
    for known in (detail, more):
        text = SpaceStatus(Any, Any, "Bo", cause, known).text_elsewhere  # pyright: ignore[reportArgumentType]
        assert text.endswith("."), text
        assert not set("{}") & set(text), text
        for word in ("Administration", "settings of", "OpenAI", "gpt-x", "no credit", "API key", "Noor"):
            assert word not in text


def test_a_status_names_what_to_do() -> None:
    status = SpaceStatus(Any, Any, "Bo", "key", {"provider": "OpenAI"})  # pyright: ignore[reportArgumentType]
    assert status.text == (
        "OpenAI rejected the API key of Bo. Check it under Administration › Keys; Bo then answers by itself."
    )
    assert status.actions == ("try_again", "settings")


async def test_a_person_waits_for_whom_they_address(world: World) -> None:
    """In a space of two, by a mention, or by asking; nobody waits for an agent that a message does not address."""
    noor, bo, two = await noor_and_bo(world)
    cy = await world.agent("Cy")
    hall = await world.space("Hall", noor, bo, cy)
    await world.say(noor, "Hello", two)
    await world.say(noor, "Hello all", hall)
    await world.say(noor, "@bo, please", hall)
    await world.say(cy, "@bo, from an agent", hall)
    assert await waiting_flags(world, bo) == [
        ("Hello", True),
        ("Hello all", False),
        ("@bo, please", True),
        ("@bo, from an agent", False),
    ]
    assert await waiting_flags(world, cy) == [("Hello all", False), ("@bo, please", False)]


async def test_a_message_to_an_agent_that_cannot_answer_is_told_why_at_once(world: World) -> None:
    """Suspended, deleted or parked: the status stands when the post returns, once, for the newest message."""
    noor, bo, two = await noor_and_bo(world)
    await world.denizen.agents.suspend(bo)
    await world.say(noor, "Hello?", two)
    last = await world.say(noor, "Are you there?", two)
    [status] = await world.denizen.db.read(statuses.of_space, two.id)
    assert (status.cause, status.message_id, status.actions) == ("suspended", last.id, ("resume",))

    cy = await world.agent("Cy")
    of_cy = await world.space("Noor and Cy", noor, cy)
    await world.denizen.agents.delete(cy)
    last = await world.say(noor, "Hello?", of_cy)
    assert await shown(world, of_cy) == ["Cy was deleted and will not answer. Ask somebody else."]
    [status] = await world.denizen.db.read(statuses.of_space, of_cy.id)
    assert (status.cause, status.message_id) == ("deleted", last.id)


async def test_a_parked_agent_tells_every_space_in_which_somebody_waits(world: World) -> None:
    noor, bo, two = await noor_and_bo(world)
    sam = await world.person("Sam")
    cy = await world.agent("Cy")
    hall = await world.space("Hall", noor, sam, bo, cy)
    other = await world.space("Other", sam, bo, cy)
    await world.say(noor, "Hello", two)
    await world.say(sam, "@bo?", hall)
    await world.say(sam, "Nobody in particular", other)

    def park(tx: Tx) -> None:
        parking.park(tx, bo.id, "key", provider="OpenAI")

    await world.denizen.db.write(park)
    told = "OpenAI rejected the API key of Bo. Check it under Administration › Keys; Bo then answers by itself."
    assert [await shown(world, each) for each in (two, hall, other)] == [[told], [told], []]

    # Whoever writes later is told by their own message.
    await world.say(sam, "@bo, here as well", other)
    assert await shown(world, other) == [told]
    await world.denizen.db.write(parking.unpark, bo.id)
    assert [await shown(world, each) for each in (two, hall, other)] == [[], [], []]


async def test_a_parked_agent_waits_longer_after_each_try(world: World) -> None:
    _, bo, _ = await noor_and_bo(world)

    def park(tx: Tx) -> float:
        return (parking.park(tx, bo.id, "model", model="gpt-x").until - tx.now) / 1_000_000

    waits = [await world.denizen.db.write(park) for _ in range(6)]
    assert waits == [600, 1200, 2400, 3600, 3600, 3600]


async def test_what_an_agent_says_ends_its_status_there(world: World) -> None:
    noor, bo, two = await noor_and_bo(world, reply("Here."), "Answered.")
    await world.denizen.agents.suspend(bo)
    await world.say(noor, "Hello?", two)
    assert len(await shown(world, two)) == 1
    await world.denizen.agents.resume(bo)
    await world.run()
    assert await world.transcript(two) == ["Noor: Hello?", "Bo: Here."]
    assert await shown(world, two) == []


async def test_words_of_an_agent_end_its_own_status_and_no_other(world: World) -> None:
    noor, bo, _ = await noor_and_bo(world)
    cy = await world.agent("Cy")
    hall = await world.space("Hall", noor, bo, cy)
    await world.denizen.db.write(statuses.show, bo.id, hall.id, "failing")
    await world.say(bo, "Here.", hall)
    assert await shown(world, hall) == []
    await world.denizen.db.write(statuses.show, cy.id, hall.id, "failing")
    await world.say(bo, "Still here.", hall)
    assert [each.agent_id for each in await world.denizen.db.read(statuses.of_space, hall.id)] == [cy.id]


async def test_a_status_for_a_deleted_message_moves_to_the_one_before_it(small_world: World) -> None:
    """That of this agent only; without another message that waits it is cleared."""
    noor, bo, cy = await small_world.person("Noor"), await small_world.agent("Bo"), await small_world.agent("Cy")
    hall = await small_world.space("Hall", noor, bo, cy)
    for agent in (bo, cy):
        await small_world.denizen.agents.suspend(agent)
    first, of_cy, last = [await small_world.say(noor, text, hall) for text in ("@bo?", "@cy?", "@bo!")]

    async def about() -> dict[str, str | None]:
        found = await small_world.denizen.db.read(statuses.of_space, hall.id)
        return {each.agent_id: each.message_id for each in found}

    assert await about() == {bo.id: last.id, cy.id: of_cy.id}
    await small_world.denizen.spaces.delete_message(last.id, by=noor)
    assert await about() == {bo.id: first.id, cy.id: of_cy.id}
    await small_world.denizen.spaces.delete_message(first.id, by=noor)
    assert await about() == {cy.id: of_cy.id}


async def test_an_agent_that_leaves_a_space_shows_no_status_there(world: World) -> None:
    """Neither what was shown before nor what happens to it later: nobody in that space waits for it any more."""
    noor, bo, two = await noor_and_bo(world)
    cy = await world.agent("Cy")
    hall = await world.space("Hall", noor, bo, cy)
    await world.say(noor, "@bo, hello", hall)
    await world.denizen.agents.suspend(bo)
    await world.say(noor, "Hello?", two)
    assert [len(await shown(world, each)) for each in (hall, two)] == [1, 1]

    await world.denizen.spaces.leave(hall, bo)
    assert [len(await shown(world, each)) for each in (hall, two)] == [0, 1]
    await world.denizen.agents.resume(bo)

    def park(tx: Tx) -> None:
        parking.park(tx, bo.id, "key", provider="OpenAI")

    await world.denizen.db.write(park)
    assert [len(await shown(world, each)) for each in (hall, two)] == [0, 1]
    assert await check_database(world.denizen.db) == []


async def test_a_removed_agent_passes_on_what_it_was_to_answer(world: World) -> None:
    """With the floor `one` the next agent that can answers; the person is not left waiting."""
    noor, bo, cy = await world.person("Noor"), await world.agent("Bo"), await world.agent("Cy", reply("Hi."), "Done.")
    hall = await world.space("Hall", noor, bo, cy)
    await world.denizen.spaces.set_floor(hall, "one")
    await world.say(noor, "Hello", hall)
    assert await waiting_flags(world, bo) == [("Hello", True)]

    await world.denizen.spaces.leave(hall, bo)
    assert await waiting_flags(world, bo) == [("Hello", False)]
    await world.denizen.agents.suspend(bo)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hello", "Cy: Hi."]
    assert await check_database(world.denizen.db) == []


async def test_an_agent_removed_while_it_thinks_shows_no_status(world: World) -> None:
    """It ends its cycle without an answer, in a space where it is not a member any more."""
    noor = await world.person("Noor")

    async def be_removed(_messages: Any, _info: Any) -> Any:
        await world.denizen.spaces.leave(hall, bo)
        return skip("I was removed")

    bo, cy = await world.agent("Bo", be_removed), await world.agent("Cy")
    hall = await world.space("Hall", noor, bo, cy)
    await world.denizen.spaces.set_floor(hall, "all")
    await world.denizen.spaces.set_attention(hall, cy, "none")
    await world.say(noor, "@bo, are you there?", hall)
    await world.run()
    assert await shown(world, hall) == []
    assert await check_database(world.denizen.db) == []
