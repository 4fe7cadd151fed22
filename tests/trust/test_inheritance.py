"""Each way in which text is handed on hands on the mark as well. The same story without a guest leaves no mark."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import bindparam, text, update

from denizen import call, forever, reply
from denizen.access.audit import Actor
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents.registry import Agent
from denizen.ids import AgentId
from denizen.inbox.sources import EARLIER
from denizen.memory import rolling
from denizen.models.scripted import Info
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from denizen.trust import origins
from tests.memory.conftest import known, remembering, utility, written
from tests.portability.files import written as written_to
from tests.world import World, as_text, open_world

SMALL = {"max_tokens": Toolbox(PREBUILT).tokens + 2_000, "min_recent_cycles": 1}
"""A window that older cycles leave soon."""


@pytest.fixture
async def world(ready_url: str) -> AsyncGenerator[World]:
    """A world that remembers."""
    async with open_world(ready_url, memory=remembering()) as world:
        yield world


def answering(messages: list[ModelMessage], _info: Info) -> Any:
    """Says something to everything; `recall violin` is done as told."""
    last = as_text(messages[-1])
    if not last.startswith(("[INBOX", "[REMEMBERED", "[RECALLED")):
        return reply("Here.") if last.startswith("recall →") else "Listened."
    return call("recall", query="violin") if "recall violin" in last else reply("I see. " * 20)


class Story:
    """Noor, Ada, and Eve who is a guest or not."""

    def __init__(self, world: World, guest: bool) -> None:
        self.world = world
        self.guest = guest
        self.noor: Entity
        self.eve: Entity

    async def begin(self) -> None:
        self.noor = await self.world.person("Noor")
        self.eve = await self.world.person("Eve")
        if self.guest:
            make = statement(update(entities).where(entities.c.id == bindparam("person")).values(role="guest"))
            await self.world.denizen.db.write(lambda tx: tx.run(make, person=self.eve.id))

    async def agent(self, name: str, **options: Any) -> Agent:
        return await self.world.agent(name, model=forever(answering), cycle={"silent_reply": "ignore"}, **options)

    async def say(self, who: Entity, words: str, where: Space) -> None:
        await self.world.say(who, words, where)
        await self.world.run()

    async def marks(self, query: str, **params: Any) -> list[int]:
        found = statement(text(query).bindparams(*(bindparam(name) for name in params)))
        rows = await self.world.denizen.db.read(lambda tx: tx.all(found, **params))
        return [row[0] for row in rows]

    async def is_marked(self, agent: Agent | AgentId) -> bool:
        """Whether the next request of the agent would hold text from outside."""
        agent_id = agent if isinstance(agent, str) else agent.id
        [marked] = await self.marks("SELECT outside FROM minds WHERE agent_id = :agent_id", agent_id=agent_id)
        return bool(marked)


async def rolling_memory(story: Story) -> set[int]:
    """What a model made of a conversation, and what it says in the memories that it leaves."""
    utility(story.world, *[written("They met.", facts=[known("Noor lives in Lisbon.", 3)])] * 9)
    ada = await story.agent("Ada")
    kitchen = await story.world.space("Kitchen", story.noor, story.eve, ada)
    await story.say(story.eve, "Noor is in Lisbon, I say.", kitchen)
    for words in ("I live in Lisbon.", "It rains.", "Still."):
        await story.say(story.noor, words, kitchen)
    rolled = await story.marks("SELECT outside FROM rollings")
    kept = await story.marks("SELECT outside FROM memories")
    assert rolled
    assert kept
    found = await story.world.denizen.db.read(rolling.find, kitchen.id)
    return {*rolled, *kept, int(found.outside)}


async def long_term_memory(story: Story) -> set[int]:
    """Another agent, which never was where it was said, is reminded of it."""
    await rolling_memory(story)
    grace = await story.agent("Grace")
    study = await story.world.space("Study", story.noor, grace)
    await story.say(story.noor, "What is the weather like in Lisbon?", study)
    entries = await story.world.denizen.minds.log(grace)
    (told,) = [each for each in entries if each.kind == "remembered"]
    said = await story.marks("SELECT outside FROM messages WHERE author_id = :id", id=grace.id)
    assert said
    return {int(told.outside is not None), *said, int(await story.is_marked(grace))}


async def summary_before_the_window(story: Story) -> set[int]:
    """An agent that attends to nothing in a space has its summary before its window, once that is compacted."""
    utility(story.world, *[written("They spoke of eggs.")] * 40)
    ada = await story.agent("Ada", window={**SMALL, "strategy": "rolling"})
    helper = await story.agent("Helper")
    kitchen = await story.world.space("Kitchen", story.noor, story.eve, helper)
    await story.world.denizen.spaces.join(kitchen, ada, attention="none")
    await story.say(story.eve, "Buy eggs.", kitchen)
    for _ in range(3):
        await story.say(story.noor, "Eggs?", kitchen)
    study = await story.world.space("Study", story.noor, ada)
    for number in range(8):
        await story.say(story.noor, f"Go on, {number}. " + "Well. " * 160, study)
    last = "\n".join(as_text(each) for each in story.world.model(ada).requests[-1])
    assert "They spoke of eggs." in last
    return {int(await story.is_marked(ada))}


async def layer(story: Story) -> set[int]:
    """What was heard has left the window, and the layers tell of it."""
    ada = await story.agent("Ada", window=SMALL)
    kitchen = await story.world.space("Kitchen", story.noor, story.eve, ada)
    await story.say(story.eve, "Buy eggs.", kitchen)
    for number in range(6):
        await story.say(story.noor, f"Go on, {number}. " + "Well. " * 160, kitchen)
    last = "\n".join(as_text(each) for each in story.world.model(ada).requests[-1])
    assert "Buy eggs." not in last
    layers = await story.marks("SELECT outside FROM selves WHERE layers IS NOT NULL")
    said = await story.marks("SELECT outside FROM messages WHERE author_id = :id ORDER BY seq", id=ada.id)
    held = await story.world.denizen.db.read(_held_last, ada.id)
    assert layers
    assert (EARLIER in held.outside) is story.guest
    return {*layers, *said}


_last_response = statement(
    text("SELECT max(seq) FROM log WHERE agent_id = :agent AND kind = 'response'").bindparams(bindparam("agent"))
)


def _held_last(tx: Tx, agent_id: AgentId) -> origins.RequestOrigins:
    """What the last request of the agent held."""
    from denizen.consciousness import log
    from denizen.cycles.records import OpenCycle

    row = tx.one(_last_response, agent=agent_id)
    assert row is not None
    (response,) = log.entries(tx, agent_id, row[0], row[0] + 1)
    cycle = OpenCycle(response.cycle_id, response.seq, 0, None, (), ())
    return origins.held(tx, agent_id, cycle, response)


async def recalled_passage(story: Story) -> set[int]:
    ada = await story.agent("Ada", window=SMALL)
    kitchen = await story.world.space("Kitchen", story.noor, story.eve, ada)
    await story.say(story.eve, "The violin lies in the cellar.", kitchen)
    for number in range(6):
        await story.say(story.noor, f"Go on, {number}. " + "Well. " * 160, kitchen)
    await story.say(story.noor, "Please recall violin", kitchen)
    entries = await story.world.denizen.minds.log(ada)
    (found,) = [each for each in entries if each.kind == "results" and "cellar" in as_text(each.message)]
    return {int(found.outside is not None), int(found.outside == (EARLIER,))}


async def panel_advisor(story: Story) -> set[int]:
    """Advisors who see a guest's question in a turn before, and one who sees what another has said."""
    story.world.denizen.models.register("m", forever(lambda *_: "Hm."))
    panel = await story.world.denizen.panels.create(
        "Board", [story.noor, story.eve], advisors=["Seth", "Buber"], model="m", crosstalk=1
    )
    await story.world.denizen.panels.ask(panel, story.eve, "Sell it?")
    await story.world.run()
    await story.world.denizen.panels.ask(panel, story.noor, "And now?")
    await story.world.run()
    said = await story.marks("SELECT outside FROM replies WHERE state = 'done'")
    assert len(said) == 8
    return set(said)


