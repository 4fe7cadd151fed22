"""Files."""

from __future__ import annotations

import base64
from typing import Any

from denizen import ToolFile, call, reply, scripted, tool
from tests.files.documents import pdf
from tests.files.pictures import png
from tests.server.conftest import served
from tests.world import as_text, open_world


async def test_a_message_has_files_that_agents_read() -> None:
    """A message can have files. An agent is told of them and reads the text of text files.

    Docs: files.md
    """
    async with open_world("sqlite://") as world:
        noor = await world.person("Noor")
        menu = await world.denizen.files.upload(noor, b"Soup, then pie.", name="menu.txt")
        ada = await world.agent("Ada", call("read_entry", entry=f"file:{menu.id}"), reply("Soup."), "Told Noor.")
        hall = await world.space("Hall", noor, ada)
        await world.denizen.spaces.post(hall, noor, "What is there to eat?", files=[menu])
        await world.run()
        assert "Soup, then pie." in as_text(world.model(ada).requests[1][-1])


async def test_documents_are_read_page_by_page_and_recalled() -> None:
    """Agents read PDF, Word, PowerPoint, Excel, HTML and mail page by page, and recall their text with the page.

    Docs: files.md
    """
    async with open_world("sqlite://") as world:
        noor = await world.person("Noor")
        menu = await world.denizen.files.upload(noor, pdf("Soup.", "Pie with plums."), name="menu.pdf")
        ada = await world.agent("Ada", call("read_entry", entry=f"file:{menu.id}:2"), reply("Pie."), "Told Noor.")
        hall = await world.space("Hall", noor, ada)
        await world.denizen.spaces.post(hall, noor, "What comes second?", files=[menu])
        await world.run()
        assert "[page 2 of 2]\nPie with plums." in as_text(world.model(ada).requests[1][-1])
        assert (await world.denizen.minds.recall(ada, "plums"))[0].who == "menu.pdf, page 2"


async def test_models_that_see_are_shown_pictures() -> None:
    """A model that sees is shown the pictures of a message, scaled down; one that does not is told that they are there.

    Docs: files.md
    """
    async with open_world("sqlite://") as world:
        noor = await world.person("Noor")
        photo = await world.denizen.files.upload(noor, png(2000, 1000), name="photo.png")
        ada = await world.agent("Ada", model=scripted(reply("Teal."), "Told Noor.", sees=True))
        bert = await world.agent("Bert", reply("I cannot see it."), "Told Noor.")
        hall = await world.space("Hall", noor, ada, bert)
        await world.denizen.spaces.post(hall, noor, "What colour is this?", files=[photo])
        await world.run()
        seen, told = (str(world.model(each).requests[0][-1].parts[-1]) for each in (ada, bert))
        assert "BinaryContent" in seen
        assert "BinaryContent" not in told
        assert 'file "photo.png"' in told


async def test_files_are_sent_in_requests_of_openai_clients(ready_sqlite_url: str) -> None:
    """Pictures, sound and files in a request of an OpenAI client become files of the message, sent as data URLs.

    Docs: openai.md
    Differs: an address of another server is refused instead of fetched, because this server may reach machines that the
        caller cannot.
    """
    url = f"data:image/png;base64,{base64.b64encode(b'PNG').decode()}"
    async with open_world(ready_sqlite_url) as world, served(world) as house:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", reply("A picture."), "Told Noor.")
        parts = [{"type": "image_url", "image_url": {"url": url}}]
        said = {"model": "ada", "messages": [{"role": "user", "content": parts}]}
        async with world.denizen.living():
            answer = await house.call("POST", "/v1/chat/completions", noor, json=said)
        assert answer.json()["choices"][0]["message"]["content"] == "A picture."
        assert 'file "file.png" (image/png, 3 bytes)' in as_text(world.model(ada).requests[0][-1])


@tool
def draw_chart() -> ToolFile:
    """Draw a chart."""
    return ToolFile(b"PNG", "chart.png")


async def test_a_tool_returns_a_file_that_the_agent_sends() -> None:
    """The result of a tool can be a file: of a Python function, an HTTP tool or an MCP server. The agent can send it.

    Docs: files.md
    """

    def sends(messages: Any, _: object) -> Any:
        told = as_text(messages[-1])
        return call("send_message", text="Here.", files=[told.rpartition(": id ")[2].partition(";")[0]])

    async with open_world("sqlite://") as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", call("draw_chart"), sends, "Sent it.", tools=[draw_chart])
        hall = await world.space("Hall", noor, ada)
        await world.denizen.spaces.post(hall, noor, "A chart, please.")
        await world.run()
        [_, answer] = await world.denizen.spaces.messages(hall)
        assert await world.denizen.files.read(answer.files[0].id) == b"PNG"


async def test_a_picture_is_described_for_models_that_do_not_see() -> None:
    """A picture can be described: screen readers read the description, and models that do not see get it.

    Docs: files.md
    """
    async with open_world("sqlite://") as world:
        denizen = world.denizen
        noor = await world.person("Noor")
        ada = await world.agent("Ada", reply("A cat."), "Told Noor.")
        hall = await world.space("Hall", noor, ada)
        photo = await denizen.files.upload(noor, png(), name="photo.png", alt="A cat on a keyboard.")
        await denizen.spaces.post(hall, noor, "What is it?", files=[photo])
        await world.run()
        assert 'described as "A cat on a keyboard."' in as_text(world.model(ada).requests[0][-1])


async def test_advisors_read_the_files_of_a_question() -> None:
    """Advisors of a panel read the text of the files of a question, and see its pictures if their model sees.

    Docs: files.md
    """
    async with open_world("sqlite://") as world:
        denizen = world.denizen
        noor = await world.person("Noor")
        model = scripted("Soup.", sees=True)
        denizen.models.register("advisor", model)
        board = await denizen.panels.create("Board", [noor], advisors=["Kai"], model="advisor")
        menu = await denizen.files.upload(noor, b"Soup, then pie.", name="menu.txt")
        photo = await denizen.files.upload(noor, png(), name="photo.png")
        await denizen.panels.ask(board, noor, "What comes first?", files=[menu, photo])
        await world.run()
        assert "Soup, then pie." in str(model.requests[0])
        assert "BinaryContent" in str(model.requests[0])
