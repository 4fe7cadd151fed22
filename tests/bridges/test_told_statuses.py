"""Who is told elsewhere why an answer is missing, when, and how often. `status_suite` has what each adapter shows."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from sqlalchemy import select

from denizen import forever, reply, skip
from denizen.bridges import registry, told_statuses
from denizen.bridges.port import Later
from denizen.bridges.told_statuses import SETTLED_SECONDS
from denizen.errors import ContentRefused, LeaseLost, ModelRejected
from denizen.models.scripted import Info, Turn
from denizen.storage.database import Params, Statement, statement, values
from denizen.storage.schema import outbox
from denizen.storage.sqlite import SqliteTx
from tests.bridges.conformance import ROOM, build
from tests.bridges.in_process import Harbour
from tests.bridges.status_suite import SUSPENDED, line
from tests.world import World, as_text

_actions = statement(select(outbox.c.action))


async def test_only_rooms_from_which_somebody_waits_are_told(bay: World, harbour: Harbour) -> None:
    """Not those of the same space where nobody has asked, nor because of somebody who asks here."""
    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.bridges.connect(pier.bridge, pier.space, "mole")
    await bay.denizen.agents.suspend(ada)
    await pier.say("@ada when?")
    await pier.run_after(SETTLED_SECONDS)
    assert harbour.said == [f"{ROOM}: Noor: @ada when?", "mole: Noor: @ada when?"]
    harbour.said.clear()
    await harbour.write("mole", "Eve", "@ada when, please?")
    await harbour.write("mole", "Mia", "I wonder, too.")
    await pier.run()
    await pier.run_after(30)
    # At once: the agent has been in trouble for longer.
    assert harbour.said[-1] == f"mole: {SUSPENDED} (to mole-1)"
    assert [each for each in harbour.said if SUSPENDED in each] == harbour.said[-1:]


async def test_somebody_who_is_not_in_the_newest_question_is_told_too(bay: World, harbour: Harbour) -> None:
    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    await pier.say("@ada and where?")
    await pier.run_after(SETTLED_SECONDS)
    assert harbour.said[-1] == f"{line(SUSPENDED)} (to {ROOM}-1)"


async def test_a_message_that_the_status_names_is_found_without_a_look_at_all_that_wait(
    bay: World, harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent may be asked in thousands of rooms, each of a space of its own: such a look for each takes minutes."""
    ran: list[str] = []
    execute = SqliteTx._execute

    def noting(self: SqliteTx, statement: Statement, params: Mapping[str, Params]) -> sqlite3.Cursor:
        ran.append(statement.sqlite)
        return execute(self, statement, params)

    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    monkeypatch.setattr(SqliteTx, "_execute", noting)
    await pier.run_after(SETTLED_SECONDS)
    monkeypatch.undo()
    assert harbour.said == [f"{line(SUSPENDED)} (to {ROOM}-1)"]
    assert told_statuses._named.sqlite in ran
    assert told_statuses._held_up.sqlite not in ran


