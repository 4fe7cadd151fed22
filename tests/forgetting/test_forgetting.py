"""Forgetting a message, a person, a space: not one word of it is left, and nothing else has changed."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import Text

from denizen import call, forever, reply, scripted, tool
from denizen.agents.registry import Agent
from denizen.checker import check_deeply
from denizen.errors import ContentRefused, InvalidInput, NotFound
from denizen.forgetting import redacting
from denizen.forgetting.redacting import Redactor
from denizen.forgetting.text_columns import PLACES
from denizen.ids import MessageId
from denizen.inbox import statuses
from denizen.models.scripted import Info, Turn
from denizen.spaces import posting
from denizen.spaces.directory import Entity, Space
from denizen.spaces.quotes import Quotes
from denizen.storage.database import Tx
from denizen.storage.schema import metadata
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.disguises import DISGUISES, TEXT
from tests.properties.house import everything
from tests.world import Waiting, World, as_text, open_world, someone_waits

SECRET = "Quentin hid the violet xylophone beneath seventeen crooked umbrellas last Thursday."
QUIET = {"silent_reply": "ignore"}


async def dump(world: World) -> str:
    """Everything that is stored, as text."""
    rows = await world.denizen.db.read(everything)
    return "\n".join(f"{table} {value}" for table, found in rows.items() for row in found for value in row)


async def assert_gone(world: World, *words: str) -> None:
    stored = (await dump(world)).casefold()
    left = [line for line in stored.splitlines() for word in words if word.casefold() in line]
    assert left == []
    assert await world.denizen.db.read(check_deeply) == []


WORDS = ("quentin", "violet", "xylophon", "umbrella", "crooked")


async def a_life(world: World, *turns: Turn) -> tuple[Agent, Entity, Entity, Space]:
    ada = await world.agent("Ada", *turns, cycle=QUIET)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    kitchen = await world.space("Kitchen", noor, bert, ada)
    return ada, noor, bert, kitchen


async def test_a_message_is_gone_everywhere(world: World):
    """Said, heard, quoted, noted, planned, summed up, read again, recalled: of all that nothing is left."""
    note = call("set_memories", memories=[{"key": "place", "text": SECRET}])
    goal = call("set_goals", text=f"Remember: {SECRET}")
    plan = call("set_timer", name="look", reason=SECRET, after="2 days")
    ada, noor, bert, kitchen = await a_life(
        world,
        [note, goal, plan, reply(f"So: {SECRET}")],
        f"Noor says: {SECRET}",
        [call("read_messages"), call("recall", query=SECRET)],
        "Looked it up.",
    )
    posted = await world.say(noor, SECRET, kitchen, metadata={"draft": SECRET})
    await world.run()
    await world.say(bert, f'"{SECRET.upper()}" is what she said.', kitchen)
    await world.run()
    await world.denizen.agents.trigger(ada, "mail", {"body": SECRET}, text="Mail")
    before = await world.denizen.db.read(everything)

    receipt = await world.denizen.spaces.forget_message(posted.id, by=noor)

    await assert_gone(world, *WORDS)
    assert (receipt.kind, receipt.subject_id, receipt.by_id) == ("message", posted.id, noor.id)
    assert {"messages", "events", "log", "cycles", "notes", "goals", "plans", "passages", "selves"} >= {
        *receipt.removed
    } - {"minds", "effects", "overflow"}
    assert receipt.removed["messages"] == 3
    assert await world.denizen.organizations.receipts() == [receipt]
    assert await world.transcript(kitchen) == [
        "Noor: [forgotten]",
        "Ada: So: [forgotten].",
        'Bert: "[forgotten]." is what she said.',
    ]
    after = await world.denizen.db.read(everything)
    for table in ("messages", "events", "log", "cycles", "effects", "notes", "goals", "plans", "selves"):
        assert len(after[table]) == len(before[table]), table


async def test_a_message_is_gone_in_every_disguise(small_world: World):
    """Invisible characters, lookalikes, letters run together or spaced apart: none of them keeps the words."""
    world = small_world
    disguises = list(DISGUISES.values())
    _, noor, _, kitchen = await a_life(world, [reply(f"So: {each} Ok.") for each in disguises], "Repeated it.")
    posted = await world.say(noor, TEXT, kitchen)
    await world.run()
    assert len(await world.transcript(kitchen)) == len(disguises) + 1

    await world.denizen.spaces.forget_message(posted.id, by=noor)

    left = await world.transcript(kitchen)
    quotes = Quotes()
    quotes.add(TEXT)
    assert [each for each in left if quotes.occur_in(each) or len(each) > 40] == []
    stored = await dump(world)
    # Text is stored as it is, or as JSON writes it.
    kept = [each for each in disguises if each[:40] in stored or json.dumps(each[:40])[1:-1] in stored]
    assert kept == []
    assert await world.denizen.db.read(check_deeply) == []


@pytest.mark.parametrize("text", ["Yes", "👍", "no way", 'He said "no"', "One\ntwo", "see you soon then"])
async def test_a_short_message_is_gone_where_it_was_heard_and_nowhere_else(world: World, text: str):
    """Its words may be anybody's: only where it was said and read are they its own."""
    ada, noor, bert, kitchen = await a_life(
        world, reply("Heard you."), "Noted.", call("read_messages"), "Read it.", "Fine."
    )
    posted = await world.say(noor, text, kitchen)
    await world.run()
    await world.say(bert, "What did she say?", kitchen)
    await world.run()
    await world.say(bert, f"{text}", kitchen)

    await world.denizen.spaces.forget_message(posted.id)

    told = await world.history(ada)
    assert 'Noor (human): "[forgotten]"' in told[0]
    read = next(line for line in told if "read_messages →" in line)
    assert 'Noor (human): "[forgotten]"' in read
    assert (await world.transcript(kitchen))[-1] == f"Bert: {text}"
    assert await world.denizen.db.read(check_deeply) == []


