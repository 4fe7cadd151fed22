"""Opens a conversation: with a running server, or with the application and its agents in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from denizen.cli.api import client_for, is_denizen
from denizen.cli.fast_import import importing
from denizen.cli.home import server_url
from denizen.client import Client
from denizen.errors import TokenRefused
from denizen.settings.shape import Settings


@dataclass(frozen=True, slots=True)
class OpenedClient:
    """A working client, and a note on what it is connected to."""

    client: Client
    remark: str | None = None


@asynccontextmanager
async def opened(settings: Settings, url: str | None, token: str | None) -> AsyncGenerator[OpenedClient]:
    """Provides a client. An explicit address has to answer; the usual one may be silent."""
    usual = server_url(settings)
    if url is not None or await is_denizen(usual):
        async with client_for(settings, url or usual, token) as client:
            await _check_token(client, settings, given=url is not None)
            yield OpenedClient(client)
        return
    # Imported here: talking to a server needs none of it, and it takes seconds.
    with importing("denizen.cli.in_process"):
        from denizen.cli.in_process import open_application

    async with open_application(settings, agents=True) as application:
        remark = f"No server runs at {usual}: the agents live in this process, until you leave."
        yield OpenedClient(application.client, remark)


async def _check_token(client: Client, settings: Settings, *, given: bool) -> None:
    try:
        await client.me()
    except TokenRefused as error:
        where = "" if given else f" It may belong to another server than the one in {settings.home}."
        raise TokenRefused(f"{error} Give the right one with --token or DENIZEN_TOKEN.{where}") from error
