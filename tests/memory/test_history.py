"""The history of a memory: what changed it and why, how versions differ, and reverting to one of them."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from denizen import forever
from denizen.access.audit import Actor
from denizen.access.requesters import Requester
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.history import MemoryVersion, difference
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memory_changes
from tests.memory.conftest import answering, known, utility, written
from tests.memory.test_items import fact, owner_in, remember
from tests.properties.house import everything
from tests.world import World


def told(versions: list[MemoryVersion]) -> list[tuple[str, str, bool]]:
    return [(each.change.kind, each.text, each.current) for each in versions]


async def test_each_change_of_a_memory_is_in_its_history_with_its_reason(world: World):
    """Learned, confirmed, replaced, said again, corrected: in this order, from any of its versions."""
    owner, space = await owner_in(world)
    noor = owner.user_id
    assert noor is not None
    await remember(world, owner, space, fact("Tea is at four.", "m1"))
    await remember(world, owner, space, fact("Tea is at four.", "m1", "m2"))
    await remember(world, owner, space, fact("Tea is at five.", "m3", replaces=("Tea is at four.",)))
    await remember(world, owner, space, fact("Tea is at four.", "m4", replaces=("Tea is at five.",)))
    [now] = [each for each in await world.denizen.memory.list() if each.superseded_by is None]
    await world.denizen.memory.correct(now, "Tea is at six.", by=noor)
    # What a pass carries over is not a change.
    await remember(world, owner, space, fact("Tea is at six.", "m1"))
    for each in await world.denizen.memory.list():
        found = await world.denizen.memory.history(each)
        assert told(found) == [
            ("learned", "Tea is at four.", False),
            ("confirmed", "Tea is at four.", False),
            ("learned", "Tea is at five.", False),
            ("said_again", "Tea is at four.", False),
            ("corrected", "Tea is at six.", True),
        ]
        assert [one.change.sources for one in found] == [("m1",), ("m2",), ("m3",), ("m4",), ()]
        assert [one.before for one in found] == [
            "", "Tea is at four.", "Tea is at four.", "Tea is at five.", "Tea is at four.",
        ]  # fmt: skip
        assert [one.change.by_id for one in found] == [None, None, None, None, noor]


async def test_a_revert_is_one_more_change_and_an_earlier_text_holds_again(world: World):
    owner, space = await owner_in(world)
    memory = world.denizen.memory
    await remember(world, owner, space, fact("Tea is at four.", outside=True))
    [first] = await memory.list(owner=owner.key)
    second = await memory.correct(first, "Tea is at five.", by=owner.user_id)
    third = await memory.correct(second, "Tea, is at FIVE!", by=owner.user_id)
    assert third.id == second.id
    [learned, *_] = await memory.history(third)
    reverted = await memory.revert(third, learned, by=owner.user_id)
    # It rests on what it rested on, from outside as before.
    assert (reverted.id, reverted.text, reverted.outside) == (first.id, "Tea is at four.", True)
    found = await memory.history(first)
    assert told(found) == [
        ("learned", "Tea is at four.", False),
        ("corrected", "Tea is at five.", False),
        ("corrected", "Tea, is at FIVE!", False),
        ("reverted", "Tea is at four.", True),
    ]
    assert [each.number for each in found] == [1, 2, 3, 4]
    assert [one.item.text for one in await memory.search("When is tea?", [owner.key])] == ["Tea is at four."]
    # To a spelling of the same memory as well.
    assert (await memory.revert(first, found[1])).text == "Tea is at five."
    with pytest.raises(InvalidInput, match="current text"):
        await memory.revert(first, found[1])
    with pytest.raises(NotFound):
        await memory.revert(first, "1.99")


async def test_a_forgotten_version_is_in_no_history_and_cannot_be_reverted_to(world: World):
    owner, space = await owner_in(world)
    memory = world.denizen.memory
    await remember(world, owner, space, fact("The xylophone is violet."))
    [first] = await memory.list(owner=owner.key)
    second = await memory.correct(first, "The umbrella is crooked.", by=owner.user_id)
    [old, _] = await memory.history(second)
    await memory.forget(first, by=owner.user_id)
    assert told(await memory.history(second)) == [("corrected", "The umbrella is crooked.", True)]
    with pytest.raises(NotFound):
        await memory.revert(second, old)
    assert "xylophone" not in str(await world.denizen.db.read(everything))
    # A forgotten memory takes its history along.
    await memory.forget(second)
    assert (await world.denizen.db.read(everything))["memory_changes"] == []


async def test_what_a_copys_owner_has_forgotten_does_not_come_back_to_them_by_a_revert(small_world: World):
    """Noor reverts her own memory; the conversation, where the text was forgotten, keeps its own."""
    owner, space = await owner_in(small_world)
    memory = small_world.denizen.memory
    rooms = Owner("conversation", owner.organization_id, space_id=space)
    for whose in (owner, rooms):
        await remember(small_world, whose, space, fact("Tea is at four."))
    hers, theirs = [(await memory.list(owner=each.key))[0] for each in (owner, rooms)]
    now = await memory.correct(hers, "Tea is at five.")
    await small_world.denizen.db.write(lambda tx: items.forget(tx, [theirs]))
    [first, _] = await memory.history(now)
    assert (await memory.revert(now, first)).text == "Tea is at four."
    assert [each.text for each in await memory.list(owner=rooms.key)] == ["Tea is at five."]


async def test_memories_from_before_changes_were_recorded_have_a_history(small_world: World):
    owner, space = await owner_in(small_world)
    memory = small_world.denizen.memory
    await remember(small_world, owner, space, fact("Tea is at four.", "m1"))
    await remember(small_world, owner, space, fact("Tea is at five.", "m2", replaces=("Tea is at four.",)))
    await small_world.denizen.db.write(lambda tx: tx.run(statement(delete(memory_changes))))
    [five, four] = await memory.list(owner=owner.key)
    assert sorted(told(await memory.history(four))) == [
        ("learned", "Tea is at five.", True),
        ("learned", "Tea is at four.", False),
    ]
    small_world.clock.advance(60)
    [old] = [each for each in await memory.history(five) if each.text == four.text]
    await memory.revert(five, old)
    assert told(await memory.history(five))[-1] == ("reverted", "Tea is at four.", True)
    assert len(await memory.history(five)) == 3


async def test_a_version_from_a_private_space_is_not_shown_to_admins(small_world: World):
    """A memory between Noor and Ada, learned where Sam may not read, then corrected by what was said elsewhere."""
    noor, sam = await small_world.person("Noor"), await small_world.person("Sam")
    ada = await small_world.agent("Ada")
    den = await small_world.space("Den", noor, ada, private=True)
    kitchen = await small_world.space("Kitchen", noor, sam, ada)
    owner = Owner("persona", noor.organization_id, user_id=noor.id, agent_id=AgentId(ada.id))
    await remember(small_world, owner, den.id, fact("Noor is ill."))
    await remember(small_world, owner, kitchen.id, fact("Noor is well.", "m2", replaces=("Noor is ill.",)))
    [now, _] = await small_world.denizen.memory.list(owner=owner.key)

    def as_admin(entity: Entity) -> Requester:
        return Requester(Actor(entity.id), entity.organization_id, "admin")

    shown = await small_world.denizen.memory.history(now, by=as_admin(sam))
    assert [each.text for each in shown][1] == "Noor is well."
    assert "ill" not in str(shown)
    assert [len(each.memory.sources) for each in shown] == [0, 1], "nor is the message that it came from"
    with pytest.raises(NotFound):
        await small_world.denizen.memory.revert(now, shown[0], by=as_admin(sam))
    hers = await small_world.denizen.memory.history(now, by=as_admin(noor))
    assert [each.text for each in hers] == ["Noor is ill.", "Noor is well."]


async def test_a_pass_says_which_model_learned_it_from_which_message(small_world: World):
    utility(small_world, written("Tea.", facts=[known("Tea is at four.", 1)]))
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada", model=forever(answering))
    kitchen = await small_world.space("Kitchen", noor, ada)
    for text in ("Tea is at four.", "Well."):
        await small_world.say(noor, text, kitchen)
        await small_world.run()
    [item] = await small_world.denizen.memory.list(owner=f"user:{noor.id}")
    [version] = await small_world.denizen.memory.history(item)
    said = (await small_world.denizen.spaces.messages(kitchen))[0].id
    assert (version.change.model, version.change.sources) == ("utility", (said,))


def _recorded(tx: Tx) -> int:
    return len(everything(tx)["memory_changes"])


async def test_nothing_is_recorded_where_a_correction_changes_nothing(small_world: World):
    owner, space = await owner_in(small_world)
    await remember(small_world, owner, space, fact("Tea is at four."))
    [item] = await small_world.denizen.memory.list(owner=owner.key)
    await small_world.denizen.memory.correct(item, item.text)
    assert await small_world.denizen.db.read(_recorded) == 1


def test_texts_are_compared_word_by_word():
    pieces = difference("Tea is at four.", "Tea is served at five.")
    assert [(each.kind, each.text) for each in pieces] == [
        ("same", "Tea is "),
        ("added", "served "),
        ("same", "at "),
        ("removed", "four."),
        ("added", "five."),
    ]
    # Not word after word, which nobody can read.
    assert [(each.kind, each.text) for each in difference("Six people come on Sunday.", "There is no dinner.")] == [
        ("removed", "Six people come on Sunday."),
        ("added", "There is no dinner."),
    ]
    assert difference("", "New.")[0].kind == "added"
    assert [each.kind for each in difference("Same.", "Same.")] == ["same"]
