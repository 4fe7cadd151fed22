"""`denizen secrets`: stores keys of providers and services, encrypted; they are never shown again."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.cli.api import Api, AsJson, as_mention
from denizen.cli.console import new_table, print_json, read_stdin, stderr, stdout
from denizen.client import Client
from denizen.shapes.access import KeyOut

if TYPE_CHECKING:
    from denizen.cli.local_access import LocalAccess

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Manage API keys and secrets, stored encrypted in the database."
)

_Name = Annotated[str, typer.Argument(help="Such as OPENAI_API_KEY.")]
_Person = Annotated[
    str | None,
    typer.Option(metavar="HANDLE", callback=as_mention, help="The person it belongs to (default: the organization)."),
]


@app.command("set")
def set_(api: Api, name: _Name, person: _Person = None) -> None:
    """Set a secret. Its value is asked for, or read from stdin, so that it is not on the command line.

    A provider's variable name, such as OPENAI_API_KEY, is used for its models. Tools use other secrets as ${NAME}.
    """
    from denizen.access.secrets import check_name

    value = read_secret(f"Value of {check_name(name)}")
    whose = person or "organization"

    async def work(access: Client | LocalAccess) -> tuple[KeyOut, str]:
        return await access.set_key(name, value, whose=whose), await _handle(access)

    kept, me = api.use_access(work)
    api.tell(_as_object(kept, me), f"{kept.name} is saved{f' for {person}' if person else ''}.")


@app.command("list")
def list_(api: Api) -> None:
    """List secrets with their last letters. Values are never shown.

    With --url: your own and, for admins, the organization's. On the server's machine: everyone's.
    """

    async def work(access: Client | LocalAccess) -> tuple[list[KeyOut], str]:
        return await access.keys(), await _handle(access)

    found, me = api.use_access(work)
    if api.prints_json([_as_object(each, me) for each in found]):
        return
    if found:
        stdout().print(_table(found, me))
    else:
        stderr().print("No secrets yet. Add one with `denizen secrets set NAME`.", style="dim")


@app.command()
def delete(api: Api, name: _Name, person: _Person = None) -> None:
    """Delete a secret. Agents that are working may use it until they finish."""
    api.use_access(lambda access: access.delete_key(name, whose=person or "organization"))
    api.tell({"name": name, "person": person, "deleted": True}, f"{name} is deleted.")


@app.command()
def key(as_json: AsJson = False) -> None:
    """Print a new key for DENIZEN_SECRET_KEY, which encrypts secrets."""
    from denizen.access.vault import new_key

    made = new_key()
    if as_json:
        print_json({"key": made})
    else:
        typer.echo(made)


def read_secret(asked: str) -> str:
    """Reads a secret from the terminal without echo, or from a pipe, without the line break at its end."""
    if sys.stdin.isatty():
        return getpass.getpass(f"{asked}: ")
    return read_stdin().rstrip("\r\n")


async def _handle(access: Client | LocalAccess) -> str:
    return (await access.me()).handle if isinstance(access, Client) else access.handle


def _owner(key: KeyOut, me: str) -> str | None:
    return None if key.whose == "organization" else f"@{me}" if key.whose == "me" else key.whose


def _as_object(key: KeyOut, me: str) -> dict[str, object]:
    told = key.model_dump(mode="json", exclude={"whose"})
    return {"name": told.pop("name"), "person": _owner(key, me), **told}


def _table(found: Sequence[KeyOut], me: str) -> Table:
    table = new_table("name", "of", "ends", "set")
    for each in found:
        when = f"{each.updated_at:%Y-%m-%d %H:%M} UTC"
        owner = _owner(each, me) or "organization"
        table.add_row(Text(each.name, style="cyan"), Text(owner), Text(each.hint), Text(when, style="dim"))
    return table
