"""`denizen backup` and `denizen restore`: everything that agents and people said and did, as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from denizen.access.vault import KEY_FILE
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.findings import size
from denizen.masking import masked
from denizen.settings.shape import Settings
from denizen.storage import copying

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make. One that is there stays as it is.")],
    as_json: _AsJson = False,
) -> None:
    """Write everything that is kept to a file, as it is at one moment. Agents may live on meanwhile.

    The key of the secrets is not in it: keep that elsewhere.
    """
    settings = begin(context).settings
    copying.back_up(settings.database_url, file)
    used = file.stat().st_size
    if as_json:
        print_json({"file": str(file.absolute()), "bytes": used})
        return
    stdout().print(f"{file}: {size(used)}.", soft_wrap=True)
    if _key_is_in_home(settings):
        stderr().print(f"Secrets open only with {settings.home / KEY_FILE}: keep a copy elsewhere.", style="dim")


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `denizen backup` made.")],
    as_json: _AsJson = False,
) -> None:
    """Fill an empty database with what a backup holds. Agents go on where they were at that moment."""
    settings = begin(context).settings
    copying.restore(settings.database_url, file)
    where = masked(settings.database_url)
    if as_json:
        print_json({"file": str(file.absolute()), "database": where})
        return
    stdout().print(f"{where} holds what {file} holds. `denizen doctor` looks it over.", soft_wrap=True)


def _key_is_in_home(settings: Settings) -> bool:
    return settings.secret_key is None and (settings.home / KEY_FILE).exists()
