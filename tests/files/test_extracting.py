"""Files are read in the background: their text can be read page by page, and recalled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import bindparam, delete, func, select

from denizen import call, reply
from denizen.consciousness import compaction
from denizen.consciousness.recall.file_passages import hear_missing, remember_files
from denizen.cycles.catching_up import catch_up, lagging
from denizen.files import extracting, jail, storing
from denizen.files.extracting import CLAIM_SECONDS, MOST_TRIES, ExtractedText
from denizen.files.storing import File
from denizen.ids import AgentId
from denizen.storage.database import Tx, insert_into, statement, value, values
from denizen.storage.schema import messages, passages, postings, recalls
from tests.files import documents
from tests.files.showing import show
from tests.world import World, as_text, open_world


@pytest.fixture
async def world(ready_url: str) -> AsyncIterator[World]:
    async with open_world(ready_url) as world:
        yield world


async def test_an_agent_reads_some_pages_of_a_pdf(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, documents.pdf("Soup.", "Pie.", "Tea."), name="menu.pdf")
    ada = await world.agent(
        "Ada",
        call("read_entry", entry=f"file:{file.id}:2-3"),
        call("read_entry", entry=f"file:{file.id}:9"),
        reply("Pie."),
        "Told Noor.",
    )
    await show(world, noor, ada, "What comes second?", file)
    _, second, third, _ = world.model(ada).requests
    assert "[page 2 of 3]\nPie.\n\n[page 3 of 3]\nTea." in as_text(second[-1])
    assert "Soup." not in as_text(second[-1])
    assert "The file has pages 1 to 3." in as_text(third[-1])


async def test_the_text_of_a_file_is_recalled_with_its_page(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, documents.pdf("Soup.", "The violin is in the cellar."), name="a.pdf")
    ada = await world.agent(
        "Ada", reply("Thanks."), "Noted.", call("recall", query="violin cellar"), reply("In the cellar."), "Told."
    )
    hall = await show(world, noor, ada, "Keep this.", file)
    found = await world.denizen.minds.recall(ada, "violin")
    passage = (found[0].who, found[0].text, found[0].pointer)
    assert passage == ("a.pdf, page 2", "The violin is in the cellar.", f"file:{file.id}:2")
    await world.say(noor, "Where is it?", hall)
    await world.run()
    assert "The violin is in the cellar." in as_text(world.model(ada).requests[-2][-1])
    answer = (await world.denizen.spaces.messages(hall))[-1]
    assert answer.outside, "it is made of text from outside"


async def test_a_file_is_nobody_that_the_agent_heard(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, documents.pdf("Soup.", "Pie."), name="menu.pdf")
    ada = await world.agent("Ada", reply("Thanks."), "Noted.")
    hall = await show(world, noor, ada, "Keep this.", file)
    assert await world.denizen.minds.recall(ada, "pie")
    [cycle] = await world.denizen.db.read(compaction.lived, AgentId(ada.id), 1, 1)
    assert (list(cycle.people), list(cycle.places)) == ([noor.id], [hall.id])


async def test_the_text_of_a_file_in_a_private_space_stays_there(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, documents.pdf("The violin is in the cellar."), name="a.pdf")
    ada = await world.agent("Ada", reply("Thanks."), "Noted.")
    study = await world.denizen.spaces.create("Study", [noor, ada], private=True)
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.post(study, noor, "Keep this.", files=[file])
    await world.run()
    assert await world.denizen.minds.recall(ada, "violin", space=study)
    assert not await world.denizen.minds.recall(ada, "violin", space=hall)
    assert not await world.denizen.minds.recall(ada, "violin")


@pytest.mark.parametrize("how", ["delete", "forget"])
async def test_deleting_and_forgetting_a_message_removes_its_files_from_recall(world: World, how: str) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, documents.pdf("The violin is in the cellar."), name="a.pdf")
    ada = await world.agent("Ada", reply("Thanks."), "Noted.")
    hall = await world.space("Hall", noor, ada)
    message = await world.denizen.spaces.post(hall, noor, "Keep this.", files=[file])
    await world.run()
    assert await world.denizen.minds.recall(ada, "violin")
    if how == "delete":
        await world.denizen.spaces.delete_message(message, by=noor)
    else:
        await world.denizen.spaces.forget_message(message)
    assert not await world.denizen.minds.recall(ada, "violin")


async def test_an_unreadable_file_says_why_and_holds_nobody_up(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, b"%PDF-1.4 nothing", name="menu.pdf")
    ada = await world.agent("Ada", call("read_entry", entry=f"file:{file.id}"), reply("I cannot."), "Told Noor.")
    await show(world, noor, ada, "What is there?", file)
    told = '"menu.pdf" (application/pdf, 16 bytes) is unreadable: it is damaged.'
    assert told in as_text(world.model(ada).requests[1][-1])


async def test_a_file_is_read_once_whoever_else_tries(world: World) -> None:
    db = world.denizen.db
    file = await world.denizen.files.upload(await world.person("Noor"), documents.pdf("Soup."), name="menu.pdf")
    claimed = await db.write(extracting.claim_next)
    assert claimed is not None
    assert await db.write(extracting.claim_next) is None
    await db.write(extracting.end_reading, claimed.content_id, ExtractedText(["Soup."]))
    await db.write(extracting.end_reading, claimed.content_id, ExtractedText(["Soup again."]))
    assert await db.read(storing.pages_of, file) == ["Soup."]
    assert await db.write(extracting.claim_next) is None


async def test_what_a_dead_process_was_reading_is_read_after_the_clock_was_set_back(world: World) -> None:
    """Its claim ends tomorrow, by a clock that had been wrong."""
    db = world.denizen.db
    await world.denizen.files.upload(await world.person("Noor"), documents.pdf("Soup."), name="menu.pdf")
    assert await db.write(extracting.claim_next) is not None
    world.clock.advance(-86_400)
    assert await db.write(extracting.claim_next) is not None


async def test_what_a_dead_process_was_reading_is_read_by_another_but_not_for_ever(world: World) -> None:
    db = world.denizen.db
    file = await world.denizen.files.upload(await world.person("Noor"), documents.pdf("Soup."), name="menu.pdf")
    for _ in range(MOST_TRIES):
        assert (await db.write(extracting.claim_next)) == extracting.Claim(file.content_id, "pdf")
        world.clock.advance(CLAIM_SECONDS + 1)
    await extracting.read_waiting(db)
    assert (await db.read(storing.reading_of, file)).trouble == "reading it has failed several times"


async def test_the_same_content_is_read_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    noor = await world.person("Noor")
    first = await world.denizen.files.upload(noor, documents.pdf("Soup."), name="menu.pdf")
    await extracting.read_waiting(world.denizen.db)

    async def never(*_: object) -> jail.JailOutput:
        raise AssertionError("it was read again")

    monkeypatch.setattr(jail, "run", never)
    again = await world.denizen.files.upload(noor, documents.pdf("Soup."), name="other.pdf")
    await extracting.read_waiting(world.denizen.db)
    assert again.content_id == first.content_id
    assert await world.denizen.db.read(storing.text_of, again) == "Soup."


async def test_a_content_is_read_under_the_name_that_says_what_it_is(world: World) -> None:
    noor = await world.person("Noor")
    await world.denizen.files.upload(noor, documents.pdf("Soup."), name="data.bin")
    again = await world.denizen.files.upload(noor, documents.pdf("Soup."), name="menu.pdf")
    await extracting.read_waiting(world.denizen.db)
    assert await world.denizen.db.read(storing.text_of, again) == "Soup."


async def violin_file(world: World) -> tuple[AgentId, File]:
    """An agent that has heard of a file with three pages, the last of which tells of a violin."""
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(
        noor, documents.pdf("Soup.", "Pie.", "The violin is in the cellar."), name="a.pdf"
    )
    ada = await world.agent("Ada", reply("Thanks."), "Noted.")
    await show(world, noor, ada, "Keep this.", file)
    assert await texts_of(world, ada.id) == TEXTS
    return ada.id, file


TEXTS = ["Keep this.", "Thanks.", "Noted.", "Soup.", "Pie.", "The violin is in the cellar."]
_recallable = statement(
    select(func.coalesce(messages.c.text, passages.c.text))
    .outerjoin(messages, messages.c.id == passages.c.message_id)
    .where(passages.c.agent_id == bindparam("agent_id"))
    .order_by(passages.c.number)
)


async def texts_of(world: World, agent_id: AgentId) -> list[str]:
    """What the agent can recall."""
    return await world.denizen.db.read(lambda tx: values(tx, _recallable, agent_id=agent_id))


def lose_passages(tx: Tx, agent_id: AgentId, *, after_page: int | None) -> None:
    """As in a life from before passages, or one that was exported while its files were being read."""
    of_agent = passages.c.agent_id == agent_id
    some = passages.c.page > after_page if after_page else passages.c.number > 0
    tx.run(statement(delete(passages).where(of_agent, some)))
    for table in (recalls, postings):
        tx.run(statement(delete(table).where(table.c.agent_id == agent_id)))
    left = value(tx, statement(select(func.count()).select_from(passages).where(of_agent)))
    if left:
        tx.run(insert_into(recalls, "agent_id", "passages"), agent_id=agent_id, passages=left)


async def test_the_text_of_files_is_recalled_again_after_catching_up(world: World) -> None:
    ada, file = await violin_file(world)
    db = world.denizen.db
    await db.write(lose_passages, ada, after_page=None)
    assert await texts_of(world, ada) == []
    for _ in range(2):
        await catch_up(db, ada)
        await remember_files(db)
        assert await texts_of(world, ada) == TEXTS
    found = await world.denizen.minds.recall(ada, "violin")
    assert found[0].pointer == f"file:{file.id}:3"


async def test_the_text_of_files_does_not_hide_cycles_that_cannot_be_recalled(world: World) -> None:
    """The text of a file is written as soon as it is read, also before the passages of earlier cycles."""
    ada, _ = await violin_file(world)
    db = world.denizen.db
    await db.write(lose_passages, ada, after_page=None)
    await db.write(hear_missing, ada)
    await remember_files(db)
    assert await lagging(db) == [ada]
    await catch_up(db, ada)
    assert await texts_of(world, ada) == TEXTS[3:] + TEXTS[:3]


async def test_files_that_were_not_read_to_their_end_are_read_on(world: World) -> None:
    """An agent that was exported meanwhile has the first pages only."""
    ada, _ = await violin_file(world)
    db = world.denizen.db
    await db.write(lose_passages, ada, after_page=2)
    assert await texts_of(world, ada) == TEXTS[:-1]
    assert await db.write(hear_missing, ada) == 1
    assert await db.write(hear_missing, ada) == 0
    await remember_files(db)
    assert await db.write(hear_missing, ada) == 0
    assert await texts_of(world, ada) == TEXTS


async def test_an_imported_agent_recalls_its_files_also_if_they_were_not_read_yet(world: World, tmp_path: Path) -> None:
    """A service sent the file, so the agent has it: it is in the export."""
    denizen = world.denizen
    scan = tmp_path / "a.pdf"
    scan.write_bytes(documents.pdf("The violin is in the cellar."))
    ada = await world.agent("Ada", "Noted.")
    await denizen.agents.trigger(ada, "scanner", "A letter came.", files=[scan])
    await world.run()
    before = await texts_of(world, ada.id)
    assert before[-1] == "The violin is in the cellar."
    await denizen.db.write(lose_passages, ada.id, after_page=None)
    path = tmp_path / "ada.jsonl"
    with path.open("w") as out:
        async for line in denizen.agents.export(ada):
            out.write(line)
    copied = await denizen.organizations.import_file(path, handle="ada-2")
    await remember_files(denizen.db)
    assert await texts_of(world, AgentId(copied.id)) == before
