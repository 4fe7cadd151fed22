"""Follows a turn of a panel in the terminal until everyone has answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

from denizen.cli.panel.columns import Columns
from denizen.client import Client, Connected, LifeEvent
from denizen.shapes.panels import RoundOut

LOOK_SECONDS: Final = 2


class PanelEvents:
    """The events of a panel, one at a time."""

    def __init__(self, events: AsyncGenerator[LifeEvent]) -> None:
        self._events = events
        self._coming: asyncio.Future[LifeEvent] | None = None

    async def next(self, seconds: float | None = None) -> LifeEvent | None:
        """Returns the next event; None if none came in that time."""
        # A wait that times out continues with the next call: cancelled, it would end the stream.
        self._coming = self._coming or asyncio.ensure_future(_next(self._events))
        done, _ = await asyncio.wait((self._coming,), timeout=seconds)
        if not done:
            return None
        coming, self._coming = self._coming, None
        return coming.result()

    async def aclose(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait((self._coming,))


@asynccontextmanager
async def panel_events(client: Client, panel_id: str) -> AsyncGenerator[PanelEvents]:
    """Provides the events. Connected when it is entered: no event inside is missed."""
    async with aclosing(client.stream_panel(panel_id)) as stream, aclosing(PanelEvents(stream)) as events:
        while not isinstance(await events.next(), Connected):
            pass
        yield events


async def follow(
    client: Client, events: PanelEvents, columns: Columns, show: Callable[[], None], begun: RoundOut
) -> None:
    """Feeds the columns until the turn, and the rounds that follow in it by themselves, are complete.

    Another server on the same database may answer, whose events this one does not stream: so the rounds are read as
    well.
    """
    columns.see(begun)
    show()
    while True:
        while not columns.all_said and (event := await events.next(LOOK_SECONDS)) is not None:
            columns.hear(event)
            show()
        columns.look(await client.rounds(columns.panel.id, before=columns.turn + 1, limit=1))
        show()
        if columns.all_said:
            return


async def _next(events: AsyncGenerator[LifeEvent]) -> LifeEvent:
    return await anext(events)
