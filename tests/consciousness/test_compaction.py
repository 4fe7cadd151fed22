"""Compaction: older cycles leave the window, what they came to stays, and nothing is lost, however long the life."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import bindparam, select, update

from denizen import call, failpoints, forever, reply, tool
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.consciousness import compaction, layers, log, mind
from denizen.consciousness import lease as leases
from denizen.consciousness.compaction import CompactedMind, FullMind
from denizen.consciousness.lease import Lease
from denizen.consciousness.mind import Mind
from denizen.consciousness.system_prompt import Identity
from denizen.consciousness.window import budget
from denizen.errors import LeaseLost
from denizen.ids import AgentId, CycleId, new_id
from denizen.models import codec
from denizen.models.scripted import Info, ScriptedModel, Turn
from denizen.models.tokens import estimate_message
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import cycles, minds, selves
from denizen.storage.schema import layers as layer_rows
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.properties.house import everything
from tests.world import World, as_text, open_world

TOOLS = Toolbox(PREBUILT).tokens
HEADERS = ("[COMPACTED MEMORY", "[EARLIER CYCLES")


@tool
def look(size: int) -> str:
    """See something of that size."""
    return "z" * size


def doing(messages: list[ModelMessage], info: Info) -> Turn:
    """Looks if it is told to, answers, and says what it did."""
    said = as_text(messages[-1])
    if said.startswith(("[INBOX", "[RECALLED")):
        inbox = next(as_text(each) for each in reversed(messages) if as_text(each).startswith("[INBOX"))
        sizes = re.findall(r"look (\d+)", inbox)
        return [call("look", size=int(each)) for each in sizes] or reply(f"Answer {info.number} " + "a" * 300)
    word = re.findall(r"word (\w+)", "\n".join(as_text(each) for each in messages if "[INBOX" in as_text(each)))
    return f"Answered Noor about {word[-1] if word else 'nothing'}."


@dataclass
class Life:
    """An agent and a person who talk in a hall."""

    world: World
    ada: Agent
    noor: Entity
    hall: Space

    async def hear(self, *said: str) -> None:
        for text in said:
            await self.world.say(self.noor, text, self.hall)
            await self.world.run()

    @property
    def requests(self) -> list[list[ModelMessage]]:
        return self.world.model(self.ada).requests


async def a_life(world: World, said: list[str], model: ScriptedModel | None = None, **window: Any) -> Life:
    ada = await world.agent("Ada", model=model or forever(doing), tools=[look], window=window)
    noor = await world.person("Noor")
    life = Life(world, ada, noor, await world.space("Hall", noor, ada))
    await life.hear(*said)
    return life


def questions(count: int, first: int = 1) -> list[str]:
    return [f"The word w{number} " + "q" * 300 for number in range(first, first + count)]


def block_of(request: list[ModelMessage]) -> str:
    """What stands between the self and the window."""
    text = as_text(request[1])
    return text if text.startswith(HEADERS) else ""


def told_in(block: str) -> list[int]:
    """The numbers of the cycles that a block tells of, in its order."""
    told: list[int] = []
    groups = False
    for first, last, line in re.findall(r"^\[COMPACTED MEMORY — cycles (\d+)–(\d+)\]$|^(.*)$", block, re.MULTILINE):
        if first:
            told += range(int(first), int(last) + 1)
            groups = True
        elif line.startswith("[EARLIER CYCLES"):
            groups = False
        elif line.startswith("Cycle ") and not groups:
            told.append(int(line.split()[1]))
    return told


async def test_what_has_left_the_window_is_told_in_its_own_words(world: World):
    life = await a_life(world, questions(40), max_tokens=TOOLS + 9_000, layer_share=0.25)
    request = life.requests[-1]
    block, shown = block_of(request), [each for each in request if as_text(each).startswith("[INBOX")]
    first = 40 - len(shown) + 1
    assert told_in(block) == list(range(1, first))
    assert block.splitlines()[-1] == (
        f'Cycle {first - 1} (2026-01-05, "Hall", Noor): Answered Noor about w{first - 1}. [send_message]'
    )
    assert f"word w{first} " in as_text(shown[0])


async def test_a_long_life_in_a_small_window_is_told_as_one_and_counted_exactly(world: World):
    life = await a_life(world, questions(30), max_tokens=TOOLS + 2_000)
    block = block_of(life.requests[-1])
    last = told_in(block)[-1]
    assert block.startswith(f"[COMPACTED MEMORY — cycles 1–{last}]\n{last} cycles, 2026-01-05. ")
    assert f'Done: send_message ×{last}. With Noor ({last}). In "Hall" ({last}).' in block


async def test_between_compactions_every_request_begins_as_the_one_before_it(world: World):
    """The provider's cache serves the prefix: the self, the layers and the past, byte for byte."""
    life = await a_life(world, questions(60), max_tokens=TOOLS + 5_000)
    bodies = [[as_text(each) for each in request] for request in life.requests]
    changed = sum(new[: len(old)] != old for old, new in pairwise(bodies))
    eras = await world.denizen.db.read(_eras, life.ada.id)
    assert changed <= len(eras) - 1 <= len(bodies) / 8


