"""The client knows the whole API: each method asks a real server, and understands what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date

import pytest
from pydantic import JsonValue

from denizen.client import AgentStatus, Client, Connected, Lost, Message
from denizen.errors import RequestRefused
from denizen.ids import EntityId, OrganizationId
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.shapes.events import CycleEnded, StreamReady
from tests.cli.chat.houses import House, open_house


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(ready_sqlite_url) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncGenerator[Client]:
    async with Client(house.url, house.token) as client:
        yield client


async def test_people_and_places(client: Client, house: House) -> None:
    home = await client.change_organization(name="Our house")
    assert (home.name, (await client.organization()).id) == ("Our house", home.id)
    sam = await client.create_entity("Sam", key="sam")
    assert (await client.create_entity("Sam", key="sam")).id == sam.id
    assert (await client.change_entity("@sam", name="Samira", role="admin")).role == "admin"
    page = await client.entities(kind="human", limit=1)
    assert [each.handle for each in page.entities] == ["noor"]
    assert [each.handle for each in (await client.entities(kind="human", after=page.next or "")).entities] == ["sam"]
    garden = await client.create_space("Garden", ["@sam"], key="garden")
    said = await client.post(garden.id, "Tea is ready.", metadata={"pot": 1})
    assert (await client.edit_message(garden.id, said.id, "Tea was ready.")).text == "Tea was ready."
    assert [each.id for each in (await client.search("tea")).messages] == [said.id]
    assert (await client.mark_read(garden.id, 0)).unread == 1
    await client.delete_message(garden.id, said.id)
    assert (await client.search("tea")).messages == []
    await client.remove_entity("@sam")
    assert (await client.entity(sam.id)).left_at is not None


async def test_what_is_remembered(client: Client, house: House) -> None:
    me = await client.me()
    home = (await client.organization()).id
    owner = Owner("user", OrganizationId(home), user_id=EntityId(me.id))
    what = [Candidate("facts", "Noor sings.", ("m",))]
    await house.runtime.db.write(items.remember, owner, house.room.id, what)
    (memory,) = (await client.memories()).memories
    assert (await client.memories(query="sings")).memories == [await client.memory(memory.id)]
    assert (await client.correct_memory(memory.id, "Noor dances.")).text == "Noor dances."
    learned, corrected = (await client.memory_history(memory.id)).versions
    assert (corrected.kind, corrected.by_id, corrected.current) == ("corrected", me.id, True)
    assert [(each.kind, each.text) for each in corrected.difference][1:] == [
        ("removed", "sings."), ("added", "dances."),
    ]  # fmt: skip
    assert (await client.revert_memory(memory.id, learned.id)).text == "Noor sings."
    assert (await client.revert_memory(memory.id, corrected.id)).text == "Noor dances."
    assert (await client.memory_report()).counts == {"user": 1}
    assert (await client.set_memory_policy(house.room.id, enabled=False)).policy.enabled is False
    assert (await client.conversation_memory(house.room.id)).upto == 0
    assert (await client.conversation_memories(house.room.id)).memories == []
    assert (await client.agent_memories("@ada")).memories == []
    assert (await client.change_organization_memory(publish=False)).publish is False
    assert (await client.organization_memory()).user is True
    await client.forget_memory(memory.id)
    assert [each.text for each in (await client.memories()).memories] == ["Noor dances."]


async def test_an_agent_and_its_mind(client: Client, house: House) -> None:
    await client.post(house.room.id, "The lighthouse is closed.")
    await house.runtime.run_until_idle()
    (cycle,) = (await client.cycles("@ada")).cycles
    assert (cycle.number, cycle.outcome) == (1, "acted")
    assert len((await client.cycle("@ada", 1)).each_step) == cycle.steps
    asked = await client.request("@ada", 1, 0)
    assert (asked.cycle, asked.step, len(asked.messages) > 0) == (1, 0, True)
    assert [each.kind for each in (await client.log("@ada", limit=2)).entries] != []
    assert (await client.mind("@ada")).cycles == 1
    assert any("closed" in each.text for each in await client.recall("@ada", "lighthouse", space=house.room.id))
    assert (await client.crossings("@ada")).crossings == []
    goal = await client.add_goal("@ada", "Be kind.", priority="high")
    assert (await client.change_goal("@ada", goal.number, status="done")).status == "done"
    await client.delete_goal("@ada", goal.number)
    await client.set_note("@ada", "tea/pot", "Milk.")
    assert [(each.key, each.text) for each in await client.notes("@ada")] == [("tea/pot", "Milk.")]
    await client.delete_note("@ada", "tea/pot")
    await client.set_plan("@ada", "stand up", "Ask.", cron="0 9 * * *")
    assert [each.name for each in await client.plans("@ada")] == ["stand up"]
    await client.delete_plan("@ada", "stand up")
    assert (await client.goals("@ada"), await client.notes("@ada"), await client.plans("@ada")) == ([], [], [])
    fork = await client.fork_agent("@ada", "ada-2")
    assert (fork.handle, fork.cycles) == ("ada-2", 1)


async def test_a_stance(client: Client, house: House) -> None:
    room = house.room.id
    assert (await client.profiles()).profiles == ["off", "basic", "standard", "advanced", "tutor"]
    assert (await client.try_profile("Briefly.")).id is None
    assert (await client.set_state_of_mind("@ada", room, mood="patient")).state.mood == "patient"
    settings: dict[str, JsonValue] = {"reflection": {"profile": "basic"}}
    assert (await client.set_stance_settings("@ada", room, settings)).settings == settings
    assert [each.space_id for each in await client.stances("@ada")] == [room]
    assert (await client.signals("@ada", room)).signals == []
    tried = await client.try_metaprompt("@ada", room, template="How is {{current_mood}}?")
    assert (tried.prompt, tried.before.mood, tried.applied) == ("How is patient?", "patient", False)
    await client.reset_state_of_mind("@ada", room)
    assert (await client.stance("@ada", room)).state.mood == "neutral"
    assert [each.cause for each in (await client.states_of_mind("@ada", room)).runs] == ["reset", "set"]


async def test_an_inbox_and_use(client: Client, house: House) -> None:
    await client.suspend_agent("@bo")
    await client.trigger("@bo", "builds", "It broke.")
    (event,) = (await client.inbox("@bo")).events
    await client.mark_urgent("@bo", event.id)
    assert (await client.inbox("@bo")).events[0].lane == "urgent"
    with pytest.raises(RequestRefused) as refused:
        await client.requeue("@bo", event.id)
    assert (refused.value.problem, refused.value.status) == ("not_found", 404)
    assert (await client.set_budget(tokens_per_day=1_000)).limits.tokens_per_day == 1_000
    assert (await client.budget()).limits.dollars is None
    today = date(2026, 1, 5)
    assert [each.day for each in (await client.usage(since=today, until=today, by="model")).days] == [today]
    listed = await client.models(setup=True)
    assert "demo" in {each.name for each in listed.models}
    assert (listed.may_choose, listed.setup is not None) == (True, True)
    assert (await client.test_model("demo")).ok
    assert (await client.choose_model("demo")).default_source == "chosen"
    assert (await client.forget_chosen_model()).default_source == "demo"
    said = await client.post(house.cellar.id, "Forget this.")
    assert (await client.forget("message", said.id, dry_run=True)).dry_run
    receipt = await client.forget("message", said.id)
    assert [each.id for each in (await client.receipts()).receipts] == [receipt.id]


async def test_ways_in(client: Client) -> None:
    made = await client.create_token("a program", role="member")
    assert made.token.role == "member"
    assert (await client.rotate_token(made.token.id)).secret != made.secret
    await client.revoke_token(made.token.id)
    (revoked,) = [each for each in await client.tokens() if each.id == made.token.id]
    assert revoked.revoked_at is not None
    assert "/login#" in (await client.create_login()).url
    assert await client.keys() == []


async def test_one_message_and_its_answer(client: Client, house: House) -> None:
    answer = await client.chat("@ada", "Are you there?", metadata={"from": "a test"}, key="there")
    assert (answer.outcome, answer.final_response.text, answer.cycle) == ("acted", "Ada hears you.", 1)
    assert [each.author.name for each in answer.messages] == ["Ada"]
    again = await client.chat("@ada", "Are you there?", metadata={"from": "a test"}, key="there")
    assert (again.message_id, again.messages) == (answer.message_id, answer.messages)


async def test_an_agents_life_goes_on_after_the_last_cycle_that_was_told(client: Client, house: House) -> None:
    """Also where the server was away meanwhile."""
    told: list[object] = []
    async with asyncio.timeout(60), aclosing(client.stream_agent("@ada", after=0)) as life:
        async for event in life:
            if isinstance(event, Connected) and not told:
                await house.runtime.spaces.post(house.room, house.noor, "One.")
            if isinstance(event, CycleEnded):
                told.append(event.number)
                if len(told) == 2:
                    break
                await house.stop_server()
                await house.runtime.spaces.post(house.room, house.noor, "Two.")
                await house.runtime.run_until_idle()
                await house.start_server()
    assert told == [1, 2]


async def test_everything_that_one_may_see_comes_once(client: Client, house: House) -> None:
    """From every space one is in, and from those that one comes into; a lost connection loses and repeats nothing."""
    heard: list[str] = []
    seen: set[type] = set()
    async with asyncio.timeout(60), aclosing(client.stream_everything()) as stream:
        async for event in stream:
            if isinstance(event, StreamReady) and not heard:
                await client.post(house.cellar.id, "first")
            seen.add(type(event))
            if isinstance(event, Message):
                heard.append(event.text)
                if event.text == "second":
                    break
                await house.stop_server()
                await house.runtime.spaces.post(house.cellar, house.noor, "second")
                await house.start_server()
    assert heard == ["first", "second"]
    assert {AgentStatus, StreamReady, Lost} <= seen
