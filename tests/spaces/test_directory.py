"""Who and where: organizations, people, agents, spaces, and who may be in them."""

from __future__ import annotations

import pytest

from denizen import call, reply, scripted
from denizen.errors import HandleTaken, InvalidInput, NotFound
from denizen.ids import new_id
from denizen.spaces import directory
from tests.world import World


async def test_people_of_another_organization_cannot_join(world: World):
    here = await world.denizen.organizations.create("Here")
    there = await world.denizen.organizations.create("There")
    noor = await world.person("Noor", organization=here)
    ada = await world.agent("Ada", organization=here)
    stranger = await world.person("Stranger", organization=there)
    spy = await world.agent("Spy", organization=there)
    hall = await world.space("Hall", noor, ada, organization=here)

    for each in (stranger, spy):
        with pytest.raises(InvalidInput, match="another organization"):
            await world.denizen.spaces.join(hall, each)
        with pytest.raises(InvalidInput, match="another organization"):
            await world.space("Trap", noor, each, organization=here)

    assert [member.entity.name for member in await world.denizen.spaces.members(hall)] == ["Noor", "Ada"]


async def test_a_space_is_found_by_name_in_its_own_organization_only(world: World):
    here = await world.denizen.organizations.create("Here")
    there = await world.denizen.organizations.create("There")
    ours = await world.space("Hall", organization=here)
    second = await world.space("Hall", organization=here)
    theirs = await world.space("Hall", organization=there)
    await world.space("Attic", organization=here)

    read = world.denizen.db.read
    assert await read(directory.find_spaces, here.id, "Hall") == [ours, second]
    assert await read(directory.find_spaces, there.id, "Hall") == [theirs]
    assert await read(directory.find_spaces, there.id, "Attic") == []


async def test_a_handle_belongs_to_one_of_an_organization(world: World):
    here = await world.denizen.organizations.create("Here")
    there = await world.denizen.organizations.create("There")
    noor = await world.person("Noor", organization=here)
    with pytest.raises(HandleTaken):
        await world.person("Another Noor", handle="@NOOR", organization=here)
    with pytest.raises(HandleTaken):
        await world.agent("Noor", organization=here)
    other = await world.person("Noor", organization=there)

    assert await world.denizen.people.find("@Noor", organization=here) == noor
    assert await world.denizen.people.find("noor", organization=there) == other
    with pytest.raises(NotFound):
        await world.denizen.people.find("nobody", organization=here)


async def test_joining_twice_is_joining_once_and_leaving_is_final(world: World):
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor)

    await world.denizen.spaces.join(hall, bert, attention="mentions")
    await world.denizen.spaces.join(hall, bert)
    assert [(each.entity.name, each.attention) for each in await world.denizen.spaces.members(hall)] == [
        ("Noor", "all"),
        ("Bert", "mentions"),
    ]
    await world.denizen.spaces.leave(hall, bert)
    await world.denizen.spaces.leave(hall, bert)
    assert [each.entity.name for each in await world.denizen.spaces.members(hall)] == ["Noor"]


async def test_what_is_not_there_is_not_found(world: World):
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    with pytest.raises(NotFound):
        await world.denizen.spaces.join(new_id(), noor)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotFound):
        await world.denizen.spaces.join(hall, new_id())  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotFound):
        await world.denizen.spaces.set_attention(hall, new_id(), "none")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="all, mentions, none"):
        await world.denizen.spaces.set_attention(hall, noor, "some")  # pyright: ignore[reportArgumentType]


async def test_an_agent_reads_and_enters_only_spaces_it_is_in(world: World):
    """Membership was not checked on reads elsewhere: one door for tools, API and screens."""
    ada = await world.agent("Ada")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, ada)
    office = await world.space("Office", noor, bert)
    secret = await world.space("Surprise for Ada", noor, bert, private=True)
    said = await world.say(bert, "The safe is open", office)
    whispered = await world.say(noor, "The cake is in the fridge", secret)
    await world.restart(
        ada=scripted(
            [
                call("read_messages", space_id=office.id),
                call("enter_space", space_id=office.id),
                call("read_entry", entry=f"message:{said.id}"),
                call("read_messages", space_id=secret.id),
                call("enter_space", space_id=secret.id),
                call("read_entry", entry=f"message:{whispered.id}"),
                call("read_messages", space_id="no-such-space"),
                call("read_entry", entry="message:no-such-message"),
                reply("I see only the hall."),
            ],
            "Looked around.",
        )
    )

    await world.say(noor, "Look around", hall)
    await world.run()

    def unknown(what: str) -> str:
        return f'{{"success": false, "error": "not_found", "message": "There is no {what}."}}'

    assert (await world.history(ada))[2].split("\n") == [
        "results: read_messages → " + unknown("space '<Office>'"),
        "enter_space → " + unknown("space '<Office>'"),
        "read_entry → " + unknown("message '<Office 1>'"),
        "read_messages → " + unknown("space '<Surprise for Ada>'"),
        "enter_space → " + unknown("space '<Surprise for Ada>'"),
        "read_entry → " + unknown("message '<Surprise for Ada 1>'"),
        "read_messages → " + unknown("space 'no-such-space'"),
        "read_entry → " + unknown("message 'no-such-message'"),
        'send_message → {"success":true,"messageId":"<Hall 2>"}',
    ]
    assert await world.transcript(office) == ["Bert: The safe is open"]
    assert await world.transcript(secret) == ["Noor: The cake is in the fridge"]


async def test_a_private_space_is_marked_in_the_self_of_its_members(small_world: World):
    ada = await small_world.agent("Ada", reply("I am quiet."), "Kept quiet.")
    noor = await small_world.person("Noor")
    attic = await small_world.space("Attic", noor, ada, private=True)
    await small_world.say(noor, "Psst", attic)
    await small_world.run()
    (self, *_), *_ = await small_world.prompts(ada)
    assert '  - "Attic" (id: <Attic>, private) — You, Noor (human, @noor)' in self