_all_eras = statement(
    select(selves.c.era, selves.c.layers).where(selves.c.agent_id == bindparam("agent_id")).order_by(selves.c.era)
)


def _eras(tx: Tx, agent_id: str) -> list[tuple[int, str | None]]:
    return [(era, layers) for era, layers in tx.all(_all_eras, agent_id=agent_id)]


async def test_every_request_of_the_past_can_be_built_again(world: World):
    """With the layers of its time, and with the results that were shown shorter."""
    said = [text for number in range(8) for text in (f"look 6000 word w{number}", *questions(2))]
    life = await a_life(world, said, max_tokens=TOOLS + 6_000)
    asked = [[as_text(each) for each in request] for request in life.requests]
    made_of = [
        json.loads(each.request or "") for each in await world.denizen.minds.log(life.ada) if each.kind == "response"
    ]
    built = [await world.denizen.db.read(mind.request, life.ada.id, each) for each in made_of]
    assert [[as_text(each) for each in request] for request in built] == asked
    assert any("shortened; read_entry" in text for request in asked for text in request)
    assert any(text.startswith(HEADERS) for request in asked for text in request)


async def test_recent_cycles_with_long_results_stay_with_the_results_shortened_and_can_be_read_whole(world: World):
    life = await a_life(world, [f"look 5000 word w{number}" for number in range(12)], max_tokens=TOOLS + 6_000)
    request = life.requests[-1]
    short = [as_text(each) for each in request if "shortened" in as_text(each)]
    assert len(short) >= 3
    assert all(len(each) < 500 for each in short)
    (pointer,) = re.findall(r'read_entry\("(log:\d+:\d+)"\)', short[0])

    await world.restart(ada=forever(lambda messages, _: reading(messages, pointer)))
    await life.hear("What did you see?")
    read = next(each for each in await world.history(life.ada) if each.startswith("results: read_entry → "))
    assert read.startswith(f"results: read_entry → [{pointer}: characters 0 to ")
    assert "z" * 2_000 in read


def reading(messages: list[ModelMessage], pointer: str) -> Turn:
    return call("read_entry", entry=pointer) if as_text(messages[-1]).startswith("[INBOX") else "Read it."


async def test_a_pointer_to_what_is_no_result_is_refused(world: World):
    pointers = ["log:1:0", "log:99:0", "log:x:y", "log:-1:0", "log:1", f"log:{'9' * 30}:0", "log:2:7"]
    turns = [*(call("read_entry", entry=each) for each in pointers), "Done."]
    ada = await world.agent("Ada", *turns)
    await world.denizen.agents.trigger(ada, "bell")
    await world.run()
    results = [each for each in await world.history(ada) if each.startswith("results")]
    assert len(results) == len(pointers)
    assert all(" no entry " in each or "not" in each.lower() for each in results)
    assert not any("characters 0 to" in each for each in results)


async def test_the_log_is_byte_for_byte_what_it_was(world: World):
    life = await a_life(world, questions(5), max_tokens=TOOLS + 3_000)
    before = [(each.seq, each.kind, each.encoded) for each in await world.denizen.minds.log(life.ada)]
    await life.hear(*questions(15))
    after = [(each.seq, each.kind, each.encoded) for each in await world.denizen.minds.log(life.ada)]
    assert block_of(life.requests[-1])
    assert after[: len(before)] == before


async def test_with_self_summaries_every_old_cycle_is_a_line_as_far_as_there_is_room(world: World):
    life = await a_life(world, questions(60), max_tokens=TOOLS + 9_000, strategy="self_summary", layer_share=0.25)
    block = block_of(life.requests[-1])
    assert block.count("[COMPACTED MEMORY") <= 1
    assert sum(line.startswith("Cycle ") for line in block.partition("[EARLIER CYCLES")[2].splitlines()) >= 10
    assert told_in(block) == list(range(1, told_in(block)[-1] + 1))


