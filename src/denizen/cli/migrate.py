"""`denizen migrate`: shows which migrations the database has, and runs the missing ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.cli.api import AsJson
from denizen.cli.console import begin, new_table, print_json, stderr, stdout
from denizen.cli.findings import counted
from denizen.cli.home import make_home
from denizen.errors import DatabaseNewer
from denizen.settings.shape import Settings
from denizen.storage import opening
from denizen.storage.migrating import HEAD, REVISIONS, titles


def migrate(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Only show; exit status 1 if a migration is missing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show and run the migrations of the database schema.

    `denizen up` runs them by itself. Migrations only add, so that an older version can run beside a newer one.
    """
    settings = begin(context).settings
    before = asyncio.run(_migrate(settings, check))
    missing = REVISIONS if before is None else REVISIONS[REVISIONS.index(before) + 1 :]
    if as_json:
        print_json(
            {"before": before, "now": before if check else HEAD, "newest": HEAD, "ran": [] if check else list(missing)}
        )
    else:
        stdout().print(_table(missing, check))
        stderr().print(_sentence(missing, check), style="dim")
    if check and missing:
        raise typer.Exit(1)


async def _migrate(settings: Settings, check: bool) -> str | None:
    """Returns the last migration that the database had."""
    make_home(settings)
    before = await opening.revision(settings.database_url)
    if before is not None and before not in REVISIONS:
        raise DatabaseNewer(
            f"The database was written by a newer Denizen: its schema is {before}, and this one knows those up to "
            f"{HEAD}. Install the newer version."
        )
    if not check:
        await opening.migrate(settings.database_url)
    return before


def _table(missing: Sequence[str], check: bool) -> Table:
    table = new_table()
    table.add_column("step", style="cyan", no_wrap=True)
    table.add_column("what it brings")
    table.add_column("", no_wrap=True)
    for step, title in titles().items():
        state = Text("there", style="dim") if step not in missing else Text("missing" if check else "done", "yellow")
        table.add_row(step, Text(title), state)
    return table


def _sentence(missing: Sequence[str], check: bool) -> str:
    if not missing:
        return "The database is up to date."
    steps = counted(len(missing), "step")
    return f"{steps} missing. `denizen migrate` runs them." if check else f"{steps} done: the database is up to date."
