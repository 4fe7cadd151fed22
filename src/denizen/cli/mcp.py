"""`denizen mcp`: signs in to MCP servers with a browser."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from denizen.cli.api import Api
from denizen.cli.console import new_table, stderr, stdout

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Sign in to MCP servers with a browser.")


@app.command("list")
def list_(api: Api) -> None:
    """List the MCP servers that need a sign-in, and when the last one was."""
    found = api.use(lambda client: client.mcp_servers())
    if api.prints_json([each.model_dump(mode="json") for each in found]):
        return
    if not found:
        stderr().print("No agent has an MCP server with `sign_in`.", style="dim")
        return
    table = new_table("name", "address", "agents", "signed in")
    for each in found:
        at = "never" if each.signed_in_at is None else f"{each.signed_in_at.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(*map(Text, (each.name, each.url, ", ".join(each.agents), at)))
    stdout().print(table)


@app.command()
def connect(
    api: Api,
    name: Annotated[str, typer.Argument(help="The secret of the server's sign_in, such as TRACKER_SIGN_IN.")],
    answer: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="The address of the page that the browser shows at the end (default: ask for it)."
        ),
    ] = None,
) -> None:
    """Sign in to an MCP server. Prints a link to open in a browser, and asks for the address of the page that it shows
    at the end.

    If you are signed in to Denizen in that browser, the page completes the sign-in by itself: press Enter then.
    """
    if answer is None:
        begun = api.use(lambda client: client.begin_mcp_sign_in(name))
        stderr().print("Open this link in a browser, and sign in:")
        typer.echo(begun.url)
        answer = typer.prompt(
            "Address of the page that the browser shows now", default="", show_default=False, err=True
        ).strip()
    if not answer:
        servers = api.use(lambda client: client.mcp_servers())
        done = next((each for each in servers if each.name == name), None)
    else:
        done = api.use(lambda client: client.finish_mcp_sign_in(answer))
    if done is None or done.signed_in_at is None:
        stderr().print(f"Nobody has signed in to {name} yet.", style="red")
        raise typer.Exit(1)
    if not api.prints_json(done.model_dump(mode="json")):
        stderr().print(f"Signed in to {done.url}.", style="dim")
