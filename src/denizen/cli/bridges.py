"""`denizen bridges`: rooms elsewhere that are connected with spaces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from denizen.cli.api import Api, AsJson, SpaceName, find
from denizen.cli.console import print_json, stderr, stdout
from denizen.client import Client
from denizen.errors import InvalidInput
from denizen.shapes.bridges import BridgeCreated, BridgeOut, ChannelOut

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Connect rooms of other services with spaces, and see their state."
)

BridgeName = Annotated[str, typer.Argument(help="The bridge: its id, name or @handle.")]


@app.command("list")
def list_(api: Api, as_json: AsJson = False) -> None:
    """Show the bridges and their state."""
    found = api.use(lambda client: client.bridges())
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
    elif found:
        stdout().print(_table(found))
    else:
        stderr().print("There is none. `denizen bridges create` makes one.", style="dim")


@app.command()
def show(api: Api, bridge: BridgeName, as_json: AsJson = False) -> None:
    """Show a bridge, its rooms, and what waits to be sent."""
    found = api.use(lambda client: _find(client, bridge))
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        stdout().print(_details(found))


@app.command()
def create(
    api: Api,
    name: Annotated[str, typer.Argument(help="The name of its member in spaces.")],
    kind: Annotated[str, typer.Option(help="The kind of bridge: matrix, telegram or webhook.")] = "webhook",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, as `url=https://…`; repeat it for several.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a bridge. If it has a secret, it is shown only once."""
    settings = _settings(set_ or [])

    async def work(client: Client) -> tuple[BridgeCreated, str]:
        return await client.create_bridge(name, kind, settings), client.url

    made, address = api.use(work)
    if as_json:
        print_json(made.model_dump(mode="json"))
        return
    lines = _grid()
    lines.add_row("id", Text(made.bridge.id, style="cyan"))
    if made.bridge.path is not None:
        lines.add_row("address", f"{address}{made.bridge.path}")
    if made.secret is not None:
        lines.add_row("secret", Text(made.secret, style="bold"))
        lines.add_row("", "shown this once; give it to the other side")
    stdout().print(lines)


@app.command()
def change(
    api: Api,
    bridge: BridgeName,
    set_: Annotated[list[str], typer.Option("--set", help="A setting, as `url=https://…`; the others stay.")],
    as_json: AsJson = False,
) -> None:
    """Change settings of a bridge. It connects anew."""
    new = _settings(set_)

    async def work(client: Client) -> BridgeOut:
        found = await _find(client, bridge)
        return await client.change_bridge(found.id, {**found.settings, **new})

    _done(api.use(work), "Changed.", as_json=as_json)


@app.command()
def connect(
    api: Api,
    bridge: BridgeName,
    space: SpaceName,
    room: Annotated[str, typer.Option(help="The id of the room elsewhere.")],
    as_json: AsJson = False,
) -> None:
    """Connect a room elsewhere with a space that you are in."""

    async def work(client: Client) -> ChannelOut:
        return await client.connect_room((await _find(client, bridge)).id, (await find(client, space)).id, room)

    _done(api.use(work), "Connected.", as_json=as_json)


@app.command()
def disconnect(
    api: Api, channel: Annotated[str, typer.Argument(help="The id of the channel.")], as_json: AsJson = False
) -> None:
    """Disconnect a room from its space."""
    api.use(lambda client: client.disconnect_room(channel))
    if as_json:
        print_json({"id": channel, "disconnected": True})
    else:
        stderr().print("Disconnected.", style="dim")


@app.command()
def retry(api: Api, bridge: BridgeName, as_json: AsJson = False) -> None:
    """Connect a bridge anew, and send everything that waits or could not be delivered."""

    async def work(client: Client) -> BridgeOut:
        found = await _find(client, bridge)
        await client.retry_bridge(found.id)
        return await client.bridge(found.id)

    _done(api.use(work), "Everything that waits is being sent.", as_json=as_json)


@app.command()
def remove(api: Api, bridge: BridgeName, as_json: AsJson = False) -> None:
    """Remove a bridge with its rooms. What was said stays."""

    async def work(client: Client) -> str:
        found = await _find(client, bridge)
        await client.remove_bridge(found.id)
        return found.id

    removed = api.use(work)
    if as_json:
        print_json({"id": removed, "removed": True})
    else:
        stderr().print("Removed.", style="dim")


async def _find(client: Client, named: str) -> BridgeOut:
    found = await client.bridges()
    wanted = named.removeprefix("@")
    matching = [each for each in found if wanted in (each.id, each.handle, each.name)]
    if len(matching) != 1:
        names = ", ".join(each.handle for each in found) or "none"
        raise InvalidInput(f"There is no bridge {named!r}. The bridges here: {names}.")
    return matching[0]


def _settings(given: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise InvalidInput(f"--set {each}: write it as NAME=VALUE.")
        try:
            settings[name.strip()] = json.loads(value)
        except ValueError:
            settings[name.strip()] = value
    return settings


def _done(value: BridgeOut | ChannelOut, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(value.model_dump(mode="json"))
    else:
        stderr().print(said, style="dim")


def _grid() -> Table:
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim")
    lines.add_column(overflow="fold")
    return lines


def _details(bridge: BridgeOut) -> Table:
    lines = _grid()
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
        lines.add_row("channel", Text(f"{room}  {channel.id}"))
    return lines


def _table(found: Sequence[BridgeOut]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("name", "kind", "state", "rooms", "waiting", "failed", "problem"):
        table.add_column(title, overflow="fold")
    for each in found:
        counts = (str(len(each.channels)), str(each.waiting), str(each.failed))
        table.add_row(Text(each.name), each.kind, Text(each.state), *counts, Text(each.problem or ""))
    return table
