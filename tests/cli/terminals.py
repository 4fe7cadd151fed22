"""A terminal of someone who has a house: at its machine, or elsewhere with the address of its server and a token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from denizen.access import tokens
from denizen.cli.home import OpenedHome, open_home
from denizen.cli.main import app
from denizen.server.application import create_app
from denizen.server.serving import bind, serve_on
from denizen.settings.loading import load
from denizen.spaces.directory import Entity

is_there = Path.exists


@dataclass(frozen=True)
class Terminal:
    """`await terminal("agents", "list")` runs that there; the house is open beside it."""

    house: OpenedHome
    url: str | None
    given: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None

    @property
    def is_elsewhere(self) -> bool:
        return self.url is not None

    async def __call__(self, *arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, app, [*arguments, *self.given], env=self.environ)

    async def told(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        result = await self(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    async def of(self, who: Entity) -> Terminal:
        """A terminal elsewhere of someone else."""
        assert self.url is not None
        _, secret = await self.house.runtime.db.write(tokens.create, who.id, "test")
        return Terminal(self.house, self.url, ("--url", self.url, "--token", secret), self.environ)


@asynccontextmanager
async def at_its_machine() -> AsyncGenerator[Terminal]:
    async with open_home(load().settings) as house:
        yield Terminal(house, None)


@asynccontextmanager
async def elsewhere(folder: Path) -> AsyncGenerator[Terminal]:
    """With nothing of the house in reach: neither its database nor its files."""
    ready, stop, listener = asyncio.Event(), asyncio.Event(), bind("127.0.0.1", 0)
    nothing = {"DENIZEN_HOME": str(folder), "DENIZEN_PROFILES__PRESETS": str(folder / "presets.json")}
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with open_home(load().settings) as house, asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_on(create_app(house.runtime), listener, ready=ready, stop=stop))
        await ready.wait()
        try:
            yield await Terminal(house, url, environ=nothing).of(house.world.owner)
        finally:
            stop.set()
    assert not is_there(folder), "nothing is opened or written here"