async def test_texts_that_were_cut_leave_no_half_of_a_word(world: World):
    """A long message is cut in the inbox, in the middle of a word, and read on from there."""
    text = " ".join(f"pelican{number:04d}" for number in range(2_000))
    _, noor, _, kitchen = await a_life(world)
    posted = await world.say(noor, text, kitchen)
    pages = [call("read_entry", entry=f"message:{posted.id}", offset=offset) for offset in (8_000, 12_003)]
    await world.restart(ada=scripted(pages, f"It begins: {text[:333]}"))
    await world.run()
    assert "pelican" in await dump(world)
    await world.denizen.spaces.forget_message(posted.id)
    await assert_gone(world, "pelican", "elican0", "pelic ")


async def test_what_a_message_said_before_it_was_edited_or_deleted_is_gone_too(world: World):
    ada, noor, _, kitchen = await a_life(world, "Noted.", "Noted again.")
    posted = await world.say(noor, SECRET, kitchen)
    await world.run()
    other = "Actually Oswald buried nineteen copper trumpets somewhere along the northern riverbank."
    await world.denizen.spaces.edit_message(posted.id, other, by=noor)
    await world.denizen.spaces.delete_message(posted.id, by=noor)
    await world.say(noor, "Forget that.", kitchen)
    await world.run()
    assert "xylophone" in await dump(world)

    await world.denizen.spaces.forget_message(posted.id)

    await assert_gone(world, *WORDS, "oswald", "trumpet", "riverbank")
    assert len(await world.history(ada)) == 4


async def test_replies_are_forgotten_on_request(world: World):
    """What an agent wrote in words of its own stays, unless one asks for it."""
    ada, noor, _, kitchen = await a_life(
        world,
        [call("set_goals", text="Tidy"), reply("A strange instrument under rain gear!")],
        "Oddities.",
    )
    posted = await world.say(noor, SECRET, kitchen)
    await world.run()
    await world.denizen.spaces.forget_message(posted.id)
    await assert_gone(world, *WORDS)
    assert "rain gear" in await dump(world)

    receipt = await world.denizen.spaces.forget_message(posted.id, also_replies=True)

    await assert_gone(world, "instrument", "rain gear", "oddities")
    assert receipt.removed["messages"] == 1
    assert [each.summary for each in await world.cycles(ada)] == ["[forgotten]"]


