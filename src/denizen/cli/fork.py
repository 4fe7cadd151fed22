"""`denizen fork`: a new agent with the past of another."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from denizen.agents.registry import Agent
from denizen.cli.console import begin, print_json, stdout
from denizen.cli.house import open_records
from denizen.settings import Settings


def fork(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's @handle.")],
    handle: Annotated[str | None, typer.Option("--handle", help="Of the new agent; else AGENT and a number.")] = None,
    at: Annotated[int | None, typer.Option("--at", min=1, help="The last cycle it shall have lived; else all.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Its name; else the same as the other's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Make a new agent that has lived what another has, up to a cycle.

    It is in no space, and has no plans. The other is not touched.
    """
    made, lived = asyncio.run(_fork(begin(context).settings, agent, at, handle, name))
    if as_json:
        print_json({"id": made.id, "handle": made.entity.handle, "name": made.name, "cycles": lived})
        return
    told = f" has lived {lived:,} cycle{'' if lived == 1 else 's'}. It is in no space yet, and has no plans."
    stdout().print(Text.assemble((f"@{made.entity.handle}", "bold cyan"), told))


async def _fork(
    settings: Settings, agent: str, at: int | None, handle: str | None, name: str | None
) -> tuple[Agent, int]:
    async with open_records(settings) as (runtime, world):
        found = await runtime.find(agent, organization=world.owner.organization_id)
        made = await runtime.fork((await runtime.get_agent(found.id)).id, at=at, handle=handle, name=name)
        (last,) = await runtime.cycles(made, limit=1)
        return made, last.number
