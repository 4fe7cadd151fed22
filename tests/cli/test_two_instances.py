"""The command line against two instances of one house: what is done at one is seen at the other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from typer.testing import CliRunner, Result

from denizen.cli.main import app
from denizen.models.scripted import forever
from tests.server.conftest import House, served
from tests.server.test_stream import echo
from tests.world import UNHURRIED, open_world


async def test_what_is_said_at_one_instance_is_read_at_the_other(
    environ: dict[str, str], ready_postgres_url: str, redis_url: str, tmp_path: Path
) -> None:
    """One PostgreSQL and one Redis between them. Only the first lets agents live: the answer comes through both."""
    async with (
        open_world(ready_postgres_url, redis_url=redis_url, pace=UNHURRIED) as first,
        open_world(ready_postgres_url, redis_url=redis_url, pace=UNHURRIED) as second,
    ):
        noor = await first.person("Noor")
        bot = await first.agent("Echo", model=forever(echo), handle="echo")
        await first.space("Hall", noor, bot)
        async with served(first) as here, served(second) as there, first.denizen.living():
            token = await here.token(noor)

            async def denizen(house: House, *arguments: str) -> Result:
                given = [*arguments, "--url", house.address, "--token", token]
                done = await asyncio.to_thread(CliRunner().invoke, app, given)
                assert done.exit_code == 0, done.output
                return done

            sent = json.loads((await denizen(there, "send", "Hall", "Are you there?", "--json")).stdout)
            await first.run()
            shown = (await denizen(here, "spaces", "show", "Hall")).stdout
            assert "Are you there?" in shown
            assert sent["seq"] == 1

            answered = await denizen(there, "chat", "Hall", "--once", "Hello")
            assert answered.stdout.startswith("Echo: ")
            (hall,) = json.loads((await denizen(here, "spaces", "list", "--json")).stdout)
            assert (hall["unread"], hall["read_seq"]) == (0, hall["last_seq"])

            await denizen(there, "agents", "suspend", "@echo")
            mind = json.loads((await denizen(here, "inspect", "@echo", "--json")).stdout)
            assert (mind["status"], mind["cycles"]) == ("suspended", 2)
            file = tmp_path / "echo.jsonl"
            await denizen(here, "export", "@echo", "-o", str(file))
            await denizen(there, "import", str(file), "--handle", "twin")
            both = json.loads((await denizen(here, "agents", "list", "--json")).stdout)
            assert [(each["handle"], each["status"]) for each in both] == [("echo", "suspended"), ("twin", "suspended")]
