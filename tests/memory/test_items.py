"""What is remembered, item by item: once, with its sources, found by words, superseded, forgotten, kept out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from denizen.consciousness.recall.terms import count_terms
from denizen.ids import EntityId, OrganizationId, SpaceId
from denizen.memory import items, searching
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate, StoredMemory
from denizen.memory.searching import MemoryQuestion
from denizen.memory.sinks import DatabaseRetriever, MemoryQuery, PassMemories, Share, keep_memories, look
from denizen.storage.database import Tx, statement
from denizen.storage.schema import kept_out, memory_owners, memory_terms
from tests.world import World

_terms = statement(select(memory_terms.c.term))
_sizes = statement(select(memory_owners.c["items"], memory_owners.c.length))
_kept_out = statement(select(kept_out.c.owner))


async def owner_in(world: World) -> tuple[Owner, SpaceId]:
    home = await world.denizen.organizations.create("Home")
    noor = await world.person("Noor", organization=home)
    space = await world.space("Kitchen", noor, organization=home)
    return Owner("user", OrganizationId(home.id), user_id=EntityId(noor.id)), space.id


def fact(text: str, *sources: str, **more: object) -> Candidate:
    return Candidate("facts", text, sources or ("m1",), **more)  # pyright: ignore[reportArgumentType]


async def remember(world: World, owner: Owner, space: SpaceId, *what: Candidate, embedder: str = "") -> dict[str, int]:
    return {**await world.denizen.db.write(items.remember, owner, space, what, embedder)}


async def found(world: World, owner: Owner, query: str, **asked: object) -> list[str]:
    question = MemoryQuestion(query, **asked)  # pyright: ignore[reportArgumentType]
    hits = await world.denizen.db.read(searching.search, owner.key, question, limit=10)
    return [each.item.text for each in hits]


async def test_the_same_words_are_one_memory_with_all_its_sources(world: World):
    """Deduplicated by owner and hash, however it is punctuated; another owner has its own."""
    owner, space = await owner_in(world)
    assert await remember(world, owner, space, fact("Tea is at four.", "m1")) == {"new": 1}
    assert await remember(world, owner, space, fact("tea is, at FOUR", "m2", confidence=50)) == {"known": 1}
    [memory] = await world.denizen.memory.list(owner=owner.key)
    assert (memory.text, memory.sources, memory.confidence) == ("Tea is at four.", ("m1", "m2"), 100)
    everyones = Owner("organization", owner.organization_id)
    assert await remember(world, everyones, space, fact("Tea is at four.")) == {"new": 1}
    assert await found(world, owner, "when is tea") == ["Tea is at four."]


async def test_what_is_true_no_more_is_linked_and_not_found(world: World):
    """Superseded items do not pile up in what agents are reminded of; what is said again is true again."""
    owner, space = await owner_in(world)
    await remember(world, owner, space, fact("Tea is at four."))
    later = fact("Tea is at five.", "m2", replaces=("Tea is at four.",))
    assert await remember(world, owner, space, later) == {"superseding": 1}
    assert await found(world, owner, "when is tea") == ["Tea is at five."]
    new, old = await world.denizen.memory.list(owner=owner.key)
    assert (old.superseded_by, new.superseded_by) == (new.id, None)
    # A pass carries over what it knew: that is no new reason.
    assert await remember(world, owner, space, fact("Tea is at four.")) == {"known": 1}
    assert await found(world, owner, "tea") == ["Tea is at five."]
    again = fact("Tea is at four.", "m3", replaces=("Tea is at five.",))
    assert await remember(world, owner, space, again) == {"again": 1}
    assert await found(world, owner, "tea") == ["Tea is at four."]
    new, old = await world.denizen.memory.list(owner=owner.key)
    assert (old.superseded_by, new.superseded_by) == (None, old.id)


async def test_what_is_forgotten_leaves_no_word_and_does_not_come_again(world: World):
    owner, space = await owner_in(world)
    await remember(world, owner, space, fact("The xylophone is violet."), fact("The umbrella is crooked."))
    memory = next(each for each in await world.denizen.memory.list() if "xylophone" in each.text)
    receipt = await world.denizen.memory.forget(memory)
    assert receipt.removed == {"memories": 1}
    assert await found(world, owner, "xylophone violet") == []
    terms = {row[0] for row in await world.denizen.db.read(lambda tx: tx.all(_terms))}
    assert terms == {"umbrella", "crook"}
    assert await world.denizen.db.read(lambda tx: tx.all(_sizes)) == [(1, 2)]
    assert await remember(world, owner, space, fact("the xylophone is VIOLET!")) == {"kept out": 1}
    assert await world.denizen.memory.forget(memory.id) == receipt


async def test_two_conversations_of_one_person_remember_the_same_thing_once(world: World):
    """At the same moment, and in any order: the owner is held until the commit."""
    owner, space = await owner_in(world)
    facts = [fact(f"Thing {n} is so.", "m1") for n in range(5)]
    write = world.denizen.db.write
    await asyncio.gather(
        write(items.remember, owner, space, facts), write(items.remember, owner, space, list(reversed(facts)))
    )
    assert sorted(each.text for each in await world.denizen.memory.list(owner=owner.key)) == [
        f"Thing {n} is so." for n in range(5)
    ]


async def test_an_imported_memory_is_stored_once_and_not_if_it_was_forgotten(small_world: World):
    owner, space = await owner_in(small_world)
    db, memory = small_world.denizen.db, small_world.denizen.memory
    brought = StoredMemory("one", fact("Tea is at four."), 1, 2, uses=3)
    assert await db.write(items.restore, owner, space, brought)
    assert not await db.write(items.restore, owner, space, replace(brought, id="other"))
    assert await db.write(
        items.restore, owner, space, StoredMemory("old", fact("Tea is at two."), 1, 1, superseded_by="one")
    )
    assert await found(small_world, owner, "tea") == ["Tea is at four."], "what was superseded is not found"
    kept = next(each for each in await memory.list(owner=owner.key) if each.id == "one")
    assert (kept.text, kept.created_at, kept.updated_at, kept.uses) == ("Tea is at four.", 1, 2, 3)
    await memory.forget(kept)
    assert not await db.write(items.restore, owner, space, brought)


async def test_forgetting_forgets_what_it_took_the_place_of(world: World):
    owner, space = await owner_in(world)
    await remember(world, owner, space, fact("Tea is at four."))
    await remember(world, owner, space, fact("Tea is at five.", replaces=("Tea is at four.",)))
    [new, _] = await world.denizen.memory.list(owner=owner.key)
    await world.denizen.memory.forget(new)
    assert await world.denizen.memory.list(owner=owner.key) == []
    assert len(await world.denizen.db.read(_everything_kept_out)) == 2


def _everything_kept_out(tx: Tx) -> list[tuple[str]]:
    return [(row[0],) for row in tx.all(_kept_out)]


def vector(*values: int) -> bytes:
    return bytes(value & 0xFF for value in values)


async def test_the_same_meaning_is_one_memory_where_an_embedder_says_so(small_world: World):
    """Not across embedders, whose vectors cannot be compared, nor across categories."""
    owner, space = await owner_in(small_world)
    tea, drink, cat = vector(100, 10, 0), vector(100, 12, 1), vector(0, 5, 100)
    await remember(small_world, owner, space, fact("Tea is at four.", vector=tea), embedder="e")
    same = fact("They drink at 4 pm.", "m2", vector=drink)
    assert await remember(small_world, owner, space, same, embedder="e") == {"same meaning": 1}
    assert await remember(small_world, owner, space, fact("The cat purrs.", vector=cat), embedder="e") == {"new": 1}
    assert await remember(small_world, owner, space, same, embedder="other") == {"new": 1}
    # What sounds alike may be what it contradicts, or takes the place of.
    five = fact("Tea is at 5 pm.", "m3", vector=drink)
    assert await remember(small_world, owner, space, fact("Tea is at 4 pm.", vector=tea), embedder="e2") == {"new": 1}
    assert await remember(small_world, owner, space, five, embedder="e2") == {"new": 1}
    moved = fact("Tea is later.", "m4", vector=drink, replaces=("Tea is at 4 pm.", "Tea is at 5 pm."))
    assert await remember(small_world, owner, space, moved, embedder="e2") == {"superseding": 1}
    assert await found(small_world, owner, "beverage", vector=drink, embedder="e") == ["Tea is at four."]


async def test_what_is_nearer_in_meaning_is_found_first_however_long_its_vector_is(small_world: World):
    owner, space = await owner_in(small_world)
    near, far = fact("Tea is at four.", vector=vector(10, 1, 0)), fact("The cat purrs.", "m2", vector=vector(90, 70, 0))
    await remember(small_world, owner, space, near, far, embedder="e")
    asked = await found(small_world, owner, "beverage", vector=vector(100, 10, 0), embedder="e")
    assert asked[0] == "Tea is at four."


async def test_the_best_is_found_first_and_the_work_is_bounded(small_world: World):
    """A common word of very many memories does not hide the rare one."""
    owner, space = await owner_in(small_world)
    many: Sequence[Candidate] = [fact(f"The project meets on day {n}.", f"m{n}") for n in range(300)]
    await remember(small_world, owner, space, *many, fact("The project is called Zanzibar."))
    assert (await found(small_world, owner, "What is the project Zanzibar?"))[0] == "The project is called Zanzibar."


async def test_of_many_words_the_rare_ones_are_looked_for(small_world: World):
    """However the rare one is spelled: only so many of a question's words are looked up."""
    owner, space = await owner_in(small_world)
    common = " ".join(f"{first}{second}lt" for first in "bcdfgk" for second in "aeou")
    assert len(count_terms(common)) == searching.MOST_TERMS
    await remember(small_world, owner, space, fact(f"{common} here"), fact(f"{common} there"), fact("The zebra."))
    assert "The zebra." in await found(small_world, owner, f"{common} zebra")