async def test_trouble_is_told_once_however_often_the_agent_tries_again(bay: World, harbour: Harbour) -> None:
    """Without the reason, which people here see. That it has given up is told as well."""
    ada = await bay.agent("Ada", *[ModelRejected("a secret reason")] * 40)
    pier = await build(bay, harbour, ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    for seconds in (0, 1, 4, 15, *[SETTLED_SECONDS] * 9):
        await pier.run_after(seconds)
    trouble = "Ada has trouble answering. Your message is kept, and Ada tries again by itself."
    gave_up = "Ada tried 5 times to answer this and failed. Write again, or ask an admin to have it tried again."
    assert harbour.said == [f"{line(each)} (to {ROOM}-1)" for each in (trouble, gave_up)]


async def test_a_question_that_was_read_and_not_answered_is_told(bay: World, harbour: Harbour) -> None:
    """The event is done by then: the status names the message."""
    ada = await bay.agent("Ada", "Nothing to say.", cycle={"silent_reply": "ignore"})
    pier = await build(bay, harbour, ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    await pier.run_after(SETTLED_SECONDS)
    said = "Ada read this and did not reply. Write again if you need an answer."
    assert harbour.said == [f"{line(said)} (to {ROOM}-1)"]


async def test_everybody_whom_a_cycle_left_without_an_answer_is_told(bay: World, harbour: Harbour) -> None:
    """The status names only the newest message."""
    ada = await bay.agent("Ada", "Nothing to say.", cycle={"silent_reply": "ignore"})
    pier = await build(bay, harbour, ada)
    await bay.denizen.bridges.connect(pier.bridge, pier.space, "mole")
    await pier.run()
    await harbour.write("mole", "Mia", "@ada where?")
    await harbour.write(ROOM, "Eve", "@ada when?")
    await harbour.write(ROOM, "Eve", "@ada please!")
    await pier.run()
    await pier.run_after(SETTLED_SECONDS)
    said = "Ada read this and did not reply. Write again if you need an answer."
    told = [each for each in harbour.said if said in each]
    assert sorted(told) == [f"mole: {said} (to mole-1)", f"{line(said)} (to {ROOM}-2)"]


def _refused(messages: list[ModelMessage], _info: Info) -> Turn:
    return ContentRefused("no") if "@ada" in as_text(messages[-1]) else skip()


REFUSED = "Ada could not process this message and goes on with the rest. Write it in other words, or ask an admin."


async def test_a_message_that_waits_is_told_only_of_what_holds_it_up(bay: World, harbour: Harbour) -> None:
    """Not of what became of somebody else's, whose status the space still shows."""
    ada = await bay.agent("Ada", model=forever(_refused))
    pier = await build(bay, harbour, ada)
    await bay.denizen.bridges.connect(pier.bridge, pier.space, "mole")
    await pier.run()
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    await pier.run_after(SETTLED_SECONDS)
    await bay.denizen.agents.suspend(ada)
    await harbour.write("mole", "Mia", "@ada where?")
    await pier.run()
    for _ in range(3):
        await pier.run_after(SETTLED_SECONDS)
    told = [each for each in harbour.said if ": Ada " in each]
    # Eve is not told that Ada is suspended: nobody tries her message again by itself.
    assert told == [f"{line(REFUSED)} (to {ROOM}-1)", f"mole: {SUSPENDED} (to mole-1)"]


async def test_each_message_that_is_set_aside_is_told(bay: World, harbour: Harbour) -> None:
    """Also where the space shows already that another one was, with the same cause."""
    pier = await build(bay, harbour, await bay.agent("Ada", model=forever(_refused)))
    for who in ("Eve", "Mia", "Zoe"):
        await harbour.write(ROOM, who, "@ada when?")
        await pier.run()
        for _ in range(3):
            await pier.run_after(SETTLED_SECONDS)
    assert harbour.said == [f"{line(REFUSED)} (to {ROOM}-{number})" for number in (1, 2, 3)]


async def test_messages_of_one_room_that_are_set_aside_together_are_each_told(bay: World, harbour: Harbour) -> None:
    """The space shows one status, of the newest: whoever wrote before has no answer either."""
    pier = await build(bay, harbour, await bay.agent("Ada", model=forever(_refused)))
    for who in ("Eve", "Mia", "Zoe"):
        await harbour.write(ROOM, who, "@ada when?")
    await pier.run()
    for _ in range(3):
        await pier.run_after(SETTLED_SECONDS)
    assert harbour.said == [f"{line(REFUSED)} (to {ROOM}-{number})" for number in (1, 2, 3)]


async def test_messages_of_several_rooms_that_are_set_aside_together_are_each_told(
    bay: World, harbour: Harbour
) -> None:
    """The status names only the newest."""
    pier = await build(bay, harbour, await bay.agent("Ada", model=forever(_refused)))
    await bay.denizen.bridges.connect(pier.bridge, pier.space, "mole")
    await pier.run()
    await harbour.write("mole", "Mia", "@ada where?")
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    for _ in range(3):
        await pier.run_after(SETTLED_SECONDS)
    told = [each for each in harbour.said if REFUSED in each]
    assert sorted(told) == [f"mole: {REFUSED} (to mole-1)", f"{line(REFUSED)} (to {ROOM}-1)"]


async def test_a_message_that_is_tried_again_before_it_was_told_is_not_told(bay: World, harbour: Harbour) -> None:
    ada = await bay.agent("Ada", model=forever(_refused))
    pier = await build(bay, harbour, ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    harbour.answers.append(Later("Come back later.", 40))
    await pier.run_after(SETTLED_SECONDS)
    assert await bay.denizen.db.read(lambda tx: values(tx, _actions)) == ["status"]
    await bay.denizen.agents.suspend(ada)
    await bay.denizen.agents.try_again(ada, pier.space)
    await pier.run_after(40)
    assert [each for each in harbour.said if REFUSED in each] == []


async def test_what_is_over_while_the_service_cannot_be_reached_is_not_told(bay: World, harbour: Harbour) -> None:
    ada = await bay.agent("Ada", reply("At noon."), "Told Eve.")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    harbour.answers.append(Later("Come back later.", 40))
    await pier.run_after(SETTLED_SECONDS)
    assert await bay.denizen.db.read(lambda tx: values(tx, _actions)) == ["status"]
    await bay.denizen.agents.resume(ada)
    await pier.run_after(40)
    assert harbour.said == [f"{ROOM}: Ada: At noon."]
    assert await bay.denizen.db.read(lambda tx: values(tx, _actions)) == []


async def test_the_sender_wakes_by_itself_when_a_status_is_to_be_told(bay: World, harbour: Harbour) -> None:
    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    bay.clock.advance(10)
    async with bay.denizen.living(), asyncio.timeout(60):
        for seconds in (30, 20):  # It looks every half minute, and at the time.
            assert harbour.said == []
            await bay.clock.sleeper(seconds)
            bay.clock.advance(seconds)
        await harbour.has(f"{line(SUSPENDED)} (to {ROOM}-1)")


async def test_only_who_carries_the_bridge_tells(bay: World, harbour: Harbour) -> None:
    """A process whose lease was taken over adds nothing, and the next one tells once."""
    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    (before,) = await bay.denizen.db.write(registry.take_leases, "before", 30)
    await bay.denizen.db.write(registry.free_all_of, "before")
    (now,) = await bay.denizen.db.write(registry.take_leases, "now", 30)
    bay.clock.advance(SETTLED_SECONDS)
    with pytest.raises(LeaseLost):
        await bay.denizen.db.write(told_statuses.tell, before)
    assert await bay.denizen.db.read(lambda tx: values(tx, _actions)) == []
    await bay.denizen.db.write(told_statuses.tell, now)
    await bay.denizen.db.write(told_statuses.tell, now)
    assert await bay.denizen.db.read(lambda tx: values(tx, _actions)) == ["status"]


@pytest.mark.parametrize("how", ["disconnect", "remove", "forget"])
async def test_a_room_that_was_told_can_be_disconnected_and_forgotten(bay: World, harbour: Harbour, how: str) -> None:
    ada = await bay.agent("Ada")
    pier = await build(bay, harbour, ada)
    await bay.denizen.agents.suspend(ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    await pier.run_after(SETTLED_SECONDS)
    (channel,) = (await bay.denizen.bridges.get(pier.bridge)).channels
    if how == "disconnect":
        await bay.denizen.bridges.disconnect(channel)
    elif how == "remove":
        await bay.denizen.bridges.remove(pier.bridge)
    else:
        await bay.denizen.spaces.forget(pier.space)
    await pier.run_after(SETTLED_SECONDS)
    assert harbour.said == [f"{line(SUSPENDED)} (to {ROOM}-1)"]


async def test_a_parked_agent_is_told_of_once_while_it_probes(bay: World, harbour: Harbour) -> None:
    """Each probe shows the status again. It is the same one, also in the room."""
    ada = await bay.agent("Ada", *[ModelHTTPError(401, "gpt-5")] * 4, reply("At noon."), "Told Eve.")
    pier = await build(bay, harbour, ada)
    await harbour.write(ROOM, "Eve", "@ada when?")
    await pier.run()
    for seconds in (600, 1200, 2400, 3600):
        await pier.run_after(seconds)
    why = "Ada cannot answer now: the model that it thinks with denies it access."
    told = f"{why} Your message is kept. Ada answers by itself when an admin has fixed this."
    assert harbour.said == [f"{line(told)} (to {ROOM}-1)", f"{ROOM}: Ada: At noon."]
