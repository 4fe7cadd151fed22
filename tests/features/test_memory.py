"""Long-term memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from denizen import Agent, Entity, MemoryOptions, MemoryPolicy, Space, forever
from tests.memory.conftest import PRESETS, answering, known, remembering, utility, written
from tests.memory.test_keeping import Elsewhere, talk
from tests.memory.test_reminding import VIOLIN, a_home, ask, remembered, reminders
from tests.server.conftest import House, served
from tests.world import World, open_world

LISBON = "Noor lives in Lisbon."
OFF: dict[str, Any] = {"memoryCompaction": {"defaultProfile": "off"}}
PUBLISHING = {"longTermMemory": {"scopes": {"organization": True}, "shareWithOrganization": True}}


@asynccontextmanager
async def memory(**presets: Any) -> AsyncGenerator[World]:
    """A world that summarizes after four messages, except what the test says."""
    async with open_world("sqlite://", memory=remembering(**presets)) as world:
        yield world


@asynccontextmanager
async def a_house() -> AsyncGenerator[tuple[House, Entity, Entity, Space]]:
    """The same over HTTP: Noor, who is the owner, and Sam, a member, with Ada in the kitchen."""
    async with memory() as world, served(world) as house, world.denizen.living():
        noor, sam = await world.person("Noor"), await world.person("Sam")
        ada = await world.agent("Ada", model=forever(answering), window={"strategy": "rolling"})
        yield house, noor, sam, await world.space("Kitchen", noor, sam, ada)


async def converse(world: World, *members: Entity | Agent, name: str = "Kitchen", **items: Any) -> Space:
    """The first member says four things, and the utility model learns these items from it."""
    utility(world, written("They talked.", **items))
    who, *others = members
    space = await world.space(name, who)
    for each in others:
        await world.denizen.spaces.join(space, each, attention="none")
    for number in range(4):
        await world.say(who, f"Remark {number}.", space)
    assert await world.denizen.memory.summarize(space) == "done"
    return space


async def stored(world: World) -> set[tuple[str, str, str]]:
    """The scope, kind and text of all memories."""
    return {(each.scope, each.kind, each.text) for each in await world.denizen.memory.list()}


async def chat(house: House, who: Entity, text: str, **body: Any) -> dict[str, Any]:
    answer = await house.call("POST", "/api/chat", who, json={"agent": "@ada", "text": text, **body})
    assert answer.status_code == 200, answer.text
    await house.world.denizen.run_until_idle()
    return answer.json()


# What is stored


async def test_a_pass_stores_a_snapshot_and_items_of_the_conversation() -> None:
    """Each pass stores a snapshot of the conversation, and its items one by one.

    Docs: memory.md#memories
    """
    async with memory() as world:
        await converse(world, await world.person("Noor"), await world.agent("Ada"), facts=[known(LISBON, 1)])
        found = {each for each in await stored(world) if each[0] == "conversation"}
    assert found == {("conversation", "snapshot", "They talked."), ("conversation", "item", LISBON)}


async def test_the_snapshot_is_the_latest() -> None:
    """There is one snapshot of a conversation: the latest.

    Docs: memory.md#memories
    """
    async with memory() as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        kitchen = await converse(world, noor, ada)
        utility(world, written("They talked on."))
        await talk(world, noor, kitchen, 2)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        assert await stored(world) == {("conversation", "snapshot", "They talked on.")}


async def test_a_person_is_remembered_across_conversations() -> None:
    """What a person says is remembered of that person, and told to agents in other conversations of theirs.

    Docs: memory.md#memories
    Differs: this is on for everyone who is signed in, unless they or the organization switch it off.
    """
    async with memory() as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada", model=forever(answering))
        await converse(world, noor, ada, facts=[known(LISBON, 1)])
        bea = await world.agent("Bea", model=forever(answering))
        await ask(world, noor, await world.space("Study", noor, bea), "Which tram in Lisbon?")
        [told] = await reminders(world, bea)
    assert f"About the person you talk with:\n| {LISBON} (facts)" in told


async def test_the_same_item_of_a_person_is_one_memory() -> None:
    """The same item about a person is one memory, from however many conversations it comes.

    Docs: memory.md#memories
    """
    async with memory() as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        for name, text in (("Kitchen", LISBON), ("Study", "noor lives in LISBON!")):
            await converse(world, noor, ada, name=name, facts=[known(text, 1)])
        [found] = await world.denizen.memory.list(owner=f"user:{noor.id}")
    assert (found.text, len(found.sources)) == (LISBON, 2)


async def test_an_item_is_remembered_between_a_person_and_each_agent() -> None:
    """An item is also remembered between a person and each agent that was there, once for each of them.

    Docs: memory.md#memories
    """
    async with memory() as world:
        noor, ada, bea = await world.person("Noor"), await world.agent("Ada"), await world.agent("Bea")
        for name, agent in (("Kitchen", ada), ("Study", ada), ("Hall", bea)):
            await converse(world, noor, agent, name=name, facts=[known(LISBON, 1)])
        found = [await world.denizen.memory.list(owner=f"persona:{noor.id}:{agent.id}") for agent in (ada, bea)]
    assert [[each.text for each in mine] for mine in found] == [[LISBON], [LISBON]]


async def test_what_is_outdated_is_replaced() -> None:
    """An item that the model says is outdated is linked to what replaces it, and no longer told.

    Docs: memory.md#memories
    """
    async with memory() as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        await converse(world, noor, ada, facts=[known(LISBON, 1)])
        moved = known("Noor lives in Porto.", 1, replaces=LISBON)
        await converse(world, noor, ada, name="Study", facts=[moved])
        found = {each.text: each for each in await world.denizen.memory.list(owner=f"user:{noor.id}")}
    assert found[LISBON].superseded_by == found["Noor lives in Porto."].id


async def test_without_a_person_only_the_conversation_is_remembered() -> None:
    """Where no person speaks, only the conversation itself is remembered.

    Docs: memory.md#memory-settings
    """
    async with memory() as world:
        ada, bea = await world.agent("Ada"), await world.agent("Bea")
        await converse(world, ada, bea, facts=[known("It rains.", 1)])
        assert {scope for scope, _, _ in await stored(world)} == {"conversation"}


async def test_nothing_is_published_for_the_organization_by_default() -> None:
    """Nothing is remembered for the whole organization unless somebody says so, not even if a message names it.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, _, kitchen):
        utility(house.world, *[written("They met.", facts=[known(LISBON, 1)])] * 4)
        for text in ("I live in Lisbon.", "Hm."):
            await chat(house, noor, text, space=kitchen.id, organizationId=kitchen.organization_id)
        assert {scope for scope, _, _ in await stored(house.world)} == {"conversation", "user", "persona"}


