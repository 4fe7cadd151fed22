"""The quick form of `denizen check`, and the size of the database, for `denizen doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from denizen.cli.findings import Finding, counted
from denizen.settings.shape import Settings

if TYPE_CHECKING:
    from denizen.checker import Violation

LARGE_BYTES: Final = 500_000_000
"""A larger SQLite file takes too long for a check-up."""
_SHOWN: Final = 3


async def examine(settings: Settings) -> list[Finding]:
    """Returns whether rows are missing in a database of this version, and its size; nothing if there is none."""
    from denizen.checker import check_quickly
    from denizen.cli import size_check
    from denizen.cli.home import has_database
    from denizen.clock import SystemClock
    from denizen.storage.opening import open_database

    if not await has_database(settings):
        return []
    large = _is_large(settings.database_url)
    db = await open_database(settings.database_url, clock=SystemClock(), announce=lambda _: None)
    try:
        lost = [] if db.missing is None else [Finding("Lost data", "problem", db.missing)]
        found = [] if large else await db.read(check_quickly)
        size = await db.read(size_check.examine)
    finally:
        await db.close()
    return [*lost, *_findings(found, large=large), size]


def _findings(found: Sequence[Violation], *, large: bool) -> list[Finding]:
    if large:
        return [Finding("Rows", "ok", "Not checked, the database is large. `denizen check` does.")]
    if not found:
        return [Finding("Rows", "ok", "No rows are missing. `denizen check --deep` reads all of them.")]
    sentences = list(dict.fromkeys(each.sentence for each in found))
    more = f" And {counted(len(sentences) - _SHOWN, 'other problem')}." if len(sentences) > _SHOWN else ""
    said = " ".join(sentences[:_SHOWN]) + more
    return [Finding("Rows", "problem", said, "Run `denizen check --deep` for details, and restore a backup.")]


def _is_large(url: str) -> bool:
    scheme, _, rest = url.partition("://")
    path = Path(rest.removeprefix("/"))
    return scheme.startswith("sqlite") and path.exists() and path.stat().st_size > LARGE_BYTES