async def test_a_person_is_gone_everywhere(world: World):
    """What they said, who they were, what others said of them, and how they could come in."""
    ada, noor, bert, kitchen = await a_life(
        world,
        [
            reply("Good morning, Noor! @noor"),
            call("set_memories", memories=[{"key": "noor_tea", "text": "Green tea."}]),
        ],
        "Greeted noor.",
        "Nothing.",
    )
    await world.denizen.agents.edit(ada, instructions="Help Noor first.", urgent={"people": ["noor"]}, zone="UTC")
    await world.say(noor, SECRET, kitchen)
    await world.run()
    await world.say(bert, "Where is @noor? I miss NOOR.", kitchen)
    await world.space("Noor and friends", bert, ada)
    await world.run()

    receipt = await world.denizen.people.forget(noor, by=bert)

    await assert_gone(world, *WORDS, "noor")
    assert receipt.removed["memberships"] == 1
    assert [member.entity.name for member in await world.denizen.spaces.members(kitchen)] == ["Ada", "Bert"]
    assert (await world.denizen.spaces.messages(kitchen))[0].author_name == "(forgotten)"
    again = await world.denizen.people.create("Noor", handle="noor")
    assert again.id != noor.id, "the handle is free"
    assert await world.denizen.people.forget(noor) == receipt


async def test_a_space_is_gone_everywhere(world: World):
    ada, noor, _, _ = await a_life(world, reply("Brass bells tonight?"), "Talked in Observatory.", "Heard Bert.")
    dome = await world.space("Observatory", noor, ada)
    await world.say(noor, SECRET, dome)
    await world.run()
    await world.denizen.spaces.forget(dome)

    await assert_gone(world, *WORDS, "observatory", "brass bells")
    assert await world.denizen.spaces.members(dome) == []
    assert [message.text for message in await world.denizen.spaces.messages(dome)] == ["[forgotten]"] * 2


async def test_an_agent_goes_on_with_a_mind_that_has_forgotten(world: World):
    """Its next request holds nothing of it, though its mind was warm; and a new era has begun."""
    ada, noor, _, kitchen = await a_life(world, "Noted.", "Hello again.")
    async with world.denizen.living() as residents:
        posted = await world.say(noor, SECRET, kitchen)
        await residents.run_until_idle()
        await world.denizen.spaces.forget_message(posted.id)
        await world.say(noor, "Hello?", kitchen)
        await residents.run_until_idle()
    last = (await world.prompts(ada))[-1]
    assert "xylophone" not in "\n".join(last)
    assert 'Noor (human): "[forgotten]"' in "\n".join(last)
    assert (await world.endings(ada))[-1][3] == "Hello again."


async def test_a_cycle_under_way_does_not_bring_it_back(world: World):
    """Forgotten while the agent waits for a tool: it goes on with what is left, and nothing was done twice."""
    called, release = asyncio.Event(), asyncio.Event()
    times: list[str] = []

    @tool(on_crash="report")
    async def look(where: str) -> str:
        """Look somewhere."""
        times.append(where)
        called.set()
        await release.wait()
        return f"Found there: {SECRET}"

    noor = await world.person("Noor")
    ada = await world.agent("Ada", call("look", where="shed"), "Done looking.", tools=[look], cycle=QUIET)
    kitchen = await world.space("Kitchen", noor, ada)
    async with world.denizen.living() as residents:
        posted = await world.say(noor, SECRET, kitchen)
        await called.wait()
        await world.denizen.spaces.forget_message(posted.id)
        release.set()
        await residents.run_until_idle()
    await assert_gone(world, *WORDS)
    assert times == ["shed"]
    assert [each[3] for each in await world.endings(ada)] == ["Done looking."]


async def test_a_thought_that_forgetting_interrupts_has_not_failed(small_world: World):
    world, begun, release = small_world, asyncio.Event(), asyncio.Event()
    seen: list[Waiting] = []

    async def answer(_messages: list[ModelMessage], info: Info) -> Turn:
        if info.number == 0:
            begun.set()
            await release.wait()
        seen.extend(await world.waiting(ada))
        return "Read it."

    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=forever(answer), cycle=QUIET)
    kitchen = await world.space("Kitchen", noor, ada)
    posted = await world.say(noor, SECRET, kitchen)
    async with world.denizen.living() as residents:
        await begun.wait()
        await world.denizen.spaces.forget_message(posted.id)
        seen.clear()
        release.set()
        await residents.run_until_idle()
    assert seen[-1] == Waiting("[forgotten]", "taken", attempts=0)


async def test_whoever_is_writing_it_down_is_waited_for(ready_postgres_url: str):
    """It was read before it was forgotten, and written after: nobody would have found it there."""
    async with open_world(ready_postgres_url) as world:
        ada, noor, _, kitchen = await a_life(world)
        posted = await world.say(noor, SECRET, kitchen)
        writing, may_end = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def quote(tx: Tx) -> None:
            posting.post(tx, kitchen.id, ada.id, posting.draft(posting.get_message(tx, posted.id).text))
            loop.call_soon_threadsafe(writing.set)
            assert may_end.wait(60)

        async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
            tasks.create_task(world.denizen.db.write(quote))
            await writing.wait()
            forgetting = tasks.create_task(world.denizen.spaces.forget_message(posted.id))
            while not (forgetting.done() or await world.denizen.db.read(someone_waits)):
                pass
            may_end.set()
        await assert_gone(world, *WORDS)


