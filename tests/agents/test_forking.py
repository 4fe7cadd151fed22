"""A fork has the past of another agent, exactly, and a life of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai.embeddings import Embedder as ProvidersEmbedder
from pydantic_ai.embeddings import TestEmbeddingModel

from denizen import call, reply, tool
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.consciousness.recall import embedding
from denizen.consciousness.recall.searching import search
from denizen.errors import HandleTaken, InvalidInput, NotFound
from denizen.ids import AgentId
from denizen.models.embedders import ProviderEmbedder
from denizen.storage.database import Tx, select_where
from denizen.storage.schema import recalls
from tests.consciousness.past import bare, eventful_life, new_life
from tests.properties.house import everything
from tests.world import World, as_text


async def replayed(world: World, agent: Agent, last: int) -> list[Any]:
    """Every request up to a cycle, with what came back and which tools there were."""
    return [
        (bare(each.messages), bare([each.response]), each.tools, each.settings, each.model)
        for number in range(1, last + 1)
        for each in await world.denizen.minds.replay(agent, number)
    ]


async def test_the_past_of_a_fork_is_that_of_the_original_to_the_letter(world: World) -> None:
    """At any cycle; and nothing of the original is different afterwards, nor is any invariant broken."""
    past = await eventful_life(world)
    count = len(await world.cycles(past.ada))
    before = await world.denizen.db.read(everything)
    for at in (1, 4, count):
        fork = await world.denizen.agents.fork(past.ada, at=at, handle=f"ada-{at}")
        assert await replayed(world, fork, at) == await replayed(world, past.ada, at)
        lived, copied = (await world.cycles(past.ada))[:at], await world.cycles(fork)
        assert [each.summary for each in copied] == [each.summary for each in lived]
        assert len({each.id for each in lived} | {each.id for each in copied}) == 2 * at
        with pytest.raises(InvalidInput, match=f"its cycles are 1 to {at}"):
            await world.denizen.minds.replay(fork, at + 1)
    after = await world.denizen.db.read(everything)
    for name, rows in before.items():
        assert set(rows) <= set(after[name]), f"a row of {name} has changed"
    assert await check_database(world.denizen.db) == []


async def test_a_fork_does_nothing_by_itself(world: World) -> None:
    """No memberships, nothing in its inbox, no plans, no heartbeat: two agents shall not do the same thing."""
    past = await eventful_life(world)
    await world.denizen.agents.edit(past.ada, heartbeat={"every_minutes": 60})
    await world.denizen.plans.set(past.ada, "tea", "Make tea.", after="1h")
    await world.denizen.notes.set(past.ada, "tea", "Noor takes milk.")
    fork = await world.denizen.agents.fork(past.ada, handle="bea", name="Bea")
    assert (fork.name, fork.entity.handle, await world.denizen.agents.status(fork)) == ("Bea", "bea", "sleeping")
    assert fork.definition == (await world.denizen.agents.get(past.ada)).definition.model_copy(
        update={"heartbeat": None}
    )
    assert await world.denizen.plans.list(fork) == []
    assert await world.waiting(fork) == []
    assert await world.denizen.budgets.spending(fork) == []
    assert [each.text for each in await world.denizen.goals.list(fork)] == ["Be kind."]
    assert [each.text for each in await world.denizen.notes.list(fork)] == ["Noor takes milk."]
    lived, asked = len(await world.cycles(fork)), len(past.model.requests)
    await world.run_after(2 * 3600)
    assert len(past.model.requests) > asked, "the original goes on"
    assert len(await world.cycles(fork)) == lived


async def test_a_fork_goes_on_from_there_as_someone_else(world: World) -> None:
    """It knows its past, and who and where it is now; the original hears nothing of it."""
    past = await eventful_life(world)
    fork = await world.denizen.agents.fork(past.ada, at=4, handle="bea", name="Bea")
    original = await world.cycles(past.ada)
    attic = await world.space("Attic", past.noor, fork)
    await world.say(past.noor, "Hello, Bea!", attic)
    await world.run()
    assert [each.number for each in await world.cycles(fork)] == [1, 2, 3, 4, 5]
    assert await world.cycles(past.ada) == original
    asked = (await world.denizen.minds.replay(fork, 5))[0].messages
    self = as_text(asked[0])
    assert '"Bea"' in self
    assert "handle: @bea\n" in self
    assert "@ada" not in self
    assert past.ada.id not in self
    assert '"Attic"' in self
    assert "Hall" not in self
    before = (await world.denizen.minds.replay(past.ada, 4))[-1]
    assert bare(asked[1:])[: len(before.messages) - 1] == bare(before.messages[1:])
    assert (await world.transcript(attic))[-1].startswith("Bea: Answer")
    assert await check_database(world.denizen.db) == []
    again = await world.denizen.agents.fork(fork, handle="cleo")
    assert await replayed(world, again, 5) == await replayed(world, fork, 5)


async def test_a_fork_recalls_what_was_before_it_and_nothing_later(world: World) -> None:
    past = await new_life(world)
    await past.hear("The violin is in the cellar.", "The cello is in the attic.", "The flute is lost.")
    fork = await world.denizen.agents.fork(past.ada, at=2, handle="bea")

    async def found(agent: Agent, query: str) -> list[Any]:
        return [
            (each.text, each.cycle)
            for each in await world.denizen.db.read(search, agent.id, query)
            if "is" in each.text
        ]

    assert await found(fork, "violin cellar") == await found(past.ada, "violin cellar") != []
    assert await found(past.ada, "flute lost") != []
    assert not any("flute" in text for text, _ in await found(fork, "flute lost"))


_COUNTS = "passages, forgotten, length, settled, embedder, embedded, worded, terms"
_index = select_where(recalls, _COUNTS, "agent_id")


def _index_of(tx: Tx, agent_id: AgentId) -> tuple[Any, ...]:
    row = tx.one(_index, agent_id=agent_id)
    assert row is not None
    return row


async def test_the_index_of_a_whole_fork_counts_what_that_of_the_original_counts(world: World) -> None:
    """And its vectors are copied, but for those of a row that is not full."""
    pytest.importorskip("numpy")
    small = ProviderEmbedder("small", ProvidersEmbedder(TestEmbeddingModel(dimensions=8)))
    past = await new_life(world)
    await past.hear(*(f"Thing number {number} is here." for number in range(12)))
    await embedding.reindex(world.denizen.db, small)
    *counts, embedder, embedded, worded, terms = await world.denizen.db.read(_index_of, past.ada.id)
    fork = await world.denizen.agents.fork(past.ada, handle="bea")
    assert await world.denizen.db.read(_index_of, fork.id) == (*counts, embedder, embedded // 32 * 32, worded, terms)
    assert embedded > 32
    assert await embedding.reindex(world.denizen.db, small) == embedded % 32
    assert (await world.denizen.db.read(_index_of, fork.id))[-3] == embedded


async def test_what_was_cut_is_still_read_whole_by_a_fork_of_a_fork(world: World) -> None:
    """The pointer in its log is the original's: nothing of the log is rewritten."""

    @tool
    def look() -> str:
        """Look."""
        return "long " * 400 + "the end"

    turns = [call("look"), reply("Seen."), "Looked."]
    ada = await world.agent("Ada", *turns, tools=[look], window={"result_characters": 500})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Look!", hall)
    await world.run()
    (results,) = [
        as_text(each.message) for each in await world.denizen.minds.log(ada) if "cut at" in as_text(each.message)
    ]
    pointer = results.split('read_entry("')[1].split('"')[0]
    first = await world.denizen.agents.fork(ada, handle="bea")
    second = await world.denizen.agents.fork(first, handle="cleo")
    hall = await world.space("Attic", noor, second)
    model = world.model(ada)
    model._decide = lambda messages, _info: (
        call("read_entry", entry=pointer, offset=1_900) if as_text(messages[-1]).startswith("[INBOX") else "Read it."
    )
    await world.say(noor, "Read it all.", hall)
    await world.run()
    told = [as_text(each.message) for each in await world.denizen.minds.log(second)]
    assert any("read_entry →" in each and "the end" in each for each in told)


