"""`denizen login`: creates a link that signs a browser in, once."""

from __future__ import annotations

from typing import Annotated

import typer

from denizen.cli.api import Api, as_mention
from denizen.cli.console import print_json, stderr


def login(
    api: Api,
    person: Annotated[
        str | None,
        typer.Argument(
            metavar="[HANDLE]",
            callback=as_mention,
            help="Who signs in (default: the owner, or yourself with --url).",
        ),
    ] = None,
) -> None:
    """Print a sign-in link for a browser. It works once, within ten minutes."""
    made = api.use_access(lambda access: access.create_login(person))
    if api.as_json:
        from denizen.access.tokens import LOGIN_SECONDS

        print_json({"url": made.url, "seconds": LOGIN_SECONDS})
    else:
        typer.echo(made.url)
        stderr().print(
            "The link works once, within ten minutes. It signs in the first person who opens it.", style="dim"
        )
