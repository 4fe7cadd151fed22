"""The floor: which agents take up what is said where there are several, and when they stop waking each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen import call, reply, skip, tool
from denizen.agents.registry import Agent
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId
from denizen.inbox import parking, statuses
from denizen.models.scripted import ScriptedModel, forever
from denizen.spaces import floor, posting
from denizen.spaces.directory import FLOORS, Entity, Floor, Space
from denizen.spaces.floor import Listener, Takers, choose, takers
from denizen.storage.database import Tx
from tests.world import World, listening


def listener(name: str, joined_at: int = 0, *, addressed: bool = False, able: bool = True) -> Listener:
    return Listener(AgentId(name), addressed, able, joined_at)


def these(*names: str) -> frozenset[AgentId]:
    return frozenset(AgentId(name) for name in names)


def taken_up(setting: Floor, listeners: Sequence[Listener], by: str = "human", spoke: Sequence[str] = ()) -> Takers:
    """Who takes up a message in a space with a person and several agents."""
    found = takers(setting, listeners, author_kind=by, several=True, alone=False)
    return choose(listeners, spoke) if found is None else found


ADA, BO, CY = listener("ada", 1), listener("bo", 2), listener("cy", 3)
TO_BO = listener("bo", 2, addressed=True)


@pytest.mark.parametrize(
    ("setting", "listeners", "woken", "awaited"),
    [
        ("all", [ADA, BO, CY], ["ada", "bo", "cy"], []),
        ("all", [ADA, TO_BO, CY], ["ada", "bo", "cy"], ["bo"]),
        ("addressed", [ADA, BO, CY], [], []),
        ("addressed", [ADA, TO_BO, CY], ["bo"], ["bo"]),
        ("one", [ADA, BO, CY], ["ada"], ["ada"]),
        ("one", [ADA, TO_BO, CY], ["bo"], ["bo"]),
        ("one", [], [], []),
    ],
)
def test_who_takes_up_what_a_person_says(
    setting: Floor, listeners: list[Listener], woken: list[str], awaited: list[str]
):
    assert taken_up(setting, listeners) == Takers(these(*woken), these(*awaited))


@pytest.mark.parametrize("setting", ["addressed", "one"])
def test_agents_wake_only_those_that_they_address(setting: Floor):
    assert taken_up(setting, [ADA, BO], by="agent") == Takers(frozenset())
    assert taken_up(setting, [ADA, TO_BO], by="agent") == Takers(these("bo"))
    assert taken_up(setting, [ADA, BO], by="service") == Takers(these("ada", "bo"))


@pytest.mark.parametrize("setting", FLOORS)
def test_where_there_is_one_agent_or_only_two_members_the_floor_does_not_matter(setting: Floor):
    one = takers(setting, [ADA], author_kind="human", several=False, alone=False)
    two = takers(setting, [ADA], author_kind="human", several=False, alone=True)
    agents = takers(setting, [ADA], author_kind="agent", several=True, alone=True)
    assert (one, two, agents) == (Takers(these("ada")), Takers(these("ada"), these("ada")), Takers(these("ada")))


def test_one_is_chosen_by_who_spoke_last_and_then_by_who_joined_first():
    assert choose([CY, BO, ADA], []).woken == these("ada")
    assert choose([ADA, BO, CY], ["noor", "cy", "bo", "cy"]).woken == these("cy")
    assert choose([ADA, BO, CY], ["somebody who has left"]).woken == these("ada")


def test_who_cannot_think_is_passed_over():
    ill = listener("ada", 1, able=False)
    assert choose([ill, BO, CY], ["ada"]) == Takers(these("bo"), these("bo"))
    addressed = listener("ada", 1, addressed=True, able=False)
    assert taken_up("one", [addressed, BO, CY]) == Takers(these("ada", "bo"), these("ada", "bo"))
    assert taken_up("addressed", [addressed, BO, CY]) == Takers(these("ada"), these("ada"))


def test_where_nobody_can_think_somebody_is_awaited_all_the_same():
    """The space then shows why there is no answer."""
    nobody = [listener("ada", 1, able=False), listener("bo", 2, able=False)]
    assert taken_up("one", nobody) == Takers(these("ada"), these("ada"))


some_listeners = st.lists(
    st.builds(Listener, st.sampled_from("abcdef").map(AgentId), st.booleans(), st.booleans(), st.integers(0, 3)),
    unique_by=lambda each: each.id,
)


@given(some_listeners, st.sampled_from(FLOORS), st.lists(st.sampled_from("abcdefx")), st.booleans())
def test_who_is_awaited_is_woken_and_under_one_somebody_able_always_is(
    listeners: list[Listener], setting: Floor, spoke: list[str], agent: bool
):
    found = taken_up(setting, listeners, "agent" if agent else "human", spoke)
    everybody = {each.id for each in listeners}
    assert found.awaited <= found.woken <= everybody
    assert found == taken_up(setting, list(reversed(listeners)), "agent" if agent else "human", spoke)
    if agent:
        assert not found.awaited
    elif setting == "one":
        able = {each.id for each in listeners if each.able}
        addressed = {each.id for each in listeners if each.addressed}
        assert not listeners or found.awaited
        assert not able or found.awaited & able
        assert len(found.woken - addressed) <= 1


# In spaces


async def hall_of(
    world: World, *names: str, floor: Floor = "one", limit: int = 12, model: ScriptedModel | None = None
) -> tuple[Entity, list[Agent], Space]:
    noor = await world.person("Noor")
    agents = [await world.agent(name, model=model) for name in names]
    return noor, agents, await world.space("Hall", noor, *agents, floor=floor, agent_run_limit=limit)


async def inboxes(world: World, agents: Sequence[Agent]) -> dict[str, list[tuple[str, bool, bool]]]:
    """By agent: the text of each event in the inbox, whether it wakes, and whether somebody waits."""
    return {
        each.entity.name: [(event.text, event.wakes, event.waits) for event in await world.denizen.minds.inbox(each)]
        for each in agents
    }


async def shown(world: World, space: Space) -> list[str]:
    return [each.text for each in await world.denizen.db.read(statuses.of_space, space.id)]


async def post_as(world: World, agent: Agent, text: str, space: Space, hop: int = 1) -> None:
    await world.denizen.db.write(posting.post, space.id, agent.id, posting.draft(text), hop=hop)


async def test_under_one_everybody_has_the_message_and_one_is_woken(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", "Cy")
    await world.say(noor, "Hi", hall)
    assert await inboxes(world, agents) == {
        "Ada": [("Hi", True, True)],
        "Bo": [("Hi", False, False)],
        "Cy": [("Hi", False, False)],
    }


async def test_who_was_in_the_conversation_last_goes_on_with_it(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", "Cy")
    await post_as(world, agents[1], "I am Bo.", hall)
    await world.say(noor, "Go on", hall)
    woken = {name: waits[-1][1] for name, waits in (await inboxes(world, agents)).items()}
    assert woken == {"Ada": False, "Bo": True, "Cy": False}


@pytest.mark.parametrize("setting", ["one", "addressed"])
async def test_a_reply_addresses_the_author_of_what_it_replies_to(world: World, setting: Floor):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", floor=setting)
    said = await world.denizen.db.write(posting.post, hall.id, agents[1].id, posting.draft("Tea?"), hop=1)
    await post_as(world, agents[0], "Coffee?", hall)
    await world.say(noor, "Yes", hall, reply_to=said.id)
    found = await inboxes(world, agents)
    assert [each[-1] for each in found.values()] == [("Yes", False, False), ("Yes", True, True)]


async def test_under_addressed_a_message_to_nobody_waits_in_the_inboxes(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", floor="addressed")
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await inboxes(world, agents) == {"Ada": [("Hi", False, False)], "Bo": [("Hi", False, False)]}
    assert await shown(world, hall) == []


async def test_the_others_read_it_at_their_next_waking(world: World):
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Hello."), "Greeted.")
    bo = await world.agent("Bo", reply("Here."), "Answered.")
    hall = await world.space("Hall", noor, ada, bo, floor="one")
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]
    await world.say(noor, "@bo, are you there?", hall)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Bo: Here."
    inbox = await world.newest_inbox(bo)
    assert '"Hi"' in inbox
    assert '"Hello."' in inbox


async def test_what_is_said_to_another_person_wakes_one_and_nobody_waits(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo")
    await world.denizen.spaces.join(hall, await world.person("Mia"))
    await world.say(noor, "@mia, lunch?", hall)
    await world.say(noor, "@property is a decorator", hall)
    assert await inboxes(world, agents) == {
        "Ada": [("@mia, lunch?", True, False), ("@property is a decorator", True, True)],
        "Bo": [("@mia, lunch?", False, False), ("@property is a decorator", False, False)],
    }


async def test_who_is_suspended_or_parked_is_passed_over(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", "Cy")

    def park(tx: Tx) -> None:
        parking.park(tx, agents[1].id, "key", provider="OpenAI")

    await world.denizen.agents.suspend(agents[0])
    await world.denizen.db.write(park)
    await world.say(noor, "Hi", hall)
    assert await inboxes(world, agents) == {
        "Ada": [("Hi", False, False)],
        "Bo": [("Hi", False, False)],
        "Cy": [("Hi", True, True)],
    }
    assert await shown(world, hall) == []


async def test_who_is_addressed_and_cannot_answer_is_told_of_and_another_takes_over(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo")
    await world.denizen.agents.suspend(agents[1])
    await world.say(noor, "@bo, hi", hall)
    assert await inboxes(world, agents) == {"Ada": [("@bo, hi", True, True)], "Bo": [("@bo, hi", True, True)]}
    assert await shown(world, hall) == ["Bo is suspended. Your message is kept. Bo answers when somebody resumes it."]


async def test_where_nobody_can_answer_the_space_shows_why(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo")
    for each in agents:
        await world.denizen.agents.suspend(each)
    await world.say(noor, "Hi", hall)
    assert await shown(world, hall) == ["Ada is suspended. Your message is kept. Ada answers when somebody resumes it."]


async def test_when_the_chosen_one_skips_the_next_takes_over(world: World):
    """The skip leaves no trace, and the person has an answer."""
    noor = await world.person("Noor")
    ada, bo = await world.agent("Ada", skip("not mine")), await world.agent("Bo", skip("nor mine"))
    cy = await world.agent("Cy", reply("Hello."), "Greeted.")
    hall = await world.space("Hall", noor, ada, bo, cy, floor="one")
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Cy: Hello."]
    assert [await world.history(each) for each in (ada, bo)] == [[], []]
    assert [await world.cycles(each) for each in (ada, bo)] == [[], []]


async def test_it_is_passed_on_until_the_last_and_no_further(world: World):
    """Who has read it already is not asked again."""
    noor, agents, hall = await hall_of(
        world, "Ada", "Bo", "Cy", model=forever(lambda _messages, _info: skip("not mine"))
    )
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi"]
    assert [await world.waiting(each) for each in agents] == [[], [], []]
    assert len(world.model(agents[0]).requests) == 3


async def test_what_nobody_took_over_is_given_back_to_be_told(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo")
    await world.say(noor, "Hi", hall)
    (hi,) = await world.denizen.minds.inbox(agents[0])
    assert await world.denizen.db.write(floor.pass_on, agents[0].id, [hi]) == []
    (hi,) = await world.denizen.minds.inbox(agents[1])
    assert (hi.wakes, hi.waits) == (True, True)
    await world.denizen.agents.suspend(agents[0])
    assert await world.denizen.db.write(floor.pass_on, agents[1].id, [hi]) == [hi]


@pytest.mark.parametrize("setting", ["all", "addressed"])
async def test_under_other_floors_nothing_is_passed_on(world: World, setting: Floor):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", floor=setting)
    await world.say(noor, "@ada, hi", hall)
    (hi,) = await world.denizen.minds.inbox(agents[0])
    assert await world.denizen.db.write(floor.pass_on, agents[0].id, [hi]) == [hi]


async def test_when_the_chosen_one_is_suspended_or_deleted_the_next_takes_over(world: World):
    noor, agents, hall = await hall_of(world, "Ada", "Bo", "Cy")
    await world.say(noor, "Hi", hall)
    await world.denizen.agents.suspend(agents[0])
    assert await inboxes(world, agents) == {
        "Ada": [("Hi", False, False)],
        "Bo": [("Hi", True, True)],
        "Cy": [("Hi", False, False)],
    }
    await world.denizen.agents.delete(agents[1])
    assert (await inboxes(world, agents))["Cy"] == [("Hi", True, True)]


async def test_what_is_urgent_reaches_an_agent_at_work_that_does_not_take_it_up(world: World):
    """It is told in the middle of the cycle, and wakes nobody who sleeps."""

    @tool
    async def work() -> str:
        """Work."""
        await world.say(noor, "@ada, stop everything!", hall)
        return "worked"

    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Stopping."), "Stopped.")
    bo = await world.agent("Bo", call("work"), "Saw it.", tools=[work])
    cy = await world.agent("Cy")
    hall = await world.space("Hall", noor, ada, bo, cy, floor="one")
    await world.say(noor, "@bo, work", hall)
    await world.run()
    assert any("MID-CYCLE UPDATE" in each and "stop everything" in each for each in await world.history(bo))
    assert [event.text for event in await world.denizen.minds.inbox(cy)] == [
        "@ada, stop everything!", "@bo, work", "Stopping."
    ]  # fmt: skip


@pytest.mark.parametrize("setting", ["one", "addressed"])
async def test_who_asks_another_agent_hears_its_answer(world: World, setting: Floor):
    """And the report that follows wakes nobody: an answer is not asked for once more."""
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("@bo, is there tea?"), "Asked Bo.", reply("There is tea."), "Told Noor.")
    bo, cy = await world.agent("Bo", reply("Yes."), "Told Ada."), await world.agent("Cy")
    hall = await world.space("Hall", noor, ada, bo, cy, floor=setting)
    await world.say(noor, "@ada, ask Bo for tea", hall)
    await world.run()
    assert await world.transcript(hall) == [
        "Noor: @ada, ask Bo for tea",
        "Ada: @bo, is there tea?",
        "Bo: Yes.",
        "Ada: There is tea.",
    ]


# Agents that wake each other


async def test_after_so_many_messages_agents_wake_each_other_no_more_and_the_space_says_so(world: World):
    noor, (ada, bo), hall = await hall_of(world, "Ada", "Bo", floor="all", limit=2)
    await world.say(noor, "Hi", hall)
    async with listening(world, hall) as heard:
        for number in range(1, 5):
            await post_as(world, ada, f"{number}", hall)
        assert [frame["type"] for frame in await heard()].count("space.changed") == 1
    assert [(event.text, event.wakes) for event in await world.denizen.minds.inbox(bo)] == [
        ("Hi", True), ("1", True), ("2", True), ("3", False), ("4", False)
    ]  # fmt: skip
    assert (await world.denizen.spaces.get(hall)).stopped


async def test_what_a_person_says_lets_them_go_on_too(world: World):
    noor, (ada, bo), hall = await hall_of(world, "Ada", "Bo", floor="all", limit=1)
    for text in ("1", "2"):
        await post_as(world, ada, text, hall)
    async with listening(world, hall) as heard:
        await world.say(noor, "Hi", hall)
        await world.say(noor, "Hi again", hall)
        assert [frame["type"] for frame in await heard()].count("space.changed") == 1
    await post_as(world, ada, "3", hall)
    assert not (await world.denizen.spaces.get(hall)).stopped
    woken = [event.text for event in await world.denizen.minds.inbox(bo) if event.wakes]
    assert woken == ["1", "Hi", "Hi again", "3"]


async def test_a_person_lets_them_go_on(world: World):
    """Those are woken who have something unread, and their chain begins anew."""
    noor, (ada, bo), hall = await hall_of(world, "Ada", "Bo", floor="all", limit=1)
    for text in ("1", "2"):
        await post_as(world, ada, text, hall, hop=5)
    await world.denizen.spaces.let_agents_go_on(hall, noor)
    assert [(event.text, event.wakes, event.hop) for event in await world.denizen.minds.inbox(bo)] == [
        ("1", True, 5), ("2", True, 0)
    ]  # fmt: skip
    assert not (await world.denizen.spaces.get(hall)).stopped
    await world.denizen.spaces.let_agents_go_on(hall, noor)


async def test_under_one_only_those_go_on_who_were_addressed(world: World):
    noor, (ada, bo, cy), hall = await hall_of(world, "Ada", "Bo", "Cy", limit=1)
    for text in ("@bo 1", "@bo 2", "nobody"):
        await post_as(world, ada, text, hall)
    assert (await world.denizen.spaces.get(hall)).stopped
    await world.denizen.spaces.let_agents_go_on(hall, noor)
    found = await inboxes(world, [bo, cy])
    assert [each[1] for each in found["Bo"]] == [True, True, False]
    assert [each[1] for each in found["Cy"]] == [False, False, False]


async def test_what_wakes_nobody_does_not_count(world: World):
    """An agent that tells the others what it does, message after message, stops nobody."""
    _, (ada, _), hall = await hall_of(world, "Ada", "Bo", limit=1)
    for number in range(5):
        await post_as(world, ada, f"Step {number}", hall)
    assert not (await world.denizen.spaces.get(hall)).stopped


async def test_without_a_limit_they_never_stop(world: World):
    _, (ada, bo), hall = await hall_of(world, "Ada", "Bo", floor="all", limit=0)
    for number in range(20):
        await post_as(world, ada, f"{number}", hall)
    assert all(event.wakes for event in await world.denizen.minds.inbox(bo))


async def test_only_a_person_in_the_space_lets_them_go_on(world: World):
    _, (ada, _), hall = await hall_of(world, "Ada", "Bo")
    with pytest.raises(InvalidInput):
        await world.denizen.spaces.let_agents_go_on(hall, ada)
    with pytest.raises(NotFound):
        await world.denizen.spaces.let_agents_go_on(hall, await world.person("Mia"))


# Settings


async def test_a_new_space_has_the_floor_one_and_another_can_be_set(world: World):
    hall = await world.denizen.spaces.create("Hall")
    assert (hall.floor, hall.agent_run_limit, hall.stopped) == ("one", 12, False)
    await world.denizen.spaces.set_floor(hall, "addressed")
    await world.denizen.spaces.set_agent_run_limit(hall, 3)
    changed = await world.denizen.spaces.get(hall)
    assert (changed.floor, changed.agent_run_limit) == ("addressed", 3)
    made = await world.denizen.spaces.create("Attic", floor="all", agent_run_limit=0)
    assert await world.denizen.spaces.get(made) == made


async def test_what_is_no_floor_and_no_limit_is_refused(world: World):
    hall = await world.denizen.spaces.create("Hall")
    with pytest.raises(InvalidInput, match="one of all, addressed, one"):
        await world.denizen.spaces.set_floor(hall, "everyone")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="agent_run_limit"):
        await world.denizen.spaces.set_agent_run_limit(hall, -1)
