"""`denizen fork`: a new agent with the past of another."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from denizen.cli.api import AgentName, AsJson, Token, Url, use_api
from denizen.cli.console import print_json, stdout
from denizen.cli.findings import counted


def fork(
    context: typer.Context,
    agent: AgentName,
    handle: Annotated[str | None, typer.Option("--handle", help="Of the new agent; else AGENT and a number.")] = None,
    at: Annotated[int | None, typer.Option("--at", min=1, help="The last cycle it shall have lived; else all.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Its name; else the same as the other's.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make a new agent that has lived what another has, up to a cycle.

    It is in no space, and has no plans. The other is not touched.
    """
    made = use_api(context, url, token, lambda client: client.fork_agent(agent, handle, name=name, at=at))
    if as_json:
        print_json(made.model_dump(mode="json"))
        return
    told = f" has lived {counted(made.cycles, 'cycle')}. It is in no space yet, and has no plans."
    stdout().print(Text.assemble((f"@{made.handle}", "bold cyan"), told))
