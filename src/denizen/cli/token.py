"""`denizen token`: creates, lists, renews and revokes access tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.access.roles import PERSONAL
from denizen.cli.api import Api, as_mention
from denizen.cli.console import stderr, stdout
from denizen.errors import InvalidInput
from denizen.shapes.access import ListedToken, TokenCreated

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Create and revoke access tokens.")

_Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `denizen token list` shows it.")]


@app.command()
def create(
    api: Api,
    entity: Annotated[
        str | None,
        typer.Argument(
            metavar="[HANDLE]",
            callback=as_mention,
            help="The person, service or agent (default: the owner, or yourself with --url).",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The purpose of the token.")] = "command line",
    role: Annotated[str | None, typer.Option(help=f"Maximum role of the token: {', '.join(PERSONAL)}.")] = None,
    days: Annotated[float | None, typer.Option(min=0.001, help="Days until it expires (default: never).")] = None,
    speaks_for_others: Annotated[
        bool,
        typer.Option(
            "--speaks-for-others", help="Let the client say for which person each request to /v1 is (Open WebUI)."
        ),
    ] = False,
) -> None:
    """Create an access token. Its secret is shown only once."""
    if role is not None and role not in PERSONAL:
        raise InvalidInput(f"--role is one of {', '.join(PERSONAL)}, not {role!r}.")
    until = None if days is None else datetime.now(UTC) + timedelta(days=days)
    made = api.use_access(
        lambda access: access.create_token(
            name, entity=entity, role=role, expires_at=until, speaks_for_others=speaks_for_others
        )
    )
    _show(api, made)


@app.command("list")
def list_(
    api: Api,
    entity: Annotated[
        str | None,
        typer.Argument(
            metavar="[HANDLE]", callback=as_mention, help="Whose tokens (default: everyone's that you can manage)."
        ),
    ] = None,
) -> None:
    """List tokens, sessions and login links, including revoked ones. Secrets are never shown."""
    found = api.use_access(lambda access: access.tokens(entity, everyone=entity is None))
    if api.prints_json(found):
        return
    if found:
        stdout().print(_table(found))
    else:
        stderr().print("There is none. `denizen token create` makes one.", style="dim")


@app.command()
def rotate(api: Api, id: _Id) -> None:
    """Replace the secret of a token. The new one is shown only once; the old one stops working."""
    _show(api, api.use_access(lambda access: access.rotate_token(id)))


@app.command()
def revoke(api: Api, id: _Id) -> None:
    """Revoke a token, session or login link."""
    api.use_access(lambda access: access.revoke_token(id))
    api.tell({"id": id, "revoked": True}, "Revoked.")


def _show(api: Api, made: TokenCreated) -> None:
    if api.prints_json(made.token.model_dump(mode="json") | {"secret": made.secret}):
        return
    # Alone on stdout, so that it can be piped.
    typer.echo(made.secret)
    stderr().print(f"Shown this once. Its id is {made.token.id}.", style="dim")


def _table(found: Sequence[ListedToken]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("id", "of", "kind", "role", "name", "age", "last used", ""):
        table.add_column(title, overflow="fold")
    now = datetime.now(UTC)
    for each in found:
        used = "never" if each.last_used_at is None else f"{each.last_used_at:%Y-%m-%d %H:%M} UTC"
        cells = (f"@{each.handle}", each.kind, each.role, each.name, age_of(now - each.created_at), used, _state(each))
        table.add_row(Text(each.id, style="cyan"), *map(Text, cells))
    return table


def age_of(age: timedelta) -> str:
    """Returns an age in days, hours or minutes: the largest unit that is not zero."""
    if age.days:
        return f"{age.days} d"
    hours, rest = divmod(age.seconds, 3600)
    return f"{hours} h" if hours else f"{rest // 60} min"


def _state(token: ListedToken) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.speaks_for_others:
        return "speaks for others"
    return "" if token.expires_at is None else f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"
