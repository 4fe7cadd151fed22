"""Agents with files: results of tools, and files that they send."""

from __future__ import annotations

from typing import Any

import pytest

from denizen import ToolFile, call, reply, tool
from denizen.errors import NotFound
from denizen.files.cleanup import tidy
from denizen.files.storing import UNUSED_FILES, FileLimits
from denizen.tools.functions import as_output
from denizen.tools.results import Output
from tests.world import World, as_text, open_world

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(100)


@tool
def draw_chart(title: str) -> list[object]:
    """Draw a chart."""
    return [f"Drew {title}.", ToolFile(PICTURE, "chart.png")]


@tool(background=True)
def draw_slowly() -> ToolFile:
    """Draw a chart, later."""
    return ToolFile(PICTURE, "chart.png")


def sends(ids: list[str], **more: Any) -> Any:
    """A turn that sends the files whose ids are in the list by then."""
    return lambda *_: call("send_message", **{"text": "Here.", **more, "files": list(ids)})


def file_id_in(text: str) -> str:
    return text.rpartition(": id ")[2].partition(";")[0]


async def files_of(world: World, space: object) -> list[tuple[str, str, bytes]]:
    messages = await world.denizen.spaces.messages(space)  # pyright: ignore[reportArgumentType]
    return [
        (message.author_name, each.name, await world.denizen.files.read(each.id))
        for message in messages
        for each in message.files
    ]


async def test_a_tool_returns_a_file_and_the_agent_sends_it(ready_url: str) -> None:
    """The id is known to the model from the result, and only from there."""
    ids: list[str] = []
    async with open_world(ready_url) as world:
        noor = await world.person("Noor")
        script = (call("draw_chart", title="Sales"), reply("Drew it."), "Drew it.", sends(ids), "Sent it.")
        ada = await world.agent("Ada", *script, tools=[draw_chart])
        hall = await world.space("Hall", noor, ada)
        await world.denizen.spaces.post(hall, noor, "A chart, please.")
        await world.run()
        told = as_text(world.model(ada).requests[1][-1])
        assert 'Drew Sales.\n[file "chart.png" (image/png, 108 bytes): id ' in told
        file_id = file_id_in(told)

        # It stays, although no message has it, and nobody else can read it.
        world.clock.advance(3 * 86_400)
        await tidy(world.denizen.db)
        with pytest.raises(NotFound):
            await world.denizen.files.get(file_id, reader=noor)  # pyright: ignore[reportArgumentType]

        ids.append(f"file:{file_id}")
        await world.denizen.spaces.post(hall, noor, "Show me.")
        await world.run()
        assert await files_of(world, hall) == [("Ada", "chart.png", PICTURE)]


async def test_a_file_of_a_background_call_comes_with_its_event(ready_url: str) -> None:
    async with open_world(ready_url) as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", call("draw_slowly"), reply("Wait."), "Waiting.", "Seen.", tools=[draw_slowly])
        hall = await world.space("Hall", noor, ada)
        await world.denizen.spaces.post(hall, noor, "A chart, please.")
        await world.run()
        told = await world.newest_inbox(ada)
        assert '[file "chart.png" (image/png, 108 bytes): id ' in told
        world.clock.advance(3 * 86_400)
        await tidy(world.denizen.db)
        file = await world.denizen.files.get(file_id_in(told), reader=ada)  # pyright: ignore[reportArgumentType]
        assert file.agent_id == ada.id


async def test_a_result_that_is_too_large_says_so() -> None:
    async with open_world("sqlite://", file_limits=FileLimits(file_bytes=50)) as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", call("draw_chart", title="Sales"), reply("Sorry."), "Told.", tools=[draw_chart])
        hall = await world.space("Hall", noor, ada)
        await world.denizen.spaces.post(hall, noor, "A chart, please.")
        await world.run()
        told = as_text(world.model(ada).requests[1][-1])
        assert (
            '[file "chart.png" (108 bytes) was not kept: chart.png is too large (108 bytes). Choose a file of' in told
        )