async def published(house: House, *members: Entity, **body: Any) -> list[str]:
    """The first tells Ada things in a new conversation, with these settings: what the organization remembers then."""
    items = {
        category: [known(f"{category.capitalize()} of the launch.", 1)]
        for category in ("facts", "preferences", "people", "projects", "decisions", "open_loops", "todos")
    }
    utility(house.world, *[written("They met.", **items)] * 4)
    space = await house.world.space("Hall", *members, *await house.world.denizen.agents.list())
    for text in ("The launch is in May.", "Hm."):
        await chat(house, members[0], text, space=space.id, **body)
    assert (await house.world.denizen.memory.summary(space)).passes > 0
    found = await house.world.denizen.memory.list(owner=f"organization:{space.organization_id}")
    return sorted(each.category for each in found)


async def test_publishing_needs_the_id_the_scope_and_consent() -> None:
    """An item is published for the organization only if the request names it, and scope and sharing are both on.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, _, kitchen):
        home = {"organizationId": kitchen.organization_id}
        unshared = {"longTermMemory": {"scopes": {"organization": True}}}
        scopeless = {"longTermMemory": {"shareWithOrganization": True}}
        assert await published(house, noor, **home, memoryControl=unshared) == []
        assert await published(house, noor, **home, memoryControl=scopeless) == []
        assert await published(house, noor, memoryControl=PUBLISHING) == []
        assert await published(house, noor, **home, memoryControl=PUBLISHING) != []


async def test_only_four_categories_are_published() -> None:
    """Only facts, people, projects and decisions are published for the organization.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, _, kitchen):
        named = {"organizationId": kitchen.organization_id}
        found = await published(house, noor, **named, memoryControl=PUBLISHING)
    assert found == ["decisions", "facts", "people", "projects"]


