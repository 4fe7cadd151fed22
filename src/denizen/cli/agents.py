"""`denizen agents`: lists, creates, changes, suspends, resumes and deletes agents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from denizen.cli.api import AgentName, Api, find
from denizen.cli.console import labelled, new_table, printable, stdout
from denizen.cli.findings import counted
from denizen.client import Agent, AgentDetail, Client
from denizen.errors import InvalidInput
from denizen.shapes.agents import AgentTrouble
from denizen.shortening import short_line

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Manage agents.")

_BETWEEN: Final = 20
"""The width of the borders and padding of a table of five columns, and a little more."""
STYLES: Final = {"alive": "green", "sleeping": "cyan", "paused": "yellow", "suspended": "yellow", "dead": "red"}

_Model = Annotated[str | None, typer.Option(help="Its model: `provider:name`, or `default`.")]
_Instructions = Annotated[str | None, typer.Option(help="Its role, in your words.")]
_Purpose = Annotated[str | None, typer.Option(help="What it is for, in a line that people see in lists.")]
_File = Annotated[
    Path | None, typer.Option("--instructions-file", exists=True, dir_okay=False, help="The same, from a file.")
]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A field of its definition: cycle.max_steps=5. May be repeated."),
]


@app.command("list")
def list_(api: Api) -> None:
    """List agents and what each is doing."""
    found = api.use(lambda client: client.agents())
    api.print_list(found, _table, "No agents yet. Create one with `denizen agents create NAME`.")
    if not api.as_json:
        for each in found:
            if each.trouble is not None:
                stdout().print(_trouble(each.trouble))


@app.command()
def show(api: Api, agent: AgentName) -> None:
    """Show an agent and its definition. `denizen inspect` shows its state of work."""
    found = api.use(lambda client: client.agent(agent))
    _print(api, found)


@app.command()
def create(
    api: Api,
    name: Annotated[str, typer.Argument(help="The name.")],
    handle: Annotated[
        str | None, typer.Option(help="The handle to mention it by (default: made from the name).")
    ] = None,
    purpose: _Purpose = None,
    model: _Model = None,
    instructions: _Instructions = None,
    instructions_file: _File = None,
    setting: _Set = None,
    space: Annotated[list[str] | None, typer.Option(help="A space to add it to. May be repeated.")] = None,
) -> None:
    """Create an agent. It sleeps until something reaches its inbox."""
    fields = _fields(purpose, model, _role(instructions, instructions_file), setting)
    if handle is not None:
        fields["handle"] = handle

    async def work(client: Client) -> AgentDetail:
        if space:
            fields["spaces"] = [(await find(client, each)).id for each in space]
        return await client.create_agent(name, fields)

    _print(api, api.use(work))


@app.command()
def edit(
    api: Api,
    agent: AgentName,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    purpose: _Purpose = None,
    model: _Model = None,
    instructions: _Instructions = None,
    instructions_file: _File = None,
    setting: _Set = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="A field to reset to its default. May be repeated.")
    ] = None,
) -> None:
    """Change an agent. Options that are not given stay unchanged. Takes effect with its next cycle."""
    changes = _fields(purpose, model, _role(instructions, instructions_file), setting)
    for key in unset or ():
        _put(changes, key, None)
    if name is not None:
        changes["name"] = name
    if not changes:
        raise InvalidInput("Nothing to change. Use --name, --purpose, --model, --instructions, --set or --unset.")
    _print(api, api.use(lambda client: client.edit_agent(agent, changes)))


@app.command()
def suspend(api: Api, agent: AgentName) -> None:
    """Suspend an agent until it is resumed. New events wait in its inbox."""
    _tell_status(api, api.use(lambda client: client.suspend_agent(agent)))


@app.command()
def resume(api: Api, agent: AgentName) -> None:
    """Resume a suspended agent."""
    _tell_status(api, api.use(lambda client: client.resume_agent(agent)))


@app.command()
def retry(api: Api, agent: AgentName) -> None:
    """Let an agent that cannot run try again now, including the messages that it has set aside."""
    _tell_status(api, api.use(lambda client: client.try_again(agent)))


@app.command()
def delete(
    api: Api,
    agent: AgentName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete an agent: it never runs again. Its history and messages stay."""
    if not yes:
        confirm(f"Delete {agent}? It never runs again.")
    api.use(lambda client: client.delete_agent(agent))
    api.tell({"agent": agent, "deleted": True}, f"{printable(agent)} is deleted. Its history and messages stay.")