async def test_how_well_something_is_found_does_not_depend_on_what_others_remember(small_world: World):
    owner, space = await owner_in(small_world)
    others = Owner("organization", owner.organization_id)
    await remember(small_world, owner, space, fact("Tea is at four."), fact("The hall is cold."))

    async def scores() -> list[float]:
        hits = await small_world.denizen.db.read(searching.search, owner.key, MemoryQuestion("tea hall"), limit=10)
        return [each.score for each in hits]

    before = await scores()
    await remember(small_world, others, space, *(fact(f"Tea in hall {n}, as on each of those days.") for n in range(9)))
    assert await scores() == before


async def test_memories_are_listed_by_owner_space_agent_or_organization_in_pages(world: World):
    owner, kitchen = await owner_in(world)
    home = owner.organization_id
    noor = await world.denizen.people.find("@noor", organization=home)
    hall = await world.space("Hall", noor, organization=home)
    ada = await world.agent("Ada", organization=home)
    persona = Owner("persona", home, user_id=owner.user_id, agent_id=ada.id)
    other = await world.denizen.organizations.create("Elsewhere")
    await remember(world, owner, kitchen, fact("Tea is at four."))
    await remember(world, owner, hall.id, fact("The hall is cold."))
    await remember(world, persona, hall.id, fact("Noor likes riddles."))
    await remember(world, Owner("organization", OrganizationId(other.id)), hall.id, fact("It rains there."))

    async def listed(**which: Any) -> list[str]:
        return [each.text.split()[0] for each in await world.denizen.memory.list(**which)]

    assert await listed(owner=owner.key) == ["The", "Tea"]
    assert await listed(space=kitchen) == ["Tea"]
    assert await listed(space=hall) == ["It", "Noor", "The"]
    assert await listed(agent=ada) == ["Noor"]
    assert await listed(organization=home) == ["Noor", "The", "Tea"]
    first, second = await world.denizen.memory.list(organization=home, limit=2)
    assert [first.text, second.text] == ["Noor likes riddles.", "The hall is cold."]
    assert await listed(organization=home, before=second.number) == ["Tea"]
    assert await listed(space=hall, before=first.number, limit=1) == ["The"]


