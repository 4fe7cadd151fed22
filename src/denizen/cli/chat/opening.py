"""Finding the other side: a server that runs, or else the runtime in this process, with the agents living in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from denizen.cli.chat.connection import Connection
from denizen.cli.house import TOKEN_FILE, kept_token, open_house, server_url
from denizen.client import Client
from denizen.errors import ServerError, TokenRefused
from denizen.settings.shape import Settings

PROBE_SECONDS: Final = 10.0
"""Where nothing listens one knows at once; a server that is busy may need a while to answer."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection that works, and where it leads if that is worth a line."""

    connection: Connection
    remark: str | None = None


@asynccontextmanager
async def opened(settings: Settings, url: str | None, token: str | None) -> AsyncGenerator[Opened]:
    """Inside, one can talk. An address that was given has to answer; the usual one may be silent."""
    usual = server_url(settings)
    if url is not None or await _answers(usual):
        address = url or usual
        token = token or kept_token(settings, address)
        if token is None:
            raise TokenRefused(
                f"The server at {address} wants an access token, and there is none for it in "
                f"{settings.home / TOKEN_FILE}. Give it with --token or DENIZEN_TOKEN."
            )
        async with Client(address, token) as client:
            await _check_token(client, settings, given=url is not None)
            yield Opened(client)
    else:
        async with _in_this_process(settings) as here:
            yield Opened(here, f"No server runs at {usual}: the agents live in this process, until you leave.")


async def _check_token(client: Client, settings: Settings, *, given: bool) -> None:
    try:
        await client.me()
    except TokenRefused as error:
        where = "" if given else f" It may be of another house than the one in {settings.home}."
        raise TokenRefused(f"{error} Give the right one with --token or DENIZEN_TOKEN.{where}") from error


async def _answers(url: str) -> bool:
    """Whether a Denizen listens there. Any other program that does is none of ours."""
    async with Client(url, "") as client:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return (await client.health()).ok
        except (ServerError, TimeoutError):
            return False


@asynccontextmanager
async def _in_this_process(settings: Settings) -> AsyncGenerator[Connection]:
    # Imported here: talking to a server needs none of it, and it takes a second.
    from denizen.cli.chat.local import Local

    async with open_house(settings) as house, house.runtime.living():
        yield Local(house.runtime, house.world.owner)
