"""Files of messages: who may attach and read them, and what deleting a message removes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from denizen import InvalidInput, NotFound, call, reply
from denizen.files.cleanup import tidy
from tests.world import World, as_text, open_world


@pytest.fixture
async def world(ready_url: str) -> AsyncIterator[World]:
    async with open_world(ready_url) as world:
        yield world


async def test_a_message_has_files(world: World) -> None:
    noor, bo = await world.person("Noor"), await world.person("Bo")
    hall = await world.space("Hall", noor, bo)
    first = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    second = await world.denizen.files.upload(noor, b"%PDF", name="plan.pdf")
    await world.denizen.spaces.post(hall, noor, "", files=[first, second])
    [message] = await world.denizen.spaces.messages(hall)
    assert [(each.name, each.media_type, each.size) for each in message.files] == [
        ("menu.txt", "text/plain", 4),
        ("plan.pdf", "application/pdf", 4),
    ]
    assert (await world.denizen.files.get(first, reader=bo)).message_id == message.id


async def test_a_message_without_text_and_files_is_refused(world: World) -> None:
    noor = await world.person("Noor")
    with pytest.raises(InvalidInput, match="needs some text"):
        await world.denizen.spaces.post(await world.space("Hall", noor), noor, "", files=[])


async def test_only_members_of_the_space_read_its_files(world: World) -> None:
    noor, bo = await world.person("Noor"), await world.person("Bo")
    file = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    with pytest.raises(NotFound):  # not attached yet: it is Noor's
        await world.denizen.files.get(file, reader=bo)
    await world.denizen.spaces.post(await world.space("Study", noor), noor, "Mine.", files=[file])
    with pytest.raises(NotFound):
        await world.denizen.files.get(file, reader=bo)


async def test_nobody_attaches_the_file_of_another(world: World) -> None:
    noor, bo = await world.person("Noor"), await world.person("Bo")
    hall = await world.space("Hall", noor, bo)
    file = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    with pytest.raises(NotFound):
        await world.denizen.spaces.post(hall, bo, "Look!", files=[file])
    assert await world.denizen.spaces.messages(hall) == []


async def test_an_unfinished_upload_cannot_be_attached(world: World) -> None:
    noor = await world.person("Noor")
    begun = await world.denizen.files.begin(noor, name="menu.txt", size=4)
    with pytest.raises(InvalidInput, match="not finished"):
        await world.denizen.spaces.post(await world.space("Hall", noor), noor, "Look!", files=[begun])


async def test_a_file_is_sent_on_without_another_upload(world: World) -> None:
    noor, bo = await world.person("Noor"), await world.person("Bo")
    study, hall = await world.space("Study", noor), await world.space("Hall", noor, bo)
    file = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    first = await world.denizen.spaces.post(study, noor, "Mine.", files=[file])
    await world.denizen.spaces.post(hall, noor, "For you too.", files=[file])
    [message] = await world.denizen.spaces.messages(hall)
    [sent_on] = message.files
    assert sent_on.id != file.id
    await world.denizen.spaces.delete_message(first.id, by=noor)
    await tidy(world.denizen.db)
    assert await world.denizen.files.read(sent_on.id) == b"Soup"


@pytest.mark.parametrize("way", ["delete", "forget"])
async def test_a_message_that_is_gone_takes_its_files_with_it(world: World, way: str) -> None:
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    file = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    posted = await world.denizen.spaces.post(hall, noor, "Look!", files=[file])
    if way == "delete":
        await world.denizen.spaces.delete_message(posted.id, by=noor)
    else:
        await world.denizen.spaces.forget_message(posted.id)
    [message] = await world.denizen.spaces.messages(hall)
    assert message.files == ()
    with pytest.raises(NotFound):
        await world.denizen.files.get(file)


async def test_posting_again_attaches_once(world: World) -> None:
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    file = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    first = await world.denizen.spaces.post(hall, noor, "Look!", files=[file])
    again = await world.denizen.spaces.post(hall, noor, "Look!", id=first.id, files=[file])
    [message] = await world.denizen.spaces.messages(hall)
    assert again == first
    assert [each.id for each in message.files] == [file.id]


async def test_what_agents_read_of_a_forgotten_file_is_gone(world: World) -> None:
    noor = await world.person("Noor")
    file = await world.denizen.files.upload(noor, b"The vault opens with 4711 on Sundays.", name="codes.txt")
    ada = await world.agent("Ada", call("read_entry", entry=f"file:{file.id}"), reply("Read."), "Told Noor.")
    hall = await world.space("Hall", noor, ada)
    posted = await world.denizen.spaces.post(hall, noor, "Read this.", files=[file])
    await world.run()
    assert any("4711" in as_text(each) for each in world.model(ada).requests[1])
    await world.denizen.spaces.forget_message(posted.id)
    entries = await world.denizen.minds.log(ada)
    assert [repr(each) for each in entries if "4711" in repr(each) or "codes.txt" in repr(each)] == []
