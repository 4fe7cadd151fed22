"""`denizen fork`: creates an agent with the past of another."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from denizen.cli.api import AgentName, Api
from denizen.cli.console import stdout
from denizen.cli.findings import counted


def fork(
    api: Api,
    agent: AgentName,
    handle: Annotated[
        str | None, typer.Option("--handle", help="Handle of the new agent (default: AGENT and a number).")
    ] = None,
    at: Annotated[
        int | None, typer.Option("--at", min=1, help="Copy the history up to this cycle (default: all).")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Its name (default: the same as the original's).")] = None,
) -> None:
    """Create a new agent with a copy of another agent's history.

    The new agent is in no space and has no plans. The original is not changed.
    """
    made = api.use(lambda client: client.fork_agent(agent, handle, name=name, at=at))
    if api.prints_json(made):
        return
    told = f" has lived {counted(made.cycles, 'cycle')}. It is in no space yet, and has no plans."
    stdout().print(Text.assemble((f"@{made.handle}", "bold cyan"), told))
