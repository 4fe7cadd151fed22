"""`denizen secrets`: the keys of providers and services, put into the database sealed, and never shown again."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.access.secrets import Secret, check_name
from denizen.access.vault import new_key
from denizen.app import Runtime
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.house import open_records
from denizen.clock import moment
from denizen.ids import EntityId, OrganizationId
from denizen.settings import Settings
from denizen.spaces import directory
from denizen.spaces.directory import Entity

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Keep the keys of providers and services, sealed in the database."
)

_Name = Annotated[str, typer.Argument(help="Such as OPENAI_API_KEY.")]
_Person = Annotated[
    str | None, typer.Option(metavar="@HANDLE", help="Whose own it is; without it, the organization's.")
]


@app.command("set")
def set_(context: typer.Context, name: _Name, person: _Person = None) -> None:
    """Keep a secret. Its value is asked for, or read from stdin: it never stands on the command line.

    A key named as its provider's variable pays for the models of your agents. Tools use the others as ${NAME}.
    """
    settings = begin(context).settings
    value = read_secret(f"Value of {check_name(name)}")
    kept = asyncio.run(_set(settings, name, value, person))
    stderr().print(f"{kept.name} is kept{f' for {person}' if person else ''}.", style="dim")


@app.command("list")
def list_(
    context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False
) -> None:
    """Show which secrets are kept, and how they end. Never what they are."""
    found, people = asyncio.run(_list(begin(context).settings))
    if as_json:
        print_json([_as_object(each, people) for each in found])
    elif found:
        stdout().print(_table(found, people))
    else:
        stderr().print("No secret is kept. `denizen secrets set NAME` keeps one.", style="dim")


@app.command()
def delete(context: typer.Context, name: _Name, person: _Person = None) -> None:
    """Forget a secret. Agents that are awake may use it until they are loaded again."""
    asyncio.run(_delete(begin(context).settings, name, person))
    stderr().print(f"{name} is forgotten.", style="dim")


@app.command()
def key() -> None:
    """Print a new key for DENIZEN_SECRET_KEY, with which secrets are sealed."""
    typer.echo(new_key())


def read_secret(asked: str) -> str:
    """What the person types, unseen; or what was piped in, without the line break at its end."""
    if sys.stdin.isatty():
        return getpass.getpass(f"{asked}: ")
    return sys.stdin.read().rstrip("\r\n")


async def _set(settings: Settings, name: str, value: str, person: str | None) -> Secret:
    async with open_records(settings) as (runtime, world):
        home = world.owner.organization_id
        return await runtime.set_secret(name, value, person=await _found(runtime, home, person), organization=home)


async def _delete(settings: Settings, name: str, person: str | None) -> None:
    async with open_records(settings) as (runtime, world):
        home = world.owner.organization_id
        await runtime.delete_secret(name, person=await _found(runtime, home, person), organization=home)


async def _list(settings: Settings) -> tuple[list[Secret], dict[EntityId, Entity]]:
    async with open_records(settings) as (runtime, world):
        home = world.owner.organization_id
        people = await runtime.db.read(directory.list_entities, home, also_left=True)
        return await runtime.secrets(organization=home), {each.id: each for each in people}


async def _found(runtime: Runtime, home: OrganizationId, person: str | None) -> Entity | None:
    return None if person is None else await runtime.find(person, organization=home)


def _owner(secret: Secret, people: dict[EntityId, Entity]) -> str | None:
    return None if secret.owner_id is None else f"@{people[secret.owner_id].handle}"


def _as_object(secret: Secret, people: dict[EntityId, Entity]) -> dict[str, object]:
    return {
        "name": secret.name,
        "person": _owner(secret, people),
        "hint": secret.hint,
        "created_at": moment(secret.created_at).isoformat(),
        "updated_at": moment(secret.updated_at).isoformat(),
    }


def _table(found: Sequence[Secret], people: dict[EntityId, Entity]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("name", "of", "ends", "set"):
        table.add_column(title, overflow="fold")
    for each in found:
        owner = _owner(each, people) or "organization"
        when = f"{moment(each.updated_at):%Y-%m-%d %H:%M} UTC"
        table.add_row(Text(each.name, style="cyan"), Text(owner), Text(each.hint), Text(when, style="dim"))
    return table
