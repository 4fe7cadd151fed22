"""`denizen audit`: who changed what, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from denizen.access.audit import ACTIONS
from denizen.cli.api import Api, as_mention
from denizen.cli.console import printable, stderr, stdout
from denizen.errors import InvalidInput
from denizen.shapes.audit import AuditEntry

_KINDS = sorted({each.kind for each in ACTIONS.values()})


def audit(
    api: Api,
    by: Annotated[
        str | None, typer.Option(callback=as_mention, help="Only changes by this person: a handle or an id.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help=f"Only changes of this kind: {', '.join(_KINDS)}.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only changes from this time on, in UTC.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Only changes before this time, in UTC.")] = None,
    before: Annotated[int | None, typer.Option(min=0, help="Only entries with a smaller number.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 50,
) -> None:
    """Show who changed what, the newest first: roles, tokens, keys, agents, budgets, settings, exports, what was
    forgotten, private spaces that were opened."""
    if kind is not None and kind not in _KINDS:
        raise InvalidInput(f"--kind is one of {', '.join(_KINDS)}, not {kind!r}.")
    page = api.use(
        lambda client: client.audit(by=by, kind=kind, since=_utc(since), until=_utc(until), before=before, limit=limit)
    )
    if api.prints_json(page):
        return
    if not page.entries:
        stderr().print("No changes found.", style="dim")
        return
    table = Table("", "When (UTC)", "Who", "What", "Detail", box=box.SIMPLE, pad_edge=False)
    for each in page.entries:
        told = f"{each.at:%Y-%m-%d %H:%M}"
        table.add_row(str(each.number), told, _who(each), printable(_what(each)), printable(_detail(each)))
    stdout().print(table)
    if page.next is not None:
        stderr().print(f"More: denizen audit --before {page.next}", style="dim")


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=at.tzinfo or UTC)


def _who(entry: AuditEntry) -> str:
    if entry.action == "failed_sign_in":
        return "somebody"
    return "on the server" if entry.by is None else printable(f"{entry.by.name} (@{entry.by.handle})")


def _what(entry: AuditEntry) -> str:
    return entry.what if entry.subject is None else f"{entry.what} {entry.subject.name}"


def _detail(entry: AuditEntry) -> str:
    told = ", ".join(
        f"{name}: {each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)}"
        for name, each in entry.detail.items()
    )
    return told if entry.reason is None else f"{told}. Reason: {entry.reason}"
