"""Files."""

from __future__ import annotations

from denizen import call, reply
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
