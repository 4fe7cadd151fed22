"""`denizen token`: creates, lists, renews and revokes access tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from denizen.access.roles import PERSONAL
from denizen.cli.api import Api, as_mention
from denizen.cli.console import printable, stderr, stdout
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
    # Lines instead of a table: an id has up to 73 characters, and `denizen token revoke` needs the whole of it.
    console, now = stdout(), datetime.now(UTC)
    for each in found:
        console.print(Text(each.id, style="cyan"), soft_wrap=True)
        for line in _lines(each, now):
            console.print(Padding(Text(printable(line)), (0, 0, 0, 2), expand=False))
    if not found:
        stderr().print("No tokens yet. Create one with `denizen token create`.", style="dim")


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
    stderr().print(f"The token is shown only once. Its id is {made.token.id}.", style="dim")


def _lines(token: ListedToken, now: datetime) -> Iterator[str]:
    """Yields what is known of a token."""
    state = _state(token, now)
    yield f"{token.name}{f' ({state})' if state else ''}"
    used = "never used" if token.last_used_at is None else f"last used {token.last_used_at:%Y-%m-%d %H:%M} UTC"
    yield f"@{token.handle}, {token.kind}, {token.role}, {age_of(now - token.created_at)} old, {used}"


def age_of(age: timedelta) -> str:
    """Returns an age in days, hours or minutes: the largest unit that is not zero."""
    if age.days:
        return f"{age.days} d"
    hours, rest = divmod(age.seconds, 3600)
    return f"{hours} h" if hours else f"{rest // 60} min"


def _state(token: ListedToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.speaks_for_others:
        return "speaks for others"
    if token.expires_at is None:
        return ""
    return f"{'expired' if token.expires_at <= now else 'until'} {token.expires_at:%Y-%m-%d %H:%M} UTC"
