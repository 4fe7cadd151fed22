"""A warm mind holds what the database holds: nothing tells it from one that was loaded anew."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import ModelMessage
from sqlalchemy import select

from denizen import call, forever, reply, skip
from denizen.consciousness import log
from denizen.consciousness.recall import passages
from denizen.errors import ModelRejected
from denizen.models import codec
from denizen.models.scripted import Info, Turn
from denizen.storage.database import insert_into, statement
from denizen.storage.schema import wordings
from tests.world import World, as_text, open_world


def thinking(messages: list[ModelMessage], _info: Info) -> Turn:
    """Does a little of everything, by what it was just told and nothing else."""
    said = as_text(messages[-1])
    if not said.startswith("[INBOX"):
        return "Did it."
    if "skip" in said:
        return skip()
    if "fail" in said:
        return ModelRejected("no")
    return [call("read_messages", limit=1), reply("Yes.")] if "look" in said else reply("Hello.")


SAID = ("hello", "skip this", "look there", "fail", "hello again", "look once more")


async def told(world: World, *, warm: bool) -> tuple[list[list[str]], list[str]]:
    """Every request of a life, lived in one go or with a restart before each message, and its log."""
    ada = await world.agent("Ada", model=forever(thinking))
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall, attic = await world.space("Hall", noor, bert, ada), await world.space("Attic", noor, bert, ada)
    requests: list[list[str]] = []
    if warm:
        async with world.denizen.living():
            for text in SAID:
                await world.say(noor, text, attic if text == "fail" else hall)
                await world.run()
        requests = await world.prompts(ada)
    else:
        for text in SAID:
            await world.restart(ada=forever(thinking))
            await world.say(noor, text, attic if text == "fail" else hall)
            await world.run()
            requests += await world.prompts(ada)
    return requests, await world.history(ada)


async def test_a_life_lived_warm_and_one_lived_from_restart_to_restart_are_the_same(
    ready_sqlite_url: str, ready_postgres_url: str
):
    """And so are lives on different databases."""
    lives: list[tuple[list[list[str]], list[str]]] = []
    for number, url in enumerate((ready_sqlite_url, ready_postgres_url)):
        async with open_world(url) as world:
            lives.append(await told(world, warm=number == 0))
    async with open_world(ready_sqlite_url.replace("denizen.db", "other.db")) as world:
        lives.append(await told(world, warm=False))
    assert lives[0] == lives[1] == lives[2]


async def test_what_the_model_saw_is_what_is_stored(world: World):
    """The last request of each cycle, and the answer to it, are in the log to the letter."""
    requests, history = await told(world, warm=True)
    stored = [line.split(": ", 1)[1] for line in history]
    last = [line.split(": ", 1)[1] for line in requests[-1][1:]]
    assert stored == [*last, "Did it."]


async def test_each_response_says_what_its_request_was_made_of(world: World):
    """So that any past message list can be built again exactly."""
    ada = await world.agent("Ada", model=forever(thinking))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for text in ("hello", "look there"):
        await world.say(noor, text, hall)
        await world.run()

    entries = await world.denizen.minds.log(ada)
    by_seq = {entry.seq: entry for entry in entries}
    responses = [entry for entry in entries if entry.kind == "response"]
    for entry, asked in zip(responses, world.model(ada).requests, strict=True):
        assert entry.request is not None
        made_of = json.loads(entry.request)
        rebuilt = [by_seq[seq].message for seq in range(made_of["from"], made_of["to"] + 1)]
        assert [codec.dump(message) for message in rebuilt] == [codec.dump(message) for message in asked[1:]]
        assert (made_of["era"], made_of["model"]) == (1, "python:ada")


async def test_a_warm_mind_keeps_its_past_when_its_self_is_written_anew(small_unhurried_world: World):
    """It slept, and its spaces have changed: the new self is followed by all that it has lived through."""
    world = small_unhurried_world
    ada = await world.agent("Ada", model=forever(thinking))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living():
        await world.say(noor, "hello", hall)
        await world.run()
        lived = await world.history(ada)
        world.clock.advance(600)
        await world.space("Attic", noor, ada)
        await world.say(noor, "look there", hall)
        await world.run()
    first, *_, _, last = await world.prompts(ada)
    assert ("Attic" in first[0], "Attic" in last[0]) == (False, True)
    past = [line.split(": ", 1)[1] for line in last[1 : 1 + len(lived)]]
    assert past == [line.split(": ", 1)[1] for line in lived]


async def test_entries_are_paged_from_either_end_with_their_times_and_cycles(world: World):
    ada = await world.agent("Ada", model=forever(thinking))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    times: list[int] = []
    for text in ("hello", "hello again"):
        times += [world.clock.now()] * 4
        await world.say(noor, text, hall)
        await world.run()
        world.clock.advance(60)
    expected = [(seq, times[seq - 1], (seq + 3) // 4) for seq in range(1, 9)]

    async def page(read: Any, number: int, limit: int) -> list[tuple[int, int, int | None]]:
        found = await world.denizen.db.read(read, ada.id, number, limit=limit)
        return [(each.entry.seq, each.at, each.cycle) for each in found]

    assert await page(log.entries_after, 0, 3) == expected[:3]
    assert await page(log.entries_after, 3, 100) == expected[3:]
    assert await page(log.entries_before, 9, 3) == expected[5:]
    assert await page(log.entries_before, 6, 100) == expected[:5]


async def test_words_of_one_agent_that_are_forgotten_are_not_those_of_another(small_world: World):
    """Passages are numbered by agent: both have a first one."""
    rows = [{"agent_id": name, "embedder": "e", "number": 1, "codes": b"12345678"} for name in ("ada", "bee")]
    every = statement(select(wordings.c.agent_id, wordings.c.number).order_by(wordings.c.agent_id))
    db = small_world.denizen.db
    agents = [
        await small_world.agent("Ada", model=forever(thinking)),
        await small_world.agent("Bee", model=forever(thinking)),
    ]
    noor = await small_world.person("Noor")
    await small_world.say(noor, "hello", await small_world.space("Hall", noor, *agents))
    await small_world.run()
    for row, agent in zip(rows, agents, strict=True):
        row["agent_id"] = agent.id
    await db.write(lambda tx: tx.many(insert_into(wordings, *rows[0]), rows))
    ada, bee = agents
    assert await db.write(passages.forget, ada.id, [1]) == 1
    assert await db.read(lambda tx: tx.all(every)) == [(bee.id, 1)]


async def test_the_layers_are_the_same_message_while_their_text_is_the_same(small_unhurried_world: World):
    """A provider's request is put together from prepared messages: one that is made anew is prepared anew."""
    world = small_unhurried_world
    sent: list[ModelMessage] = []

    def decide(messages: list[ModelMessage], _info: Info) -> Any:
        sent.append(messages[1])
        return "Read it."

    ada = await world.agent(
        "Ada", model=forever(decide), window={"max_tokens": 4_000}, cycle={"silent_reply": "ignore"}
    )
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living():
        for number in range(30):
            await world.say(noor, f"{number}: " + "one more thing to read " * 20, hall)
            await world.run()
        before = sent[-1]
        world.clock.advance(600)  # a new era, with another self
        await world.space("Attic", noor, ada)
        await world.say(noor, "look there", hall)
        await world.run()
    assert "COMPACTED MEMORY" in str(before.parts[0])
    assert sent[-1] is before
