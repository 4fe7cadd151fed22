"""`denizen login`: a link to sign in with a browser, good once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from denizen.access import tokens
from denizen.cli.console import begin, print_json, stderr
from denizen.cli.house import open_records
from denizen.ids import EntityId
from denizen.settings import Settings

if TYPE_CHECKING:
    from denizen.app import Runtime


def login(
    context: typer.Context,
    person: Annotated[
        str | None, typer.Argument(metavar="[@HANDLE]", help="Who signs in; without it, the owner of this house.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Print a link with which one signs in with a browser, once, in the next ten minutes."""
    link = asyncio.run(_link(begin(context).settings, person))
    if as_json:
        print_json({"url": link, "seconds": tokens.LOGIN_SECONDS})
    else:
        typer.echo(link)
        stderr().print("Good once, for ten minutes. Whoever opens it first is signed in.", style="dim")


async def login_link(runtime: Runtime, address: str, person: EntityId) -> str:
    """A new link for this person. The secret stands behind the #, which browsers send to nobody: it is in no log."""
    _, secret = await runtime.db.write(tokens.create_login, person)
    return f"{address}/login#{secret}"


async def _link(settings: Settings, person: str | None) -> str:
    async with open_records(settings) as (runtime, world):
        who = world.owner
        if person is not None:
            who = await runtime.find(person, organization=who.organization_id)
        return await login_link(runtime, settings.public_url or settings.address, who.id)
