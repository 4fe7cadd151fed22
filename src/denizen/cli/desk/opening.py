"""Where a command does its work: on the server that was named, else on the database of the settings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Final, TypeVar

import typer

from denizen.cli.chat.finding import find_space
from denizen.cli.console import begin
from denizen.cli.desk.port import Desk
from denizen.cli.house import kept_token, open_house, open_records
from denizen.client import Client, Space
from denizen.errors import InvalidInput, TokenRefused
from denizen.settings.loading import Loaded
from denizen.settings.shape import Settings

Url = Annotated[
    str | None,
    typer.Option(envvar="DENIZEN_URL", help="The server to ask; without it, the database of this machine."),
]
Token = Annotated[str | None, typer.Option(envvar="DENIZEN_TOKEN", help="The access token for it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's @handle, or its id.")]
SpaceName = Annotated[str, typer.Argument(metavar="SPACE", help="Its name or the beginning of it, its id, or @handle.")]

AN_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

T = TypeVar("T")


def at_desk(
    context: typer.Context,
    url: str | None,
    token: str | None,
    work: Callable[[Desk], Awaitable[T]],
    *,
    equipped: bool = False,
) -> T:
    """What the work gives, done where it is to be done: with models and tools, if it needs them. Called once, first."""
    loaded = begin(context)
    return asyncio.run(_work(loaded, url, token, work, equipped))


async def _work(
    loaded: Loaded, url: str | None, token: str | None, work: Callable[[Desk], Awaitable[T]], equipped: bool
) -> T:
    async with opened(loaded.settings, *named(loaded, url, token), equipped=equipped) as desk:
        return await work(desk)


def named(loaded: Loaded, url: str | None, token: str | None) -> tuple[str | None, str | None]:
    """The server that is meant and the token for it, by an option, the environment or .env."""
    return url or loaded.dotenv.get("DENIZEN_URL"), token or loaded.dotenv.get("DENIZEN_TOKEN")


@asynccontextmanager
async def opened(
    settings: Settings, url: str | None, token: str | None, *, equipped: bool = False
) -> AsyncGenerator[Desk]:
    """Inside, a house can be looked after."""
    if url is None:
        # Imported here: asking a server needs none of it, and it takes a second.
        from denizen.cli.desk.local import LocalDesk

        if equipped:
            async with open_house(settings) as house:
                yield LocalDesk(house.runtime, house.world.owner)
            return
        async with open_records(settings) as (runtime, world):
            yield LocalDesk(runtime, world.owner)
        return
    async with client_for(settings, url, token) as client:
        yield client


def client_for(settings: Settings, url: str, token: str | None) -> Client:
    """A client of that server, with the token that was given, or with the one that this machine keeps."""
    secret = token or kept_token(settings, url)
    if secret is None:
        raise TokenRefused(f"The server at {url} wants an access token: give it with --token or DENIZEN_TOKEN.")
    return Client(url, secret)


async def find(desk: Desk, wanted: str) -> Space:
    """The space that is meant: one's own by name, any that one may see by id."""
    try:
        return find_space(await desk.spaces(), wanted, await desk.me())
    except InvalidInput:
        if AN_ID.fullmatch(wanted.strip().lower()):
            return await desk.space(wanted.strip().lower())
        raise
