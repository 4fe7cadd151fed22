"""The self: what it says, that it is frozen for an era, and how changes in between are told."""

from __future__ import annotations

import json
from itertools import pairwise

from sqlalchemy import bindparam, select

from denizen import call, reply, scripted, skip
from denizen.consciousness.system_prompt import INSTRUCTIONS, SPACES_SEEN
from denizen.ids import AgentId, OrganizationId, SpaceId
from denizen.spaces import directory
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles
from tests.world import World, as_text

NOW = "Now: Monday 2026-01-05 09:00 UTC"


def told(*lines: str, text: str, now: str = NOW, space: str = "Hall") -> str:
    """An inbox message with one event and these changes."""
    changes = "".join(f"\n- {line}" for line in lines)
    return (
        f"[INBOX - 1 new event]\n{now}"
        + (f"\n[CHANGES]{changes}" if changes else "")
        + f'\n\n1. [Space "{space}" | spaceId: <{space}>] Noor (human): "{text}"\n   → received just now'
    )


async def selves(world: World, agent) -> list[str]:
    return [prompt[0] for prompt in await world.prompts(agent)]


async def test_the_self_says_who_where_and_how(world: World):
    ada = await world.agent("Ada", reply("I cook."), "Told Noor.", instructions="  You cook for everyone.\n")
    noor = await world.person("Noor")
    bee = await world.agent("Bee 'the' \"Busy\"", skip(), skip(), handle="bee")
    hall = await world.space("Hall", noor, ada)
    await world.space("Kitchen", ada, bee, noor, private=True)
    await world.say(noor, "What do you do?", hall)
    await world.run()

    assert (
        await selves(world, ada)
        == [
            (
                "self: IDENTITY:\n"
                '  name: "Ada"\n'
                "  handle: @ada\n"
                "\n"
                "YOUR ROLE:\n"
                "You cook for everyone.\n"
                "\n"
                "YOUR SPACES:\n"
                '  - "Hall" (id: <Hall>) — You, Noor (human, @noor)\n'
                '  - "Kitchen" (id: <Kitchen>, private) — You, Noor (human, @noor), '
                "\"Bee 'the' 'Busy'\" (agent, @bee)\n"
                "\n"
                f"INSTRUCTIONS:\n{INSTRUCTIONS}"
            )
        ]
        * 2
    )


async def test_an_agent_in_no_space_knows_that(world: World):
    ada = await world.agent("Ada", "Heard the bell.")
    await world.denizen.agents.trigger(ada, "bell", text="ding")
    await world.run()
    assert "YOUR SPACES:\n  (none yet)\n" in (await selves(world, ada))[0]


async def test_an_agent_in_very_many_spaces_is_told_of_the_newest_and_thinks_on(small_world: World):
    """Whoever serves many has a space with each of them: the list grew until no model took the self any more."""
    world = small_world
    ada = await world.agent("Ada", reply("Here."), "Answered.", window={"max_tokens": 6_000})
    noor = await world.person("Noor")
    first = await world.space("Space 0", noor, ada)
    await world.denizen.db.write(_many_spaces, first.organization_id, ada.id, 500)
    await world.say(noor, "Where are you?", first)
    await world.run()
    assert await world.transcript(first) == ["Noor: Where are you?", "Ada: Here."]
    spaces = (await selves(world, ada))[0].partition("YOUR SPACES:\n")[2].partition("\n\n")[0].splitlines()
    assert spaces[0] == f"  … {502 - len(spaces)} older ones are not listed; events tell you which they come from"
    assert [line.partition(" (")[0] for line in spaces[1:]] == [
        f'  - "Space {number}"' for number in range(502 - len(spaces), 501)
    ]
    assert 1 < len(spaces) < 50