async def test_only_admins_publish() -> None:
    """Only what admins say is published. Their role is checked when it is written, whatever the conversation allows.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, sam, kitchen):
        named = {"organizationId": kitchen.organization_id}
        assert await published(house, sam, noor, **named, memoryControl=PUBLISHING) == []
        assert await published(house, noor, sam, **named, memoryControl=PUBLISHING) != []


# What is told


async def test_memories_of_the_organization_need_its_id_with_each_message() -> None:
    """Memories of the organization are told if the message names it; the next one has to name it again.

    Docs: memory.md#memory-settings
    """
    async with memory() as world:
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen, "Our violin teacher is Ruth.", scope="organization")
        found: list[bool] = []
        for name, metadata in (("One", {"memory": {"organization": True}}), ("Two", {})):
            before = len(await reminders(world, ada))
            await ask(world, noor, await world.space(name, noor, ada), "Who teaches violin?", metadata=metadata)
            found.append(any("Ruth" in each for each in (await reminders(world, ada))[before:]))
    assert found == [True, False]


@pytest.mark.parametrize("scope", ["user", "persona"])
async def test_each_scope_can_be_switched_off_in_a_conversation(scope: str) -> None:
    """Each scope can be switched off for a conversation; then nothing of it is told there.

    Docs: memory.md#memory-settings
    """
    async with memory() as world:
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen, scope=scope, **({"agent_id": ada.id} if scope == "persona" else {}))
        study = await world.space("Study", noor, ada)
        policy = MemoryPolicy.model_validate({"scopes": {scope: False}})
        await world.denizen.memory.set_policy(kitchen, policy)
        for space, count in ((kitchen, 0), (study, 1)):
            await ask(world, noor, space)
            assert len(await reminders(world, ada)) == count


async def test_a_memory_between_two_is_not_told_to_another_agent() -> None:
    """What is remembered between a person and one agent is not told to another agent.

    Docs: memory.md#memories
    """
    async with memory() as world:
        ada, noor, kitchen = await a_home(world)
        bea = await world.agent("Bea", model=forever(answering))
        await remembered(world, noor, kitchen, scope="persona", agent_id=ada.id)
        for agent in (ada, bea):
            await ask(world, noor, await world.space(f"With {agent.entity.name}", noor, agent))
        assert [len(await reminders(world, each)) for each in (ada, bea)] == [1, 0]


async def test_nothing_about_a_person_is_told_where_others_read() -> None:
    """An agent is told only what everyone in the conversation may know.

    Docs: memory.md#memories
    Differs: being on is not enough for a scope. A secret from a private conversation would appear in a group.
    """
    async with memory() as world:
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen)
        await ask(world, noor, await world.space("Square", noor, await world.person("Sam"), ada))
        assert await reminders(world, ada) == []


async def told_at(routing: dict[str, Any], turns: int, **presets: Any) -> list[int]:
    """The turns in which an agent is told something; before each turn there is something new to tell."""
    async with memory(routing=routing, **presets) as world:
        ada, noor, kitchen = await a_home(world)
        found: list[int] = []
        for turn in range(1, turns + 1):
            await remembered(world, noor, kitchen, f"The violin was tuned in year {turn}.")
            before = len(await reminders(world, ada))
            await ask(world, noor, kitchen)
            found += [turn] if len(await reminders(world, ada)) > before else []
        return found


async def test_memories_are_looked_for_as_often_as_profiles_are_reviewed() -> None:
    """Memories are looked for in the first turn of a conversation, and then every `routing.reviewEveryNTurns` turns.

    Docs: memory.md#memories
    """
    assert await told_at({"reviewEveryNTurns": 3}, 7, **OFF) == [1, 4, 7]


async def test_memories_are_looked_for_every_six_turns_by_default() -> None:
    """Unless you set another number, memories are looked for every 6 turns.

    Docs: memory.md#memories
    """
    assert await told_at({}, 7, **OFF) == [1, 7]


async def after_a_summary(*, forced: bool) -> list[str]:
    """Something is learned, and the conversation summarized, between the first turn and the third: what is told."""
    colours = ("red", "blue", "green")
    async with memory(routing={"reviewEveryNTurns": 50, "forceReviewOnCompaction": forced}) as world:
        utility(world, written("They talked."))
        ada, noor, kitchen = await a_home(world)
        for colour in colours:
            await remembered(world, noor, kitchen, f"A violin is {colour}.")
            await ask(world, noor, kitchen)
        assert (await world.denizen.memory.summary(kitchen)).passes > 0
        return [colour for told in await reminders(world, ada) for colour in colours if f"is {colour}." in told]


async def test_memories_are_looked_for_after_a_summary() -> None:
    """Memories are looked for again when the conversation has been summarized.

    Docs: memory.md#memories
    """
    assert await after_a_summary(forced=True) == ["red", "blue", "green"]


async def test_looking_after_a_summary_can_be_switched_off() -> None:
    """With `routing.forceReviewOnCompaction` false, a summary is no reason to look for memories.

    Docs: memory.md#memories
    """
    assert await after_a_summary(forced=False) == ["red"]


async def test_nothing_is_told_twice() -> None:
    """What an agent was told is not repeated while it is in its window.

    Docs: memory.md#memories
    """
    async with memory(routing={"reviewEveryNTurns": 1}, **OFF) as world:
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen)
        for _ in range(3):
            await ask(world, noor, kitchen)
        assert len(await reminders(world, ada)) == 1


# Settings and switches


async def test_a_conversation_can_opt_out_with_its_first_message() -> None:
    """`enabled: false` with the first message opts the conversation out; later requests that say nothing keep it so.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, _, kitchen):
        utility(house.world, *[written("They met.", facts=[known(LISBON, 1)])] * 4)
        out = {"memoryControl": {"longTermMemory": {"enabled": False}}}
        for more in (out, {}, {}):
            await chat(house, noor, "I live in Lisbon.", space=kitchen.id, **more)
        assert await stored(house.world) == set()
        assert (await house.world.denizen.memory.summary(kitchen)).summary == "They met."