async def test_what_waits_in_an_inbox_is_taken_out(world: World):
    ada, noor, _, kitchen = await a_life(world)
    posted = await world.say(noor, SECRET, kitchen)
    await world.denizen.spaces.forget_message(posted.id)
    assert await world.inbox(ada) == []
    await world.run()
    assert await world.history(ada) == []
    await assert_gone(world, *WORDS)


async def test_nothing_of_it_is_left_in_the_files_either(small_world: World):
    """SQLite overwrites what it deletes, and its write-ahead log is emptied."""
    world = small_world
    _, noor, _, kitchen = await a_life(world, reply(f"So: {SECRET}"), SECRET)
    posted = await world.say(noor, SECRET, kitchen)
    await world.run()
    path = Path(world.url.removeprefix("sqlite:///"))
    await world.denizen.spaces.forget_message(posted.id)
    for file in path.parent.glob(f"{path.name}*"):
        assert b"xylophone" not in file.read_bytes(), file.name


async def test_what_cannot_be_forgotten_is_refused(world: World):
    ada, _, _, _ = await a_life(world)
    with pytest.raises(InvalidInput, match="Delete the agent"):
        await world.denizen.people.forget(ada.entity)
    with pytest.raises(NotFound):
        await world.denizen.spaces.forget_message(MessageId("nothing"))
    assert await world.denizen.organizations.receipts() == []


ELSEWHERE = {
    "messages": {"text", "plain", "mentions", "metadata", "files"},
    "passages": {"text", "speaker"},
    "postings": {"term"},
    "agents": {"definition", "urgent"},
    "notes": {"key"},
    "fact_spaces": {"fact"},
    "audit": {"detail"},
    "entities": {"handle"},
    "secrets": {"name", "hint", "sealed"},
    "addresses": {"account"},
    "outbox": {"detail"},
    "server_keys": {"name"},
    "identities": {"issuer", "subject"},
    "advisors": {"handle"},
    "memories": {"text", "document"},
    "memory_changes": {"text"},
    "memory_terms": {"term"},
    "signals": {"name"},
    "voice_signals": {"name"},
}
"""Columns with words that have their own way of forgetting."""
WORDLESS = {
    "id", "agent_id", "space_id", "cycle_id", "entity_id", "organization_id", "author_id", "message_id", "event_id",
    "kind", "state", "status", "type", "role", "attention", "outcome", "stop_reason", "tool", "mode", "model",
    "reply_to", "holder", "runner", "on_crash", "digest", "settled_by", "active_space_id", "owner_id", "zone",
    "held_by", "shortened", "schedule", "scheme", "sealed", "embedder", "speaker_id", "subject_id",
    "by_id", "receipt", "from_space_id", "to_space_id", "settings", "tools", "voice", "part", "asked_by", "round_id",
    "colour", "error_code", "reader_id", "user_id", "owner", "scope", "category", "hash", "sources", "superseded_by",
    "policy", "replaced", "person_id", "preset", "mood", "skill", "complexity", "counters", "metaprompt", "cause",
    "parked_cause", "floor", "action", "token_id", "payer_id", "call",
    "rule", "given_by", "call_id", "media_type", "uploader_id", "content_id", "link_key", "reactions",
    "chain_id", "row_id", "member_id", "reading", "trouble", "file_id", "subscription_id", "endpoint", "p256dh", "auth",
    "bridge_id", "channel_id", "parent_id", "outside_id", "guest_id", "reactor_id", "code", "code_for", "cursor",
    "direction", "transaction_id", "emoji",
}  # fmt: skip
"""Columns that hold identifiers, words of our own, or what no person has said."""


@pytest.mark.parametrize("levels", [1, 300, 100_000])
def test_words_go_however_deep_they_are_nested(levels: int) -> None:
    """Anybody could keep a house from forgetting by a text of many brackets."""
    quotes = Quotes()
    quotes.add(SECRET)
    for closed in ("]" * levels, ""):
        stored = f'{"[" * levels}"{SECRET}"{closed}'
        assert SECRET not in Redactor(quotes).text(stored)
        assert SECRET not in redacting.blank(stored)


