"""`denizen backup` and `denizen restore`: the whole database as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from denizen.access.vault import KEY_FILE
from denizen.amounts import human_size
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.masking import masked
from denizen.settings.shape import Settings
from denizen.storage import copying

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def backup(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to create. An existing file is not overwritten.")
    ],
    as_json: _AsJson = False,
) -> None:
    """Write a backup of everything to a file. Agents can keep running.

    The key of the secrets is not in it. Keep it elsewhere.
    """
    settings = begin(context).settings
    copying.back_up(settings.database_url, file)
    used = file.stat().st_size
    if as_json:
        print_json({"file": str(file.absolute()), "bytes": used})
        return
    stdout().print(f"{file}: {human_size(used)}.", soft_wrap=True)
    if _key_is_in_home(settings):
        stderr().print(f"Secrets open only with {settings.home / KEY_FILE}: keep a copy elsewhere.", style="dim")


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by `denizen backup`.")],
    as_json: _AsJson = False,
) -> None:
    """Restore a backup into an empty database. Agents continue where they were."""
    settings = begin(context).settings
    copying.restore(settings.database_url, file)
    where = masked(settings.database_url)
    if as_json:
        print_json({"file": str(file.absolute()), "database": where})
        return
    stdout().print(f"{where} holds what {file} holds. `denizen doctor` looks it over.", soft_wrap=True)


def _key_is_in_home(settings: Settings) -> bool:
    return settings.secret_key is None and (settings.home / KEY_FILE).exists()
