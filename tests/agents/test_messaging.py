"""Posting a message: who may, in whose name, and what a repeated id means, from Python and over HTTP alike."""

from __future__ import annotations

import pytest

from denizen import Actor, IdempotencyKeyReused, InvalidInput, NotAllowed, NotAMember, NotFound, Requester
from denizen.access.requesters import THIS_PROCESS
from denizen.access.roles import Role
from denizen.agents import chatting
from denizen.agents.chatting import AwaitedMessage, Question
from denizen.ids import MessageId, new_id
from denizen.spaces import posting
from denizen.spaces.directory import Entity
from tests.world import World


def requester(entity: Entity, role: Role = "member") -> Requester:
    return Requester(Actor(entity.id), entity.organization_id, role)


async def ask(world: World, by: Requester, question: Question) -> AwaitedMessage:
    return await world.denizen.db.write(chatting.ask, by, question, posting.draft(question.text), MessageId(new_id()))


async def test_only_members_of_the_space_post_there(small_world: World):
    noor, owner = await small_world.person("Noor"), await small_world.person("Owner")
    hall = await small_world.space("Hall", noor)
    with pytest.raises(NotAMember):
        await small_world.denizen.spaces.post(hall, requester(owner, "owner"), "Hello")
    await small_world.denizen.spaces.post(hall, requester(noor), "Hello")
    assert await small_world.denizen.spaces.transcript(hall) == ["Noor: Hello"]


async def test_a_message_needs_an_author(small_world: World):
    hall = await small_world.space("Hall", await small_world.person("Noor"))
    with pytest.raises(NotAllowed, match="in whose name"):
        await small_world.denizen.spaces.post(hall, THIS_PROCESS, "Hello")


async def test_a_message_replies_only_to_one_of_its_space(small_world: World):
    noor = await small_world.person("Noor")
    hall, den = await small_world.space("Hall", noor), await small_world.space("Den", noor)
    elsewhere = await small_world.denizen.spaces.post(den, noor, "Secret")
    with pytest.raises(InvalidInput, match="reply_to"):
        await small_world.denizen.spaces.post(hall, noor, "Yes", reply_to=elsewhere.id)
    # Who is not in the space does not learn which messages it has.
    sam = await small_world.person("Sam")
    for reply_to in (elsewhere.id, MessageId(new_id())):
        with pytest.raises(NotAMember):
            await small_world.denizen.spaces.post(den, sam, "Yes", reply_to=reply_to)
    assert await small_world.denizen.spaces.transcript(hall) == []


async def test_an_id_is_for_one_message(small_world: World):
    """The same message is posted once; another with the same id is refused instead of being dropped."""
    noor, bo = await small_world.person("Noor"), await small_world.person("Bo")
    hall, den = await small_world.space("Hall", noor, bo), await small_world.space("Den", noor)
    post, id = small_world.denizen.spaces.post, MessageId(new_id())
    first = await post(hall, noor, "Hello", id=id, metadata={"mood": "fine"})
    assert await post(hall, noor, "Hello", id=id, metadata={"mood": "fine"}) == first
    for again in (
        post(hall, noor, "Hello again", id=id, metadata={"mood": "fine"}),
        post(hall, noor, "Hello", id=id),
        post(hall, bo, "Hello", id=id, metadata={"mood": "fine"}),
        post(den, noor, "Hello", id=id, metadata={"mood": "fine"}),
    ):
        with pytest.raises(IdempotencyKeyReused):
            await again
    assert await small_world.denizen.spaces.transcript(hall) == ["Noor: Hello"]
    assert (await post(hall, noor, "Bye")).seq == 2


async def test_only_people_ask_an_agent_and_wait(small_world: World):
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    roles: tuple[Role, ...] = ("agent", "service")
    for role in roles:
        with pytest.raises(NotAllowed, match=f"Your role is {role}"):
            await ask(small_world, requester(noor, role), Question(ada.id, "Are you there?"))
    assert await small_world.denizen.spaces.list(noor) == []


async def test_an_agent_of_another_organization_is_not_found(small_world: World):
    ada = await small_world.agent("Ada")
    bakery = await small_world.denizen.organizations.create("Bakery")
    stranger = await small_world.person("Stranger", organization=bakery)
    with pytest.raises(NotFound, match="agent"):
        await ask(small_world, requester(stranger, "owner"), Question(ada.id, "Are you there?"))


async def test_an_agent_is_asked_only_in_a_space_that_both_are_in(small_world: World):
    noor, bo, ada = await small_world.person("Noor"), await small_world.person("Bo"), await small_world.agent("Ada")
    hall, den = await small_world.space("Hall", bo, ada), await small_world.space("Den", noor)
    with pytest.raises(NotFound, match="space"):
        await ask(small_world, requester(noor), Question(ada.id, "Hello", hall.id))
    with pytest.raises(InvalidInput, match="is not in this space"):
        await ask(small_world, requester(noor), Question(ada.id, "Hello", den.id))


async def test_what_is_asked_in_a_panel_begins_a_turn(small_world: World):
    """As a message posted there does: the advisors answer as well as the agent."""
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    board = await small_world.denizen.panels.create("Board", [noor, ada], advisors=["Kai"], model="demo")
    await ask(small_world, requester(noor), Question(ada.id, "Bread or rolls?", board.id))
    assert (await small_world.denizen.panels.get(board)).turns == 1
