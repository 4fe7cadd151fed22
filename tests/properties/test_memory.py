"""What holds of memory for any parameters, any failures of the utility model, any audience, whatever is forgotten."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from pydantic_ai.messages import ModelMessage

from denizen import forever
from denizen.checker import check_database
from denizen.errors import InvalidInput, ModelUnreachable
from denizen.ids import AgentId, EntityId
from denizen.memory import items, permissions
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.memory.policy import SCOPES
from denizen.memory.settings import MemoryOptions
from denizen.memory.sinks import DatabaseRetriever, MemoryQuery
from denizen.models.scripted import Info, ScriptedModel
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx
from tests.memory.conftest import answering
from tests.properties.house import delete_everything, everything
from tests.world import World, as_text, open_world


@pytest.fixture(scope="module")
def used_url(request: pytest.FixtureRequest) -> str:
    """One database for all examples, which each empties first."""
    return request.getfixturevalue("fresh")()


@asynccontextmanager
async def empty_world(url: str, **profile: Any) -> AsyncGenerator[World]:
    async with open_world(url, memory=utility_profile(**profile)) as world:
        await world.denizen.db.write(delete_everything)
        yield world


def utility_profile(**more: Any) -> MemoryOptions:
    profile = {"cooldownMs": 0, "modelId": "utility", **more}
    presets = {"memoryCompaction": {"profiles": {"p": profile}, "defaultProfile": "p"}}
    return MemoryOptions(presets=lambda: presets)


async def a_room(world: World, utility: ScriptedModel, name: str) -> tuple[Entity, Space]:
    """A person in a space with an agent that does not attend to them."""
    world.denizen.models.register("utility", utility)
    noor, ada = await world.person(name), await world.agent(f"{name} Ada", model=forever(answering))
    kitchen = await world.space("Kitchen", noor)
    await world.denizen.spaces.join(kitchen, ada, attention="none")
    return noor, kitchen


# Nothing is lost between the summary and the tail

Whim = Literal["good", "cut off once", "garbage", "empty", "unreachable", "a message comes", "a message is edited"]
WHIMS: tuple[Whim, ...] = (
    "good",
    "cut off once",
    "garbage",
    "empty",
    "unreachable",
    "a message comes",
    "a message is edited",
)
_NUMBERED = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_BEFORE = re.compile(r'^summary_markdown: "([\d ]*)"$', re.MULTILINE)


def counted(messages: list[ModelMessage]) -> str:
    """The numbers of all messages so far: those it was told of before, and those it is shown."""
    told = as_text(messages[1])
    before = _BEFORE.search(told)
    numbers = [*([before[1]] if before and before[1] else []), *_NUMBERED.findall(told)]
    return json.dumps({"summary_markdown": " ".join(numbers), "memory_json": {}})


@settings(max_examples=12)
@given(
    profile=st.fixed_dictionaries(
        {
            "tailTurnsToKeep": st.integers(0, 5),
            "minTurnsToSummarize": st.integers(1, 4),
            "maxTurnsToSummarizePerPass": st.integers(1, 6),
        }
    ),
    steps=st.lists(st.tuples(st.integers(0, 6), st.sampled_from(WHIMS)), min_size=1, max_size=8),
)
def test_no_message_is_lost_between_summary_and_tail_for_any_parameters_and_any_failures_of_the_utility_model(
    used_url: str, profile: dict[str, int], steps: list[tuple[int, Whim]]
) -> None:
    """The summary is of the messages 1 to its cursor, each once and in order; all after it are shown as they are."""
    asyncio.run(_talk_and_fail(used_url, profile, steps))


async def _talk_and_fail(url: str, profile: dict[str, int], steps: list[tuple[int, Whim]]) -> None:
    async with empty_world(url, **profile) as world:
        whim: Whim = "good"
        asked = 0

        async def write(messages: list[ModelMessage], _info: Info) -> Any:
            nonlocal asked
            asked += 1
            match whim:
                case "garbage":
                    return "I'd rather not."
                case "empty":
                    return '{"summary_markdown": " ", "memory_json": {}}'
                case "unreachable":
                    return ModelUnreachable("gone")
                case "cut off once" if asked == 1:
                    return counted(messages)[:-4]
                case "a message comes":
                    await world.say(noor, "Meanwhile.", kitchen)
                case "a message is edited":
                    first = (await world.denizen.spaces.messages(kitchen))[0]
                    await world.denizen.spaces.edit_message(first, f"{first.text} (edited)", by=noor)
                case _:
                    pass
            return counted(messages)

        noor, kitchen = await a_room(world, forever(write), "Noor")
        upto = 0
        for more, next_whim in steps:
            whim = next_whim
            for _ in range(more):
                await world.say(noor, "Go on.", kitchen)
            asked = 0
            came = await world.denizen.memory.summarize(kitchen)
            state = await world.denizen.memory.summary(kitchen)
            said = [each.seq for each in await world.denizen.spaces.messages(kitchen)]
            assert state.summary.split() == [str(number) for number in range(1, state.upto + 1)]
            assert [*range(1, state.upto + 1), *(each for each in said if each > state.upto)] == said
            assert (state.upto > upto) == (came == "done")
            assert state.upto <= max(len(said) - profile["tailTurnsToKeep"], 0)
            upto = state.upto


# What was forgotten is nowhere, and stays out

_WORDS = ("alder", "birch", "cedar", "ebony", "fir", "hazel", "larch", "maple")
_SEEN = re.compile(r'^\[(\d+)\] .*: "Secret (\w+)\."$', re.MULTILINE)


def made_of(word: str) -> str:
    """What the utility model makes of what somebody said: words of its own."""
    return f"Hidden {word.upper()[::-1]} was confided."


def repeating(messages: list[ModelMessage], _info: Info) -> str:
    """A model that tells whatever it sees in its own words, and whatever it was told of before once more."""
    told = as_text(messages[1])
    facts = [{"text": made_of(word), "sources": [int(number)]} for number, word in _SEEN.findall(told)]
    before = re.search(r"^memory_json: (.*)$", told, re.MULTILINE)
    carried = json.loads(before[1]).get("facts", []) if before else []
    # What was kept out comes again and again: as an item, as a line and as a sentence.
    always = [{"text": made_of(word), "sources": [1]} for word in _WORDS[:2]]
    lines = [f"- {each['text']}" for each in [*carried, *facts, *always]]
    summary = "\n".join([*lines, " ".join(each["text"] for each in always)])
    return json.dumps({"summary_markdown": summary, "memory_json": {"facts": [*carried, *facts, *always]}})


@settings(max_examples=12)
@given(
    how=st.sampled_from(["message", "memory", "memory of another", "person", "space"]),
    before=st.integers(3, 6),
    after=st.integers(0, 4),
)
def test_what_was_forgotten_is_in_no_table_index_layer_or_prompt_and_stays_out_when_it_comes_again(
    used_url: str, how: str, before: int, after: int
) -> None:
    """In the words of the model that learned it, although the model says it again in every pass."""
    asyncio.run(_learn_and_forget(used_url, how, before, after))


async def _learn_and_forget(url: str, how: str, before: int, after: int) -> None:
    profile = {"tailTurnsToKeep": 1, "minTurnsToSummarize": 2, "maxTurnsToSummarizePerPass": 8}
    async with empty_world(url, **profile) as world:
        model = forever(repeating)
        noor, kitchen = await a_room(world, model, "Noor")
        for word in _WORDS[:before]:
            await world.say(noor, f"Secret {word}.", kitchen)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        secret = made_of(_WORDS[0])
        assert secret in str(await world.denizen.db.read(everything))
        await _forget(world, noor, kitchen, secret, how)
        assert secret not in str(await world.denizen.db.read(everything))
        # A person or a space that is forgotten says nothing any more.
        if how in ("person", "space"):
            return
        asked = len(model.requests)
        for word in _WORDS[before : before + after]:
            await world.say(noor, f"Secret {word}.", kitchen)
            await world.denizen.memory.summarize(kitchen)
        left = await world.denizen.db.read(everything)
        terms = {row[1] for row in left["memory_terms"]}
        assert secret not in str(left)
        assert not {_WORDS[0].upper()[::-1].lower()} & terms
        assert not [each for asked_with in model.requests[asked:] for each in asked_with if secret in as_text(each)]


async def _forget(world: World, noor: Entity, kitchen: Space, secret: str, how: str) -> None:
    known = [each for each in await world.denizen.memory.list() if each.text == secret]
    match how:
        case "message":
            await world.denizen.spaces.forget_message((await world.denizen.spaces.messages(kitchen))[0].id)
        case "memory":
            await world.denizen.memory.forget(next(each for each in known if each.scope == "conversation"))
        case "memory of another":
            await world.denizen.memory.forget(next(each for each in known if each.scope == "user"))
        case "person":
            await world.denizen.people.forget(noor)
        case _:
            await world.denizen.spaces.forget(kitchen)


# What was forgotten does not come back by a revert

_TEAS = tuple(f"Tea number {word} is served." for word in _WORDS[:5])
_AT = st.integers(0, len(_TEAS) - 1)
_DEEDS = st.one_of(
    st.tuples(st.just("learn"), _AT, _AT),
    st.tuples(st.just("correct"), _AT, _AT),
    st.tuples(st.just("revert"), _AT, st.integers(0, 9)),
    st.tuples(st.just("forget"), _AT, _AT),
)


@settings(max_examples=25)
@given(deeds=st.lists(_DEEDS, min_size=4, max_size=14))
def test_forgotten_text_never_comes_back_by_a_revert(used_url: str, deeds: list[tuple[str, int, int]]) -> None:
    """Whatever was learned, corrected, reverted and forgotten before, for two owners with copies of one another."""
    asyncio.run(_change_and_forget(used_url, deeds))


async def _change_and_forget(url: str, deeds: list[tuple[str, int, int]]) -> None:
    async with empty_world(url) as world:
        noor = await world.person("Noor")
        kitchen = await world.space("Kitchen", noor)
        home = kitchen.organization_id
        owners = [Owner("user", home, user_id=noor.id), Owner("conversation", home, space_id=kitchen.id)]
        memory, gone = world.denizen.memory, set[str]()
        for at, (deed, which, other) in enumerate(deeds):
            found = {each.text: each for each in await memory.list(owner=owners[0].key)}
            item = found.get(_TEAS[which])
            if deed == "learn":
                what = [Candidate("facts", _TEAS[which], (f"m{at}",), replaces=(_TEAS[other],))]
                for owner in owners:
                    await world.denizen.db.write(items.remember, owner, kitchen.id, what)
            elif item is None:
                continue
            elif deed == "correct" and _TEAS[other] not in gone:
                await memory.correct(item, _TEAS[other])
            elif deed == "revert":
                versions = await memory.history(item)
                with suppress(InvalidInput):
                    await memory.revert(item, versions[other % len(versions)])
            elif deed == "forget":
                linked = {each.text for each in await memory.history(item)}
                await memory.forget(item)
                left = {each.text for each in await memory.list()}
                gone |= linked - left
                assert item.text in gone
            stored = str(await world.denizen.db.read(everything))
            assert not [text for text in gone if text in stored]
            for each in await memory.list():
                versions = await memory.history(each)
                assert each.text in {one.text for one in versions}
                assert sum(one.current for one in versions) == 1
        assert await check_database(world.denizen.db) == []


# Retrieval never returns what the audience may not see

_PEOPLE, _AGENTS = ("noor", "sam"), ("ada", "bee")
_MEMBERS = (*_PEOPLE, *_AGENTS, "hook")


@settings(max_examples=12)
@given(
    members=st.lists(st.sets(st.sampled_from(_MEMBERS)), min_size=1, max_size=3),
    speaker=st.sampled_from(_PEOPLE),
    named=st.booleans(),
    agent=st.sampled_from(_AGENTS),
)
def test_retrieval_never_returns_what_the_audience_may_not_see(
    used_url: str, members: list[set[str]], speaker: str, named: bool, agent: str
) -> None:
    """Everyone in all the spaces may know each memory that is brought back, and what all may know is brought back."""
    asyncio.run(_look(used_url, members, speaker, named, agent))


async def _look(url: str, members: list[set[str]], speaker: str, named: bool, agent: str) -> None:
    async with empty_world(url) as world:
        ids: dict[str, EntityId] = {name: (await world.person(name)).id for name in _PEOPLE}
        ids |= {name: (await world.agent(name)).entity.id for name in _AGENTS}
        spaces = [await world.space(f"Room {at}") for at in range(len(members) + 1)]
        home = spaces[0].organization_id
        hook = await world.denizen.db.write(directory.create_entity, home, "service", name="Hook", handle="hook")
        ids["hook"] = hook.id
        for space, there in zip(spaces, members, strict=False):
            for name in sorted({*there, speaker, agent}):
                await world.denizen.spaces.join(space, ids[name])
        metadata: dict[str, JsonValue] | None = {"memory": {"organization": True}} if named else None
        posted = await world.denizen.spaces.post(spaces[0], ids[speaker], "Violin?", metadata=metadata)
        await world.denizen.db.write(_remember_for_all, ids, spaces)
        of_cycle = [each.id for each in spaces[:-1]]
        readable = await world.denizen.db.read(permissions.readable, AgentId(ids[agent]), of_cycle, [posted.id])
        wanted = MemoryQuery("violin", readable.owners, dict.fromkeys(SCOPES, 6))
        found = {each.owner for each in await DatabaseRetriever(world.denizen.db).retrieve(wanted)}
        known = {f"conversation:{of_cycle[0]}"} if len(of_cycle) == 1 else set[str]()
        everyone = {speaker, agent}.union(*members)
        if "hook" not in everyone:
            known |= {f"organization:{home}"} if named else set()
            alone = not everyone.intersection(_PEOPLE) - {speaker}
            known |= {f"user:{ids[speaker]}"} if alone else set()
            the_two = alone and not everyone.intersection(_AGENTS) - {agent}
            known |= {f"persona:{ids[speaker]}:{ids[agent]}"} if the_two else set()
        assert found == known


def _remember_for_all(tx: Tx, ids: dict[str, EntityId], spaces: list[Space]) -> None:
    """Everyone who can remember something remembers a violin."""
    home = spaces[0].organization_id
    owners = [Owner("organization", home), *(Owner("conversation", home, space_id=each.id) for each in spaces)]
    for person in _PEOPLE:
        owners.append(Owner("user", home, user_id=ids[person]))
        owners += [Owner("persona", home, user_id=ids[person], agent_id=AgentId(ids[agent])) for agent in _AGENTS]
    for owner in owners:
        items.remember(tx, owner, spaces[0].id, [Candidate("facts", f"A violin of {owner.key}.", ("m",))])
