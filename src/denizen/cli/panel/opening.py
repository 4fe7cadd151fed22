"""Where commands on panels do their work: on the server that was named, else on the database of the settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, TypeVar

import typer

from denizen.cli.console import begin
from denizen.cli.desk.opening import client_for, named
from denizen.cli.house import open_house, open_records
from denizen.cli.panel.port import Panels, find
from denizen.client.shapes.panels import Panel
from denizen.settings.loading import Loaded

PanelName = Annotated[str, typer.Argument(metavar="PANEL", help="Its name or the beginning of it, or its id.")]
VoiceName = Annotated[str, typer.Argument(metavar="ADVISOR", help="Its @handle, name or id; or `assistant`.")]

T = TypeVar("T")


def at_panels(
    context: typer.Context,
    url: str | None,
    token: str | None,
    work: Callable[[Panels], Awaitable[T]],
    *,
    answering: bool = False,
    equipped: bool = False,
) -> T:
    """What the work gives, done where it is to be done.

    If no server does it: with `answering`, models answer rounds here; with `equipped`, they can be asked, and it is
    known which profiles and metaprompts there are.
    """
    loaded = begin(context)

    async def done() -> T:
        async with _opened(loaded, url, token, answering, equipped) as desk:
            return await work(desk)

    return asyncio.run(done())


def in_panel(
    context: typer.Context,
    panel: str,
    url: str | None,
    token: str | None,
    work: Callable[[Panels, Panel], Awaitable[T]],
    *,
    answering: bool = False,
    equipped: bool = False,
) -> T:
    """The same for what is done with one panel."""

    async def found(desk: Panels) -> T:
        return await work(desk, await find(desk, panel))

    return at_panels(context, url, token, found, answering=answering, equipped=equipped)


@asynccontextmanager
async def _opened(
    loaded: Loaded, url: str | None, token: str | None, answering: bool, equipped: bool
) -> AsyncGenerator[Panels]:
    address, secret = named(loaded, url, token)
    if address is not None:
        async with client_for(loaded.settings, address, secret) as client:
            yield client
        return
    # Imported here: asking a server needs none of it, and it takes a second.
    from denizen.cli.panel.local import LocalPanels

    if answering:
        async with open_house(loaded.settings) as house, house.runtime.living():
            yield LocalPanels(house.runtime, house.world.owner)
            # What was answered here is thought over here: a server beside would learn of it with the next turn.
            await house.runtime.panels_settled()
        return
    if equipped:
        async with open_house(loaded.settings) as house:
            yield LocalPanels(house.runtime, house.world.owner)
        return
    async with open_records(loaded.settings) as (runtime, world):
        yield LocalPanels(runtime, world.owner)