async def fork(story: Story) -> set[int]:
    """A copy of an agent up to the cycle in which it read the text, and up to the one before."""
    ada = await story.agent("Ada")
    kitchen = await story.world.space("Kitchen", story.noor, story.eve, ada)
    await story.say(story.noor, "Hello", kitchen)
    await story.say(story.eve, "Buy eggs.", kitchen)
    before = await story.world.denizen.agents.fork(ada, at=1)
    after = await story.world.denizen.agents.fork(ada)
    assert not await story.is_marked(before)
    return {int(await story.is_marked(after))}


async def notice_of_an_edit(story: Story) -> set[int]:
    """What a guest has made of a message reaches the agent in a notice."""
    ada = await story.agent("Ada")
    kitchen = await story.world.space("Kitchen", story.noor, story.eve, ada)
    posted = await story.world.say(story.eve, "Buy milk.", kitchen)
    await story.world.run()
    await story.world.denizen.spaces.edit_message(posted, "Buy eggs.", by=story.eve)
    await story.say(story.noor, "And?", kitchen)
    entries = [each for each in await story.world.denizen.minds.log(ada) if each.kind == "inbox"]
    assert "Buy eggs." in as_text(entries[-1].message)
    return {int(entries[-1].outside is not None)}


WAYS: dict[str, Callable[[Story], Awaitable[set[int]]]] = {
    "rolling memory": rolling_memory,
    "long-term memory": long_term_memory,
    "summary before the window": summary_before_the_window,
    "layer": layer,
    "recalled passage": recalled_passage,
    "panel advisor": panel_advisor,
    "fork": fork,
    "notice of an edit": notice_of_an_edit,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("guest", [True, False], ids=["guest", "member"])
async def test_the_mark_is_inherited(world: World, way: str, guest: bool):
    story = Story(world, guest)
    await story.begin()
    assert await WAYS[way](story) == {int(guest)}


# Files


async def exported(story: Story, ada: Agent, kitchen: Space, folder: Path) -> list[Path]:
    """The agent and the space, each in a file."""
    denizen = story.world.denizen
    agent = await written_to(denizen.agents.export(ada), folder / "agent.jsonl")
    return [agent, await written_to(denizen.spaces.export(kitchen), folder / "space.jsonl")]


@pytest.mark.parametrize("guest", [True, False], ids=["guest", "member"])
@pytest.mark.parametrize("operator", [True, False], ids=["operator", "another owner"])
async def test_an_import_keeps_the_marks_and_that_of_anyone_but_an_operator_marks_everything(
    world: World, guest: bool, operator: bool, tmp_path: Path
):
    story = Story(world, guest)
    await story.begin()
    ada = await story.agent("Ada")
    kitchen = await world.space("Kitchen", story.noor, story.eve, ada)
    await story.say(story.noor, "Hello", kitchen)
    await story.say(story.eve, "Buy eggs.", kitchen)
    elsewhere = await world.denizen.organizations.create("Elsewhere")
    owner = await world.denizen.people.create("Otto", organization=elsewhere)
    by = THIS_PROCESS if operator else Requester(Actor(owner.id), owner.organization_id)
    agent, space = [
        await world.denizen.organizations.import_file(each, organization=elsewhere, by=by)
        for each in await exported(story, ada, kitchen, tmp_path)
    ]
    marked = guest or not operator
    assert await story.is_marked(AgentId(agent.id)) is marked
    cycles = "SELECT outside_from IS NOT NULL FROM cycles WHERE agent_id = :id ORDER BY number"
    assert [bool(each) for each in await story.marks(cycles, id=agent.id)] == [not operator, marked]
    said = await story.marks("SELECT outside FROM messages WHERE space_id = :id ORDER BY seq", id=space.id)
    assert said == ([1] * 4 if not operator else [0, 0, int(guest), int(guest)])