class Questions:
    """An embedder that only understands questions."""

    name = "e"

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [vector(100, 12, 1) if asking else vector(0, 0, 100) for _ in texts]

    async def close(self) -> None: ...


async def test_people_look_in_all_their_memories_at_once(small_world: World):
    """The best of all owners first, and no more than are wanted; by meaning as well as by words."""
    owner, space = await owner_in(small_world)
    everyones, db = Owner("organization", owner.organization_id), small_world.denizen.db
    tea = fact("Tea is at four.", vector=vector(100, 10, 0))
    await remember(small_world, owner, space, tea, embedder="e")
    await remember(small_world, everyones, space, fact("The cake is a cake, tea or not."), fact("Cake."))

    async def looked(query: str, limit: int, embedder: Questions | None = None) -> list[str]:
        return [each.item.text for each in await look(db, embedder, query, [owner.key, everyones.key], limit)]

    assert await looked("cake", 1) == ["The cake is a cake, tea or not."]
    assert await looked("cake", 9) == ["The cake is a cake, tea or not.", "Cake."]
    assert await looked("beverage", 9) == []
    assert await looked("beverage", 9, Questions()) == [tea.text]


async def test_of_each_scope_as_many_are_brought_back_as_are_wanted_and_none_of_one_that_is_not(small_world: World):
    owner, space = await owner_in(small_world)
    everyones = Owner("organization", owner.organization_id)
    for each in (owner, everyones):
        await remember(small_world, each, space, fact("Tea is at four."), fact("Tea is black.", "m2"))
    retriever = DatabaseRetriever(small_world.denizen.db)

    async def brought_back(**top_k: int) -> list[str]:
        wanted = MemoryQuery("tea", (owner, everyones), top_k)  # pyright: ignore[reportArgumentType]
        return [each.scope for each in await retriever.retrieve(wanted)]

    assert await brought_back(user=5, organization=1) == ["user", "user", "organization"]
    assert await brought_back(user=1) == ["user"]
    assert await brought_back(user=0, organization=2) == ["organization", "organization"]


async def test_what_a_pass_leaves_is_remembered_with_what_it_means(small_world: World):
    """By each owner that shares it; of the conversation also as a whole."""
    owner, space = await owner_in(small_world)
    conversation = Owner("conversation", owner.organization_id, space_id=space)
    tea = fact("Tea is at four.")
    batch = PassMemories(
        owner.organization_id,
        space,
        ("m1",),
        "They drink tea.",
        "{}",
        (Share(owner, (tea,)), Share(conversation, (tea,))),
    )
    await small_world.denizen.db.write(keep_memories, batch, {tea.text: vector(100, 10, 0)}, "e")
    for each in (owner, conversation):
        assert await found(small_world, each, "beverage", vector=vector(100, 12, 1), embedder="e") == [tea.text]
    wholes = [each for each in await small_world.denizen.memory.list(space=space) if each.kind != "item"]
    assert [(each.scope, each.text) for each in wholes] == [("conversation", "They drink tea.")]