async def test_an_agent_sends_on_a_file_that_it_was_sent(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    menu = await world.denizen.files.upload(noor, b"Soup", name="menu.txt")
    where: dict[str, str] = {}
    ada = await world.agent(
        "Ada", reply("Seen."), "Seen.", lambda *_: sends([menu.id], text="", **where)(), reply("Sent."), "Sent."
    )
    hall, yard = await world.space("Hall", noor, ada), await world.space("Yard", sam, ada)
    where["space_id"] = yard.id
    await world.denizen.spaces.post(hall, noor, "The menu.", files=[menu])
    await world.run()
    await world.denizen.spaces.post(hall, noor, "Send it to Sam.")
    await world.run()
    assert await files_of(world, yard) == [("Ada", "menu.txt", b"Soup")]
    await world.denizen.spaces.delete_message((await world.denizen.spaces.messages(hall))[0], by=noor)
    assert await files_of(world, yard) == [("Ada", "menu.txt", b"Soup")]


@pytest.mark.parametrize("given", ["nothing", "of another"])
async def test_an_agent_cannot_send_what_it_may_not_read(world: World, given: str) -> None:
    noor = await world.person("Noor")
    other = await world.denizen.files.upload(noor, b"Mine", name="mine.txt")
    ids = [other.id if given == "of another" else given]
    ada = await world.agent("Ada", call("send_message", text="Here.", files=ids), reply("No."), "Told.")
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.post(hall, noor, "Send me something.")
    await world.run()
    assert "not_found" in as_text(world.model(ada).requests[1][-1])
    assert await world.denizen.spaces.transcript(hall) == ["Noor: Send me something.", "Ada: No."]


async def test_a_file_of_a_private_space_stays_there(world: World) -> None:
    """Unless everyone in the other space is in it, too."""
    noor, sam = await world.person("Noor"), await world.person("Sam")
    diary = await world.denizen.files.upload(noor, b"Dear diary", name="diary.txt")
    spaces: dict[str, str] = {}
    ada = await world.agent(
        "Ada",
        reply("Seen."),
        "Seen.",
        lambda *_: sends([diary.id], text="Look!", space_id=spaces["hall"])(),
        lambda *_: sends([diary.id], text="Look!", space_id=spaces["den"])(),
        reply("Done."),
        "Done.",
    )
    aside = await world.space("Aside", noor, ada, private=True)
    hall, den = await world.space("Hall", noor, sam, ada), await world.space("Den", noor, ada)
    spaces.update(hall=hall.id, den=den.id)
    await world.denizen.spaces.post(aside, noor, "Keep this.", files=[diary])
    await world.run()
    await world.denizen.spaces.post(aside, noor, "Go on.")
    await world.run()
    assert "was sent in the private space" in as_text(world.model(ada).requests[-3][-1])
    assert await files_of(world, hall) == []
    assert await files_of(world, den) == [("Ada", "diary.txt", b"Dear diary")]


def test_what_a_function_returns_becomes_text_and_files() -> None:
    file = ToolFile(b"x", "a.bin")
    assert as_output("text") == "text"
    assert as_output({"a": 1}) == '{"a":1}'
    assert as_output([1, 2]) == "[1,2]"
    assert as_output(file) == Output("", (file,))
    assert as_output(("Two:", file, file)) == Output("Two:", (file, file))


async def test_files_that_an_agent_has_are_not_unused_uploads(world: World) -> None:
    """An agent may get as many as there is room for."""
    ada = await world.agent("Ada")
    for number in range(UNUSED_FILES + 1):
        file = await world.denizen.files.upload(ada, b"%d" % number, name="a.txt")
        await world.denizen.agents.trigger(ada, "scanner", files=[file])
    assert len(await world.denizen.minds.inbox(ada)) == UNUSED_FILES + 1
