"""Whole lives of anything: cycles of all sizes, huge results, skips, failures before and after effects, edits,
deletions and redactions, restarts, models with a small context.

However it goes: no request is over its budget or parts a call from its result; the log and the prompt only grow, but
for what is forgotten; the layers and the window tell of every cycle; whatever was said is in the window or found by
recall, and what was forgotten is nowhere; compacting twice is compacting once.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from sqlalchemy import bindparam, select

from denizen import Runtime
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.clock import ManualClock
from denizen.consciousness import compaction, mind
from denizen.consciousness import lease as leases
from denizen.consciousness.compaction import CompactedMind
from denizen.consciousness.recall.searching import search
from denizen.consciousness.system_prompt import Identity
from denizen.consciousness.window import budget
from denizen.cycles.records import calls_of
from denizen.errors import ModelRejected
from denizen.ids import MessageId
from denizen.models.scripted import Info, Turn, call, reply, skip
from denizen.models.tokens import estimate_message
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Row, Tx, statement
from denizen.storage.schema import cycles, events, log, selves
from denizen.storage.schema import messages as message_rows
from denizen.tools.prebuilt import PREBUILT, read_entry_tool, small_tools
from denizen.tools.recalling import recall_tool
from denizen.tools.tool import Toolbox
from tests.properties.house import delete_everything, everything, violations
from tests.properties.lives import (
    EXAMPLES,
    PATIENCE,
    HurryingClock,
    NarrowModel,
    check_well_formed,
    come_to_rest,
    look,
    narrow,
)
from tests.world import as_text

pytestmark = pytest.mark.timeout(PATIENCE)

TOOLBOX: Final = Toolbox([*PREBUILT, look])
PEOPLE: Final = ("Noor", "Bert")
PLACES: Final = ("Quarry", "Lagoon")


# What may happen


@dataclass(frozen=True)
class Said:
    """Someone says something, which tells the agent what to do about it."""

    who: int
    where: int
    words: int
    looks: tuple[int, ...]
    how: Literal["own", "quote", "note", "recall", "read", "skip"]
    fails: str
    """`before2`: the model fails twice before anything has been done; `after2`: after something has."""
    ends: bool
    """Whether the cycle ends with a line of its own."""
    long: int
    waits: bool
    """Whether more is said before the agent thinks."""

    def text(self, number: int, letter: str = "m") -> str:
        """Words that nobody else says, and what is to be done."""
        own = [f"{letter}{number}x{at}" for at in range(self.words)]
        looks = [f"look{size}" for size in self.looks]
        ends = ["ends"] * self.ends
        return " ".join([*own, *looks, self.how, *([self.fails] if self.fails else []), *ends, "q" * self.long]).strip()


@dataclass(frozen=True)
class Changed:
    """A message is edited, deleted or forgotten; a person or a space is forgotten."""

    how: Literal["edit", "delete", "forget message", "forget person", "forget space"]
    which: int


Other = Literal["restart", "night"]
Deed = Said | Changed | Other

said = st.builds(
    Said,
    who=st.integers(0, 1),
    where=st.integers(0, 1),
    words=st.integers(3, 12),
    looks=st.lists(st.sampled_from([10, 500, 3_000, 20_000]), max_size=3).map(tuple),
    how=st.sampled_from(["own", "own", "quote", "note", "recall", "read", "skip"]),
    fails=st.sampled_from([""] * 8 + ["before1", "before2", "before6", "after1", "after2", "after6"]),
    ends=st.booleans(),
    long=st.sampled_from([0, 0, 50, 400, 3_000]),
    waits=st.integers(0, 3).map(lambda n: n == 0),
)
changed = st.builds(
    Changed,
    how=st.sampled_from(
        ["edit", "edit", "delete", "forget message", "forget message", "forget person", "forget space"]
    ),
    which=st.integers(0, 20),
)
deeds = st.lists(
    st.sampled_from([said] * 12 + [changed] * 3 + [st.sampled_from(["restart", "night"])]).flatmap(lambda kind: kind),
    min_size=1,
    max_size=22,
)
windows = st.fixed_dictionaries(
    {
        "max_tokens": st.sampled_from([1_600, 2_000, 4_000, 9_000]).map(lambda more: TOOLBOX.tokens + more),
        "output_tokens": st.just(256),
        "writer_model": st.just("demo"),
    },
    optional={
        "strategy": st.sampled_from(["self_summary", "layered", "semantic", "rolling", "written"]),
        "min_recent_cycles": st.sampled_from([1, 3, 30]),
        "target_share": st.sampled_from([0.2, 0.6, 0.9]),
        "layer_share": st.sampled_from([0.05, 0.25]),
    },
)
contexts = st.sampled_from([None, None, 1_900, 3_300]).map(lambda more: None if more is None else TOOLBOX.tokens + more)


# The agent


@dataclass
class Behaviour:
    """Does what it is told to, in words of its own, and fails as often as it is told to."""

    failed: Counter[str] = field(default_factory=Counter[str])

    def decide(self, messages: list[ModelMessage], info: Info) -> Turn:
        inbox = max(at for at, each in enumerate(messages) if as_text(each).startswith("[INBOX - "))
        present = as_text(messages[inbox])
        done = sum(bool(calls_of(each)) for each in messages[inbox:])
        if self._fails(present, "before"):
            return [ModelRejected("no")]
        heard = re.findall(r"\b[me](\d+)x0\b", present)
        if heard and len(re.findall(r"\bskip\b", present)) == len(heard):
            return skip()
        sizes = [int(each) for each in re.findall(r"\blook(\d+)\b", present)]
        if done < len(sizes):
            return call("look", size=sizes[done])
        if done == len(sizes):
            return self._act(present, info.number)
        if self._fails(present, "after"):
            return [ModelRejected("no")]
        return f"Did thing {info.number}." if re.search(r"\bends\b", present) else ""

    def _fails(self, present: str, when: str) -> bool:
        """Whether it is time to fail: for each message as often as it says."""
        for number, times in re.findall(rf"\b[me](\d+)x0\b.*?\b{when}(\d)\b", present):
            if self.failed[f"{when}{number}"] < int(times):
                self.failed[f"{when}{number}"] += 1
                return True
        return False

    def _act(self, present: str, number: int) -> Turn:
        # Only whole messages are repeated: a few words of one are words of the agent's own, which stay.
        whole = re.search(r'\): "([me]\d+x0 [^…"]*)"\n', present)
        if whole and " quote" in whole[1]:
            return reply(f"You say: {whole[1]}!")
        if whole and " note" in whole[1]:
            return call("set_memories", memories=[{"key": f"k{number}", "text": whole[1]}])
        if whole and " recall" in whole[1]:
            return call("recall", query=whole[1])
        if " read" in present:
            return call("read_messages")
        return reply(" ".join(f"own{number}x{at}" for at in range(9)))


@dataclass
class Posted:
    """A message as the test knows it."""

    id: MessageId
    number: int
    who: int
    where: int
    said: Said
    edited: bool = False
    deleted: bool = False
    gone: bool = False


@dataclass
class Life:
    """A house during one example."""

    denizen: Runtime
    clock: ManualClock
    ada: Agent
    model: NarrowModel
    toolbox: Toolbox
    people: list[Entity]
    places: list[Space]
    posted: list[Posted] = field(default_factory=list[Posted])
    left: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    """The people and the spaces that were forgotten."""
    forgotten: list[str] = field(default_factory=list[str])
    """Patterns of what may not be found any more."""
    seen: int = 0
    grown: int = 0
    """Requests that were looked at; since when each goes on with the one before."""
    levels: dict[int, int] = field(default_factory=dict[int, int])
    logged: list[Row] = field(default_factory=list[Row])

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(self.forgotten) or "(?!)", re.IGNORECASE)

    @property
    def allowed(self) -> int:
        return budget(self.ada.definition.window, self.model.context).request


@asynccontextmanager
async def opened(url: str, clock: ManualClock, model: NarrowModel) -> AsyncGenerator[Runtime]:
    async with Runtime(url, clock=clock, models={"m": model}, tools=[look], pace=Pace(warm_seconds=0)) as denizen:
        yield denizen


async def live(url: str, window: dict[str, Any], context: int | None, all_deeds: list[Deed]) -> None:
    clock, model = HurryingClock(), narrow(Behaviour().decide, context, None)
    rest = iter(all_deeds)
    async with opened(url, clock, model) as denizen:
        await denizen.db.write(delete_everything)
        people = [await denizen.people.create(name) for name in PEOPLE]
        how = {"silent_reply": "ignore"}
        ada = await denizen.agents.create("Ada", model="m", tools=["look"], window=window, cycle=how)
        places = [await denizen.spaces.create(name, [*people, ada]) for name in PLACES]
        # Every context here is small, and a small one has fewer tools.
        small = Toolbox([*small_tools(read_entry_tool(denizen.db), recall_tool(denizen.db, None)), look])
        life = Life(denizen, clock, ada, model, TOOLBOX if context is None else small, people, places)
        again = await go_on(life, rest)
    while again:
        async with opened(url, clock, model) as life.denizen:
            again = await go_on(life, rest)


async def go_on(life: Life, rest: Any) -> bool:
    """Live until the house is closed, which is True, or until the end."""
    for deed in rest:
        match deed:
            case "restart":
                life.grown = life.seen
                return True
            case "night":
                life.clock.advance(8 * 3600)
            case Said():
                if not await say(life, deed):
                    continue
            case Changed():
                await change(life, deed)
        await think(life)
    await think(life)
    await check_reachable(life)
    await check_settled(life)
    assert not await life.denizen.db.read(violations)
    return False


async def think(life: Life) -> None:
    await come_to_rest(life.denizen, life.clock, life.denizen.run_until_idle)
    check_requests(life)
    await check_rows(life)


async def say(life: Life, what: Said) -> bool:
    """Whether the agent is to think about it now. Who is forgotten says nothing any more."""
    if what.who in life.left[0] or what.where in life.left[1]:
        return False
    number = len(life.posted)
    posted = await life.denizen.spaces.post(life.places[what.where], life.people[what.who], what.text(number))
    life.posted.append(Posted(posted.id, number, what.who, what.where, what))
    return not what.waits


# Changing what was said


async def change(life: Life, what: Changed) -> None:
    match what.how:
        case "forget person" if len(life.left[0]) == 0:
            await forget_person(life, what.which % 2)
        case "forget space" if len(life.left[1]) == 0:
            await forget_space(life, what.which % 2)
        case "edit" | "delete" | "forget message":
            there = [each for each in life.posted if not each.gone]
            if there:
                await change_message(life, there[what.which % len(there)], what.how)
        case _:
            pass


async def change_message(life: Life, which: Posted, how: str) -> None:
    author = life.people[which.who]
    if how == "forget message":
        await life.denizen.spaces.forget_message(which.id)
        await gone(life, [which])
    elif which.deleted:
        return
    elif how == "edit" and not which.edited:
        which.edited = True
        await life.denizen.spaces.edit_message(which.id, which.said.text(which.number, "e"), by=author)
    elif how == "delete":
        which.deleted = True
        await life.denizen.spaces.delete_message(which.id, by=author)


async def forget_person(life: Life, who: int) -> None:
    life.left[0].add(who)
    await life.denizen.people.forget(life.people[who].id)
    await gone(life, [each for each in life.posted if each.who == who], PEOPLE[who])


async def forget_space(life: Life, where: int) -> None:
    life.left[1].add(where)
    own = await life.denizen.db.read(_said_in, life.places[where].id)
    await life.denizen.spaces.forget(life.places[where].id)
    answers = sorted(set(re.findall(r"\bown\d+x", " ".join(own))))
    await gone(life, [each for each in life.posted if each.where == where], PLACES[where], *answers)


async def gone(life: Life, these: list[Posted], *patterns: str) -> None:
    """None of it is anywhere, from now on."""
    for each in these:
        each.gone = True
    life.forgotten += [rf"\b[me]{each.number}x\d" for each in these] + list(patterns)
    life.grown, life.logged = life.seen, []
    rows = await life.denizen.db.read(everything)
    left = [(table, row) for table, found in rows.items() for row in found if life.pattern.search(str(row))]
    assert left == []
    assert not await life.denizen.db.read(violations)


_texts = statement(select(message_rows.c.text).where(message_rows.c.space_id == bindparam("space_id")))


def _said_in(tx: Tx, space_id: str) -> list[str]:
    return [row[0] for row in tx.all(_texts, space_id=space_id)]


# What is true of every life


def check_requests(life: Life) -> None:
    """Each fits, is well formed, goes on with the one before it, and holds nothing that was forgotten."""
    requests = life.model.requests
    for at in range(life.seen, len(requests)):
        request = requests[at]
        assert sum(map(estimate_message, request)) + life.toolbox.tokens <= life.allowed
        check_well_formed(request)
        assert not life.pattern.search("\n".join(map(as_text, request)))
        if at > life.grown:
            check_goes_on(requests[at - 1], request)
    life.seen = len(requests)


def check_goes_on(old: list[ModelMessage], new: list[ModelMessage]) -> None:
    """In one era nothing is rewritten: more is appended, a cycle that came to nothing is taken back, old ones leave.

    Results of tools may be shortened, and what came to mind is left out, where there is no more room.
    """
    if self_and_layers(old) != self_and_layers(new):
        return
    before, after = lasting(old), lasting(new)
    begun = max(at for at, text in enumerate(before) if text.startswith("[INBOX - "))
    alone = sum(text.startswith("[INBOX - ") for text in after) == 1
    assert alone or goes_on(before, after) or goes_on(before[:begun], after)


def goes_on(before: list[str], after: list[str]) -> bool:
    """Whether one begins with the other, or with the end of it."""
    return any(after[: len(before) - at] == before[at:] for at in range(len(before)))


def self_and_layers(request: list[ModelMessage]) -> list[str]:
    first = as_text(request[1])
    return [as_text(request[0]), first if first.startswith(("[COMPACTED MEMORY", "[EARLIER CYCLES")) else ""]


def lasting(request: list[ModelMessage]) -> list[str]:
    """What stays as it is while it is in the window."""
    texts = [as_text(each) for each in request[1:] if not isinstance(each.parts[0], ToolReturnPart)]
    passing = ("[COMPACTED MEMORY", "[EARLIER CYCLES", "[RECALLED", "[INBOX PREVIEW")
    return [text for text in texts if not text.startswith(passing)]


_eras = statement(
    select(selves.c.era, selves.c.layers)
    .where(selves.c.agent_id == bindparam("agent_id"))
    .order_by(selves.c.era.desc())
)
_log = statement(
    select(log.c.seq, log.c.kind, log.c.message, log.c.tokens)
    .where(log.c.agent_id == bindparam("agent_id"))
    .order_by(log.c.seq)
)


def _rows(tx: Tx, agent_id: str) -> tuple[list[Row], list[Row]]:
    return tx.all(_eras, agent_id=agent_id), tx.all(_log, agent_id=agent_id)


def levels_in(block: str) -> dict[int, int]:
    """How many cycles each cycle of a block is told together with."""
    told: dict[int, int] = {}
    for each in block.split("\n\n"):
        if found := re.match(r"\[COMPACTED MEMORY — cycles (\d+)–(\d+)\]", each):
            first, last = int(found[1]), int(found[2])
            told |= dict.fromkeys(range(first, last + 1), last - first + 1)
        else:
            told |= {int(number): 1 for number in re.findall(r"^Cycle (\d+) ", each, re.MULTILINE)}
    return told


async def check_rows(life: Life) -> None:
    """The layers and the window cover the life; what is told together stays so; the log only grows."""
    eras, logged = await life.denizen.db.read(_rows, life.ada.id)
    assert logged[: len(life.logged)] == life.logged
    life.logged = logged
    count = len(await life.denizen.minds.cycles(life.ada))
    told = levels_in(eras[0][1] or "") if eras else {}
    assert sorted(told) == list(range(1, len(told) + 1))
    shown = len({each.cycle_id for each in (await load(life)).past})
    assert len(told) + shown == count
    assert all(told.get(number, 0) >= together for number, together in life.levels.items())
    life.levels = told


async def load(life: Life) -> mind.Mind:
    lease = await life.denizen.db.write(leases.acquire, life.ada.id, "test")
    assert lease is not None
    ada = await life.denizen.agents.get(life.ada)
    who = Identity(ada.entity, ada.definition.instructions, ada.definition.zone)
    room = budget(ada.definition.window, life.model.context)
    found = await life.denizen.db.read(mind.load, lease, who, ada.version, ada.definition.window, room, None)
    await life.denizen.db.write(leases.release, lease)
    return found


_lived = statement(
    select(events.c.message_id)
    .join(cycles, cycles.c.id == events.c.cycle_id)
    .where(events.c.agent_id == bindparam("agent_id"), events.c.state == "done", events.c.message_id.is_not(None))
)


def _heard(tx: Tx, agent_id: str) -> set[str]:
    """The messages that the agent has lived with: not those of skipped cycles, which leave no trace."""
    return {row[0] for row in tx.all(_lived, agent_id=agent_id)}


async def check_reachable(life: Life) -> None:
    """Whatever was said and not skipped is in the window or found by recall; what is forgotten is not found."""
    window = "\n".join(as_text(each.message) for each in (await load(life)).past)
    assert not life.pattern.search(window)
    heard = await life.denizen.db.read(_heard, life.ada.id)
    for each in life.posted:
        word = f"{'e' if each.edited else 'm'}{each.number}x0"
        found = await recalled(life, word, each.where)
        if each.gone:
            assert not found, word
        elif each.deleted:
            # What the agent itself has said of it since is its own.
            assert not any(word in text for kind, text in found if kind == "heard"), word
        elif each.id in heard and word not in window:
            assert any(word in text for _, text in found), word


async def recalled(life: Life, word: str, where: int) -> list[tuple[str, str]]:
    found = await life.denizen.db.read(search, life.ada.id, word, audience=[life.places[where].id])
    assert not any(life.pattern.search(each.text) for each in found)
    return [(each.kind, each.text) for each in found]


async def check_settled(life: Life) -> None:
    """Compacting once more changes nothing, and compacting when there is no need does so once at most."""
    found = await load(life)
    lease = await life.denizen.db.write(leases.acquire, life.ada.id, "test")
    assert lease is not None
    for changes in (True, False):
        before = await life.denizen.db.read(everything)
        done = await life.denizen.db.write(compaction.compact, lease, compaction.crowded(found, life.toolbox.tokens))
        assert isinstance(done, CompactedMind)
        found.settle(*done)
        assert changes or await life.denizen.db.read(everything) == before
    assert not compaction.is_due(found, life.toolbox.tokens)
    await life.denizen.db.write(leases.release, lease)


NEARLY_FULL: Final[list[Deed]] = [
    Said(who=0, where=0, words=3, looks=(), how="own", fails="", ends=False, long=0, waits=True),
    Said(who=0, where=0, words=3, looks=(10,), how="own", fails="", ends=False, long=3000, waits=False),
    "night",
    Said(who=0, where=1, words=6, looks=(500, 3000), how="own", fails="", ends=False, long=0, waits=False),
    Said(who=0, where=1, words=3, looks=(500, 10, 500), how="own", fails="", ends=False, long=0, waits=False),
]


@settings(max_examples=max(EXAMPLES // 4, 1))
@given(window=windows, context=contexts, deeds=deeds)
@example(window={"max_tokens": 2323, "output_tokens": 256}, context=2623, deeds=NEARLY_FULL)
def test_nothing_of_any_life_is_lost_by_accident_or_kept_against_anyones_will(
    fresh: Callable[[], str], window: dict[str, Any], context: int | None, deeds: list[Deed]
) -> None:
    asyncio.run(live(fresh(), window, context, deeds))


@settings(max_examples=max(EXAMPLES // 20, 1))
@given(window=windows, context=contexts, deeds=deeds)
def test_it_is_the_same_on_postgresql(
    used_postgres: str, window: dict[str, Any], context: int | None, deeds: list[Deed]
) -> None:
    asyncio.run(live(used_postgres, window, context, deeds))