async def test_an_owner_who_shrinks_the_window_finds_the_layers_shrunk_with_it(world: World):
    life = await a_life(world, questions(60), max_tokens=TOOLS + 9_000, layer_share=0.25)
    assert len(block_of(life.requests[-1])) > 1_500
    await world.denizen.agents.edit(life.ada, window={"max_tokens": TOOLS + 1_700})
    life.requests.clear()
    await life.hear("And now?")
    assert told_in(block_of(life.requests[0]))[-1] >= 57
    assert all(len(block_of(each)) < 1_200 for each in life.requests)


class Measuring(ScriptedModel):
    """A model whose provider counts more tokens than we estimate, from some time on."""

    def __init__(self) -> None:
        super().__init__(doing, name="measuring", chunk=None, pause=None, record=True)
        self.factor = 1.0
        self._input = self  # pyright: ignore[reportIncompatibleUnannotatedOverride, reportAttributeAccessIssue]

    def count(self, messages: list[ModelMessage]) -> int:
        return int(self.factor * (sum(map(estimate_message, messages)) + Toolbox([*PREBUILT, look]).tokens))


async def test_where_a_provider_counts_more_the_layers_give_way_to_the_present_and_come_back_smaller(world: World):
    """Also then every request can be built again."""
    model = Measuring()
    tokens = TOOLS + 6_500
    life = await a_life(world, [], model, max_tokens=tokens, layer_share=0.25)
    async with world.denizen.living():
        await life.hear(*questions(50))
        before = len(life.requests)
        model.factor = tokens / (TOOLS + 1_150)
        await life.hear(*questions(4))
    assert all(model.count(request) <= tokens for request in life.requests[before + 1 :])
    blocks = [block_of(request) for request in life.requests]
    assert "" in blocks[before:]
    assert 0 < len(blocks[-1]) < len(blocks[before])
    made_of = [
        json.loads(each.request or "") for each in await world.denizen.minds.log(life.ada) if each.kind == "response"
    ]
    built = [await world.denizen.db.read(mind.request, life.ada.id, each) for each in made_of]
    assert [[as_text(each) for each in request] for request in built] == [
        [as_text(each) for each in request] for request in life.requests
    ]


# One transaction


async def in_hand(world: World, agent: Agent) -> tuple[Lease, Mind]:
    lease = await world.denizen.db.write(leases.acquire, agent.id, "test")
    assert lease is not None
    agent = await world.denizen.agents.get(agent)
    who = Identity(agent.entity, agent.definition.instructions, agent.definition.zone)
    room = budget(agent.definition.window, None)
    return lease, await world.denizen.db.read(mind.load, lease, who, agent.version, agent.definition.window, room, None)


def crowd(found: Mind) -> FullMind:
    return compaction.crowded(found, TOOLS)


async def settled(world: World, lease: Lease, found: Mind) -> int:
    """Compact to the end; gives in how many transactions."""
    for count in range(1, 100):
        done = await world.denizen.db.write(compaction.compact, lease, crowd(found))
        if isinstance(done, CompactedMind):
            found.settle(*done)
            return count
    raise AssertionError("compaction never ends")


async def test_compacting_twice_changes_nothing(ready_url: str):
    async with open_world(ready_url, pace=Pace(warm_seconds=0)) as world:
        life = await a_life(world, questions(20), max_tokens=TOOLS + 3_000)
        lease, found = await in_hand(world, life.ada)
        await settled(world, lease, found)
        before = await world.denizen.db.read(everything)
        await settled(world, lease, found)
        assert await world.denizen.db.read(everything) == before
        assert not compaction.is_due(found, TOOLS)


@pytest.mark.parametrize(
    ("last_cycle", "window", "share"),
    [(0.0, {}, 0.9), (0.15, {}, 0.85), (0.5, {}, 0.8), (0.5, {"target_share": 0.7}, 0.85)],
    ids=["small cycles", "as large as the last", "large cycles", "large cycles, and little is to leave"],
)
async def test_compaction_is_due_when_the_next_cycle_might_not_find_room(
    small_world: World, last_cycle: float, window: dict[str, float], share: float
):
    _, found = await in_hand(small_world, await small_world.agent("Ada", window=window))
    room = int(found.budget.request) - TOOLS - found.standing_tokens
    found.last_cycle_tokens = int(room * last_cycle)

    def is_due_when_filled(tokens: int) -> bool:
        found._past_tokens = tokens
        return compaction.is_due(found, TOOLS)

    full = int(room * share)
    assert not is_due_when_filled(full - 1)
    assert is_due_when_filled(full + 2)
    found.unsettled = True
    assert is_due_when_filled(0)