async def test_a_request_overrides_what_was_stored() -> None:
    """What a request says overrides what the conversation has stored, and that the defaults, field by field.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, _, kitchen):
        for control in ({"enabled": False, "scopes": {"user": False}}, {"enabled": True}, {}):
            await chat(house, noor, "Hm.", space=kitchen.id, memoryControl={"longTermMemory": control})
        told = (await house.call("GET", f"/api/spaces/{kitchen.id}/memory", noor)).json()["policy"]
    assert (told["enabled"], told["scopes"]["user"], told["scopes"]["persona"]) == (True, False, None)


async def test_memory_is_controlled_with_each_request() -> None:
    """A request names the organization and sets scopes and sharing, in one JSON object.

    Docs: memory.md#memory-settings
    """
    scopes = {"conversation": True, "user": True, "organization": True}
    control = {"longTermMemory": {"enabled": True, "scopes": scopes, "shareWithOrganization": True}}
    async with a_house() as (house, noor, _, kitchen):
        named = {"organizationId": kitchen.organization_id, "memoryControl": control}
        await chat(house, noor, "Hello.", space=kitchen.id, **named)
        told = (await house.call("GET", f"/api/spaces/{kitchen.id}/memory", noor)).json()["policy"]
    assert told == {"enabled": True, "scopes": {**scopes, "persona": None}, "share_with_organization": True}


async def test_another_organization_cannot_be_named() -> None:
    """A request that names another organization is refused.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, _, kitchen):
        body = {"agent": "@ada", "text": "Hi.", "space": kitchen.id, "organizationId": "org_123"}
        refused = await house.call("POST", "/api/chat", noor, json=body)
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


async def test_admins_switch_memory_off_for_everyone() -> None:
    """Admins can switch off memory, each scope of it, or only publishing, for the whole organization.

    Docs: memory.md#memory-settings
    """
    async with a_house() as (house, noor, sam, _):
        path, off = "/api/organization/memory", {"user": False}
        assert (await house.call("PATCH", path, sam, json=off)).status_code == 403
        assert (await house.call("PATCH", path, noor, json=off)).status_code == 200
        told = (await house.call("GET", path, sam)).json()
        assert (told["user"], told["persona"], told["publish"]) == (False, True, True)
        ada, alone = await house.world.denizen.agents.list(), await house.world.space("Alone", noor)
        await house.world.denizen.spaces.join(alone, ada[0])
        await remembered(house.world, noor, alone)
        await ask(house.world, noor, alone)
        assert await reminders(house.world, ada[0]) == []


