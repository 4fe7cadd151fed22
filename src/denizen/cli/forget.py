"""`denizen forget`: removes a message, a person or a space everywhere, with a receipt of what was removed."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from denizen.cli.api import Api, as_mention
from denizen.cli.console import new_table, printable, stderr, stdout
from denizen.cli.findings import counted
from denizen.client import Client
from denizen.errors import InvalidInput, RequestRefused
from denizen.inbox.format import one_line, quoted_name
from denizen.shapes.forgetting import ReceiptOut
from denizen.shortening import shortened

if TYPE_CHECKING:
    from denizen.shapes.vocabulary import ForgetKind as Kind

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Remove messages, people or spaces for good: from messages, histories, memories and indexes.",
)

SHOWN_CHARACTERS: Final = 60
"""Characters of a message that are shown, so that the user recognizes it."""
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
    "memories": "memories",
    "messages": "messages",
    "minds": "what agents were told around them",
    "notes": "notes of agents",
    "organizations": "names of organizations",
    "overflow": "long texts",
    "passages": "passages that can be recalled",
    "plans": "plans",
    "rollings": "summaries of conversations",
    "selves": "system prompts",
    "spaces": "names of spaces",
    "tokens": "names of tokens",
    "webhooks": "names of webhooks",
}

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is to be forgotten."""

    kind: Kind
    id: str
    named: str
    """Its name for people."""


@dataclass(frozen=True, slots=True)
class _How:
    """Options: dry run, confirmation, replies."""

    dry_run: bool
    yes: bool
    also_replies: bool = False


@app.command()
def message(
    api: Api,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The id of the message.")],
    also_replies: Annotated[
        bool, typer.Option("--also-replies", help="Also the cycles that it caused, and their messages.")
    ] = False,
    dry_run: _DryRun = False,
    yes: _Yes = False,
) -> None:
    """Forget a message and everything that quotes it."""
    how = _How(dry_run, yes, also_replies)
    api.use(lambda client: _forget(api, client, _the_message(client, message), how))


@app.command()
def person(
    api: Api,
    person: Annotated[str, typer.Argument(metavar="HANDLE", callback=as_mention, help="The person to forget.")],
    dry_run: _DryRun = False,
    yes: _Yes = False,
) -> None:
    """Forget a person: their messages, name, memberships, tokens and secrets."""
    how = _How(dry_run, yes)
    api.use(lambda client: _forget(api, client, _the_person(client, person), how))


@app.command()
def space(
    api: Api,
    space: Annotated[str, typer.Argument(metavar="SPACE", help="Its name or its id.")],
    dry_run: _DryRun = False,
    yes: _Yes = False,
) -> None:
    """Forget a space: its messages, name and members."""
    how = _How(dry_run, yes)
    api.use(lambda client: _forget(api, client, _the_space(client, space), how))


async def _the_message(client: Client, id: str) -> _Subject:
    try:
        found = await client.message(id)
        where = await client.space(found.space_id)
    except RequestRefused:
        # An admin may forget a message that was not posted to them.
        return _Subject("message", id, f"message {id}")
    shown = shortened(one_line(printable(found.text)), SHOWN_CHARACTERS)
    who, there = printable(found.author.name), quoted_name(printable(where.name))
    return _Subject("message", found.id, f"message {found.seq} in {there}, {who}: {shown}")


async def _the_person(client: Client, named: str) -> _Subject:
    found = await client.entity(named)
    return _Subject("person", found.id, f"{printable(found.name)} (@{found.handle})")


async def _the_space(client: Client, named: str) -> _Subject:
    """By its exact name: a wrong space would be lost permanently."""
    found = await client.spaces_named(named)
    if len(found) > 1:
        ids = ", ".join(each.id for each in found)
        raise InvalidInput(f"{len(found)} spaces are called {quoted_name(named)}. Name one by its id: {ids}.")
    if not found:
        try:
            found = [await client.space(named)]
        except RequestRefused:
            return _Subject("space", named, f"the space {named}")
    return _Subject("space", found[0].id, f"the space {quoted_name(printable(found[0].name))}")


async def _forget(api: Api, client: Client, found: Awaitable[_Subject], how: _How) -> None:
    subject = await found
    forget = partial(client.forget, subject.kind, subject.id, also_replies=how.also_replies)
    if how.dry_run:
        _tell(api, subject, await forget(dry_run=True))
        return
    if not how.yes:
        show(stderr(), subject.named, await forget(dry_run=True))
        if not _confirmed():
            stderr().print("Nothing was forgotten.", style="dim")
            raise typer.Exit(1)
    _tell(api, subject, await forget(dry_run=False))


def _confirmed() -> bool:
    stderr().print(Text("Forget it for good? [y/N] "), end="")
    # Without a terminal nothing can be asked, and no answer is not a yes.
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _tell(api: Api, subject: _Subject, receipt: ReceiptOut) -> None:
    if not api.prints_json(receipt):
        show(stdout(), subject.named, receipt)


def show(console: Console, named: str, receipt: ReceiptOut) -> None:
    """Prints the receipt. What was forgotten is named only before it is."""
    if receipt.dry_run:
        console.print(Text.assemble(("Would forget ", "bold"), (named, "cyan")), soft_wrap=True)
    else:
        console.print(Text.assemble((f"Forgot a {receipt.kind}", "bold green"), (f"  {receipt.subject_id}", "dim")))
    console.print(_table(receipt))
    rows = counted(sum(receipt.removed.values()), "row")
    if receipt.dry_run:
        console.print(f"{rows} would be emptied or changed. Nothing was.", style="dim")
    else:
        when = f"{receipt.created_at:%Y-%m-%d %H:%M} UTC"
        console.print(f"{rows} emptied or changed. Receipt {receipt.id}, {when}.", style="dim", soft_wrap=True)


def _table(receipt: ReceiptOut) -> Table:
    table = new_table()
    table.add_column("where")
    table.add_column("rows", justify="right")
    for name, count in sorted(receipt.removed.items(), key=lambda each: (-each[1], each[0])):
        table.add_row(Text(_TABLES.get(name, name)), Text(f"{count:,}", style="cyan"))
    return table
