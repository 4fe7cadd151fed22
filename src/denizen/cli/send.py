"""`denizen send` and `denizen trigger`: say something in a space; tell an agent of something that happened."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.text import Text

from denizen.cli.api import AgentName, AsJson, SpaceName, Token, Url, find, use_api
from denizen.cli.console import print_json, stderr
from denizen.client import Client, Message
from denizen.errors import InvalidInput
from denizen.ids import new_id


def send(
    context: typer.Context,
    space: SpaceName,
    text: Annotated[str, typer.Argument(help="Markdown; `-` reads it from stdin.")],
    reply_to: Annotated[str | None, typer.Option(help="The id of the message that this answers.")] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="Agents see it in the middle of what they do.")] = False,
    key: Annotated[str | None, typer.Option(help="Your name for it: sent twice with one key, it is said once.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Say something in a space. `denizen chat` stays and shows the answers."""
    said = _text(text)
    more: dict[str, JsonValue] = {"reply_to": reply_to} if reply_to else {}
    if urgent:
        more["urgent"] = True

    async def work(client: Client) -> tuple[str, Message]:
        there = await find(client, space)
        return there.name, await client.post(there.id, said, key=key or new_id(), **more)

    name, message = use_api(context, url, token, work)
    if as_json:
        print_json(message.model_dump(mode="json"))
    else:
        stderr().print(Text(f'Said in "{name}", as number {message.seq:,}.', style="dim"))


def trigger(
    context: typer.Context,
    agent: AgentName,
    text: Annotated[str, typer.Argument(help="What has happened; `-` reads it from stdin.")] = "",
    service: Annotated[str, typer.Option(help="What the agent is told that it comes from.")] = "command line",
    data: Annotated[str | None, typer.Option(help="More about it, as JSON; `-` reads it from stdin.")] = None,
    id: Annotated[str | None, typer.Option(help="A name for it: telling it twice is telling it once.")] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="The agent sees it in the middle of what it does.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Tell an agent of something that happened. It wakes, and decides what to do about it."""
    if not text and data is None:
        raise InvalidInput("Say what has happened, or give --data.")
    told, given = _text(text), _data(data)
    accepted = use_api(
        context, url, token, lambda client: client.trigger(agent, service, told, data=given, id=id, urgent=urgent)
    )
    if as_json:
        print_json({"id": accepted.id, "agent": agent})
    else:
        stderr().print(Text(f"{agent} has it in its inbox.", style="dim"))


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _data(given: str | None) -> JsonValue:
    if given is None:
        return None
    try:
        return json.loads(_text(given))
    except ValueError as error:
        raise InvalidInput(f"--data is no JSON: {error}.") from error