async def test_a_switch_holds_for_what_is_written() -> None:
    """What is switched off for the organization is not stored either.

    Docs: memory.md#memory-settings
    """
    async with memory() as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        await world.denizen.memory.change_switches({"user": False})
        await converse(world, noor, ada, facts=[known(LISBON, 1)])
        assert {scope for scope, _, _ in await stored(world)} == {"conversation", "persona"}


async def test_memories_can_be_stored_elsewhere() -> None:
    """Your own class can receive the memories instead of the database; it gets only what is allowed.

    Docs: memory.md#use-another-store
    """
    options = MemoryOptions(presets=lambda: PRESETS, sink="tests.memory.test_keeping:Elsewhere")
    async with open_world("sqlite://", memory=options) as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        await world.denizen.memory.change_switches({"persona": False})
        await converse(world, noor, ada, facts=[known(LISBON, 1)])
        assert await world.denizen.memory.list() == []
    [batch] = Elsewhere.handed
    assert [share.owner.scope for share in batch.shares] == ["conversation", "user"]


async def test_memories_can_be_found_elsewhere() -> None:
    """Your own class can look for memories; what not everyone may know is dropped, whatever it returns.

    Docs: memory.md#use-another-store
    """
    options = MemoryOptions(presets=lambda: OFF, retriever="tests.memory.test_reminding:Gossip")
    async with open_world("sqlite://", memory=options) as world:
        ada, noor, kitchen = await a_home(world)
        await remembered(world, noor, kitchen)
        await remembered(world, await world.person("Sam"), kitchen, "Sam fears the violin.")
        await ask(world, noor, kitchen)
        [told] = await reminders(world, ada)
    assert (VIOLIN in told, "Sam" in told) == (True, False)


async def test_memories_can_be_searched() -> None:
    """What a pass has stored can be searched.

    Docs: memory.md#view-correct-and-forget-memories
    """
    async with memory() as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        await converse(world, noor, ada, facts=[known(LISBON, 1), known("Noor sings.", 2)])
        found = await world.denizen.memory.search("Who lives in Lisbon?", [f"user:{noor.id}"])
    assert [each.item.text for each in found][:1] == [LISBON]


async def test_people_see_and_forget_what_is_remembered() -> None:
    """People see what is remembered about them, and can correct and forget it.

    Docs: memory.md#view-correct-and-forget-memories
    """
    async with a_house() as (house, noor, sam, kitchen):
        await remembered(house.world, noor, kitchen)
        [mine] = (await house.call("GET", "/api/memory", noor)).json()["memories"]
        assert mine["text"] == VIOLIN
        assert (await house.call("GET", f"/api/memory/{mine['id']}", sam)).status_code == 404
        assert (await house.call("DELETE", f"/api/memory/{mine['id']}", noor)).status_code == 204
        assert (await house.call("GET", "/api/memory", noor)).json()["memories"] == []


async def test_a_memory_has_a_history_and_can_be_reverted() -> None:
    """A memory has a history: each version with what changed it and why. A revert is one more change.

    Docs: memory.md#history-of-a-memory
    """
    async with a_house() as (house, noor, _, kitchen):
        await remembered(house.world, noor, kitchen)
        [mine] = (await house.call("GET", "/api/memory", noor)).json()["memories"]
        await house.call("PATCH", f"/api/memory/{mine['id']}", noor, json={"text": "Noor plays the cello."})
        path = f"/api/memory/{mine['id']}"
        learned, corrected = (await house.call("GET", f"{path}/history", noor)).json()["versions"]
        assert (learned["kind"], corrected["kind"], corrected["by_id"]) == ("learned", "corrected", noor.id)
        back = await house.call("POST", f"{path}/revert", noor, json={"version": learned["id"]})
        assert back.json()["text"] == VIOLIN
        kinds = [each["kind"] for each in (await house.call("GET", f"{path}/history", noor)).json()["versions"]]
    assert kinds == ["learned", "corrected", "reverted"]