async def test_whoever_has_lost_the_lease_compacts_nothing(ready_url: str):
    async with open_world(ready_url, pace=Pace(warm_seconds=0)) as world:
        life = await a_life(world, questions(5), max_tokens=TOOLS + 3_000)
        lease, found = await in_hand(world, life.ada)
        await world.denizen.db.write(leases.seize, life.ada.id)
        before = await world.denizen.db.read(everything)
        with pytest.raises(LeaseLost):
            await world.denizen.db.write(compaction.compact, lease, crowd(found))
        assert await world.denizen.db.read(everything) == before


@pytest.mark.parametrize("point", ["commit:compact", "committed:compact"])
async def test_a_crash_in_it_is_made_up_for(point: str, ready_url: str, broken: Callable[[str], None]):
    async with open_world(ready_url) as world:
        life = await a_life(world, questions(4), max_tokens=TOOLS + 3_000)
        broken(point)
        await life.hear(*questions(16, first=5))
        assert not failpoints.armed
        request = life.requests[-1]
        shown = [each for each in request if as_text(each).startswith("[INBOX")]
        assert told_in(block_of(request)) == list(range(1, 20 - len(shown) + 1))
        assert len(await world.cycles(life.ada)) == 20


# A life that was lived before there were layers

_cycle = insert_into(cycles, "id", "agent_id", "number", "outcome", "first_seq", "started_at", "ended_at", "summary")
_age = statement(
    update(minds)
    .where(minds.c.agent_id == bindparam("agent"))
    .values(cycle_count=bindparam("count"), window_from=bindparam("first"))
)


def _write_past(tx: Tx, agent_id: AgentId, count: int) -> None:
    for number in range(1, count + 1):
        id = CycleId(new_id())
        said = codec.load('{"parts":[{"content":"[INBOX - 1 new event]","part_kind":"user-prompt"}],"kind":"request"}')
        log.append(tx, agent_id, [log.entry(number, id, "inbox", said)])
        row = {"id": id, "agent_id": agent_id, "number": number, "outcome": "acted", "first_seq": number}
        tx.run(_cycle, **row, started_at=tx.now, ended_at=tx.now, summary=f"Did thing {number}.")
    tx.run(_age, agent=agent_id, count=count, first=count + 1)


_stored = statement(
    select(layer_rows.c.level, layer_rows.c.first, layer_rows.c.digest)
    .where(layer_rows.c.agent_id == bindparam("agent_id"))
    .order_by(layer_rows.c.level, layer_rows.c.first)
)


def _layers(tx: Tx, agent_id: AgentId) -> list[tuple[int, int, str]]:
    return [(level, first, digest) for level, first, digest in tx.all(_stored, agent_id=agent_id)]


async def test_an_old_life_without_layers_gets_them_in_several_transactions(world: World):
    ada = await world.agent("Ada", "Done.", "Done.", window={"max_tokens": TOOLS + 40_000})
    await world.denizen.db.write(_write_past, ada.id, 2_345)
    for _ in range(2):  # where something is waiting, it comes before what takes several transactions
        await world.denizen.agents.trigger(ada, "bell")
        await world.run()
    block = block_of(world.model(ada).requests[-1])
    assert told_in(block) == list(range(1, 2_346))
    assert block.startswith("[COMPACTED MEMORY — cycles 1–2000]\n2,000 cycles, 2026-01-05.\n")
    assert block.endswith("Cycle 2345 (2026-01-05): Did thing 2345.")

    kept = await world.denizen.db.read(_layers, ada.id)
    first_line = int(block.partition("[EARLIER CYCLES — self-summaries]\nCycle ")[2].split()[0])
    assert [first for level, first, _ in kept if level == 1] == list(range(1, first_line, 10))
    assert [first for level, first, _ in kept if level == 3] == [1, 1_001]