def test_every_column_that_keeps_words_has_its_place() -> None:
    """A new table that keeps what is said cannot be overlooked."""
    known: dict[str, set[str]] = {name: set(columns) for name, columns in ELSEWHERE.items()}
    for place in PLACES:
        known.setdefault(place.name, set()).update(place.columns)
    overlooked = [
        f"{table.name}.{column.name}"
        for table in metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, Text) and column.name not in known.get(table.name, set()) | WORDLESS
    ]
    assert overlooked == []


async def test_a_status_goes_with_the_message_that_it_was_shown_for(world: World):
    """Deleted or forgotten, a message waits no more; another that waits keeps the status."""
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    two = await world.space("Two", noor, ada)
    await world.denizen.agents.suspend(ada)
    posted = [await world.say(noor, text, two) for text in ("One", SECRET, "Three")]

    async def shown() -> list[tuple[str, str | None]]:
        found = await world.denizen.db.read(statuses.of_space, two.id)
        return [(each.cause, each.message_id) for each in found]

    assert await shown() == [("suspended", posted[2].id)]
    await world.denizen.spaces.delete_message(posted[2].id, by=noor)
    assert await shown() == [("suspended", posted[1].id)]
    await world.denizen.spaces.forget_message(posted[1].id, by=noor)
    assert await shown() == [("suspended", posted[0].id)]
    await assert_gone(world, *WORDS)
    await world.denizen.spaces.delete_message(posted[0].id, by=noor)
    assert await shown() == []


@pytest.mark.parametrize("what", ["person", "space"])
async def test_no_status_is_left_of_a_person_or_a_space(world: World, what: str):
    refused = ContentRefused("no")
    ada = await world.agent("Ada", refused, refused, refused)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    two = await world.space("Two", noor, ada)
    await world.say(noor, SECRET, two)
    await world.run()
    assert len(await world.denizen.db.read(statuses.of_space, two.id)) == 1
    if what == "person":
        await world.denizen.people.forget(noor.id, by=bert)
    else:
        await world.denizen.spaces.forget(two.id, by=noor)
    assert await world.denizen.db.read(statuses.of_space, two.id) == []
    await assert_gone(world, *WORDS)


async def test_a_dry_run_removes_nothing_and_says_what_would_be(world: World):
    ada, noor, _, kitchen = await a_life(world, reply(f"So: {SECRET}"), "Repeated it.")
    posted = await world.say(noor, SECRET, kitchen)
    await world.run()
    for forget, subject in (
        (world.denizen.spaces.forget_message, posted.id),
        (world.denizen.people.forget, noor.id),
        (world.denizen.spaces.forget, kitchen.id),
    ):
        before = await world.denizen.db.read(everything)
        expected = await forget(subject, by=noor, dry_run=True)  # pyright: ignore[reportArgumentType]
        assert await world.denizen.db.read(everything) == before
        assert await world.denizen.organizations.receipts() == []
        assert (expected.subject_id, expected.by_id) == (subject, noor.id)
        assert expected.removed["messages"] == 2
    receipt = await world.denizen.spaces.forget_message(posted.id, by=noor)
    assert receipt.removed == (await world.denizen.organizations.receipts())[0].removed
    assert len(await world.cycles(ada)) == 1


async def test_what_came_to_mind_by_itself_is_gone_too(world: World):
    """It is an entry of the log like any other, and beside it only the numbers of the passages are kept."""

    def answering(messages: list[ModelMessage], _info: Info) -> Turn:
        return reply("I see.") if as_text(messages[-1]).startswith(("[INBOX", "[RECALLED")) else "Listened."

    small = {"max_tokens": Toolbox(PREBUILT).tokens + 2_000, "strategy": "semantic", "min_recent_cycles": 2}
    ada = await world.agent("Ada", model=forever(answering), window=small, cycle=QUIET)
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)
    posted = await world.say(noor, SECRET, kitchen)
    for text in (*(f"Bird {number} " + f"tirili{number} " * 40 for number in range(12)), "Where is the xylophone?"):
        await world.run()
        await world.say(noor, text, kitchen)
    await world.run()
    assert any(
        each.kind == "recalled" and "umbrellas" in as_text(each.message) for each in await world.denizen.minds.log(ada)
    )

    await world.denizen.spaces.forget_message(posted.id)

    await assert_gone(world, "quentin", "violet", "umbrella", "crooked")
