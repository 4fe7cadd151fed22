"""`denizen check`: reads the whole database, and lists violations of the invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from denizen.cli.api import AsJson
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.findings import counted
from denizen.errors import InvalidInput
from denizen.settings.shape import Settings
from denizen.storage import opening
from denizen.storage.migrating import HEAD

if TYPE_CHECKING:
    from denizen.checker import Violation


def check(
    context: typer.Context,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also recompute the digest of every message and log entry.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every row of the database against the invariants. Agents can keep running.

    Exit status 1 if something is broken. Nothing is changed: restore a backup, or report what you see.
    """
    found = asyncio.run(_check(begin(context).settings, deep=deep))
    if as_json:
        print_json([{"invariant": each.invariant, "sentence": each.sentence, "ids": each.ids} for each in found])
    else:
        _show(found)
    if found:
        raise typer.Exit(1)


def _show(found: Sequence[Violation]) -> None:
    for each in found:
        stdout().print(Text.assemble(each.sentence, (f"  {' '.join(each.ids)}".rstrip(), "dim")), soft_wrap=True)
    if found:
        stderr().print(
            f"{counted(len(found), 'problem')}. docs/backup.md says how to restore a backup.", style="yellow"
        )
    else:
        stderr().print("The database keeps every invariant.", style="dim")


async def _check(settings: Settings, *, deep: bool) -> list[Violation]:
    from denizen.checker import check_database
    from denizen.clock import SystemClock

    if (revision := await opening.revision(settings.database_url)) is None:
        raise InvalidInput("There is no database yet. The first `denizen up` creates it.")
    if revision != HEAD:
        raise InvalidInput(f"The database has the schema {revision}, not {HEAD}. Run `denizen migrate` first.")
    db = await opening.open_database(settings.database_url, clock=SystemClock(), announce=lambda _: None)
    try:
        return await check_database(db, deep=deep)
    finally:
        await db.close()
