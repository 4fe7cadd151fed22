"""`denizen forget`: a message, a person or a space, gone everywhere, with a receipt of how much was removed where."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from denizen.app import Runtime
from denizen.cli.chat.rendering import printable
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.findings import counted
from denizen.cli.house import open_records
from denizen.clock import moment
from denizen.errors import InvalidInput, NotFound
from denizen.forgetting.forgetting import Kind, Receipt
from denizen.ids import EntityId, MessageId, OrganizationId, SpaceId
from denizen.inbox.format import one_line, quoted_name
from denizen.settings import Settings
from denizen.spaces import directory, posting
from denizen.spaces.directory import Space
from denizen.storage.database import Tx

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Forget what was said: it is gone from messages, minds, memories and indexes, and cannot be brought back.",
)

SHOWN_CHARACTERS: Final = 60
"""Of a message, so that whoever is asked knows which one it is."""
_TABLES: Final = {
    "agents": "definitions of agents",
    "calls": "tool calls",
    "cycles": "summaries of cycles",
    "effects": "results of tools",
    "entities": "names of people and agents",
    "events": "events in inboxes",
    "goals": "goals",
    "layers": "layers of long lives",
    "ledger": "lines of the ledger",
    "log": "entries of agents' logs",
    "memberships": "memberships",
    "messages": "messages",
    "minds": "what agents were told around them",
    "notes": "notes of agents",
    "organizations": "names of organizations",
    "overflow": "long texts",
    "passages": "passages that can be recalled",
    "plans": "plans",
    "selves": "system prompts",
    "spaces": "names of spaces",
    "tokens": "names of tokens",
    "webhooks": "names of webhooks",
}

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is to be forgotten."""

    kind: Kind
    id: str
    named: str
    """As people know it."""


_Find = Callable[[Tx, OrganizationId], _Subject]


@app.command()
def message(
    context: typer.Context,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The id of the message.")],
    also_replies: Annotated[
        bool, typer.Option("--also-replies", help="Also the cycles that it woke, and what was said in them.")
    ] = False,
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_json: _Json = False,
) -> None:
    """Forget a message, and whatever quotes it."""

    def find(tx: Tx, home: OrganizationId) -> _Subject:
        found = posting.get_message(tx, MessageId(message))
        space = directory.get_space(tx, found.space_id)
        if space.organization_id != home:
            raise NotFound("message", message)
        text = one_line(printable(found.text))
        shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
        who, where = printable(found.author_name), quoted_name(printable(space.name))
        return _Subject("message", found.id, f"message {found.seq} in {where}, {who}: {shown}")

    _forget(context, find, dry_run=dry_run, yes=yes, as_json=as_json, also_replies=also_replies)


@app.command()
def person(
    context: typer.Context,
    person: Annotated[str, typer.Argument(metavar="@HANDLE", help="Whom to forget.")],
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_json: _Json = False,
) -> None:
    """Forget a person: all they said, their name wherever it stands, their memberships, tokens and secrets."""

    def find(tx: Tx, home: OrganizationId) -> _Subject:
        found = directory.find_entity(tx, home, person)
        return _Subject("person", found.id, f"{printable(found.name)} (@{found.handle})")

    _forget(context, find, dry_run=dry_run, yes=yes, as_json=as_json)


@app.command()
def space(
    context: typer.Context,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="Its name or its id.")],
    dry_run: _DryRun = False,
    yes: _Yes = False,
    as_json: _Json = False,
) -> None:
    """Forget a space: all that was said and done in it, its name, who was in it."""

    def find(tx: Tx, home: OrganizationId) -> _Subject:
        found = _the_space(tx, home, space)
        return _Subject("space", found.id, f"the space {quoted_name(printable(found.name))}")

    _forget(context, find, dry_run=dry_run, yes=yes, as_json=as_json)


def _the_space(tx: Tx, home: OrganizationId, named: str) -> Space:
    found = directory.find_spaces(tx, home, named)
    if len(found) > 1:
        ids = ", ".join(each.id for each in found)
        raise InvalidInput(f"{len(found)} spaces are called {quoted_name(named)}. Name one by its id: {ids}.")
    if found:
        return found[0]
    by_id = directory.get_space(tx, SpaceId(named))
    if by_id.organization_id != home:
        raise NotFound("space", named)
    return by_id


def _forget(context: typer.Context, find: _Find, *, dry_run: bool, yes: bool, as_json: bool, **options: Any) -> None:
    settings = begin(context).settings
    asyncio.run(_run(settings, find, dry_run=dry_run, yes=yes, as_json=as_json, **options))


async def _run(settings: Settings, find: _Find, *, dry_run: bool, yes: bool, as_json: bool, **options: Any) -> None:
    async with open_records(settings) as (runtime, world):
        home = world.owner.organization_id
        subject = await runtime.db.read(find, home)
        forget = _door(runtime, subject, world.owner.id, options)
        if dry_run:
            _tell(subject, await forget(dry_run=True), as_json=as_json, dry_run=True)
            return
        if not yes:
            show(stderr(), subject.named, await forget(dry_run=True), dry_run=True)
            if not _confirmed():
                stderr().print("Nothing was forgotten.", style="dim")
                raise typer.Exit(1)
        _tell(subject, await forget(dry_run=False), as_json=as_json, dry_run=False)


def _door(
    runtime: Runtime, subject: _Subject, by: EntityId, options: dict[str, Any]
) -> Callable[..., Awaitable[Receipt]]:
    doors: dict[Kind, Callable[..., Awaitable[Receipt]]] = {
        "message": runtime.forget_message,
        "person": runtime.forget_person,
        "space": runtime.forget_space,
    }
    return partial(doors[subject.kind], subject.id, by=by, **options)


def _confirmed() -> bool:
    stderr().print(Text("Forget it for good? [y/N] "), end="")
    # Where nobody is there to be asked, nothing is read, and that is no yes.
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _tell(subject: _Subject, receipt: Receipt, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json(as_object(receipt, dry_run=dry_run))
    else:
        show(stdout(), subject.named, receipt, dry_run=dry_run)


def as_object(receipt: Receipt, *, dry_run: bool) -> dict[str, Any]:
    """The receipt for programs. One of a dry run has no id: it is not kept."""
    return {
        "id": None if dry_run else receipt.id,
        "dry_run": dry_run,
        "kind": receipt.kind,
        "subject": receipt.subject_id,
        "by": receipt.by_id,
        "removed": dict(receipt.removed),
        "at": moment(receipt.created_at).isoformat(),
    }


def show(console: Console, named: str, receipt: Receipt, *, dry_run: bool) -> None:
    """The receipt for people. What was forgotten is named only before it is."""
    if dry_run:
        console.print(Text.assemble(("Would forget ", "bold"), (named, "cyan")), soft_wrap=True)
    else:
        console.print(Text.assemble((f"Forgot a {receipt.kind}", "bold green"), (f"  {receipt.subject_id}", "dim")))
    console.print(_table(receipt))
    rows = counted(sum(receipt.removed.values()), "row")
    if dry_run:
        console.print(f"{rows} would be emptied or changed. Nothing was.", style="dim")
    else:
        when = f"{moment(receipt.created_at):%Y-%m-%d %H:%M} UTC"
        console.print(f"{rows} emptied or changed. Receipt {receipt.id}, {when}.", style="dim", soft_wrap=True)


def _table(receipt: Receipt) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("where")
    table.add_column("rows", justify="right")
    for name, count in sorted(receipt.removed.items(), key=lambda each: (-each[1], each[0])):
        table.add_row(Text(_TABLES.get(name, name)), Text(f"{count:,}", style="cyan"))
    return table
