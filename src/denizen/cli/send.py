"""`denizen send` and `denizen trigger`: posts a message in a space; sends an event to an agent."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from denizen.cli.api import AgentName, Api, SpaceName, find
from denizen.cli.console import given_text
from denizen.client import Client, Message
from denizen.errors import InvalidInput
from denizen.ids import new_id
from denizen.shapes.webhooks import TriggerAccepted


def send(
    api: Api,
    space: SpaceName,
    text: Annotated[str, typer.Argument(help="Markdown; `-` reads it from stdin.")],
    reply_to: Annotated[str | None, typer.Option(help="The id of the message that this answers.")] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="Agents see it in the middle of a cycle.")] = False,
    file: Annotated[
        list[Path] | None, typer.Option(help="A file to attach; give it several times for several files.")
    ] = None,
    alt: Annotated[
        list[str] | None,
        typer.Option(help="What a picture shows, for models and people that cannot see it; one for each --file."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key and text are posted only once.")
    ] = None,
) -> None:
    """Post a message in a space. `denizen chat` shows the answers."""
    if len(alt or ()) > len(file or ()):
        raise InvalidInput("There are more --alt than --file. Give one for each file, in the same order.")
    said = given_text(text)
    more: dict[str, JsonValue] = {"reply_to": reply_to} if reply_to else {}
    if urgent:
        more["urgent"] = True

    async def work(client: Client) -> tuple[str, Message]:
        there = await find(client, space)
        if file:
            described = zip_longest(file, alt or ())
            more["files"] = [(await client.upload(each, alt=words)).id for each, words in described]
        return there.name, await client.post(there.id, said, key=key or new_id(), **more)

    name, message = api.use(work)
    api.tell(message, f'Posted in "{name}" as message {message.seq:,}.')


def trigger(
    api: Api,
    agent: AgentName,
    text: Annotated[str, typer.Argument(help="The event as text; `-` reads it from stdin.")] = "",
    service: Annotated[str, typer.Option(help="The name of the service, as the agent sees it.")] = "command line",
    data: Annotated[str | None, typer.Option(help="Data of the event, as JSON; `-` reads it from stdin.")] = None,
    id: Annotated[str | None, typer.Option(help="Idempotency key: the same id is delivered only once.")] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="The agent sees it in the middle of a cycle.")] = False,
    file: Annotated[
        list[Path] | None, typer.Option(help="A file to attach; give it several times for several files.")
    ] = None,
) -> None:
    """Send an event to an agent. It wakes and decides what to do."""
    if not text and data is None and not file:
        raise InvalidInput("Say what has happened, or give --data or --file.")
    told, given = given_text(text), _data(data)

    async def work(client: Client) -> TriggerAccepted:
        files = [(await client.upload(each)).id for each in file or ()]
        return await client.trigger(agent, service, told, data=given, id=id, urgent=urgent, files=files)

    accepted = api.use(work)
    api.tell({"id": accepted.id, "agent": agent}, f"The event is in the inbox of {agent}.")


def _data(given: str | None) -> JsonValue:
    if given is None:
        return None
    try:
        return json.loads(given_text(given))
    except ValueError as error:
        raise InvalidInput(f"--data is not JSON: {error}.") from error