async def test_in_very_many_spaces_a_cycle_is_told_of_and_keeps_no_more_than_in_many(world: World):
    """All spaces were looked through, and kept with the cycle, whenever anything had changed in one of them."""
    turns = [turn for _ in range(4) for turn in (reply("Here."), "Answered.")]
    ada = await world.agent("Ada", *turns)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    first = await world.space("Space 0", noor, ada)
    await world.denizen.db.write(_many_spaces, first.organization_id, ada.id, SPACES_SEEN)
    await world.say(noor, "Hello?", first)
    await world.run()
    described = '"Space 0" (id: <Space 0>): You, Noor (human, @noor)'

    await world.denizen.db.write(_many_spaces, first.organization_id, ada.id, 2, SPACES_SEEN)
    await world.say(noor, "And now?", first)
    await world.run()
    new = [f'New space: "Space {n}" (id: ffffffff-{n:08}) — You' for n in (SPACES_SEEN + 1, SPACES_SEEN + 2)]
    # Two have fallen out of sight, and that is no news. Where it is, it is told how it is there.
    assert await world.newest_inbox(ada) == told(*new, f"Members of {described}", text="And now?", space="Space 0")

    await world.denizen.spaces.join(first, bert)
    await world.say(noor, "Who is there?", first)
    await world.run()
    changed = f"Members of {described}, Bert (human, @bert)"
    assert await world.newest_inbox(ada) == told(changed, text="Who is there?", space="Space 0")

    await world.denizen.spaces.leave(SpaceId(f"ffffffff-{SPACES_SEEN:08}"), ada)
    await world.say(noor, "Less?", first)
    await world.run()
    gone, back = (
        f'"Space {SPACES_SEEN}" (id: ffffffff-{SPACES_SEEN:08})',
        '"Space 2" (id: ffffffff-00000002) — You',
    )
    lines = (f"New space: {back}", f"You are no longer in the space {gone}")
    assert await world.newest_inbox(ada) == told(*lines, text="Less?", space="Space 0")
    sizes = await world.denizen.db.read(_facts_kept, ada.id)
    assert sizes == [0, *[SPACES_SEEN + 1] * 3]


_kept = statement(select(cycles.c.told).where(cycles.c.agent_id == bindparam("agent_id")).order_by(cycles.c.number))


def _facts_kept(tx: Tx, agent_id: AgentId) -> list[int]:
    return [len(json.loads(row[0])["facts"]) if row[0] else 0 for row in tx.all(_kept, agent_id=agent_id)]


def _many_spaces(tx: Tx, organization_id: OrganizationId, agent_id: AgentId, many: int, after: int = 0) -> None:
    for number in range(after + 1, after + many + 1):
        id = SpaceId(f"ffffffff-{number:08}")
        directory.create_space(tx, organization_id, name=f"Space {number}", id=id)
        directory.join(tx, id, agent_id)


async def test_a_new_member_is_told_once_and_the_self_stays_as_it_was(world: World):
    """What changes is appended, never rewritten: a system prompt that changed cost ten times as much elsewhere."""
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 3)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()

    bert = await world.person("Bert")
    await world.denizen.spaces.join(hall, bert)
    await world.say(noor, "two", hall)
    await world.run()
    assert await world.newest_inbox(ada) == told(
        'Members of "Hall" (id: <Hall>): You, Noor (human, @noor), Bert (human, @bert)', text="two"
    )

    await world.say(noor, "three", hall)
    await world.run()
    assert await world.newest_inbox(ada) == told(text="three")
    assert len(set(await selves(world, ada))) == 1


async def test_new_and_lost_spaces_are_told(world: World):
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 2)
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.spaces.leave(attic, ada)
    await world.space("Cellar", ada, noor)
    await world.say(noor, "two", hall)
    await world.run()
    assert await world.newest_inbox(ada) == told(
        'New space: "Cellar" (id: <Cellar>) — You, Noor (human, @noor)',
        'You are no longer in the space "Attic" (id: <Attic>)',
        text="two",
    )


async def test_news_of_a_skipped_cycle_are_told_again(world: World):
    """What has been told is remembered only by the cycle's commit."""
    ada = await world.agent("Ada", reply("Yes."), "Answered.", skip(), reply("Yes?"), "Answered.")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.spaces.join(hall, bert)
    for text in ("two", "three"):
        await world.say(noor, text, hall)
        await world.run()

    line = 'Members of "Hall" (id: <Hall>): You, Noor (human, @noor), Bert (human, @bert)'
    inboxes = [(await world.named([as_text(asked[-1])]))[0] for asked in world.model(ada).requests]
    assert inboxes[2] == told(line, text="two")
    assert inboxes[3] == told(line, text="three")