def confirm(question: str) -> None:
    """Ask on the terminal, and abort unless the answer is yes."""
    if not sys.stdin.isatty():
        raise InvalidInput("This command asks for confirmation, and there is no terminal to ask on. Add --yes.")
    if not typer.confirm(question):
        raise typer.Abort


# Arguments


def _fields(
    purpose: str | None, model: str | None, instructions: str | None, settings: Iterable[str] | None
) -> dict[str, JsonValue]:
    fields = parsed_settings(settings or ())
    if purpose is not None:
        fields["purpose"] = purpose
    if model is not None:
        fields["model"] = model
    if instructions is not None:
        fields["instructions"] = instructions
    return fields


def parsed_settings(given: Iterable[str]) -> dict[str, JsonValue]:
    """Returns what `--set KEY=VALUE` says; dots in a key go into mappings."""
    settings: dict[str, JsonValue] = {}
    for each in given:
        key, sign, value = each.partition("=")
        if not sign:
            raise InvalidInput(f"--set {each}: write KEY=VALUE, such as cycle.max_steps=5.")
        _put(settings, key, _value(value))
    return settings


def _value(text: str) -> JsonValue:
    """Parses the text as JSON if it is valid, otherwise returns it as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _put(fields: dict[str, JsonValue], key: str, value: JsonValue) -> None:
    *outer, last = key.strip().split(".")
    there = fields
    for each in outer:
        inner = there.setdefault(each, {})
        if not isinstance(inner, dict):
            raise InvalidInput(f"{key}: {each} was said to be something else already.")
        there = inner
    there[last] = value


def _role(instructions: str | None, file: Path | None) -> str | None:
    if instructions is not None and file is not None:
        raise InvalidInput("Give the instructions in one way: --instructions or --instructions-file.")
    return instructions if file is None else file.read_text()


# Output


def _table(found: Sequence[Agent]) -> Table:
    """The identifying columns are never cut: the description gets the room that is left."""
    width = stdout().width
    rows = [(f"@{each.handle}", _cut(each.name, 20), each.status, _cut(each.model, 24)) for each in found]
    taken = sum(max(len(row[at]) for row in rows) for at in range(4))
    table = new_table()
    for title in ("agent", "name", "status", "model", "purpose"):
        table.add_column(title, no_wrap=True)
    for each, (handle, name, status, model) in zip(found, rows, strict=True):
        table.add_row(
            Text(handle, style="cyan"),
            Text(name),
            Text(status, style=STYLES.get(status, "")),
            Text(model),
            Text(_cut(each.purpose, max(width - taken - _BETWEEN, 10)), style="dim"),
        )
    return table


def _trouble(trouble: AgentTrouble) -> Text:
    """Why an agent cannot think."""
    tries = "" if trouble.retry_at is None else f" Next try: {trouble.retry_at:%Y-%m-%d %H:%M} UTC."
    return Text(f"! {printable(trouble.text)}{tries}", style="yellow")


def _cut(text: str, characters: int) -> str:
    return short_line(printable(text), characters)


def _print(api: Api, found: AgentDetail) -> None:
    if api.prints_json(found):
        return
    console = stdout()
    console.print(
        Text.assemble(
            (printable(found.name), "bold"),
            (f"  @{found.handle}", "cyan"),
            ("  ", ""),
            (found.status, STYLES.get(found.status, "")),
            (f"  {counted(found.cycles, 'cycle')}  model {printable(found.model)}", "dim"),
        )
    )
    lines = labelled()
    lines.add_row("id", found.id)
    lines.add_row("since", f"{found.created_at:%Y-%m-%d %H:%M} UTC")
    if found.trouble is not None:
        lines.add_row("trouble", _trouble(found.trouble))
    if found.resting is not None:
        until = "it is raised" if found.resting.until is None else f"{found.resting.until:%Y-%m-%d %H:%M} UTC"
        lines.add_row("budget", f"used up ({found.resting.scope}) until {until}")
    for name, value in (found.definition or {}).items():
        if name != "model":
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.add_row(name, Text(printable(shown)))
    console.print(lines)


def _tell_status(api: Api, agent: Agent) -> None:
    api.tell(agent, f"@{agent.handle} is {agent.status}.")
