"""`denizen webhooks`: addresses at which services send events to an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.access.signatures import SCHEMES
from denizen.cli.api import AgentName, Api
from denizen.cli.console import labelled, new_table, stdout
from denizen.cli.secrets import read_secret
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.shapes.webhooks import WebhookCreated, WebhookOut

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Manage webhooks, through which services send events to agents."
)


@app.command()
def add(
    api: Api,
    agent: AgentName,
    name: Annotated[str, typer.Option(help="The name of the service, as the agent sees it.")],
    scheme: Annotated[str, typer.Option(help=f"How the service signs: {', '.join(SCHEMES)}.")] = "generic",
    own_secret: Annotated[
        bool, typer.Option("--own-secret", help="Ask for the secret, or read it from stdin (default: create one).")
    ] = False,
    urgent: Annotated[bool, typer.Option(help="The agent sees the events in the middle of a cycle.")] = False,
) -> None:
    """Create a webhook. Its secret is shown only once.

    Slack sets its own secret: it is asked for, or read from stdin.
    """
    if scheme not in SCHEMES:
        raise InvalidInput(f"--scheme is one of {', '.join(SCHEMES)}, not {scheme!r}.")
    given = read_secret("Secret, as the service shows it") if own_secret or scheme == "slack" else None

    async def work(client: Client) -> tuple[WebhookCreated, str]:
        return await client.create_webhook(agent, name, scheme=scheme, secret=given, urgent=urgent), client.url

    made, address = api.use(work)
    secret = made.secret if given is None else None
    if not api.prints_json(made.webhook.model_dump(mode="json") | ({} if secret is None else {"secret": secret})):
        _show_new(made.webhook, address, secret)


@app.command("list")
def list_(api: Api, agent: AgentName) -> None:
    """Show the webhooks of an agent."""
    found = api.use(lambda client: client.webhooks(agent))
    api.print_list(found, _table, "No webhooks yet. Create one with `denizen webhooks add`.")


@app.command()
def revoke(api: Api, webhook: Annotated[str, typer.Argument(help="Its id.")]) -> None:
    """Delete a webhook: its address stops working."""
    api.use(lambda client: client.revoke_webhook(webhook))
    api.tell({"id": webhook, "revoked": True}, "Revoked.")


def _show_new(webhook: WebhookOut, address: str, secret: str | None) -> None:
    lines = labelled()
    lines.add_row("address", f"{address}{webhook.path}")
    if secret is not None:
        lines.add_row("secret", Text(secret, style="bold"))
        lines.add_row("", "shown only once; give it to the service")
    stdout().print(lines)


def _table(found: Sequence[WebhookOut]) -> Table:
    table = new_table()
    table.add_column("id", no_wrap=True)  # Never broken: `denizen webhooks revoke` needs the whole of it.
    for title in ("name", "scheme", "last used", ""):
        table.add_column(title, overflow="fold")
    for each in found:
        used = "never" if each.last_used_at is None else f"{each.last_used_at:%Y-%m-%d %H:%M} UTC"
        state = "revoked" if each.revoked_at is not None else "urgent" if each.urgent else ""
        table.add_row(Text(each.id, style="cyan"), Text(each.name), Text(each.scheme), Text(used), Text(state))
    return table
