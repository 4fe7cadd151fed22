"""`denizen bridges`: rooms of other services that are connected with spaces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from denizen.cli.agents import parsed_settings
from denizen.cli.api import Api, SpaceName, find
from denizen.cli.console import labelled, new_table, stdout
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.shapes.bridges import BridgeCreated, BridgeOut, ChannelOut

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Connect rooms of other services with spaces, and see their state."
)

BridgeName = Annotated[str, typer.Argument(help="The bridge: its id, name or @handle.")]


@app.command("list")
def list_(api: Api) -> None:
    """Show the bridges and their state."""
    found = api.use(lambda client: client.bridges())
    api.print_list(found, _table, "No bridges yet. Create one with `denizen bridges create`.")


@app.command()
def show(api: Api, bridge: BridgeName) -> None:
    """Show a bridge, its rooms, and messages that wait to be sent."""
    found = api.use(lambda client: _find(client, bridge))
    if not api.prints_json(found):
        stdout().print(_details(found))


@app.command()
def create(
    api: Api,
    name: Annotated[str, typer.Argument(help="Its name as a member of spaces.")],
    kind: Annotated[
        str, typer.Option(help="The kind of bridge: discord, email, matrix, slack, telegram or webhook.")
    ] = "webhook",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as `url=https://…`; repeat it for several.")
    ] = None,
) -> None:
    """Create a bridge. If it has a secret, it is shown only once."""
    settings = parsed_settings(set_ or ())

    async def work(client: Client) -> tuple[BridgeCreated, str]:
        return await client.create_bridge(name, kind, settings), client.url

    made, address = api.use(work)
    if api.prints_json(made):
        return
    lines = labelled()
    lines.add_row("id", Text(made.bridge.id, style="cyan"))
    if made.bridge.path is not None:
        lines.add_row("address", f"{address}{made.bridge.path}")
    if made.secret is not None:
        lines.add_row("secret", Text(made.secret, style="bold"))
        lines.add_row("", "shown only once; give it to the other side")
    stdout().print(lines)


@app.command()
def change(
    api: Api,
    bridge: BridgeName,
    set_: Annotated[list[str], typer.Option("--set", help="A setting, as `url=https://…`; the others stay.")],
) -> None:
    """Change settings of a bridge. It reconnects."""
    new = parsed_settings(set_)

    async def work(client: Client) -> BridgeOut:
        found = await _find(client, bridge)
        return await client.change_bridge(found.id, {**found.settings, **new})

    api.tell(api.use(work), "Changed.")


@app.command()
def connect(
    api: Api,
    bridge: BridgeName,
    space: SpaceName,
    room: Annotated[str, typer.Option(help="The id of the room in the other service.")],
) -> None:
    """Connect a room of another service with one of your spaces."""

    async def work(client: Client) -> ChannelOut:
        return await client.connect_room((await _find(client, bridge)).id, (await find(client, space)).id, room)

    api.tell(api.use(work), "Connected.")


@app.command()
def disconnect(api: Api, channel: Annotated[str, typer.Argument(help="The id of the channel.")]) -> None:
    """Disconnect a room from its space."""
    api.use(lambda client: client.disconnect_room(channel))
    api.tell({"id": channel, "disconnected": True}, "Disconnected.")


@app.command()
def retry(api: Api, bridge: BridgeName) -> None:
    """Reconnect a bridge, and send everything that waits or could not be delivered."""
    _order(api, bridge, Client.retry_bridge, "Everything that waits is being sent.")


@app.command()
def pause(api: Api, bridge: BridgeName) -> None:
    """Pause a bridge. Messages wait until it is resumed."""
    _order(api, bridge, Client.pause_bridge, "Paused.")


@app.command()
def resume(api: Api, bridge: BridgeName) -> None:
    """Resume a paused bridge, and send the messages that wait."""
    _order(api, bridge, Client.resume_bridge, "Resumed.")


def _order(api: Api, bridge: str, order: Callable[[Client, str], Awaitable[None]], done: str) -> None:
    async def work(client: Client) -> BridgeOut:
        found = await _find(client, bridge)
        await order(client, found.id)
        return await client.bridge(found.id)

    api.tell(api.use(work), done)


@app.command()
def remove(api: Api, bridge: BridgeName) -> None:
    """Delete a bridge, and disconnect its rooms. Messages stay."""

    async def work(client: Client) -> str:
        found = await _find(client, bridge)
        await client.remove_bridge(found.id)
        return found.id

    removed = api.use(work)
    api.tell({"id": removed, "removed": True}, "Removed.")


async def _find(client: Client, named: str) -> BridgeOut:
    found = await client.bridges()
    wanted = named.removeprefix("@")
    matching = [each for each in found if wanted in (each.id, each.handle, each.name)]
    if len(matching) != 1:
        names = ", ".join(each.handle for each in found) or "none"
        raise InvalidInput(f"There is no bridge {named!r}. The bridges here: {names}.")
    return matching[0]


def _details(bridge: BridgeOut) -> Table:
    lines = labelled()
    lines.add_row("id", Text(bridge.id, style="cyan"))
    lines.add_row("name", Text(bridge.name))
    lines.add_row("kind", bridge.kind)
    lines.add_row("state", Text(bridge.state))
    if bridge.problem is not None:
        lines.add_row("problem", Text(bridge.problem))
    since = "" if bridge.waiting_since is None else f", since {bridge.waiting_since:%Y-%m-%d %H:%M} UTC"
    lines.add_row("waiting", f"{bridge.waiting}{since}")
    lines.add_row("failed", str(bridge.failed))
    if bridge.path is not None:
        lines.add_row("path", bridge.path)
    for name, value in bridge.settings.items():
        lines.add_row(name, Text(str(value)))
    for channel in bridge.channels:
        room = "(a private space)" if channel.room is None else f"{channel.room} ↔ {channel.space_name}"
        held = f"  {channel.conversations} conversations" if channel.conversations else ""
        lines.add_row("channel", Text(f"{room}  {channel.id}{held}"))
    return lines


def _table(found: Sequence[BridgeOut]) -> Table:
    table = new_table("name", "kind", "state", "rooms", "waiting", "failed", "problem")
    for each in found:
        counts = (str(len(each.channels)), str(each.waiting), str(each.failed))
        table.add_row(Text(each.name), each.kind, Text(each.state), *counts, Text(each.problem or ""))
    return table
