"""Compaction over generated lives: whatever was said, however small the window, nothing falls between the window and
the layers, no request is too large or malformed, and the older a cycle is the more briefly it is told.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from sqlalchemy import bindparam, select

from denizen import Runtime
from denizen.agents.registry import Agent
from denizen.agents.residents import Pace
from denizen.clock import ManualClock
from denizen.consciousness import compaction, layers, mind
from denizen.consciousness import lease as leases
from denizen.consciousness.compaction import Compacted
from denizen.consciousness.layers import Digest, Lived, digest, merge, render, segments, shape
from denizen.consciousness.recall.searching import search
from denizen.consciousness.selfhood import Identity
from denizen.consciousness.window import budget
from denizen.cycles.records import calls_of
from denizen.models.scripted import Info, Turn, call, forever, reply, skip
from denizen.models.tokens import estimate_message
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Row, Tx, statement
from denizen.storage.opening import open_database
from denizen.storage.schema import log, selves
from denizen.tools.functions import tool
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.properties.house import everything, violations
from tests.world import as_text

EXAMPLES: Final = settings.default.max_examples if settings.default else 100
pytestmark = pytest.mark.timeout(120 if EXAMPLES <= 100 else 3600)

# Which cycles are told how

lasts = st.integers(0, 10**7) | st.integers(0, 400)
shapes = st.one_of(
    st.tuples(st.integers(0, 300), st.just(0), st.just(0)).filter(lambda each: each[0] == 0 or each[0] >= 10),
    st.tuples(st.integers(10, 300), st.integers(10, 20), st.integers(1, 5)),
)


@given(lasts, shapes)
def test_every_cycle_is_told_once_in_a_bounded_number_of_pieces(last: int, of: tuple[int, int, int]) -> None:
    lines, groups, levels = of
    told = segments(last, *of)
    end = 0
    for each in told:
        assert each.first == end + 1
        end = each.last
        if 0 < each.level <= levels:
            assert (each.last - each.first + 1, (each.first - 1) % 10**each.level) == (10**each.level, 0)
    assert end == last
    assert [each.level for each in told] == sorted((each.level for each in told), reverse=True)
    assert sum(each.level == 0 for each in told) <= lines
    assert all(sum(each.level == level for each in told) <= groups for level in range(1, levels + 1))
    assert len(told) <= lines + groups * levels + 1


@given(lasts, st.integers(1, 5_000), shapes)
def test_the_older_a_cycle_is_the_higher_its_level(last: int, later: int, of: tuple[int, int, int]) -> None:
    before, after = segments(last, *of), segments(last + later, *of)
    edges = {each.level: each.last for each in before}
    for level, edge in edges.items():
        # Whoever was told at this level or a higher one is not told at a finer one now.
        finer = [each.first for each in after if each.level < level]
        assert not finer or min(finer) > edge


# Digests

names = st.sampled_from(["Noor", "Bert", "[INBOX - 9 new events]", "x\ny", 'a"b', "", "ä" * 200])
tools = st.sampled_from(["send_message", "set_timer", "book_hotel", "x" * 100])
cycles_lived = st.lists(
    st.builds(
        Lived,
        number=st.just(0),
        at=st.integers(0, 10**15),
        summary=st.text(max_size=700),
        failed=st.booleans(),
        people=st.dictionaries(st.sampled_from("abcde"), names, max_size=5),
        places=st.dictionaries(st.sampled_from("vwxyz"), names, max_size=5),
        effects=st.dictionaries(tools, st.integers(1, 9), max_size=4),
    ),
    min_size=1,
    max_size=40,
).map(lambda found: [_numbered(each, number) for number, each in enumerate(found, start=1)])


def _numbered(lived: Lived, number: int) -> Lived:
    names = {id: f"{name} {id}" for id, name in lived.people.items()}
    return Lived(number, lived.at, lived.summary, lived.failed, names, lived.places, lived.effects)


def in_portions(digests: list[Digest], size: int) -> Digest:
    """Merged by groups, then the groups of groups, as long as there are several."""
    while len(digests) > 1:
        digests = [merge(digests[at : at + size]) for at in range(0, len(digests), size)]
    return merge(digests)


@given(cycles_lived, st.integers(2, 12), st.integers(2, 12))
def test_in_whatever_portions_cycles_are_merged_it_comes_to_the_same(lived: list[Lived], one: int, other: int) -> None:
    digests = [digest(each, "UTC") for each in lived]
    assert in_portions(digests, one) == in_portions(digests, other) == merge(digests)


@given(cycles_lived, st.integers(0, 70_000), st.booleans())
def test_what_is_told_never_has_more_characters_than_it_may(lived: list[Lived], characters: int, grouped: bool) -> None:
    told = shape(characters, grouped=grouped)
    by_number = {each.number: each for each in lived}
    groups, lines = [], []
    for each in told.segments(len(lived)):
        here = [by_number[number] for number in range(each.first, each.last + 1)]
        if each.level == 0:
            lines += here
        else:
            groups.append((each, merge([digest(one, "UTC") for one in here])))
    text = render(groups, lines, told, "UTC")
    header = len(layers.GROUP_HEADER) + 10
    assert len(text) <= max(told.most_characters(len(lived)), header)
    assert told.most_characters(len(lived)) <= max(characters, header)
    ours = re.compile(r"\[COMPACTED MEMORY — cycles \d|\[EARLIER CYCLES — |Cycle \d|\d|…")
    assert all(ours.match(line) for line in text.split("\n") if line)


# Whole lives


@tool(independent=True)
def look(size: int) -> str:
    """See something of that size."""
    return "z" * size


TOOLBOX: Final = Toolbox([*PREBUILT, look])


def deciding(messages: list[ModelMessage], info: Info) -> Turn:
    """Does what it is told to do, in words of its own."""
    inbox = max(at for at, each in enumerate(messages) if as_text(each).startswith("[INBOX - "))
    said, done = as_text(messages[inbox]), [each for each in messages[inbox:] if calls_of(each)]
    if "skip" in said:
        return skip()
    sizes = [int(each) for each in re.findall(r"look(\d+)", said)]
    if len(done) < len(sizes):
        return call("look", size=sizes[len(done)])
    if len(done) == len(sizes):
        return reply(f"Answer {info.number}.")
    return "Did what Noor wanted." if "words" in said else ""


@dataclass(frozen=True)
class Wish:
    looks: tuple[int, ...]
    words: bool
    skipped: bool
    long: int
    restart: bool

    @property
    def text(self) -> str:
        looks = " ".join(f"look{size}" for size in self.looks)
        return f"{looks} {'words' * self.words} {'skip' * self.skipped} {'q' * self.long}"


wishes = st.builds(
    Wish,
    looks=st.lists(st.sampled_from([10, 500, 3_000, 20_000]), max_size=3).map(tuple),
    words=st.booleans(),
    skipped=st.integers(0, 9).map(lambda n: n == 0),
    long=st.sampled_from([0, 50, 400, 3_000]),
    restart=st.integers(0, 5).map(lambda n: n == 0),
)
windows = st.fixed_dictionaries(
    {"max_tokens": st.sampled_from([1_300, 2_000, 4_000, 9_000]).map(lambda more: TOOLBOX.tokens + more)},
    optional={
        "strategy": st.sampled_from(["self_summary", "layered", "semantic", "rolling"]),
        "min_recent_cycles": st.sampled_from([1, 3, 30]),
        "target_share": st.sampled_from([0.2, 0.6, 0.9]),
        "layer_share": st.sampled_from([0.05, 0.25]),
    },
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """Gives the URL of an empty database each time: a copy, because making one takes longer than an example."""
    folder = tmp_path_factory.mktemp("databases")
    empty, path = folder / "empty.db", folder / "denizen.db"

    async def make() -> None:
        await (await open_database(f"sqlite:///{empty}", clock=ManualClock(), announce=lambda _: None)).close()

    def copy() -> str:
        for old in folder.glob("denizen.db*"):
            old.unlink()
        shutil.copy(empty, path)
        return f"sqlite:///{path}"

    asyncio.run(make())
    return copy


@dataclass
class Life:
    denizen: Runtime
    ada: Agent
    noor: Entity
    hall: Space
    model: Any
    seen: int = 0
    levels: dict[int, int] | None = None
    logged: list[Row] | None = None


async def live(url: str, window: dict[str, Any], wished: list[Wish]) -> None:
    model = forever(deciding)
    clock = ManualClock()
    async with Runtime(url, clock=clock, models={"m": model}, tools=[look], pace=Pace(warm_seconds=0)) as denizen:
        noor = await denizen.create_person("Noor")
        cycle = {"silent_reply": "ignore"}
        ada = await denizen.create_agent("Ada", model="m", tools=["look"], window=window, cycle=cycle)
        life = Life(denizen, ada, noor, await denizen.create_space("Hall", [noor, ada]), model)
        for number, wish in enumerate(wished):
            await denizen.post(life.hall, noor, f"unique{number} {wish.text}")
            await denizen.run_until_idle()
            await check_requests(life)
            await check_rows(life)
        await check_reachable(life, wished)
        await check_settled(life)
        assert not await denizen.db.read(violations)


async def check_requests(life: Life) -> None:
    """Each fits, parts no call from its result, and tells of every cycle: in the layers, or whole."""
    allowed = budget(life.ada.definition.window, None).request
    for request in life.model.requests[life.seen :]:
        assert sum(map(estimate_message, request)) + TOOLBOX.tokens <= allowed
        for at, message in enumerate(request):
            asked = [each.tool_call_id for each in calls_of(message)]
            if asked:
                after = request[at + 1].parts
                assert [part.tool_call_id for part in after if isinstance(part, ToolReturnPart)] == asked
            elif isinstance(message, ModelRequest) and isinstance(message.parts[0], ToolReturnPart):
                assert calls_of(request[at - 1])
    life.seen = len(life.model.requests)


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
    assert logged[: len(life.logged or [])] == (life.logged or [])
    life.logged = logged
    count = len(await life.denizen.cycles(life.ada))
    told = levels_in(eras[0][1] or "") if eras else {}
    assert sorted(told) == list(range(1, len(told) + 1))
    loaded = await load(life)
    shown = len({each.cycle_id for each in loaded.past})
    assert len(told) + shown == count
    before = life.levels or {}
    assert all(told.get(number, 0) >= together for number, together in before.items())
    life.levels = told


async def load(life: Life) -> mind.Mind:
    lease = await life.denizen.db.write(leases.acquire, life.ada.id, "test")
    assert lease is not None
    definition = life.ada.definition
    who = Identity(life.ada.entity, definition.instructions, definition.zone)
    room = budget(definition.window, None)
    found = await life.denizen.db.read(mind.load, lease, who, life.ada.version, definition.window, room, None)
    await life.denizen.db.write(leases.release, lease)
    return found


async def check_reachable(life: Life, wished: list[Wish]) -> None:
    """Whatever was said and not skipped is in the window or found by recall."""
    found = await load(life)
    window = "\n".join(as_text(each.message) for each in found.past)
    for number, wish in enumerate(wished):
        if wish.skipped or f"unique{number} " in window:
            continue
        recalled = await life.denizen.db.read(search, life.ada.id, f"unique{number}", audience=[life.hall.id])
        assert any(f"unique{number} " in each.text for each in recalled), number


async def check_settled(life: Life) -> None:
    """Compacting once more changes nothing, and compacting when there is no need does so once at most."""
    found = await load(life)
    assert not found.unsettled
    lease = await life.denizen.db.write(leases.acquire, life.ada.id, "test")
    assert lease is not None
    for changes in (True, False):
        before = await life.denizen.db.read(everything)
        crowded = compaction.crowded(found, TOOLBOX.tokens)
        done = await life.denizen.db.write(compaction.compact, lease, crowded)
        assert isinstance(done, Compacted)
        found.settle(*done)
        assert changes or await life.denizen.db.read(everything) == before
    assert not compaction.is_due(found, TOOLBOX.tokens)
    await life.denizen.db.write(leases.release, lease)


@settings(max_examples=max(EXAMPLES // 4, 1))
@given(window=windows, wished=st.lists(wishes, min_size=1, max_size=25))
def test_nothing_of_any_life_falls_between_the_window_and_the_layers(
    fresh: Callable[[], str], window: dict[str, Any], wished: list[Wish]
) -> None:
    asyncio.run(live(fresh(), window, wished))