async def test_what_is_forgotten_is_gone_from_forks_too(world: World) -> None:
    past = await new_life(world)
    secret = "The violin lies under the third step of the cellar stairs"
    said = await world.say(past.noor, secret, past.hall)
    await world.run()
    fork = await world.denizen.agents.fork(past.ada, handle="bea")
    assert secret in json.dumps(bare((await world.denizen.minds.replay(fork, 1))[0].messages))
    await world.denizen.spaces.forget_message(said.id)
    for agent in (past.ada, fork):
        told = json.dumps(bare((await world.denizen.minds.replay(agent, 1))[0].messages))
        assert "violin" not in told
        assert "[forgotten]" in told


async def test_what_cannot_be_forked_is_said(small_world: World) -> None:
    ada = await small_world.agent("Ada", reply("Hello."), "Greeted.")
    with pytest.raises(InvalidInput, match="@ada has no cycles yet"):
        await small_world.denizen.agents.fork(ada, handle="bea")
    noor = await small_world.person("Noor")
    await small_world.say(noor, "Hello!", await small_world.space("Hall", noor, ada))
    await small_world.run()
    for at in (0, 2):
        with pytest.raises(InvalidInput, match=f"@ada has no cycle {at}: its cycles are 1 to 1"):
            await small_world.denizen.agents.fork(ada, at=at, handle="bea")
    with pytest.raises(HandleTaken):
        await small_world.denizen.agents.fork(ada, handle="noor")
    with pytest.raises(NotFound):
        await small_world.denizen.agents.fork(AgentId(noor.id), handle="bea")