async def test_someone_who_came_and_went_unseen_is_no_news(world: World):
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 2)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.spaces.join(hall, bert)
    await world.denizen.spaces.leave(hall, bert)
    await world.say(noor, "two", hall)
    await world.run()
    assert await world.newest_inbox(ada) == told(text="two")


async def test_after_five_minutes_of_sleep_a_new_era_begins(world: World):
    """The provider has forgotten the prefix by then, so the self may as well be told afresh."""
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 3)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.spaces.join(hall, bert)

    world.clock.advance(300)
    await world.say(noor, "two", hall)
    await world.run()
    assert "[CHANGES]" in await world.newest_inbox(ada)

    third = await world.person("Third")
    await world.denizen.spaces.join(hall, third)
    world.clock.advance(301)
    await world.say(noor, "three", hall)
    await world.run()

    assert await world.newest_inbox(ada) == told(text="three", now="Now: Monday 2026-01-05 09:10 UTC")
    first, second, last = [each.split("YOUR SPACES:\n")[1].split("\n")[0] for each in (await selves(world, ada))[::2]]
    assert first == second == '  - "Hall" (id: <Hall>) — You, Noor (human, @noor)'
    assert last == '  - "Hall" (id: <Hall>) — You, Noor (human, @noor), Bert (human, @bert), Third (human, @third)'


async def test_a_long_sleep_without_changes_keeps_the_self_to_the_letter(world: World):
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 2)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    world.clock.advance(86_400)
    await world.say(noor, "two", hall)
    await world.run()
    assert len(set(await selves(world, ada))) == 1


async def test_an_edit_by_its_owner_begins_a_new_era(world: World):
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 2, instructions="Be brief.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.agents.edit(ada, instructions="Be kind.")
    await world.say(noor, "two", hall)
    await world.run()
    roles = [each.split("YOUR ROLE:\n")[1].split("\n")[0] for each in await selves(world, ada)]
    assert roles == ["Be brief.", "Be brief.", "Be kind.", "Be kind."]


async def test_an_edit_while_the_agent_is_warm_takes_effect_with_the_next_cycle(world: World):
    ada = await world.agent("Ada", *[reply("Yes."), "Answered."] * 2, instructions="Be brief.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living():
        await world.say(noor, "one", hall)
        await world.run()
        await world.denizen.agents.edit(ada, instructions="Be kind.")
        await world.say(noor, "two", hall)
        await world.run()
    roles = [each.split("YOUR ROLE:\n")[1].split("\n")[0] for each in await selves(world, ada)]
    assert roles == ["Be brief.", "Be brief.", "Be kind.", "Be kind."]


async def test_every_request_begins_with_the_one_before_it(world: World):
    """The prompt is a log: within an era, what was sent before is sent again to the letter, and only then the new.

    Whatever happens in between: tools, failures, a restart, new members, cycles that are skipped.
    """
    ada = await world.agent(
        "Ada",
        call("read_messages"),
        reply("One."),
        "Said one.",
        "Plain text.",
        reply("Two."),
        "Said two.",
    )
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.spaces.join(hall, bert)
    await world.denizen.spaces.leave(hall, bert)
    await world.say(noor, "two", hall)
    await world.run()
    await world.denizen.spaces.join(hall, bert)
    before = world.model(ada).requests
    await world.restart(ada=scripted(skip(), reply("Three."), "Said three."))
    for text in ("not for Ada", "three"):
        await world.say(noor, text, hall)
        await world.run()

    asked = [[as_text(message) for message in request] for request in before]
    for earlier, later in pairwise(asked):
        assert later[: len(earlier)] == earlier
    after = [[as_text(message) for message in request] for request in world.model(ada).requests]
    committed = [*asked[-1], "Said two."]
    for request in after:
        assert request[: len(committed)] == committed
    assert after[2][: len(after[1])] == after[1]
