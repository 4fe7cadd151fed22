"""Whatever a life was like: what is forgotten is gone, and every row that did not carry it is as it was."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage

from denizen import call, reply, skip
from denizen.api.retention import remove_expired
from denizen.checker import check_deeply
from denizen.ids import SpaceId
from denizen.models.scripted import Info, Turn
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from denizen.spaces.posting import Posted
from denizen.spaces.quotes import FORGOTTEN
from denizen.storage.database import Tx
from tests.properties.house import COLUMNS, Rows, delete_everything, everything
from tests.world import World, open_world

PEOPLE = ("Noor", "Bert")
SPACES = ("Quarry", "Lagoon")
INDEX = ("passages", "postings", "recalls", "fingerprints", "vectors", "wordings", "redactions")
"""Tables of the recall, which are changed with what they index, and the receipts."""
BOOKKEEPING = {
    "leases": {"holder", "epoch", "until"},
    "minds": {"era_version", "news", "head"},
    "agents": {"version"},
    "spaces": {"head"},
    "events": {"state"},
    "log": {"tokens"},
    "contents": {"digest", "dropped_at", "reading"},
}
"""Columns that say who thinks, in which era, and the heads of chains: a forgetting moves them on."""


@dataclass(frozen=True)
class Step:
    """Someone says so many words somewhere, and the agent does something about it."""

    who: int
    where: int
    words: int
    how: Literal["quote", "own words", "note", "plan", "read", "recall", "skip", "file"]


steps = st.builds(
    Step,
    who=st.integers(0, 1),
    where=st.integers(0, 1),
    words=st.integers(3, 14),
    how=st.sampled_from(["quote", "own words", "note", "plan", "read", "recall", "skip", "file"]),
)


def text_of(at: int, step: Step) -> str:
    """Words that nobody else says."""
    return " ".join(f"m{at}x{number}" for number in range(step.words))


def turns_for(at: int, step: Step) -> list[Turn]:
    text = text_of(at, step)
    own = " ".join(f"own{at}y{number}" for number in range(9))
    match step.how:
        case "quote":
            return [reply(f"You say: {text}!"), f"{PEOPLE[step.who]} says {text}"]
        case "own words":
            return [reply(own), f"Answered {at}."]
        case "note":
            return [call("set_memories", memories=[{"key": f"k{at}", "text": f"Heard: {text}"}]), f"Noted {at}."]
        case "plan":
            return [call("set_timer", name=f"p{at}", reason=text, after="5 days"), f"Planned {at}."]
        case "read":
            return [call("read_messages"), f"Read {at}."]
        case "recall":
            return [call("recall", query=text), f"Recalled {at}."]
        case "skip":
            return [skip("Not mine.")]
        case "file":
            return [_open_file, f"Read {at}."]


def _open_file(messages: list[ModelMessage], _info: Info) -> Turn:
    """Reads the file of the message that has just come."""
    (entry,) = re.findall(r'read_entry\("(file:[^"]+)"\)', str(messages[-1].parts[0]))
    return call("read_entry", entry=entry)


async def live(world: World, life: list[Step], pause_before: int = -1) -> list[Posted]:
    noor, bert = await world.person(PEOPLE[0]), await world.person(PEOPLE[1])
    turns = [turn for at, step in enumerate(life) for turn in turns_for(at, step)]
    ada = await world.agent("Ada", *turns, cycle={"silent_reply": "ignore"}, private_guard={"enabled": False})
    places = [await world.space(name, noor, bert, ada) for name in SPACES]
    posted: list[Posted] = []
    for at, step in enumerate(life):
        if at == pause_before:
            world.clock.advance(100 * 86_400)
        posted.append(await _say(world, (noor, bert)[step.who], places[step.where], at, step))
        await world.run()
    return posted


async def _say(world: World, who: Entity, where: Space, at: int, step: Step) -> Posted:
    text = text_of(at, step)
    if step.how != "file":
        return await world.say(who, text, where)
    file = await world.denizen.files.upload(who, text.encode(), name=f"m{at}x0.txt")
    return await world.denizen.spaces.post(where, who, "Look.", files=[file])


def carrying(life: list[Step], kind: str, which: int) -> re.Pattern[str]:
    """What tells a row that carries what is forgotten."""
    if kind == "message":
        return re.compile(rf"\bm{which % len(life)}x\d")
    of = [at for at, step in enumerate(life) if (step.who if kind == "person" else step.where) == which % 2]
    name = (PEOPLE if kind == "person" else SPACES)[which % 2]
    alternatives = [name, *(rf"\bm{at}x\d" for at in of)]
    if kind == "space":
        # What the agent said there is said in that space as well.
        alternatives += [rf"\bown{at}y\d" for at in of if life[at].how == "own words"]
    return re.compile("|".join(alternatives), re.IGNORECASE)


def flat(rows: Rows) -> dict[tuple[str, str], dict[str, object]]:
    """Every row that is no index, by its table and its key."""
    return {
        (table, str(row[: 3 if table in ("effects", "layers", "roster") else 2 if table in PAIRS else 1])): dict(
            zip(COLUMNS[table], row, strict=True)
        )
        for table, found in rows.items()
        if table not in INDEX
        for row in found
    }


PAIRS = ("selves", "goals", "notes", "memberships", "spending", "file_pages", "heard_files")


def unchanged(before: Rows, after: Rows, pattern: re.Pattern[str], gone: set[str]) -> None:
    old, new = flat(before), flat(after)
    added = {table for table, _ in new.keys() - old.keys()}
    assert added <= {"audit", "amendments"}, "that something was forgotten is kept, no more"
    for key, row in old.items():
        table = key[0]
        if pattern.search(" ".join(str(value) for value in row.values())) or gone & {
            str(each) for each in row.values()
        }:
            continue
        assert key in new, key
        moved = {name for name, value in row.items() if new[key][name] != value}
        assert moved <= BOOKKEEPING.get(table, set()), (key, row, new[key])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def used_url(request: pytest.FixtureRequest) -> str:
    """One database for all examples, which each empties first."""
    if request.param == "sqlite":
        return request.getfixturevalue("fresh")()
    return request.getfixturevalue("used_postgres")


@given(
    life=st.lists(steps, min_size=1, max_size=4),
    kind=st.sampled_from(["message", "person", "space"]),
    which=st.integers(0, 4),
)
@settings(max_examples=12)
def test_what_is_forgotten_is_gone_and_nothing_else_is(used_url: str, life: list[Step], kind: str, which: int) -> None:
    asyncio.run(_check(used_url, life, kind, which))


async def _check(url: str, life: list[Step], kind: str, which: int) -> None:
    async with open_world(url) as world:
        await world.denizen.db.write(delete_everything)
        posted = await live(world, life)
        before = await world.denizen.db.read(everything)
        pattern = carrying(life, kind, which)
        match kind:
            case "message":
                subject = posted[which % len(life)].id
                receipt = await world.denizen.spaces.forget_message(subject)
            case "person":
                subject = (await world.denizen.people.find(PEOPLE[which % 2])).id
                receipt = await world.denizen.people.forget(subject)
            case _:
                subject = await world.denizen.db.read(_space_named, SPACES[which % 2])
                receipt = await world.denizen.spaces.forget(subject)
        after = await world.denizen.db.read(everything)
        left = [(table, row) for table, rows in after.items() for row in rows if pattern.search(str(row))]
        assert left == []
        unchanged(before, after, pattern, {subject})
        assert await world.denizen.db.read(check_deeply) == []
        assert (await world.denizen.organizations.receipts())[-1] == receipt


@given(life=st.lists(steps, min_size=1, max_size=5), cut=st.integers(0, 5), which=st.integers(0, 1))
@settings(max_examples=12)
def test_what_has_expired_is_gone_and_nothing_else_is(used_url: str, life: list[Step], cut: int, which: int) -> None:
    """Whatever a life was like: of what was said in one space before a day nothing is left, and the rest stays."""
    asyncio.run(_check_expired(used_url, life, cut, which))


async def _check_expired(url: str, life: list[Step], cut: int, which: int) -> None:
    async with open_world(url) as world:
        await world.denizen.db.write(delete_everything)
        posted = await live(world, life, cut)
        if cut >= len(life):
            world.clock.advance(100 * 86_400)
        space_id = await world.denizen.db.read(_space_named, SPACES[which])
        await world.denizen.spaces.set_retention(space_id, 90)
        # What is quoted by a timer that is due is read by the agent: not before this.
        await remove_expired(world.denizen, None, most=2)
        stored = await world.denizen.db.read(everything)
        expired = {at for at, step in enumerate(life) if at < cut and step.where == which}
        for at, step in enumerate(life):
            marks = re.compile(rf"\b(?:m{at}x|own{at}y)\d")
            left = [(table, row) for table, rows in stored.items() for row in rows if marks.search(str(row))]
            assert bool(left) is (at not in expired), (at, step, left)
        gone = {posted[at].id for at in expired}
        told = {row[0]: row for row in stored["messages"] if row[0] in {each.id for each in posted}}
        assert {id for id, row in told.items() if FORGOTTEN in row} == gone
        assert await world.denizen.db.read(check_deeply) == []
        assert await world.denizen.organizations.remove_expired() == []


def _space_named(tx: Tx, name: str) -> SpaceId:
    (home,) = directory.list_organizations(tx)
    return directory.find_spaces(tx, home.id, name)[0].id
