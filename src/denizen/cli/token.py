"""`denizen token`: access tokens, made, listed, given a new secret and revoked, on the machine that keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.access import tokens
from denizen.access.roles import PERSONAL, Role
from denizen.access.tokens import Token
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.house import open_records
from denizen.clock import SECOND, Instant, moment
from denizen.errors import InvalidInput
from denizen.settings import Settings
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Let programs in, and no longer.")

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `denizen token list` shows it.")]


@app.command()
def create(
    context: typer.Context,
    entity: Annotated[
        str | None,
        typer.Argument(metavar="[@HANDLE]", help="The person, service or agent; without it, the owner of this house."),
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for.")] = "command line",
    role: Annotated[
        str | None, typer.Option(help=f"Of a person's: at most this much it may do: {', '.join(PERSONAL)}.")
    ] = None,
    days: Annotated[
        float | None, typer.Option(min=0.001, help="For how long it is good; without it, for ever.")
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Make an access token, and show its secret: this once."""
    scope = _role(role)
    made, secret = asyncio.run(_create(begin(context).settings, entity, name, scope, days))
    _show(made, secret, as_json)


@app.command("list")
def list_(
    context: typer.Context,
    entity: Annotated[str | None, typer.Argument(metavar="[@HANDLE]", help="Whose; without it, everyone's.")] = None,
    as_json: _AsJson = False,
) -> None:
    """Show what lets people, services and agents in, the revoked ones too. Never the secrets."""
    found = asyncio.run(_list(begin(context).settings, entity))
    if as_json:
        print_json([_as_object(token, who) for token, who in found])
    elif found:
        stdout().print(_table(found))
    else:
        stderr().print("There is none. `denizen token create` makes one.", style="dim")


@app.command()
def rotate(context: typer.Context, token: _Id, as_json: _AsJson = False) -> None:
    """Give a token a new secret, and show it: this once. The old one opens nothing any more."""
    _show(*asyncio.run(_rotate(begin(context).settings, token)), as_json)


@app.command()
def revoke(context: typer.Context, token: _Id, as_json: _AsJson = False) -> None:
    """Let nobody in with this token, session or login link any more."""
    asyncio.run(_revoke(begin(context).settings, token))
    if as_json:
        print_json({"id": token, "revoked": True})
    else:
        stderr().print("Revoked.", style="dim")


def _role(given: str | None) -> Role | None:
    for role in PERSONAL:
        if given == role:
            return role
    if given is not None:
        raise InvalidInput(f"--role is one of {', '.join(PERSONAL)}, not {given!r}.")
    return None


async def _create(
    settings: Settings, named: str | None, name: str, role: Role | None, days: float | None
) -> tuple[Token, str]:
    async with open_records(settings) as (runtime, world):
        who = world.owner
        if named is not None:
            who = await runtime.find(named, organization=who.organization_id)
        until = None if days is None else Instant(runtime.clock.now() + int(days * 86_400 * SECOND))
        return await runtime.db.write(tokens.create, who.id, name, role=role, expires_at=until)


async def _list(settings: Settings, named: str | None) -> list[tuple[Token, Entity]]:
    async with open_records(settings) as (runtime, world):
        return await runtime.db.read(_found, world.owner, named)


def _found(tx: Tx, owner: Entity, named: str | None) -> list[tuple[Token, Entity]]:
    home = owner.organization_id
    whose = directory.list_entities(tx, home) if named is None else [directory.find_entity(tx, home, named)]
    return [(token, who) for who in whose for token in tokens.tokens_of(tx, who.id)]


async def _rotate(settings: Settings, token: str) -> tuple[Token, str]:
    async with open_records(settings) as (runtime, _):
        return await runtime.db.write(tokens.rotate, token)


async def _revoke(settings: Settings, token: str) -> None:
    async with open_records(settings) as (runtime, _):
        await runtime.db.write(tokens.revoke, token)


def _show(token: Token, secret: str, as_json: bool) -> None:
    if as_json:
        print_json(_as_object(token) | {"secret": secret})
        return
    # Alone on stdout, so that it can be piped on.
    typer.echo(secret)
    stderr().print(f"Shown this once. Its id is {token.id}.", style="dim")


def _as_object(token: Token, who: Entity | None = None) -> dict[str, object]:
    shown: dict[str, object] = {
        "id": token.id,
        "kind": token.kind,
        "role": token.role,
        "name": token.name,
        "entity_id": token.entity_id,
        "created_at": _time(token.created_at),
        "expires_at": _time(token.expires_at),
        "revoked_at": _time(token.revoked_at),
        "last_used_at": _time(token.last_used_at),
    }
    return shown if who is None else shown | {"handle": who.handle}


def _time(at: Instant | None) -> str | None:
    return None if at is None else moment(at).isoformat()


def _table(found: Sequence[tuple[Token, Entity]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("id", "of", "kind", "role", "name", "last used", ""):
        table.add_column(title, overflow="fold")
    for token, who in found:
        used = "never" if token.last_used_at is None else f"{moment(token.last_used_at):%Y-%m-%d %H:%M} UTC"
        cells = (f"@{who.handle}", token.kind, token.role, token.name, used, _state(token))
        table.add_row(Text(token.id, style="cyan"), *map(Text, cells))
    return table


def _state(token: Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "" if token.expires_at is None else f"until {moment(token.expires_at):%Y-%m-%d %H:%M} UTC"
