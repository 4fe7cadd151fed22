"""`denizen webhooks`: addresses at which services tell an agent what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.access.signatures import SCHEMES, Scheme
from denizen.access.webhooks import Webhook
from denizen.cli.console import begin, print_json, stderr, stdout
from denizen.cli.house import open_records
from denizen.cli.secrets import read_secret
from denizen.clock import Instant, moment
from denizen.errors import InvalidInput
from denizen.settings import Settings

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Let services tell agents what happens.")

_Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent's @handle.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.command()
def add(
    context: typer.Context,
    agent: _Agent,
    name: Annotated[str, typer.Option(help="What the agent is told that the events come from.")],
    scheme: Annotated[str, typer.Option(help=f"How the service signs: {', '.join(SCHEMES)}.")] = "generic",
    own_secret: Annotated[
        bool, typer.Option("--own-secret", help="Ask for the secret, or read it from stdin; else one is made.")
    ] = False,
    urgent: Annotated[bool, typer.Option(help="The agent sees the events in the middle of what it does.")] = False,
    as_json: _AsJson = False,
) -> None:
    """Make an address for a service, and show its secret: this once.

    Slack chooses the secret: it is asked for, or read from stdin.
    """
    settings = begin(context).settings
    if scheme not in SCHEMES:
        raise InvalidInput(f"--scheme is one of {', '.join(SCHEMES)}, not {scheme!r}.")
    given = read_secret("Secret, as the service shows it") if own_secret or scheme == "slack" else None
    made, secret = asyncio.run(_add(settings, agent, name, scheme, given, urgent))
    if as_json:
        print_json(_as_object(made) | ({"secret": secret} if given is None else {}))
    else:
        _show_new(made, settings.public_url or settings.address, secret if given is None else None)


@app.command("list")
def list_(context: typer.Context, agent: _Agent, as_json: _AsJson = False) -> None:
    """Show the webhooks of an agent."""
    found = asyncio.run(_list(begin(context).settings, agent))
    if as_json:
        print_json([_as_object(each) for each in found])
    elif found:
        stdout().print(_table(found))
    else:
        stderr().print("There is none. `denizen webhooks add` makes one.", style="dim")


@app.command()
def revoke(context: typer.Context, webhook: Annotated[str, typer.Argument(help="Its id.")]) -> None:
    """Receive nothing at this address any more."""
    asyncio.run(_revoke(begin(context).settings, webhook))
    stderr().print("Revoked.", style="dim")


async def _add(
    settings: Settings, agent: str, name: str, scheme: Scheme, secret: str | None, urgent: bool
) -> tuple[Webhook, str]:
    async with open_records(settings) as (runtime, world):
        found = await runtime.find(agent, organization=world.owner.organization_id)
        return await runtime.create_webhook(found.id, name, scheme=scheme, secret=secret, urgent=urgent)


async def _list(settings: Settings, agent: str) -> list[Webhook]:
    async with open_records(settings) as (runtime, world):
        found = await runtime.find(agent, organization=world.owner.organization_id)
        return await runtime.webhooks(found.id)


async def _revoke(settings: Settings, webhook: str) -> None:
    async with open_records(settings) as (runtime, _):
        await runtime.revoke_webhook(webhook)


def _show_new(webhook: Webhook, address: str, secret: str | None) -> None:
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim")
    lines.add_column(overflow="fold")
    lines.add_row("address", f"{address}{webhook.path}")
    if secret is not None:
        lines.add_row("secret", Text(secret, style="bold"))
        lines.add_row("", "shown this once; give it to the service")
    stdout().print(lines)


def _as_object(webhook: Webhook) -> dict[str, object]:
    return {
        "id": webhook.id,
        "path": webhook.path,
        "name": webhook.name,
        "scheme": webhook.scheme,
        "urgent": webhook.urgent,
        "created_at": _time(webhook.created_at),
        "revoked_at": _time(webhook.revoked_at),
        "last_used_at": _time(webhook.last_used_at),
    }


def _time(at: Instant | None) -> str | None:
    return None if at is None else moment(at).isoformat()


def _table(found: Sequence[Webhook]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("id", "name", "scheme", "last used", ""):
        table.add_column(title, overflow="fold")
    for each in found:
        used = "never" if each.last_used_at is None else f"{moment(each.last_used_at):%Y-%m-%d %H:%M} UTC"
        state = "revoked" if each.revoked_at is not None else "urgent" if each.urgent else ""
        table.add_row(Text(each.id, style="cyan"), Text(each.name), Text(each.scheme), Text(used), Text(state))
    return table
