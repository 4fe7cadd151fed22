"""Finds the panel and the advisor that someone names, and runs commands on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

import typer

from denizen.cli.api import Api
from denizen.cli.findings import counted
from denizen.client import Client
from denizen.errors import InvalidInput, NotFound
from denizen.shapes.panels import Advisor, Panel

PanelName = Annotated[str, typer.Argument(metavar="PANEL", help="Its name or the beginning of its name, or its id.")]
VoiceName = Annotated[str, typer.Argument(metavar="ADVISOR", help="Its @handle, name or id; or `assistant`.")]

ASSISTANT: Final = "assistant"
"""The voice that answers in a panel without advisors."""

T = TypeVar("T")


def in_panel(
    api: Api,
    panel: str,
    work: Callable[[Client, Panel], Awaitable[T]],
    *,
    models: bool = False,
    answering: bool = False,
) -> T:
    """`Api.use` for what is done with one panel."""

    async def found(client: Client) -> T:
        return await work(client, await find_panel(client, panel))

    return api.use(found, models=models, answering=answering)


async def find_panel(client: Client, wanted: str) -> Panel:
    """Returns the panel with this id, name or beginning of a name."""
    mine = await client.panels()
    asked = wanted.strip().casefold()
    for found in (
        [each for each in mine if each.id == asked or each.name.casefold() == asked],
        [each for each in mine if each.name.casefold().startswith(asked)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            shown = "; ".join(f"{each.id} ({_about(each)})" for each in found)
            raise InvalidInput(f"Several panels are called that: {shown}. Give an id.")
    names = ", ".join(each.name for each in mine) or "none yet: `denizen panel create NAME` opens one"
    raise InvalidInput(f"You are in no panel {wanted!r}. There are: {names}.")


def _about(panel: Panel) -> str:
    advisors = ", ".join(each.name for each in panel.advisors[:3]) or "no advisors"
    return f"{advisors}; {counted(panel.turns, 'question')}"


def advisor_in(panel: Panel, named: str) -> Advisor:
    """Returns the advisor with this id, handle or name."""
    asked = named.strip().removeprefix("@").casefold()
    for each in panel.advisors:
        if asked in (each.id, each.handle, each.name.casefold()):
            return each
    raise NotFound("advisor", named)


def voice_in(panel: Panel, named: str) -> str:
    """Returns the id of the advisor with this name; or of the plain assistant."""
    try:
        return advisor_in(panel, named).id
    except NotFound:
        if named.strip().casefold() == ASSISTANT:
            return ASSISTANT
        raise