async def test_no_transaction_reads_more_of_an_old_life_than_its_share(ready_url: str):
    async with open_world(ready_url, pace=Pace(warm_seconds=0)) as world:
        ada = await world.agent("Ada", "Done.", window={"max_tokens": TOOLS + 40_000})
        await world.denizen.db.write(_write_past, ada.id, 2_345)
        lease, found = await in_hand(world, ada)
        assert found.unsettled
        transactions = await settled(world, lease, found)
        made = [level for level, _, _ in await world.denizen.db.read(_layers, ada.id) if level == 1]
        assert transactions == -(-len(made) // compaction.GROUPS_AT_ONCE) > 1


async def test_what_is_forgotten_is_in_no_digest_and_these_are_made_anew(ready_url: str):
    async with open_world(ready_url, pace=Pace(warm_seconds=0)) as world:
        ada = await world.agent("Ada", "Done.", window={"max_tokens": TOOLS + 40_000})
        await world.denizen.db.write(_write_past, ada.id, 1_200)
        lease, found = await in_hand(world, ada)
        await settled(world, lease, found)
        before = await world.denizen.db.read(_layers, ada.id)

        await world.denizen.db.write(compaction.forget, ada.id, [7, 8, 1_003])
        gone = {(level, first) for level, first, _ in before} - {
            (level, first) for level, first, _ in await world.denizen.db.read(_layers, ada.id)
        }
        assert gone >= {(1, 1), (2, 1), (1, 1_001), (2, 1_001)}
        assert not any(first > 7 and level == 1 and first != 1_001 for level, first in gone)
        await settled(world, lease, found)
        assert await world.denizen.db.read(_layers, ada.id) == before


async def test_a_digest_is_what_its_cycles_come_to_however_it_was_built(ready_url: str):
    async with open_world(ready_url, pace=Pace(warm_seconds=0)) as world:
        ada = await world.agent("Ada", "Done.", window={"max_tokens": TOOLS + 40_000})
        await world.denizen.db.write(_write_past, ada.id, 1_200)
        lease, found = await in_hand(world, ada)
        await settled(world, lease, found)
        for level, first, encoded in await world.denizen.db.read(_layers, ada.id):
            if level == 2:
                lived = await world.denizen.db.read(compaction.lived, ada.id, first, first + 99)
                whole = layers.merge([layers.digest(each, "UTC") for each in lived])
                assert layers.load(encoded) == whole


# What comes to mind


async def test_what_matters_to_the_inbox_comes_to_mind_by_itself(world: World):
    said = ["The word violin: it lies in the cellar.", *questions(20)]
    life = await a_life(world, said, max_tokens=TOOLS + 4_000, strategy="semantic")
    life.requests.clear()
    await life.hear("Where is my violin?")
    first, second = life.requests
    recalled = as_text(first[-1])
    assert recalled.startswith("[RECALLED — ")
    assert '09:00 Noor: "The word violin: it lies in the cellar."' in recalled.splitlines()
    assert as_text(first[-2]).startswith("[INBOX")
    assert [as_text(each) for each in second[: len(first)]] == [as_text(each) for each in first]
    assert [each.kind for each in (await world.denizen.minds.log(life.ada))[-5:]] == [
        "inbox",
        "recalled",
        "response",
        "results",
        "response",
    ]


async def test_what_came_to_mind_does_not_come_again_while_it_is_shown_and_is_the_first_to_go(world: World):
    said = ["The word violin: it lies in the cellar.", *questions(20), "My violin?", "And the violin?", *questions(4)]
    life = await a_life(world, said, max_tokens=TOOLS + 4_000, strategy="semantic")
    entries = [each for each in await world.denizen.minds.log(life.ada) if each.kind == "recalled"]
    about = [each for each in entries if "lies in the cellar" in as_text(each.message)]
    assert len(about) == 1
    shown = [as_text(each) for each in life.requests[-1] if as_text(each).startswith("[RECALLED")]
    assert not any("lies in the cellar" in each for each in shown)
    made_of = json.loads((await world.denizen.minds.log(life.ada))[-1].request or "")
    assert about[0].seq in await hidden_in(world, life.ada) or about[0].seq < made_of["from"]


async def hidden_in(world: World, agent: Agent) -> set[int]:
    """What the era in force does not show."""
    lease, found = await in_hand(world, agent)
    await world.denizen.db.write(leases.release, lease)
    return {seq for seq, characters in found.era.shortened.items() if characters == 0}


async def test_what_was_said_in_private_does_not_come_to_mind_among_others(world: World):
    ada = await world.agent("Ada", model=forever(doing), window={"max_tokens": TOOLS + 4_000, "strategy": "semantic"})
    noor, bert = await world.person("Noor"), await world.person("Bert")
    den = await world.space("Den", noor, ada, private=True)
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "The word violin: it lies in the cellar.", den)
    await world.run()
    for text in questions(14):
        await world.say(noor, text, hall)
        await world.run()
    for where in (hall, den):
        world.model(ada).requests.clear()
        await world.say(noor, "Where is my violin?", where)
        await world.run()
        seen = [as_text(each) for each in world.model(ada).requests[0] if as_text(each).startswith("[RECALLED")]
        assert any("cellar" in each for each in seen) == (where is den)


async def test_nothing_comes_to_mind_unless_it_is_asked_for(world: World):
    life = await a_life(world, ["The violin lies in the cellar.", *questions(12), "violin?"], max_tokens=TOOLS + 4_000)
    assert not any(each.kind == "recalled" for each in await world.denizen.minds.log(life.ada))
